//! Settings: a cluster with a real operator, as a plan writes it down, and what can happen to it.

use super::streams::StreamWeather;
use crate::clock::seconds;

/// Kubernetes around a real operator.
#[derive(Clone, Debug)]
pub(crate) struct KubernetesPlan {
    /// Operator processes, of which one leads.
    pub(crate) operators: u32,
    pub(crate) placement: Placement,
    pub(crate) streams: StreamWeather,
    pub(crate) api: ApiWeather,
    /// What is special about Pods, by workload.
    pub(crate) pods: Vec<PodRules>,
    /// Nodes say which machine they are from the start; otherwise only their provider id does.
    pub(crate) nodes_are_labelled: bool,
    /// Thousandths of a machine that Pods can use.
    pub(crate) usable: i64,
    /// Milliseconds between a cordon that can wait and the first eviction.
    pub(crate) settle: u64,
}

impl Default for KubernetesPlan {
    fn default() -> Self {
        Self {
            operators: 1,
            placement: Placement::LeastAllocated,
            streams: StreamWeather::default(),
            api: ApiWeather::default(),
            pods: Vec::new(),
            nodes_are_labelled: true,
            usable: 950,
            settle: seconds(60),
        }
    }
}

/// Where the scheduler puts a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// On the first Node that has room.
    FirstFit,
    /// On the emptiest.
    LeastAllocated,
}

/// What is special about the Pods of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodRules {
    /// No Node may have two of them.
    pub(crate) are_apart: bool,
    /// The scheduler finds no room for them, whatever there is.
    pub(crate) are_hopeless: bool,
    /// They must not be disturbed by what can wait (OP-52).
    pub(crate) are_precious: bool,
    /// A disruption budget: so many must be healthy.
    pub(crate) at_least: u32,
}

/// What goes wrong with calls to the API server: chances in a thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiWeather {
    /// 409, whatever was asked.
    pub(crate) conflict: u64,
    /// 429 with a `Retry-After`.
    pub(crate) throttled: u64,
    /// 500, and nothing was done.
    pub(crate) failed: u64,
    /// It was done, and nobody hears of it.
    pub(crate) answer_lost: u64,
}

/// Something that happens once to a cluster with a real operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterChange {
    /// A workload's template changes: its Pods are replaced one by one.
    Rollover { work: usize },
    /// The process that leads dies, and another one starts so many milliseconds later.
    KillOperator { strike: OperatorStrike, millis: u64 },
    /// The process that leads stands still for so many milliseconds.
    StopOperator { millis: u64 },
    /// The pod controller dies, and another one starts so many milliseconds later.
    KillController { millis: u64 },
    /// Every watch breaks, and its version is gone.
    WatchesGone,
    /// Watches bring nothing for so many milliseconds.
    StaleWatches { millis: u64 },
    /// The API server does not answer for so many milliseconds.
    ApiAway { millis: u64 },
    /// The store loses every request, and the definition of requests is back after so many milliseconds.
    WipeRequests { millis: u64 },
    /// A person cordons so many Nodes.
    PersonCordons { count: usize },
    /// A person opens them again.
    PersonUncordons,
    /// The session breaks; half open, the operator does not notice.
    SessionBreaks { half_open: bool },
    /// No process can reach the shard for so many milliseconds.
    ShardUnreachable { millis: u64 },
}

impl ClusterChange {
    /// Under which name it is counted and shown.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Rollover { .. } => "rollover",
            Self::KillOperator { .. } => "operator dies",
            Self::StopOperator { .. } => "operator stands still",
            Self::KillController { .. } => "pod controller dies",
            Self::WatchesGone => "watches gone",
            Self::StaleWatches { .. } => "watches stale",
            Self::ApiAway { .. } => "api server away",
            Self::WipeRequests { .. } => "requests wiped",
            Self::PersonCordons { .. } => "person cordons",
            Self::PersonUncordons => "person uncordons",
            Self::SessionBreaks { half_open: false } => "session breaks",
            Self::SessionBreaks { half_open: true } => "session half open",
            Self::ShardUnreachable { .. } => "shard unreachable",
        }
    }

    /// For how many milliseconds, if it is over by itself.
    pub(crate) fn lasts(&self) -> Option<u64> {
        match self {
            Self::KillOperator { millis, .. }
            | Self::StopOperator { millis }
            | Self::KillController { millis }
            | Self::StaleWatches { millis }
            | Self::ApiAway { millis }
            | Self::WipeRequests { millis }
            | Self::ShardUnreachable { millis } => Some(*millis),
            Self::Rollover { .. }
            | Self::WatchesGone
            | Self::PersonCordons { .. }
            | Self::PersonUncordons
            | Self::SessionBreaks { .. } => None,
        }
    }
}

/// At which point of its work an operator is struck: at once, or the next time it does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorStrike {
    Now,
    Cordoning,
    Evicting,
    RollingUp,
}

impl OperatorStrike {
    pub(crate) const ALL: [Self; 4] = [Self::Now, Self::Cordoning, Self::Evicting, Self::RollingUp];
}
