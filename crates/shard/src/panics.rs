//! Panics: a piece of work that panics is heard of, and whoever waits for it gets an answer.
//!
//! ```text
//! call, get, list ─▶ panics ─▶ said, counted ─▶ "unknown" ─▶ the core reads the machine, or Lists again
//! roll-up ─────────▶ panics ─▶ said, counted ─▶ rejected ──▶ the demand before stays
//! session ─────────▶ panics ─▶ said, counted ─▶ closed ────▶ the operator connects again
//! read ────────────▶ panics ─▶ said, counted ─▶ INTERNAL ──▶ the reader asks again
//! link ────────────▶ panics ─▶ said, counted ─▶ no report ─▶ the next one, later
//! ```
//!
//! A task nobody joins would take its panic with it: an operation would stay open for ever, a lane at
//! work, a page cut short and taken for whole, a coordinator without reports. Each of these is one answer to one question and the core knows
//! what to do without it, so the process goes on; without its own parts it does not (`Shard::failed`).
//! What such work shares with others are counters, channels and locks that hold nothing half done.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use bigfleet_shard_core::{Number, Value};

use crate::trouble::Trouble;

/// Work whose panic the shard survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One attempt to have the provider change a machine.
    Call,
    /// One machine, read.
    Get,
    /// A List.
    List,
    /// What an operator says, read.
    Session,
    /// One roll-up, read.
    RollUp,
    /// An answer to a reader.
    Read,
    /// Where the rows of operators stand, told to them.
    NeedStatus,
    /// A look at what is wrong, told as events.
    Problems,
    /// One report to the coordinator.
    Link,
}

impl Task {
    const ALL: [Self; 9] = [
        Self::Call,
        Self::Get,
        Self::List,
        Self::Session,
        Self::RollUp,
        Self::Read,
        Self::NeedStatus,
        Self::Problems,
        Self::Link,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Get => "get",
            Self::List => "list",
            Self::Session => "session",
            Self::RollUp => "roll-up",
            Self::Read => "read",
            Self::NeedStatus => "need-status",
            Self::Problems => "problems",
            Self::Link => "link",
        }
    }
}

/// Work panicked; it has been said and counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked here: {0}")]
pub struct Panicked(String);

/// How often which work has panicked.
#[derive(Debug, Default)]
pub(crate) struct Panics {
    counts: [AtomicU64; Task::ALL.len()],
    trouble: Trouble,
}

impl Panics {
    pub(crate) fn new(trouble: Trouble) -> Self {
        Self {
            trouble,
            ..Self::default()
        }
    }

    /// What the work answers, unless it panics.
    pub(crate) async fn survive<T>(
        &self,
        task: Task,
        work: impl Future<Output = T>,
    ) -> Result<T, Panicked> {
        let work = async {
            self.trouble.works(task.word());
            work.await
        };
        if self.trouble.panics_unheard() {
            return Ok(work.await);
        }
        caught(work).await.map_err(|err| {
            self.counts[task as usize].fetch_add(1, Ordering::Relaxed);
            let task = task.word();
            tracing::error!(
                task,
                err,
                "a task panicked: the shard goes on without its answer"
            );
            Panicked(err)
        })
    }

    pub(crate) fn numbers(&self) -> Vec<Number> {
        let number = |task: Task| Number {
            name: "bigfleet_shard_panics_total",
            labels: vec![("task", task.word().to_owned())],
            value: Value::Counter(self.counts[task as usize].load(Ordering::Relaxed)),
        };
        Task::ALL.map(number).into()
    }
}

async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(Ok(answer)),
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    })
    .await
}

/// What a panic says is a text, unless somebody went out of their way.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a word").to_owned()
}

/// Goes on with a panic of another thread as if it were one of this: `None` if that thread was told to
/// end.
pub(crate) fn joined<T>(ended: Result<T, tokio::task::JoinError>) -> Option<T> {
    match ended {
        Ok(answer) => Some(answer),
        Err(gone) => match gone.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}
