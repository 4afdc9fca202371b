//! Request: what one CapacityRequest adds to a cluster's demand.
//!
//! ```text
//! RequestSpec, texts anybody wrote ──▶ RowKey (profile, gang) + unit ── and what was not understood
//! ```
//!
//! A request is never left out for a part that is not understood (OP-19): demand that is missing looks like a
//! withdrawal, and a Pod that runs would lose its machine. What cannot be expressed is said more loosely, and counted.

use super::gang::{Gang, HOSTNAME_KEY, gang_of};
use crate::{
    limits::{
        MOST_REQUIREMENT_BYTES, MOST_REQUIREMENTS, MOST_RESOURCES, MOST_SPREADS, MOST_TEXT,
        MOST_VALUES,
    },
    objects::{LabelRule, RequestSpec},
};
use bigfleet_model::{
    Amounts, Bucket, Dimension, Operator, Profile, QuantityProblem, Requirement, Spread,
    WhenUnsatisfiable, quantity::parse_demand,
};
use std::{collections::BTreeSet, sync::Arc};

/// Something in a request that was said more loosely than it was written (OP-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degraded {
    /// An operator that is none of the four counts as `Exists`.
    Operator,
    /// A requirement, spread or resource without a name is left out.
    Name,
    /// A spread with an unknown word for what to do is left out.
    Spread,
    /// A skew below 1 counts as 1.
    Skew,
    /// An amount below zero counts as zero.
    Negative,
    /// An amount that cannot be read or counted is left out.
    Quantity,
    /// A penalty that cannot be read costs nothing.
    Penalty,
    /// What is beyond a limit of the contract is left out, or counts as `Exists`.
    TooMuch,
}

impl Degraded {
    /// Every cause.
    pub const ALL: [Self; 8] = [
        Self::Operator,
        Self::Name,
        Self::Spread,
        Self::Skew,
        Self::Negative,
        Self::Quantity,
        Self::Penalty,
        Self::TooMuch,
    ];

    /// The cause as a sentence for whoever wrote the request.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Operator => {
                "an operator is not In, NotIn, Exists or DoesNotExist; it is read as Exists"
            }
            Self::Name => "a requirement, spread or resource has no name and is left out",
            Self::Spread => "a spread's whenUnsatisfiable is unknown; the spread is left out",
            Self::Skew => "a spread's maxSkew is below 1 and is read as 1",
            Self::Negative => "an amount is below zero and is read as zero",
            Self::Quantity => "an amount cannot be read and is left out",
            Self::Penalty => "a penalty cannot be read and counts as nothing",
            Self::TooMuch => "a part is longer than can be sent and is said more loosely",
        }
    }
}

/// What rows of demand add up under, before classes: a profile, and a gang where there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) profile: Arc<Profile>,
    pub(crate) gang: Gang,
}

/// A request, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) row: RowKey,
    pub(crate) unit: Amounts,
    pub(crate) degraded: BTreeSet<Degraded>,
}

/// What a request of this namespace asks for.
pub(crate) fn understand(namespace: &str, spec: &RequestSpec) -> Asked {
    let mut degraded = BTreeSet::new();
    let unit = amounts(spec, &mut degraded);
    let mut requirements = requirements(&spec.requirements, &mut degraded);
    let spread = spreads(spec, &mut degraded);
    let gang = gang_of(namespace, spec.co_location.as_ref());
    if let Gang::Domain { key, .. } = &gang {
        let is_same = |r: &Requirement| r.key() == key && r.operator() == Operator::Same;
        if !requirements.iter().any(is_same) {
            requirements.extend(Requirement::new(key.clone(), Operator::Same, Vec::new()));
        }
    }
    let interruption = bucket(spec.interruption_penalty.as_deref(), &mut degraded);
    let reclamation = bucket(spec.reclamation_penalty.as_deref(), &mut degraded);
    let profile = Profile::new(
        requirements,
        spread,
        spec.priority,
        interruption,
        reclamation,
    )
    .into();
    Asked {
        row: RowKey { profile, gang },
        unit,
        degraded,
    }
}

fn amounts(spec: &RequestSpec, degraded: &mut BTreeSet<Degraded>) -> Amounts {
    if MOST_RESOURCES < spec.resources.len() {
        degraded.insert(Degraded::TooMuch);
    }
    let mut entries = Vec::new();
    for (name, text) in spec.resources.iter().take(MOST_RESOURCES) {
        let Ok(dimension) = Dimension::new(name) else {
            degraded.insert(Degraded::Name);
            continue;
        };
        match parse_demand(text) {
            Ok(milli) if milli <= MOST_MILLI => entries.push((dimension, milli)),
            Err(refused) if refused.problem == QuantityProblem::Negative => {
                degraded.insert(Degraded::Negative);
            }
            Ok(_) | Err(_) => {
                degraded.insert(Degraded::Quantity);
            }
        }
    }
    Amounts::from_entries(entries)
}

