//! Lanes: how frames wait on the two sides of a session (SE-5, SE-6).
//!
//! ```text
//! operator ─▶ roll-ups: one at work, one waiting, a newer one takes its place ─▶ core
//!          ─▶ everything else: at once ──────────────────────────────────────▶ core
//! core ─▶ outbox: bounded, a frame takes the place of the one it supersedes ─▶ operator
//! ```
//!
//! A slow roll-up must not delay a blob, and one stuck cluster must not hold up the shard.

use crate::effect::Frame;
use std::collections::VecDeque;

/// The roll-ups of one session: at most one at work and one waiting.
#[derive(Clone, Debug)]
pub struct RollUpLane<T> {
    at_work: bool,
    waiting: Option<T>,
}

impl<T> Default for RollUpLane<T> {
    fn default() -> Self {
        Self {
            at_work: false,
            waiting: None,
        }
    }
}

impl<T> RollUpLane<T> {
    /// A roll-up arrived: work on what is returned, if anything.
    pub fn arrived(&mut self, roll_up: T) -> Option<T> {
        if self.at_work {
            self.waiting = Some(roll_up);
            return None;
        }
        self.at_work = true;
        Some(roll_up)
    }

    /// The work is done: go on with what is returned, if anything.
    pub fn done(&mut self) -> Option<T> {
        let next = self.waiting.take();
        self.at_work = next.is_some();
        next
    }
}

/// Frames on their way to one operator.
#[derive(Clone, Debug)]
pub struct Outbox {
    frames: VecDeque<Frame>,
    most: usize,
}

/// The operator does not read: its session is to be ended. It is told everything when it is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

impl Outbox {
    /// Room for so many frames.
    pub fn new(most: usize) -> Self {
        Self {
            frames: VecDeque::new(),
            most,
        }
    }

    /// Adds a frame, in the place of one it supersedes if that still waits.
    pub fn push(&mut self, frame: Frame) -> Result<(), Stuck> {
        let older = self
            .frames
            .iter_mut()
            .find(|waiting| supersedes(&frame, waiting));
        if let Some(older) = older {
            *older = frame;
            return Ok(());
        }
        if self.most <= self.frames.len() {
            return Err(Stuck);
        }
        self.frames.push_back(frame);
        Ok(())
    }

    /// The next frame to write.
    pub fn pop(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }
}

/// Whether a frame makes an older one pointless: `node:<machine>`, `available:<fingerprint>`.
fn supersedes(new: &Frame, old: &Frame) -> bool {
    match (new, old) {
        (Frame::Node(new), Frame::Node(old)) => new.machine == old.machine,
        (
            Frame::Available {
                fingerprint: new, ..
            },
            Frame::Available {
                fingerprint: old, ..
            },
        ) => new == old,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, OperationId};
    use bigfleet_model::Fingerprint;

    /// EX-SE3.
    #[test]
    fn ex_se3_a_newer_roll_up_takes_the_place_of_a_waiting_one() {
        let mut lane = RollUpLane::default();
        assert_eq!(lane.arrived("r1"), Some("r1"));
        assert_eq!(lane.arrived("r2"), None);
        assert_eq!(lane.arrived("r3"), None);
        assert_eq!(lane.done(), Some("r3"));
        assert_eq!(lane.done(), None);
        assert_eq!(lane.arrived("r4"), Some("r4"));
    }

    #[test]
    fn an_outbox_coalesces_keeps_order_and_has_a_bound() {
        let hint = |text: &str, count| Frame::Available {
            fingerprint: Fingerprint::new(text),
            requirements: Vec::new(),
            count,
            confidence: Confidence::High,
            cost_per_hour: 1.0,
        };
        let cancel = |number| Frame::ReclaimCancel {
            instruction: OperationId { epoch: 1, number },
        };
        let mut outbox = Outbox::new(3);
        for frame in [hint("f", 1), cancel(1), hint("g", 1), hint("f", 2)] {
            assert_eq!(outbox.push(frame), Ok(()));
        }
        assert_eq!(outbox.push(cancel(1)), Err(Stuck), "never coalesced");
        let out: Vec<Frame> = std::iter::from_fn(|| outbox.pop()).collect();
        assert_eq!(out, [hint("f", 2), cancel(1), hint("g", 1)]);
    }
}
