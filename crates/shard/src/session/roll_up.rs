//! The roll-ups of one session: read off the async workers, then applied, one after another.
//!
//! ```text
//! bytes ─▶ lane: one at work, one waits ─▶ blocking thread: hash, decode, check ─▶ core
//!                                              └─ says what is in force ─▶ repeated: nothing to compare
//! ```
//!
//! The lane keeps order: a roll-up is read only after the core has judged the one before it, and a while after that,
//! in proportion to its size. An operator that sends faster than that replaces its own waiting roll-up and costs the
//! shard nothing more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_model::{ClusterId, MAX_ID_BYTES};
use bigfleet_shard_core::{Event, RollUpLane, SessionId};
use bigfleet_wire::Rollup;
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::SessionCounts;
use crate::digest::{Digest, Sent};
use crate::hub::Hub;
use crate::incoming::LARGE_BYTES;
use crate::intake::Charge;
use crate::offload::Offload;
use crate::panics::Task;
use crate::weight;

/// The roll-ups of one session.
#[derive(Clone)]
pub(super) struct RollUps {
    pub(super) hub: Hub,
    pub(super) session: SessionId,
    pub(super) cluster: ClusterId,
    pub(super) counts: Arc<SessionCounts>,
    pub(super) offload: Offload,
    pub(super) progress: Arc<Progress>,
}

/// How far a session's roll-ups are.
#[derive(Debug)]
pub(super) struct Progress {
    lane: Mutex<RollUpLane<(Bytes, Charge)>>,
    /// Whether one is at work.
    is_busy: watch::Sender<bool>,
    /// Roll-ups accepted on this session so far.
    accepted: AtomicU64,
    /// The roll-up in force, to recognise it when it is sent again.
    in_force: Mutex<Option<InForce>>,
    /// When the next may be looked at.
    next: Mutex<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            lane: Mutex::default(),
            is_busy: watch::Sender::default(),
            accepted: AtomicU64::new(0),
            in_force: Mutex::default(),
            next: Mutex::new(Instant::now()),
        }
    }
}

/// Between two roll-ups of a session, whatever they say.
const LEAST_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of roll-ups that are looked at in a second, of one session: reading, judging and remembering rows costs
/// everybody else.
const BYTES_A_SECOND: f64 = (4 << 20) as f64;

/// How long after a roll-up of so many bytes the next is looked at.
fn pause_after(bytes: usize) -> Duration {
    LEAST_PAUSE.max(Duration::from_secs_f64(bytes as f64 / BYTES_A_SECOND))
}

/// A roll-up that the core accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InForce {
    /// Of its bytes; `None` if they hold something that is not expected.
    sent: Option<Digest>,
    /// Of its rows, as we would write them.
    said: Digest,
}

/// What reading a roll-up came to.
#[derive(Debug)]
enum Read {
    /// It says what is in force.
    Repeated {
        rollup_id: String,
        built_unix_nanos: i64,
        in_force: InForce,
    },
    /// It says something else.
    New { roll_up: Rollup, in_force: InForce },
    /// It cannot be used.
    Refused { rollup_id: String, why: String },
}

/// Hashes, decodes and checks a roll-up, as far as is needed to tell what it says. Takes time in
/// proportion to its size.
fn read(bytes: Bytes, before: Option<InForce>, cluster: &ClusterId) -> Read {
    #[cfg(test)]
    tests::READ_HERE.with(|count| count.set(count.get() + 1));
    let sent = Sent::read(&bytes);
    if let Some((before, sent)) = before.zip(sent.as_ref())
        && before.sent == Some(sent.digest)
    {
        return Read::Repeated {
            rollup_id: sent.rollup_id.clone(),
            built_unix_nanos: sent.built_unix_nanos,
            in_force: before,
        };
    }
    let roll_up = match decode(bytes) {
        Ok(roll_up) => roll_up,
        Err(why) => {
            let rollup_id = sent.map(|sent| sent.rollup_id).unwrap_or_default();
            return Read::Refused { rollup_id, why };
        }
    };
    let rollup_id = roll_up.rollup_id.clone();
    let in_force = InForce {
        sent: sent.map(|sent| sent.digest),
        said: Digest::of(&roll_up),
    };
    let says_the_same = before.is_some_and(|before| before.said == in_force.said);
    if says_the_same && rollup_id.len() <= MAX_ID_BYTES {
        return Read::Repeated {
            rollup_id,
            built_unix_nanos: roll_up.timestamp_unix_nanos,
            in_force,
        };
    }
    match Rollup::read(roll_up, cluster) {
        Ok(roll_up) => Read::New { roll_up, in_force },
        Err(refused) => Read::Refused {
            rollup_id,
            why: refused.to_string(),
        },
    }
}

