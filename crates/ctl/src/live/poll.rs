//! Polling: the shard asked again and again, each part at its own pace.
//!
//! ```text
//! clusters · rails · decisions ── every second ──┐
//! demand ────────────────────────────────────────┼──▶ News
//! machines ── at most a fifth of the time ───────┘
//! ```
//!
//! Machines are counted as they come and not kept, and the larger the fleet the more rarely they are
//! asked for, so that a screen left open costs a large shard little. Whoever stops listening ends it.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::keys::Ask;
use super::picture::{Demand, Limits, Tally};
use crate::client::Client;
use crate::output::Answer;
use crate::record::{ActionRecord, ClusterRecord, ExplanationRecord, MachineRecord, NeedRecord};
use crate::steer::{Steered, pause, resume};
use crate::trouble::Trouble;

/// Decisions that are shown.
const MOST_DECISIONS: i32 = 200;
/// The pause after an answer is so many times as long as the answer took.
const REST: u32 = 4;
/// Why the shard is paused when it is paused from here.
const REASON: &str = "from the live view";

/// What was heard.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Which shard, in which cycle, and when that was.
    Place(wire::InspectHeader),
    /// The clusters.
    Clusters(Vec<ClusterRecord>),
    /// Demand.
    Demand(Demand),
    /// Machines, counted.
    Machines(Tally),
    /// Decisions, newest first.
    Actions(Vec<ActionRecord>),
    /// Rails and pauses.
    Limits(Limits),
    /// What came of something that was asked for.
    Said(String),
    /// A page to read.
    Page(String, Vec<String>),
    /// Nothing: it does not answer.
    Lost(Trouble),
}

/// The polling, until it is dropped.
pub(super) struct Poll {
    client: Client,
    tell: mpsc::Sender<News>,
    _tasks: JoinSet<()>,
}

impl Poll {
    pub(super) fn start(client: Client, every: Duration, tell: mpsc::Sender<News>) -> Self {
        let mut tasks = JoinSet::new();
        for part in [Part::Overview, Part::Demand, Part::Machines] {
            tasks.spawn(part.again_and_again(client.clone(), every, tell.clone()));
        }
        Self {
            client,
            tell,
            _tasks: tasks,
        }
    }

    /// Does what a key asked for, and tells what came of it.
    pub(super) fn ask(&self, ask: Ask, pause_for: Duration) {
        let (client, tell) = (self.client.clone(), self.tell.clone());
        // On its own, and not among the tasks: a pause that was asked for is carried out.
        tokio::spawn(async move {
            let news = answer(&client, ask, pause_for).await;
            let news = news.unwrap_or_else(|trouble| News::Said(trouble.to_string()));
            drop(tell.send(news).await);
        });
    }
}

/// What is asked for at its own pace.
#[derive(Clone, Copy, Debug)]
enum Part {
    Overview,
    Demand,
    Machines,
}

impl Part {
    async fn again_and_again(self, client: Client, every: Duration, tell: mpsc::Sender<News>) {
        loop {
            let began = Instant::now();
            let (asked, rest) = match self {
                Self::Overview => (overview(&client, &tell).await, 0),
                Self::Demand => (demand(&client, &tell).await, 0),
                Self::Machines => (machines(&client, &tell).await, REST),
            };
            if let Err(trouble) = asked {
                drop(tell.send(News::Lost(trouble)).await);
            }
            tokio::time::sleep(every.max(began.elapsed() * rest)).await;
        }
    }
}

async fn overview(client: &Client, tell: &mpsc::Sender<News>) -> Result<(), Trouble> {
    let (header, clusters) = client.clusters("").await?;
    let rails = client.rails().await?;
    drop(tell.send(News::Place(header)).await);
    let clusters = clusters.iter().map(ClusterRecord::from).collect();
    drop(tell.send(News::Clusters(clusters)).await);
    let limits = Limits {
        rails: rails.rails.iter().map(Into::into).collect(),
        pauses: rails.pauses.iter().map(Into::into).collect(),
        breakers: rails.breakers.iter().map(Into::into).collect(),
        dry_run: rails.dry_run,
        fenced: rails.fenced,
    };
    drop(tell.send(News::Limits(limits)).await);
    let request = wire::InspectActionsRequest {
        limit: MOST_DECISIONS,
        ..wire::InspectActionsRequest::default()
    };
    let (_, actions) = client.actions(request).await?;
    let actions = actions.iter().map(ActionRecord::from).collect();
    drop(tell.send(News::Actions(actions)).await);
    Ok(())
}

async fn demand(client: &Client, tell: &mpsc::Sender<News>) -> Result<(), Trouble> {
    let mut demand = Demand::default();
    let each = |view: wire::NeedView| demand.add(NeedRecord::from(&view));
    client.needs("", each).await?;
    demand.trim();
    drop(tell.send(News::Demand(demand)).await);
    Ok(())
}

async fn machines(client: &Client, tell: &mpsc::Sender<News>) -> Result<(), Trouble> {
    let mut tally = Tally::default();
    let every = wire::InspectMachinesRequest::default();
    let each = |view: wire::MachineView| tally.add(&MachineRecord::from(&view));
    client.machines(every, each).await?;
    drop(tell.send(News::Machines(tally)).await);
    Ok(())
}

async fn answer(client: &Client, ask: Ask, pause_for: Duration) -> Result<News, Trouble> {
    Ok(match ask {
        Ask::Leave => News::Said(String::new()),
        Ask::Pause => said(pause(client, &Steered::All, pause_for, REASON, false).await?),
        Ask::Resume => said(resume(client, &Steered::All, REASON, false).await?),
        Ask::Explain {
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
                    News::Page(format!("Why, of cluster {cluster}"), lines)
                }
                None => News::Said("that Need is gone".to_owned()),
            }
        }
    })
}

/// An answer in one line.
fn said(answer: Answer) -> News {
    let mut parts = vec![answer.text.trim_end().to_owned()];
    parts.extend(answer.notes);
    News::Said(parts.join("; "))
}
