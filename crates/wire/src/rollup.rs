//! Roll-up: a cluster's whole demand, accepted or refused as one.
//!
//! ```text
//! rows ── size ── NT-6 ──▶ rows equal in profile and group merged (NT-3) ──▶ Rollup
//!           └───────┴──── any problem, in any row ──▶ RollupRefused, all rows
//! ```
//!
//! Half a demand would read as a withdrawal of the other half, and withdrawn demand is reclaimed.

use std::fmt;

use bigfleet_model::{ClusterId, MAX_ID_BYTES, Row, RowFacts, RowRefused, shown};

use crate::limits::{
    MAX_FINGERPRINT_BYTES, MAX_PROBLEMS, MAX_ROWS, OverLimit, check_bytes, check_count,
};
use crate::need::check_size;
use crate::v1alpha1::{CapacityNeed, ClusterCapacityNeeds};

/// An accepted roll-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// Whose demand it is: the session's cluster.
    pub cluster: ClusterId,
    /// What the operator calls it, to be echoed; may be empty.
    pub id: String,
    /// The operator's clock when it was built. Informs people; never orders anything (NT-4).
    pub built_unix_nanos: i64,
    /// The whole demand. No two rows are equal in profile and group.
    pub rows: Vec<Row>,
}

/// Why a roll-up was refused. The demand accepted before stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RollupRefused {
    /// It speaks for another cluster than the one that opened the session.
    #[error("cluster_id \"{sent}\" is not the session's \"{session}\" (NT-6)")]
    Cluster {
        /// What it says, made fit to print.
        sent: String,
        /// Who opened the session.
        session: ClusterId,
    },
    /// It holds more than it may.
    #[error(transparent)]
    Limit(#[from] OverLimit),
    /// Some rows are unusable.
    #[error("{}", Listed(.problems, *.more))]
    Rows {
        /// The first problems, in row order; never empty.
        problems: Vec<RefusedRow>,
        /// How many more there are.
        more: usize,
    },
}

/// One problem of one row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("needs[{row}]: {problem}")]
pub struct RefusedRow {
    /// The position of the row, from 0.
    pub row: usize,
    /// What is wrong with it.
    pub problem: RowProblem,
}

