//! Decision: what one cycle decided, as one plain value (EN-3, engine.md §17, §18).
//!
//! The engine and the oracle both answer with this type; that they agree means that these values
//! are equal.

use crate::{Amounts, ClusterId, MachineId, Need, NeedKey, State, Terms};
use std::{fmt, sync::Arc};

/// What is to be done with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// Idle to Configured.
    Bootstrap,
    /// Speculative to Configured.
    Provision,
    /// Configured to Idle, for a Need of higher priority.
    Preempt,
    /// Configured to Idle, because no Need claims it.
    Reclaim,
    /// Idle to Speculative, because it only costs money.
    Delete,
    /// Draining back to Configured, because a Need of its cluster wants it again (RF-20).
    Restore,
}

impl ActionKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Bootstrap,
        Self::Provision,
        Self::Preempt,
        Self::Reclaim,
        Self::Delete,
        Self::Restore,
    ];

    /// The word used in files, metrics and speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bootstrap => "Bootstrap",
            Self::Provision => "Provision",
            Self::Preempt => "Preempt",
            Self::Reclaim => "Reclaim",
            Self::Delete => "Delete",
            Self::Restore => "Restore",
        }
    }

    /// The state a machine must be in to be committed.
    pub fn source(self) -> State {
        match self {
            Self::Provision => State::Speculative,
            Self::Bootstrap | Self::Delete => State::Idle,
            Self::Preempt | Self::Reclaim => State::Configured,
            Self::Restore => State::Draining,
        }
    }

    /// The state a machine arrives in: for Provision halfway, where a Bootstrap takes it on.
    pub fn target(self) -> State {
        match self {
            Self::Provision | Self::Preempt | Self::Reclaim => State::Idle,
            Self::Bootstrap | Self::Restore => State::Configured,
            Self::Delete => State::Speculative,
        }
    }

    /// The state a machine is in from its commit until it arrives. A Restore only takes back, so its
    /// machine has arrived when it is committed.
    pub fn transitional(self) -> State {
        match self {
            Self::Bootstrap => State::Configuring,
            Self::Provision => State::Creating,
            Self::Preempt | Self::Reclaim => State::Draining,
            Self::Delete => State::Deleting,
            Self::Restore => State::Configured,
        }
    }
}

/// Why an action was decided; survives to the audit log (AC-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// An Idle machine was taken.
    Idle,
    /// A Speculative machine was taken.
    Speculative,
    /// An Idle machine continues on its way to the Need it was promised to.
    Promised,
    /// A drain that can still be taken back was.
    Restored,
    /// A machine of lower priority makes way.
    Inversion,
    /// No Need claims the machine.
    Excess,
    /// The machine is to leave, and another serves in its place or nothing is waited for (RF-21).
    Leaving,
    /// The machine was idle for its whole hold.
    Release,
}

impl Reason {
    /// The text in files and in the audit log.
    pub fn text(self) -> &'static str {
        match self {
            Self::Idle => "phase1.idle",
            Self::Speculative => "phase1.speculative",
            Self::Promised => "phase1.promised",
            Self::Restored => "phase1.restored",
            Self::Inversion => "phase2.inversion",
            Self::Excess => "phase3.excess",
            Self::Leaving => "phase3.leaving",
            Self::Release => "phase3.release",
        }
    }
}

/// One thing to do. At most one per machine and cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What is done with the machine.
    pub kind: ActionKind,
    /// The machine it is done with.
    pub machine: MachineId,
    /// The cluster it goes to (Bootstrap, Provision), comes from (Preempt, Reclaim) or stays in (Restore).
    pub cluster: Option<ClusterId>,
    /// The Need it is for, and the terms it is committed on.
    pub purpose: Option<(NeedKey, Terms)>,
    /// How long a drain may take.
    pub grace_seconds: u32,
    /// The priority a preempted machine gives way to.
    pub preemptor_priority: i32,
    /// Why it was decided, for the audit log.
    pub reason: Reason,
}

/// A machine counted for a Need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The machine that is counted.
    pub machine: MachineId,
    /// The Need it counts for.
    pub need: NeedKey,
}

