//! Disruption: what operators tell of it decides which of equals leaves, and nothing else (RF-2, RF-18).
//!
//! ```text
//! event ─┬─▶ the shard ──────────────────────────────┬─ as many actions of every kind
//!        └─▶ the same, but nobody told it anything ──┘
//! reclaim ─▶ nothing stays that is equal and would have disturbed less
//! ```

use super::{Decided, Rule, cover};
use crate::{plan::Telling, world::World};
use bigfleet_model::{ActionKind, Disruption, Machine, MachineId, Reason, State};
use bigfleet_shard_core::{Event, ShardCore};

impl World {
    /// The shard's process as it would be if nobody had told it of disruption, where some operator does.
    pub(crate) fn not_told(&self, epoch: u64) -> Option<ShardCore> {
        let mut clusters = self.plan.clusters.iter();
        let is_told = clusters.any(|one| one.tells != Telling::Nothing);
        let process = self.processes.get(&epoch).filter(|_| is_told)?;
        let mut core = process.core.clone();
        core.forget_disruption();
        Some(core)
    }

    /// Disruption alone never causes an action, and never keeps one from being done.
    pub(crate) fn check_disruption(&mut self, epoch: u64, mut not_told: ShardCore, event: Event) {
        not_told.handle(self.now.time(), event, &mut Vec::new());
        let Some(process) = self.processes.get(&epoch) else {
            return;
        };
        let (told, not_told) = (
            &process.core.counters().actions,
            &not_told.counters().actions,
        );
        if told != not_told {
            let text = format!("{told:?} are done by now, and {not_told:?} if nobody had told");
            self.watch.broke(Rule::Disruption, self.now, text);
        }
    }

    /// Of machines that are equal to a plain Need the one leaves that disturbs least. Not judged where a Need is
    /// short, which may have a use for it.
    pub(super) fn check_emptiest(&mut self, decided: &[Decided]) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let reclaims = decided.iter().filter(|one| one.kind == ActionKind::Reclaim);
        let reclaims = reclaims.filter(|one| one.reason != Reason::Leaving && !one.not_ready);
        let wrong = reclaims.into_iter().find_map(|one| {
            let cluster = self.cluster_named(one.cluster.as_ref()?.as_str())?;
            let id = &self.clusters[cluster].id;
            if self.plan.clusters[cluster].tells == Telling::Nothing
                || core.shortfalls().any(|short| short.need.cluster == *id)
            {
                return None;
            }
            let leaves = core.machine(&one.machine)?;
            let rows = self.watch.demand.of(cluster)?;
            let stays = core.machines().find(|other| {
                let mut rows = rows.iter().filter(|row| cover::is_plain(row));
                is_equal(other, leaves)
                    && core.leaving(other.id()).is_none()
                    && !core.is_not_ready(other.id())
                    && disturbs(core, other.id()) < disturbs(core, leaves.id())
                    && rows.any(|row| {
                        cover::is_attributed(other, &cover::key(id, row))
                            && cover::can_use(row, leaves.shape())
                    })
            })?;
            let (leaves, stays) = (leaves.id(), stays.id());
            let (more, less) = (disturbs(core, leaves), disturbs(core, stays));
            let (more, less) = (more.level(), less.level());
            Some(format!(
                "{leaves}, which disturbs {more}, is reclaimed from {id}, and {stays}, which disturbs {less}, \
                 stays"
            ))
        });
        if let Some(text) = wrong {
            self.watch.broke(Rule::EmptiestFirst, self.now, text);
        }
    }
}

/// Whether one that serves could as well have left as another that does.
fn is_equal(serves: &Machine, leaves: &Machine) -> bool {
    serves.state() == State::Configured
        && serves.cluster() == leaves.cluster()
        && serves.shape().effective() == leaves.shape().effective()
        && serves.keep_price() == leaves.keep_price()
        && serves.terms().reclamation <= leaves.terms().reclamation
}

fn disturbs(core: &ShardCore, machine: &MachineId) -> Disruption {
    core.disruption(machine).unwrap_or(Disruption::UNKNOWN)
}
