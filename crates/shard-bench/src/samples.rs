//! Samples: the middle and the slow end of what was measured.

use serde::Serialize;

/// The middle, the slow end, and the worst of some measurements.
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
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let place = (samples.len() * percent).div_ceil(100).saturating_sub(1);
            rounded(samples.get(place).copied().unwrap_or_default())
        };
        Self {
            count: samples.len(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measurements() {
        let found = Percentiles::of((1..=200).rev().map(f64::from).collect());
        assert_eq!((found.p50, found.p99, found.max), (100.0, 198.0, 200.0));
        assert_eq!(Percentiles::of(Vec::new()).p99, 0.0);
    }
}
