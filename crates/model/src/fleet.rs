//! Fleet: everything one decision is made from, as one plain value (EN-1).

use crate::{CapacityType, ClusterId, Machine, MachineId, Need, Row, State, Time};
use std::{collections::BTreeMap, time::Duration};

/// The input of a decision. Maps, so that an id cannot appear twice and order cannot matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// The moment of the decision.
    pub now: Time,
    /// The machines.
    pub machines: BTreeMap<MachineId, FleetMachine>,
    /// The clusters; one that is not here has not reported.
    pub clusters: BTreeMap<ClusterId, Cluster>,
    /// How long unclaimed machines may stay idle.
    pub holds: Holds,
}

impl Fleet {
    /// Adds a machine in the place of any with its id.
    pub fn put(&mut self, machine: FleetMachine) {
        self.machines.insert(machine.machine.id().clone(), machine);
    }
}

/// A machine with what the shard knows about it beside its record.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetMachine {
    /// The record.
    pub machine: Machine,
    /// Since when it is idle; unknown is never released.
    pub idle_since: Option<Time>,
    /// Its node did not become ready: it is not credited (EN-1). Means something only while bound.
    pub not_ready: bool,
    /// It cannot be acquired now, for instance because its provider backs off (RF-17).
    pub unavailable: bool,
    /// What draining it would disturb, as its cluster's operator tells; unknown if it has not (RF-2). Means
    /// something only while Configured.
    pub disruption: Option<Disruption>,
    /// Its drain can still be taken back (RF-20). Means something only while Draining.
    pub reversible: bool,
    /// It is to leave its cluster, if it is marked (RF-21). Stays from state to state until it is withdrawn.
    pub leaving: Option<Leaving>,
}

/// How a machine leaves (RF-21). The later word is the stronger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaving {
    /// Once another serves in its place.
    Soon,
    /// At once.
    Now,
}

impl Leaving {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Soon, Self::Now];

    /// The word used in files, metrics and speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::Soon => "soon",
            Self::Now => "now",
        }
    }

    /// What this word says, if it is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// What draining a machine would disturb, 0 (nothing runs there) to 15: it decides which of equals leaves,
/// never whether one does (RF-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disruption(u8);

impl Disruption {
    /// Nothing runs there.
    pub const NONE: Self = Self(0);
    /// What counts where nobody has told.
    pub const UNKNOWN: Self = Self(1);
    /// The most that can be told.
    pub const MOST: Self = Self(15);

    /// Exactly this much, if there is such.
    pub fn new(level: i64) -> Option<Self> {
        let level = u8::try_from(level).ok().map(Self);
        level.filter(|level| *level <= Self::MOST)
    }

    /// This much, or the most there is.
    pub fn at_most(level: u32) -> Self {
        Self::new(level.into()).unwrap_or(Self::MOST)
    }

    /// The number.
    pub fn level(self) -> u8 {
        self.0
    }
}

impl FleetMachine {
    /// What draining it would disturb, as decisions read it (RF-2).
    pub fn disturbs(&self) -> Disruption {
        match self.machine.state() {
            State::Configured => self.disruption.unwrap_or(Disruption::UNKNOWN),
            _ => Disruption::NONE,
        }
    }

    /// Whether its drain can still be taken back (RF-20); not that of one that leaves (RF-21).
    pub fn is_reversible(&self) -> bool {
        self.reversible && self.leaving.is_none() && self.machine.state() == State::Draining
    }

    /// Whether it is bound and serves until another does in its place (RF-21).
    pub fn leaves_soon(&self) -> bool {
        self.leaving == Some(Leaving::Soon) && self.machine.state().is_bound()
    }

    /// Whether it is bound and leaves whatever becomes of its Need (RF-21).
    pub fn leaves_now(&self) -> bool {
        self.leaving == Some(Leaving::Now) && self.machine.state().is_bound()
    }

    /// Whether it is bound and counts for no Need: its node is not there, or it leaves now (RF-1, RF-21).
    pub fn is_uncounted(&self) -> bool {
        self.leaves_now() || self.not_ready && self.machine.state().is_bound()
    }

