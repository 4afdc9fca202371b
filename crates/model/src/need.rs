//! Needs: the demand of a cluster, row by row, and how a roll-up becomes it (model.md §8).
//!
//! ```text
//! wire rows, file rows ──▶ RowFacts ── all checks, all rows ──▶ Row ── merge, arrival ──▶ Need
//! ```
//!
//! One bad row refuses the whole roll-up: half a demand would look like a withdrawal of the rest.

use crate::{
    Amounts, Bucket, ClusterId, Dimension, Group, NeedKey, Operator, Profile, QuantityRefused,
    Requirement, Spread, Time, WhenUnsatisfiable, quantity::parse_demand, shown,
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

/// A condition as someone claims it to be.
#[derive(Clone, Debug)]
pub struct RequirementFacts {
    /// The attribute.
    pub key: String,
    /// The operator, or what was sent instead of one.
    pub operator: Result<Operator, String>,
    /// The values.
    pub values: Vec<String>,
}

/// A spread constraint as someone claims it to be.
#[derive(Clone, Debug)]
pub struct SpreadFacts {
    /// The attribute whose values are the domains.
    pub topology_key: String,
    /// The skew.
    pub max_skew: i64,
    /// What to do where it cannot be kept.
    pub when: WhenUnsatisfiable,
}

/// A row as someone claims it to be: unchecked.
#[derive(Clone, Debug, Default)]
pub struct RowFacts {
    /// Conditions.
    pub requirements: Vec<RequirementFacts>,
    /// Spread constraints.
    pub spread: Vec<SpreadFacts>,
    /// Priority.
    pub priority: i32,
    /// Wire number of the interruption penalty.
    pub interruption_bucket: i64,
    /// Wire number of the reclamation penalty.
    pub reclamation_bucket: i64,
    /// The sum of the workload, as quantity texts.
    pub aggregate: BTreeMap<String, String>,
    /// The largest single unit, as quantity texts.
    pub min_unit: BTreeMap<String, String>,
    /// The gang.
    pub group: String,
    /// Whether every unit equals `min_unit`.
    pub whole_units: bool,
}

/// One thing wrong with a row (NT-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowRefused {
    /// This field's bucket is outside 0..=27.
    Bucket(&'static str, i64),
    /// This field has an unusable quantity for this resource.
    Quantity(&'static str, String, QuantityRefused),
    /// This field has a resource without a usable name.
    Resource(&'static str, String),
    /// A requirement on this key has an operator that is none.
    Operator(String, String),
    /// A requirement has an empty key.
    RequirementKey,
    /// A spread constraint has an empty topology key.
    TopologyKey,
    /// The spread constraint on this key has a skew below 1 or out of range.
    Skew(String, i64),
    /// Merged with its equals, the row asks for more than can be counted.
    Sum,
}

impl fmt::Display for RowRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(field, value) => {
                write!(f, "{field} {value} is not a penalty bucket, 0 to 27 (NT-6)")
            }
            Self::Quantity(field, name, refused) => write!(f, "{field}[\"{name}\"]: {refused}"),
            Self::Resource(field, name) => {
                write!(f, "{field}: \"{name}\" is not a resource name (NT-6)")
            }
            Self::Operator(key, operator) => {
                write!(
                    f,
                    "requirement on \"{key}\": \"{operator}\" is not an operator (NT-6)"
                )
            }
            Self::RequirementKey => f.write_str("a requirement has an empty key (NT-6)"),
            Self::TopologyKey => f.write_str("a spread has an empty topology_key (NT-6)"),
            Self::Skew(key, skew) => {
                write!(
                    f,
                    "spread on \"{key}\": max_skew {skew} is not from 1 to 2147483647 (NT-6)"
                )
            }
            Self::Sum => f.write_str("the sum of equal rows is too large to count (Q-3)"),
        }
    }
}

impl std::error::Error for RowRefused {}

/// A checked row: what a cluster wants, not yet when it began to want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it asks of a machine.
    pub profile: Arc<Profile>,
    /// The sum of the workload.
    pub aggregate: Amounts,
    /// The largest single unit: the smallest machine that is of use.
    pub min_unit: Amounts,
    /// The gang; empty for a plain row.
    pub group: Group,
    /// Every unit equals `min_unit`, so a machine counts with the whole units it holds (RF-19). Never so
    /// without a `min_unit`.
    pub whole_units: bool,
}

impl Row {
    /// Merges rows equal in (profile, group): aggregates add up, the largest unit counts (NT-3), and what
    /// comes of it asks for whole units if all of them do, of one size (RF-19). In the order each first
    /// appears. Errs with the position of a row whose sum cannot be counted.
    pub fn merge(rows: impl IntoIterator<Item = Self>) -> Result<Vec<Self>, usize> {
        merge(rows, Self::identity, Self::absorb, Self::round_up)
    }

