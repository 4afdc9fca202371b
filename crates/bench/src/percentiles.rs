//! Percentiles of some measurements. Each is one of the measurements, never a value between two.

use serde::Serialize;
use std::time::Duration;

/// The middle, the slow end and the worst of some measurements.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Percentiles {
    /// How many there were.
    pub count: usize,
    /// Half are at most this.
    pub p50: f64,
    /// All but one in a hundred are at most this.
    pub p99: f64,
    /// The worst.
    pub max: f64,
}

impl Percentiles {
    /// Of these durations, in units of `unit`; zero where there are none.
    pub fn of(durations: &[Duration], unit: Duration) -> Self {
        let in_units = |one: &Duration| one.as_secs_f64() / unit.as_secs_f64();
        Self::of_numbers(durations.iter().map(in_units).collect())
    }

    /// Of these numbers; zero where there are none.
    pub fn of_numbers(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let position = (numbers.len() * percent).div_ceil(100).saturating_sub(1);
            rounded(numbers.get(position).copied().unwrap_or_default())
        };
        Self {
            count: numbers.len(),
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

/// Three digits after the point: what a clock can tell.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measurements() {
        let millis: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let found = Percentiles::of(&millis, Duration::from_millis(1));
        assert_eq!((found.p50, found.p99, found.max), (100.0, 198.0, 200.0));
        assert_eq!(found.count, 200);
        assert_eq!(Percentiles::of(&[], Duration::from_millis(1)).p99, 0.0);
    }
}
