//! Pace: how fast a demonstration lives.
//!
//! ```text
//! here     0 s ──────── 1 s ──────── 2 s       what a person waits
//! fleet    0 s ─────── 60 s ────── 120 s       what shard, cloud and clusters live through, at speed 60
//! ```
//!
//! One value scales all of them, so a hold, a boot and a roll-up keep their proportions at any speed.

use std::time::Duration;

use tokio::time::Instant;

/// The speeds that make sense: below, nobody waits for it; above, a cycle no longer fits its interval.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.1..=600.0;

/// When it began, and how fast it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    began: Instant,
    speed: f64,
}

impl Pace {
    pub(crate) fn start(speed: f64) -> Self {
        Self {
            began: Instant::now(),
            speed,
        }
    }

    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    /// How long it has been going on, here.
    pub(crate) fn here(&self) -> Duration {
        self.began.elapsed()
    }

    /// How long it has been going on, for the fleet.
    pub(crate) fn fleet(&self) -> Duration {
        self.here().mul_f64(self.speed)
    }

    /// When a moment of the fleet is.
    pub(crate) fn instant(&self, fleet: Duration) -> Instant {
        self.began + self.shrink(fleet)
    }

    /// How long something of the fleet takes here.
    pub(crate) fn shrink(&self, fleet: Duration) -> Duration {
        fleet.div_f64(self.speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_the_fleet_is_a_second_here() {
        let pace = Pace::start(60.0);
        let minute = Duration::from_secs(60);
        assert_eq!(pace.shrink(10 * minute), Duration::from_secs(10));
        assert_eq!(
            pace.instant(2 * minute) - pace.began,
            Duration::from_secs(2)
        );
        assert!(pace.here() * 60 <= pace.fleet());
    }
}