/// A machine whose commitment changes without an action (RF-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restamp {
    /// The machine whose commitment changes.
    pub machine: MachineId,
    /// The Need it is committed to from now on.
    pub need: NeedKey,
    /// On what terms.
    pub terms: Terms,
}

/// Why a Need is short (VD-2, RF-15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnmetReason {
    /// It is not.
    #[default]
    Unspecified,
    /// Machines exist, but serve Needs this one does not outrank.
    PriorityStarved,
    /// No machine fits.
    NoMatchingSupply,
    /// No domain holds the gang.
    TopologyUnsatisfiable,
    /// Victims were found, but not enough.
    PreemptionExhausted,
    /// Free machines are left that the spread does not allow.
    SpreadUnsatisfiable,
}

impl UnmetReason {
    /// The text in files and on the wire.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::PriorityStarved => "PRIORITY_STARVED",
            Self::NoMatchingSupply => "NO_MATCHING_SUPPLY",
            Self::TopologyUnsatisfiable => "TOPOLOGY_UNSATISFIABLE",
            Self::PreemptionExhausted => "PREEMPTION_EXHAUSTED",
            Self::SpreadUnsatisfiable => "SPREAD_UNSATISFIABLE",
        }
    }
}

/// How many machines a Need could use, whoever has them; each count at most [`Self::CAP`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchingSupply {
    /// Idle ones.
    pub idle: u32,
    /// Speculative ones.
    pub speculative: u32,
    /// Configured ones.
    pub configured: u32,
    /// Whether some count is really higher.
    pub capped: bool,
}

impl MatchingSupply {
    /// Beyond this nobody needs to know.
    pub const CAP: u32 = 1000;

    /// Caps the counts.
    pub fn capped(idle: u32, speculative: u32, configured: u32) -> Self {
        let cap = |count: u32| count.min(Self::CAP);
        let capped = Self::CAP < idle.max(speculative).max(configured);
        Self {
            idle: cap(idle),
            speculative: cap(speculative),
            configured: cap(configured),
            capped,
        }
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.idle == 0 && self.speculative == 0 && self.configured == 0
    }
}

/// A domain a gang was weighed against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCoverage {
    /// The value of the Same key.
    pub domain: String,
    /// How much of the worst-covered dimension the domain's total covers, in thousandths.
    pub coverage_per_mille: u32,
    /// Whether the total covers the gang.
    pub satisfiable: bool,
}

impl DomainCoverage {
    /// How many domains a verdict names.
    pub const MOST: usize = 5;
}

/// What a cycle decided about one Need (VD-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The Need as the engine evaluated it, folded where it folded.
    pub need: Arc<Need>,
    /// Whether Phase 1 covered it.
    pub satisfied: bool,
    /// What Phase 1 left uncovered.
    pub residual: Amounts,
    /// Machines counted for it.
    pub claimed: u32,
    /// Of those, Idle ones newly taken.
    pub bootstrap: u32,
    /// Of those, Speculative ones newly taken.
    pub provision: u32,
    /// The domain of a gang; empty for a plain Need or where there is none.
    pub same_domain: String,
    /// Whether some domain can hold the gang.
    pub same_satisfiable: bool,
    /// Whether acquisition was parked.
    pub parked: bool,
    /// Machines preempted for it this cycle.
    pub victims_found: u32,
    /// What those free.
    pub capacity_freed: Amounts,
    /// Why it is short.
    pub unmet_reason: UnmetReason,
    /// What it could use; all zero when it is satisfied.
    pub matching_supply: MatchingSupply,
    /// The domains weighed for a gang that was short after its own, best covered first.
    pub same_candidates: Vec<DomainCoverage>,
}

/// Everything one cycle decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do, in emission order (RF-14).
    pub actions: Vec<Action>,
    /// What counts for whom, by machine.
    pub claims: Vec<Claim>,
    /// Machines whose intent ended, by id (RF-13).
    pub ended_intents: Vec<MachineId>,
    /// Machines that would be reclaimed but for make-before-break, by id (RF-11).
    pub held: Vec<MachineId>,
    /// Commitments that change without an action, by machine (RF-7).
    pub restamps: Vec<Restamp>,
    /// One verdict per Need, in the total order (O-1).
    pub needs: Vec<Verdict>,
}

