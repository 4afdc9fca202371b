//! Taken back: a drain that ends with its machine serving on (SH-18).
//!
//! ```text
//! Reclaim decided ─▶ may be taken back ─▶ its Drain leaves ─▶ may not
//! ```
//!
//! A process that dies before it is on disk has not taken it back, and the next one may. Never for another cluster, never a machine that was preempted, and none that had no node when it was let go.

use super::{Decided, Rule};
use crate::{log::Committed, world::World};
use bigfleet_model::{ActionKind, ClusterId};
use bigfleet_shard_core::{AuditRecord, OperationId, Outcome};
use std::collections::BTreeMap;

/// The drains that may be taken back, and whose machines they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenBack(BTreeMap<OperationId, ClusterId>);

impl TakenBack {
    /// A decision was written for the first time.
    pub(super) fn decided(&mut self, one: &Decided) {
        if let (ActionKind::Reclaim, false, Some(cluster)) = (one.kind, one.not_ready, &one.cluster)
        {
            self.0.insert(one.operation, cluster.clone());
        }
    }

    /// A call of an operation leaves.
    pub(super) fn called(&mut self, id: OperationId) {
        self.0.remove(&id);
    }
}

/// Whether a record says that a drain was taken back.
pub(super) fn is_restore(record: &AuditRecord) -> bool {
    (record.kind, record.outcome) == (Some(ActionKind::Restore), Outcome::Success)
}

impl World {
    /// A drain is taken back.
    pub(super) fn look_at_restore(&mut self, epoch: u64, record: &AuditRecord) {
        let drain = record.operation.and_then(|id| {
            let whose = self.watch.taken_back.0.get(&id)?;
            Some((id, whose.clone()))
        });
        let wanted = record.need.as_ref().map(|need| &need.cluster);
        let is_right =
            |whose: &ClusterId| wanted == Some(whose) && record.cluster.as_ref() == Some(whose);
        if epoch == self.current && !drain.as_ref().is_some_and(|(_, whose)| is_right(whose)) {
            let whose = drain.as_ref().map(|(_, whose)| whose.as_str());
            let text = format!(
                "{} is taken back for {}, and its drain is {}",
                record.machine,
                wanted.map_or("nobody", ClusterId::as_str),
                whose.unwrap_or("not one that may be")
            );
            self.watch.broke(Rule::TakenBack, self.now, text);
        }
        self.watch.acted_at = self.now;
        let committed = Committed {
            at: self.now,
            kind: ActionKind::Restore,
            machine: record.machine.clone(),
            cluster: record.cluster.clone(),
            priorities: None,
        };
        if let Some((id, _)) = drain {
            self.watch.reclaims.taken_back(id);
            self.trace.committed(self.now, id, &committed);
        }
        self.log.actions.push(committed);
    }
}