/// What can be wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowProblem {
    /// It holds more than it may.
    #[error(transparent)]
    Limit(#[from] OverLimit),
    /// It breaks a rule of demand.
    #[error(transparent)]
    Rule(#[from] RowRefused),
}

struct Listed<'a>(&'a [RefusedRow], usize);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        match self.1 {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl Rollup {
    /// Checks a roll-up that arrived in the session of a cluster.
    pub fn read(message: ClusterCapacityNeeds, session: &ClusterId) -> Result<Self, RollupRefused> {
        if !["", session.as_str()].contains(&message.cluster_id.as_str()) {
            return Err(RollupRefused::Cluster {
                sent: shown(&message.cluster_id),
                session: session.clone(),
            });
        }
        check_bytes("rollup_id", message.rollup_id.len(), MAX_ID_BYTES)?;
        check_count("needs", message.needs.len(), MAX_ROWS)?;
        Ok(Self {
            cluster: session.clone(),
            id: message.rollup_id,
            built_unix_nanos: message.timestamp_unix_nanos,
            rows: Row::merge(read_rows(message.needs)?).map_err(uncountable)?,
        })
    }
}

fn read_rows(needs: Vec<CapacityNeed>) -> Result<Vec<Row>, RollupRefused> {
    let mut rows = Vec::with_capacity(needs.len());
    let (mut problems, mut more) = (Vec::new(), 0);
    for (row, need) in needs.into_iter().enumerate() {
        match read_row(need) {
            Ok(read) => rows.push(read),
            Err(found) => {
                let room = MAX_PROBLEMS - problems.len();
                more += found.len().saturating_sub(room);
                let named = found.into_iter().take(room);
                problems.extend(named.map(|problem| RefusedRow { row, problem }));
            }
        }
    }
    if problems.is_empty() {
        Ok(rows)
    } else {
        Err(RollupRefused::Rows { problems, more })
    }
}

fn read_row(need: CapacityNeed) -> Result<Row, Vec<RowProblem>> {
    check_size(&need).map_err(|over| vec![over.into()])?;
    let checked = RowFacts::from(need).check();
    let row =
        checked.map_err(|found| found.into_iter().map(RowProblem::Rule).collect::<Vec<_>>())?;
    // It is persisted with every machine that serves the row, so it must fit the metadata.
    let text = row.profile.fingerprint().as_str();
    check_bytes("fingerprint", text.len(), MAX_FINGERPRINT_BYTES)
        .map_err(|over| vec![over.into()])?;
    Ok(row)
}

/// A row whose sum with its equals cannot be counted is refused before anything is acknowledged (NT-3).
fn uncountable(row: usize) -> RollupRefused {
    RollupRefused::Rows {
        problems: vec![RefusedRow {
            row,
            problem: RowRefused::Sum.into(),
        }],
        more: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MAX_VALUES;
    use crate::v1alpha1::{NodeSelectorRequirement, TopologySpread};
    use std::collections::BTreeMap;

    fn need(cpu: &str) -> CapacityNeed {
        CapacityNeed {
            aggregate_resources: BTreeMap::from([("cpu".to_owned(), cpu.to_owned())]),
            ..CapacityNeed::default()
        }
    }

    fn read(cluster_id: &str, needs: Vec<CapacityNeed>) -> Result<Rollup, String> {
        let message = ClusterCapacityNeeds {
            cluster_id: cluster_id.to_owned(),
            needs,
            ..ClusterCapacityNeeds::default()
        };
        let session = ClusterId::new("a").unwrap();
        Rollup::read(message, &session).map_err(|refused| refused.to_string())
    }

    #[test]
    fn the_session_decides_whose_demand_it_is() {
        assert_eq!(read("", vec![]).unwrap().cluster.as_str(), "a");
        assert_eq!(read("a", vec![]).unwrap().rows, []);
        assert_eq!(
            read("b\0", vec![need("1")]),
            Err("cluster_id \"b\\0\" is not the session's \"a\" (NT-6)".to_owned())
        );
    }

    /// Q-2, NT-3: each row rounds up by itself, then equal rows add up.
    #[test]
    fn equal_rows_merge_after_rounding_up() {
        let rollup = read("a", vec![need("100u"), need("100u"), need("0.5")]).unwrap();
        assert_eq!(rollup.rows.len(), 1);
        assert_eq!(rollup.rows[0].aggregate.get("cpu"), 502);
    }

    /// EX-NT2 on the wire.
    #[test]
    fn ex_nt2_one_bad_row_of_fifty_refuses_all() {
        for (at, bad, expected) in [
            (
                49,
                CapacityNeed {
                    interruption_penalty_bucket: 28,
                    ..need("1")
                },
                "needs[49]: interruption_penalty_bucket 28 is not a penalty bucket, 0 to 27 (NT-6)",
            ),
            (
                7,
                need("1x"),
                "needs[7]: aggregate_resources[\"cpu\"]: quantity \"1x\" is malformed (Q-1)",
            ),
        ] {
            let mut rows = vec![need("1"); 50];
            rows[at] = bad;
            assert_eq!(read("a", rows), Err(expected.to_owned()));
        }
    }

    #[test]
    fn every_problem_is_named_up_to_a_bound_and_the_rest_counted() {
        let requirement = |key: &str, operator| NodeSelectorRequirement {
            key: key.to_owned(),
            operator,
            values: vec![],
        };
        let bad = CapacityNeed {
            requirements: vec![
                requirement("", 1),
                requirement("rack", 0),
                requirement("z", 9),
            ],
            spread: vec![TopologySpread::default()],
            ..need("-1")
        };
        let text = read("a", vec![need("1"), bad.clone()]).unwrap_err();
        for part in [
            "needs[1]: aggregate_resources[\"cpu\"]: quantity \"-1\" is negative (Q-5)",
            "a requirement has an empty key (NT-6)",
            "requirement on \"rack\": \"OPERATOR_UNSPECIFIED\" is not an operator (NT-6)",
            "requirement on \"z\": \"9\" is not an operator (NT-6)",
            "max_skew 0 is not from 1 to",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let text = read("a", vec![bad; 1000]).unwrap_err();
        assert!(text.ends_with("; and 4984 more"), "{text}");
        assert!(text.len() < 2000);
    }

    #[test]
    fn a_sum_beyond_counting_is_refused_whole() {
        let huge = need(&"9".repeat(35));
        let text = read("a", vec![huge.clone(), huge]).unwrap_err();
        assert_eq!(
            text,
            "needs[1]: the sum of equal rows is too large to count (Q-3)"
        );
    }

    #[test]
    fn over_large_messages_are_refused_by_name() {
        let text = read("a", vec![CapacityNeed::default(); MAX_ROWS + 1]).unwrap_err();
        assert!(text.starts_with("needs has 100001 entries"), "{text}");
        let values = vec!["v".repeat(100); MAX_VALUES];
        let requirement = |key: &str| NodeSelectorRequirement {
            key: key.to_owned(),
            operator: 1,
            values: values.clone(),
        };
        let wide = CapacityNeed {
            requirements: vec![
                requirement("k"),
                NodeSelectorRequirement {
                    values: vec!["v".to_owned(); MAX_VALUES + 1],
                    ..requirement("l")
                },
            ],
            ..CapacityNeed::default()
        };
        let text = read("a", vec![wide]).unwrap_err();
        assert!(
            text.starts_with("needs[0]: requirements.values has 4097 entries"),
            "{text}"
        );
    }

    #[test]
    fn a_fingerprint_too_long_to_persist_is_refused() {
        let values = (0..100).map(|n| format!("{n}-{}", "v".repeat(4000)));
        let requirement = NodeSelectorRequirement {
            key: "k".to_owned(),
            operator: 1,
            values: values.collect(),
        };
        let long = CapacityNeed {
            requirements: vec![requirement],
            ..CapacityNeed::default()
        };
        let text = read("a", vec![long]).unwrap_err();
        assert!(text.starts_with("needs[0]: fingerprint has 40"), "{text}");
    }
}
