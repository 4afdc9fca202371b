//! Knobs: how this cloud misbehaves. All off means a prompt, truthful cloud.

use std::f64::consts::TAU;
use std::str::FromStr;
use std::time::Duration;

use bigfleet_provider_kit::Transition;
use bigfleet_seeded::Prng;
use serde::Deserialize;

/// A text that cannot be read as what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {expected}")]
pub struct KnobsRefused {
    /// The text that was given.
    pub text: String,
    /// What would be accepted, with examples.
    pub expected: &'static str,
}

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Latency {
    /// Always the same.
    Fixed(Duration),
    /// Anything between the two.
    Uniform(Duration, Duration),
    /// Mostly about the median, sometimes much longer.
    LogNormal {
        /// Half of all cases are faster.
        median: Duration,
        /// How long the tail is; 0 is none.
        sigma: f64,
    },
}

impl Latency {
    /// No time at all.
    pub const NONE: Self = Self::Fixed(Duration::ZERO);

    /// Draws one latency.
    pub fn draw(self, random: &mut Prng) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::Uniform(least, most) => least + most.saturating_sub(least).mul_f64(random.unit()),
            Self::LogNormal { median, sigma } => {
                // A factor beyond a million is a typo, not a latency.
                median.mul_f64((sigma * normal(random)).exp().min(1e6))
            }
        }
    }
}

impl Latency {
    /// The same latency for a cloud whose time runs this much faster than the real clock.
    pub fn at_speed(self, speed: f64) -> Self {
        let faster = |time: Duration| {
            Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or(time)
        };
        match self {
            Self::Fixed(time) => Self::Fixed(faster(time)),
            Self::Uniform(least, most) => Self::Uniform(faster(least), faster(most)),
            Self::LogNormal { median, sigma } => Self::LogNormal {
                median: faster(median),
                sigma,
            },
        }
    }
}

/// From the normal distribution around 0 with deviation 1.
fn normal(random: &mut Prng) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (TAU * random.unit()).cos()
}

impl Default for Latency {
    fn default() -> Self {
        Self::NONE
    }
}

/// `250ms`, `2s`, `5m`, `1h`, and several in a row as in `1m30s`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, KnobsRefused> {
    let refused = || KnobsRefused {
        text: text.to_owned(),
        expected: "a duration like 250ms, 2s, 1m30s or 1h",
    };
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| refused());
    }
    let mut sum = 0.0;
    loop {
        let of_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = rest.find(|c| !of_number(c)).ok_or_else(refused)?;
        let (number, after) = rest.split_at(number);
        let unit = after.find(of_number).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let number: f64 = number.parse().map_err(|_| refused())?;
        sum += match unit {
            "ns" => number / 1e9,
            "us" | "µs" | "μs" => number / 1e6,
            "ms" => number / 1e3,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(refused()),
        };
        if after.is_empty() {
            return Duration::try_from_secs_f64(sum).map_err(|_| refused());
        }
        rest = after;
    }
}

impl FromStr for Latency {
    type Err = KnobsRefused;

    /// `30s`, `20s..90s`, or `lognormal 45s 0.6`.
    fn from_str(text: &str) -> Result<Self, KnobsRefused> {
        let expected = "a latency like 30s, 20s..90s or `lognormal 45s 0.6`";
        let refused = || KnobsRefused {
            text: text.to_owned(),
            expected,
        };
        if let Some((least, most)) = text.split_once("..") {
            return Ok(Self::Uniform(duration(least)?, duration(most)?));
        }
        match text
            .strip_prefix("lognormal ")
            .map(|rest| rest.split_once(' '))
        {
            None => duration(text).map(Self::Fixed),
            Some(None) => Err(refused()),
            Some(Some((median, sigma))) => {
                let sigma: f64 = sigma.trim().parse().map_err(|_| refused())?;
                Ok(Self::LogNormal {
                    median: duration(median)?,
                    sigma,
                })
            }
        }
    }
}

impl TryFrom<String> for Latency {
    type Error = KnobsRefused;

    fn try_from(text: String) -> Result<Self, KnobsRefused> {
        text.parse()
    }
}

/// One value per transition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerTransition<T> {
    /// Speculative to Idle.
    pub create: T,
    /// Idle to Configured.
    pub configure: T,
    /// Configured to Idle.
    pub drain: T,
    /// Idle to Speculative.
    pub delete: T,
}

impl<T: Copy> PerTransition<T> {
    /// The same value for every transition.
    pub fn all(value: T) -> Self {
        Self {
            create: value,
            configure: value,
            drain: value,
            delete: value,
        }
    }