    fn identity(&self) -> (Arc<Profile>, Group) {
        (Arc::clone(&self.profile), self.group.clone())
    }

    fn absorb(&mut self, other: &Self) -> Option<()> {
        self.aggregate = self.aggregate.checked_add(&other.aggregate)?;
        self.whole_units &= other.whole_units && self.min_unit == other.min_unit;
        self.min_unit = self.min_unit.larger(&other.min_unit);
        Some(())
    }

    /// A row that asks for whole units asks for no part of one (RF-19). `None` if that is more than can be
    /// counted. Merged rows have been rounded.
    pub fn round_up(&mut self) -> Option<()> {
        self.whole_units &= !self.min_unit.is_zero();
        if self.whole_units {
            self.aggregate = self.aggregate.checked_round_up(&self.min_unit)?;
        }
        Some(())
    }

    /// Whether this is what it asks for once it is rounded up.
    pub fn rounds_up_to(&self, aggregate: &Amounts) -> bool {
        let rounded = || self.aggregate.checked_round_up(&self.min_unit);
        self.whole_units && rounded().as_ref() == Some(aggregate)
    }
}

impl RowFacts {
    /// The row, or everything that is wrong with it.
    pub fn check(self) -> Result<Row, Vec<RowRefused>> {
        let mut problems = Vec::new();
        let mut bucket = |field, number| {
            Bucket::from_number(number).unwrap_or_else(|| {
                problems.push(RowRefused::Bucket(field, number));
                Bucket::UNSPECIFIED
            })
        };
        let interruption = bucket("interruption_penalty_bucket", self.interruption_bucket);
        let reclamation = bucket("reclamation_penalty_bucket", self.reclamation_bucket);
        let aggregate = check_amounts("aggregate_resources", &self.aggregate, &mut problems);
        let min_unit = check_amounts("min_unit", &self.min_unit, &mut problems);
        let requirements: Vec<_> = self
            .requirements
            .into_iter()
            .filter_map(|facts| facts.check().map_err(|problem| problems.push(problem)).ok())
            .collect();
        let spread: Vec<_> = self
            .spread
            .into_iter()
            .filter_map(|facts| facts.check().map_err(|problem| problems.push(problem)).ok())
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let profile = Profile::new(
            requirements,
            spread,
            self.priority,
            interruption,
            reclamation,
        )
        .into();
        Ok(Row {
            profile,
            aggregate,
            whole_units: self.whole_units && !min_unit.is_zero(),
            min_unit,
            group: Group::new(&self.group),
        })
    }
}

impl RequirementFacts {
    fn check(self) -> Result<Requirement, RowRefused> {
        let Self {
            key,
            operator,
            values,
        } = self;
        let named = |operator: String| RowRefused::Operator(shown(&key), shown(&operator));
        let operator = operator.map_err(named)?;
        Requirement::new(key, operator, values).ok_or(RowRefused::RequirementKey)
    }
}

impl SpreadFacts {
    fn check(self) -> Result<Spread, RowRefused> {
        let Self {
            topology_key,
            max_skew,
            when,
        } = self;
        let skewed = || RowRefused::Skew(shown(&topology_key), max_skew);
        let skew = i32::try_from(max_skew)
            .ok()
            .filter(|skew| 1 <= *skew)
            .ok_or_else(skewed)?;
        Spread::new(topology_key, skew, when).ok_or(RowRefused::TopologyKey)
    }
}

fn check_amounts(
    field: &'static str,
    texts: &BTreeMap<String, String>,
    problems: &mut Vec<RowRefused>,
) -> Amounts {
    let mut entries = Vec::with_capacity(texts.len());
    for (name, text) in texts {
        match (Dimension::new(name), parse_demand(text)) {
            (Err(_), _) => problems.push(RowRefused::Resource(field, shown(name))),
            (Ok(_), Err(refused)) => {
                problems.push(RowRefused::Quantity(field, shown(name), refused));
            }
            (Ok(dimension), Ok(milli)) => entries.push((dimension, milli)),
        }
    }
    Amounts::from_entries(entries)
}

/// A row of a cluster's demand (NT-1). There is no machine count: that is an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The cluster that asks.
    pub cluster: ClusterId,
    /// What it asks for, and how much of it.
    pub row: Row,
    /// When the shard first saw it (NT-4), if that is stated.
    pub arrival: Option<Time>,
    /// Whether it waits before trying to acquire again (engine.md §15). Counts on gangs only.
    pub parked: bool,
}

impl Need {
    /// Its identity.
    pub fn key(&self) -> NeedKey {
        NeedKey {
            cluster: self.cluster.clone(),
            fingerprint: self.row.profile.fingerprint().clone(),
            group: self.row.group.clone(),
        }
    }

