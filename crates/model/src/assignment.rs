//! Assignment: which Need a machine was committed to, and on what terms (model.md §3, DC-2).
//!
//! A bound machine carries an *assignment*, echoed by the provider through `shard_metadata`; one on
//! its way (Creating, Idle, Draining) carries an *intent*, known to the shard alone.

use crate::{ClusterId, Dollars, Echoed, Fingerprint, Group, NeedKey, Price, Profile, shown};
use std::{collections::BTreeMap, fmt};

/// What a machine is worth to the Need it serves, fixed when it was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The Need's priority.
    pub priority: i32,
    /// What interrupting the workload costs.
    pub interruption: Dollars,
    /// What losing this very machine costs.
    pub reclamation: Dollars,
}

impl Terms {
    /// The terms a Need of this profile commits a machine on.
    pub fn of(profile: &Profile) -> Self {
        Self {
            priority: profile.priority(),
            interruption: profile.interruption().dollars(),
            reclamation: profile.reclamation().dollars(),
        }
    }
}

/// The commitment of a bound machine; all empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// On what terms.
    pub terms: Terms,
    /// The Need's profile text; empty for none.
    pub fingerprint: Fingerprint,
    /// The Need's gang; empty for none.
    pub group: Group,
    /// The price when the machine was committed to its cluster (RF-2); unknown reads the live one.
    pub keep_price: Option<Price>,
}

impl Assignment {
    /// The Need of this cluster the machine is committed to, if any.
    pub fn need(&self, cluster: &ClusterId) -> Option<NeedKey> {
        let (fingerprint, group) = (self.fingerprint.clone(), self.group.clone());
        let some = !fingerprint.is_empty();
        some.then(|| NeedKey {
            cluster: cluster.clone(),
            fingerprint,
            group,
        })
    }
}

/// The commitment of a machine that has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The Need it is for.
    pub need: NeedKey,
    /// On what terms.
    pub terms: Terms,
    /// The price when it was committed; unknown reads the live one.
    pub keep_price: Option<Price>,
}

const PRIORITY: &str = "bigfleet.lucy.sh/assigned-priority";
const INTERRUPTION: &str = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars";
const RECLAMATION: &str = "bigfleet.lucy.sh/assigned-reclamation-penalty-dollars";
const FINGERPRINT: &str = "bigfleet.lucy.sh/assigned-need-fingerprint";
const GROUP: &str = "bigfleet.lucy.sh/assigned-group";

/// A metadata value that was skipped because it could not be read (MD-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which key.
    pub key: &'static str,
    /// Its value, made fit to print.
    pub value: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "metadata {}: value \"{}\" is malformed and was skipped (MD-2)",
            self.key, self.value
        )
    }
}

impl Assignment {
    /// The durable form: all five keys, always (MD-1).
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let Terms {
            priority,
            interruption,
            reclamation,
        } = self.terms;
        [
            (PRIORITY, priority.to_string()),
            (INTERRUPTION, format_dollars(interruption)),
            (RECLAMATION, format_dollars(reclamation)),
            (FINGERPRINT, self.fingerprint.to_string()),
            (GROUP, self.group.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// Takes over what the provider echoed, key by key: an absent key leaves its field alone, an
    /// unknown one is ignored, a malformed one is skipped and returned (MD-2).
    pub fn read_metadata(&mut self, metadata: &Echoed) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        let mut skip = |key: &'static str, value: &str| {
            skipped.push(Skipped {
                key,
                value: shown(value),
            });
        };
        if let Some(text) = metadata.get(PRIORITY) {
            match text.parse() {
                Ok(priority) => self.terms.priority = priority,
                Err(_) => skip(PRIORITY, text),
            }
        }
        for (key, field) in [
            (INTERRUPTION, &mut self.terms.interruption),
            (RECLAMATION, &mut self.terms.reclamation),
        ] {
            if let Some(text) = metadata.get(key) {
                match text.parse().ok().and_then(Dollars::new) {
                    Some(dollars) => *field = dollars,
                    None => skip(key, text),
                }
            }
        }
        if let Some(text) = metadata.get(FINGERPRINT) {
            self.fingerprint = Fingerprint::new(text);
        }
        if let Some(text) = metadata.get(GROUP) {
            self.group = Group::new(text);
        }
        skipped
    }
}

