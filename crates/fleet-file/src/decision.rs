//! A decision as text: the same bytes for the same decision, in the order the format documents.

use crate::{lines::Lines, write::quantities};
use bigfleet_model::{
    Action, ActionKind, ClusterId, Decision, MachineId, MatchingSupply, NeedKey, Verdict,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The decision as JSON, an entry per line.
pub fn decision_json(decision: &Decision) -> String {
    let records = DecisionRecord::of(decision);
    let mut lines = Lines::new();
    lines.list("actions", &records.actions);
    lines.list("claims", &records.claims);
    lines.list("ended_intents", &records.ended_intents);
    lines.list("held", &records.held);
    lines.list("restamps", &records.restamps);
    lines.list("needs", &records.needs);
    lines.value("digest", &records.digest);
    lines.finish()
}

/// The decision as YAML.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub fn decision_yaml(decision: &Decision) -> String {
    serde_norway::to_string(&DecisionRecord::of(decision)).expect("a record is YAML")
}

#[derive(Serialize)]
struct DecisionRecord<'a> {
    actions: Vec<ActionRecord<'a>>,
    claims: Vec<ClaimRecord<'a>>,
    ended_intents: Vec<&'a str>,
    held: Vec<&'a str>,
    restamps: Vec<ClaimRecord<'a>>,
    needs: Vec<VerdictRecord<'a>>,
    digest: String,
}

impl<'a> DecisionRecord<'a> {
    fn of(decision: &'a Decision) -> Self {
        let claims = decision.claims.iter();
        let restamps = decision.restamps.iter();
        let ids = |ids: &'a [MachineId]| ids.iter().map(MachineId::as_str).collect();
        Self {
            actions: decision.actions.iter().map(ActionRecord::of).collect(),
            claims: claims
                .map(|claim| ClaimRecord::of(&claim.machine, &claim.need))
                .collect(),
            ended_intents: ids(&decision.ended_intents),
            held: ids(&decision.held),
            restamps: restamps
                .map(|to| ClaimRecord::of(&to.machine, &to.need))
                .collect(),
            needs: decision.needs.iter().map(VerdictRecord::of).collect(),
            digest: decision.digest().to_string(),
        }
    }
}

#[derive(Serialize)]
struct ActionRecord<'a> {
    kind: &'static str,
    machine: &'a str,
    cluster: &'a str,
    /// Whom a Preempt is for; the other kinds say it with `cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_cluster: Option<&'a str>,
    need_fingerprint: &'a str,
    group: &'a str,
    grace_seconds: u32,
    preemptor_priority: i32,
    reason: &'static str,
}

impl<'a> ActionRecord<'a> {
    fn of(action: &'a Action) -> Self {
        let need = action.purpose.as_ref().map(|(need, _)| need);
        let preempt = action.kind == ActionKind::Preempt;
        Self {
            kind: action.kind.word(),
            machine: action.machine.as_str(),
            cluster: action.cluster.as_ref().map_or("", ClusterId::as_str),
            for_cluster: need.filter(|_| preempt).map(|need| need.cluster.as_str()),
            need_fingerprint: need.map_or("", |need| need.fingerprint.as_str()),
            group: need.map_or("", |need| need.group.as_str()),
            grace_seconds: action.grace_seconds,
            preemptor_priority: action.preemptor_priority,
            reason: action.reason.text(),
        }
    }
}

#[derive(Serialize)]
struct ClaimRecord<'a> {
    machine: &'a str,
    cluster: &'a str,
    need_fingerprint: &'a str,
    group: &'a str,
}

impl<'a> ClaimRecord<'a> {
    fn of(machine: &'a MachineId, need: &'a NeedKey) -> Self {
        Self {
            machine: machine.as_str(),
            cluster: need.cluster.as_str(),
            need_fingerprint: need.fingerprint.as_str(),
            group: need.group.as_str(),
        }
    }
}

#[derive(Serialize)]
struct VerdictRecord<'a> {
    cluster: &'a str,
    need_fingerprint: &'a str,
    group: &'a str,
    satisfied: bool,
    residual_deficit: BTreeMap<&'a str, String>,
    claimed: u32,
    bootstrap: u32,
    provision: u32,
    same_domain: &'a str,
    same_satisfiable: bool,
    parked: bool,
    victims_found: u32,
    capacity_freed: BTreeMap<&'a str, String>,
    unmet_reason: &'static str,
    matching_supply: SupplyRecord,
}

#[derive(Serialize)]
struct SupplyRecord {
    idle: u32,
    speculative: u32,
    configured: u32,
    capped: bool,
}

impl<'a> VerdictRecord<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let row = &verdict.need.row;
        let MatchingSupply {
            idle,
            speculative,
            configured,
            capped,
        } = verdict.matching_supply;
        Self {
            cluster: verdict.need.cluster.as_str(),
            need_fingerprint: row.profile.fingerprint().as_str(),
            group: row.group.as_str(),
            satisfied: verdict.satisfied,
            residual_deficit: quantities(&verdict.residual),
            claimed: verdict.claimed,
            bootstrap: verdict.bootstrap,
            provision: verdict.provision,
            same_domain: &verdict.same_domain,
            same_satisfiable: verdict.same_satisfiable,
            parked: verdict.parked,
            victims_found: verdict.victims_found,
            capacity_freed: quantities(&verdict.capacity_freed),
            unmet_reason: verdict.unmet_reason.text(),
            matching_supply: SupplyRecord {
                idle,
                speculative,
                configured,
                capped,
            },
        }
    }
}
