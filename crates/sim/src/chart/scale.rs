//! Scales: where ticks stand and what they say, and the order in which people count.

use std::cmp::Ordering;

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;

/// Distances of ticks, in seconds; beyond the last one they double.
const STEPS: [f64; 18] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
];

/// At most so many ticks after the first, or two, from zero up to the end, each with its words.
pub(super) fn times(end: f64, most: usize) -> Vec<(f64, String)> {
    let most = most.max(2) as f64;
    let known = STEPS.into_iter().find(|step| end / step <= most);
    let step = known.unwrap_or_else(|| {
        let mut step = DAY;
        while most < end / step {
            step *= 2.0;
        }
        step
    });
    let (unit, word) = match step {
        step if step < MINUTE => (1.0, "s"),
        step if step < HOUR => (MINUTE, "min"),
        step if step < DAY => (HOUR, "h"),
        _ => (DAY, "d"),
    };
    let ticks = 0..=(end / step) as u64;
    let tick = |at: u64| {
        let at = at as f64 * step;
        (at, format!("{:.0} {word}", at / unit))
    };
    ticks.map(tick).collect()
}

/// At most five whole numbers after zero, from zero up to the peak.
pub(super) fn counts(peak: f64) -> Vec<f64> {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if peak / step <= 5.0 {
            break;
        }
        step *= factor;
    }
    (0..=(peak / step) as u64)
        .map(|at| at as f64 * step)
        .collect()
}

/// Numbers inside names count as numbers: c2 comes before c10.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (ours, theirs) = (digits(one), digits(other));
        let order = match (one.chars().next(), other.chars().next()) {
            (None, None) => return Ordering::Equal,
            (Some(_), Some(_)) if 0 < ours && 0 < theirs => {
                let (mine, rest) = one.split_at(ours);
                let (yours, others) = other.split_at(theirs);
                (one, other) = (rest, others);
                let (mine, yours) = (mine.trim_start_matches('0'), yours.trim_start_matches('0'));
                mine.len().cmp(&yours.len()).then_with(|| mine.cmp(yours))
            }
            (mine, yours) => {
                one = mine.map_or("", |letter| &one[letter.len_utf8()..]);
                other = yours.map_or("", |letter| &other[letter.len_utf8()..]);
                mine.cmp(&yours)
            }
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["c10", "c2", "b", "c2-x", "c02", "c", "c10a"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["b", "c", "c2", "c02", "c2-x", "c10", "c10a"]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let said = |end, most| -> Vec<String> {
            let ticks = times(end, most).into_iter();
            ticks.map(|(_, word)| word).collect()
        };
        assert_eq!(said(80.0, 4), ["0 s", "30 s", "60 s"]);
        assert_eq!(said(2150.0, 5), ["0 min", "10 min", "20 min", "30 min"]);
        assert_eq!(said(86_400.0, 4), ["0 h", "6 h", "12 h", "18 h", "24 h"]);
        assert_eq!(
            said(40.0 * DAY, 5),
            ["0 d", "8 d", "16 d", "24 d", "32 d", "40 d"]
        );
    }

    #[test]
    fn counts_are_round_and_few() {
        assert_eq!(counts(1.0), [0.0, 1.0]);
        assert_eq!(counts(7.0), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(counts(207.0), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(counts(0.0), [0.0]);
    }
}
