//! Jitter: moments spread out, from a seed the process draws when it starts.
//!
//! Two thousand operators that lose a shard at once must not come back at once. No decision depends on these numbers,
//! only when one is made.

use std::time::Duration;

/// A sequence of numbers made from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From nothing to the whole span.
    pub(crate) fn up_to(&mut self, span: Duration) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let wide = u128::from(self.next()) * u128::from(nanos);
        Duration::from_nanos((wide >> 64) as u64)
    }

    /// The span, a tenth more or less.
    pub(crate) fn about(&mut self, span: Duration) -> Duration {
        span - span / 10 + self.up_to(span / 5)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_stay_within_their_bounds_and_differ() {
        let mut jitter = Jitter::new(7);
        let ten = Duration::from_secs(10);
        let drawn: Vec<_> = (0..100).map(|_| jitter.about(ten)).collect();
        let bounds = Duration::from_secs(9)..=Duration::from_secs(11);
        assert!(drawn.iter().all(|span| bounds.contains(span)));
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
        assert!((0..100).all(|_| jitter.up_to(ten) <= ten));
        assert_eq!(jitter.up_to(Duration::ZERO), Duration::ZERO);
    }
}
