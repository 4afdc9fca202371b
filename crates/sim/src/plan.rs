//! A plan: everything a run is made of, as data.
//!
//! ```text
//! Scenario ── seed ──▶ Plan { machines, clusters, timeline, weather, stages, shard, gates }
//!                        │  nothing in it is hidden in code: a failing one can be made smaller
//!                        └─▶ World ─▶ run ─▶ Report
//! ```
//!
//! What happens *to* the fleet (demand, losses, crashes) is in the timeline, one entry each, so an
//! entry can be left out. What happens *all the time* (lost answers, late roll-ups) is the weather.
//! Both end at `calm`; from there on the fleet must come to rest.

use crate::{
    clock::Moment,
    cluster_side::settings::{ClusterChange, KubernetesPlan},
    dice::Latency,
    gate::Gate,
    size::Size,
    watch::Rule,
};
use bigfleet_model::{Amounts, Group, Holds, Profile};
use bigfleet_provider_kit::{Offer, TextMap};
use std::sync::Arc;

/// Everything a run is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The provider's machines at the start.
    pub(crate) machines: Vec<MachinePlan>,
    pub(crate) clusters: Vec<ClusterPlan>,
    /// What happens when; in any order.
    pub(crate) timeline: Vec<(Moment, Change)>,
    /// What happens all the time until `calm`.
    pub(crate) weather: Weather,
    /// How long things take.
    pub(crate) stages: Stages,
    /// How the shard is set up.
    pub(crate) shard: ShardPlan,
    /// Timeline and weather end here.
    pub(crate) calm: Moment,
    /// How long the fleet may take to come to rest after that, in milliseconds.
    pub(crate) rest_within: u64,
    /// What else must be true.
    pub(crate) gates: Vec<Gate>,
    /// Rules that may break: where a law is about how often they do.
    pub(crate) blind_to: Vec<Rule>,
}

/// A machine at the start.
#[derive(Clone, Debug)]
pub(crate) struct MachinePlan {
    pub(crate) id: String,
    /// What it offers; machines that offer the same share it.
    pub(crate) offer: Arc<Offer>,
    /// Where it is in its life.
    pub(crate) start: Start,
    /// What it echoes of what it was committed to, where that is not simply its workload.
    pub(crate) echo: Option<Arc<TextMap>>,
}

/// Where a machine begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Speculative,
    /// A host that serves nobody.
    Idle,
    /// A host that serves a cluster, by their positions in the plan, and whether it is known which
    /// workload it serves.
    Serving {
        cluster: usize,
        work: usize,
        stamped: bool,
    },
}

/// A cluster and its operator.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPlan {
    pub(crate) name: String,
    /// What it runs.
    pub(crate) works: Vec<Work>,
    /// Milliseconds between roll-ups; each cluster has its own phase.
    pub(crate) roll_up_every: u64,
    /// Whether its operator reports drains.
    pub(crate) drain_reports: bool,
    /// Whether its operator reports nodes.
    pub(crate) node_reports: bool,
    /// Whether evicted Pods come back. Without a controller they do not: a historical defect of a
    /// harness, kept as an arm.
    pub(crate) managed: bool,
    /// Whether Pods that are bound are left out of the roll-up: another such arm.
    pub(crate) pending_only: bool,
    /// What its operator tells of how much draining a node would disturb, if it reports nodes.
    pub(crate) tells: Telling,
    /// How long its operator waits, once it has cordoned a node that nobody waits for, before it evicts.
    pub(crate) settle: u64,
    /// A Kubernetes with the real operator, instead of what is said above of its operator.
    pub(crate) kubernetes: Option<KubernetesPlan>,
}

/// What an operator tells of how much draining a node would disturb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Telling {
    #[default]
    Nothing,
    /// How many Pods there are on it.
    Truly,
    /// How many there were when it last told.
    Late,
    /// Anything.
    Wrongly,
}

impl ClusterPlan {
    /// Whether its operator reports nodes; a real one does.
    pub(crate) fn reports_nodes(&self) -> bool {
        self.node_reports || self.kubernetes.is_some()
    }

