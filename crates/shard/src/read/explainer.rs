//! The explainer: one copy of the fleet, loaded into an engine once, for everybody who asks why.
//!
//! ```text
//! question ─▶ a copy at most one cycle interval old? ─▶ its thread answers
//!                 └─ no ─▶ copy in steps ─▶ a thread loads it ─▶ the same thread answers
//! ```
//!
//! Whoever asks why one Need is short usually asks about the next one, too, and copying and loading a
//! large fleet takes seconds. So the loaded copy stays for a cycle interval: as long as the verdicts of a
//! cycle would. A row that is not in it may be newer than the copy; only a copy made for the question
//! itself can say that there is no such row.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use bigfleet_engine::{Explainer, Explanation};
use bigfleet_model::{Fleet, FleetMachine, MachineId, NeedKey, Time};
use bigfleet_wire::v1alpha1::{ClaimView, InspectHeader, NeedChange};
use tokio::sync::{Mutex, oneshot};
use tonic::Status;

use super::ShardInfo;
use super::copy::copy;
use super::explained::ClaimOrigin;
use super::machines::state;
use crate::explanation;
use crate::hash_key::draw_hash_key;
use crate::hub::Hub;

/// How long a loaded copy that nobody asks stays in memory.
const KEPT_IDLE: Duration = Duration::from_secs(10);
/// Claims that an answer names.
const MOST_CLAIMS: usize = 1000;

/// What the engine says about a row of a copied fleet.
#[derive(Debug)]
pub(super) struct Answer {
    /// What the copy was taken from.
    pub(super) header: InspectHeader,
    pub(super) explanation: Explanation,
    pub(super) claims: Vec<ClaimView>,
    pub(super) claims_capped: bool,
    /// Edits that were tried on the copy.
    pub(super) changes: Vec<NeedChange>,
}

/// Explains Needs.
#[derive(Debug, Default)]
pub(super) struct Explainers {
    /// Held while a copy is made, so that everybody else waits for that one.
    current: Mutex<Current>,
}

#[derive(Debug, Default)]
struct Current {
    loaded: Option<Loaded>,
    /// Copies made so far.
    copies: u64,
}

/// A thread that has loaded a copy of the fleet.
#[derive(Clone, Debug)]
struct Loaded {
    /// Which copy it is, counted from 1.
    number: u64,
    header: InspectHeader,
    taken_at: Time,
    questions: mpsc::Sender<Question>,
}

struct Question {
    need: NeedKey,
    reply: oneshot::Sender<Option<Reply>>,
}

type Reply = (Explanation, Vec<ClaimView>, bool, Vec<NeedChange>);

impl Explainers {
    /// Why a Need is served as it is.
    pub(super) async fn explain(
        &self,
        hub: &Hub,
        info: &Arc<ShardInfo>,
        need: &NeedKey,
    ) -> Result<Answer, Status> {
        let (kept, is_new) = self.loaded(hub, info, 0).await?;
        if let Some(answer) = kept.ask(need).await.ok().flatten() {
            return Ok(answer);
        }
        // The row may be newer than the copy, or the thread had just ended.
        let loaded = if is_new {
            kept
        } else {
            self.loaded(hub, info, kept.number).await?.0
        };
        let answer = loaded.ask(need).await?;
        answer.ok_or_else(|| {
            Status::not_found(format!(
                "no row {need} was evaluated; InspectNeeds lists those that were"
            ))
        })
    }

    /// A loaded copy that came after the one with this number, and whether it was made now.
    async fn loaded(
        &self,
        hub: &Hub,
        info: &Arc<ShardInfo>,
        after: u64,
    ) -> Result<(Loaded, bool), Status> {
        let mut current = self.current.lock().await;
        let now = info.now();
        let usable = current.loaded.as_ref().filter(|loaded| {
            after < loaded.number && now.duration_since(loaded.taken_at) < info.cycle_interval
        });
        if let Some(loaded) = usable {
            return Ok((loaded.clone(), false));
        }
        current.loaded = None; // its thread ends, and its memory is free for the next
        let (fleet, header) = copy(hub, info).await?;
        current.copies += 1;
        let (number, taken_at) = (current.copies, info.now());
        let (questions, asked) = mpsc::channel();
        start(fleet, asked)?;
        let loaded = Loaded {
            number,
            header,
            taken_at,
            questions,
        };
        current.loaded = Some(loaded.clone());
        Ok((loaded, true))
    }
}

impl Loaded {
    async fn ask(&self, need: &NeedKey) -> Result<Option<Answer>, Status> {
        let ended = || Status::internal("the explaining thread ended without an answer");
        let (reply, answer) = oneshot::channel();
        let need = need.clone();
        let sent = self.questions.send(Question { need, reply });
        sent.map_err(|_| ended())?;
        let answer = answer.await.map_err(|_| ended())?;
        Ok(answer.map(|(explanation, claims, claims_capped, changes)| {
            let mut header = self.header.clone();
            header.total = 1;
            Answer {
                header,
                explanation,
                claims,
                claims_capped,
                changes,
            }
        }))
    }
}

