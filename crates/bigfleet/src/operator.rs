//! `bigfleet operator`: flags to checked settings, and a cluster's operator until the process is asked to end.

use crate::cluster_side::{ClusterFlags, selector};
use crate::failure::Failure;
use bigfleet_model::{ClusterId, Requirement};
use bigfleet_net::{Dial, LogFlags, Tls, TlsFlags, asked_to_end};
use bigfleet_operator::{OperatorSettings, read_template, serve_probes, start};
use bigfleet_operator_core::OperatorConfig;
use bigfleet_provider_fake::duration;
use clap::{ArgAction, Args as ClapArgs};
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::time::Duration;

const LEASE: &str = "bigfleet-operator";

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The id of this cluster; never change it, its certificate and its machines carry it
    #[arg(long)]
    cluster_id: String,
    /// The shard that serves this cluster: host:port
    #[arg(long)]
    shard_addr: String,
    /// The cluster.
    #[command(flatten)]
    cluster: ClusterFlags,
    /// The address of /metrics; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8770")]
    metrics_addr: String,
    /// The address of /healthz and /readyz; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8771")]
    health_addr: String,
    /// Writes to the API server per second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    qps: u32,
    /// Writes at once after a pause
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    burst: u32,
    /// Acknowledgements at once
    #[arg(long, default_value_t = 16)]
    ack_concurrency: usize,
    /// How often to report the whole demand though nothing changed; 0s for 10s
    #[arg(long, value_parser = duration, default_value = "10s")]
    rollup_interval: Duration,
    /// What a machine needs to join: a template; read again when it changes [default: a stub]
    #[arg(long)]
    bootstrap_template_file: Option<PathBuf>,
    /// Make short-lived tokens with which machines join, for the template
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    bootstrap_tokens: bool,
    /// How long such a token lasts
    #[arg(long, value_parser = duration, default_value = "2h")]
    bootstrap_token_ttl: Duration,
    /// Report Pods of unlike sizes apart, so that a large one does not make small machines useless
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    unit_classes: bool,
    /// Give Nodes back whose Pods would fit elsewhere
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    consolidate: bool,
    /// How long a drain that can wait does so between its cordon and its first eviction
    #[arg(long, value_parser = duration, default_value = "60s")]
    reclaim_settle: Duration,
    /// Delete the Nodes of machines that left
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    node_cleanup: bool,
    /// Nodes that are no machines of BigFleet: a label selector
    #[arg(long, default_value = "node-role.kubernetes.io/control-plane", value_parser = requirements)]
    unmanaged_nodes: Requirements,
    /// How long to hold back a withdrawal of half of the demand while its Pods are there
    #[arg(long, value_parser = duration, default_value = "30m")]
    max_withdrawal_hold: Duration,
    /// Ask for as much more as DaemonSets take of every machine: auto or off
    #[arg(long, default_value = "auto", value_parser = ["auto", "off"])]
    daemonset_overhead: String,
    /// Certificates.
    #[command(flatten)]
    tls: TlsFlags,
    /// Logs.
    #[command(flatten)]
    logs: LogFlags,
}

type Requirements = Vec<Requirement>;

fn requirements(text: &str) -> Result<Requirements, String> {
    selector(text)
}

/// Runs it until the process is asked to end.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(format!("bigfleet operator: {why}"));
    let config = config(args).map_err(|problems| Failure::Undone(problems.join("\n")))?;
    let tls = args.tls.files().map_err(|why| undone(&why))?;
    let tls = tls.map(Tls::load).transpose().map_err(|why| undone(&why))?;
    args.logs.start().map_err(|why| undone(&why))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let (cluster, leading) = args
            .cluster
            .connect(LEASE)
            .await
            .map_err(|why| undone(&why))?;
        tracing::info!(cluster = %args.cluster_id, server = cluster.server(), "operator");
        let settings = OperatorSettings {
            core: config,
            shard_addr: args.shard_addr.clone(),
            tls,
            leading,
            template_file: args.bootstrap_template_file.clone(),
        };
        let operator = start(cluster, settings);
        let addrs = [args.metrics_addr.clone(), args.health_addr.clone()];
        let metrics = operator.metrics(&args.cluster_id);
        let served = serve_probes(&addrs, operator.health(), metrics).await;
        let served = served.map_err(|why| undone(&bigfleet_net::chain(&why)))?;
        let shown = |nth: usize| served.get(nth).map(ToString::to_string).unwrap_or_default();
        tracing::info!(addr = shown(0), probes = shown(1), "listening");
        asked.await;
        operator.stop().await;
        Ok(())
    })
}

/// The settings these flags ask for, or everything that is wrong with them.
fn config(args: &Args) -> Result<OperatorConfig, Vec<String>> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(format!("bigfleet operator: {problem}"));
        }
    };
    must(
        bigfleet_wire::is_portable_id(&args.cluster_id),
        "--cluster-id has to be letters, digits, '.', '_' and '-'",
    );
    must(
        args.rollup_interval.is_zero() || Duration::from_secs(1) <= args.rollup_interval,
        "--rollup-interval is below 1s",
    );
    must(
        Duration::from_secs(1200) <= args.bootstrap_token_ttl,
        "--bootstrap-token-ttl is below 20m: a token is handed out only if it lasts for 10m more",
    );
    let refused = Dial::check(&args.shard_addr).err();
    let refused = refused.map(|why| format!("bigfleet operator: --shard-addr {why}"));
    problems.extend(refused);
    let template = args.bootstrap_template_file.as_deref().map(read_template);
    let template = template.transpose().unwrap_or_else(|why| {
        problems.push(format!("bigfleet operator: {why}"));
        None
    });
    let cluster = ClusterId::new(&args.cluster_id);
    let Some(cluster) = cluster.ok().filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let interval = Some(args.rollup_interval).filter(|interval| !interval.is_zero());
    let base = OperatorConfig::new(cluster);
    Ok(OperatorConfig {
        rollup_interval: interval.unwrap_or(base.rollup_interval),
        qps: args.qps,
        burst: args.burst,
        ack_concurrency: if args.ack_concurrency == 0 {
            16
        } else {
            args.ack_concurrency
        },
        unit_classes: args.unit_classes,
        consolidate: args.consolidate,
        reclaim_settle: args.reclaim_settle,
        node_cleanup: args.node_cleanup,
        unmanaged_nodes: args.unmanaged_nodes.clone(),
        max_withdrawal_hold: args.max_withdrawal_hold,
        token_ttl: args.bootstrap_tokens.then_some(args.bootstrap_token_ttl),
        daemonset_overhead: args.daemonset_overhead == "auto",
        template,
        jitter_seed: drawn(),
        ..base
    })
}

/// A number that another process does not draw.
fn drawn() -> u64 {
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