/// Shortest digits that read back; exponent form from a million up and below a ten-thousandth, as
/// deployed readers expect.
fn format_dollars(dollars: Dollars) -> String {
    let dollars = dollars.dollars();
    if dollars.is_infinite() {
        return "+Inf".to_owned();
    }
    let scientific = format!("{dollars:e}");
    match scientific
        .split_once('e')
        .and_then(|(digits, e)| Some((digits, e.parse::<i32>().ok()?)))
    {
        Some((digits, exponent)) if dollars != 0.0 && !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => dollars.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn metadata(entries: &[(&str, &str)]) -> Echoed {
        let sorted: BTreeMap<&str, &str> = entries.iter().copied().collect();
        Echoed::new(sorted.iter().map(|(key, value)| (*key, *value)))
    }

    /// EX-MD1.
    #[test]
    fn ex_md1_a_malformed_value_does_not_void_the_others() {
        let mut assignment = Assignment::default();
        let skipped = assignment.read_metadata(&metadata(&[
            (PRIORITY, "1000"),
            (INTERRUPTION, "abc"),
            (RECLAMATION, "+Inf"),
            ("x", "y"),
        ]));
        assert_eq!(assignment.terms.priority, 1000);
        assert_eq!(assignment.terms.interruption, Dollars::ZERO);
        assert_eq!(assignment.terms.reclamation, Dollars::PINNED);
        assert_eq!(
            skipped,
            [Skipped {
                key: INTERRUPTION,
                value: "abc".to_owned()
            }]
        );
    }

    /// EX-MD2.
    #[test]
    fn ex_md2_an_empty_map_changes_nothing() {
        let terms = Terms {
            priority: 7,
            ..Terms::default()
        };
        let mut assignment = Assignment {
            terms,
            ..Assignment::default()
        };
        assert_eq!(assignment.read_metadata(&Echoed::default()), []);
        assert_eq!(assignment.terms.priority, 7);
    }

    #[test]
    fn negative_and_nan_dollars_are_malformed() {
        let mut assignment = Assignment::default();
        let hostile = metadata(&[
            (INTERRUPTION, "-1"),
            (RECLAMATION, "NaN"),
            (PRIORITY, "1.5"),
        ]);
        assert_eq!(assignment.read_metadata(&hostile).len(), 3);
        assert_eq!(assignment, Assignment::default());
    }

    #[test]
    fn dollars_are_written_as_deployed_readers_expect() {
        let text = |dollars| format_dollars(Dollars::new(dollars).unwrap());
        assert_eq!(text(0.0), "0");
        assert_eq!(text(0.5), "0.5");
        assert_eq!(text(524_288.0), "524288");
        assert_eq!(text(1_048_576.0), "1.048576e+06");
        assert_eq!(text(8_388_608.0), "8.388608e+06");
        assert_eq!(text(0.000_01), "1e-05");
        assert_eq!(text(f64::INFINITY), "+Inf");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            priority: i32,
            interruption in 0.0..f64::MAX,
            reclamation in prop_oneof![Just(f64::INFINITY), 0.0..1e9],
            fingerprint: String,
            group: String,
        ) {
            let dollars = |amount| Dollars::new(amount).unwrap();
            let (interruption, reclamation) = (dollars(interruption), dollars(reclamation));
            let written = Assignment {
                terms: Terms { priority, interruption, reclamation },
                fingerprint: Fingerprint::new(&fingerprint),
                group: Group::new(&group),
                keep_price: None,
            };
            let mut read = Assignment::default();
            prop_assert_eq!(read.read_metadata(&Echoed::from(&written.to_metadata())), vec![]);
            prop_assert_eq!(read, written);
        }

        #[test]
        fn hostile_text_never_panics_and_never_goes_unsaid(text: String) {
            let mut assignment = Assignment::default();
            let skipped = assignment.read_metadata(&metadata(&[(PRIORITY, &text)]));
            prop_assert_eq!(skipped.len(), usize::from(text.parse::<i32>().is_err()));
        }
    }
}
