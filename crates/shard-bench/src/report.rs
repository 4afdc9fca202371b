//! Report: the object that is printed.

use serde::Serialize;

use crate::samples::Percentiles;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Undone {
    /// A process or a file the system did not give.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A process of ours did not do what it should.
    #[error("{process}: {problem}")]
    Process {
        /// Which.
        process: &'static str,
        /// What was wrong, with the end of what it logged.
        problem: String,
    },
    /// What came out is not what was asked for, so a time would mean nothing.
    #[error("{0}")]
    Wrong(String),
}

impl Undone {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}

/// Everything measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ShardReport {
    /// Cores for all processes together.
    pub cores: usize,
    /// Files, and so connections, one process may have open; absent for no limit.
    pub open_files: Option<u64>,
    /// What of the shard's flags differs from the defaults.
    pub flags: Vec<&'static str>,
    /// Idle machines bound.
    pub walk: Option<WalkReport>,
    /// Sessions held.
    pub sessions: Option<SessionsReport>,
    /// A restart.
    pub restart: Option<RestartReport>,
}

/// What one process used while it was watched.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ProcessCost {
    /// Seconds of a core, per second.
    pub cores: f64,
    /// Memory at the end.
    pub rss_mb: f64,
    /// The most it ever had.
    pub peak_rss_mb: f64,
}

/// What a shard says of its own work.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Timings {
    /// Deciding and applying, in milliseconds.
    pub cycle_ms: Percentiles,
    /// Commits to the disk, on a thread of their own.
    pub commit_ms: Percentiles,
    /// Lists, from asking to the last page handed over.
    pub list_ms: Percentiles,
}

/// The walk from Idle to Configured.
#[derive(Clone, Debug, Serialize)]
pub struct WalkReport {
    /// Machines there are, all Idle.
    pub machines: usize,
    /// Clusters that want them all.
    pub clusters: usize,
    /// Rows of demand.
    pub rows: usize,
    /// Machines the operators were told are Configured.
    pub configured: usize,
    /// Blobs the operators were asked for.
    pub blobs: usize,
    /// Bytes of each.
    pub blob_bytes: usize,
    /// From the first roll-up to the last machine Configured, as the operators see it.
    pub seconds: f64,
    /// Machines per second.
    pub bindings_per_second: f64,
    /// The shard.
    pub shard: ProcessCost,
    /// The provider.
    pub provider: ProcessCost,
    /// This process, which is all operators.
    pub operators: ProcessCost,
    /// What the shard says.
    pub timings: Timings,
}

/// Sessions held.
#[derive(Clone, Debug, Serialize)]
pub struct SessionsReport {
    /// Machines of the fleet.
    pub machines: usize,
    /// Of those, bound when the watch began.
    pub configured: usize,
    /// Sessions, each a connection of its own.
    pub sessions: usize,
    /// Of those, still open at the end.
    pub held: usize,
    /// Rows of one roll-up.
    pub rows_per_rollup: usize,
    /// How often each session rolls up.
    pub every_seconds: f64,
    /// How long they were watched.
    pub seconds: f64,
    /// Roll-ups sent meanwhile.
    pub rollups: usize,
    /// Of those, with another demand than the one before.
    pub changed: usize,
    /// Roll-ups acknowledged as accepted.
    pub accepted: usize,
    /// From a roll-up's sending to its acknowledgement.
    pub ack_ms: Percentiles,
    /// The shard.
    pub shard: ProcessCost,
    /// The provider.
    pub provider: ProcessCost,
    /// This process, which is all operators.
    pub operators: ProcessCost,
    /// What the shard says.
    pub timings: Timings,
}

/// A restart.
#[derive(Clone, Debug, Serialize)]
pub struct RestartReport {
    /// Machines of the provider, all bound.
    pub machines: usize,
    /// Records in the data directory.
    pub records: usize,
    /// Machines the shard knows when it is ready.
    pub known: usize,
    /// From the start of the process to its first answer that it is ready.
    pub ready_seconds: f64,
    /// Of that, until it takes sessions.
    pub listening_seconds: f64,
    /// The first List.
    pub list_ms: f64,
    /// The shard.
    pub shard: ProcessCost,
    /// Memory of the provider.
    pub provider_rss_mb: f64,
}
