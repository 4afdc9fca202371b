//! Copies: the fleet as a value, taken in steps, for what is too much work for the core's thread.

use std::sync::Arc;

use bigfleet_model::Fleet;
use bigfleet_shard_core::{Export, PAGE};
use bigfleet_wire::v1alpha1::InspectHeader;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::ShardInfo;
use crate::hub::Hub;

/// Exports at once. A large fleet is hundreds of megabytes, and a file of it more.
const EXPORTS_AT_ONCE: usize = 2;

/// Who may hold a copy to write a file of.
#[derive(Clone, Debug)]
pub(super) struct Exports(Arc<Semaphore>);

impl Default for Exports {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(EXPORTS_AT_ONCE)))
    }
}

impl Exports {
    /// Waits for its turn; hold what it answers until the copy and the file are gone.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, Status> {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        turn.map_err(|_| Status::unavailable("the shard is stopping"))
    }
}

/// The fleet of one moment, and what it is taken from.
pub(crate) async fn copy(
    hub: &Hub,
    info: &Arc<ShardInfo>,
) -> Result<(Fleet, InspectHeader), Status> {
    let mut export = Export::new();
    loop {
        let info = Arc::clone(info);
        let stepped = hub.ask(move |core| {
            let fleet = core.export_step(&mut export, PAGE);
            let copied = fleet.map(|fleet| {
                let header = info.header(core, fleet.machines.len());
                (fleet, header)
            });
            (export, copied)
        });
        let (next, copied) = stepped.await?;
        export = next;
        if let Some(copied) = copied {
            return Ok(copied);
        }
    }
}
