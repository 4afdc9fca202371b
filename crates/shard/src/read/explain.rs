//! ExplainNeed: why one row is served as it is.
//!
//! ```text
//! copy in steps ─▶ the engine decides on it once more, and says what it weighed ─▶ steps, in words
//! ```
//!
//! The answer is about the fleet as it stands now, which the next cycle decides on: what the last one
//! committed counts as on its way.

use std::sync::Arc;

use bigfleet_engine::{Explainer, Explanation};
use bigfleet_model::{Fingerprint, Fleet, Group, MachineId, NeedKey};
use bigfleet_shard_core::{NeedView, Pool, Withheld};
use bigfleet_wire::v1alpha1::{ClaimView, ExplainNeedRequest, ExplainNeedResponse, UnmetReason};
use tonic::Status;

use super::copy::{aside, copy};
use super::machines::state;
use super::{Reads, cluster_id, explained, needs, words};

/// Claims that are named.
const MOST_CLAIMS: usize = 1000;

/// Which row, checked.
pub(super) struct Wanted(NeedKey);

impl Wanted {
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

/// What the engine says about a row of a copied fleet.
struct Answer {
    explanation: Explanation,
    claims: Vec<ClaimView>,
    claims_capped: bool,
}

fn answer(fleet: &Fleet, need: &NeedKey) -> Option<Answer> {
    let mut explainer = Explainer::new(fleet);
    let position = *explainer.find(need).first()?;
    let explanation = explainer.at(position)?;
    let key = explanation.verdict.need.key(); // of the row it folded to, if it did
    let claims = explainer.decision().claims.into_iter();
    let mine: Vec<MachineId> = claims
        .filter(|claim| claim.need == key)
        .map(|claim| claim.machine)
        .collect();
    let claims_capped = MOST_CLAIMS < mine.len();
    let machines = mine.iter().filter_map(|id| fleet.machines.get(id));
    let mut claims: Vec<_> = machines
        .map(|held| (explained::Step::of(&held.machine, &key), held))
        .collect();
    claims.sort_by(|(one, left), (other, right)| {
        one.cmp(other)
            .then_with(|| left.machine.id().cmp(right.machine.id()))
    });
    claims.truncate(MOST_CLAIMS);
    let claim = |(step, held): (explained::Step, &bigfleet_model::FleetMachine)| ClaimView {
        machine_id: held.machine.id().to_string(),
        state: state(held.machine.state()),
        step: step.name().to_owned(),
    };
    Some(Answer {
        claims: claims.into_iter().map(claim).collect(),
        claims_capped,
        explanation,
    })
}

/// What the shard knows of a row beside its verdict.
struct Beside {
    age: u32,
    parked_age: u32,
    withheld: Option<Withheld>,
    waiting: Vec<Pool>,
}

async fn beside(reads: &Reads, key: NeedKey) -> Result<Beside, Status> {
    let asked = reads.hub.ask(move |core| {
        let short = core.shortfalls().find(|short| short.need.key() == key);
        let decided = core.decided().map(Arc::as_ref);
        let mut views = decided.into_iter().flat_map(|decided| &decided.needs);
        let shown = views.find(|view| view.verdict.need.key() == key);
        let waiting = core.rails().breakers.into_iter();
        Beside {
            age: short.map_or(0, |short| short.age),
            parked_age: shown.map_or(0, |view| view.parked_age),
            withheld: core.withheld(&key.cluster),
            waiting: waiting.map(|breaker| breaker.pool).collect(),
        }
    });
    Ok(asked.await?)
}

pub(super) async fn explain(
    reads: &Reads,
    Wanted(key): Wanted,
) -> Result<ExplainNeedResponse, Status> {
    let turn = reads.copies.to_explain().await?;
    let (fleet, mut header) = copy(&reads.hub, &reads.place).await?;
    let of = key.clone();
    let answered = aside(move || answer(&fleet, &of)).await?;
    drop(turn);
    let Some(answer) = answered else {
        return Err(Status::not_found(format!(
            "no row {key} was evaluated; InspectNeeds lists those that were"
        )));
    };
    header.total = 1;
    let Answer {
        explanation,
        claims,
        claims_capped,
    } = answer;
    let beside = beside(reads, explanation.verdict.need.key()).await?;
    let view = view(&explanation, &beside);
    let reason = needs::reason(&view, &beside.waiting);
    let satisfied = view.verdict.satisfied;
    let remedies = words::remedies(reason).iter();
    Ok(ExplainNeedResponse {
        header: Some(header),
        need: Some(needs::message(&view, &beside.waiting, true)),
        summary: summary(&view, reason),
        steps: explained::steps(&explanation),
        claims,
        claims_capped,
        remedies: remedies
            .filter(|_| !satisfied)
            .map(|text| (*text).to_owned())
            .collect(),
    })
}

fn view(explanation: &Explanation, beside: &Beside) -> NeedView {
    let verdict = explanation.verdict.clone();
    let short = !verdict.satisfied;
    NeedView {
        unresolved: verdict.residual.sub(&verdict.capacity_freed),
        age: if short { beside.age } else { 0 },
        parked_age: if short { beside.parked_age } else { 0 },
        withheld: beside.withheld.filter(|_| short),
        verdict,
    }
}

fn summary(view: &NeedView, reason: UnmetReason) -> String {
    let verdict = &view.verdict;
    let machines = match verdict.claimed {
        1 => "1 machine".to_owned(),
        count => format!("{count} machines"),
    };
    match verdict.satisfied {
        true => {
            let wants = words::amounts(&verdict.need.row.aggregate);
            format!("{wants} is covered by {machines}, of which {} new", {
                verdict.bootstrap + verdict.provision
            })
        }
        false => {
            let why = words::shortfall(view, reason);
            format!("{machines} count for it and it is {why}")
        }
    }
}
