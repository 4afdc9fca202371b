//! Moments: nanoseconds on one arbitrary origin, always handed in, never read from a clock.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// A moment, in whole nanoseconds: 292 years either side of the origin. Spans are [`Duration`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The origin.
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

    /// The earlier of two moments, of which either may not be stated (NT-7).
    pub fn earliest(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
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

/// The moment so much earlier; the first one there is, if that is before it.
impl Sub<Duration> for Time {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanos))
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
        assert_eq!(
            Time::from_seconds(1.5),
            Some(Time::from_nanos(1_500_000_000))
        );
        assert_eq!(Time::from_seconds(0.3e-9), Some(Time::ZERO));
        assert_eq!(Time::from_seconds(0.7e-9), Some(Time::from_nanos(1)));
    }

    /// 292 years are 2^63 nanoseconds.
    #[test]
    fn moments_end_where_nanoseconds_do() {
        let edge = 2f64.powi(63) / 1e9;
        assert_eq!(Time::from_seconds(edge), None);
        assert_eq!(Time::from_seconds(-edge * 1.001), None);
        assert_eq!(Time::from_seconds(-edge), Some(Time::from_nanos(i64::MIN)));
        assert!(Time::from_seconds(edge * 0.999).is_some());
        assert_eq!(Time::from_nanos(-2_500_000_000).seconds(), -2.5);
    }

    #[test]
    fn spans_are_exact_and_never_negative() {
        let at = Time::from_nanos;
        let span = Duration::from_nanos;
        assert_eq!(at(7).duration_since(at(-3)), span(10));
        assert_eq!(at(-3).duration_since(at(7)), Duration::ZERO);
        let longest = at(i64::MAX).duration_since(at(i64::MIN));
        assert_eq!(longest, span(u64::MAX));
        assert_eq!((at(7) + span(3), at(7) - span(9)), (at(10), at(-2)));
        assert_eq!(at(7) + Duration::MAX, at(i64::MAX));
        assert_eq!(at(-7) - Duration::MAX, at(i64::MIN));
    }

    #[test]
    fn an_unstated_arrival_gives_way_to_a_stated_one() {
        let (five, nine) = (Some(Time::from_nanos(5)), Some(Time::from_nanos(9)));
        assert_eq!(Time::earliest(None, nine), nine);
        assert_eq!(Time::earliest(nine, None), nine);
        assert_eq!(Time::earliest(nine, five), five);
        assert_eq!(Time::earliest(five, nine), five);
        assert_eq!(Time::earliest(None, None), None);
    }
}
