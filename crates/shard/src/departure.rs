//! Departure: the last look before a call is written (SH-40).
//!
//! ```text
//! Call ─▶ waits for a connection, for a stream ──┬─ taken ─────▶ written: the provider may have it
//!              the gate closes: withdrawn ───────┴─ not taken ─▶ never sent, and its intent stays
//! ```
//!
//! The core lets a call go when it may leave. That can be long before anything is written: the connection
//! may have to be built first, and the provider may take one call at a time. So a call waits for its turn
//! outside of the HTTP/2 client, which writes at least the headers of whatever it was given, and the connection
//! is given the message only when it asks for it, with a stream open to write it on. One atomic decides between the two
//! who are after it: a message is taken or withdrawn, never both.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bigfleet_model::MachineId;
use tokio::sync::Notify;
use tokio_stream::Stream;

const WAITS: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// One call, as the driver and the connection share it.
#[derive(Debug, Default)]
pub(crate) struct Departure {
    state: AtomicU8,
    changed: Notify,
}

impl Departure {
    /// The connection writes it now; false if it was withdrawn.
    fn take(&self) -> bool {
        self.becomes(TAKEN)
    }

    /// The gate has closed; false if it is too late.
    fn withdraw(&self) -> bool {
        let withdrawn = self.becomes(WITHDRAWN);
        if withdrawn {
            self.changed.notify_one();
        }
        withdrawn
    }

    fn becomes(&self, next: u8) -> bool {
        let (state, order) = (&self.state, Ordering::AcqRel);
        state
            .compare_exchange(WAITS, next, order, Ordering::Acquire)
            .is_ok()
    }

    /// Ends once it was withdrawn.
    pub(crate) async fn withdrawn(&self) {
        self.changed.notified().await;
    }
}

/// The message of a call, for a connection to take.
#[derive(Debug)]
pub(crate) struct Leaving<M> {
    message: Option<M>,
    departure: Arc<Departure>,
}

impl<M> Leaving<M> {
    pub(crate) fn new(message: M, departure: &Arc<Departure>) -> Self {
        Self {
            message: Some(message),
            departure: Arc::clone(departure),
        }
    }
}

impl<M: Unpin> Stream for Leaving<M> {
    type Item = M;

    /// Asked when the stream is open and the message would be the next thing on it.
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<M>> {
        match self.message.take() {
            None => Poll::Ready(None),
            Some(message) if self.departure.take() => Poll::Ready(Some(message)),
            // Whoever makes the call hears that it was withdrawn, and closes the stream.
            Some(_) => Poll::Pending,
        }
    }
}

/// The calls that have not ended, by sequence.
#[derive(Debug, Default)]
pub(crate) struct Departures(BTreeMap<u64, (MachineId, Arc<Departure>)>);

impl Departures {
    /// A call is let go.
    pub(crate) fn begin(&mut self, sequence: u64, machine: MachineId) -> Arc<Departure> {
        let departure = Arc::<Departure>::default();
        self.0.insert(sequence, (machine, Arc::clone(&departure)));
        departure
    }

    pub(crate) fn ended(&mut self, sequence: u64) {
        self.0.remove(&sequence);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Withdraws those that are held back now and not written yet; says how many.
    pub(crate) fn withdraw(&self, is_held_back: impl Fn(&MachineId) -> bool) -> usize {
        let held_back = self.0.values().filter(|(machine, _)| is_held_back(machine));
        held_back
            .filter(|(_, departure)| departure.withdraw())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_stream::StreamExt;

    fn id(name: &str) -> MachineId {
        MachineId::new(name).unwrap()
    }

    #[tokio::test]
    async fn a_message_is_taken_or_withdrawn_and_never_both() {
        let mut departures = Departures::default();
        let (written, waits) = (departures.begin(1, id("m1")), departures.begin(2, id("m2")));
        let mut message = Leaving::new("configure", &written);
        assert_eq!(message.next().await, Some("configure"));
        assert_eq!(departures.withdraw(|_| true), 1, "the other one is written");
        waits.withdrawn().await;
        let mut message = Leaving::new("configure", &waits);
        let taken =
            std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut message).poll_next(context)));
        assert_eq!(taken.await, Poll::Pending);
        assert_eq!(departures.withdraw(|_| true), 0, "once");
    }

    #[test]
    fn what_is_not_held_back_may_leave() {
        let mut departures = Departures::default();
        let (free, held) = (departures.begin(1, id("m1")), departures.begin(2, id("m2")));
        assert_eq!(departures.withdraw(|machine| *machine == id("m2")), 1);
        assert!(free.take() && !held.take());
        departures.ended(1);
        departures.ended(2);
        assert!(departures.is_empty());
    }
}