    /// A cluster as it should be.
    pub(crate) fn new(name: &str, works: Vec<Work>) -> Self {
        Self {
            name: name.to_owned(),
            works,
            roll_up_every: 10_000,
            drain_reports: true,
            node_reports: false,
            managed: true,
            pending_only: false,
            tells: Telling::Nothing,
            settle: 0,
            kubernetes: None,
        }
    }
}

/// A workload: one row of the roll-up.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What it asks of a machine.
    pub(crate) profile: Arc<Profile>,
    /// The gang; empty for none.
    pub(crate) group: Group,
    /// How much it asks for.
    pub(crate) load: Load,
    /// Whether its row says that every unit is a whole one (RF-19).
    pub(crate) whole: bool,
}

/// How much a workload asks for.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    /// Pods of one size, each of which is bound to a node.
    Pods {
        /// What each asks for.
        each: Size,
        /// How many at the start.
        count: u32,
    },
    /// A row as it is; Pods are not looked at.
    Row {
        aggregate: Amounts,
        /// The largest unit.
        unit: Amounts,
    },
}

/// Something that happens once. Clusters and workloads are named by their position in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A workload now has so many Pods.
    Scale {
        cluster: usize,
        work: usize,
        pods: u32,
    },
    /// Every workload of a cluster has so many thousandths of the Pods it began with.
    ScaleAll { cluster: usize, per_mille: u32 },
    /// A workload that is a row has so many thousandths of what it began with.
    ScaleRow {
        cluster: usize,
        work: usize,
        per_mille: u32,
    },
    /// A workload's priority is edited.
    Priority {
        cluster: usize,
        work: usize,
        priority: i32,
    },
    /// A workload's row asks for whole units from now on, or no longer.
    Whole {
        cluster: usize,
        work: usize,
        whole: bool,
    },
    /// A workload's Pods are replaced by as many of another size.
    Resize {
        cluster: usize,
        work: usize,
        each: Size,
    },
    /// Serving machines break: they are Failed from now on.
    Break {
        /// Of this cluster, or of any.
        cluster: Option<usize>,
        count: u32,
    },
    /// Serving machines vanish: the provider no longer knows them.
    Vanish {
        /// Of this cluster, or of any.
        cluster: Option<usize>,
        count: u32,
    },
    /// The provider gives notice to this share of its spot machines, in thousandths, and takes them back soon.
    SpotWave(u64),
    /// Prices of a tenth of the machines move by up to a tenth.
    Reprice,
    /// Creates of an instance type find no stock for so many milliseconds.
    StockOut {
        /// The type; empty for all.
        kind: String,
        millis: u64,
    },
    /// The next calls of this kind are taken on and then fail.
    FailNext {
        kind: bigfleet_provider_kit::Transition,
        /// About which machine; `None` for any.
        machine: Option<&'static str>,
        count: u32,
    },
    /// The shard's process dies and is started again so many milliseconds later.
    Crash {
        /// At which point of its work.
        strike: Strike,
        /// What is left of its disk.
        disk: Left,
        millis: u64,
    },
    /// A second process of the shard is started from a copy of its disk, while the first goes on for
    /// so many milliseconds more without operators.
    Twin { millis: u64 },
    /// The shard's process dies, and one is started without its disk, and so without its epoch; so many
    /// milliseconds later that one is replaced by one that has both.
    WrongDisk { millis: u64 },
    /// A cluster's operator is gone for so many milliseconds.
    OperatorAway { cluster: usize, millis: u64 },
    /// The provider does not answer for so many milliseconds.
    ProviderAway {
        millis: u64,
        /// Whether it is started anew, so that what was under way has failed.
        restart: bool,
    },
    /// The next Lists lack this share of the machines, in thousandths, and claim to be complete.
    TruncatedLists {
        lists: u32,
        /// Thousandths that are missing.
        per_mille: u64,
    },
    /// Disruption budgets of a cluster block every drain for so many milliseconds.
    BlockDrains { cluster: usize, millis: u64 },
    /// A cluster's next roll-ups are empty, though its Pods are there.
    EmptyRollUps { cluster: usize, count: u32 },
    /// A cluster's operator cannot make bootstrap blobs for so many milliseconds.
    BlobErrors { cluster: usize, millis: u64 },
    /// Whatever the provider configures for a cluster fails, for so many milliseconds.
    ConfiguresFail { cluster: usize, millis: u64 },
    /// The provider answers every Delete with an error, and does nothing, for so many milliseconds.
    DeletesFail { millis: u64 },
    /// Nodes of a cluster are reported as not Ready, though they serve, for so many milliseconds.
    Partition { cluster: usize, millis: u64 },
    /// Everything is paused for so many milliseconds.
    Pause { millis: u64 },
    /// An admin marks machines to leave; within so many milliseconds, at once if there are none, or whenever.
    Drain { pick: Pick, within: Option<u64> },
    /// An admin lifts such marks.
    Undrain { pick: Pick },
    /// The provider announces to take machines away so many milliseconds from now, and may mean it.
    Announce { pick: Pick, lead: u64, meant: bool },
    /// The provider takes back all it has announced.
    Withdraw,
    /// Something on the side of a cluster with a real operator.
    InCluster { cluster: usize, what: ClusterChange },
}

