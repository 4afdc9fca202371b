//! The backend: what the kit asks for, as calls to the substrate. The kit does the rest of the contract.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{Backend, Created, Failure, Host, Instance, Job, Offer, Readiness};

use crate::substrate::Substrate;

#[derive(Debug)]
pub(crate) struct SubstrateBackend {
    pub(crate) provider: String,
    pub(crate) offerings: Vec<(String, Arc<Offer>)>,
    pub(crate) substrate: Substrate,
}

impl SubstrateBackend {
    fn host(&self, reference: String) -> Host {
        Host {
            provider: self.provider.clone(),
            reference,
        }
    }
}

/// What the substrate calls the host of this machine.
fn host(job: &Job) -> &str {
    let host = job.machine.host.as_ref();
    host.map_or(job.machine.id.as_str(), |host| &host.reference)
}

/// Says whether trying again can help. `Failure::passing` is tried again inside the transition, `Failure::no_stock`
/// gives the slot back after a minute, `Failure::permanent` is final.
fn failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ResourceBusy | io::ErrorKind::Interrupted => {
            Failure::passing(error.to_string())
        }
        io::ErrorKind::StorageFull => Failure::no_stock(error.to_string()),
        _ => Failure::retryable(error.to_string()),
    }
}

impl Backend for SubstrateBackend {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        let hosts = self.substrate.hosts().await.map_err(failed)?;
        let instance = |(id, offer): &(String, Arc<Offer>)| Instance {
            id: id.clone(),
            host: hosts.get(id).map(|host| self.host(host.clone())),
            hint: None,
            offer: Arc::clone(offer),
            // A cloud that announces interruptions says here when a host will be gone.
            leaving: None,
        };
        Ok(self.offerings.iter().map(instance).collect())
    }

    async fn create(&self, job: Job) -> Result<Created, Failure> {
        let host = self.substrate.start(job.machine.id.as_str()).await;
        let host = self.host(host.map_err(failed)?);
        Ok(Created {
            host,
            ..Created::default()
        })
    }

    async fn configure(&self, job: Job, blob: Arc<[u8]>) -> Result<(), Failure> {
        let cluster = &job.machine.cluster;
        self.substrate
            .join(host(&job), cluster, &blob)
            .await
            .map_err(failed)
    }

    async fn drain(&self, job: Job, _grace: Duration) -> Result<(), Failure> {
        self.substrate.leave(host(&job)).await.map_err(failed)
    }

    async fn delete(&self, job: Job) -> Result<(), Failure> {
        self.substrate.stop(host(&job)).await.map_err(failed)
    }

    fn deletes(&self) -> bool {
        true
    }

    // Everything may be asked for twice, so a restart goes on with what was under way.
    fn resumes(&self) -> bool {
        true
    }

    // A folder is ready as soon as it has joined. A real node is not: say `Confirmed`, and wait for it in
    // `confirm_node_ready`.
    fn readiness(&self) -> Readiness {
        Readiness::BackendWaits
    }
}
