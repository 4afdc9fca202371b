//! Report: the object that is printed about a shard, and what was promised about each part.

use serde::Serialize;

use super::meter::ProcessCost;
use crate::checks::{Check, Promises, ratio};
use crate::percentiles::Percentiles;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum NotMeasured {
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
        /// `shard` or `provider`.
        process: &'static str,
        /// What was wrong, with the end of what it logged.
        problem: String,
    },
    /// What came out is not what was asked for, so a time would mean nothing.
    #[error("{0}")]
    Wrong(String),
}

impl NotMeasured {
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
    /// What of the shard's flags differs from the defaults, but for the walk with default settings.
    pub flags: Vec<&'static str>,
    /// Idle machines bound.
    pub walk: Option<WalkReport>,
    /// Idle machines bound, with default settings.
    pub default_walk: Option<WalkReport>,
    /// Sessions held.
    pub sessions: Option<SessionsReport>,
    /// A restart.
    pub restart: Option<RestartReport>,
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
    /// What the shard used.
    pub shard: Option<ProcessCost>,
    /// What the provider used.
    pub provider: Option<ProcessCost>,
    /// What this process used, which is all operators.
    pub operators: Option<ProcessCost>,
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
    /// What the shard used.
    pub shard: Option<ProcessCost>,
    /// What the provider used.
    pub provider: Option<ProcessCost>,
    /// What this process used, which is all operators.
    pub operators: Option<ProcessCost>,
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
    /// What the shard used.
    pub shard: Option<ProcessCost>,
    /// Memory of the provider.
    pub provider_rss_mb: Option<f64>,
}

/// Below so many machines a walk is over before its rate means anything.
const RATED_FROM: usize = 10_000;

impl Promises for ShardReport {
    fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(walk) = &self.walk {
            checks.extend(walk.checks("walk", 5_000.0));
        }
        if let Some(walk) = &self.default_walk {
            checks.extend(walk.checks("default_walk", 2_000.0));
        }
        checks.extend(self.sessions.iter().flat_map(Promises::checks));
        checks.extend(self.restart.iter().flat_map(Promises::checks));
        checks
    }
}

impl WalkReport {
    fn checks(&self, part: &str, bindings_per_second: f64) -> Vec<Check> {
        let (machines, configured) = (self.machines as f64, self.configured as f64);
        let name = |what: &str| format!("{part}_{what}");
        let mut checks = vec![Check::at_least(&name("configured"), configured, machines)];
        if RATED_FROM <= self.machines {
            let rate = Some(self.bindings_per_second);
            let bound = bindings_per_second;
            checks.push(Check::at_least(&name("bindings_per_second"), rate, bound));
            // On the same cores at the same time, so no neighbour moves it.
            let share = self.shard_over_others();
            checks.push(Check::at_most(&name("shard_over_others_cpu"), share, 4.0));
        }
        checks
    }

    /// The shard's share of the CPU, for each second of its provider and its operators.
    fn shard_over_others(&self) -> Option<f64> {
        let others = self.provider?.cores + self.operators?.cores;
        ratio(self.shard?.cores, others)
    }
}

impl Promises for SessionsReport {
    fn checks(&self) -> Vec<Check> {
        let (held, sessions) = (self.held as f64, self.sessions as f64);
        let (accepted, rollups) = (self.accepted as f64, self.rollups as f64);
        let cores = self.shard.map(|shard| shard.cores);
        vec![
            Check::at_least("sessions_held", held, sessions),
            Check::at_least("sessions_rollups_accepted", accepted, rollups),
            Check::at_most("sessions_shard_cores", cores, 1.0),
            Check::at_most("sessions_cycle_ms_p99", self.timings.cycle_ms.p99, 20.0),
        ]
    }
}

impl Promises for RestartReport {
    fn checks(&self) -> Vec<Check> {
        let (known, records) = (self.known as f64, self.records as f64);
        let peak = self.shard.map(|shard| shard.peak_rss_mb);
        vec![
            Check::at_least("restart_known", known, records),
            Check::at_most("restart_ready_seconds", self.ready_seconds, 5.0),
            Check::at_most("restart_peak_rss_mb", peak, 768.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::broken;

    fn cost(cores: f64) -> Option<ProcessCost> {
        Some(ProcessCost {
            cores,
            rss_mb: 1.0,
            peak_rss_mb: 1.0,
        })
    }

    fn walk(machines: usize, bindings_per_second: f64) -> WalkReport {
        WalkReport {
            machines,
            clusters: 1,
            rows: 1,
            configured: machines,
            blobs: machines,
            blob_bytes: 1,
            seconds: 1.0,
            bindings_per_second,
            shard: cost(1.0),
            provider: cost(0.5),
            operators: cost(0.5),
            timings: Timings::default(),
        }
    }

    #[test]
    fn each_walk_has_a_bound_of_its_own() {
        let report = |rate| ShardReport {
            walk: Some(walk(RATED_FROM, rate)),
            default_walk: Some(walk(RATED_FROM, rate)),
            ..ShardReport::default()
        };
        assert!(broken(&report(5_000.0)).is_empty());
        assert_eq!(
            broken(&report(4_999.0)),
            ["walk_bindings_per_second_at_least"]
        );
        assert_eq!(broken(&report(1_999.0)).len(), 2);
    }

    #[test]
    fn a_short_walk_has_no_rate_but_must_arrive() {
        let mut walk = walk(RATED_FROM - 1, 1.0);
        walk.configured -= 1;
        let report = ShardReport {
            walk: Some(walk),
            ..ShardReport::default()
        };
        assert_eq!(broken(&report), ["walk_configured_at_least"]);
    }

    #[test]
    fn a_cost_that_is_not_known_breaks_a_promise() {
        let restart = RestartReport {
            machines: 1,
            records: 1,
            known: 1,
            ready_seconds: 5.0,
            listening_seconds: 1.0,
            list_ms: 1.0,
            shard: None,
            provider_rss_mb: None,
        };
        let report = ShardReport {
            restart: Some(restart),
            ..ShardReport::default()
        };
        assert_eq!(broken(&report), ["restart_peak_rss_mb_at_most"]);
    }
}