/// An exa-unit: no Pod asks for as much, and millions of them can still be added up.
const MOST_MILLI: i128 = 1_000_000_000_000_000_000_000;

fn requirements(rules: &[LabelRule], degraded: &mut BTreeSet<Degraded>) -> Vec<Requirement> {
    if MOST_REQUIREMENTS <= rules.len() {
        degraded.insert(Degraded::TooMuch); // one place is kept for Same
    }
    let mut bytes = 0;
    let mut understood = Vec::new();
    for rule in rules.iter().take(MOST_REQUIREMENTS - 1) {
        let (mut operator, mut values) = match rule.operator.as_str() {
            "In" => (Operator::In, rule.values.clone()),
            "NotIn" => (Operator::NotIn, rule.values.clone()),
            "Exists" => (Operator::Exists, Vec::new()),
            "DoesNotExist" => (Operator::DoesNotExist, Vec::new()),
            _ => {
                degraded.insert(Degraded::Operator);
                (Operator::Exists, Vec::new())
            }
        };
        if rule.key.is_empty() {
            degraded.insert(Degraded::Name);
            continue;
        }
        if MOST_TEXT < rule.key.len() {
            degraded.insert(Degraded::TooMuch);
            continue;
        }
        let length: usize = values.iter().map(|value| value.len() + 1).sum();
        let is_long = values.iter().any(|value| MOST_TEXT < value.len());
        if is_long || MOST_VALUES < values.len() || MOST_REQUIREMENT_BYTES < bytes + length {
            degraded.insert(Degraded::TooMuch);
            (operator, values) = looser(operator);
        } else {
            bytes += length;
        }
        understood.extend(Requirement::new(rule.key.clone(), operator, values));
    }
    understood
}

/// What holds for every machine the longer condition accepts: a label among too many values is there, and one that is
/// not among them may be absent, for which `NotIn` no value stands.
fn looser(operator: Operator) -> (Operator, Vec<String>) {
    match operator {
        Operator::NotIn => (Operator::NotIn, Vec::new()),
        Operator::In | Operator::Exists | Operator::DoesNotExist | Operator::Same => {
            (Operator::Exists, Vec::new())
        }
    }
}

/// Hard spreads, and anti-affinity as one; on hostname neither, since no machine has that label yet and the engine would
/// never serve the row (OP-20).
fn spreads(spec: &RequestSpec, degraded: &mut BTreeSet<Degraded>) -> Vec<Spread> {
    let mut spreads = Vec::new();
    for rule in &spec.topology_spread {
        match rule.when_unsatisfiable.as_str() {
            "DoNotSchedule" => {}
            "ScheduleAnyway" => continue,
            _ => {
                degraded.insert(Degraded::Spread);
                continue;
            }
        }
        if rule.max_skew < 1 {
            degraded.insert(Degraded::Skew);
        }
        spreads.push((rule.topology_key.as_str(), rule.max_skew.max(1)));
    }
    let apart = spec.anti_affinity.iter();
    spreads.extend(apart.map(|term| (term.topology_key.as_str(), 1)));
    let mut kept = Vec::new();
    for (key, skew) in spreads {
        if key == HOSTNAME_KEY {
            continue;
        }
        let fits = key.len() <= MOST_TEXT && kept.len() < MOST_SPREADS;
        let hard = WhenUnsatisfiable::DoNotSchedule;
        match Spread::new(key.to_owned(), skew, hard) {
            None => {
                degraded.insert(Degraded::Name);
            }
            Some(_) if !fits => {
                degraded.insert(Degraded::TooMuch);
            }
            Some(spread) => kept.push(spread),
        }
    }
    kept
}

