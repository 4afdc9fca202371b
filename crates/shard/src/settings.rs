//! Settings: how a shard is run, checked once by whoever read the flags.

use std::path::PathBuf;
use std::time::Duration;

use bigfleet_net::TlsFiles;
use bigfleet_shard_core::ShardConfig;

use crate::audit::Rotation;
use crate::trouble::Trouble;

/// How a shard is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the core is told.
    pub core: ShardConfig,
    /// Where operators and readers call; `:7780` is this host only.
    pub listen: String,
    /// Where probes and metrics are; `None` for nowhere.
    pub metrics_addr: Option<String>,
    /// What must survive: the epoch and the store.
    pub data_dir: PathBuf,
    /// The least epoch to start with, for a data directory that was lost.
    pub epoch_floor: u64,
    /// Forget everything the data directory holds but the epoch: after it was superseded, or copied.
    pub records_lost: bool,
    /// The provider's address, `host:port`.
    pub provider_addr: String,
    /// Once per interval, ask the provider for changes only, and for everything now and then. Sooner than
    /// that it is only ever asked for changes, where it can tell.
    pub incremental_reconcile: bool,
    /// The largest frame of an operator, in bytes.
    pub largest_frame: usize,
    /// Decide, but let nothing leave.
    pub actuation_paused: bool,
    /// A file that pauses while it is there.
    pub pause_file: PathBuf,
    /// Where decisions are written down; `None` for nowhere.
    pub audit_log: Option<PathBuf>,
    /// How much of that is kept.
    pub audit_rotation: Rotation,
    /// Certificates, for callers and towards the provider; `None` for plaintext.
    pub tls: Option<TlsFiles>,
    /// Whether others may reach an address without certificates.
    pub insecure: bool,
    /// Whether to answer gRPC reflection; never outside of this host.
    pub reflection: bool,
    /// Seconds that pass for the shard in one of the host's: 1, but in a demonstration whose provider and
    /// clusters live as fast. What bounds a call or a stop is the host's time at any speed.
    pub speed: f64,
    /// Log every 20th cycle whether what was reclaimed could have served what is short.
    pub attribution_probe: bool,
    /// What goes wrong on purpose, in tests.
    pub trouble: Trouble,
    /// What the process around the shard was told.
    pub around: Around,
}

/// Settings of the process that the shard itself does not read: shown with its own, for whoever asks
/// what is in force.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The coordinator the shard reports to.
    pub coordinator_addr: Option<String>,
    /// The address the shard reports as its own.
    pub advertise_addr: String,
    /// The time between two reports.
    pub heartbeat: Duration,
    /// How log lines are written.
    pub log_format: String,
    /// The log filter.
    pub log_level: String,
}

impl Settings {
    /// The largest frame of an operator unless something else is asked for, in MiB.
    pub const LARGEST_FRAME_MIB: usize = 32;
    /// How long a call on one machine may take.
    pub(crate) const CALL_WITHIN: Duration = Duration::from_secs(30);
    /// How long one page of a List may take.
    pub(crate) const LIST_WITHIN: Duration = Duration::from_secs(120);
    /// How long a stopping shard waits for calls under way, and for callers to hang up.
    pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(5);

    /// The few of them that explain what a graph shows, as labels of a metric.
    pub(crate) fn labels(&self) -> Vec<(&'static str, String)> {
        let core = &self.core;
        let addr = self.around.coordinator_addr.clone();
        vec![
            ("shard", core.shard.clone()),
            ("provider_addr", self.provider_addr.clone()),
            ("coordinator_addr", addr.unwrap_or_default()),
            (
                "cycle_interval_seconds",
                core.cycle_interval.as_secs_f64().to_string(),
            ),
            ("execute_concurrency", core.execute_concurrency.to_string()),
            (
                "max_actions_per_cycle",
                core.max_actions_per_cycle.to_string(),
            ),
            (
                "reclaim_cap_fraction",
                (f64::from(core.rails.reclaim_cap_per_million) / 1e6).to_string(),
            ),
            ("empty_rollup_guard", core.rails.roll_up_guard.to_string()),
            (
                "incremental_reconcile",
                self.incremental_reconcile.to_string(),
            ),
            ("dry_run", core.dry_run.to_string()),
            ("actuation_paused", self.actuation_paused.to_string()),
            ("tls", self.tls.is_some().to_string()),
        ]
    }

    /// What is in force, for people: no secret is among it.
    pub(crate) fn shown(&self, epoch: u64) -> serde_json::Value {
        let core = &self.core;
        let holds = |hold: Option<Duration>| hold.map(|hold| hold.as_secs());
        serde_json::json!({
            "shard": core.shard,
            "epoch": epoch,
            "listen": self.listen,
            "metrics_addr": self.metrics_addr,
            "data_dir": self.data_dir,
            "epoch_floor": self.epoch_floor,
            "records_lost": self.records_lost,
            "provider": { "name": core.provider, "addr": self.provider_addr },
            "incremental_reconcile": self.incremental_reconcile,
            "largest_frame_bytes": self.largest_frame,
            "cycle_interval_seconds": core.cycle_interval.as_secs_f64(),
            "execute_concurrency": core.execute_concurrency,
            "calls_per_cluster": core.calls_per_cluster,
            "max_actions_per_cycle": core.max_actions_per_cycle,
            "available_capacity_interval_seconds": core.hint_interval.as_secs_f64(),
            "reclaim_cap_fraction": f64::from(core.rails.reclaim_cap_per_million) / 1e6,
            "empty_rollup_guard": core.rails.roll_up_guard,
            "dry_run": core.dry_run,
            "actuation_paused": self.actuation_paused,
            "pause_file": self.pause_file,
            "audit_log": self.audit_log,
            "audit_max_bytes": self.audit_rotation.max_bytes,
            "audit_files": self.audit_rotation.files,
            "idle_hold_seconds": {
                "on_demand": holds(core.holds.on_demand),
                "spot": holds(core.holds.spot),
            },
            "own_domains": core.own_domains,
            "metrics_warmup_cycles": core.metrics_warmup_cycles,
            "phase_attribution_log": self.attribution_probe,
            "reflection": self.reflection,
            "clock_speed": self.speed,
            "tls": self.tls.as_ref().map(|files| serde_json::json!({
                "cert": files.cert, "key": files.key, "ca": files.ca,
            })),
            "coordinator": self.around.coordinator_addr.as_ref().map(|addr| serde_json::json!({
                "addr": addr,
                "advertise_addr": self.around.advertise_addr,
                "heartbeat_interval_seconds": self.around.heartbeat.as_secs_f64(),
            })),
            "log": { "format": self.around.log_format, "level": self.around.log_level },
        })
    }
}
