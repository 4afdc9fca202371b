//! Progress: no operation stands still.
//!
//! ```text
//! Disk ─▶ Queued ─▶ Blob, Drain ─▶ Call ─▶ Provider ─▶ ended        each within its bound,
//!            └──────────── Backoff, Confirm ◀──┘                     or for a reason seen from here
//! ```
//!
//! [`Rule::ServedInTime`] demands that a short Need is given machines. This demands that they reach it: each
//! stage takes as long as was drawn, and nothing stands still between two stages.

use super::Rule;
use crate::{
    clock::{Moment, seconds},
    world::World,
};
use bigfleet_provider_kit::Transition;
use bigfleet_shard_core::{OperationId, Stage, WorkView};
use std::collections::{BTreeMap, BTreeSet};

/// What each operation was last seen waiting for, in which attempt, and since when.
#[derive(Default)]
pub(crate) struct Progress(BTreeMap<OperationId, (Stage, u32, Moment)>);

impl Progress {
    /// For how long an operation has been seen waiting for what it waits for now.
    fn waited(&mut self, work: &WorkView, now: Moment) -> u64 {
        let seen = (work.stage, work.attempts);
        let known = self.0.entry(work.id).or_insert((seen.0, seen.1, now));
        if (known.0, known.1) != seen {
            *known = (seen.0, seen.1, now);
        }
        now.since(known.2)
    }

    /// There is a reason to wait, so the time it may wait starts again.
    fn excuse(&mut self, work: &WorkView, now: Moment) {
        self.0.insert(work.id, (work.stage, work.attempts, now));
    }
}

impl World {
    /// Finds operations that nobody works on.
    pub(super) fn check_progress(&mut self) {
        let Some(process) = self.process() else {
            return;
        };
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = process.core.work_page(after.as_ref());
            all.extend(page.entries);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.look_at_work(&all);
    }

    /// Everything under way, as the shard has it.
    pub(super) fn look_at_work(&mut self, all: &[WorkView]) {
        let mut progress = std::mem::take(&mut self.watch.progress);
        let there: BTreeSet<OperationId> = all.iter().map(|work| work.id).collect();
        progress.0.retain(|id, _| there.contains(id));
        for work in all {
            if self.is_excused(work) {
                progress.excuse(work, self.now);
            } else if self.bound(work.stage) < progress.waited(work, self.now) {
                let waited = progress.waited(work, self.now) / 1000;
                let (id, machine, action) = (work.id, &work.machine, work.action.word());
                let stage = work.stage;
                let text = format!("{id}, {action} of {machine}, is at {stage:?} for {waited} s");
                self.watch.broke(Rule::MovesOn, self.now, text);
                break;
            }
        }
        self.watch.progress = progress;
    }

    /// How long an operation may wait for this, with nothing to be seen that it could wait for.
    fn bound(&self, stage: Stage) -> u64 {
        let stages = &self.plan.stages;
        // A probe every ten seconds; what arrives during a cycle waits for its end.
        let noticed = seconds(10) + 2 * stages.cycle.most();
        noticed
            + match stage {
                Stage::Disk => 2 * stages.disk.most(),
                Stage::Queued => 0,
                Stage::Blob(_) | Stage::Call => seconds(30) + 2 * stages.network.most(),
                Stage::Drain => seconds(600),
                Stage::Backoff => seconds(60),
                Stage::Provider | Stage::Confirm => self.patience(),
                Stage::Paused => u64::MAX / 2,
            }
    }

    /// Whether something can be seen that an operation waits for.
    fn is_excused(&self, work: &WorkView) -> bool {
        let Some(process) = self.process() else {
            return true;
        };
        let stopped = self.now < self.cloud.away_until || self.now < self.watch.held_until;
        let there = self.cloud.machine(&work.machine).map(|one| one.state);
        let works = there.and_then(Transition::under_way).is_some();
        let cluster = work.cluster.as_ref();
        let cluster = cluster.and_then(|id| self.cluster_named(id.as_str()));
        let deaf = cluster.is_some_and(|one| self.clusters[one].session.is_none());
        let full = self.plan.shard.workers <= process.calls.len();
        stopped
            || match work.stage {
                Stage::Provider => works,
                Stage::Queued => deaf || full,
                Stage::Blob(_) | Stage::Drain => deaf,
                Stage::Disk | Stage::Call | Stage::Backoff | Stage::Confirm => false,
                Stage::Paused => true,
            }
    }
}