    /// Whether nobody may take it while it is unbound: it cannot be had now, or it is for the mechanic (RF-17,
    /// RF-21).
    pub fn is_out_of_reach(&self) -> bool {
        self.unavailable || self.leaving.is_some() && !self.machine.state().is_bound()
    }

    /// Takes over what the machine became. Its idle clock starts as it enters Idle (M-4), what is known of
    /// its node holds while it stays bound, and a drain is another one when it begins again. That it leaves was
    /// said of the machine, whatever it is doing.
    pub fn replace(&mut self, machine: Machine, now: Time) {
        let before = self.machine.state();
        let after = machine.state();
        self.machine = machine;
        let stays_bound = before.is_bound() && after.is_bound();
        self.not_ready &= stays_bound;
        self.disruption = self.disruption.filter(|_| stays_bound);
        self.reversible &= before == State::Draining && after == State::Draining;
        match (before, after) {
            (State::Idle, State::Idle) => {}
            (_, State::Idle) => self.idle_since = Some(now),
            _ => self.idle_since = None,
        }
    }
}

impl From<Machine> for FleetMachine {
    fn from(machine: Machine) -> Self {
        Self {
            machine,
            idle_since: None,
            not_ready: false,
            unavailable: false,
            disruption: None,
            reversible: false,
            leaving: None,
        }
    }
}

/// A cluster and its demand. Rows are merged: no two are equal in profile and group.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Whether it has reported to this process; if not, nothing is reclaimed from it.
    pub ready: bool,
    /// Whether machines may be acquired for it (RF-16).
    pub acquire: bool,
    needs: Vec<Need>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            ready: true,
            acquire: true,
            needs: Vec::new(),
        }
    }
}

impl Cluster {
    /// A cluster that has reported these rows, each with its arrival, if that is stated, and whether it is parked. Errs
    /// with the position of a row whose sum with its equals cannot be counted.
    pub fn new(
        id: &ClusterId,
        rows: impl IntoIterator<Item = (Row, Option<Time>, bool)>,
    ) -> Result<Self, usize> {
        let need = |(row, arrival, parked)| Need {
            cluster: id.clone(),
            row,
            arrival,
            parked,
        };
        let needs = Need::merge(rows.into_iter().map(need))?;
        Ok(Self {
            needs,
            ..Self::default()
        })
    }

    /// Its demand.
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }
}

/// How long an unclaimed machine may stay idle; `None` is for ever. Owned tiers have no field, so no
/// configuration mistake can release them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// On-demand machines.
    pub on_demand: Option<Duration>,
    /// Spot machines.
    pub spot: Option<Duration>,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            on_demand: Some(Duration::from_secs(600)),
            spot: Some(Duration::from_secs(60)),
        }
    }
}

impl Holds {
    /// Nothing is ever released.
    pub const NEVER: Self = Self {
        on_demand: None,
        spot: None,
    };

    /// How long a machine of this type may stay idle. A hold of zero never releases.
    pub fn of(self, tier: CapacityType) -> Option<Duration> {
        let hold = match tier {
            CapacityType::OnDemand => self.on_demand,
            CapacityType::Spot => self.spot,
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified => None,
        };
        hold.filter(|hold| !hold.is_zero())
    }

