//! Clock: time as the core reads it: since 1970, and never backwards.
//!
//! Wall time when the process began, and since then as much as has really passed: a clock that is set changes no
//! deadline, and a process that was stopped notices.

use bigfleet_model::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    began_at: Time,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since.map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        });
        Self {
            began: Instant::now(),
            began_at: Time::from_nanos(nanos),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.began_at + self.began.elapsed()
    }

    /// When a moment comes; now for one that is over.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        let after: Duration = at.duration_since(self.began_at);
        self.began + after
    }
}
