//! Meter: what a process uses, as the kernel counts it.

use std::time::Instant;

use serde::Serialize;

use crate::memory::{peak_mb, resident_mb};
use crate::percentiles::rounded;

/// The kernel counts CPU in hundredths of a second, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// What one process used while it was watched.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ProcessCost {
    /// Seconds of a core, per second.
    pub cores: f64,
    /// Memory at the end.
    pub rss_mb: f64,
    /// The most memory it ever had.
    pub peak_rss_mb: f64,
}

/// Watches what a process uses from now on.
pub(crate) struct Meter {
    pid: u32,
    began: Instant,
    cpu_seconds: Option<f64>,
}

impl Meter {
    pub(crate) fn start(pid: u32) -> Self {
        Self {
            pid,
            began: Instant::now(),
            cpu_seconds: cpu_seconds(pid),
        }
    }

    /// What it used since; `None` where the system does not tell.
    pub(crate) fn read(&self) -> Option<ProcessCost> {
        let spent = cpu_seconds(self.pid)? - self.cpu_seconds?;
        Some(ProcessCost {
            cores: rounded(spent / self.began.elapsed().as_secs_f64().max(1e-9)),
            rss_mb: resident_mb(self.pid)?,
            peak_rss_mb: peak_mb(self.pid)?,
        })
    }
}

/// Seconds of a core a process has used.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold blanks; user and system time are the 14th and 15th field.
    let (_, after) = text.rsplit_once(')')?;
    let fields = after.split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / TICKS_PER_SECOND)
}
