//! Progress: how much of a Need serves, is on its way, is stuck on its way, or is missing (SV-1, SV-2).
//!
//! ```text
//! machines recorded as the Need's ─▶ each: serves · is coming, at which stage · is stuck, by what
//!                                      └─▶ together at most what is asked for; the rest is missing
//! ```
//!
//! Read off the ledger and the work in flight when somebody asks, never off a verdict: what was decided and
//! is not done serves nobody.

use super::Reads;
use crate::{
    rails::{Pause, Scope},
    work::{Operation, WorkStage},
};
use bigfleet_model::{
    ActionKind, Amounts, ClusterId, Machine, MachineId, NeedKey, State, Time, shown,
};
use std::{collections::BTreeMap, time::Duration};

/// What a provider is given to finish what it has taken on before that counts as stuck.
const SLOW: Duration = Duration::from_secs(600);
/// What anything else that should leave at once is given.
const PROMPT: Duration = Duration::from_secs(60);
/// Stages that are shown of one Need.
const MOST_STAGES: usize = 8;

/// Where a Need stands. The four amounts add up to what it asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Configured, with a ready Node where the cluster reports Nodes.
    pub serving: Amounts,
    /// On its way.
    pub coming: Amounts,
    /// On its way, and does not get on.
    pub stuck: Amounts,
    /// Nothing is on its way for it.
    pub missing: Amounts,
    /// The stages of what is coming and stuck: stuck first, the oldest of each first.
    pub stages: Vec<NeedStage>,
    /// Since when it has not been served in full.
    pub lacking_since: Option<Time>,
    /// Why nothing leaves for its cluster, in words, if nothing does.
    pub held_back: Option<String>,
}

impl Progress {
    /// Whether all of it serves.
    pub fn is_served(&self) -> bool {
        self.coming.is_zero() && self.stuck.is_zero() && self.missing.is_zero()
    }
}

/// Machines on their way to a Need that are at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedStage {
    /// Where they are, in words.
    pub stage: String,
    /// What holds them up, in words, if they are stuck.
    pub stuck: Option<String>,
    /// How many machines are there.
    pub machines: u32,
    /// Since when the first of them is there.
    pub since: Time,
    /// The one that is there for longest.
    pub machine: MachineId,
}

/// Where one machine of a Need stands.
enum Standing {
    Serves,
    Comes {
        stage: String,
        since: Time,
        stuck: Option<String>,
    },
    /// It counts for nobody.
    Out,
}

impl Standing {
    fn coming(stage: impl Into<String>, since: Time) -> Self {
        Self::Comes {
            stage: stage.into(),
            since,
            stuck: None,
        }
    }

    fn stuck(stage: impl Into<String>, since: Time, why: impl Into<String>) -> Self {
        Self::Comes {
            stage: stage.into(),
            since,
            stuck: Some(why.into()),
        }
    }
}

