//! What readers are shown, as plain values.

use crate::{
    demand::Withheld,
    effect::{OperationId, RequestId},
    event::{Code, Features, SessionId},
    leaving::LeavingView,
    rails::{JoinStep, KeptBreaker, Pause, Pool},
};
use bigfleet_model::{ActionKind, ClusterId, Machine, MachineId, NeedKey, Reason, State, Time};
use std::collections::BTreeMap;

/// Entries a page looks at, at most.
pub const PAGE: usize = 1000;

/// A page, and where the next one begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T, K> {
    /// What it shows.
    pub entries: Vec<T>,
    /// What to ask the next page after; `None` if there is none.
    pub next: Option<K>,
}

/// One machine as the shard holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineView {
    /// The record with its commitments.
    pub machine: Machine,
    /// Since when it is seen in its state.
    pub state_since: Option<Time>,
    /// When its provider last showed it; `None` if it has not since the start.
    pub seen_at: Option<Time>,
    /// Its node in the cluster; empty if not known.
    pub node_name: String,
    /// Its node did not become ready.
    pub not_ready: bool,
    /// It would be reclaimed, but is kept until what replaces it serves (RF-11).
    pub held: bool,
    /// Why it is no candidate for new work.
    pub unavailable: Option<Unavailable>,
    /// Why the provider's newest record was refused; the last good one is shown.
    pub refused: Option<String>,
    /// Its provider cannot delete it.
    pub undeletable: bool,
    /// What is being done to it.
    pub work: Option<ActionKind>,
    /// How it leaves, if it is to leave (SH-20).
    pub leaving: Option<LeavingView>,
}

/// Why a machine cannot be acquired (RF-17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// What the provider shows of it is not confirmed.
    Unconfirmed,
    /// Its pool is left alone for a while.
    PoolBackoff,
}

/// Which machines to show. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFilter {
    /// Bound to or meant for this cluster.
    pub cluster: Option<ClusterId>,
    /// In one of these states; empty for any.
    pub states: Vec<State>,
    /// Of this type.
    pub instance_type: Option<String>,
    /// In this zone.
    pub zone: Option<String>,
    /// Only those with something remarkable: not ready, held, unavailable, refused, undeletable.
    pub flagged: bool,
}

/// One cluster as the shard holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterView {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its operator's session: which, since when, what it can do.
    pub session: Option<(SessionId, Time, Features)>,
    /// Since when it has none.
    pub gone_since: Option<Time>,
    /// This process has accepted a roll-up from it.
    pub ready: bool,
    /// When the roll-up in force was accepted, and its id.
    pub accepted: Option<(Time, String)>,
    /// Roll-ups held in a row by rail 2.
    pub held: u32,
    /// When a roll-up was last refused, and why.
    pub refused: Option<(Time, String)>,
    /// Why nothing is acquired for it.
    pub withheld: Option<Withheld>,
    /// Its rows.
    pub rows: usize,
    /// Needs of it that are short.
    pub short: usize,
    /// Needs of it that are not served in full.
    pub lacking: usize,
    /// Machines bound to it or meant for it, by state.
    pub machines: BTreeMap<State, u32>,
    /// Of those, with a node that is not ready.
    pub not_ready: u32,
}

/// One operation in flight.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkView {
    /// Its id, which is also its instruction's.
    pub id: OperationId,
    /// The machine.
    pub machine: MachineId,
    /// What was decided.
    pub action: ActionKind,
    /// The engine's reason.
    pub reason: Reason,
    /// What it waits for.
    pub stage: Stage,
    /// Since when it waits for that.
    pub since: Time,
    /// The cluster the machine joins or leaves.
    pub cluster: Option<ClusterId>,
    /// The Need it is for.
    pub need: Option<NeedKey>,
    /// When it was committed, or taken up by this process.
    pub committed: Time,
    /// When a drain's grace ends.
    pub deadline: Option<Time>,
    /// Calls made so far.
    pub attempts: u32,
    /// What the last call was refused with.
    pub refused: Option<(Code, String)>,
    /// What the provider calls it; empty before it has taken it on.
    pub name: String,
    /// The cycle that decided it.
    pub decided_cycle: u64,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its commit is not on disk yet.
    Disk,
    /// A free call slot, or its operator.
    Queued,
    /// The operator's blob.
    Blob(RequestId),
    /// The operator's word that the node is drained.
    Drain,
    /// The answer to a call.
    Call,
    /// The provider's completion, seen by reading.
    Provider,
    /// The next attempt.
    Backoff,
    /// A confirming read.
    Confirm,
    /// The end of a pause.
    Paused,
}

