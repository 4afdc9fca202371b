//! The backend: carries out the substrate's plans in real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_provider_kit::{
    Backend, Created, Failure, Instance, Job, Machine, Outcome, Quote, Readiness, Transition,
};

use crate::selectors::Selector;
use crate::substrate::{End, Substrate};

/// How much later than its timeout an operation that ignores cancellation succeeds.
const LATE: Duration = Duration::from_secs(1);

/// A backend for the kit.
#[derive(Debug)]
pub struct FakeBackend {
    substrate: Mutex<Substrate>,
    deletes: bool,
    hooks: bool,
    reconfigures: bool,
}

impl FakeBackend {
    /// A backend for this cloud.
    pub fn new(substrate: Substrate, deletes: bool, hooks: bool) -> Self {
        Self {
            substrate: Mutex::new(substrate),
            deletes,
            hooks,
            reconfigures: false,
        }
    }

    /// The same, and whether an interrupted Configure may be asked for again.
    pub fn reconfiguring(self, reconfigures: bool) -> Self {
        Self {
            reconfigures,
            ..self
        }
    }

    /// The cloud itself. Never held over a wait.
    pub fn substrate(&self) -> MutexGuard<'_, Substrate> {
        // A panic under the lock leaves the cloud as it was before the change that panicked.
        self.substrate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn act(&self, kind: Transition, mut job: Job, grace: Duration) -> Outcome {
        let plan = self.substrate().plan(kind, &job.machine, grace);
        let outcome = match plan.end {
            End::Returns(outcome) => {
                tokio::select! {
                    () = tokio::time::sleep(plan.after) => outcome,
                    () = job.cancelled.wait() => Err(Failure::new("given up")),
                }
            }
            // This fault is injected in `confirm_node_ready`, so that it tests the readiness gate.
            End::Blocks if self.selector(&job) == Some(Selector::ReadinessBlock) => Ok(None),
            End::Blocks => {
                job.cancelled.wait().await;
                Err(Failure::new("given up"))
            }
            End::IgnoresCancel(outcome) => {
                job.cancelled.wait().await;
                tokio::time::sleep(LATE).await;
                outcome
            }
            #[expect(clippy::panic, reason = "the fault that was asked for")]
            End::Panics => panic!("injected panic"),
        };
        if outcome.is_ok() {
            self.substrate().succeeded(kind, &job.machine);
        }
        outcome
    }

    fn selector(&self, job: &Job) -> Option<Selector> {
        Selector::of(&job.machine.cluster).filter(|_| self.hooks)
    }
}

impl Backend for FakeBackend {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        Ok(self.substrate().describe())
    }

    async fn create(&self, job: Job) -> Result<Created, Failure> {
        let created = self.act(Transition::Create, job, Duration::ZERO).await?;
        created.ok_or_else(|| Failure::new("no host"))
    }

    async fn configure(&self, job: Job, _: Arc<[u8]>) -> Result<(), Failure> {
        self.act(Transition::Configure, job, Duration::ZERO)
            .await
            .map(drop)
    }

    async fn drain(&self, job: Job, grace: Duration) -> Result<(), Failure> {
        self.act(Transition::Drain, job, grace).await.map(drop)
    }

    async fn delete(&self, job: Job) -> Result<(), Failure> {
        self.act(Transition::Delete, job, Duration::ZERO)
            .await
            .map(drop)
    }

    async fn confirm_node_ready(&self, mut job: Job) -> Result<(), Failure> {
        if self.selector(&job) == Some(Selector::ReadinessBlock) {
            job.cancelled.wait().await;
            return Err(Failure::new("the node never became Ready"));
        }
        Ok(())
    }

    async fn prices(&self) -> Result<Vec<Quote>, Failure> {
        Ok(self.substrate().prices())
    }

    // This cloud is in memory and ends with the process, so interrupted work was not done.
    fn resumes(&self) -> bool {
        true
    }

    fn reconfigures(&self) -> bool {
        self.reconfigures
    }

    fn deletes(&self) -> bool {
        self.deletes
    }

    fn readiness(&self) -> Readiness {
        Readiness::Confirmed
    }

    fn restore(&self, machines: &[Arc<Machine>]) {
        self.substrate().restore(machines);
    }
}
