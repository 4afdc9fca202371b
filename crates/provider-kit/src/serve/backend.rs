//! The backend: what an author writes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use bigfleet_model::CapacityType;

use crate::event::{Created, Quote};
use crate::machine::{Failure, Instance, Machine};

/// Who makes sure that Configured means "the node is Ready".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The kit asks [`Backend::confirm_node_ready`] before a machine becomes Configured.
    Confirmed,
    /// [`Backend::configure`] itself returns only once the node is Ready.
    BackendWaits,
    /// Nobody; the provider warns of it at start.
    NotEnforced,
}

/// One piece of work, with everything it may depend on.
#[derive(Clone, Debug)]
pub struct Job {
    /// The machine, in its transitional state; its `cluster` is set while configuring.
    pub machine: Arc<Machine>,
    /// An idempotency token for the substrate: the same on a retry, new per cycle.
    pub operation: Arc<str>,
    /// Says when the work has been given up.
    pub cancelled: Cancelled,
}

/// Turns true when the work has run out of time.
#[derive(Clone, Debug)]
pub struct Cancelled(Option<watch::Receiver<bool>>);

impl Cancelled {
    pub(super) fn when(said: watch::Receiver<bool>) -> Self {
        Self(Some(said))
    }

    /// For work that is never given up: a backend that is tried outside of a provider.
    pub fn never() -> Self {
        Self(None)
    }

    /// Whether it already has.
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|said| *said.borrow())
    }

    /// Waits until it does.
    pub async fn wait(&mut self) {
        match &mut self.0 {
            // An error means the kit is gone, which gives the work up just as well.
            Some(said) => drop(said.wait_for(|cancelled| *cancelled).await),
            None => std::future::pending().await,
        }
    }
}

/// A substrate: the code that differs between providers, and nothing else.
///
/// Operations look synchronous and run in the background, one per machine at a time. One that runs
/// out of time is told through [`Job::cancelled`], and whatever it returns afterwards is discarded.
/// One that panics fails its machine, not the provider.
pub trait Backend: Send + Sync + 'static {
    /// What there is, and what it costs. Hosts that exist carry their host.
    fn describe(&self) -> impl Future<Output = Result<Vec<Instance>, Failure>> + Send;

    /// Makes a host for a slot.
    fn create(&self, job: Job) -> impl Future<Output = Result<Created, Failure>> + Send;

    /// Makes the host a node of `job.machine.cluster`.
    fn configure(
        &self,
        job: Job,
        blob: Arc<[u8]>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Takes the host out of its cluster, honouring disruption budgets for `grace`.
    fn drain(&self, job: Job, grace: Duration) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Gives the host back. Called only if [`Backend::deletes`].
    fn delete(&self, job: Job) -> impl Future<Output = Result<(), Failure>> + Send {
        drop(job);
        async { Err(Failure::permanent("this backend does not delete")) }
    }

    /// Returns once the node has joined and is Ready. Called only if [`Readiness::Confirmed`].
    fn confirm_node_ready(&self, job: Job) -> impl Future<Output = Result<(), Failure>> + Send {
        drop(job);
        async { Ok(()) }
    }

    /// Makes sure that nothing is left of a failed machine: its host is given back, or is as good as
    /// new where hosts are not given back. The machine may be without a host that is there all the
    /// same, left by a Create that was given up; find it by what it was tagged with.
    fn clean_up(&self, job: Job) -> impl Future<Output = Result<(), Failure>> + Send {
        let stays = !self.deletes() || job.machine.offer.capacity_type == CapacityType::BareMetal;
        async move {
            if stays {
                self.drain(job, Duration::ZERO).await
            } else {
                self.delete(job).await
            }
        }
    }

    /// What every machine costs now. Called every so often, never by a List. Those not named keep
    /// their price. A substrate without a price list of its own says what [`Backend::describe`] says.
    fn prices(&self) -> impl Future<Output = Result<Vec<Quote>, Failure>> + Send {
        async {
            let quote = |instance: Instance| Quote {
                id: instance.id,
                price_per_hour: instance.offer.price_per_hour,
                interruption_probability: instance.offer.interruption_probability,
            };
            Ok(self.describe().await?.into_iter().map(quote).collect())
        }
    }

    /// Whether Create, Drain and Delete may be asked for again after a restart, with the same
    /// [`Job::operation`]: true if asking twice is asking once.
    fn resumes(&self) -> bool {
        false
    }

    /// Whether a Configure that a restart interrupted may be asked for again, with other user data and
    /// maybe for another cluster: true if the second one undoes whatever the first had done. The machine
    /// is then shown as Idle after the restart, and the shard configures it anew; its user data is never
    /// stored. Otherwise it is Failed.
    fn reconfigures(&self) -> bool {
        false
    }

    /// Whether Delete is supported at all.
    fn deletes(&self) -> bool {
        false
    }

    /// Who makes sure that Configured means Ready. There is no default: whoever forgets it would
    /// report capacity that is not there.
    fn readiness(&self) -> Readiness;

    /// Called at start with what the store remembers. A substrate that keeps no memory of its own
    /// learns here which hosts exist.
    fn restore(&self, machines: &[Arc<Machine>]) {
        let _ = machines;
    }
}
