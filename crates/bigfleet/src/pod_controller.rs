//! `bigfleet pod-controller`: flags to checked settings, and a CapacityRequest for every Pod until the process is asked to end.

use crate::cluster_side::{ClusterFlags, selector};
use crate::failure::Failure;
use bigfleet_model::Requirement;
use bigfleet_model::quantity::parse_demand;
use bigfleet_net::{LogFlags, asked_to_end};
use bigfleet_operator::{PodSettings, serve_probes, start_pods};
use bigfleet_operator_core::{PenaltyDefaults, PodConfig};
use clap::Args as ClapArgs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LEASE: &str = "bigfleet-pod-controller";

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The cluster.
    #[command(flatten)]
    cluster: ClusterFlags,
    /// The address of /metrics; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8080")]
    metrics_addr: String,
    /// The address of /healthz and /readyz; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8772")]
    health_addr: String,
    /// Penalties by PriorityClass: a YAML file, each class with interruptionPenalty and reclamationPenalty
    #[arg(long)]
    priority_class_defaults: Option<PathBuf>,
    /// Writes to the API server per second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    qps: u32,
    /// Writes at once after a pause
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    burst: u32,
    /// Resources that no machine states; separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ephemeral-storage")]
    ignore_resources: Vec<String>,
    /// Namespaces whose Pods need nothing of BigFleet; separated by commas
    #[arg(long, value_delimiter = ',')]
    ignore_namespaces: Vec<String>,
    /// Nodes whose Pods need nothing of BigFleet: a label selector
    #[arg(long, default_value = "", value_parser = requirements)]
    unmanaged_nodes: Requirements,
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
    let undone =
        |why: &dyn std::fmt::Display| Failure::Undone(format!("bigfleet pod-controller: {why}"));
    let penalties = args.priority_class_defaults.as_deref().map(penalties);
    let penalties = penalties.transpose().map_err(|why| undone(&why))?;
    args.logs.start().map_err(|why| undone(&why))?;
    let named = |names: &[String]| {
        names
            .iter()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect()
    };
    let config = PodConfig {
        ignored_resources: named(&args.ignore_resources),
        ignored_namespaces: named(&args.ignore_namespaces),
        penalties: penalties.unwrap_or_default(),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let (cluster, leading) = args
            .cluster
            .connect(LEASE)
            .await
            .map_err(|why| undone(&why))?;
        let settings = PodSettings {
            config,
            unmanaged_nodes: args.unmanaged_nodes.clone(),
            qps: args.qps,
            burst: args.burst,
            leading,
        };
        let pods = start_pods(cluster, settings);
        let addrs = [args.metrics_addr.clone(), args.health_addr.clone()];
        let served = serve_probes(&addrs, pods.health(), pods.metrics()).await;
        let served = served.map_err(|why| undone(&bigfleet_net::chain(&why)))?;
        let shown = |nth: usize| served.get(nth).map(ToString::to_string).unwrap_or_default();
        tracing::info!(addr = shown(0), probes = shown(1), "listening");
        asked.await;
        pods.stop().await;
        Ok(())
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Penalties {
    interruption_penalty: Option<String>,
    reclamation_penalty: Option<String>,
}

/// The file, every value checked: a number without quotes would be read as something else by the next program.
fn penalties(file: &Path) -> Result<BTreeMap<String, PenaltyDefaults>, String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|why| format!("{shown}: {why}"))?;
    let read: BTreeMap<String, Penalties> =
        serde_norway::from_str(&text).map_err(|why| format!("{shown}: {why}"))?;
    let mut defaults = BTreeMap::new();
    for (class, penalties) in read {
        let Penalties {
            interruption_penalty,
            reclamation_penalty,
        } = penalties;
        for text in [&interruption_penalty, &reclamation_penalty]
            .into_iter()
            .flatten()
        {
            parse_demand(text).map_err(|why| format!("{shown}: class {class}: {why}"))?;
        }
        let penalties = PenaltyDefaults {
            interruption: interruption_penalty,
            reclamation: reclamation_penalty,
        };
        defaults.insert(class, penalties);
    }
    Ok(defaults)
}
