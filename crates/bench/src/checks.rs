//! Checks: each promise of `docs/performance.md` beside the number that was measured.
//!
//! ```text
//! report ── checks() ──▶ [{name, value, bound, holds}] ──▶ printed after the report, judged by --gate
//! ```
//!
//! Which promises apply depends on the run: a bound that was made for one workload is only judged there
//! and on smaller ones. A number that the system does not tell has no value, and its check does not hold.

use serde::Serialize;

/// One promise, and whether this run kept it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What was measured and on which side of the bound it has to be: `…_at_most` or `…_at_least`.
    pub name: String,
    /// What was measured; `None` where the system does not tell.
    pub value: Option<f64>,
    /// What was promised.
    pub bound: f64,
    /// Whether the value is on the right side of the bound.
    pub holds: bool,
}

impl Check {
    /// The value must not be above the bound.
    pub fn at_most(what: &str, value: impl Into<Option<f64>>, bound: f64) -> Self {
        let value = value.into();
        Self {
            name: format!("{what}_at_most"),
            value,
            bound,
            holds: value.is_some_and(|value| value <= bound),
        }
    }

    /// The value must not be below the bound.
    pub fn at_least(what: &str, value: impl Into<Option<f64>>, bound: f64) -> Self {
        let value = value.into();
        Self {
            name: format!("{what}_at_least"),
            value,
            bound,
            holds: value.is_some_and(|value| bound <= value),
        }
    }
}

/// A report that can be held against what was promised.
pub trait Promises {
    /// Every promise that applies to this run.
    fn checks(&self) -> Vec<Check>;
}

/// A report, and the checks of it as its last field.
#[derive(Clone, Debug, Serialize)]
pub struct Judged<R> {
    /// What was measured.
    #[serde(flatten)]
    pub report: R,
    /// What that says about the promises.
    pub checks: Vec<Check>,
}

impl<R: Promises> Judged<R> {
    /// Judges a report.
    pub fn new(report: R) -> Self {
        let checks = report.checks();
        Self { report, checks }
    }
}

/// How many times as large as the other; `None` where that means nothing.
pub(crate) fn ratio(of: f64, to: f64) -> Option<f64> {
    (0.0 < to).then(|| crate::percentiles::rounded(of / to))
}

/// The promises a report does not keep, by name.
#[cfg(test)]
pub(crate) fn broken(report: &impl Promises) -> Vec<String> {
    let broken = report.checks().into_iter().filter(|check| !check.holds);
    broken.map(|check| check.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_itself_is_still_kept() {
        assert!(Check::at_most("time", 5.0, 5.0).holds);
        assert!(!Check::at_most("time", 5.001, 5.0).holds);
        assert!(Check::at_least("rate", 5.0, 5.0).holds);
        assert!(!Check::at_least("rate", 4.999, 5.0).holds);
    }

    #[test]
    fn what_nobody_measured_was_not_kept() {
        assert!(!Check::at_most("memory", None, 5.0).holds);
        assert!(!Check::at_least("memory", f64::NAN, 5.0).holds);
        assert_eq!(ratio(1.0, 0.0), None);
    }

    /// The shape scripts rely on: `checks` is the last field, each with these four.
    #[test]
    fn checks_follow_the_report() {
        #[derive(Serialize)]
        struct Walked {
            seconds: f64,
        }
        impl Promises for Walked {
            fn checks(&self) -> Vec<Check> {
                vec![
                    Check::at_most("seconds", self.seconds, 2.5),
                    Check::at_least("cores", None, 1.0),
                ]
            }
        }
        let text = serde_json::to_string(&Judged::new(Walked { seconds: 3.0 })).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"seconds":3.0,"checks":["#,
                r#"{"name":"seconds_at_most","value":3.0,"bound":2.5,"holds":false},"#,
                r#"{"name":"cores_at_least","value":null,"bound":1.0,"holds":false}]}"#
            )
        );
    }
}
