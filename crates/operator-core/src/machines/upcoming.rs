//! Upcoming: one UpcomingNode per machine, from the first frame about it to the last (operator.md §8).
//!
//! ```text
//! frame ─▶ what the object should say ── differs from what it says ──▶ apply or delete
//! ```
//!
//! What an object should say is kept beside what the watch shows, so a write that is on its way is not written again and
//! a frame that comes twice changes nothing.

use crate::{
    event::{MachineState, NodeState},
    objects::{NodeReadiness, Phase, UpcomingFacts, UpcomingNode},
    sha256::sha256_hex,
};
use bigfleet_model::{Amounts, MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A Ready machine without a Ready Node is spoken of after this long (OP-43).
const NODE_READY_WITHIN: Duration = Duration::from_secs(600);

/// The name of a machine's UpcomingNode: the id itself where it may be a name (operator.md §8).
pub(crate) fn upcoming_name(machine: &MachineId) -> String {
    let id = machine.as_str();
    let plain = format!("un-{id}");
    if is_subdomain(&plain) {
        return plain;
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let safe: String = id
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if fits(c) { c } else { '-' })
        .take(40)
        .collect();
    let hash = sha256_hex(id.as_bytes());
    format!("un-{safe}-{}", &hash[..16])
}

/// DNS-1123: parts of lower-case letters, digits and dashes that begin and end with neither dash nor dot.
fn is_subdomain(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(fits)
            && bytes.last().copied().is_some_and(fits)
            && bytes.iter().all(|byte| fits(*byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Upcome {
    Apply(MachineId, Box<UpcomingNode>),
    Delete(String),
}

/// What an object should say, and since when this process knows it to be in its phase.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) content: UpcomingNode,
    pub(crate) phase_since: Time,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct UpcomingNodes {
    /// What each should say.
    wanted: BTreeMap<MachineId, Wanted>,
    /// What each says, by name.
    shown: BTreeMap<String, UpcomingNode>,
    /// Objects of machines that left, until they are seen to be gone: what a watch brings late must not bring them back.
    left: BTreeSet<String>,
    /// Machines whose missing Node was spoken of.
    spoken_of: BTreeSet<MachineId>,
    /// When to look for missing Nodes again; the beginning of time after a change.
    look_at: Option<Time>,
}

const AT_ONCE: Option<Time> = Some(Time::from_nanos(i64::MIN));

impl UpcomingNodes {
    /// The watch shows an object; the machine it is about, if nobody spoke of it before.
    pub(crate) fn shown(&mut self, now: Time, facts: &UpcomingFacts) -> Option<MachineId> {
        self.shown.insert(facts.name.clone(), facts.content.clone());
        let id = facts
            .machine
            .as_deref()
            .or_else(|| facts.name.strip_prefix("un-"))?;
        let machine = MachineId::new(id).ok()?;
        if self.wanted.contains_key(&machine) || self.left.contains(&facts.name) {
            return None;
        }
        let wanted = Wanted {
            content: facts.content.clone(),
            phase_since: now,
        };
        self.wanted.insert(machine.clone(), wanted);
        self.look_at = AT_ONCE;
        Some(machine)
    }

    /// The watch no longer shows it.
    pub(crate) fn gone(&mut self, name: &str) {
        self.shown.remove(name);
        self.left.remove(name);
        self.wanted
            .retain(|machine, _| upcoming_name(machine) != name);
    }

    pub(crate) fn get(&self, machine: &MachineId) -> Option<&UpcomingNode> {
        self.wanted.get(machine).map(|wanted| &wanted.content)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&MachineId, &Wanted)> {
        self.wanted.iter()
    }

    /// The table of operator.md §8: what a frame makes of an object. `None` deletes it.
    pub(crate) fn heard(
        &mut self,
        now: Time,
        machine: &MachineId,
        frame: &NodeState,
        keeps_drained: bool,
    ) -> Option<Upcome> {
        let before = self.get(machine).map(|known| known.phase);
        let next = match next_phase(before, frame.state, frame.is_removed, keeps_drained) {
            Next::Keep => return self.refresh(machine, frame),
            Next::Delete => return self.delete(machine),
            Next::Become(phase) => phase,
        };
        // The API server keeps whole seconds; more would differ from what it shows for ever.
        let started = Time::from_nanos(now.nanos() / 1_000_000_000 * 1_000_000_000);
        let wanted = self
            .wanted
            .entry(machine.clone())
            .or_insert_with(|| Wanted {
                content: UpcomingNode {
                    labels: BTreeMap::new(),
                    resources: Amounts::NONE,
                    taints: Vec::new(),
                    phase: next,
                    node_name: String::new(),
                    provider_id: String::new(),
                    started: Some(started),
                    last_error: String::new(),
                    readiness: None,
                },
                phase_since: now,
            });
        self.look_at = AT_ONCE;
        self.left.remove(&upcoming_name(machine));
        wanted.content.started.get_or_insert(started);
        wanted.set_phase(now, next);
        if next == Phase::Failed && !frame.last_error.is_empty() {
            wanted.content.last_error.clone_from(&frame.last_error);
        }
        self.refresh(machine, frame)
    }

    /// OP-40: what a frame leaves empty stays as it was.
    fn refresh(&mut self, machine: &MachineId, frame: &NodeState) -> Option<Upcome> {
        let known = &mut self.wanted.get_mut(machine)?.content;
        if !frame.labels.is_empty() {
            known.labels.clone_from(&frame.labels);
        }
        if !frame.resources.is_zero() {
            known.resources = frame.resources.clone();
        }
        if !frame.taints.is_empty() {
            known.taints.clone_from(&frame.taints);
        }
        if !frame.provider_id.is_empty() {
            known.provider_id.clone_from(&frame.provider_id);
        }
        self.difference(machine)
    }

    /// A drain moves the phase, if there is an object.
    pub(crate) fn phase(
        &mut self,
        now: Time,
        machine: &MachineId,
        phase: Phase,
        last_error: &str,
    ) -> Option<Upcome> {
        self.look_at = AT_ONCE;
        let wanted = self.wanted.get_mut(machine)?;
        wanted.set_phase(now, phase);
        wanted.content.last_error = last_error.to_owned();
        self.difference(machine)
    }

    /// What is known of the machine's Node (OP-30, OP-43).
    pub(crate) fn node(
        &mut self,
        machine: &MachineId,
        node_name: Option<&str>,
        readiness: NodeReadiness,
    ) -> Option<Upcome> {
        self.look_at = AT_ONCE;
        let known = &mut self.wanted.get_mut(machine)?.content;
        if let Some(name) = node_name {
            known.node_name = name.to_owned();
        }
        known.readiness = Some(readiness);
        if readiness == NodeReadiness::Ready {
            self.spoken_of.remove(machine);
        }
        self.difference(machine)
    }

    /// Deletes the object of a machine that has left.
    pub(crate) fn delete(&mut self, machine: &MachineId) -> Option<Upcome> {
        self.spoken_of.remove(machine);
        let wanted = self.wanted.remove(machine);
        let name = upcoming_name(machine);
        let is_there = wanted.is_some() || self.shown.contains_key(&name);
        is_there.then(|| {
            self.left.insert(name.clone());
            Upcome::Delete(name)
        })
    }

    /// What to write so that the object says what it should.
    fn difference(&self, machine: &MachineId) -> Option<Upcome> {
        let wanted = self.get(machine)?;
        let shown = self.shown.get(&upcoming_name(machine));
        (shown != Some(wanted)).then(|| Upcome::Apply(machine.clone(), Box::new(wanted.clone())))
    }

    pub(crate) fn ready(&self) -> usize {
        let is_ready = |wanted: &&Wanted| wanted.content.phase == Phase::Ready;
        self.wanted.values().filter(is_ready).count()
    }

    /// Machines Ready for ten minutes whose Node is not, each named once (OP-43). Looks at all of them only after a
    /// change or when one is due.
    pub(crate) fn overdue(&mut self, now: Time) -> Vec<MachineId> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.look_at = self
            .late()
            .map(|(_, due)| due)
            .filter(|due| now < *due)
            .min();
        let is_due =
            |(machine, due): &(MachineId, Time)| *due <= now && !self.spoken_of.contains(machine);
        let overdue: Vec<_> = self
            .late()
            .filter(is_due)
            .map(|(machine, _)| machine)
            .collect();
        self.spoken_of.extend(overdue.iter().cloned());
        overdue
    }

    pub(crate) fn next_overdue(&self) -> Option<Time> {
        self.look_at
    }

    /// Machines that are Ready while their Node is not, and when each is overdue.
    fn late(&self) -> impl Iterator<Item = (MachineId, Time)> {
        let is_late = |(_, wanted): &(&MachineId, &Wanted)| {
            wanted.content.phase == Phase::Ready
                && wanted.content.readiness != Some(NodeReadiness::Ready)
        };
        let late = self.wanted.iter().filter(is_late);
        late.map(|(machine, wanted)| (machine.clone(), wanted.phase_since + NODE_READY_WITHIN))
    }
}

impl Wanted {
    fn set_phase(&mut self, now: Time, phase: Phase) {
        if self.content.phase != phase {
            self.content.phase = phase;
            self.phase_since = now;
        }
        if phase != Phase::Failed {
            self.content.last_error.clear();
        }
    }
}

enum Next {
    Keep,
    Delete,
    Become(Phase),
}

/// The table of operator.md §8.
fn next_phase(
    before: Option<Phase>,
    state: MachineState,
    is_removed: bool,
    keeps_drained: bool,
) -> Next {
    use MachineState as M;
    let is_early = matches!(before, Some(Phase::Provisioning | Phase::Launched));
    if is_removed {
        return if before.is_some() {
            Next::Delete
        } else {
            Next::Keep
        };
    }
    match (state, before) {
        (M::Idle, None) => Next::Keep,
        (M::Idle, Some(_)) if is_early => Next::Become(Phase::Launched),
        (M::Idle, Some(_)) => Next::Delete,
        (M::Speculative | M::Creating, None) => Next::Become(Phase::Provisioning),
        (M::Speculative | M::Creating | M::Deleting | M::Unknown, Some(_)) if is_early => {
            Next::Become(Phase::Provisioning)
        }
        (M::Speculative | M::Creating | M::Deleting | M::Unknown, _) => Next::Keep,
        (M::Configuring, _) => Next::Become(Phase::Registered),
        (M::Configured, _) => Next::Become(Phase::Ready),
        (M::Failed, _) => Next::Become(Phase::Failed),
        (M::Draining, Some(Phase::Drained)) if keeps_drained => Next::Keep,
        (M::Draining, _) => Next::Become(Phase::Draining),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> MachineId {
        MachineId::new(name).unwrap()
    }

    fn frame(state: MachineState) -> NodeState {
        NodeState {
            machine: "m1".to_owned(),
            cluster: String::new(),
            state,
            node_name: String::new(),
            provider_id: String::new(),
            last_error: String::new(),
            labels: BTreeMap::new(),
            resources: Amounts::NONE,
            taints: Vec::new(),
            is_removed: false,
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn play(states: &[MachineState]) -> (UpcomingNodes, Option<Upcome>) {
        let mut upcoming = UpcomingNodes::default();
        let mut last = None;
        for state in states {
            last = upcoming.heard(at(1), &id("m1"), &frame(*state), true);
        }
        (upcoming, last)
    }

    #[test]
    fn a_name_is_the_id_or_made_from_it() {
        assert_eq!(upcoming_name(&id("i-0a.b")), "un-i-0a.b");
        let odd = upcoming_name(&id("Prov/Zone:1"));
        assert!(odd.starts_with("un-prov-zone-1-"), "{odd}");
        assert_eq!(odd.len(), "un-prov-zone-1-".len() + 16);
        let long = upcoming_name(&id(&"x".repeat(300)));
        assert_eq!(long.len(), 3 + 40 + 1 + 16);
        assert_ne!(upcoming_name(&id("A")), upcoming_name(&id("a")));
        assert!(upcoming_name(&id("a-")).len() > 10, "a dash ends no name");
    }

    /// EX-OP13: whatever came before, a machine that is nobody's any more leaves no object behind.
    #[test]
    fn ex_op13_idle_deletes_whatever_was_bound() {
        use MachineState::{Configured, Configuring, Draining, Idle};
        for states in [
            &[Configured, Idle][..],
            &[Configured, Draining, Idle],
            &[Configuring, Idle],
        ] {
            let (upcoming, last) = play(states);
            assert_eq!(last, Some(Upcome::Delete("un-m1".to_owned())), "{states:?}");
            assert_eq!(upcoming.get(&id("m1")), None);
        }
        let (mut upcoming, _) = play(&[Configured]);
        upcoming.phase(at(2), &id("m1"), Phase::Drained, "");
        let last = upcoming.heard(at(3), &id("m1"), &frame(Idle), true);
        assert_eq!(last, Some(Upcome::Delete("un-m1".to_owned())));
    }

    /// Every cell of the table.
    #[test]
    fn every_frame_makes_of_every_phase_what_the_table_says() {
        use MachineState as M;
        use Phase as P;
        let late = [P::Registered, P::Ready, P::Draining, P::Drained, P::Failed];
        let show = |before, state, removed| match next_phase(before, state, removed, true) {
            Next::Keep => "keep".to_owned(),
            Next::Delete => "delete".to_owned(),
            Next::Become(phase) => format!("{phase:?}"),
        };
        for early in [P::Provisioning, P::Launched] {
            assert_eq!(show(Some(early), M::Idle, false), "Launched");
            for state in [M::Speculative, M::Creating, M::Deleting, M::Unknown] {
                assert_eq!(show(Some(early), state, false), "Provisioning");
            }
            assert_eq!(show(Some(early), M::Configured, true), "delete");
        }
        for phase in late {
            for state in [M::Speculative, M::Creating, M::Deleting, M::Unknown] {
                assert_eq!(show(Some(phase), state, false), "keep");
            }
            assert_eq!(show(Some(phase), M::Idle, false), "delete");
            assert_eq!(show(Some(phase), M::Idle, true), "delete");
            let draining = if phase == P::Drained {
                "keep"
            } else {
                "Draining"
            };
            assert_eq!(show(Some(phase), M::Draining, false), draining);
        }
        for (state, absent) in [
            (M::Speculative, "Provisioning"),
            (M::Creating, "Provisioning"),
            (M::Idle, "keep"),
            (M::Configuring, "Registered"),
            (M::Configured, "Ready"),
            (M::Draining, "Draining"),
            (M::Deleting, "keep"),
            (M::Failed, "Failed"),
            (M::Unknown, "keep"),
        ] {
            assert_eq!(show(None, state, false), absent);
            assert_eq!(show(None, state, true), "keep");
        }
    }

    /// OP-40.
    #[test]
    fn what_a_frame_leaves_empty_stays_and_an_error_ends_with_its_phase() {
        let mut upcoming = UpcomingNodes::default();
        let full = NodeState {
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            provider_id: "i-1".to_owned(),
            last_error: "no quota".to_owned(),
            ..frame(MachineState::Failed)
        };
        upcoming.heard(at(1), &id("m1"), &full, true);
        assert_eq!(upcoming.get(&id("m1")).unwrap().last_error, "no quota");
        upcoming.heard(at(2), &id("m1"), &frame(MachineState::Configured), true);
        let known = upcoming.get(&id("m1")).unwrap().clone();
        assert_eq!((known.labels.len(), known.provider_id.as_str()), (1, "i-1"));
        assert_eq!(
            (known.last_error.as_str(), known.started),
            ("", Some(at(1)))
        );
        let shown = UpcomingFacts {
            name: "un-m1".to_owned(),
            machine: Some("m1".to_owned()),
            content: known,
        };
        assert_eq!(upcoming.shown(at(2), &shown), None);
        let again = upcoming.heard(at(3), &id("m1"), &frame(MachineState::Configured), true);
        assert_eq!(again, None, "nothing differs");
    }

    /// OP-43.
    #[test]
    fn a_ready_machine_without_a_node_is_spoken_of_once() {
        let (mut upcoming, _) = play(&[MachineState::Configured]);
        assert_eq!(
            (upcoming.overdue(at(600)), upcoming.next_overdue()),
            (vec![], Some(at(601)))
        );
        assert_eq!(upcoming.overdue(at(601)), [id("m1")]);
        assert_eq!(
            (upcoming.overdue(at(602)), upcoming.next_overdue()),
            (vec![], None)
        );
        upcoming.node(&id("m1"), Some("n1"), NodeReadiness::Ready);
        assert_eq!(upcoming.get(&id("m1")).unwrap().node_name, "n1");
        assert_eq!(upcoming.overdue(at(9_999)), []);
    }
}
