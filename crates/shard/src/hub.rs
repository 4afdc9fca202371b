//! The hub: how everything that is not the driver's thread reaches the core.
//!
//! ```text
//! events ─▶ bounded, in order ──┐
//! questions ─▶ bounded, after ──┴─▶ driver ─▶ the closure, on the core ─▶ its answer
//! ```
//!
//! A sender waits when the queue is full; the driver waits for nobody, so the queue always moves.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bigfleet_model::ClusterId;
use bigfleet_shard_core::{Event, Features, Number, SessionId, ShardCore};
use tokio::sync::{mpsc, oneshot};

use crate::outbox::Link;
use crate::panics::{Panicked, Panics, Task};
use crate::publish::Beside;
use crate::trouble::Trouble;

/// Events that wait.
const EVENTS: usize = 8192;
/// Questions that wait.
const QUESTIONS: usize = 256;

/// The shard takes no more questions: it is stopping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard is stopping")]
pub struct Stopping;

impl From<Stopping> for tonic::Status {
    fn from(stopping: Stopping) -> Self {
        Self::unavailable(stopping.to_string())
    }
}

/// Something to run on the core.
pub(crate) type Question = Box<dyn FnOnce(&mut ShardCore) + Send>;

/// What the driver is told.
pub(crate) enum Told {
    /// Something happened; run the closure once it has been taken in.
    Event(Event, Option<Question>),
    /// Something happened; run the closure once all that was decided up to then is on disk.
    Durably(Event, Question),
    /// An operator said Hello.
    Opened {
        session: SessionId,
        link: Arc<Link>,
        features: Features,
        identity: Option<ClusterId>,
    },
    /// A part without which nothing works is lost: which, and why.
    Lost(&'static str, String),
    /// Let nothing more leave; tell when no call is under way.
    Stop(oneshot::Sender<()>),
}

/// The way to a running shard.
#[derive(Clone)]
pub struct Hub {
    pub(crate) events: mpsc::Sender<Told>,
    pub(crate) questions: mpsc::Sender<Question>,
    pub(crate) panics: Arc<Panics>,
    pub(crate) beside: Arc<Beside>,
}

/// The driver's end.
pub(crate) struct Inbox {
    pub(crate) events: mpsc::Receiver<Told>,
    pub(crate) questions: mpsc::Receiver<Question>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hub")
    }
}

impl Hub {
    pub(crate) fn new(trouble: Trouble) -> (Self, Inbox) {
        let (events, told) = mpsc::channel(EVENTS);
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let hub = Self {
            events,
            questions,
            panics: Arc::new(Panics::new(trouble)),
            beside: Arc::default(),
        };
        let inbox = Inbox {
            events: told,
            questions: asked,
        };
        (hub, inbox)
    }

    /// Runs `question` on the core between two events. Keep it to a bounded page: cycles wait for it.
    pub async fn ask<T, F>(&self, question: F) -> Result<T, Stopping>
    where
        T: Send + 'static,
        F: FnOnce(&mut ShardCore) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let question = Box::new(move |core: &mut ShardCore| {
            // Whoever asked may have gone away meanwhile.
            drop(reply.send(question(core)));
        });
        let sent = self.questions.send(question).await;
        sent.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }

    /// Has the core take an event, then runs `outcome` on it. The answer comes once what the event asks
    /// for has been started.
    pub async fn submit<T, F>(&self, event: Event, outcome: F) -> Result<T, Stopping>
    where
        T: Send + 'static,
        F: FnOnce(&mut ShardCore) -> T + Send + 'static,
    {
        let answer = self.hand(event, outcome).await?;
        answer.await.map_err(|_| Stopping)
    }

    /// The same, but waits only for a place in the queue: the answer comes later.
    pub(crate) async fn hand<T, F>(
        &self,
        event: Event,
        outcome: F,
    ) -> Result<oneshot::Receiver<T>, Stopping>
    where
        T: Send + 'static,
        F: FnOnce(&mut ShardCore) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |core| drop(reply.send(outcome(core))));
        let sent = self.events.send(Told::Event(event, Some(question))).await;
        sent.map_err(|_| Stopping)?;
        Ok(answer)
    }

    /// The same, but the answer comes once what the event changed is on disk: whoever hears it may rely
    /// on it, whatever happens to this process.
    pub async fn submit_durably<T, F>(&self, event: Event, outcome: F) -> Result<T, Stopping>
    where
        T: Send + 'static,
        F: FnOnce(&mut ShardCore) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let question: Question = Box::new(move |core| drop(reply.send(outcome(core))));
        let sent = self.events.send(Told::Durably(event, question)).await;
        sent.map_err(|_| Stopping)?;
        answer.await.map_err(|_| Stopping)
    }

    /// Does work whose panic is counted, said and answered, rather than lost with its task.
    pub async fn survive<T>(
        &self,
        task: Task,
        work: impl Future<Output = T>,
    ) -> Result<T, Panicked> {
        self.panics.survive(task, work).await
    }

    /// Shows these series with the shard's own, read out whenever somebody looks.
    pub fn publish(&self, numbers: impl Fn() -> Vec<Number> + Send + Sync + 'static) {
        self.beside.add(Box::new(numbers));
    }

    /// Tells the core something, and waits for nothing but a place in the queue.
    pub(crate) async fn tell(&self, event: Event) -> Result<(), Stopping> {
        let sent = self.events.send(Told::Event(event, None)).await;
        sent.map_err(|_| Stopping)
    }
}