impl Reads<'_> {
    /// Where a Need stands that asks for so much, and how many machines were looked at.
    pub(crate) fn progress(&self, need: &NeedKey, wants: &Amounts) -> (Progress, usize) {
        let machines = self.supply.machines_of(need);
        let mut sums = [Amounts::NONE, Amounts::NONE, Amounts::NONE];
        let mut stages: BTreeMap<(bool, String, String), NeedStage> = BTreeMap::new();
        for id in &machines {
            let Some(machine) = self.supply.get(id) else {
                continue;
            };
            let sum = match self.standing(machine) {
                Standing::Serves => 0,
                Standing::Out => continue,
                Standing::Comes {
                    stage,
                    since,
                    stuck,
                } => {
                    let place = if stuck.is_some() { 2 } else { 1 };
                    let key = (stuck.is_none(), stage, stuck.unwrap_or_default());
                    let known = stages.entry(key.clone()).or_insert_with(|| NeedStage {
                        stage: key.1,
                        stuck: (!key.0).then_some(key.2),
                        machines: 0,
                        since,
                        machine: id.clone(),
                    });
                    known.machines += 1;
                    if since < known.since {
                        (known.since, known.machine) = (since, id.clone());
                    }
                    place
                }
            };
            let offers = machine.shape().effective();
            if !sums[sum].try_add(offers) {
                sums[sum] = sums[sum].add(offers); // as much as fits
            }
        }
        let mut left = wants.clone();
        let [serving, coming, stuck] = sums.map(|sum| {
            let after = left.sub(&sum);
            let part = left.sub(&after);
            left = after;
            part
        });
        let mut stages: Vec<NeedStage> = stages.into_values().collect();
        stages.sort_by_key(|one| (one.stuck.is_none(), one.since));
        stages.truncate(MOST_STAGES);
        let is_served = serving == *wants;
        let lacking_since = self.demand.lacking().since(need);
        let progress = Progress {
            serving,
            coming,
            stuck,
            missing: left,
            stages,
            lacking_since: lacking_since.filter(|_| !is_served),
            held_back: self.held_back(Some(&need.cluster)),
        };
        (progress, machines.len())
    }

    fn standing(&self, machine: &Machine) -> Standing {
        let id = machine.id();
        let in_state = self.supply.ledger().state_since(id).unwrap_or(self.now);
        match machine.state() {
            State::Configured => match self.supply.unready_since(id) {
                _ if self.supply.beside(id).not_ready => Standing::Out,
                None => Standing::Serves,
                Some((since, true)) => {
                    Standing::coming("waits for its Node to be Ready", since.unwrap_or(in_state))
                }
                Some((since, false)) => Standing::stuck(
                    "Configured",
                    since.unwrap_or(in_state),
                    "its Node is not Ready any more",
                ),
            },
            State::Creating | State::Configuring | State::Draining => match self.work.get(id) {
                Some(operation) => self.under_way(operation),
                None => Standing::coming(state_words(machine.state()), in_state),
            },
            State::Idle => self.promised(machine, in_state),
            State::Speculative | State::Deleting | State::Failed => Standing::Out,
        }
    }

    /// A machine that is there and waits for its Configure to be decided.
    fn promised(&self, machine: &Machine, since: Time) -> Standing {
        let Some(intent) = machine.intent() else {
            return Standing::Out;
        };
        let cluster = &intent.need.cluster;
        let stage = "Idle, to be configured";
        if let Some(why) = self.held_back(Some(cluster)) {
            Standing::stuck(stage, since, why)
        } else if let Some(withheld) = self.demand.withheld(cluster) {
            Standing::stuck(stage, since, withheld.words())
        } else if !self.sessions.is_connected(cluster) {
            Standing::stuck(stage, since, "no operator of its cluster is connected")
        } else {
            Standing::coming(stage, since)
        }
    }

    fn under_way(&self, operation: &Operation) -> Standing {
        let stage = stage_words(operation);
        if let Some(since) = operation.held_since {
            let why = self.held_back(operation.cluster.as_ref());
            let why = why.unwrap_or_else(|| "held back by a pause".to_owned());
            return Standing::stuck(stage, since, why);
        }
        if let Some(since) = operation.failing_since {
            return Standing::stuck(stage, since, self.failing(operation));
        }
        let waits_for_provider = matches!(
            operation.stage,
            WorkStage::Ready | WorkStage::Call(_) | WorkStage::Provider | WorkStage::Confirm
        );
        let lost = self.provider_lost.filter(|_| waits_for_provider);
        if let Some(lost) = lost {
            let since = lost.max(operation.since);
            return Standing::stuck(stage, since, "the provider cannot be reached");
        }
        let waited = self.now.duration_since(operation.since);
        let cluster = operation.cluster.as_ref();
        let is_connected = cluster.is_none_or(|cluster| self.sessions.is_connected(cluster));
        let why = match operation.stage {
            WorkStage::Ready | WorkStage::Blob(_)
                if operation.action == ActionKind::Bootstrap && !is_connected =>
            {
                "no operator of its cluster is connected"
            }
            WorkStage::Provider if SLOW <= waited => {
                "the provider took it on and has not finished it"
            }
            WorkStage::Ready if PROMPT <= waited => "waits for its turn to be called",
            WorkStage::Disk if PROMPT <= waited => "the disk does not take its commit",
            WorkStage::Call(_) if PROMPT <= waited => "the provider does not answer",
            _ => return Standing::coming(stage, operation.since),
        };
        Standing::stuck(stage, operation.since, why)
    }

    /// What the calls of an operation fail with.
    fn failing(&self, operation: &Operation) -> String {
        let said = operation.refused.as_ref();
        let said = said.map_or_else(String::new, |(code, text)| code.said(text));
        match (said.is_empty(), self.provider_lost) {
            (true, Some(_)) => "the provider cannot be reached".to_owned(),
            (true, None) => "its calls fail".to_owned(),
            (false, _) => format!("the provider says \"{}\"", shown(&said)),
        }
    }

    /// Why nothing leaves for a cluster, if nothing does.
    pub(crate) fn held_back(&self, cluster: Option<&ClusterId>) -> Option<String> {
        if self.rails.is_fenced() {
            return Some("fenced: another process runs this shard".to_owned());
        }
        if self.rails.is_stopped() {
            return Some("the shard has stopped itself".to_owned());
        }
        let pauses = self.rails.pauses();
        let covers = |pause: &&Pause| match &pause.scope {
            Scope::All => true,
            Scope::Provider(provider) => *provider == self.config.provider,
            Scope::Cluster(one) => Some(one) == cluster,
        };
        if let Some(pause) = pauses.iter().find(covers) {
            return Some(pause.words());
        }
        let is_dry = self.rails.is_dry_run();
        is_dry.then(|| "dry run: nothing leaves this shard".to_owned())
    }
}

fn state_words(state: State) -> &'static str {
    match state {
        State::Creating => "is being created",
        State::Configuring => "is being configured",
        State::Draining => "is being drained of its last use",
        State::Speculative | State::Idle | State::Configured | State::Deleting | State::Failed => {
            state.word()
        }
    }
}

/// What an operation does, and what it waits for.
fn stage_words(operation: &Operation) -> String {
    let does = match operation.action {
        ActionKind::Provision => "Create",
        ActionKind::Bootstrap => "Configure",
        ActionKind::Preempt | ActionKind::Reclaim | ActionKind::Restore => "Drain of its last use",
        ActionKind::Delete => "Delete",
    };
    let waits = match operation.stage {
        WorkStage::Disk => "on its way to the disk",
        WorkStage::Ready => "to be called",
        WorkStage::Blob(_) => "the operator makes its user data",
        WorkStage::DrainReport => "the operator drains its Node",
        WorkStage::Call(_) => "called",
        WorkStage::Provider => "the provider works on it",
        WorkStage::Backoff => "to be tried again",
        WorkStage::Confirm => "its machine is read again",
    };
    format!("{does}: {waits}")
}
