//! Polling: the shard is asked again and again, each part at its own pace.
//!
//! ```text
//! clusters · rails · decisions ── every second ──┐
//! demand ────────────────────────────────────────┼──▶ PollUpdate
//! machines ── at most a fifth of the time ───────┘
//! ```
//!
//! Machines are counted as they arrive and not kept. The larger the fleet, the more rarely they are asked
//! for, so that a screen left open costs a large shard little. Polling ends when it is dropped.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::keys::KeyRequest;
use super::overview::{Demand, Limits, MachineCounts};
use crate::client::Client;
use crate::error::CtlError;
use crate::output::Answer;
use crate::pause_resume::{PauseTarget, pause, resume};
use crate::record::{ActionRecord, ClusterRecord, ExplanationRecord, MachineRecord, NeedRecord};

/// Decisions that are shown.
const MOST_DECISIONS: i32 = 200;
/// The wait after an answer is this many times as long as the answer took.
const REST: u32 = 4;
/// The reason a pause from the live view is given.
const REASON: &str = "from the live view";

/// Something the screen should show.
#[derive(Clone, Debug)]
pub(crate) enum PollUpdate {
    /// Which shard answers, its cycle, and when that ran.
    CycleStatus(wire::InspectHeader),
    /// The clusters.
    Clusters(Vec<ClusterRecord>),
    /// Demand.
    Demand(Demand),
    /// Machines, counted.
    Machines(MachineCounts),
    /// Decisions, newest first.
    Actions(Vec<ActionRecord>),
    /// Rails and pauses.
    Limits(Limits),
    /// What came of a key that asked the shard for something.
    Said(String),
    /// A page to read.
    Page(String, Vec<String>),
    /// The shard does not answer.
    Lost(CtlError),
}

/// The polling, until it is dropped.
pub(super) struct Poll {
    client: Client,
    tell: mpsc::Sender<PollUpdate>,
    _tasks: JoinSet<()>,
}

impl Poll {
    pub(super) fn start(client: Client, every: Duration, tell: mpsc::Sender<PollUpdate>) -> Self {
        let mut tasks = JoinSet::new();
        for part in [
            PolledPart::Overview,
            PolledPart::Demand,
            PolledPart::Machines,
        ] {
            tasks.spawn(part.again_and_again(client.clone(), every, tell.clone()));
        }
        Self {
            client,
            tell,
            _tasks: tasks,
        }
    }

    /// Does what a key asked for, and sends what came of it.
    pub(super) fn ask(&self, ask: KeyRequest, pause_for: Duration) {
        let (client, tell) = (self.client.clone(), self.tell.clone());
        // Not among the tasks that end with the view: a pause that was asked for is carried out.
        tokio::spawn(async move {
            let update = answer(&client, ask, pause_for).await;
            let update = update.unwrap_or_else(|error| PollUpdate::Said(error.to_string()));
            drop(tell.send(update).await);
        });
    }
}

/// A part of the screen that is polled at its own pace.
#[derive(Clone, Copy, Debug)]
enum PolledPart {
    Overview,
    Demand,
    Machines,
}

impl PolledPart {
    async fn again_and_again(
        self,
        client: Client,
        every: Duration,
        tell: mpsc::Sender<PollUpdate>,
    ) {
        loop {
            let began = Instant::now();
            let (asked, rest) = match self {
                Self::Overview => (overview(&client, &tell).await, 0),
                Self::Demand => (demand(&client, &tell).await, 0),
                Self::Machines => (machines(&client, &tell).await, REST),
            };
            if let Err(error) = asked {
                drop(tell.send(PollUpdate::Lost(error)).await);
            }
            tokio::time::sleep(every.max(began.elapsed() * rest)).await;
        }
    }
}

async fn overview(client: &Client, tell: &mpsc::Sender<PollUpdate>) -> Result<(), CtlError> {
    let (header, clusters) = client.clusters("").await?;
    let rails = client.rails().await?;
    drop(tell.send(PollUpdate::CycleStatus(header)).await);
    let clusters = clusters.iter().map(ClusterRecord::from).collect();
    drop(tell.send(PollUpdate::Clusters(clusters)).await);
    let limits = Limits {
        rails: rails.rails.iter().map(Into::into).collect(),
        pauses: rails.pauses.iter().map(Into::into).collect(),
        breakers: rails.breakers.iter().map(Into::into).collect(),
        dry_run: rails.dry_run,
        fenced: rails.fenced,
    };
    drop(tell.send(PollUpdate::Limits(limits)).await);
    let request = wire::InspectActionsRequest {
        limit: MOST_DECISIONS,
        ..wire::InspectActionsRequest::default()
    };
    let (_, actions) = client.actions(request).await?;
    let actions = actions.iter().map(ActionRecord::from).collect();
    drop(tell.send(PollUpdate::Actions(actions)).await);
    Ok(())
}

async fn demand(client: &Client, tell: &mpsc::Sender<PollUpdate>) -> Result<(), CtlError> {
    let mut demand = Demand::default();
    let each = |view: wire::NeedView| demand.add(NeedRecord::from(&view));
    client.needs("", each).await?;
    demand.trim();
    drop(tell.send(PollUpdate::Demand(demand)).await);
    Ok(())
}

async fn machines(client: &Client, tell: &mpsc::Sender<PollUpdate>) -> Result<(), CtlError> {
    let mut tally = MachineCounts::default();
    let every = wire::InspectMachinesRequest::default();
    let each = |view: wire::MachineView| tally.add(&MachineRecord::from(&view));
    client.machines(every, each).await?;
    drop(tell.send(PollUpdate::Machines(tally)).await);
    Ok(())
}

async fn answer(
    client: &Client,
    ask: KeyRequest,
    pause_for: Duration,
) -> Result<PollUpdate, CtlError> {
    Ok(match ask {
        KeyRequest::Leave => PollUpdate::Said(String::new()),
        KeyRequest::Pause => {
            said(pause(client, &PauseTarget::All, pause_for, REASON, false).await?)
        }
        KeyRequest::Resume => said(resume(client, &PauseTarget::All, REASON, false).await?),
        KeyRequest::Explain {
            cluster,
            fingerprint,
            group,
        } => {
            let request = wire::ExplainNeedRequest {
                cluster_id: cluster.clone(),
                profile_fingerprint: fingerprint,
                group,
            };
            match client.explain(request).await? {
                Some(explained) => {
                    let text = crate::explain::page(&ExplanationRecord::from(&explained));
                    let lines = text.lines().map(str::to_owned).collect();
                    PollUpdate::Page(format!("Why, of cluster {cluster}"), lines)
                }
                None => PollUpdate::Said("that Need was withdrawn".to_owned()),
            }
        }
    })
}

/// An answer in one line.
fn said(answer: Answer) -> PollUpdate {
    let mut parts = vec![answer.text.trim_end().to_owned()];
    parts.extend(answer.notes);
    PollUpdate::Said(parts.join("; "))
}