/// One that would take too much memory is not decoded (SE-9).
fn decode(bytes: Bytes) -> Result<ClusterCapacityNeeds, String> {
    weight::check(weight::of_roll_up(&bytes))?;
    ClusterCapacityNeeds::decode(bytes).map_err(|why| why.to_string())
}

impl RollUps {
    /// A roll-up arrived. Waits for nothing: a task exists only while there is work.
    pub(super) fn arrived(&self, bytes: Bytes, charge: Charge) {
        if let Some(first) = self.lane_moves(|lane| lane.arrived((bytes, charge))) {
            let roll_ups = self.clone();
            tokio::spawn(async move {
                let mut at_work = Some(first);
                while let Some((bytes, _until_taken_in)) = at_work {
                    roll_ups.wait(bytes.len()).await;
                    let taken = roll_ups.hub.survive(Task::RollUp, roll_ups.take_in(bytes));
                    if let Err(panicked) = taken.await {
                        roll_ups.refused(String::new(), panicked.to_string()).await;
                    }
                    at_work = roll_ups.lane_moves(RollUpLane::done);
                }
            });
        }
    }

    /// Waits until those that arrived are judged. To be called once no more arrive.
    pub(super) async fn finished(&self) {
        let mut busy = self.progress.is_busy.subscribe();
        // The sender is here, so that it cannot be gone.
        drop(busy.wait_for(|is_busy| !is_busy).await);
    }

    /// Waits until the one before was long enough ago for its size.
    async fn wait(&self, bytes: usize) {
        let next = *self.next();
        tokio::time::sleep_until(next).await;
        *self.next() = Instant::now() + pause_after(bytes);
    }

    fn next(&self) -> MutexGuard<'_, Instant> {
        let next = self.progress.next.lock();
        next.unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_in(&self, bytes: Bytes) {
        let before = *self.in_force();
        let read = if bytes.len() < LARGE_BYTES {
            read(bytes, before, &self.cluster)
        } else {
            let cluster = self.cluster.clone();
            let reading = self.offload.run(move || read(bytes, before, &cluster));
            match reading.await {
                Ok(read) => read,
                Err(_stopping) => return, // nobody would hear of it
            }
        };
        match read {
            Read::Repeated {
                rollup_id,
                built_unix_nanos,
                in_force,
            } => {
                *self.in_force() = Some(in_force);
                let session = self.session;
                let event = Event::RollUpRepeated { session, rollup_id };
                self.applied(event, built_unix_nanos).await;
            }
            Read::New { roll_up, in_force } => {
                let built_unix_nanos = roll_up.built_unix_nanos;
                let event = Event::RolledUp {
                    session: self.session,
                    cluster: roll_up.cluster,
                    rollup_id: roll_up.id,
                    rows: Ok(roll_up.rows),
                };
                // One that was held leaves the one before it in force.
                if self.applied(event, built_unix_nanos).await {
                    *self.in_force() = Some(in_force);
                }
            }
            Read::Refused { rollup_id, why } => self.refused(rollup_id, why).await,
        }
    }

    /// Waits until it is applied, so that the next one is judged after it; whether it was accepted.
    async fn applied(&self, event: Event, built_unix_nanos: i64) -> bool {
        let roll_ups = self.clone();
        let applied = self.hub.submit(event, move |core| {
            let accepted = core.roll_ups_accepted(roll_ups.session);
            let before = roll_ups.progress.accepted.swap(accepted, Ordering::Relaxed);
            let is_new = before < accepted;
            if is_new {
                roll_ups
                    .counts
                    .accepted(&roll_ups.cluster, built_unix_nanos);
            }
            is_new
        });
        applied.await.unwrap_or(false) // nobody is there to hear it any more
    }

    async fn refused(&self, mut rollup_id: String, why: String) {
        // An id too long to be one is not worth echoing.
        if MAX_ID_BYTES < rollup_id.len() {
            rollup_id = String::new();
        }
        let event = Event::RolledUp {
            session: self.session,
            cluster: self.cluster.clone(),
            rollup_id,
            rows: Err(why),
        };
        drop(self.hub.tell(event).await);
    }

    /// What is to be worked on next; said within the lock, so that nobody hears it out of order.
    fn lane_moves(
        &self,
        moves: impl FnOnce(&mut RollUpLane<(Bytes, Charge)>) -> Option<(Bytes, Charge)>,
    ) -> Option<(Bytes, Charge)> {
        let lane = self.progress.lane.lock();
        let mut lane = lane.unwrap_or_else(PoisonError::into_inner);
        let next = moves(&mut lane);
        self.progress.is_busy.send_replace(lane.is_busy());
        next
    }

