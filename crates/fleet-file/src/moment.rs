//! Moments: seconds as decimal digits, exactly to the nanosecond, and back.
//!
//! ```text
//! 1700000000.123456789 ──▶ 1700000000123456789 ns ──▶ 1700000000.123456789
//! ```
//!
//! A float holds some sixteen digits, a moment of our days has nineteen: digits never become a float.

use crate::node::Node;
use bigfleet_model::Time;
use serde_json::value::RawValue;
use std::{fmt, time::Duration};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Why a value is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentRefused {
    /// It is not a finite number.
    NotANumber,
    /// It is a number that nobody can count to in nanoseconds.
    TooFar,
}

impl fmt::Display for MomentRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "is not a finite number of seconds (EN-1)",
            Self::TooFar => "is more than 292 years from 0 (EN-1)",
        })
    }
}

/// The moment this many seconds after the origin.
pub(crate) fn moment(node: &Node) -> Result<Time, MomentRefused> {
    let nanos = nanos(node)?;
    let nanos = i64::try_from(nanos).map_err(|_| MomentRefused::TooFar)?;
    Ok(Time::from_nanos(nanos))
}

/// A span of this many seconds; `None` for one that is negative or too long.
pub(crate) fn span(node: &Node) -> Option<Duration> {
    let nanos = nanos(node).ok().filter(|_| !is_negative(node))?;
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).ok()?;
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).ok()?;
    Some(Duration::new(seconds, rest))
}

/// Whether a number is below zero, however little.
fn is_negative(node: &Node) -> bool {
    match node {
        Node::Whole(number) => *number < 0,
        Node::Number(number) => *number < 0.0,
        Node::Digits(text) => text.parse::<f64>().is_ok_and(|number| number < 0.0),
        Node::Null | Node::Flag(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => false,
    }
}

fn nanos(node: &Node) -> Result<i128, MomentRefused> {
    match node {
        Node::Whole(seconds) => seconds
            .checked_mul(NANOS_PER_SECOND)
            .ok_or(MomentRefused::TooFar),
        Node::Digits(text) => from_digits(text),
        Node::Number(seconds) if seconds.is_finite() => Ok((seconds * 1e9).round() as i128),
        Node::Number(_)
        | Node::Null
        | Node::Flag(_)
        | Node::Text(_)
        | Node::List(_)
        | Node::Object(_) => Err(MomentRefused::NotANumber),
    }
}

/// Nanoseconds in decimal digits of seconds, such as `-0.5` or `1.7e9`; what is beyond the ninth place
/// after the point rounds to the nearest, halves away from zero.
fn from_digits(text: &str) -> Result<i128, MomentRefused> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(positive) => (-1, positive),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(MomentRefused::NotANumber);
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let exponent: i64 = exponent.parse().map_err(|_| MomentRefused::TooFar)?;
    // How many of the significant digits are whole nanoseconds.
    let zeros = (digits.len() - significant.len()) as i64;
    let count = (whole.len() as i64 + 9 - zeros).saturating_add(exponent);
    let Ok(count) = usize::try_from(count) else {
        return Ok(0);
    };
    if 38 < count {
        return Err(MomentRefused::TooFar);
    }
    let kept: String = significant
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(count)
        .map(char::from)
        .collect();
    let nanos: i128 = match kept.as_str() {
        "" => 0,
        kept => kept.parse().map_err(|_| MomentRefused::TooFar)?,
    };
    let rounds_up = significant
        .as_bytes()
        .get(count)
        .is_some_and(|next| b'5' <= *next);
    Ok(sign * (nanos + i128::from(rounds_up)))
}

/// Seconds as they stand in a file.
pub(crate) fn written(nanos: i128) -> Box<RawValue> {
    let sign = if nanos < 0 { "-" } else { "" };
    let (nanos, second) = (nanos.unsigned_abs(), NANOS_PER_SECOND.unsigned_abs());
    let fraction = format!("{:09}", nanos % second);
    let fraction = match fraction.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    number(format!("{sign}{}.{fraction}", nanos / second))
}

#[expect(
    clippy::expect_used,
    reason = "digits around a point are a number of JSON"
)]
fn number(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("digits are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digits(text: &str) -> Result<i128, MomentRefused> {
        from_digits(text)
    }

    #[test]
    fn digits_are_read_exactly() {
        for (text, nanos) in [
            ("0.1", 100_000_000),
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("-0.000000001", -1),
            ("1e-9", 1),
            ("1.5E3", 1_500_000_000_000),
            ("12.5e-1", 1_250_000_000),
            ("9223372036.854775807", i128::from(i64::MAX)),
            ("0.30000000000000004", 300_000_000),
            ("+.5", 500_000_000),
            ("5.", 5_000_000_000),
            ("00012.5", 12_500_000_000),
            ("-0.0", 0),
            ("0e999999999999999999999", 0),
        ] {
            assert_eq!(digits(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_below_a_nanosecond_rounds_to_the_nearest() {
        for (text, nanos) in [
            ("0.0000000004", 0),
            ("0.0000000005", 1),
            ("-0.0000000005", -1),
            ("0.00000000149", 1),
            ("0.9999999995", 1_000_000_000),
            ("1e-10", 0),
            ("9e-10", 1),
            ("1e-999", 0),
            ("1e-9223372036854775808", 0),
        ] {
            assert_eq!(digits(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_said_to_be_none() {
        for text in ["", ".", "-", "1.2.3", "1x", "e5", "--1"] {
            assert_eq!(digits(text), Err(MomentRefused::NotANumber), "{text}");
        }
        for text in ["1e300", "1e30", "1e99999999999999999999"] {
            assert_eq!(digits(text), Err(MomentRefused::TooFar), "{text}");
        }
        let at = |text: &str| moment(&Node::Digits(text.to_owned()));
        assert_eq!(at("-9223372036.854775808"), Ok(Time::from_nanos(i64::MIN)));
        assert_eq!(at("9223372036.854775808"), Err(MomentRefused::TooFar));
        assert_eq!(moment(&Node::Whole(i128::MAX)), Err(MomentRefused::TooFar));
        assert_eq!(
            moment(&Node::Number(f64::NAN)),
            Err(MomentRefused::NotANumber)
        );
    }

    #[test]
    fn a_span_is_never_negative() {
        let read = |text: &str| span(&Node::Digits(text.to_owned()));
        assert_eq!(read("0.1"), Some(Duration::from_millis(100)));
        assert_eq!(read("-0.0"), Some(Duration::ZERO));
        assert_eq!(read("-1e-12"), None);
        assert_eq!(read("-1.5"), None);
        assert_eq!(span(&Node::Whole(-1)), None);
        assert_eq!(span(&Node::Whole(7)), Some(Duration::from_secs(7)));
        assert_eq!(span(&Node::Whole(1 << 64)), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nanos: i64) {
            let text = written(nanos.into());
            prop_assert_eq!(digits(text.get()), Ok(i128::from(nanos)));
        }
    }
}
