//! The clock: unix time as it was at the start, and from then on only forward.
//!
//! Deadlines of drains outlive the process, so moments are unix time. Within a process they follow the
//! monotonic clock: an administrator who sets the host's time must not end every drain at once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bigfleet_model::Time;

/// What a process takes for the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// Unix time then, in seconds.
    began_at: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            began: Instant::now(),
            // A host whose clock is before 1970 has other troubles; a shard still runs on it.
            began_at: unix.unwrap_or_default().as_secs_f64(),
        }
    }

    /// Now.
    pub(crate) fn now(&self) -> Time {
        let seconds = self.began_at + self.began.elapsed().as_secs_f64();
        Time::from_seconds(seconds).unwrap_or_default()
    }

    /// When a moment is, on the clock that timers use.
    pub(crate) fn instant(&self, moment: Time) -> tokio::time::Instant {
        const FAR: f64 = 86_400.0 * 365.0;
        let seconds = (moment.seconds() - self.began_at).clamp(0.0, FAR);
        // A millisecond late rather than early: an early one would find nothing due and ask again.
        let after = Duration::from_secs_f64(seconds) + Duration::from_millis(1);
        (self.began + after).into()
    }
}
