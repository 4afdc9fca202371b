//! The invariant of [`Work`], spelled out: for tests and for debug builds.

use super::{Operation, Work, WorkStage};

impl Work {
    /// Says what is wrong, if an operation is not listed exactly once, where its stage says.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (mut listed, mut at_provider, mut blobs) = (0, 0, 0);
        for (machine, operation) in &self.operations {
            let stage = operation.stage;
            if !self.lists.has(operation) {
                return Err(format!("{machine} is not listed as {stage:?}"));
            }
            if self.machines.get(&operation.id) != Some(machine) {
                return Err(format!("{machine} is not found by its operation"));
            }
            if let WorkStage::Call(sequence) = stage
                && !self.on_wire.contains_key(&sequence)
            {
                return Err(format!("{machine} waits for a call that has ended"));
            }
            if stage == WorkStage::Ready && self.durable < operation.barrier {
                return Err(format!("{machine} may leave before its commit is on disk"));
            }
            listed += usize::from(is_listed(operation));
            at_provider += usize::from(stage == WorkStage::Provider);
            let blob = operation
                .blob
                .as_ref()
                .filter(|_| operation.cluster.is_some());
            blobs += blob.map_or(0, |blob| blob.user_data.len());
        }
        if self.lists.at_provider() != at_provider {
            return Err("those the provider is at are counted wrong".to_owned());
        }
        if self.blob_room.in_all() != blobs {
            return Err("bytes of blobs are counted wrong".to_owned());
        }
        if self.machines.len() != self.operations.len() || self.lists.len() != listed {
            return Err("something is listed that has ended".to_owned());
        }
        Ok(())
    }
}

/// Whether operations in this stage are listed.
fn is_listed(operation: &Operation) -> bool {
    match operation.stage {
        WorkStage::Disk | WorkStage::Ready | WorkStage::Blob(_) => true,
        WorkStage::DrainReport
        | WorkStage::Call(_)
        | WorkStage::Provider
        | WorkStage::Backoff
        | WorkStage::Confirm => false,
    }
}
