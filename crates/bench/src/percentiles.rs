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

    /// Of the round of measurements that was disturbed least: whatever else a machine does makes a program slower and
    /// never faster, and what is slow by itself is slow in every round. Rounds without a measurement do not count.
    pub fn of_quietest(rounds: &[Vec<Duration>], unit: Duration) -> Self {
        let measured = rounds.iter().filter(|round| !round.is_empty());
        let rounds = measured.map(|round| Self::of(round, unit));
        let quietest = rounds.min_by(|a, b| a.p99.total_cmp(&b.p99));
        quietest.unwrap_or_default()
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

    #[test]
    fn one_disturbed_round_does_not_speak_for_a_program() {
        let round = |millis: [u64; 3]| millis.map(Duration::from_millis).to_vec();
        let of = |rounds: &[Vec<Duration>]| {
            let found = Percentiles::of_quietest(rounds, Duration::from_millis(1));
            (found.count, found.p50, found.p99)
        };
        let quiet = round([2, 1, 3]);
        assert_eq!(of(&[round([1, 90, 1]), quiet, Vec::new()]), (3, 2.0, 3.0));
        // A program that is slow is slow whenever it is looked at.
        assert_eq!(of(&[round([80, 90, 70]), round([60, 95, 85])]).2, 90.0);
        assert_eq!(of(&[Vec::new()]), (0, 0.0, 0.0));
    }
}
