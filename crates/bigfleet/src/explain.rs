//! `--explain`: why a Need got what it got.
//!
//! ```text
//! fleet ──▶ engine: explanation ──▶ as a shard would answer ──▶ as its verb would write it
//! ```
//!
//! The engine explains, and the words are those of a running shard. The engine decides once more on a copy,
//! so asking cannot change the answer.

use crate::failure::Failure;
use bigfleet_engine::Explainer;
use bigfleet_model::{Decision, Fleet, Need, NeedKey};
use bigfleet_shard::explanation::{Around, causes, changes, table};
use bigfleet_wire::v1alpha1::ExplainNeedResponse;
use std::collections::BTreeSet;

/// How many Needs an error names when none has the name that was asked for.
const MOST_NAMED: usize = 10;

/// Explains every Need of that name.
pub(crate) fn explain(
    fleet: &Fleet,
    decision: &Decision,
    called: &str,
) -> Result<Vec<ExplainNeedResponse>, Failure> {
    let mut explainer = Explainer::new(fleet);
    let positions = found(fleet, &explainer, called);
    if positions.is_empty() {
        return Err(unknown(decision, called));
    }
    let explained = positions.into_iter().filter_map(|at| {
        let explained = explainer.at(at)?;
        let remedies = explainer.remedies(&explained);
        Some(ExplainNeedResponse {
            need: Some((&explained.verdict).into()),
            causes: causes(&explained, &Around::default()),
            changes: changes(fleet, &remedies),
            table: Some(table(&explained)),
            ..ExplainNeedResponse::default()
        })
    });
    Ok(explained.collect())
}

/// The positions of the Needs of that name. A gang that was merged with equal ones is found under the
/// name its cluster gave it.
fn found(fleet: &Fleet, explainer: &Explainer<'_>, called: &str) -> BTreeSet<usize> {
    let meant = |key: &NeedKey| {
        let (cluster, fingerprint, group) = (&key.cluster, &key.fingerprint, &key.group);
        let names = [
            cluster.to_string(),
            format!("{cluster}/{fingerprint}"),
            format!("{cluster}/{fingerprint}/{group}"),
            key.name(),
            format!("{cluster}/{}", key.name()),
        ];
        names.iter().any(|name| name == called)
    };
    let in_order = explainer.needs().enumerate();
    let mut positions: BTreeSet<usize> = in_order
        .filter(|(_, key)| meant(key))
        .map(|(at, _)| at)
        .collect();
    let rows = fleet.clusters.values().flat_map(|cluster| cluster.needs());
    let is_gang = |need: &&Need| need.row.profile.same_key().is_some();
    let gangs = rows.filter(is_gang).map(Need::key);
    positions.extend(gangs.filter(meant).flat_map(|key| explainer.find(&key)));
    positions
}

fn unknown(decision: &Decision, called: &str) -> Failure {
    let mut text = format!("--explain {called}: there is no such Need (what a cluster asks for)");
    let keys = decision.needs.iter().map(|verdict| verdict.need.key());
    for key in keys.take(MOST_NAMED) {
        text += &format!("\n  there is {}/{}: {key}", key.cluster, key.name());
    }
    Failure::Input(text)
}
