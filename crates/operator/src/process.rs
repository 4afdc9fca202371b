//! Process: the task that owns the core, and what it is fed with.
//!
//! ```text
//! Feed ─▶ handle(now, event) ─▶ effects ─▶ Hands        a moment asked for ─▶ Woken
//! ```

use crate::clock::Clock;
use crate::hands::Hands;
use crate::health::Health;
use crate::lease::{Election, Hold};
use crate::metrics::Snapshot;
use crate::settings::OperatorSettings;
use crate::template;
use bigfleet_k8s::Cluster;
use bigfleet_operator_core::{Effect, Event, Frame, Heard, OperatorCore};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Events that wait; whoever brings more waits too, so that the API server is read no faster than it is understood.
const WAITING: usize = 1024;
/// The session and the lease are not behind all the objects of a cluster.
const URGENT: usize = 4096;
/// Nothing asks to be woken for longer than this.
const FAR: Duration = Duration::from_secs(3600);

/// Why an operator does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// The template cannot be used.
    #[error("bootstrap template: {0}")]
    Template(String),
}

/// The way into the core.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    objects: mpsc::Sender<Event>,
    urgent: mpsc::Sender<Event>,
}

impl Feed {
    /// Tells the core; waits while it has much to do. False if there is no core any more.
    pub(crate) async fn send(&self, event: Event) -> bool {
        let is_object = matches!(
            event,
            Event::Began(_)
                | Event::Seen(..)
                | Event::Unreadable { .. }
                | Event::Gone { .. }
                | Event::Whole(..)
                | Event::Fresh(..)
                | Event::Broken(_)
        );
        let channel = if is_object {
            &self.objects
        } else {
            &self.urgent
        };
        channel.send(event).await.is_ok()
    }
}

/// A running operator.
#[derive(Debug)]
pub struct Operator {
    health: Health,
    questions: mpsc::Sender<oneshot::Sender<Snapshot>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Starts an operator; it begins to act once it leads.
pub fn start(cluster: Cluster, settings: OperatorSettings) -> Operator {
    let clock = Clock::start();
    let hold = Hold::new(clock);
    let health = Health::new(hold.clone());
    let (objects, objects_in) = mpsc::channel(WAITING);
    let (urgent, urgent_in) = mpsc::channel(URGENT);
    let (questions, asked) = mpsc::channel(16);
    let (stop, stopped) = oneshot::channel();
    let feed = Feed { objects, urgent };
    let hands = Hands::new(
        cluster.clone(),
        &settings,
        hold.clone(),
        feed.clone(),
        health.clone(),
    );
    let template = settings.template_file.clone();
    let election = Election::new(cluster, settings.leading.clone(), hold);
    let core = OperatorCore::new(settings.core);
    let inner = Inner {
        core,
        hands,
        clock,
        health: health.clone(),
        wake: None,
    };
    let task = tokio::spawn(async move {
        let watching = template.map(|file| tokio::spawn(template::watch(file, feed.clone())));
        let leading = tokio::spawn(lead(election, feed, stopped));
        inner.run(objects_in, urgent_in, asked, leading).await;
        if let Some(watching) = watching {
            watching.abort();
        }
    });
    Operator {
        health,
        questions,
        stop,
        task,
    }
}

impl Operator {
    /// What the probes ask.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// The text of the metrics.
    pub fn metrics(
        &self,
        cluster: &str,
    ) -> impl Fn() -> bigfleet_net::Answer + Send + Sync + use<> {
        let (questions, cluster) = (self.questions.clone(), cluster.to_owned());
        let health = self.health.clone();
        move || {
            let (questions, cluster, health) = (questions.clone(), cluster.clone(), health.clone());
            Box::pin(async move {
                let (answer, answered) = oneshot::channel();
                drop(questions.send(answer).await);
                match answered.await {
                    Ok(snapshot) => snapshot.text(&cluster, &health),
                    Err(_) => String::new(),
                }
            })
        }
    }

    /// Ends in order: the session is closed, the lease given up; drains stay where they are on record.
    pub async fn stop(self) {
        self.stop.send(()).ok(); // over already is as good
        drop(self.task.await);
    }
}

/// Keeps the lease until told to stop; then gives it up.
async fn lead(mut election: Election, feed: Feed, mut stopped: oneshot::Receiver<()>) {
    let mut led = false;
    loop {
        let (renewed, pause) = election.step().await;
        if led || renewed.is_some() {
            led = renewed.is_some();
            feed.send(Event::Leads(renewed)).await;
        }
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    feed.send(Event::Leads(None)).await;
    election.give_up().await;
}

/// What to name in a log filter for how long each roll-up took to build, with the event it followed:
/// `--log-level=info,bigfleet_operator::timing=debug`.
const TIMING: &str = "bigfleet_operator::timing";

struct Inner {
    core: OperatorCore,
    hands: Hands,
    clock: Clock,
    health: Health,
    wake: Option<Instant>,
}

impl Inner {
    async fn run(
        mut self,
        mut objects: mpsc::Receiver<Event>,
        mut urgent: mpsc::Receiver<Event>,
        mut asked: mpsc::Receiver<oneshot::Sender<Snapshot>>,
        mut leading: JoinHandle<()>,
    ) {
        loop {
            let wake = self.wake.unwrap_or_else(|| Instant::now() + FAR);
            tokio::select! {
                biased;
                _ = &mut leading => return,
                Some(answer) = asked.recv() => drop(answer.send(Snapshot::of(&self.core))),
                Some(event) = urgent.recv() => self.take(event),
                () = tokio::time::sleep_until(wake) => {
                    self.wake = None;
                    self.take(Event::Woken);
                }
                Some(event) = objects.recv() => self.take(event),
            }
        }
    }

    fn take(&mut self, event: Event) {
        match &event {
            Event::Heard(_, Heard::Ack { .. }) => self.health.session(true),
            Event::Closed(_, why) => {
                tracing::warn!(?why, "session over");
                self.health.session(false);
            }
            _ => {}
        }
        let mut effects = Vec::new();
        let began = Instant::now();
        self.core.handle(self.clock.now(), event, &mut effects);
        let is_roll_up = |effect: &Effect| matches!(effect, Effect::Send(_, Frame::RollUp { .. }));
        if effects.iter().any(is_roll_up) {
            let ms = began.elapsed().as_secs_f64() * 1e3;
            tracing::debug!(target: TIMING, ms, "roll-up took");
        }
        for effect in effects {
            match effect {
                Effect::WakeAt(at) => self.wake = Some(self.clock.instant(at)),
                other => self.hands.act(other),
            }
        }
        self.health
            .core(self.core.is_leading(), self.core.is_whole());
    }
}