    /// Applies a change to each of the four values.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> PerTransition<U> {
        PerTransition {
            create: change(self.create),
            configure: change(self.configure),
            drain: change(self.drain),
            delete: change(self.delete),
        }
    }

    /// The value for one transition.
    pub fn of(&self, kind: Transition) -> T {
        match kind {
            Transition::Create => self.create,
            Transition::Configure => self.configure,
            Transition::Drain => self.drain,
            Transition::Delete => self.delete,
        }
    }
}

/// How many hosts of a type a zone can give at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stock {
    /// The instance type, as in the catalogue.
    pub instance_type: String,
    /// In which zone; empty for all zones together.
    #[serde(default)]
    pub zone: String,
    /// Hosts that may exist at the same time.
    pub hosts: usize,
}

/// Everything that can be turned. Rates are per machine and second, probabilities per event.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// The seed of everything random.
    pub seed: u64,
    /// How long each transition takes. Drawn per operation, so completions overtake each other.
    pub latency: PerTransition<Latency>,
    /// How likely each transition fails.
    pub failure: PerTransition<f64>,
    /// How likely an attempt is turned away, to be tried again in a moment.
    pub busy: PerTransition<f64>,
    /// Where hosts run out; a create beyond it fails as retryable.
    pub stock: Vec<Stock>,
    /// How often a serving or idle machine breaks.
    pub failure_rate: f64,
    /// How often a host is gone without a word; the inventory shows it.
    pub host_loss_rate: f64,
    /// Turns a spot machine's hourly probability into interruptions: 1 is as declared.
    pub interruption_factor: f64,
    /// How long before an interruption the machine's record announces it; none is without a word.
    pub interruption_notice: Latency,
    /// How often a price moves, by up to a tenth; seen when prices are next asked for.
    pub price_change_rate: f64,
    /// How often a label changes.
    pub label_change_rate: f64,
    /// How likely List answers with an earlier answer.
    pub stale_list: f64,
    /// How likely List leaves out its second half without saying so.
    pub truncated_list: f64,
    /// How likely each machine is missing from one answer of List.
    pub flapping: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, fields};

    #[test]
    fn the_schema_says_what_the_code_reads() {
        let schema = Schema::new(include_str!("../../../docs/schema/knobs.json"));
        let page = include_str!("../../../docs/provider-fake.md");
        schema.check::<Knobs>("", page);
        schema.check::<PerTransition<Latency>>("/$defs/latencies", page);
        schema.check::<PerTransition<f64>>("/$defs/probabilities", page);
        schema.check::<Stock>("/$defs/stock", page);
        assert_eq!(fields::<PerTransition<f64>>().len(), Transition::ALL.len());
    }

    #[test]
    fn latencies_read_as_people_write_them() {
        let ms = Duration::from_millis;
        assert_eq!("250ms".parse(), Ok(Latency::Fixed(ms(250))));
        assert_eq!("1s..2.5s".parse(), Ok(Latency::Uniform(ms(1000), ms(2500))));
        let tail = Latency::LogNormal {
            median: ms(45_000),
            sigma: 0.6,
        };
        assert_eq!("lognormal 45s 0.6".parse(), Ok(tail));
        for bad in ["", "fast", "-1s", "1 fortnight", "lognormal 3s", "1s..x"] {
            assert!(bad.parse::<Latency>().is_err(), "{bad}");
        }
    }

    /// Go prints durations like these, and people paste them.
    #[test]
    fn durations_may_have_several_parts() {
        for (text, ms) in [
            ("1m30s", 90_000),
            ("1h2m3.5s", 3_723_500),
            ("2h45m", 9_900_000),
            ("1s500ms", 1500),
            ("1500µs", 1),
            ("0", 0),
            ("7", 7000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text).unwrap().as_millis(), ms, "{text}");
        }
        for bad in [
            "1m30", "m", "1m-30s", "1m 30s", "1mm", "1..2s", ".s", "inf", "nan", "-3",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_faster_cloud_takes_less_time_for_everything() {
        let fast = |text: &str| text.parse::<Latency>().unwrap().at_speed(60.0);
        assert_eq!(fast("1m"), "1s".parse().unwrap());
        assert_eq!(fast("30s..90s"), "500ms..1.5s".parse().unwrap());
        assert_eq!(
            fast("lognormal 45s 0.6"),
            "lognormal 750ms 0.6".parse().unwrap()
        );
        assert_eq!(fast("1m"), fast("1m").at_speed(0.0), "no speed, no change");
    }

    #[test]
    fn half_of_a_log_normal_is_below_its_median() {
        let mut random = Prng::new(1);
        let latency = Latency::LogNormal {
            median: Duration::from_secs(10),
            sigma: 1.0,
        };
        let below = (0..10_000).filter(|_| latency.draw(&mut random) < Duration::from_secs(10));
        assert!((4_700..5_300).contains(&below.count()));
    }
}
