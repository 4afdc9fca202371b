//! A disk that fails, and a backend that panics.

use super::*;
use crate::event::Created;
use crate::machine::Failure;
use crate::options::Options;
use crate::seed::tests::slot;
use crate::tables::{Change, Tables};
use crate::{Ask, Host, Instance, Token};
use crate::{Job, Readiness, Retry, Transition};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

struct Disk {
    broken: Arc<AtomicBool>,
}

impl Store for Disk {
    fn commit(&mut self, _: &[Change]) -> std::io::Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            Err(std::io::Error::other("no space left"))
        } else {
            Ok(())
        }
    }

    fn compact(&mut self, _: &Tables) -> std::io::Result<()> {
        Ok(())
    }
}

/// Refuses m1 a few times, panics for m2, makes m3 long after it was given up, and has no m4 in stock.
#[derive(Default)]
struct Cloud {
    refusals: AtomicUsize,
    given_back: Mutex<Vec<String>>,
}

impl Backend for Cloud {
    async fn describe(&self) -> Result<Vec<Instance>, Failure> {
        Ok(vec![slot("m1"), slot("m2"), slot("m3"), slot("m4")])
    }

    async fn create(&self, mut job: Job) -> Result<Created, Failure> {
        assert_ne!(job.machine.id.as_str(), "m2", "the backend has a defect");
        let less = |left: usize| left.checked_sub(1);
        let refused = self
            .refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if refused.is_ok() {
            return Err(Failure::passing("throttled"));
        }
        match job.machine.id.as_str() {
            "m3" => job.cancelled.wait().await,
            "m4" => return Err(Failure::no_stock("none left")),
            _ => {}
        }
        let host = Host {
            provider: "p".to_owned(),
            reference: format!("host-of-{}", job.machine.id),
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

    async fn delete(&self, job: Job) -> Result<(), Failure> {
        let host = job.machine.host.clone().unwrap_or_default();
        self.given_back.lock().unwrap().push(host.reference);
        Ok(())
    }

    fn deletes(&self) -> bool {
        true
    }

    fn readiness(&self) -> Readiness {
        Readiness::BackendWaits
    }
}

struct Bench {
    driver: Driver<Cloud>,
    backend: Arc<Cloud>,
    broken: Arc<AtomicBool>,
    _outbox: mpsc::Sender<Request>,
}

fn bench() -> Bench {
    bench_with(Options::default())
}

fn bench_with(options: Options) -> Bench {
    let broken = Arc::new(AtomicBool::new(false));
    let mut kit = Kit::new(Tables::new(1), options);
    let slots = ["m1", "m2", "m3", "m4"].map(slot);
    kit.seed(&slots).unwrap();
    kit.commit();
    let (outbox, inbox) = mpsc::channel(16);
    let (backend, shared) = (Arc::new(Cloud::default()), Arc::<Shared>::default());
    let backend_work = BackendWork::new(
        Arc::clone(&backend),
        outbox.downgrade(),
        Arc::clone(&shared),
        Retry::default(),
    );
    let driver = Driver {
        kit,
        store: Box::new(Disk {
            broken: Arc::clone(&broken),
        }),
        backend_work,
        runtime: Handle::current(),
        inbox,
        shared,
        failures: 0,
        clock: None,
        failed_since: BTreeMap::new(),
    };
    Bench {
        driver,
        backend,
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

    fn condition(&self) -> Condition {
        *self.driver.shared.condition.borrow()
    }

    fn operation(&self, machine: &str) -> Arc<str> {
        let entry = &self.driver.kit.tables().machines()[machine];
        Arc::clone(entry.operation(Transition::Create).unwrap())
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
        bench.condition() == Condition::NotStoring,
        "ready all the same"
    );
    let machine = bench.driver.kit.tables().get("m1").unwrap();
    assert_eq!(machine.state, State::Speculative);
    bench.broken.store(false, Ordering::Relaxed);
    assert!(
        bench.create("m1", 1).is_ok(),
        "the mark must not have moved"
    );
    assert_eq!(bench.condition(), Condition::Ready);
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

#[tokio::test(start_paused = true)]
async fn a_substrate_that_asks_to_come_back_is_asked_again() {
    let mut bench = bench();
    bench.backend.refusals.store(3, Ordering::Relaxed);
    bench.create("m1", 1).unwrap();
    bench.until("m1", State::Idle).await;
    assert_eq!(bench.driver.shared.metrics.retries.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_until_time_is_up_says_what_it_was_refused_with() {
    let mut bench = bench();
    bench.backend.refusals.store(usize::MAX, Ordering::Relaxed);
    bench.create("m1", 1).unwrap();
    bench.until("m1", State::Failed).await;
    let failed = bench.driver.kit.tables().get("m1").unwrap();
    assert!(
        failed.last_error.contains("timed out"),
        "{}",
        failed.last_error
    );
    assert!(
        failed.last_error.contains("throttled"),
        "{}",
        failed.last_error
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_made_too_late_is_given_back() {
    let mut bench = bench();
    bench.create("m3", 1).unwrap();
    bench.until("m3", State::Failed).await;
    let late = bench
        .driver
        .inbox
        .recv()
        .await
        .expect("the late completion");
    bench.driver.step(vec![late]);
    assert_eq!(bench.driver.shared.metrics.discarded.get(), 1);
    while bench.backend.given_back.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*bench.backend.given_back.lock().unwrap(), ["host-of-m3"]);
    let failed = bench.driver.kit.tables().get("m3").unwrap();
    assert_eq!(failed.state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_failed_machine_is_cleaned_up_after_its_cool_down() {
    let cool_down = Duration::from_secs(600);
    let mut bench = bench_with(Options {
        clean_up_after: Some(cool_down),
        ..Options::default()
    });
    bench.create("m2", 1).unwrap();
    bench.until("m2", State::Failed).await;
    let failed = bench.operation("m2");
    bench.until("m2", State::Speculative).await;
    assert_eq!(
        *bench.backend.given_back.lock().unwrap(),
        [""],
        "nothing but the slot"
    );
    bench.create("m2", 2).unwrap();
    assert_ne!(bench.operation("m2"), failed);
}

/// Nobody set a cool-down: a defect stays to be looked at, a shortage does not.
#[tokio::test(start_paused = true)]
async fn a_slot_without_stock_comes_back_by_itself_and_a_defect_does_not() {
    let mut bench = bench();
    for (machine, sequence) in [("m2", 1), ("m4", 2)] {
        bench.create(machine, sequence).unwrap();
        bench.until(machine, State::Failed).await;
    }
    bench.until("m4", State::Speculative).await;
    assert!(bench.backend.given_back.lock().unwrap().is_empty());
    let kept = bench.driver.kit.tables().get("m2").unwrap();
    assert_eq!(kept.state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_up_what_it_can() {
    let mut bench = bench_with(Options {
        resumes: true,
        ..Options::default()
    });
    bench.create("m1", 1).unwrap();
    let operation = bench.operation("m1");
    let tables = std::mem::replace(
        &mut bench.driver.kit,
        Kit::new(Tables::new(2), Options::default()),
    );
    let mut again = bench_with(Options::default());
    again.driver.kit = tables;
    let unfinished = again.driver.kit.resume();
    assert_eq!(again.driver.kit.recover(), 0);
    again.driver.take_up(unfinished);
    again.until("m1", State::Idle).await;
    assert_eq!(again.operation("m1"), operation);
}
