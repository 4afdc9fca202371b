//! Outbox: frames on their way to one operator, as the stream its connection is fed from.
//!
//! ```text
//! driver ─ push ─▶ [ack][node m1][node m2]… ─ poll ─▶ HTTP/2, as fast as the operator reads
//!                        ▲ a newer word on m1 takes the place of the one that waits
//! ```
//!
//! The driver never waits: pushing takes a short lock. An operator that does not read fills its own
//! outbox only; when that is full, or nothing was read from it for a minute, its session ends, and it is
//! told everything when it is back. Nor may one hang up and leave unread what was said to it before. Words on machines never fill it, as there is at most one of each between
//! two marks: the resync of a cluster of any size fits. Hints are advice: past a number of them the next is
//! not kept. No frame moves across the marks of a resync, or the operator would count wrong.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bigfleet_model::{ClusterId, Fingerprint, MachineId};
use bigfleet_shard_core::{Echo, Frame};
use bigfleet_wire::v1alpha1::shard_message::Payload;
use bigfleet_wire::v1alpha1::{NeedStatusRow, ShardMessage};
use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;

use crate::session_messages;
use crate::untold_rows::UntoldRows;

/// Frames that wait for one operator and that no newer one replaces: acknowledgements, and a request or
/// an instruction for each of the operations that may be under way, several times over.
const MOST_FRAMES: usize = 32_768;
/// Acknowledgements among them: an operator sends a roll-up every few seconds, and reads what becomes of it.
const MOST_ACKS: usize = 256;
/// Hints that wait for one operator. It chooses what it asks for, and so how many there could be.
const MOST_HINTS: usize = 1024;
/// How long an operator may read nothing while something waits for it.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(60);

/// The operator does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck;

/// What makes an older frame pointless.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Node(MachineId),
    Available(Fingerprint),
}

fn key(frame: &Frame) -> Option<Key> {
    match frame {
        Frame::Node(node) => Some(Key::Node(node.machine.clone())),
        Frame::Available { fingerprint, .. } => Some(Key::Available(fingerprint.clone())),
        Frame::Ack { .. }
        | Frame::BootstrapRequest { .. }
        | Frame::Reclaim { .. }
        | Frame::ReclaimCancel { .. } => None,
    }
}

#[derive(Debug, Default)]
struct Frames {
    waiting: VecDeque<Frame>,
    /// How many have been taken since the beginning: the position of the first that waits.
    taken: u64,
    /// Where the newest word on something waits.
    at: HashMap<Key, u64>,
    /// How many wait that no newer one replaces.
    lasting: usize,
    /// How many of those are acknowledgements.
    acks: usize,
    hints: usize,
}

impl Frames {
    fn push(&mut self, frame: Frame, most: usize) -> Result<(), Stuck> {
        if let Frame::Ack {
            echo: Echo::ResyncBegin | Echo::ResyncEnd(_),
            ..
        } = frame
        {
            self.at.clear();
        }
        let key = key(&frame);
        let older = key.as_ref().and_then(|key| self.at.get(key));
        if let Some(at) = older {
            let place = usize::try_from(at - self.taken).ok();
            if let Some(older) = place.and_then(|place| self.waiting.get_mut(place)) {
                *older = frame;
                return Ok(());
            }
        }
        let is_ack = matches!(frame, Frame::Ack { .. });
        match key {
            Some(Key::Available(_)) if MOST_HINTS <= self.hints => return Ok(()),
            Some(key) => {
                self.hints += usize::from(matches!(key, Key::Available(_)));
                self.at.insert(key, self.taken + self.waiting.len() as u64);
            }
            None if most <= self.lasting || (is_ack && MOST_ACKS <= self.acks) => {
                return Err(Stuck);
            }
            None => {
                self.lasting += 1;
                self.acks += usize::from(is_ack);
            }
        }
        self.waiting.push_back(frame);
        Ok(())
    }