    /// Merges Needs equal in (cluster, profile, group) as [`Row::merge`] does: the earliest stated arrival
    /// stays, parked if one is (NT-7).
    pub(crate) fn merge(needs: impl IntoIterator<Item = Self>) -> Result<Vec<Self>, usize> {
        merge(
            needs,
            |need| (need.cluster.clone(), need.row.identity()),
            Self::absorb,
            |need| need.row.round_up(),
        )
    }

    fn absorb(&mut self, other: &Self) -> Option<()> {
        self.row.absorb(&other.row)?;
        self.arrival = Time::earliest(self.arrival, other.arrival);
        self.parked |= other.parked;
        Some(())
    }
}

/// Has the first of equals absorb the others, in the order each first appears, and finishes each. Errs with
/// the position of one that cannot be absorbed, or of the first of those that cannot be finished.
fn merge<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    identity: impl Fn(&T) -> K,
    absorb: impl Fn(&mut T, &T) -> Option<()>,
    finish: impl Fn(&mut T) -> Option<()>,
) -> Result<Vec<T>, usize> {
    let mut merged: Vec<T> = Vec::new();
    let mut first_at = Vec::new();
    let mut position = BTreeMap::new();
    for (at, item) in items.into_iter().enumerate() {
        match position.entry(identity(&item)) {
            Entry::Vacant(first) => {
                first.insert(merged.len());
                merged.push(item);
                first_at.push(at);
            }
            Entry::Occupied(first) => absorb(&mut merged[*first.get()], &item).ok_or(at)?,
        }
    }
    for (item, at) in merged.iter_mut().zip(first_at) {
        finish(item).ok_or(at)?;
    }
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> ClusterId {
        ClusterId::new(name).unwrap()
    }

    fn row(priority: i32, cpu: &str) -> RowFacts {
        let aggregate = BTreeMap::from([("cpu".to_owned(), cpu.to_owned())]);
        let min_unit = aggregate.clone();
        let (interruption_bucket, reclamation_bucket) = (1, 1);
        RowFacts {
            priority,
            interruption_bucket,
            reclamation_bucket,
            aggregate,
            min_unit,
            ..RowFacts::default()
        }
    }

    fn need(row: RowFacts, arrival: Option<i64>, parked: bool) -> Need {
        Need {
            cluster: cluster("a"),
            row: row.check().unwrap(),
            arrival: arrival.map(Time::from_nanos),
            parked,
        }
    }

    /// EX-NT2.
    #[test]
    fn ex_nt2_one_bad_row_refuses_all_and_names_itself() {
        let bad_bucket = RowFacts {
            interruption_bucket: 28,
            ..row(1, "1")
        };
        assert_eq!(
            bad_bucket.check().unwrap_err()[0].to_string(),
            "interruption_penalty_bucket 28 is not a penalty bucket, 0 to 27 (NT-6)"
        );
        assert_eq!(
            row(1, "1x").check().unwrap_err()[0].to_string(),
            "aggregate_resources[\"cpu\"]: quantity \"1x\" is malformed (Q-1)"
        );
    }

    #[test]
    fn a_skew_is_from_one_to_the_largest_the_wire_has() {
        let with = |max_skew| {
            let spread = SpreadFacts {
                topology_key: "zone".to_owned(),
                max_skew,
                when: WhenUnsatisfiable::DoNotSchedule,
            };
            let facts = RowFacts {
                spread: vec![spread],
                ..row(1, "1")
            };
            facts.check()
        };
        for skew in [1, 2_147_483_647] {
            let row = with(skew).unwrap();
            assert_eq!(i64::from(row.profile.spread()[0].max_skew()), skew);
        }
        for skew in [0, -1, 2_147_483_648] {
            let refused = vec![RowRefused::Skew("zone".to_owned(), skew)];
            assert_eq!(with(skew), Err(refused));
        }
    }

    #[test]
    fn all_problems_of_a_row_are_named() {
        let requirement = |key: &str, operator| RequirementFacts {
            key: key.to_owned(),
            operator,
            values: vec![],
        };
        let spread = |key: &str, max_skew| SpreadFacts {
            topology_key: key.to_owned(),
            max_skew,
            when: WhenUnsatisfiable::DoNotSchedule,
        };
        let facts = RowFacts {
            reclamation_bucket: -1,
            requirements: vec![
                requirement("", Ok(Operator::In)),
                requirement("rack", Err("Unspecified".to_owned())),
            ],
            spread: vec![spread("", 1), spread("zone", 0)],
            aggregate: BTreeMap::from([(String::new(), "1".to_owned())]),
            ..row(1, "-1")
        };
        assert_eq!(facts.check().unwrap_err().len(), 7);
    }

    /// NT-3, NT-7.
    #[test]
    fn equal_rows_merge_in_the_order_each_first_appears() {
        let gang = RowFacts {
            group: "g1".to_owned(),
            ..row(1, "8")
        };
        let elsewhere = Need {
            cluster: cluster("b"),
            ..need(row(1, "1"), Some(1), false)
        };
        let merged = Need::merge([
            need(row(1, "1"), None, false),
            need(row(2, "1"), Some(9), false),
            need(gang, Some(9), false),
            elsewhere,
            need(row(1, "2500m"), Some(7), true),
            need(row(1, "2"), Some(8), false),
        ])
        .unwrap();
        let keys: Vec<_> = merged
            .iter()
            .map(|need| (need.row.profile.priority(), need.row.group.as_str()))
            .collect();
        assert_eq!(keys, [(1, ""), (2, ""), (1, "g1"), (1, "")]);
        let [sum, other, _, elsewhere] = &merged[..] else {
            panic!("four Needs");
        };
        assert_eq!(sum.row.aggregate.get("cpu"), 5500);
        assert_eq!(sum.row.min_unit.get("cpu"), 2500);
        assert_eq!(sum.arrival, Some(Time::from_nanos(7)));
        assert!(sum.parked);
        assert_eq!(
            (other.arrival, other.parked),
            (Some(Time::from_nanos(9)), false)
        );
        assert_eq!(elsewhere.cluster, cluster("b"));
    }

    /// EX-NT4, RF-19: rows merge before they are rounded, and only equal units stay whole.
    #[test]
    fn ex_nt4_rows_of_whole_units_are_rounded_up_once_they_are_merged() {
        let whole = |cpu: &str, unit: &str| {
            let min_unit = BTreeMap::from([("cpu".to_owned(), unit.to_owned())]);
            let facts = RowFacts {
                min_unit,
                whole_units: true,
                ..row(1, cpu)
            };
            facts.check().unwrap()
        };
        let merged = |rows: Vec<Row>| {
            let merged = Row::merge(rows).unwrap().remove(0);
            (merged.whole_units, merged.aggregate.get("cpu"))
        };
        assert_eq!(merged(vec![whole("10", "3")]), (true, 12_000));
        assert_eq!(merged(vec![whole("12", "3")]), (true, 12_000));
        assert_eq!(merged(vec![whole("1", "3"), whole("2", "3")]), (true, 3000));
        let other_unit = vec![whole("15", "3"), whole("15", "2"), whole("1", "3")];
        assert_eq!(merged(other_unit), (false, 31_000));
        let partly = Row {
            whole_units: false,
            ..whole("1", "3")
        };
        assert_eq!(merged(vec![whole("1", "3"), partly]), (false, 2000));
        let says_nothing = RowFacts {
            min_unit: BTreeMap::from([("cpu".to_owned(), "0".to_owned())]),
            whole_units: true,
            ..row(1, "1")
        };
        assert!(!says_nothing.check().unwrap().whole_units);
    }

    /// RF-19, Q-3: units are counted by the scarcest dimension, and a number beyond counting is refused.
    #[test]
    fn whole_units_ask_for_all_of_a_unit() {
        let amounts = |cpu: &str, memory: &str| {
            let entries = [("cpu", cpu), ("memory", memory)];
            BTreeMap::from(entries.map(|(name, text)| (name.to_owned(), text.to_owned())))
        };
        let facts = RowFacts {
            aggregate: amounts("9", "13"),
            min_unit: amounts("3", "4"),
            whole_units: true,
            ..row(1, "1")
        };
        let rounded = Row::merge([facts.check().unwrap()]).unwrap().remove(0);
        assert_eq!(rounded.aggregate.get("cpu"), 12_000);
        assert_eq!(rounded.aggregate.get("memory"), 16_000);
        let beyond = RowFacts {
            aggregate: amounts("100000000000000000000", "1"),
            min_unit: amounts("1m", "100000000000000000000"),
            whole_units: true,
            ..row(2, "1")
        };
        let rows = [row(1, "1").check().unwrap(), beyond.check().unwrap()];
        assert_eq!(Row::merge(rows), Err(1));
    }

    /// Q-3.
    #[test]
    fn a_sum_beyond_counting_names_the_row() {
        let huge = || need(row(2, "170000000000000000000000000000000000"), None, false);
        let refused = Need::merge([need(row(1, "1"), None, false), huge(), huge()]);
        assert_eq!(refused, Err(2));
        assert_eq!(Row::merge([huge().row, huge().row]), Err(1));
        assert_eq!(
            RowRefused::Sum.to_string(),
            "the sum of equal rows is too large to count (Q-3)"
        );
    }
}
