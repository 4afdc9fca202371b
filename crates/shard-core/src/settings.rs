//! Settings: checked once at the edge; inside, every value is usable as it is.
//!
//! A number is a constant until there is evidence for a second value.

use crate::defect::Defect;
use bigfleet_model::{HashKey, Holds};
use std::time::Duration;

/// At least this long between two cycles (SH-1).
pub(crate) const CYCLE_SPACING: Duration = Duration::from_millis(100);
/// Completions and ended intents are on disk this soon (SH-5).
pub(crate) const FLUSH_WITHIN: Duration = Duration::from_secs(5);
/// Committed operations in flight (SH-2).
pub(crate) const MOST_IN_FLIGHT: usize = 4096;
/// Confirming reads at once.
pub(crate) const MOST_GETS: usize = 64;
/// The first pause before a call is sent again; each next one is twice as long.
pub(crate) const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest pause before a call is sent again.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// How long a Delete is tried that the provider does not carry out (SH-23).
pub(crate) const DELETE_PATIENCE: Duration = Duration::from_secs(300);
/// What a drained machine is still given (SH-14).
pub(crate) const LEAST_DRAIN: Duration = Duration::from_secs(30);
/// How long an operator may take to answer for a blob.
pub(crate) const BLOB_TIMEOUT: Duration = Duration::from_secs(30);
/// An intent of a cluster that never reported ends after this long (SH-7).
pub(crate) const UNREPORTED_INTENT: Duration = Duration::from_secs(3600);
/// The intent of an Idle machine ends this long after its cluster's session did (SH-7).
pub(crate) const ABANDONED_INTENT: Duration = Duration::from_secs(600);
/// A cluster that holds nothing and has no session is forgotten after this long (SH-24).
pub(crate) const CLUSTER_FORGOTTEN: Duration = Duration::from_secs(3600);
/// How long a node may take to become ready (SH-17).
pub(crate) const NODE_DEADLINE: Duration = Duration::from_secs(600);
/// How long a frozen judgement of nodes waits.
pub(crate) const NODE_FREEZE: Duration = Duration::from_secs(60);

/// The rails (shard.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Reclaims per cluster and cycle, in millionths of its Configured machines; zero is no cap.
    pub reclaim_cap_per_million: u32,
    /// Whether a roll-up that withdraws nearly everything is held.
    pub roll_up_guard: bool,
}

/// How a shard is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// The shard's id; never empty.
    pub shard: String,
    /// Its provider's name.
    pub provider: String,
    /// How often to decide, and how often to List.
    pub cycle_interval: Duration,
    /// Lists of the interval ask for everything, although the provider can say what changed.
    pub full_lists: bool,
    /// Calls on the wire at once.
    pub execute_concurrency: usize,
    /// Of those, for one cluster (SH-2); zero is no limit of its own.
    pub calls_per_cluster: usize,
    /// Actions committed per cycle; zero is no limit of its own.
    pub max_actions_per_cycle: usize,
    /// Cycles whose durations are not counted, after the start.
    pub metrics_warmup_cycles: u64,
    /// The least time between two hints for one fingerprint.
    pub hint_interval: Duration,
    /// The rails.
    pub rails: Rails,
    /// Decide, say what would be done, do nothing.
    pub dry_run: bool,
    /// How long unclaimed machines stay idle.
    pub holds: Holds,
    /// The key that names are found with. A process draws one when it starts, and no effect depends on it (D-6).
    pub hash_key: HashKey,
    /// Labels (key, value) of machines that are ours; empty for no such limit.
    pub own_domains: Vec<(String, String)>,
    /// There is a coordinator to report to. A shard that has nothing on disk waits for its word before it takes in unbound
    /// machines (CO-26); nothing else waits for it.
    pub coordinated: bool,
    /// An old mistake switched back on; only for the simulator's failing arms, and no flag sets it.
    pub defect: Option<Defect>,
}

impl ShardConfig {
    /// Rails on.
    pub fn production(shard: &str, provider: &str) -> Self {
        Self {
            rails: Rails {
                reclaim_cap_per_million: 50_000,
                roll_up_guard: true,
            },
            calls_per_cluster: 16,
            ..Self::undamped(shard, provider)
        }
    }

    /// Rails off: a simulation must show the engine's mistakes, not have them softened.
    pub fn undamped(shard: &str, provider: &str) -> Self {
        Self {
            shard: shard.to_owned(),
            provider: provider.to_owned(),
            cycle_interval: Duration::from_secs(10),
            full_lists: false,
            execute_concurrency: 32,
            calls_per_cluster: 0,
            max_actions_per_cycle: 0,
            metrics_warmup_cycles: 0,
            hint_interval: Duration::from_secs(5),
            rails: Rails {
                reclaim_cap_per_million: 0,
                roll_up_guard: false,
            },
            dry_run: false,
            holds: Holds::default(),
            hash_key: HashKey::default(),
            own_domains: Vec::new(),
            coordinated: false,
            defect: None,
        }
    }
}
