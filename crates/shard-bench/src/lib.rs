//! What a shard costs as a process: everything real but the cloud, on the same few cores.
//!
//! ```text
//! operators, in this process ══ one TCP connection each ══▶ bigfleet shard ══▶ bigfleet provider fake
//!        │ what they are told                                  │ memory, CPU         in memory, instant
//!        └────────────────────────▶ report ◀───────────────────┘ cycles, commits, Lists
//! ```
//!
//! Three parts, each with processes of its own: the walk of a whole fleet from Idle to Configured;
//! sessions held, with the cycles decided under their load; a restart with everything remembered.
//!
//! Nothing is taken from inside the shard but what it logs and shows to anyone, so the numbers are
//! those of the program that ships.

mod demand;
mod limits;
mod operators;
mod process;
mod report;
mod restart;
mod samples;
mod scene;
mod sessions;
mod walk;

use std::path::PathBuf;
use std::time::Duration;

pub use report::{
    ProcessCost, RestartReport, SessionsReport, ShardReport, Timings, Undone, WalkReport,
};
pub use samples::Percentiles;

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Idle machines, all of them bound.
    Walk,
    /// Sessions held, and cycles under their load.
    Sessions,
    /// From the start of the process to ready, with everything remembered.
    Restart,
}

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
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

/// Told what is going on: the phase, how far it is, and of how much.
pub type Progress<'a> = &'a mut (dyn FnMut(&'static str, usize, usize) + Send);

/// Measures.
pub async fn run(settings: &Settings, progress: Progress<'_>) -> Result<ShardReport, Undone> {
    let mut report = ShardReport {
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        open_files: limits::raise_open_files(),
        flags: scene::FLAGS.to_vec(),
        ..ShardReport::default()
    };
    for part in &settings.parts {
        match part {
            Part::Walk => report.walk = Some(walk::run(settings, progress).await?),
            Part::Sessions => report.sessions = Some(sessions::run(settings, progress).await?),
            Part::Restart => report.restart = Some(restart::run(settings, progress).await?),
        }
    }
    Ok(report)
}
