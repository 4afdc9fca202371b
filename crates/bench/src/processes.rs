//! What a shard and a provider cost as processes: everything real but the cloud, on the same few cores.
//!
//! ```text
//! operators, in this process ══ one TCP connection each ══▶ bigfleet shard ══▶ bigfleet provider fake
//!        │ what they are told                                  │ memory, CPU         in memory, instant
//!        └────────────────────────▶ report ◀───────────────────┘ cycles, commits, Lists
//! ```
//!
//! A shard is measured in parts, each with processes of its own: the walk of a whole fleet from Idle to
//! Configured; the same with default settings; sessions held, with the cycles decided under their load; a
//! restart with everything remembered. A provider is measured without a shard ([`provider()`]),
//! and so is a coordinator ([`coordinator()`]).
//!
//! An operator and a pod controller are measured against a real API server and a shard from a script ([`operator()`]).
//!
//! Nothing is taken from inside a process but what it logs and shows to anyone, so the numbers are
//! those of the program that ships.

mod coordinator;
mod demand;
mod exec;
mod limits;
mod meter;
mod operator;
mod operators;
mod process;
mod provider;
mod provider_client;
mod report;
mod restart;
mod scene;
mod sessions;
mod walk;

use std::path::PathBuf;
use std::time::Duration;

use crate::Progress;

pub use coordinator::{CoordinatorReport, CoordinatorSettings, coordinator};
pub use exec::ExecReport;
pub use meter::ProcessCost;
pub use operator::{
    BurstReport, OperatorReport, OperatorSettings, PodsReport, RequestsReport, UpdatesReport,
    operator,
};
pub use provider::{ProviderReport, ProviderSettings, provider};
pub use report::{NotMeasured, RestartReport, SessionsReport, ShardReport, Timings, WalkReport};

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Idle machines, all of them bound.
    Walk,
    /// The same with the shard's default settings: how soon it looks for what its calls came to.
    DefaultWalk,
    /// Sessions held, and cycles under their load.
    Sessions,
    /// From the start of the process to ready, with everything remembered.
    Restart,
}

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct ShardSettings {
    /// The binary whose `shard` and `provider fake` are run.
    pub program: PathBuf,
    /// Where data directories are made: that disk is measured.
    pub folder: PathBuf,
    /// Which parts.
    pub parts: Vec<Part>,
    /// Machines of the walk, and of the fleet under the sessions.
    pub machines: usize,
    /// Sessions held.
    pub sessions: usize,
    /// How long they are watched.
    pub watched: Duration,
    /// How often each rolls up.
    pub every: Duration,
    /// Records of the restart.
    pub records: usize,
}

/// Measures a shard.
pub async fn shard(
    settings: &ShardSettings,
    progress: Progress<'_>,
) -> Result<ShardReport, NotMeasured> {
    let mut report = ShardReport {
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        open_files: limits::raise_open_files(),
        flags: scene::FAST_LISTS.to_vec(),
        ..ShardReport::default()
    };
    for part in &settings.parts {
        match part {
            Part::Walk => {
                let walked = walk::run(settings, &scene::FAST_LISTS, progress).await?;
                report.walk = Some(walked);
            }
            Part::DefaultWalk => {
                report.default_walk = Some(walk::run(settings, &[], progress).await?);
            }
            Part::Sessions => report.sessions = Some(sessions::run(settings, progress).await?),
            Part::Restart => report.restart = Some(restart::run(settings, progress).await?),
        }
    }
    Ok(report)
}
