//! Log budget: how many lines others may have written into our log.
//!
//! ```text
//! something a peer did wrong ─▶ ten at once, then one a second ──┬─ said, with how many were not
//!                                                                └─ counted
//! ```
//!
//! Whoever can do something wrong can do it ten thousand times a second. A line each would fill a disk, and hide
//! every other line.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines at once.
const BURST: u32 = 10;
/// Between two lines, after those.
const EACH: Duration = Duration::from_secs(1);

/// What is left of a budget.
#[derive(Debug)]
pub struct LogBudget {
    burst: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the budget is whole again.
    whole_at: Instant,
    left_out: u64,
}

impl Default for LogBudget {
    fn default() -> Self {
        Self::of(BURST)
    }
}

impl LogBudget {
    fn of(burst: u32) -> Self {
        let state = State {
            whole_at: Instant::now(),
            left_out: 0,
        };
        Self {
            burst,
            state: Mutex::new(state),
        }
    }

    /// How many lines were left out since the last one, if one may be written now; else this one is counted.
    pub fn take(&self) -> Option<u64> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let whole_at = state.whole_at.max(now) + EACH;
        if EACH.saturating_mul(self.burst) < whole_at - now {
            state.left_out += 1;
            return None;
        }
        state.whole_at = whole_at;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred mistakes a second, for ten seconds: twenty lines, and how many there were. Without a budget a
    /// thousand lines.
    #[test]
    fn what_goes_wrong_all_the_time_is_said_now_and_then() {
        let lines = [BURST, u32::MAX].map(|burst| {
            let (budget, start) = (LogBudget::of(burst), Instant::now());
            let moments = (0..1000).map(|n| start + Duration::from_millis(10 * n));
            moments
                .filter_map(|now| budget.take_at(now))
                .collect::<Vec<u64>>()
        });
        assert!((18..=20).contains(&lines[0].len()), "{:?}", lines[0]);
        assert_eq!(lines[0][..10], [0; 10]);
        let counted: u64 = lines[0].iter().sum();
        assert!(
            870 < counted && counted < 1000,
            "the rest is counted: {counted}"
        );
        assert_eq!(lines[1].len(), 1000);
    }
}