/// Everything that limits or stops the shard.
#[derive(Clone, Debug, PartialEq)]
pub struct RailsView {
    /// Rail 1: its setting, in millionths; zero is off.
    pub reclaim_cap_per_million: u32,
    /// Reclaims it held back in the last cycle.
    pub reclaims_capped: u64,
    /// The clusters it held them back of.
    pub capped: Vec<CappedView>,
    /// Rail 2 is on.
    pub roll_up_guard: bool,
    /// Clusters whose roll-ups are held by rail 2.
    pub held: Vec<HeldView>,
    /// Machines the last full List lacked and that are kept all the same (SH-10).
    pub removals_held: usize,
    /// The pauses in force, oldest first.
    pub pauses: Vec<Pause>,
    /// Pools that are not asked for machines.
    pub breakers: Vec<BreakerView>,
    /// Clusters that get no machines for a while, step by step.
    pub bootstraps: Vec<BackoffView>,
    /// Decisions are shown and nothing leaves.
    pub dry_run: bool,
    /// Another process runs this shard; this one has stopped itself.
    pub fenced: bool,
    /// The provider's records show an epoch of the shard that is not below its own (SH-33), and it does not
    /// act: that epoch, and its own.
    pub twin: Option<(u64, u64)>,
    /// Something happened that cannot, and the shard has stopped itself: what, the first time.
    pub incident: Option<String>,
    /// Since when the provider cannot be reached: no List comes to its end.
    pub provider_lost: Option<Time>,
}

/// Something that concerns the whole shard, and so comes before anything else that is said of it (SV-5).
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// Another process runs this shard.
    Fenced,
    /// The provider knows this epoch of the shard, which is not below its own: that, and its own.
    Twin(u64, u64),
    /// Something happened that cannot.
    Incident(String),
    /// Everything is paused.
    Paused(Pause),
    /// Nothing leaves, by configuration.
    DryRun,
    /// The provider cannot be reached since.
    ProviderLost(Time),
}

impl Trouble {
    /// What is shouted.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Fenced => "FENCED",
            Self::Twin(..) | Self::Incident(_) => "STOPPED",
            Self::Paused(_) => "PAUSED",
            Self::DryRun => "DRY RUN",
            Self::ProviderLost(_) => "PROVIDER LOST",
        }
    }
}

/// A cluster of which rail 1 held back reclaims in the last cycle (SR-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CappedView {
    /// The cluster that has machines to spare.
    pub cluster: ClusterId,
    /// How many of them wait.
    pub machines: u64,
    /// Since when, cycle for cycle, some do.
    pub since: Time,
}

/// A cluster whose roll-ups are held by rail 2 (SR-3).
#[derive(Clone, Debug, PartialEq)]
pub struct HeldView {
    /// The cluster that sent them.
    pub cluster: ClusterId,
    /// How many in a row are held.
    pub reports: u32,
    /// When the first of them came.
    pub since: Time,
    /// What is wrong with the last of them.
    pub why: String,
}

/// A pool that is asked for one machine at a time, or for none (SH-22).
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerView {
    /// The pool, by type and zone.
    pub pool: Pool,
    /// How often a Create of it ended badly in a row, since when, and how last.
    pub breaker: KeptBreaker,
}

/// A cluster for which one machine at a time is tried, or none, because of a step on the way to a node
/// (SH-22).
#[derive(Clone, Debug, PartialEq)]
pub struct BackoffView {
    /// The cluster whose machines ended badly.
    pub cluster: ClusterId,
    /// The step they did not get past.
    pub step: JoinStep,
    /// How often in a row, since when, and how last.
    pub breaker: KeptBreaker,
    /// Machines it used up since its last success.
    pub spent: usize,
    /// It has used up as many as it may: nothing is tried until one of them is supply again.
    pub exhausted: bool,
}