/// Which machines are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    All,
    /// Those with this label; `zone` is the zone.
    Labelled(&'static str, String),
    /// So many of those that serve.
    Serving {
        count: u32,
    },
    Named(String),
}

impl Change {
    /// Whether it strikes as soon as it is due. Whatever waits for something to strike is counted there.
    pub(crate) fn strikes_at_once(&self) -> bool {
        match self {
            Self::Scale { .. }
            | Self::ScaleAll { .. }
            | Self::ScaleRow { .. }
            | Self::Priority { .. }
            | Self::Whole { .. }
            | Self::Resize { .. }
            | Self::Twin { .. }
            | Self::WrongDisk { .. }
            | Self::OperatorAway { .. }
            | Self::ProviderAway { .. }
            | Self::Pause { .. } => true,
            // Counted where there is somebody to tell.
            Self::Drain { .. }
            | Self::Undrain { .. }
            | Self::Announce { .. }
            | Self::Withdraw
            | Self::InCluster { .. } => false,
            Self::Break { .. }
            | Self::Vanish { .. }
            | Self::SpotWave(_)
            | Self::Reprice
            | Self::StockOut { .. }
            | Self::FailNext { .. }
            | Self::Crash { .. }
            | Self::TruncatedLists { .. }
            | Self::BlockDrains { .. }
            | Self::EmptyRollUps { .. }
            | Self::BlobErrors { .. }
            | Self::ConfiguresFail { .. }
            | Self::DeletesFail { .. }
            | Self::Partition { .. } => false,
        }
    }
}

/// At which point of its work a process is struck: at once, or the next time it does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// Whatever it is doing.
    Now,
    /// Between a decision and the end of its write.
    Writing,
    /// While a call is on its way, there or back.
    Calling,
    /// While a List is.
    Listing,
}

impl Strike {
    pub(crate) const ALL: [Self; 4] = [Self::Now, Self::Writing, Self::Calling, Self::Listing];
}

/// What a process that died leaves on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was surely written.
    Whole,
    /// That, and any part of what was being written.
    Torn,
    /// Nothing: the disk is gone, and only the epoch is known.
    Nothing,
}

