//! Moments: nanoseconds on one arbitrary origin, always handed in, never read from a clock.

use std::{ops::Add, time::Duration};

/// A moment, in whole nanoseconds: 292 years either side of the origin. Spans are [`Duration`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The origin. As an arrival it means "not stated" (NT-7).
    pub const ZERO: Self = Self(0);

    /// The moment this many nanoseconds after the origin.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// The moment this many seconds after the origin, to the nearest nanosecond; `None` for NaN, the
    /// infinities and what is further away than 292 years.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        let nanos = (seconds * 1e9).round();
        let range = -(2f64.powi(63))..2f64.powi(63);
        range.contains(&nanos).then_some(Self(nanos as i64))
    }

    /// Seconds since the origin, for people: large moments lose their last digits.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to here; zero if that was later.
    pub fn duration_since(self, earlier: Self) -> Duration {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// Seconds from `earlier` to here; negative if it was later.
    pub fn since(self, earlier: Self) -> f64 {
        (self.0 - earlier.0) as f64 / 1e9
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

/// The moment so much later; the last one there is, if that is beyond it.
impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
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
