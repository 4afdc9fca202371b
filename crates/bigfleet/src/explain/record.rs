//! Record: an explanation as it is written down.

use super::fate_text;
use crate::table;
use bigfleet_engine as engine;
use bigfleet_model::Action;
use serde::Serialize;

/// What there is to say about one Need.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) cluster: String,
    pub(crate) need_fingerprint: String,
    pub(crate) group: String,
    /// Its position in the order in which Needs are served, counted from 1.
    pub(crate) position: usize,
    /// How many Needs there are.
    pub(crate) needs: usize,
    /// Needs that are served before it; those that hold machines it could use come first.
    pub(crate) outranked_by: Vec<Outranking>,
    pub(crate) wants: String,
    pub(crate) smallest_unit: String,
    /// For a Need that counts whole units.
    pub(crate) whole_units: Option<WholeUnits>,
    pub(crate) satisfied: bool,
    pub(crate) residual: String,
    pub(crate) unmet_reason: &'static str,
    pub(crate) parked: bool,
    pub(crate) same_domain: String,
    pub(crate) same_satisfiable: bool,
    /// Why a gang is in its domain.
    pub(crate) choice: Option<Choice>,
    pub(crate) actions: Vec<String>,
    /// The machines that preemption could take for it.
    pub(crate) victims: Option<Victims>,
    pub(crate) candidates: Vec<Candidates>,
    pub(crate) candidates_left_out: LeftOut,
}

/// What the machines of a Need come to that counts whole units.
#[derive(Debug, Serialize)]
pub(crate) struct WholeUnits {
    /// What its machines count for.
    pub(crate) counted: String,
    /// What the same machines would count for otherwise.
    pub(crate) otherwise: String,
}

/// A Need that is served before the explained one.
#[derive(Debug, Serialize)]
pub(crate) struct Outranking {
    pub(crate) need: String,
    pub(crate) by: String,
    /// How many machines it has that the explained one could use.
    pub(crate) holds: usize,
}

/// Why a gang is in its domain.
#[derive(Debug, Serialize)]
pub(crate) struct Choice {
    pub(crate) key: String,
    pub(crate) rule: &'static str,
    pub(crate) chosen: Option<String>,
    pub(crate) runner_up: Option<String>,
    pub(crate) decided_by: Option<&'static str>,
    pub(crate) domains: Vec<Domain>,
    pub(crate) domains_left_out: usize,
}

/// A domain that was considered for a gang.
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub(crate) struct Victims {
    pub(crate) weighed: Vec<Victim>,
    pub(crate) left_out: usize,
}

/// A machine that preemption could take, and whether it did.
#[derive(Debug, Serialize)]
pub(crate) struct Victim {
    pub(crate) machine: String,
    pub(crate) fate: &'static str,
    pub(crate) standing_priority: i32,
    pub(crate) score: Option<f64>,
    pub(crate) head_start: bool,
}

/// Machines of one kind and state for which the same holds.
#[derive(Debug, Serialize)]
pub(crate) struct Candidates {
    pub(crate) why: String,
    pub(crate) state: &'static str,
    pub(crate) kind: String,
    pub(crate) count: usize,
    pub(crate) machines: Vec<String>,
}

/// How much is not listed.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) groups: usize,
    pub(crate) machines: usize,
}

impl From<engine::Explanation> for Explanation {
    fn from(explained: engine::Explanation) -> Self {
        let verdict = explained.verdict;
        let (key, row) = (verdict.need.key(), &verdict.need.row);
        Self {
            cluster: key.cluster.to_string(),
            need_fingerprint: key.fingerprint.to_string(),
            group: key.group.to_string(),
            position: explained.position,
            needs: explained.needs,
            outranked_by: explained.ahead.iter().map(Outranking::from).collect(),
            wants: table::amounts(&row.aggregate),
            smallest_unit: table::amounts(&row.min_unit),
            whole_units: explained.whole_units.map(|whole| WholeUnits {
                counted: table::amounts(&whole.counted),
                otherwise: table::amounts(&whole.otherwise),
            }),
            satisfied: verdict.satisfied,
            residual: table::amounts(&verdict.residual),
            unmet_reason: verdict.unmet_reason.text(),
            parked: verdict.parked,
            same_domain: verdict.same_domain.clone(),
            same_satisfiable: verdict.same_satisfiable,
            choice: explained.choice.map(Choice::from),
            actions: explained.actions.iter().map(action).collect(),
            victims: explained.preemption.map(Victims::from),
            candidates: explained.machines.iter().map(Candidates::from).collect(),
            candidates_left_out: LeftOut {
                groups: explained.left_out.groups,
                machines: explained.left_out.machines,
            },
        }
    }
}

fn action(action: &Action) -> String {
    let reason = action.reason.text();
    format!("{} {} ({reason})", action.kind.word(), action.machine)
}

impl From<&engine::Ahead> for Outranking {
    fn from(ahead: &engine::Ahead) -> Self {
        Self {
            need: ahead.need.to_string(),
            by: fate_text::outranks(ahead.by),
            holds: ahead.holds,
        }
    }
}

impl From<engine::Choice> for Choice {
    fn from(choice: engine::Choice) -> Self {
        Self {
            key: choice.key,
            rule: fate_text::rule(choice.rule),
            chosen: choice.chosen,
            runner_up: choice.runner_up,
            decided_by: choice.decided_by.map(fate_text::comparison),
            domains: choice.domains.into_iter().map(Domain::from).collect(),
            domains_left_out: choice.left_out,
        }
    }
}

impl From<engine::DomainWeight> for Domain {
    fn from(weighed: engine::DomainWeight) -> Self {
        Self {
            domain: weighed.domain,
            qualifies: weighed.qualifies,
            own: weighed.own,
            credited: weighed.credited,
            idle: weighed.idle,
            speculative: weighed.speculative,
            own_coverage: weighed.own_coverage,
            credit_coverage: weighed.credit_coverage,
            coverage_at_hand: weighed.coverage_at_hand,
            fill: weighed.fill,
            victims: weighed.victims,
        }
    }
}

impl From<engine::Preemption> for Victims {
    fn from(preemption: engine::Preemption) -> Self {
        let victim = |victim: engine::Victim| Victim {
            machine: victim.machine.to_string(),
            fate: fate_text::victim(victim.fate),
            standing_priority: victim.standing,
            score: victim.score,
            head_start: victim.has_head_start,
        };
        Self {
            weighed: preemption.victims.into_iter().map(victim).collect(),
            left_out: preemption.left_out,
        }
    }
}

impl From<&engine::Alike> for Candidates {
    fn from(alike: &engine::Alike) -> Self {
        let offers = table::amounts(&alike.kind.offers);
        let parts = [&alike.kind.instance_type, &alike.kind.zone, &offers];
        let parts: Vec<&str> = parts
            .into_iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        Self {
            why: fate_text::fate(&alike.fate),
            state: alike.state.word(),
            kind: parts.join(" "),
            count: alike.count,
            machines: alike.machines.iter().map(ToString::to_string).collect(),
        }
    }
}