/// What goes wrong all the time: chances in a thousand, each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    /// A roll-up is lost.
    pub(crate) roll_up_lost: u64,
    /// A roll-up arrives twice.
    pub(crate) roll_up_twice: u64,
    /// A roll-up has a row that cannot be read.
    pub(crate) roll_up_invalid: u64,
    /// A roll-up arrives after the next one.
    pub(crate) roll_up_late: u64,
    /// A call never arrives.
    pub(crate) call_lost: u64,
    /// A call's answer never arrives.
    pub(crate) answer_lost: u64,
    /// A List answers with what the last one said.
    pub(crate) list_stale: u64,
    /// A List does not come to its end.
    pub(crate) list_failed: u64,
    /// A full List has a record that cannot be read.
    pub(crate) record_invalid: u64,
    /// A call that was taken on fails.
    pub(crate) stage_failed: u64,
    /// A bootstrap blob never comes.
    pub(crate) blob_lost: u64,
    /// A machine that is configured never becomes a node.
    pub(crate) node_lost: u64,
    /// Serving machines break so far apart on average, in milliseconds; 0 for never.
    pub(crate) break_every: u64,
}

impl Weather {
    /// A bad network in front of a bad cloud.
    pub(crate) const ROUGH: Self = Self {
        roll_up_lost: 50,
        roll_up_twice: 50,
        roll_up_invalid: 20,
        roll_up_late: 30,
        call_lost: 20,
        answer_lost: 20,
        list_stale: 100,
        list_failed: 50,
        record_invalid: 50,
        stage_failed: 10,
        blob_lost: 10,
        node_lost: 10,
        break_every: 0,
    };
}

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stages {
    /// Speculative to Idle.
    pub(crate) create: Latency,
    /// Idle to Configured.
    pub(crate) configure: Latency,
    /// Configured to Idle, once the provider is told.
    pub(crate) drain: Latency,
    /// Idle to Speculative.
    pub(crate) delete: Latency,
    /// Configured to a node that takes Pods.
    pub(crate) join: Latency,
    /// An operator's way from an instruction to an empty node.
    pub(crate) evict: Latency,
    /// An operator's answer with a blob.
    pub(crate) blob: Latency,
    /// One way between shard and provider.
    pub(crate) network: Latency,
    /// One way between shard and operator.
    pub(crate) stream: Latency,
    /// A List, from its beginning to its last page. It shows what was in between.
    pub(crate) list: Latency,
    /// A write, until it is on disk.
    pub(crate) disk: Latency,
    /// A cycle: what arrives meanwhile waits.
    pub(crate) cycle: Latency,
    /// A Failed machine, until its slot is as new; zero for never.
    pub(crate) repair: Latency,
}

impl Stages {
    /// A cloud as clouds are: minutes to create, seconds to configure, stragglers everywhere.
    pub(crate) const CLOUD: Self = Self {
        create: Latency::LongTail(60_000),
        configure: Latency::Stragglers((2_000, 10_000), 20, (30_000, 90_000)),
        drain: Latency::Between(1_000, 20_000),
        delete: Latency::Between(5_000, 60_000),
        join: Latency::Between(10_000, 120_000),
        evict: Latency::Between(1_000, 60_000),
        blob: Latency::Between(10, 500),
        network: Latency::Between(1, 200),
        stream: Latency::Between(1, 100),
        list: Latency::Between(50, 2_000),
        disk: Latency::Stragglers((1, 10), 20, (50, 500)),
        cycle: Latency::Between(1, 50),
        repair: Latency::Between(300_000, 1_200_000),
    };
}

impl Default for Stages {
    fn default() -> Self {
        Self::CLOUD
    }
}

/// How the shard is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardPlan {
    /// Whether the safety rails are on.
    pub(crate) rails: bool,
    /// Whether Lists ask only for what changed.
    pub(crate) incremental: bool,
    /// Seconds between cycles.
    pub(crate) cycle_seconds: u64,
    /// Calls on the wire at once.
    pub(crate) workers: usize,
    /// Actions per cycle; zero for no limit.
    pub(crate) actions_per_cycle: usize,
    /// How long unclaimed machines stay idle.
    pub(crate) holds: Holds,
    /// Epochs that were used before the run.
    pub(crate) epochs: u64,
}

impl Default for ShardPlan {
    fn default() -> Self {
        Self {
            rails: false,
            incremental: true,
            cycle_seconds: 10,
            workers: 32,
            actions_per_cycle: 0,
            holds: Holds::default(),
            epochs: 0,
        }
    }
}
