//! Quantities: Kubernetes quantity text to exact integer milli-units (Q-1, Q-2, Q-5, Q-7).
//!
//! ```text
//! "1.5Gi" ──▶ digits 15 · 2^30 · 10^-1 ──▶ milli-units ──┬─ demand rounds up,   refuses what is negative
//!                                                        └─ supply rounds down, reads negative as 0
//! ```
//!
//! The arithmetic is exact for every accepted text: a text has at most 64 bytes, so its value times
//! any suffix fits the 352-bit integer below, and rounding happens once, at the end.

use std::fmt;

/// The longest quantity text accepted, in bytes.
const MAX_QUANTITY_BYTES: usize = 64;

/// Why a text is not a usable quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityRefused {
    /// The text, made fit to print.
    pub text: String,
    /// What is wrong with it.
    pub problem: QuantityProblem,
}

/// What can be wrong with a quantity text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityProblem {
    /// Not Kubernetes quantity syntax (Q-1).
    Malformed,
    /// Demand below zero (Q-5).
    Negative,
    /// Demand of more milli-units than an `i128` holds.
    TooLarge,
}

impl fmt::Display for QuantityRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.problem {
            QuantityProblem::Malformed => write!(f, "quantity \"{text}\" is malformed (Q-1)"),
            QuantityProblem::Negative => write!(f, "quantity \"{text}\" is negative (Q-5)"),
            QuantityProblem::TooLarge => write!(f, "quantity \"{text}\" is too large (Q-3)"),
        }
    }
}

impl std::error::Error for QuantityRefused {}

/// Milli-units of a demand text: rounded up; negative and over-large values are refused.
pub fn parse_demand(text: &str) -> Result<i128, QuantityRefused> {
    let refused = |problem| QuantityRefused {
        text: crate::shown(text),
        problem,
    };
    let exact = Exact::parse(text).ok_or_else(|| refused(QuantityProblem::Malformed))?;
    if exact.negative && !exact.is_zero() {
        return Err(refused(QuantityProblem::Negative));
    }
    exact
        .milli(Rounding::Up)
        .ok_or_else(|| refused(QuantityProblem::TooLarge))
}

/// Milli-units of a supply text: rounded down, negative reads 0, above `i64` saturates.
pub fn parse_supply(text: &str) -> Result<i64, QuantityRefused> {
    let exact = Exact::parse(text).ok_or_else(|| QuantityRefused {
        text: crate::shown(text),
        problem: QuantityProblem::Malformed,
    })?;
    if exact.negative {
        return Ok(0);
    }
    let milli = exact.milli(Rounding::Down).unwrap_or(i128::MAX);
    Ok(i64::try_from(milli).unwrap_or(i64::MAX))
}

/// The text of an amount in milli-units: a plain integer where it is one, else `<n>m` (Q-7).
pub fn format_milli(milli: i128) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        _ => format!("{milli}m"),
    }
}

