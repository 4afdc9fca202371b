//! Percentiles of a handful of measurements.

use serde::Serialize;
use std::time::Duration;

/// The middle and the nearly worst of some measurements.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Percentiles {
    /// Half are at most this.
    pub p50: f64,
    /// All but one in a hundred are at most this.
    pub p99: f64,
}

impl Percentiles {
    /// Of these durations, in units of `unit`; zero where there are none.
    pub fn of(durations: &[Duration], unit: Duration) -> Self {
        let mut sorted: Vec<Duration> = durations.to_vec();
        sorted.sort();
        let at = |percent: usize| {
            let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            let duration = sorted.get(place).copied().unwrap_or_default();
            rounded(duration.as_secs_f64() / unit.as_secs_f64())
        };
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Three digits after the point: what a clock can tell.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measurements() {
        let millis: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let found = Percentiles::of(&millis, Duration::from_millis(1));
        assert_eq!((found.p50, found.p99), (100.0, 198.0));
        assert_eq!(Percentiles::of(&[], Duration::from_millis(1)).p99, 0.0);
    }
}
