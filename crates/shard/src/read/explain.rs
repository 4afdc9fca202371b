//! ExplainNeed: why one row is served as it is.
//!
//! ```text
//! copy in steps ─▶ the engine decides on it once more, and says what it weighed ─▶ steps, in words
//! ```
//!
//! The answer is about the fleet as it stands, or stood at most a cycle interval ago, and as the next
//! cycle would decide on it: what the last one committed counts as on its way.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_engine::{Explanation, Mark};
use bigfleet_model::{ClusterId, Fingerprint, Group, Need, NeedKey, Time};
use bigfleet_shard_core::{BackoffView, NeedView, Pool, Progress, Scope, Withheld};
use bigfleet_wire::v1alpha1::{ExplainNeedRequest, ExplainNeedResponse, UnmetReason};
use tonic::Status;

use super::explainer::Answer;
use super::{Reads, cluster_id, explained, needs, shortfall_text};
use crate::explanation::{self, Around};

/// The row that is asked about.
pub(super) struct NamedNeed(NeedKey);

impl NamedNeed {
    pub(super) fn read(request: &ExplainNeedRequest) -> Result<Self, Status> {
        if request.profile_fingerprint.is_empty() {
            let why = "profile_fingerprint is empty; it is required, as in NeedView";
            return Err(Status::invalid_argument(why));
        }
        Ok(Self(NeedKey {
            cluster: cluster_id(&request.cluster_id)?,
            fingerprint: Fingerprint::new(&request.profile_fingerprint),
            group: Group::new(&request.group),
        }))
    }
}

/// What the shard knows of a row beside its verdict.
struct Beside {
    age: u32,
    parked_age: u32,
    withheld: Option<Withheld>,
    trouble: Option<BackoffView>,
    waiting: Vec<Pool>,
    progress: Progress,
}

async fn beside(reads: &Reads, need: &Need) -> Result<Beside, Status> {
    let (key, wants) = (need.key(), need.row.aggregate.clone());
    let asked = {
        let key = key.clone();
        reads.hub.ask(move |core| {
            let age = core.shortfall(&key).map_or(0, |short| short.age);
            let breakers = core.rails().breakers;
            (
                age,
                core.withheld(&key.cluster),
                core.join_trouble(&key.cluster),
                breakers,
                core.decided().cloned(),
                core.progress(&key, &wants).0,
            )
        })
    };
    let (age, withheld, trouble, breakers, decided, progress) = asked.await?;
    // Tens of thousands of verdicts are looked through here and not on the core's thread.
    let mut views = decided.iter().flat_map(|decided| &decided.needs);
    let view = views.find(|view| view.verdict.need.key() == key);
    Ok(Beside {
        age,
        parked_age: view.map_or(0, |view| view.parked_age),
        withheld,
        trouble: trouble.filter(|_| withheld == Some(Withheld::BootstrapBackoff)),
        waiting: breakers.into_iter().map(|one| one.pool).collect(),
        progress,
    })
}

pub(super) async fn explain(
    reads: &Reads,
    NamedNeed(key): NamedNeed,
) -> Result<ExplainNeedResponse, Status> {
    let explained = reads.explainers.explain(&reads.hub, &reads.info, &key);
    let Answer {
        mut header,
        explanation,
        claims,
        claims_capped,
        changes,
    } = explained.await?;
    let beside = beside(reads, &explanation.verdict.need).await?;
    let view = view(&explanation, &beside);
    let reason = needs::reason(&view, &beside.waiting);
    let satisfied = view.verdict.satisfied;
    let now = reads.info.now();
    let (around, troubles) = around(reads, &beside).await?;
    header.troubles = troubles; // of now, and not of when the copy was made
    let advice = shortfall_text::remedies(reason).iter();
    let advice = advice.map(|text| (*text).to_owned());
    let helps = changes
        .iter()
        .filter(|change| change.mark != Mark::NoUse.word());
    let helps = helps.map(|change| format!("{} ({})", change.text, change.mark));
    Ok(ExplainNeedResponse {
        header: Some(header),
        need: Some(needs::message(
            &view,
            &beside.progress,
            &beside.waiting,
            true,
            now,
        )),
        summary: summary(&view, &beside.progress, reason, now),
        steps: explained::steps(&explanation),
        claims,
        claims_capped,
        remedies: advice.chain(helps).filter(|_| !satisfied).collect(),
        causes: own_trouble(&around, &explanation)
            .chain(explanation::causes(&explanation, &around))
            .collect(),
        changes,
        table: Some(explanation::table(&explanation)),
    })
}

/// What the shard knows of clusters that may hold machines and of pools, and what is wrong with all of it.
async fn around(reads: &Reads, beside: &Beside) -> Result<(Around, Vec<String>), Status> {
    let info = Arc::clone(&reads.info);
    let asked = reads.hub.ask(move |core| {
        let rails = core.rails();
        let clusters = core.clusters();
        let gone = |id: &ClusterId| core.withheld(id) == Some(Withheld::NoOperatorSession);
        let gone: BTreeSet<ClusterId> = clusters.into_iter().filter(gone).collect();
        (gone, rails, info.troubles(core))
    });
    let (gone, rails, troubles) = asked.await?;
    let now = reads.info.now();
    let paused = rails.pauses.iter().filter_map(|pause| match &pause.scope {
        Scope::Cluster(cluster) => Some(cluster.clone()),
        Scope::All | Scope::Provider(_) => None,
    });
    let around = Around {
        gone,
        quarantined: rails.held.iter().map(|held| held.cluster.clone()).collect(),
        paused: paused.collect(),
        withheld: beside.withheld.map(|why| match &beside.trouble {
            Some(trouble) => format!("{}: {}", why.words(), shortfall_text::stuck(trouble)),
            None => why.words().to_owned(),
        }),
        breakers: rails
            .breakers
            .iter()
            .map(|one| shortfall_text::breaker(one, now))
            .collect(),
    };
    Ok((around, troubles))
}

/// What is wrong with the Need's own cluster, whether it is served or not: it may not ask for this any more.
fn own_trouble(around: &Around, explanation: &Explanation) -> impl Iterator<Item = String> {
    let cluster = &explanation.verdict.need.cluster;
    let is_held = around.quarantined.contains(cluster);
    let said = "its last roll-up is held, so this is what it asked for before; `bigfleet get rails` says why";
    is_held.then(|| said.to_owned()).into_iter()
}

fn view(explanation: &Explanation, beside: &Beside) -> NeedView {
    let verdict = explanation.verdict.clone();
    let short = !verdict.satisfied;
    NeedView {
        unresolved: verdict.residual.sub(&verdict.capacity_freed),
        age: if short { beside.age } else { 0 },
        parked_age: if short { beside.parked_age } else { 0 },
        withheld: beside.withheld.filter(|_| short),
        trouble: beside.trouble.clone().filter(|_| short),
        verdict,
    }
}

fn summary(view: &NeedView, progress: &Progress, reason: UnmetReason, now: Time) -> String {
    let wants = shortfall_text::amounts(&view.verdict.need.row.aggregate);
    if progress.is_served() {
        return format!("all of {wants} is served");
    }
    let serving = shortfall_text::amounts(&progress.serving);
    let status = shortfall_text::status(view, progress, reason, now);
    format!("of {wants}, {serving} is served; {status}")
}