    fn pop(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        match &frame {
            Frame::Available { .. } => self.hints -= 1,
            Frame::Ack { .. } => self.acks -= 1,
            _ => {}
        }
        match key(&frame) {
            Some(key) if self.at.get(&key) == Some(&self.taken) => {
                self.at.remove(&key);
            }
            Some(_) => {}
            None => self.lasting -= 1,
        }
        self.taken += 1;
        Some(frame)
    }
}

#[derive(Debug, Default)]
struct State {
    frames: Frames,
    /// Where rows stand, told after all frames.
    rows: UntoldRows,
    /// How the stream ends, once everything that waits is written. `Ok` is a plain end.
    end: Option<Result<(), Status>>,
    waker: Option<Waker>,
    /// Since when something waits, or when a frame was last taken, if that is later.
    waits_since: Option<Instant>,
}

impl State {
    fn is_stuck(&self, now: Instant) -> bool {
        let waited = self.waits_since.map(|since| now.duration_since(since));
        waited.is_some_and(|waited| READ_WITHIN < waited)
    }

    fn push(&mut self, frame: Frame, now: Instant) -> Result<(), Stuck> {
        if self.is_stuck(now) {
            return Err(Stuck);
        }
        self.frames.push(frame, MOST_FRAMES)?;
        self.waits_since.get_or_insert(now);
        Ok(())
    }

    fn pop(&mut self, now: Instant) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.waits_since = Some(now).filter(|_| !self.frames.waiting.is_empty());
        Some(frame)
    }
}

/// One session's connection, as the driver and the reader of the session share it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) cluster: ClusterId,
    /// The operator wants to know where its rows stand.
    pub(crate) told_of_needs: bool,
    state: Mutex<State>,
    /// The session is over; the reader should stop too.
    pub(crate) over: Notify,
    /// Nobody takes frames any more.
    gone: Notify,
    /// When the operator was last heard, as unix time in nanoseconds; for readers.
    heard: AtomicI64,
}

impl Link {
    pub(crate) fn new(cluster: ClusterId, told_of_needs: bool) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            told_of_needs,
            state: Mutex::default(),
            over: Notify::new(),
            gone: Notify::new(),
            heard: AtomicI64::new(0),
        })
    }

    /// The operator said something.
    pub(crate) fn hear(&self, unix_nanos: i64) {
        self.heard.store(unix_nanos, Ordering::Relaxed);
    }

    /// When the operator was last heard, and how many frames wait for it.
    pub(crate) fn seen(&self) -> (i64, usize) {
        let waiting = self.lock().frames.waiting.len();
        (self.heard.load(Ordering::Relaxed), waiting)
    }

    /// Adds a frame.
    pub(crate) fn push(&self, frame: Frame) -> Result<(), Stuck> {
        let mut state = self.lock();
        if state.end.is_some() {
            return Ok(()); // it would not arrive, and the core hears of the end in its own time
        }
        state.push(frame, Instant::now())?;
        wake(&mut state);
        Ok(())
    }

    /// Says where rows stand; `complete` if these are all.
    pub(crate) fn tell_needs(&self, rows: Vec<NeedStatusRow>, complete: bool) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.rows.add(rows, complete);
            wake(&mut state);
        }
    }

    /// Ends the session; what waits is not written, unless the end is a plain one.
    pub(crate) fn end(&self, how: Result<(), Status>) {
        let mut state = self.lock();
        if state.end.is_none() {
            if how.is_err() {
                state.frames = Frames::default();
            }
            state.end = Some(how);
            wake(&mut state);
        }
        drop(state);
        self.over.notify_one();
    }

    /// Whether something has waited for the operator for a minute, and none of it was read.
    pub(crate) fn is_stuck(&self) -> bool {
        self.lock().is_stuck(Instant::now())
    }

    /// Waits until what was said before the end is written, or the operator had its time to read it: then that is
    /// dropped.
    pub(crate) async fn written(&self) {
        let gone = tokio::time::timeout(READ_WITHIN, self.gone.notified());
        if gone.await.is_err() {
            let mut state = self.lock();
            state.frames = Frames::default();
            state.end = Some(Err(stuck()));
            wake(&mut state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an operator is told that does not read.
pub(crate) fn stuck() -> Status {
    let why = "the operator reads too slowly: too many messages wait for it; connect again";
    Status::resource_exhausted(why)
}

fn wake(state: &mut State) {
    if let Some(waker) = state.waker.take() {
        waker.wake();
    }
}

/// What the connection writes.
#[derive(Debug)]
pub(crate) struct Outgoing {
    link: Arc<Link>,
    ended: bool,
}

impl Outgoing {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link, ended: false }
    }
}

impl Stream for Outgoing {
    type Item = Result<ShardMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let link = Arc::clone(&self.link);
        let mut state = link.lock();
        if let Some(frame) = state.pop(Instant::now()) {
            drop(state);
            return Poll::Ready(Some(Ok(session_messages::message(frame, &link.cluster))));
        }
        if state.end.is_none()
            && let Some(rows) = state.rows.next()
        {
            return Poll::Ready(Some(Ok(Payload::NeedStatus(rows).into())));
        }
        match state.end.clone() {
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Some(how) => {
                self.ended = true;
                Poll::Ready(how.err().map(Err))
            }
        }
    }
}

