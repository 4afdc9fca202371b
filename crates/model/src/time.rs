//! Moments: seconds on one arbitrary origin, always handed in, never read from a clock.

use std::cmp::Ordering;

/// A moment, in seconds. Always finite, so moments have a total order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time(f64);

impl Time {
    /// The origin. As an arrival it means "not stated" (NT-7).
    pub const ZERO: Self = Self(0.0);

    /// The moment this many seconds after the origin; `None` for NaN and the infinities.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        // Adding zero turns -0.0 into 0.0, so that equal moments have equal bits.
        seconds.is_finite().then_some(Self(seconds + 0.0))
    }

    /// Seconds since the origin.
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// Seconds from `earlier` to here; negative if it was later.
    pub fn since(self, earlier: Self) -> f64 {
        self.0 - earlier.0
    }

    /// The earlier of two arrivals, where zero means "not stated" (NT-7).
    pub fn earliest_stated(self, other: Self) -> Self {
        match (self == Self::ZERO, other == Self::ZERO) {
            (true, _) => other,
            (_, true) => self,
            (false, false) => self.min(other),
        }
    }
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_moments_exist() {
        assert_eq!(Time::from_seconds(f64::NAN), None);
        assert_eq!(Time::from_seconds(f64::INFINITY), None);
        assert_eq!(Time::from_seconds(-0.0), Some(Time::ZERO));
    }

    #[test]
    fn an_unstated_arrival_gives_way_to_a_stated_one() {
        let five = Time::from_seconds(5.0).unwrap();
        let nine = Time::from_seconds(9.0).unwrap();
        assert_eq!(Time::ZERO.earliest_stated(nine), nine);
        assert_eq!(nine.earliest_stated(Time::ZERO), nine);
        assert_eq!(nine.earliest_stated(five), five);
    }
}
