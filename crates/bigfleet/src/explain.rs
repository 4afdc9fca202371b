//! `--explain`: why a Need got what it got.
//!
//! ```text
//! fleet, decision ──▶ position in the order · what outranks it · every machine, and why not
//! ```
//!
//! Reads what was decided and decides nothing, so asking cannot change the answer.

mod candidates;
mod text;

pub(crate) use text::text;

use crate::{failure::Failure, table};
use bigfleet_model::{Decision, Fleet, Group, Need, NeedKey, Verdict};
use candidates::{Candidates, candidates};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Display};

/// How many of the Needs that come first are named.
const MOST_AHEAD: usize = 10;

/// What there is to say about one Need.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    cluster: String,
    need_fingerprint: String,
    group: String,
    /// Its turn, counted from 1.
    position: usize,
    /// How many have one.
    needs: usize,
    /// The first of those whose turn is earlier, and why.
    outranked_by: Vec<Outranking>,
    wants: String,
    smallest_unit: String,
    satisfied: bool,
    residual: String,
    unmet_reason: &'static str,
    parked: bool,
    same_domain: String,
    same_satisfiable: bool,
    domains: Vec<Domain>,
    actions: Vec<String>,
    candidates: Vec<Candidates>,
}

/// A Need whose turn is earlier.
#[derive(Debug, Serialize)]
struct Outranking {
    need: String,
    by: String,
}

/// A domain that a gang was weighed against.
#[derive(Debug, Serialize)]
struct Domain {
    domain: String,
    coverage_per_mille: u32,
    satisfiable: bool,
}

/// Explains every Need that is called so.
pub(crate) fn explain(
    fleet: &Fleet,
    decision: &Decision,
    called: &str,
) -> Result<Vec<Explanation>, Failure> {
    let positions = found(fleet, decision, called);
    if positions.is_empty() {
        return Err(unknown(decision, called));
    }
    let claims: BTreeMap<_, _> = decision
        .claims
        .iter()
        .map(|claim| (&claim.machine, &claim.need))
        .collect();
    let one = |at: usize| {
        let verdict = &decision.needs[at];
        let (need, key) = (&*verdict.need, verdict.need.key());
        Explanation {
            cluster: key.cluster.to_string(),
            need_fingerprint: key.fingerprint.to_string(),
            group: key.group.to_string(),
            position: at + 1,
            needs: decision.needs.len(),
            outranked_by: outranked_by(need, &decision.needs[..at]),
            wants: table::amounts(&need.row.aggregate),
            smallest_unit: table::amounts(&need.row.min_unit),
            satisfied: verdict.satisfied,
            residual: table::amounts(&verdict.residual),
            unmet_reason: verdict.unmet_reason.text(),
            parked: verdict.parked,
            same_domain: verdict.same_domain.clone(),
            same_satisfiable: verdict.same_satisfiable,
            domains: domains(verdict),
            actions: actions(decision, &key),
            candidates: candidates(fleet, decision, &claims, verdict),
        }
    };
    Ok(positions.into_iter().map(one).collect())
}

/// The verdicts meant. A gang that folded is found under the name its cluster gave it.
fn found(fleet: &Fleet, decision: &Decision, called: &str) -> Vec<usize> {
    let meant = |key: &NeedKey| {
        let (cluster, fingerprint, group) = (&key.cluster, &key.fingerprint, &key.group);
        let names = [
            cluster.to_string(),
            format!("{cluster}/{fingerprint}"),
            format!("{cluster}/{fingerprint}/{group}"),
        ];
        names.iter().any(|name| name == called)
    };
    let rows = fleet.clusters.values().flat_map(|cluster| cluster.needs());
    let folded: Vec<NeedKey> = rows
        .filter(|need| need.row.profile.same_key().is_some() && meant(&need.key()))
        .map(folded_key)
        .collect();
    let keys = decision.needs.iter().map(|verdict| verdict.need.key());
    keys.enumerate()
        .filter(|(_, key)| meant(key) || folded.contains(key))
        .map(|(at, _)| at)
        .collect()
}

/// The identity of the row a gang folds to (RF-12).
fn folded_key(need: &Need) -> NeedKey {
    NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: need.row.profile.folded().fingerprint().clone(),
        group: Group::new(&format!("fold:{}", need.row.aggregate.key())),
    }
}

fn unknown(decision: &Decision, called: &str) -> Failure {
    let mut text = format!("--explain {called}: no Need is called so");
    let keys = decision.needs.iter().map(|verdict| verdict.need.key());
    for key in keys.take(MOST_AHEAD) {
        text += &format!("\n  there is {key}");
    }
    Failure::Input(text)
}

/// The first Needs of the order, and which comparison puts each ahead (O-1).
fn outranked_by(need: &Need, ahead: &[Verdict]) -> Vec<Outranking> {
    let by = |other: &Need| {
        let (theirs, ours) = (&other.row.profile, &need.row.profile);
        let pairs: [(&str, String, String); 4] = [
            (
                "priority",
                text_of(theirs.priority()),
                text_of(ours.priority()),
            ),
            (
                "interruption bucket",
                text_of(theirs.interruption().number()),
                text_of(ours.interruption().number()),
            ),
            (
                "reclamation bucket",
                text_of(theirs.reclamation().number()),
                text_of(ours.reclamation().number()),
            ),
            (
                "arrival",
                text_of(other.arrival.seconds()),
                text_of(need.arrival.seconds()),
            ),
        ];
        let decides = pairs.iter().find(|(_, theirs, ours)| theirs != ours);
        decides.map_or("name".to_owned(), |(what, theirs, ours)| {
            format!("{what} {theirs}, here {ours}")
        })
    };
    let ahead = ahead.iter().take(MOST_AHEAD);
    ahead
        .map(|verdict| Outranking {
            need: verdict.need.key().to_string(),
            by: by(&verdict.need),
        })
        .collect()
}

fn text_of(value: impl Display) -> String {
    value.to_string()
}

fn domains(verdict: &Verdict) -> Vec<Domain> {
    let domain = |weighed: &bigfleet_model::DomainCoverage| Domain {
        domain: weighed.domain.clone(),
        coverage_per_mille: weighed.coverage_per_mille,
        satisfiable: weighed.satisfiable,
    };
    verdict.same_candidates.iter().map(domain).collect()
}

fn actions(decision: &Decision, key: &NeedKey) -> Vec<String> {
    let own = decision.actions.iter().filter(|action| {
        let purpose = action.purpose.as_ref();
        purpose.is_some_and(|(need, _)| need == key)
    });
    own.map(|action| {
        let reason = action.reason.text();
        format!("{} {} ({reason})", action.kind.word(), action.machine)
    })
    .collect()
}