/// The same as people write it: `16Gi`, not 17179869184. Below a mebibyte it is a number: 2048 cpus are
/// not `2Ki`.
pub fn format_short(milli: i128) -> String {
    const MI: i128 = 1 << 20;
    let units = [("Gi", MI << 10), ("Mi", MI), ("Ki", MI >> 10)];
    let fits =
        |(_, unit): &(&str, i128)| MI.max(*unit) * 1000 <= milli && milli % (unit * 1000) == 0;
    match units.into_iter().find(fits) {
        Some((suffix, unit)) => format!("{}{suffix}", milli / (unit * 1000)),
        None => format_milli(milli),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

/// `digits × 2^binary × 10^decimal`, as the text says it.
struct Exact<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    binary: u32,
    decimal: i32,
}

impl<'a> Exact<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if MAX_QUANTITY_BYTES < text.len() {
            return None;
        }
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, bytes),
        };
        let (whole, rest) = split_digits(bytes);
        let (fraction, suffix) = match rest {
            [b'.', rest @ ..] => split_digits(rest),
            _ => (&[][..], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (binary, decimal) = scale_of(suffix)?;
        Some(Self {
            negative,
            whole,
            fraction,
            binary,
            decimal,
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole
            .iter()
            .chain(self.fraction)
            .map(|digit| digit - b'0')
    }

    fn is_zero(&self) -> bool {
        self.digits().all(|digit| digit == 0)
    }

    /// The magnitude in milli-units, if an `i128` holds it.
    fn milli(&self, rounding: Rounding) -> Option<i128> {
        if self.is_zero() {
            return Some(0);
        }
        let mut value = Wide::default();
        for digit in self.digits() {
            value.multiply_add(10, u32::from(digit));
        }
        for _ in 0..self.binary / 10 {
            value.multiply_add(1 << 10, 0);
        }
        let tens = self.decimal + 3 - self.fraction.len() as i32;
        // Past 40 tens a non-zero value is over i128; past 130 divisions it is below one milli-unit.
        for _ in 0..tens.clamp(0, 40) {
            value.multiply_add(10, 0);
        }
        let mut inexact = false;
        for _ in 0..(-tens).clamp(0, 130) {
            inexact |= value.divide(10) != 0;
        }
        let round_up = inexact && rounding == Rounding::Up;
        value.to_i128()?.checked_add(i128::from(round_up))
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(
        bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count(),
    )
}

/// (power of two, power of ten) of a suffix.
fn scale_of(suffix: &[u8]) -> Option<(u32, i32)> {
    Some(match suffix {
        b"n" => (0, -9),
        b"u" => (0, -6),
        b"m" => (0, -3),
        b"" => (0, 0),
        b"k" => (0, 3),
        b"M" => (0, 6),
        b"G" => (0, 9),
        b"T" => (0, 12),
        b"P" => (0, 15),
        b"E" => (0, 18),
        b"Ki" => (10, 0),
        b"Mi" => (20, 0),
        b"Gi" => (30, 0),
        b"Ti" => (40, 0),
        b"Pi" => (50, 0),
        b"Ei" => (60, 0),
        [b'e' | b'E', exponent @ ..] => (0, parse_exponent(exponent)?),
        _ => return None,
    })
}

fn parse_exponent(bytes: &[u8]) -> Option<i32> {
    let (sign, digits) = match bytes {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, bytes),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Far beyond what any value survives, so a longer exponent changes nothing.
    let magnitude = digits
        .iter()
        .fold(0_i32, |sum, d| (sum * 10 + i32::from(d - b'0')).min(1000));
    Some(sign * magnitude)
}

/// An unsigned integer of 352 bits, least significant limb first.
#[derive(Default)]
struct Wide([u32; 11]);

impl Wide {
    /// `self × factor + addend`. Cannot overflow from 64 digits, 2^60 and 10^40.
    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        // Only a decimal exponent can get here, and then the value is over i128 already.
        if carry != 0 {
            self.0 = [u32::MAX; 11];
        }
    }

    /// Divides in place; the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0_u64;
        for limb in self.0.iter_mut().rev() {
            let dividend = (remainder << 32) + u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            remainder = dividend % u64::from(divisor);
        }
        remainder as u32
    }

    fn to_i128(&self) -> Option<i128> {
        let (low, high) = self.0.split_at(4);
        let fits = high.iter().all(|limb| *limb == 0);
        let value = low
            .iter()
            .rev()
            .fold(0_u128, |sum, limb| (sum << 32) + u128::from(*limb));
        i128::try_from(value).ok().filter(|_| fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_as_short_as_people_write_them() {
        assert_eq!(format_short(17_179_869_184_000), "16Gi");
        assert_eq!(format_short(12_582_912_000), "12Mi");
        assert_eq!(format_short(4_000), "4");
        assert_eq!(format_short(1_500), "1500m");
        assert_eq!(format_short(0), "0");
        assert_eq!(format_short(1_073_741_824_000), "1Gi");
        assert_eq!(format_short(1_073_741_824_001), "1073741824001m");
        assert_eq!(format_short(1_048_576_000), "1Mi");
        assert_eq!(format_short(1_047_552_000), "1047552");
        assert_eq!(format_short(2_048_000), "2048");
        assert_eq!(format_short(16_393_244 * 1_024_000), "16393244Ki");
        assert_eq!(format_short(-1_073_741_824_000), "-1073741824");
    }

    /// EX-Q: the parsing half.
    #[test]
    fn ex_q_texts_become_milli_units() {
        for (text, milli) in [
            ("500m", 500),
            ("0.5", 500),
            ("1e3", 1_000_000),
            ("1Ki", 1_024_000),
            ("12Mi", 12_582_912_000),
            ("16Gi", 17_179_869_184_000),
            (".5", 500),
            ("5.", 5_000),
            ("+2", 2_000),
            ("-0", 0),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1E2", 100_000),
            ("1k", 1_000_000),
            ("1M", 1_000_000_000),
            ("1G", 1_000_000_000_000),
            ("1T", 1_000_000_000_000_000),
            ("1P", 1_000_000_000_000_000_000),
            ("1Ti", 1_099_511_627_776_000),
            ("1Pi", 1_125_899_906_842_624_000),
            ("1000000n", 1),
            ("1000u", 1),
            ("-0.0", 0),
            ("12e-1", 1_200),
            ("1e+3", 1_000_000),
        ] {
            assert_eq!(parse_demand(text), Ok(milli), "{text}");
        }
        assert_eq!(parse_demand("100u"), Ok(1), "demand rounds up");
        assert_eq!(parse_supply("100u"), Ok(0), "supply rounds down");
        assert_eq!(
            parse_demand("17179869184"),
            parse_demand("16Gi"),
            "Q-4: by value"
        );
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_by_name() {
        let problem = |text: &str| parse_demand(text).unwrap_err().problem;
        for text in [
            "", "abc", "1x", " 1", "1 ", "1.2.3", ".", "-", "1e", "1e+", "1e\u{1}", "1ki", "0x1",
            "NaN",
        ] {
            assert_eq!(problem(text), QuantityProblem::Malformed, "{text:?}");
        }
        assert_eq!(problem(&"1".repeat(65)), QuantityProblem::Malformed);
        assert_eq!(parse_demand(&"0".repeat(64)), Ok(0), "64 bytes are allowed");
        assert_eq!(problem("-0.1"), QuantityProblem::Negative);
        let most = i128::MAX.to_string();
        assert_eq!(parse_demand(&format!("{most}m")), Ok(i128::MAX));
        assert_eq!(
            problem("170141183460469231731687303715884105728m"),
            QuantityProblem::TooLarge
        );
        assert_eq!(problem("-1"), QuantityProblem::Negative);
        assert_eq!(problem("1e36"), QuantityProblem::TooLarge);
        assert_eq!(problem("1e999999999999"), QuantityProblem::TooLarge);
        assert_eq!(parse_demand("1e-999999999999"), Ok(1));
        assert_eq!(
            parse_demand("1x").unwrap_err().to_string(),
            "quantity \"1x\" is malformed (Q-1)"
        );
    }

    #[test]
    fn supply_reads_negative_as_zero_and_saturates() {
        assert_eq!(parse_supply("-3"), Ok(0));
        assert_eq!(parse_supply("9999999999E"), Ok(i64::MAX));
        assert_eq!(parse_supply("9223372036854775806m"), Ok(i64::MAX - 1));
        assert_eq!(parse_supply("9223372036854775808m"), Ok(i64::MAX));
        assert_eq!(parse_supply("3"), Ok(3000));
        assert!(parse_supply("abc").is_err());
    }

    /// The same value by independent big-integer arithmetic: `digits × numerator / denominator`.
    fn by_big_integers(whole: &str, fraction: &str, suffix: &str) -> (BigInt, bool) {
        let pow = |base: u32, exponent: u32| BigInt::from(base).pow(exponent);
        let (numerator, denominator) = match suffix {
            "n" => (pow(1, 1), pow(10, 9)),
            "u" => (pow(1, 1), pow(10, 6)),
            "m" => (pow(1, 1), pow(10, 3)),
            "" => (pow(1, 1), pow(1, 1)),
            "k" => (pow(10, 3), pow(1, 1)),
            "E" => (pow(10, 18), pow(1, 1)),
            "Ki" => (pow(2, 10), pow(1, 1)),
            "Ei" => (pow(2, 60), pow(1, 1)),
            "e5" => (pow(10, 5), pow(1, 1)),
            "E-7" => (pow(1, 1), pow(10, 7)),
            other => unreachable!("{other}"),
        };
        let digits: BigInt = format!("0{whole}{fraction}").parse().unwrap();
        let numerator = digits * numerator * 1000;
        let denominator = denominator * pow(10, fraction.len() as u32);
        let quotient = &numerator / &denominator;
        let inexact = &quotient * &denominator != numerator;
        (quotient, inexact)
    }

    proptest! {
        #[test]
        fn parsing_agrees_with_big_integers(
            whole in "[0-9]{0,24}",
            fraction in "[0-9]{0,24}",
            suffix in prop::sample::select(vec!["n", "u", "m", "", "k", "E", "Ki", "Ei", "e5", "E-7"]),
        ) {
            prop_assume!(!(whole.is_empty() && fraction.is_empty()));
            let text = format!("{whole}.{fraction}{suffix}");
            let (down, inexact) = by_big_integers(&whole, &fraction, suffix);
            let up = &down + u32::from(inexact);
            match parse_demand(&text) {
                Ok(milli) => prop_assert_eq!(BigInt::from(milli), up),
                Err(refused) => {
                    prop_assert_eq!(refused.problem, QuantityProblem::TooLarge);
                    prop_assert!(up > BigInt::from(i128::MAX));
                }
            }
            let supply = BigInt::from(parse_supply(&text).unwrap());
            prop_assert_eq!(supply, down.min(BigInt::from(i64::MAX)));
        }

        #[test]
        fn written_quantities_read_back(milli in 0..=i128::MAX) {
            prop_assert_eq!(parse_demand(&format_milli(milli)), Ok(milli));
        }

        #[test]
        fn hostile_text_never_panics(text in any::<String>()) {
            let _ = parse_demand(&text);
            let _ = parse_supply(&text);
        }
    }
}
