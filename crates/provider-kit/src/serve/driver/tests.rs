//! A disk that fails, and a backend that panics.

use super::*;
use crate::kit::Options;
use crate::seed::tests::slot;
use crate::tables::{Change, Tables};
use crate::{Ask, Host, Instance, Token};
use std::sync::atomic::AtomicBool;

struct Disk {
    broken: Arc<AtomicBool>,
}

impl Store for Disk {
    fn commit(&mut self, _: &[Change]) -> std::io::Result<()> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(std::io::Error::other("no space left")),
            false => Ok(()),
        }
    }

    fn compact(&mut self, _: &Tables) -> std::io::Result<()> {
        Ok(())
    }
}

struct Cloud;

impl Backend for Cloud {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        Ok(vec![slot("m1"), slot("m2")])
    }

    async fn create(&self, job: Job) -> Result<Created, Failure> {
        assert_ne!(job.machine.id.as_str(), "m2", "the backend has a defect");
        let host = Host {
            provider: "p".to_owned(),
            reference: "r".to_owned(),
        };
        Ok(Created {
            host,
            ..Created::default()
        })
    }

    async fn configure(&self, _: Job, _: Arc<[u8]>) -> Result<(), Failure> {
        Ok(())
    }

    async fn drain(&self, _: Job, _: Duration) -> Result<(), Failure> {
        Ok(())
    }
}

struct Bench {
    driver: Driver<Cloud>,
    broken: Arc<AtomicBool>,
    _outbox: mpsc::Sender<Request>,
}

fn bench() -> Bench {
    let broken = Arc::new(AtomicBool::new(false));
    let mut kit = Kit::new(Tables::new(1), Options::default());
    kit.seed(&[slot("m1"), slot("m2")]).unwrap();
    kit.commit();
    let (outbox, inbox) = mpsc::channel(16);
    let driver = Driver {
        kit,
        store: Box::new(Disk {
            broken: Arc::clone(&broken),
        }),
        backend: Arc::new(Cloud),
        runtime: Handle::current(),
        inbox,
        outbox: outbox.downgrade(),
        shared: Arc::default(),
        failures: 0,
    };
    Bench {
        driver,
        broken,
        _outbox: outbox,
    }
}

impl Bench {
    fn create(&mut self, machine: &str, sequence: i64) -> Result<Ack, Refusal> {
        let token = Token {
            shard: "s".to_owned(),
            epoch: 1,
            sequence,
        };
        let mutation = Mutation {
            machine: machine.to_owned(),
            token,
            ask: Ask::Create {
                metadata: Arc::default(),
            },
        };
        let (reply, mut answer) = oneshot::channel();
        self.driver.step(vec![Request::Mutate { mutation, reply }]);
        answer.try_recv().expect("an answer")
    }

    /// Handles background events until the machine has this state.
    async fn until(&mut self, machine: &str, state: State) {
        while self.driver.kit.tables().get(machine).unwrap().state != state {
            let next = self.driver.inbox.recv().await.expect("an event");
            self.driver.step(vec![next]);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_and_did_not_happen() {
    let mut bench = bench();
    bench.broken.store(true, Ordering::Relaxed);
    for _ in 0..UNREADY_AFTER {
        assert_eq!(bench.create("m1", 1), Err(Refusal::Unavailable));
    }
    assert!(
        !bench.driver.shared.storing.load(Ordering::Relaxed),
        "ready all the same"
    );
    let machine = bench.driver.kit.tables().get("m1").unwrap();
    assert_eq!(machine.state, State::Speculative);
    bench.broken.store(false, Ordering::Relaxed);
    assert!(
        bench.create("m1", 1).is_ok(),
        "the mark must not have moved"
    );
    assert!(bench.driver.shared.storing.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn a_completion_the_disk_refused_is_recorded_later() {
    let mut bench = bench();
    bench.create("m1", 1).unwrap();
    bench.broken.store(true, Ordering::Relaxed);
    let settled = bench.driver.inbox.recv().await.expect("the completion");
    bench.driver.step(vec![settled]);
    assert_eq!(
        bench.driver.kit.tables().get("m1").unwrap().state,
        State::Creating
    );
    bench.broken.store(false, Ordering::Relaxed);
    bench.until("m1", State::Idle).await;
}

#[tokio::test]
async fn a_panicking_backend_fails_its_machine_and_nothing_else() {
    let mut bench = bench();
    bench.create("m2", 1).unwrap();
    bench.until("m2", State::Failed).await;
    let failed = bench.driver.kit.tables().get("m2").unwrap();
    assert!(
        failed.last_error.contains("panicked"),
        "{}",
        failed.last_error
    );
    assert!(
        failed.last_error.contains("defect"),
        "{}",
        failed.last_error
    );
    assert!(bench.create("m1", 1).is_ok());
}
