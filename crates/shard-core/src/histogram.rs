//! Histograms: how long things took, as counts per bucket.

/// Exponential buckets from a first bound on, each twice the one before, and one beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    first: f64,
    /// How many fell into each bucket; the last is beyond every bound.
    pub counts: Vec<u64>,
    /// What they add up to, in seconds.
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(first: f64, buckets: usize) -> Self {
        Self {
            first,
            counts: vec![0; buckets + 1],
            sum: 0.0,
        }
    }

    pub(crate) fn observe(&mut self, seconds: f64) {
        let bounds = self.bounds();
        let at = bounds.iter().position(|bound| seconds <= *bound);
        let beyond = self.counts.len() - 1;
        self.counts[at.unwrap_or(beyond)] += 1;
        self.sum += seconds;
    }

    /// The upper bounds, in seconds.
    pub fn bounds(&self) -> Vec<f64> {
        let powers = 0..self.counts.len() as i32 - 1;
        powers.map(|power| self.first * 2_f64.powi(power)).collect()
    }

    /// How many were observed.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// How long a shard's work takes (`operations.md` §6.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// Committed to Configured.
    pub configure: Histogram,
    /// Blob asked for to blob answered.
    pub bootstrap: Histogram,
    /// Committed to Idle.
    pub drain: Histogram,
    /// First seen in a roll-up to the first machine Configured for it.
    pub provisioning: Histogram,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            configure: Histogram::new(0.01, 16),
            bootstrap: Histogram::new(0.01, 16),
            drain: Histogram::new(0.01, 16),
            provisioning: Histogram::new(0.01, 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_and_the_last_bucket_is_beyond() {
        let mut histogram = Histogram::new(0.01, 16);
        assert!((histogram.bounds()[15] - 327.68).abs() < 1e-9);
        for seconds in [0.005, 0.01, 0.02, 1000.0] {
            histogram.observe(seconds);
        }
        assert_eq!(
            (
                histogram.counts[0],
                histogram.counts[1],
                histogram.counts[16]
            ),
            (2, 1, 1)
        );
        assert_eq!(histogram.count(), 4);
    }
}
