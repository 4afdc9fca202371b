//! Incidents: what cannot happen, and did; and answers that come too late, which may.
//!
//! ```text
//! cannot happen ─▶ alert with the machine, counted, shown ─▶ the gate closes for good; deciding goes on
//! late answer ───▶ counted by what it answers, and ignored
//! ```
//!
//! A write the ledger refuses, a commit that leads nowhere: the shard is not what it believes to be, and
//! nothing it would do next can be trusted. An answer nobody waits for is daily bread: a session that was
//! replaced, a call whose machine is gone.

use super::ShardCore;
use crate::effect::{Alert, Effect};
use bigfleet_model::MachineId;

/// What an answer was for that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LateAnswer {
    /// A page or the end of a List.
    List,
    /// A Get.
    Get,
    /// A call.
    Call,
    /// A request for a blob.
    Blob,
    /// An instruction to drain.
    Drain,
    /// A message on a session that is over.
    Session,
    /// A report about a node whose machine is another cluster's, or nobody's.
    Node,
}

impl LateAnswer {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::List,
        Self::Get,
        Self::Call,
        Self::Blob,
        Self::Drain,
        Self::Session,
        Self::Node,
    ];

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Get => "get",
            Self::Call => "call",
            Self::Blob => "blob",
            Self::Drain => "drain",
            Self::Session => "session",
            Self::Node => "node",
        }
    }
}

impl ShardCore {
    /// Something happened to a machine that cannot. The one place for it: nothing leaves any more, and
    /// whoever runs the shard hears of it.
    pub(super) fn impossible(
        &mut self,
        machine: &MachineId,
        what: String,
        effects: &mut Vec<Effect>,
    ) {
        self.counters.incidents += 1;
        let is_first = self.rails.incident().is_none();
        self.rails.note_incident(&format!("{machine}: {what}"));
        effects.push(Effect::Alert(Alert::Impossible {
            machine: machine.clone(),
            what,
        }));
        if is_first {
            self.gate_moved(self.now);
        }
    }

    /// An answer came that nobody waits for.
    pub(super) fn late(&mut self, answer: LateAnswer) {
        *self.counters.late_answers.entry(answer).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        effect::ListId,
        event::{Event, Listed},
        settings::ShardConfig,
    };
    use bigfleet_model::{Machine, State, Time, Via};
    use bigfleet_testkit::fleet;

    /// A shard that knows one Idle machine, and that machine.
    fn shard() -> (ShardCore, MachineId) {
        let config = ShardConfig::undamped("s", "p");
        let mut core = ShardCore::new(config, 1, Time::ZERO).unwrap();
        let machines = fleet("m1 Idle cpu=4 $1").machines;
        let machines = machines.into_values().map(|one| one.machine.into());
        let list = ListId(1);
        let mut effects = Vec::new();
        let page = Event::ListPage {
            list,
            machines: machines.collect(),
            refused: Vec::new(),
        };
        let end = Event::ListEnded {
            list,
            outcome: Listed::Complete {
                full: true,
                removed: Vec::new(),
                cursor: Vec::new(),
            },
        };
        for event in [Event::Woken, page, end] {
            core.handle(Time::ZERO, event, &mut effects);
        }
        assert!(core.is_ready() && core.machine(&id()).is_some());
        (core, id())
    }

    fn id() -> MachineId {
        MachineId::new("m1").unwrap()
    }

    /// SH-21: an Idle machine does not become Deleting by a rollback, and nothing is as it seems if it
    /// is to.
    #[test]
    fn a_write_that_cannot_be_closes_the_gate_and_says_so() {
        let (mut core, machine) = shard();
        let mut effects = Vec::new();
        let mut leap = core.machine(&machine).unwrap().clone().into_facts();
        leap.state = State::Deleting.into();
        let leap = Machine::new(leap).unwrap();
        core.change(core.now, leap, Via::Rollback, &mut effects);

        let alerts: Vec<&Alert> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Alert(alert) => Some(alert),
                _ => None,
            })
            .collect();
        let [
            Alert::Impossible {
                machine: named,
                what,
            },
        ] = alerts[..]
        else {
            panic!("{alerts:?}");
        };
        assert_eq!(*named, machine);
        let known = core.machine(&machine).map(|known| known.state());
        assert_eq!(known, Some(State::Idle), "nothing was written");
        assert_eq!(core.counters().incidents, 1);
        assert_eq!(core.rails().incident, Some(format!("{machine}: {what}")));
        assert!(core.is_paused() && !core.is_ready());
        assert!(!core.report().acts, "and it says so upward");

        // Deciding goes on.
        let (cycle, later) = (core.cycle(), core.now + std::time::Duration::from_secs(60));
        core.handle(later, Event::CycleDue, &mut effects);
        assert!(cycle < core.cycle());
    }

    /// The first incident is shown; the others are told and counted.
    #[test]
    fn a_second_incident_does_not_hide_the_first() {
        let (mut core, machine) = shard();
        let mut effects = Vec::new();
        for what in ["first", "second"] {
            core.impossible(&machine, what.to_owned(), &mut effects);
        }
        assert_eq!(core.rails().incident.as_deref(), Some("m1: first"));
        assert_eq!((core.counters().incidents, effects.len()), (2, 2));
    }

    #[test]
    fn a_late_answer_is_counted_by_what_it_answers_and_stops_nobody() {
        let (mut core, _) = shard();
        for answer in LateAnswer::ALL {
            core.late(answer);
        }
        core.late(LateAnswer::Get);
        assert_eq!(core.counters().late_answers[&LateAnswer::Get], 2);
        assert_eq!(core.counters().late_answers[&LateAnswer::Drain], 1);
        assert!(core.is_ready());
    }
}
