//! Moments: the texts Kubernetes writes times as, and nanoseconds since 1970.

use jiff::Timestamp;

/// Nanoseconds since 1970 of a time as Kubernetes writes it; `None` for a text that is none.
pub fn nanos(text: &str) -> Option<i64> {
    let moment: Timestamp = text.parse().ok()?;
    i64::try_from(moment.as_nanosecond()).ok()
}

/// Nanoseconds since 1970 of a time as HTTP headers write it.
pub(crate) fn header_nanos(text: &str) -> Option<i64> {
    let moment = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    i64::try_from(moment.as_nanosecond()).ok()
}

/// In whole seconds, as in `metav1.Time`.
pub fn seconds_text(nanos: i64) -> String {
    let moment = Timestamp::from_second(nanos.div_euclid(1_000_000_000)).unwrap_or_default();
    format!("{moment:.0}")
}

/// With microseconds, as in `metav1.MicroTime`.
pub fn micros_text(nanos: i64) -> String {
    let moment = Timestamp::from_microsecond(nanos.div_euclid(1000)).unwrap_or_default();
    format!("{moment:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_kubernetes_reads_them() {
        let at = nanos("2026-01-02T03:04:05Z").unwrap();
        assert_eq!(seconds_text(at + 999), "2026-01-02T03:04:05Z");
        assert_eq!(micros_text(at + 1_000), "2026-01-02T03:04:05.000001Z");
        assert_eq!(nanos(&micros_text(at)), Some(at));
        assert_eq!(nanos("2026-01-02T04:04:05+01:00"), Some(at));
        assert_eq!(nanos("yesterday"), None);
        assert_eq!(header_nanos("Fri, 02 Jan 2026 03:04:05 GMT"), Some(at));
        assert_eq!(header_nanos("soon"), None);
    }
}
