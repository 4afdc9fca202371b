//! When: moments and spans as people read them.
//!
//! A shard tells times by its own clock, which may run faster than ours (`bigfleet up --speed`) or
//! simply differ. So "how long ago" is measured from the moment of the answer, never from here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment of the shard's clock; `None` where it says that it does not know.
pub type Moment = Option<i64>;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Zero on the wire is "not known".
pub fn moment(unix_nanos: i64) -> Moment {
    (unix_nanos != 0).then_some(unix_nanos)
}

/// Our own clock, for an answer that does not say when it was made.
pub(crate) fn here() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// `2025-01-01T00:00:00Z`, with milliseconds where there are some.
pub fn rfc3339(unix_nanos: i64) -> String {
    let seconds = unix_nanos.div_euclid(SECOND);
    let milli = unix_nanos.rem_euclid(SECOND) / 1_000_000;
    let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = match milli {
        0 => String::new(),
        milli => format!(".{milli:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The day so many days after 1970-01-01. Counts in eras of 400 years that begin in March, so that a
/// leap day is always the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let (month, late) = match shifted {
        0..10 => (shifted + 3, 0),
        _ => (shifted - 9, 1),
    };
    (era * 400 + year + late, month, day)
}

/// How long ago, in at most two units: `12s`, `3m5s`, `2h10m`, `5d3h`. Empty if it is not known.
/// What lies ahead of the answer happened just now.
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
