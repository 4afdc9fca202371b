//! What was weighed for a Need, as it is written down.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use wire::need_table;

use super::count;
use crate::enum_names;

/// What was weighed for one Need.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TableRecord {
    /// Its position in the order in which Needs are served, counted from 1.
    pub(crate) position: usize,
    /// How many Needs there are.
    pub(crate) needs: usize,
    /// Needs that are served before it; those that hold machines it could use come first.
    pub(crate) outranked_by: Vec<Outranking>,
    /// Why a gang is in its domain.
    pub(crate) choice: Option<Choice>,
    pub(crate) actions: Vec<String>,
    /// The machines that preemption could take for it.
    pub(crate) victims: Option<Victims>,
    pub(crate) candidates: Vec<Candidates>,
    pub(crate) candidates_left_out: LeftOut,
    /// For a Need that counts whole units.
    pub(crate) whole_units: Option<WholeUnits>,
}

/// What the machines of a Need come to that counts whole units.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WholeUnits {
    /// What its machines count for.
    pub(crate) counted: String,
    /// What the same machines would count for otherwise.
    pub(crate) otherwise: String,
}

/// A Need that is served before the explained one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outranking {
    pub(crate) need: String,
    pub(crate) by: String,
    /// How many machines it has that the explained one could use.
    pub(crate) holds: usize,
}

/// Why a gang is in its domain.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Choice {
    pub(crate) key: String,
    pub(crate) rule: String,
    pub(crate) chosen: Option<String>,
    pub(crate) runner_up: Option<String>,
    pub(crate) decided_by: Option<String>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) domains_left_out: usize,
}

/// A domain that was considered for a gang.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Domain {
    pub(crate) domain: String,
    pub(crate) qualifies: bool,
    pub(crate) own: u64,
    pub(crate) credited: u64,
    pub(crate) idle: u64,
    pub(crate) speculative: u64,
    pub(crate) own_coverage: f64,
    pub(crate) credit_coverage: f64,
    pub(crate) coverage_at_hand: f64,
    pub(crate) fill: f64,
    pub(crate) victims: Option<usize>,
}

/// The machines that preemption could take.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Victims {
    pub(crate) weighed: Vec<Victim>,
    pub(crate) left_out: usize,
}

/// A machine that preemption could take, and whether it did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Victim {
    pub(crate) machine: String,
    pub(crate) fate: String,
    pub(crate) standing_priority: i32,
    pub(crate) score: Option<f64>,
    pub(crate) head_start: bool,
}

/// Machines of one kind and state for which the same holds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Candidates {
    pub(crate) why: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) count: usize,
    pub(crate) machines: Vec<String>,
}

/// How much is not listed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) groups: usize,
    pub(crate) machines: usize,
}

fn whole(number: i32) -> usize {
    count(number) as usize
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl From<&wire::NeedTable> for TableRecord {
    fn from(table: &wire::NeedTable) -> Self {
        let victims = Victims {
            weighed: table.victims.iter().map(Into::into).collect(),
            left_out: whole(table.victims_left_out),
        };
        Self {
            position: whole(table.position),
            needs: whole(table.needs),
            outranked_by: table.ahead.iter().map(Into::into).collect(),
            choice: table.choice.as_ref().map(Into::into),
            actions: table.actions.clone(),
            victims: Some(victims).filter(|of| !of.weighed.is_empty()),
            candidates: table.candidates.iter().map(Into::into).collect(),
            candidates_left_out: LeftOut {
                groups: whole(table.groups_left_out),
                machines: whole(table.machines_left_out),
            },
            whole_units: table.whole_units.as_ref().map(|whole| WholeUnits {
                counted: whole.counted.clone(),
                otherwise: whole.otherwise.clone(),
            }),
        }
    }
}

impl From<&need_table::Ahead> for Outranking {
    fn from(ahead: &need_table::Ahead) -> Self {
        Self {
            need: ahead.need.clone(),
            by: ahead.by.clone(),
            holds: whole(ahead.holds),
        }
    }
}

impl From<&need_table::Choice> for Choice {
    fn from(choice: &need_table::Choice) -> Self {
        Self {
            key: choice.key.clone(),
            rule: choice.rule.clone(),
            chosen: some(&choice.chosen),
            runner_up: some(&choice.runner_up),
            decided_by: some(&choice.decided_by),
            domains: choice.domains.iter().map(Into::into).collect(),
            domains_left_out: whole(choice.domains_left_out),
        }
    }
}

impl From<&need_table::Domain> for Domain {
    fn from(weighed: &need_table::Domain) -> Self {
        let machines = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            domain: weighed.domain.clone(),
            qualifies: weighed.qualifies,
            own: machines(weighed.own),
            credited: machines(weighed.credited),
            idle: machines(weighed.idle),
            speculative: machines(weighed.speculative),
            own_coverage: weighed.own_coverage,
            credit_coverage: weighed.credit_coverage,
            coverage_at_hand: weighed.coverage_at_hand,
            fill: weighed.fill,
            victims: weighed.victims.map(whole),
        }
    }
}

impl From<&need_table::Victim> for Victim {
    fn from(victim: &need_table::Victim) -> Self {
        Self {
            machine: victim.machine_id.clone(),
            fate: victim.fate.clone(),
            standing_priority: victim.standing_priority,
            score: victim.score,
            head_start: victim.head_start,
        }
    }
}

impl From<&need_table::Candidates> for Candidates {
    fn from(alike: &need_table::Candidates) -> Self {
        Self {
            why: alike.why.clone(),
            state: enum_names::state(alike.state),
            kind: alike.kind.clone(),
            count: whole(alike.count),
            machines: alike.machine_ids.clone(),
        }
    }
}