    /// Whether a machine of this type, idle since then, is to be released.
    pub fn expired(self, tier: CapacityType, since: Time, now: Time) -> bool {
        self.of(tier)
            .is_some_and(|hold| hold <= now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, MachineFacts};

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn machine(state: State) -> Machine {
        Machine::new(MachineFacts {
            host: Host {
                provider: "p".to_owned(),
                reference: "h".to_owned(),
            },
            cluster: "a".to_owned(),
            ..MachineFacts::new("m1", state)
        })
        .unwrap()
    }

    #[test]
    fn the_idle_clock_and_the_mark_of_the_node_follow_the_state() {
        let mut held = FleetMachine::from(machine(State::Configuring));
        held.not_ready = true;
        held.replace(machine(State::Configured), at(1));
        assert_eq!((held.not_ready, held.idle_since), (true, None));
        held.replace(machine(State::Idle), at(2));
        assert_eq!((held.not_ready, held.idle_since), (false, Some(at(2))));
        held.replace(machine(State::Idle), at(3));
        assert_eq!(held.idle_since, Some(at(2)), "idle all along");
        held.not_ready = true;
        held.replace(machine(State::Configuring), at(4));
        assert_eq!((held.not_ready, held.idle_since), (false, None));
        assert_eq!(held.machine.state(), State::Configuring);
    }

    /// RF-2, RF-20: each counts in one state only, and is forgotten with it.
    #[test]
    fn disruption_and_the_way_back_belong_to_one_state() {
        let mut held = FleetMachine::from(machine(State::Configured));
        assert_eq!(held.disturbs(), Disruption::UNKNOWN);
        held.disruption = Disruption::new(9);
        held.reversible = true;
        assert_eq!((held.disturbs().level(), held.is_reversible()), (9, false));
        held.replace(machine(State::Draining), at(1));
        assert_eq!((held.disturbs(), held.disruption), (Disruption::NONE, None));
        assert!(!held.is_reversible(), "another drain");
        held.reversible = true;
        assert!(held.is_reversible());
        held.replace(machine(State::Configured), at(2));
        assert!(!held.reversible);
        assert_eq!(Disruption::new(15), Some(Disruption::MOST));
        assert_eq!((Disruption::new(16), Disruption::new(-1)), (None, None));
        assert_eq!(Disruption::at_most(15), Disruption::MOST);
        assert_eq!(Disruption::at_most(u32::MAX), Disruption::MOST);
        assert_eq!(Disruption::at_most(2).level(), 2);
    }

    /// RF-21: the mark stays, and means in each state what is said of that state.
    #[test]
    fn a_mark_to_leave_follows_the_machine_through_its_states() {
        let mut held = FleetMachine::from(machine(State::Configured));
        held.leaving = Some(Leaving::Soon);
        assert!(held.leaves_soon() && !held.leaves_now() && !held.is_uncounted());
        held.leaving = Some(Leaving::Now);
        assert!(held.leaves_now() && !held.leaves_soon() && held.is_uncounted());
        assert!(!held.is_out_of_reach(), "it is bound");
        held.replace(machine(State::Draining), at(1));
        held.reversible = true;
        assert!(!held.is_reversible() && held.is_out_of_reach());
        assert!(!held.leaves_now() && !held.is_uncounted());
        held.replace(machine(State::Idle), at(2));
        assert_eq!(held.leaving, Some(Leaving::Now), "for the mechanic");
        held.leaving = None;
        assert!(!held.is_out_of_reach());
        assert!(Leaving::Soon < Leaving::Now, "the stronger word counts");
        for word in Leaving::ALL {
            assert_eq!(Leaving::from_word(word.word()), Some(word));
        }
        assert_eq!(Leaving::from_word(""), None);
    }

    /// at the end of its hold and not a nanosecond before; zero is never.
    #[test]
    fn a_hold_ends_to_the_nanosecond() {
        let holds = Holds {
            on_demand: Some(Duration::from_secs(600)),
            spot: Some(Duration::ZERO),
        };
        let expired = |tier, nanos| holds.expired(tier, at(7), Time::from_nanos(nanos));
        assert!(!expired(CapacityType::OnDemand, 606_999_999_999));
        assert!(expired(CapacityType::OnDemand, 607_000_000_000));
        assert!(expired(CapacityType::OnDemand, 607_000_000_001));
        assert!(!expired(CapacityType::Spot, i64::MAX));
        assert!(!expired(CapacityType::Reserved, i64::MAX));
        assert!(!Holds::NEVER.expired(CapacityType::OnDemand, at(0), at(1 << 32)));
        let sooner = Holds::default().expired(CapacityType::Spot, at(0), at(59));
        let later = Holds::default().expired(CapacityType::Spot, at(0), at(60));
        assert_eq!((sooner, later), (false, true));
    }
}