    fn in_force(&self) -> MutexGuard<'_, Option<InForce>> {
        let in_force = self.progress.in_force.lock();
        in_force.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Inbox, Told};
    use crate::intake::Budget;
    use crate::trouble::Trouble;
    use bigfleet_net::Caller;
    use bigfleet_wire::v1alpha1::CapacityNeed;
    use std::cell::Cell;

    thread_local! {
        /// Roll-ups that were read on this thread.
        pub(super) static READ_HERE: Cell<u32> = const { Cell::new(0) };
    }

    fn roll_ups() -> (RollUps, Inbox) {
        let (hub, inbox) = Hub::new(Trouble::default());
        let roll_ups = RollUps {
            hub,
            session: SessionId(1),
            cluster: ClusterId::new("a").unwrap(),
            counts: Arc::default(),
            offload: Offload::new(1),
            progress: Arc::default(),
        };
        (roll_ups, inbox)
    }

    /// A roll-up of this many rows that speaks for another cluster: the core is told so at once.
    fn unusable(id: &str, rows: usize) -> Bytes {
        let roll_up = ClusterCapacityNeeds {
            cluster_id: "b".to_owned(),
            rollup_id: id.to_owned(),
            needs: vec![CapacityNeed::default(); rows],
            ..ClusterCapacityNeeds::default()
        };
        roll_up.encode_to_vec().into()
    }

    fn free() -> Charge {
        Budget::new(0).intake(&Caller::default()).decoded()
    }

    async fn next_id(inbox: &mut Inbox) -> String {
        match inbox.events.recv().await {
            Some(Told::Event(
                Event::RolledUp {
                    rollup_id,
                    rows: Err(_),
                    ..
                },
                None,
            )) => rollup_id,
            _ => panic!("not a refused roll-up"),
        }
    }

    /// The test's own thread is the only async worker here.
    #[tokio::test]
    async fn a_large_roll_up_is_hashed_decoded_and_checked_on_no_async_worker() {
        let (roll_ups, mut inbox) = roll_ups();
        let (small, large) = (unusable("small", 1), unusable("large", LARGE_BYTES));
        assert!(small.len() < LARGE_BYTES && LARGE_BYTES < large.len());
        roll_ups.arrived(large, free());
        assert_eq!(next_id(&mut inbox).await, "large");
        assert_eq!(READ_HERE.get(), 0, "a worker has read it");
        roll_ups.arrived(small, free());
        assert_eq!(next_id(&mut inbox).await, "small");
        assert_eq!(READ_HERE.get(), 1, "what is small is not worth a thread");
    }

    #[tokio::test]
    async fn the_newest_waits_while_one_is_read_and_order_is_kept() {
        let (roll_ups, mut inbox) = roll_ups();
        for id in ["1", "2", "3"] {
            roll_ups.arrived(unusable(id, LARGE_BYTES), free());
        }
        assert_eq!(next_id(&mut inbox).await, "1");
        assert_eq!(next_id(&mut inbox).await, "3");
        roll_ups.arrived(unusable("4", 1), free());
        assert_eq!(next_id(&mut inbox).await, "4");
    }

    /// SE-5: an operator that sends all the time has few of its roll-ups looked at, and the larger the fewer.
    #[tokio::test(start_paused = true)]
    async fn roll_ups_are_looked_at_with_pauses() {
        let (roll_ups, mut inbox) = roll_ups();
        let mut looked_at = 0;
        for number in 0..1000 {
            roll_ups.arrived(unusable(&number.to_string(), 1), free());
            tokio::time::sleep(Duration::from_millis(1)).await;
            while inbox.events.try_recv().is_ok() {
                looked_at += 1;
            }
        }
        assert!((10..=25).contains(&looked_at), "{looked_at} in a second");
        assert_eq!(pause_after(4 << 20), Duration::from_secs(1));
        assert_eq!(pause_after(0), LEAST_PAUSE);
    }

    /// wire 6.1: what an operator said before it hung up is heard before its session ends.
    #[tokio::test]
    async fn whoever_waits_for_the_last_roll_up_waits_until_it_was_told() {
        let (roll_ups, mut inbox) = roll_ups();
        roll_ups.finished().await; // of none
        for id in ["1", "2"] {
            roll_ups.arrived(unusable(id, LARGE_BYTES), free());
        }
        roll_ups.finished().await;
        for id in ["1", "2"] {
            assert!(!inbox.events.is_empty(), "{id} was told already");
            assert_eq!(next_id(&mut inbox).await, id);
        }
    }
}
