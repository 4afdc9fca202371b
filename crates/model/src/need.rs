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
use std::{collections::BTreeMap, fmt, sync::Arc};

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
    /// Whose.
    pub cluster: ClusterId,
    /// What and how much.
    pub row: Row,
    /// When the shard first saw it (NT-4); zero is "not stated".
    pub arrival: Time,
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

    /// Merges rows equal in (cluster, profile, group): aggregates add up, the largest unit counts,
    /// the earliest stated arrival stays, parked if one is (NT-3, NT-7). In the order each first
    /// appears. Errs with the position of a row whose sum cannot be counted.
    pub fn merge(needs: impl IntoIterator<Item = Self>) -> Result<Vec<Self>, usize> {
        let mut merged: Vec<Self> = Vec::new();
        let mut position = BTreeMap::new();
        for (at, need) in needs.into_iter().enumerate() {
            let Row { profile, group, .. } = &need.row;
            let identity = (need.cluster.clone(), Arc::clone(profile), group.clone());
            match position.get(&identity) {
                None => {
                    position.insert(identity, merged.len());
                    merged.push(need);
                }
                Some(first) => merged[*first].absorb(&need).ok_or(at)?,
            }
        }
        Ok(merged)
    }

    fn absorb(&mut self, other: &Self) -> Option<()> {
        self.row.aggregate = self.row.aggregate.checked_add(&other.row.aggregate)?;
        self.row.min_unit = self.row.min_unit.larger(&other.row.min_unit);
        self.arrival = self.arrival.earliest_stated(other.arrival);
        self.parked |= other.parked;
        Some(())
    }
}

/// The accepted demand of every cluster that has any.
#[derive(Clone, Debug, Default)]
pub struct NeedsTable(BTreeMap<ClusterId, Vec<Need>>);

impl NeedsTable {
    /// Replaces a cluster's whole demand (NT-2). A row that was there before keeps its arrival
    /// (NT-4). On error, which names the row, nothing changes.
    pub fn replace(
        &mut self,
        cluster: &ClusterId,
        rows: Vec<Row>,
        now: Time,
    ) -> Result<(), (usize, RowRefused)> {
        let fresh = rows.into_iter().map(|row| Need {
            cluster: cluster.clone(),
            row,
            arrival: now,
            parked: false,
        });
        let mut needs = Need::merge(fresh).map_err(|at| (at, RowRefused::Sum))?;
        let identity = |need: &Need| (Arc::clone(&need.row.profile), need.row.group.clone());
        let before = self.0.get(cluster).into_iter().flatten();
        let arrivals: BTreeMap<_, _> = before.map(|need| (identity(need), need.arrival)).collect();
        for need in &mut needs {
            need.arrival = arrivals.get(&identity(need)).copied().unwrap_or(now);
        }
        if needs.is_empty() {
            self.0.remove(cluster);
        } else {
            self.0.insert(cluster.clone(), needs);
        }
        Ok(())
    }

    /// The demand of one cluster.
    pub fn of(&self, cluster: &ClusterId) -> &[Need] {
        self.0.get(cluster).map_or(&[], Vec::as_slice)
    }

    /// All rows: priority descending, arrival, cluster (NT-5), then fingerprint and group.
    pub fn snapshot(&self) -> Vec<Need> {
        let mut needs: Vec<Need> = self.0.values().flatten().cloned().collect();
        needs.sort_by_cached_key(|need| {
            (
                std::cmp::Reverse(need.row.profile.priority()),
                need.arrival,
                need.key(),
            )
        });
        needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_seconds(seconds).unwrap()
    }

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

    fn accept(table: &mut NeedsTable, name: &str, rows: &[(i32, &str)], now: f64) {
        let rows = rows
            .iter()
            .map(|(priority, cpu)| row(*priority, cpu).check().unwrap());
        table
            .replace(&cluster(name), rows.collect(), at(now))
            .unwrap();
    }

    /// EX-NT1.
    #[test]
    fn ex_nt1_the_snapshot_has_one_order_and_replace_is_whole() {
        let mut table = NeedsTable::default();
        accept(&mut table, "z", &[(100, "1")], 2.0);
        accept(&mut table, "b", &[(100, "1")], 5.0);
        accept(&mut table, "a", &[(100, "1")], 5.0);
        accept(&mut table, "a", &[(900, "1"), (100, "1")], 9.0);
        let order = |table: &NeedsTable| {
            let short = |need: &Need| (need.row.profile.priority(), need.cluster.to_string());
            table.snapshot().iter().map(short).collect::<Vec<_>>()
        };
        let expected = [(900, "a"), (100, "z"), (100, "a"), (100, "b")];
        assert_eq!(order(&table), expected.map(|(p, c)| (p, c.to_owned())));
        accept(&mut table, "a", &[], 10.0);
        assert!(order(&table).iter().all(|(_, name)| name != "a"));
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
        let mut table = NeedsTable::default();
        accept(&mut table, "a", &[(1, "1")], 1.0);
        let huge = || {
            row(2, "170000000000000000000000000000000000")
                .check()
                .unwrap()
        };
        let refused = table.replace(&cluster("a"), vec![huge(), huge()], at(2.0));
        assert_eq!(refused, Err((1, RowRefused::Sum)));
        assert_eq!(table.of(&cluster("a")).len(), 1, "the previous rows stay");
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

    /// EX-NT3.
    #[test]
    fn ex_nt3_arrival_stays_while_the_row_does() {
        let mut table = NeedsTable::default();
        for now in [10.0, 20.0, 30.0] {
            accept(&mut table, "a", &[(1, "1")], now);
            assert_eq!(table.of(&cluster("a"))[0].arrival, at(10.0));
        }
        accept(&mut table, "a", &[], 40.0);
        accept(&mut table, "a", &[(1, "1")], 50.0);
        assert_eq!(table.of(&cluster("a"))[0].arrival, at(50.0));
    }

    /// NT-3.
    #[test]
    fn equal_rows_merge() {
        let mut table = NeedsTable::default();
        accept(&mut table, "a", &[(1, "1"), (2, "1"), (1, "2500m")], 1.0);
        let needs = table.of(&cluster("a"));
        assert_eq!(needs.len(), 2);
        assert_eq!(needs[0].row.aggregate.get("cpu"), 3500);
        assert_eq!(needs[0].row.min_unit.get("cpu"), 2500);
    }
}
