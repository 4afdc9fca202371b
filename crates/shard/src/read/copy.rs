//! Copies: the fleet as a value, taken in steps, for what is too much work for the core's thread.

use std::sync::Arc;

use bigfleet_model::Fleet;
use bigfleet_shard_core::{Export, PAGE};
use bigfleet_wire::v1alpha1::InspectHeader;
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

use super::Place;
use crate::hub::Hub;

/// Copies at once, of each kind. A large fleet is hundreds of megabytes, and a file of it more.
const AT_ONCE: usize = 2;

/// Who may hold a copy. Those who explain do not wait for those who export.
#[derive(Debug)]
pub(super) struct Copies {
    to_explain: Semaphore,
    to_export: Semaphore,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            to_explain: Semaphore::new(AT_ONCE),
            to_export: Semaphore::new(AT_ONCE),
        }
    }
}

impl Copies {
    /// Waits until a copy to explain may be made; hold what it answers until the copy is gone.
    pub(super) async fn to_explain(&self) -> Result<SemaphorePermit<'_>, Status> {
        turn(&self.to_explain).await
    }

    /// The same for a copy to write a file of.
    pub(super) async fn to_export(&self) -> Result<SemaphorePermit<'_>, Status> {
        turn(&self.to_export).await
    }
}

async fn turn(of: &Semaphore) -> Result<SemaphorePermit<'_>, Status> {
    let turn = of.acquire().await;
    turn.map_err(|_| Status::unavailable("the shard is stopping"))
}

/// The fleet of one moment, and what it is taken from.
pub(super) async fn copy(hub: &Hub, place: &Arc<Place>) -> Result<(Fleet, InspectHeader), Status> {
    let mut export = Export::new();
    loop {
        let place = Arc::clone(place);
        let stepped = hub.ask(move |core| {
            let fleet = core.export_step(&mut export, PAGE);
            let copied = fleet.map(|fleet| {
                let header = place.header(core, fleet.machines.len());
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

/// Runs work that takes long beside everything else.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|why| Status::internal(format!("the work was given up: {why}")))
}
