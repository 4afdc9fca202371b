//! Pace: how many bytes the audit log may take in a second.

use std::time::{Duration, Instant};

/// Bytes a second; as many may come at once.
pub(super) const MOST_BYTES: u32 = 1_000_000;

/// What may be written now. Whoever has written more waits.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u32,
    /// When all that was written would have been written at that rate.
    free_at: Instant,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u32, now: Instant) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            free_at: now,
        }
    }

    /// So many bytes are written now; returns how long to wait before the next.
    pub(super) fn written(&mut self, bytes: usize, now: Instant) -> Duration {
        // What was not used is good for one second.
        let burst = Duration::from_secs(1);
        let oldest = now.checked_sub(burst).unwrap_or(self.free_at);
        let took = bytes as f64 / f64::from(self.bytes_per_second);
        self.free_at = self.free_at.max(oldest) + Duration::from_secs_f64(took);
        self.free_at.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is written in whichever portions: after a second's worth, a second for each.
    #[test]
    fn no_second_has_more_than_its_bytes_after_a_first_burst() {
        let start = Instant::now();
        let (mut pace, mut now) = (Pace::new(1000, start), start + Duration::from_secs(60));
        let began = now;
        for _ in 0..100 {
            now += pace.written(100, now);
        }
        let passed = now.duration_since(began);
        assert_eq!(passed.as_secs(), 9, "10,000 bytes, 1,000 of them at once");
    }
}