/// An absent penalty is the bucket of "0": two rows that cost the same add up (OP-19).
fn bucket(penalty: Option<&str>, degraded: &mut BTreeSet<Degraded>) -> Bucket {
    let Some(text) = penalty else {
        return Bucket::ZERO;
    };
    match parse_demand(text) {
        Ok(milli) => Bucket::of(milli as f64 / 1000.0),
        Err(refused) if refused.problem == QuantityProblem::TooLarge => Bucket::PINNED,
        Err(refused) => {
            if refused.problem == QuantityProblem::Malformed {
                degraded.insert(Degraded::Penalty);
            }
            Bucket::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{PeerTerm, SpreadRule};

    fn rule(key: &str, operator: &str, values: &[&str]) -> LabelRule {
        LabelRule {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }
    }

    fn asked(spec: RequestSpec) -> (String, BTreeSet<Degraded>) {
        let asked = understand("ns", &spec);
        let text = asked.row.profile.fingerprint().as_str().to_owned();
        (text, asked.degraded)
    }

    /// OP-19: whatever a schema lets through is demand.
    #[test]
    fn what_is_not_understood_is_said_more_loosely() {
        let spec = RequestSpec {
            requirements: vec![
                rule("zone", "In", &["b", "a"]),
                rule("cores", "Gt", &["4"]),
                rule("", "Exists", &[]),
            ],
            resources: [("cpu", "-1"), ("memory", "lots"), ("", "1"), ("gpu", "2")]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into(),
            topology_spread: vec![
                SpreadRule {
                    topology_key: "zone".to_owned(),
                    max_skew: -3,
                    when_unsatisfiable: "DoNotSchedule".to_owned(),
                },
                SpreadRule {
                    topology_key: "zone".to_owned(),
                    max_skew: 1,
                    when_unsatisfiable: "Perhaps".to_owned(),
                },
            ],
            interruption_penalty: Some("much".to_owned()),
            ..RequestSpec::default()
        };
        let unit = understand("ns", &spec).unit;
        assert_eq!(format!("{unit:?}"), "{\"gpu\": \"2\"}");
        let (text, degraded) = asked(spec);
        assert_eq!(
            text,
            "p=0|ipb=1|rpb=1|reqs=cores:3:;zone:1:a,b;|spr=zone:1:1;"
        );
        let all_but_one = Degraded::ALL
            .into_iter()
            .filter(|d| *d != Degraded::TooMuch);
        assert_eq!(degraded, all_but_one.collect());
    }

    #[test]
    fn penalties_round_up_and_an_absent_one_is_nothing() {
        let with = |text: Option<&str>| {
            let mut degraded = BTreeSet::new();
            bucket(text, &mut degraded).number()
        };
        let cases = [
            None,
            Some("0"),
            Some("-5"),
            Some("500m"),
            Some("0.501"),
            Some("3"),
        ];
        assert_eq!(cases.map(with), [1, 1, 1, 2, 3, 5]);
        assert_eq!(with(Some("8388609")), 27);
        assert_eq!(with(Some("1e36")), 27);
    }

    /// OP-20.
    #[test]
    fn what_the_engine_can_never_serve_is_said_otherwise() {
        let apart = |key: &str| PeerTerm {
            topology_key: key.to_owned(),
            selector: None,
        };
        let hard = |key: &str| SpreadRule {
            topology_key: key.to_owned(),
            max_skew: 2,
            when_unsatisfiable: "DoNotSchedule".to_owned(),
        };
        let spec = RequestSpec {
            topology_spread: vec![hard(HOSTNAME_KEY), hard("rack")],
            anti_affinity: vec![apart(HOSTNAME_KEY), apart("zone")],
            ..RequestSpec::default()
        };
        let (text, degraded) = asked(spec);
        assert_eq!(text, "p=0|ipb=1|rpb=1|reqs=|spr=rack:2:1;zone:1:1;");
        assert!(degraded.is_empty());
    }

    #[test]
    fn a_gang_shares_a_value_and_a_host_gang_one_machine() {
        let together = |key: &str| RequestSpec {
            co_location: Some(PeerTerm {
                topology_key: key.to_owned(),
                selector: None,
            }),
            ..RequestSpec::default()
        };
        let zone = understand("ns", &together("zone"));
        assert!(
            matches!(&zone.row.gang, Gang::Domain { group, .. } if group.as_str() == "zone\0\0ns")
        );
        assert_eq!(zone.row.profile.same_key(), Some("zone"));
        let host = understand("ns", &together(HOSTNAME_KEY));
        assert!(matches!(host.row.gang, Gang::Host(_)));
        assert_eq!(host.row.profile.same_key(), None);
        assert_eq!(understand("ns", &together("")).row.gang, Gang::None);
    }

    #[test]
    fn more_than_the_contract_carries_is_demand_all_the_same() {
        let values: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
        let long = LabelRule {
            key: "k".to_owned(),
            operator: "In".to_owned(),
            values: values.clone(),
        };
        let never = LabelRule {
            operator: "NotIn".to_owned(),
            ..long.clone()
        };
        let spec = RequestSpec {
            requirements: vec![long, never, rule(&"x".repeat(5000), "Exists", &[])],
            ..RequestSpec::default()
        };
        let (text, degraded) = asked(spec);
        assert_eq!(text, "p=0|ipb=1|rpb=1|reqs=k:2:;k:3:;|spr=");
        assert_eq!(degraded, [Degraded::TooMuch].into());
    }
}
