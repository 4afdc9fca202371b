//! Records: what a shard must not forget, as data (SH-5).
//!
//! ```text
//! Persist([r1 r2 r3]) ─▶ a file of records, any prefix of it ─▶ rebuild ─▶ first List ─▶ decide
//! ```
//!
//! A record replaces what an earlier one said of the same thing, so any prefix is a valid past: a
//! torn tail loses only decisions whose calls never left. Whoever owns the file owns its format;
//! these are plain values.

use crate::{
    effect::OperationId,
    holdings::{Exception, HeldDomain, HeldScope, TransferRecord},
    leaving::DrainMark,
    rails::{Baseline, BreakerKey, KeptBreaker, KeptPause, Scope},
    uplink::Domain,
};
use bigfleet_model::{ActionKind, Assignment, ClusterId, Intent, MachineId, NeedKey, Reason, Time};

/// One thing to remember.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The epoch of the process that writes from here on.
    Epoch(u64),
    /// A machine's commitments; `None` when it has none.
    Machine {
        /// The machine that is committed, or was.
        machine: MachineId,
        /// What it is committed to.
        kept: Option<Box<Kept>>,
    },
    /// A cluster this shard has served, and what its demand was last believed to be.
    Cluster {
        /// The cluster whose demand was believed.
        cluster: ClusterId,
        /// The baseline of rail 2.
        baseline: Baseline,
        /// Demands that were believed in the last ten minutes and were larger, with the moments they ended.
        replaced: Vec<(Time, Baseline)>,
    },
    /// Whether a machine is in the owned set.
    Owned {
        /// The machine that came into the owned set, or left it.
        machine: MachineId,
        /// Whether it is.
        owned: bool,
    },
    /// Another shard's mark was seen on a machine.
    ForeignSeen,
    /// The highest term heard from above.
    Term(u64),
    /// An instruction that was carried out.
    Instruction(String),
    /// Which unbound machines this shard may act on; never written by one that has no coordinator.
    Scope(HeldScope),
    /// A domain this shard holds; `None` once it does not.
    Domain {
        /// The label and value that say which machines are meant.
        domain: Domain,
        /// How it is held.
        held: Option<HeldDomain>,
    },
    /// A machine that does not follow its domain; `None` once it does.
    Exception {
        /// The machine.
        machine: MachineId,
        /// Which way, and since which transfer.
        exception: Option<Box<Exception>>,
    },
    /// A transfer that is open here; `None` once it is closed.
    Transfer {
        /// The transfer's id.
        id: String,
        /// How far it is.
        transfer: Option<Box<TransferRecord>>,
    },
    /// A shard of which no process will ever run again.
    GoneShard(String),
    /// Another process is on record as this shard: nothing leaves this directory's any more (CO-14).
    Superseded,
    /// When a row of demand arrived; `None` when it is gone.
    Arrival {
        /// The row, by its identity.
        need: NeedKey,
        /// The moment it was first seen; `None` when it is gone.
        at: Option<Time>,
    },
    /// A cluster an admin has released: its machines are reclaimed without a roll-up. `false` once
    /// it has spoken again.
    Released {
        /// The cluster a person has spoken for.
        cluster: ClusterId,
        /// Whether it is.
        released: bool,
    },
    /// A machine an admin has retired.
    Retired {
        /// The machine that is not taken in again while it is Failed.
        machine: MachineId,
        /// Whether it still is: one that was seen in another state is new.
        retired: bool,
    },
    /// A machine an admin has marked to leave (SH-20); `None` once the mark is lifted.
    Drained {
        /// The machine that leaves, or stays.
        machine: MachineId,
        /// Who said so, when, why and until when.
        mark: Option<DrainMark>,
    },
    /// When reclaims from a cluster left, as far as they count for rail 1 (SH-30). Those that have not left
    /// are on record with their operations.
    Reclaims {
        /// The cluster the machines were reclaimed from.
        cluster: ClusterId,
        /// The moments, oldest first, and how many left then; empty once none counts.
        left: Vec<(Time, u32)>,
    },
    /// What an admin has paused; `None` once that is over.
    Paused {
        /// What it covers.
        scope: Scope,
        /// Since when, until when, by whom and why.
        kept: Option<KeptPause>,
    },
    /// A cluster that held nothing for long is forgotten, with all that was said of it.
    ClusterForgotten(ClusterId),
    /// Something that keeps ending badly; `None` once it ended well (SH-22).
    Breaker {
        /// What is tried only once in a while.
        key: BreakerKey,
        /// How often it ended badly, and until when it is not tried.
        kept: Option<KeptBreaker>,
    },
}

/// What a machine is committed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The cluster it is bound to.
    pub cluster: Option<ClusterId>,
    /// The operation it was bound by, if that is known.
    pub bound_by: Option<OperationId>,
    /// Its commitment while bound.
    pub assignment: Assignment,
    /// Its commitment while on its way.
    pub intent: Option<Intent>,
    /// Whether its node did not become ready.
    pub not_ready: bool,
    /// Whether its provider cannot delete it.
    pub undeletable: bool,
    /// Reclaims of it, or Deletes while it is bound to nobody, that were given up in a row, and until when
    /// none is tried (SH-14, SH-23).
    pub given_up: Option<(u32, Time)>,
    /// The cluster it ended badly for, and when, while it is no supply since (SH-22).
    pub spent: Option<(ClusterId, Time)>,
    /// What is being done to it; most machines are left alone.
    pub operation: Option<Box<KeptOperation>>,
}

impl Kept {
    /// The clusters it concerns: the one it is bound to, and the one it is meant for.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        let meant = self.intent.as_ref().map(|intent| &intent.need.cluster);
        self.cluster.iter().chain(meant)
    }

    /// Whether there is anything to remember.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.cluster.is_some()
            || self.intent.is_some()
            || self.operation.is_some()
            || self.undeletable
            || self.spent.is_some()
            || self.given_up.is_some()
    }
}

/// An operation that was committed and has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptOperation {
    /// Its id, and that of its instruction.
    pub id: OperationId,
    /// What was decided.
    pub action: ActionKind,
    /// The engine's reason for the action.
    pub reason: Reason,
    /// The cluster the action names.
    pub cluster: Option<ClusterId>,
    /// The Need it is for.
    pub need: Option<NeedKey>,
    /// The cycle that decided it.
    pub decided_cycle: u64,
    /// The grace it was committed with.
    pub grace_seconds: u32,
    /// Who takes over.
    pub preemptor_priority: i32,
    /// When a drain's grace is over.
    pub deadline: Time,
    /// Since when the gate holds it back; its deadline stands still meanwhile, restarts or not
    /// (SH-16).
    pub held_since: Option<Time>,
    /// Whether its machine's node was not ready when it was committed: nobody wants it back (SH-18).
    pub not_ready: bool,
}
