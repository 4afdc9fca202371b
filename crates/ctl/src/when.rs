//! When: moments and spans as people read them.
//!
//! A shard's clock may run faster than ours (`bigfleet up --speed`) or simply differ. So "how long ago"
//! is always measured from the shard's time of the answer, never from our own clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

/// A moment by the shard's clock, in nanoseconds since 1970; `None` where the shard does not know it.
pub type Moment = Option<i64>;

const SECOND: i64 = 1_000_000_000;

/// A moment of the wire, where zero means "not known".
pub fn moment(unix_nanos: i64) -> Moment {
    (unix_nanos != 0).then_some(unix_nanos)
}

/// Our own clock, for an answer that does not say when it was made.
pub(crate) fn local_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Our own clock, for who asks about a file.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// `2025-01-01T00:00:00Z`, with milliseconds where there are some.
#[expect(
    clippy::expect_used,
    reason = "64 bits of nanoseconds reach from 1677 to 2262, and a date from -9999 to 9999"
)]
pub fn rfc3339(unix_nanos: i64) -> String {
    let moment = Timestamp::from_nanosecond(unix_nanos.into()).expect("a date");
    let milli = unix_nanos.rem_euclid(SECOND) / 1_000_000;
    let digits = if milli == 0 { 0 } else { 3 };
    DateTimePrinter::new()
        .precision(Some(digits))
        .timestamp_to_string(&moment)
}

/// How long ago, in at most two units: `12s`, `3m5s`, `2h10m`, `5d3h`. Empty if the moment is not known,
/// `0s` if it lies after `now`.
pub fn ago(now: i64, moment: Moment) -> String {
    moment.map_or_else(String::new, |moment| {
        span(Duration::from_nanos(
            now.saturating_sub(moment).max(0).unsigned_abs(),
        ))
    })
}

/// How long until then; empty if it is not known.
pub fn ahead(now: i64, moment: Moment) -> String {
    moment.map_or_else(String::new, |moment| ago(moment, Some(now)))
}

/// A span in at most two units, the larger first.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| *unit <= seconds);
    let Some(first) = first else {
        return match span.as_millis() {
            0 => "0s".to_owned(),
            milli => format!("{milli}ms"),
        };
    };
    let mut left = seconds;
    let mut text = String::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        if 0 < left / unit {
            text += &format!("{}{name}", left / unit);
        }
        left %= unit;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_everyone_writes_it() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_735_689_599 * SECOND), "2024-12-31T23:59:59Z");
        assert_eq!(rfc3339(1_709_164_800 * SECOND), "2024-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_500_000_000), "1970-01-01T00:00:01.500Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_span_has_at_most_two_units() {
        let text = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(text(0), "0s");
        assert_eq!(text(59), "59s");
        assert_eq!(text(60), "1m");
        assert_eq!(text(185), "3m5s");
        assert_eq!(text(7_800), "2h10m");
        assert_eq!(text(442_800), "5d3h");
        assert_eq!(text(86_401), "1d");
        assert_eq!(span(Duration::from_millis(250)), "250ms");
    }

    #[test]
    fn what_is_not_known_is_not_shown_and_what_is_ahead_is_now() {
        assert_eq!(ago(SECOND, moment(0)), "");
        assert_eq!(ago(SECOND, Some(5 * SECOND)), "0s");
        assert_eq!(ahead(SECOND, Some(5 * SECOND)), "4s");
    }
}