/// Loads a copy on a thread of its own, which ends when nobody has asked it anything for a while.
fn start(fleet: Fleet, questions: mpsc::Receiver<Question>) -> Result<(), Status> {
    let thread = std::thread::Builder::new().name("explainer".to_owned());
    let started = thread.spawn(move || answer_all(&fleet, &questions));
    let refused = |why| Status::resource_exhausted(format!("no thread to explain: {why}"));
    started.map(drop).map_err(refused)
}

fn answer_all(fleet: &Fleet, questions: &mpsc::Receiver<Question>) {
    let mut explainer = Explainer::keyed(fleet, draw_hash_key());
    let mut claims: BTreeMap<NeedKey, Vec<MachineId>> = BTreeMap::new();
    for claim in explainer.decision().claims {
        claims.entry(claim.need).or_default().push(claim.machine);
    }
    while let Ok(Question { need, reply }) = questions.recv_timeout(KEPT_IDLE) {
        let explained = explain(fleet, &mut explainer, &claims, &need);
        drop(reply.send(explained)); // whoever asked may have gone away
    }
}

fn explain(
    fleet: &Fleet,
    explainer: &mut Explainer<'_>,
    claims: &BTreeMap<NeedKey, Vec<MachineId>>,
    need: &NeedKey,
) -> Option<Reply> {
    let position = *explainer.find(need).first()?;
    let explanation = explainer.at(position)?;
    let remedies = explainer.remedies(&explanation);
    let changes = explanation::changes(fleet, &remedies);
    let key = explanation.verdict.need.key(); // of the row it folded to, if it did
    let mine = claims.get(&key).map_or(&[][..], Vec::as_slice);
    let claims_capped = MOST_CLAIMS < mine.len();
    let machines = mine.iter().filter_map(|id| fleet.machines.get(id));
    let mut claims: Vec<_> = machines
        .map(|one| (ClaimOrigin::of(&one.machine, &key), one))
        .collect();
    claims.sort_by(|(one, left), (other, right)| {
        one.cmp(other)
            .then_with(|| left.machine.id().cmp(right.machine.id()))
    });
    claims.truncate(MOST_CLAIMS);
    let claim = |(origin, one): (ClaimOrigin, &FleetMachine)| ClaimView {
        machine_id: one.machine.id().to_string(),
        state: state(one.machine.state()),
        step: origin.name().to_owned(),
    };
    let claims = claims.into_iter().map(claim).collect();
    Some((explanation, claims, claims_capped, changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Inbox;
    use crate::read::testing::core;
    use crate::trouble::Trouble;
    use bigfleet_model::ClusterId;
    use bigfleet_shard_core::ShardCore;

    /// Answers questions as the driver does.
    async fn serve(mut inbox: Inbox, mut core: ShardCore) {
        while let Some(question) = inbox.questions.recv().await {
            question(&mut core);
        }
    }

    fn needs(core: &ShardCore) -> Vec<NeedKey> {
        let mut export = bigfleet_shard_core::Export::new();
        let fleet = loop {
            if let Some(fleet) = core.export_step(&mut export, 100) {
                break fleet;
            }
        };
        let needs = fleet.clusters.values().flat_map(|one| one.needs());
        needs.map(|need| need.key()).collect()
    }

    async fn copies(explainers: &Explainers) -> u64 {
        explainers.current.lock().await.copies
    }

    #[tokio::test]
    async fn twenty_needs_are_explained_on_one_copy() {
        let rows: String = (0..20)
            .map(|number| format!("need a cpu=4 prio={number}\n"))
            .collect();
        let core = core(&format!("i1..i9 Idle cpu=4 $1\n{rows}"));
        let needs = needs(&core);
        assert_eq!(needs.len(), 20);
        let (hub, inbox) = Hub::new(Trouble::default());
        tokio::spawn(serve(inbox, core));
        let info = Arc::new(ShardInfo::of_test(Duration::from_secs(600)));
        let explainers = Explainers::default();
        for need in &needs {
            let answer = explainers.explain(&hub, &info, need).await.unwrap();
            assert_eq!(answer.explanation.verdict.need.key(), *need);
        }
        assert_eq!(copies(&explainers).await, 1);
        // The row may have come after the copy was made, so another one is made to be sure.
        let mut unknown = needs[0].clone();
        unknown.cluster = ClusterId::new("b").unwrap();
        let refused = explainers.explain(&hub, &info, &unknown).await;
        assert_eq!(refused.unwrap_err().code(), tonic::Code::NotFound);
        assert_eq!(copies(&explainers).await, 2);
    }

    #[tokio::test]
    async fn a_copy_older_than_a_cycle_is_made_again() {
        let core = core("i1..i9 Idle cpu=4 $1\n need a cpu=4");
        let needs = needs(&core);
        let (hub, inbox) = Hub::new(Trouble::default());
        tokio::spawn(serve(inbox, core));
        let info = Arc::new(ShardInfo::of_test(Duration::ZERO));
        let explainers = Explainers::default();
        for copy in 1..=3 {
            explainers.explain(&hub, &info, &needs[0]).await.unwrap();
            assert_eq!(copies(&explainers).await, copy);
        }
    }
}