impl Decision {
    /// A number that is equal for equal decisions, on every machine.
    pub fn digest(&self) -> Digest {
        let mut digest = Digest::default();
        digest.list(&self.actions);
        digest.list(&self.claims);
        digest.list(&self.ended_intents);
        digest.list(&self.held);
        digest.list(&self.restamps);
        digest.list(&self.needs);
        digest
    }
}

/// Part of a decision, as a digest takes it in.
pub trait Digestible {
    /// Adds itself.
    fn add_to(&self, digest: &mut Digest);
}

impl<T: Digestible> Digestible for &T {
    fn add_to(&self, digest: &mut Digest) {
        T::add_to(self, digest);
    }
}

impl Digestible for MachineId {
    fn add_to(&self, digest: &mut Digest) {
        digest.text(self.as_str());
    }
}

impl Digestible for Claim {
    fn add_to(&self, digest: &mut Digest) {
        digest.text(self.machine.as_str()).key(&self.need);
    }
}

impl Digestible for Restamp {
    fn add_to(&self, digest: &mut Digest) {
        digest.text(self.machine.as_str()).key(&self.need);
    }
}

impl Digestible for NeedKey {
    fn add_to(&self, digest: &mut Digest) {
        digest.key(self);
    }
}

impl Digestible for Action {
    fn add_to(&self, digest: &mut Digest) {
        digest
            .text(self.kind.word())
            .text(self.machine.as_str())
            .text(self.cluster.as_ref().map_or("", ClusterId::as_str))
            .list(self.purpose.iter().map(|(need, _)| need));
        digest
            .number(self.grace_seconds.into())
            .number(self.preemptor_priority.into())
            .text(self.reason.text());
    }
}

impl Digestible for Verdict {
    fn add_to(&self, digest: &mut Digest) {
        digest.key(&self.need.key());
        digest.number(self.satisfied.into()).amounts(&self.residual);
        for count in [self.claimed, self.bootstrap, self.provision] {
            digest.number(count.into());
        }
        digest
            .text(&self.same_domain)
            .number(self.same_satisfiable.into());
        digest
            .number(self.parked.into())
            .number(self.victims_found.into());
        digest
            .amounts(&self.capacity_freed)
            .text(self.unmet_reason.text());
        let MatchingSupply {
            idle,
            speculative,
            configured,
            capped,
        } = self.matching_supply;
        for count in [idle, speculative, configured, capped.into()] {
            digest.number(count.into());
        }
    }
}

/// A 128-bit FNV-1a hash over length-prefixed fields; prints as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest(u128);

impl Default for Digest {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte))
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    fn number(&mut self, number: i128) -> &mut Self {
        self.bytes(&number.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as i128).bytes(text.as_bytes());
        self
    }

    fn key(&mut self, key: &NeedKey) {
        self.text(key.cluster.as_str())
            .text(key.fingerprint.as_str())
            .text(key.group.as_str());
    }

    fn amounts(&mut self, amounts: &Amounts) -> &mut Self {
        self.number(amounts.iter().len() as i128);
        for (name, milli) in amounts.iter() {
            self.text(name.as_str()).number(milli);
        }
        self
    }

    /// Adds a list, one item after another, so that nobody needs to hold it whole.
    pub fn list<T: Digestible>(&mut self, items: impl IntoIterator<Item = T>) {
        let mut count = 0;
        for item in items {
            item.add_to(self);
            count += 1;
        }
        self.number(count);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_moves_with_every_list() {
        let id = MachineId::new("m1").unwrap();
        let empty = Decision::default();
        let held = Decision {
            held: vec![id.clone()],
            ..Decision::default()
        };
        let ended = Decision {
            ended_intents: vec![id],
            ..Decision::default()
        };
        assert_eq!(empty.digest(), Decision::default().digest());
        assert_ne!(empty.digest(), held.digest());
        assert_ne!(held.digest(), ended.digest());
        assert_eq!(empty.digest().to_string().len(), 32);
    }

    #[test]
    fn supply_counts_are_capped_and_say_so() {
        assert!(!MatchingSupply::capped(1000, 0, 0).capped);
        assert_eq!(MatchingSupply::capped(1001, 2, 3).idle, 1000);
        assert!(MatchingSupply::capped(1001, 2, 3).capped);
    }
}