impl Drop for Outgoing {
    /// The connection is gone, or wrote all there was.
    fn drop(&mut self) {
        self.link.end(Ok(()));
        self.link.gone.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{Amounts, State as MachineState};
    use bigfleet_shard_core::{NodeState, OperationId};

    /// An operator that hangs up and does not read keeps nothing in memory for longer than a minute.
    #[tokio::test(start_paused = true)]
    async fn what_was_said_before_a_hang_up_waits_for_a_minute() {
        for is_read in [true, false] {
            let link = Link::new(ClusterId::new("a").unwrap(), false);
            let outgoing = Outgoing::new(Arc::clone(&link));
            link.push(node("m1", MachineState::Idle)).unwrap();
            link.end(Ok(()));
            let began = tokio::time::Instant::now();
            if is_read {
                drop(outgoing);
                link.written().await;
                assert_eq!(began.elapsed(), Duration::ZERO);
                continue;
            }
            link.written().await;
            assert_eq!(began.elapsed(), READ_WITHIN);
            assert_eq!(link.seen().1, 0);
            drop(outgoing);
        }
    }

    fn node(id: &str, state: MachineState) -> Frame {
        Frame::Node(Box::new(NodeState {
            machine: MachineId::new(id).unwrap(),
            state,
            host: None,
            node_name: String::new(),
            last_error: String::new(),
            labels: Default::default(),
            resources: Amounts::default(),
            removed: false,
        }))
    }

    fn mark(echo: Echo) -> Frame {
        Frame::Ack {
            echo,
            rollup_id: String::new(),
            reason: String::new(),
            term: 0,
            epoch: 1,
        }
    }

    fn all(frames: &mut Frames) -> Vec<Frame> {
        std::iter::from_fn(|| frames.pop()).collect()
    }

    #[test]
    fn a_newer_word_takes_the_place_of_the_one_that_waits() {
        use MachineState::{Configured, Configuring};
        let mut frames = Frames::default();
        for frame in [
            node("m0", Configuring),
            node("m1", Configuring),
            node("m2", Configuring),
        ] {
            frames.push(frame, 9).unwrap();
        }
        assert_eq!(frames.pop(), Some(node("m0", Configuring)));
        frames.push(node("m1", Configured), 9).unwrap();
        frames.push(node("m0", Configured), 9).unwrap();
        assert_eq!(
            all(&mut frames),
            [
                node("m1", Configured),
                node("m2", Configuring),
                node("m0", Configured)
            ]
        );
        assert!(frames.at.is_empty(), "nothing is remembered of what left");
    }

    /// A word from before a resync must not swallow the one inside it: the operator counts them.
    #[test]
    fn nothing_moves_across_the_marks_of_a_resync() {
        use MachineState::{Configured, Draining};
        let said = [
            node("m1", Configured),
            mark(Echo::ResyncBegin),
            node("m1", Draining),
            mark(Echo::ResyncEnd(1)),
            node("m1", Configured),
        ];
        let mut frames = Frames::default();
        for frame in said.clone() {
            frames.push(frame, 9).unwrap();
        }
        assert_eq!(all(&mut frames), said);
    }

    #[test]
    fn an_operator_that_does_not_read_is_found_out() {
        let cancel = |number| Frame::ReclaimCancel {
            instruction: OperationId { epoch: 1, number },
        };
        let mut frames = Frames::default();
        frames.push(cancel(1), 2).unwrap();
        frames.push(node("m1", MachineState::Idle), 2).unwrap();
        frames.push(cancel(2), 2).unwrap();
        assert_eq!(frames.push(cancel(3), 2), Err(Stuck), "never coalesced");
        frames.push(node("m1", MachineState::Failed), 2).unwrap();
        frames.pop().unwrap();
        frames.push(cancel(3), 2).unwrap();
    }

    /// SE-9: also one that only asks, and one for which there is nothing but advice.
    #[test]
    fn neither_acknowledgements_nor_hints_pile_up() {
        let mut frames = Frames::default();
        for _ in 0..MOST_ACKS {
            frames.push(mark(Echo::RollUpHeld), MOST_FRAMES).unwrap();
        }
        assert_eq!(frames.push(mark(Echo::RollUpHeld), MOST_FRAMES), Err(Stuck));
        let hint = |number: usize| Frame::Available {
            fingerprint: Fingerprint::new(&number.to_string()),
            requirements: Default::default(),
            count: 1,
            confidence: bigfleet_shard_core::Confidence::High,
            cost_per_hour: 1.0,
        };
        for number in 0..2 * MOST_HINTS {
            frames.push(hint(number), MOST_FRAMES).unwrap();
        }
        assert_eq!(all(&mut frames).len(), MOST_ACKS + MOST_HINTS);
        assert_eq!((frames.acks, frames.hints, frames.lasting), (0, 0, 0));
        assert!(frames.at.is_empty());
    }

    /// SE-9: a minute in which nothing is taken is enough.
    #[test]
    fn an_operator_that_reads_nothing_is_found_out_by_the_clock() {
        let (mut state, began) = (State::default(), Instant::now());
        let after = |seconds| began + Duration::from_secs(seconds);
        let word = |state: &mut State, at| state.push(node("m1", MachineState::Idle), at);
        word(&mut state, began).unwrap();
        word(&mut state, after(60)).unwrap();
        assert!(state.pop(after(61)).is_some() && state.pop(after(61)).is_none());
        word(&mut state, after(200)).unwrap();
        assert_eq!(word(&mut state, after(261)), Err(Stuck));
    }

    /// SE-6, SH-15: everything a cluster has is told at once, however much it is.
    #[test]
    fn the_resync_of_a_large_cluster_waits_for_its_operator() {
        const MACHINES: u32 = 120_000;
        let mut frames = Frames::default();
        frames.push(mark(Echo::ResyncBegin), MOST_FRAMES).unwrap();
        for number in 0..MACHINES {
            let node = node(&format!("m{number}"), MachineState::Configured);
            frames.push(node, MOST_FRAMES).unwrap();
        }
        let end = mark(Echo::ResyncEnd(MACHINES));
        frames.push(end, MOST_FRAMES).unwrap();
        assert_eq!(all(&mut frames).len(), MACHINES as usize + 2);
        assert_eq!(frames.lasting, 0);
    }
}
