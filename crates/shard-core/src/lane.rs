//! The lane of a session's roll-ups: how they wait, beside everything else that does not (SE-5).
//!
//! ```text
//! operator ─▶ roll-ups: one at work, one waiting, a newer one takes its place ─▶ core
//!          ─▶ everything else: at once ──────────────────────────────────────▶ core
//! ```
//!
//! A slow roll-up must not delay a blob.

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

    /// Whether one is at work.
    pub fn is_busy(&self) -> bool {
        self.at_work
    }

    /// The work is done: go on with what is returned, if anything.
    pub fn done(&mut self) -> Option<T> {
        let next = self.waiting.take();
        self.at_work = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
