//! The clock: unix time as it was at the start, and from then on only forward.
//!
//! Deadlines of drains outlive the process, so moments are unix time. Within a process they follow the
//! monotonic clock: an administrator who sets the host's time must not end every drain at once.
//!
//! ```text
//! host    0 s ──────── 1 s ──────── 2 s
//! shard   0 s ─────── 60 s ────── 120 s       at speed 60: only in demonstrations
//! ```
//!
//! Everything the core knows of time comes from here and everything it asks to be woken for goes through
//! here, so a speed other than 1 cannot make two of its clocks disagree.

use std::time::{Duration, Instant};

use bigfleet_model::Time;

/// What a process takes for the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    /// Unix time then.
    began_at: Time,
    /// Seconds that pass here in one of the host's.
    speed: f64,
}

impl Clock {
    /// Begins now, which is this in unix time by the host. A speed of 0, below it or beyond counting is 1: time
    /// must go on.
    pub(crate) fn start(speed: f64, unix: Duration) -> Self {
        Self {
            began: Instant::now(),
            began_at: Time::from_nanos(0) + unix,
            speed: if speed.is_normal() && 0.0 < speed {
                speed
            } else {
                1.0
            },
        }
    }

    /// Now, in whole microseconds: what the store can keep of a moment, so that a moment is the same
    /// after a restart.
    pub(crate) fn now(&self) -> Time {
        let now = self.began_at + scaled(self.began.elapsed(), self.speed);
        Time::from_nanos(now.nanos() - now.nanos().rem_euclid(1_000))
    }

    /// By how many seconds the host's clock, which says this now, is ahead of this one; behind, where that is
    /// below zero. A clock of another speed is not compared.
    pub(crate) fn behind(&self, unix: Duration) -> f64 {
        if self.speed == 1.0 {
            unix.as_secs_f64() - self.now().seconds()
        } else {
            0.0
        }
    }

    /// When a moment is, on the clock that timers use.
    pub(crate) fn instant(&self, moment: Time) -> tokio::time::Instant {
        const FAR: Duration = Duration::from_secs(86_400 * 365);
        let after = scaled(moment.duration_since(self.began_at), 1.0 / self.speed).min(FAR);
        // A millisecond late rather than early: an early one would find nothing due and ask again.
        (self.began + after + Duration::from_millis(1)).into()
    }
}

/// A span so many times as long.
fn scaled(span: Duration, times: f64) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64() * times).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: Duration = Duration::from_secs(1_700_000_000);

    fn started(speed: f64) -> Clock {
        Clock::start(speed, UNIX)
    }

    #[test]
    fn a_host_that_is_set_leaves_it_behind_or_ahead() {
        let hour = Duration::from_secs(3600);
        let seconds = |unix| started(1.0).behind(unix).round();
        assert_eq!(seconds(UNIX + hour), 3600.0);
        assert_eq!(seconds(UNIX - hour), -3600.0);
        assert_eq!(started(60.0).behind(UNIX + hour), 0.0);
    }

    #[test]
    fn a_faster_clock_is_further_on_and_wakes_sooner() {
        let (usual, fast) = (started(1.0), started(60.0));
        let later = |clock: &Clock, seconds: u64| {
            let moment = clock.began_at + Duration::from_secs(seconds);
            clock.instant(moment).into_std() - clock.began
        };
        let millis = Duration::from_millis;
        assert_eq!(later(&usual, 600), millis(600_001));
        assert_eq!(later(&fast, 600), millis(10_001));
        // Once a timer has run out, its moment has come on the clock that set it, at any speed.
        for clock in [usual, fast] {
            let moment = clock.now();
            while std::time::Instant::now() < clock.instant(moment).into_std() {
                std::hint::spin_loop();
            }
            assert!(moment <= clock.now());
        }
    }

    #[test]
    fn time_goes_on_whatever_speed_is_asked_for() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(started(speed).speed, 1.0, "{speed}");
        }
    }
}
