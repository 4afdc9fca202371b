//! `bigfleet coordinator`: flags to checked settings, and a replica until the process is asked to end.

use crate::failure::Failure;
use bigfleet_coordinator::{Export, Forming, Pace, Settings, ordinal, start};
use bigfleet_net::{Dial, LogFlags, ServingFlags, asked_to_end, check_exposure};
use bigfleet_provider_fake::duration;
use clap::Args as ClapArgs;
use std::{path::PathBuf, time::Duration};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The address that shards and the other verbs connect to; without a host, only from this one
    #[arg(long, default_value = ":7790")]
    listen: String,
    /// The address that other replicas connect to; without a host, only from this one
    #[arg(long, default_value = ":7791")]
    raft_bind: String,
    /// The address of /metrics, /healthz and /readyz; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8790")]
    metrics_addr: String,
    /// The replica's id, with a number at its end if there are several: coordinator-0
    #[arg(long, default_value = "coordinator-0")]
    id: String,
    /// The directory for what must survive a restart; created if it does not exist
    #[arg(long, default_value = "./coord-data")]
    data_dir: PathBuf,
    /// The address at which shards reach this replica [default: that of --listen]
    #[arg(long)]
    advertise_addr: Option<String>,
    /// The address at which other replicas reach this one [default: that of --raft-bind]
    #[arg(long)]
    raft_advertise: Option<String>,
    /// If the data directory is empty, begin a group of this replica alone
    #[arg(long, conflicts_with = "join_addr")]
    bootstrap: bool,
    /// The --listen addresses of all replicas, this one included, with commas: begin a group with them, or join it
    #[arg(long, value_delimiter = ',')]
    join_addr: Vec<String>,
    /// How many replicas the group begins with
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=7))]
    replicas: u32,
    /// How often the leader shows that it is there
    #[arg(long, value_parser = duration, default_value = "100ms")]
    raft_heartbeat: Duration,
    /// How long the others wait for that before they elect another one, at least
    #[arg(long, value_parser = duration, default_value = "300ms")]
    raft_election_min: Duration,
    /// The same, at most
    #[arg(long, value_parser = duration, default_value = "600ms")]
    raft_election_max: Duration,
    /// How often shards report; a report older than three of these is stale
    #[arg(long, value_parser = duration, default_value = "10s")]
    report_interval: Duration,
    /// A folder for backups, best on another disk: whoever leads puts one there every few minutes
    #[arg(long, value_name = "FOLDER")]
    snapshot_export_dir: Option<PathBuf>,
    /// How often
    #[arg(long, value_parser = duration, default_value = "5m")]
    snapshot_export_interval: Duration,
    /// How many of them are kept
    #[arg(long, default_value_t = 288, value_parser = clap::value_parser!(u32).range(1..))]
    snapshot_export_retain: u32,
    /// Certificates.
    #[command(flatten)]
    serving: ServingFlags,
    /// Logs.
    #[command(flatten)]
    logs: LogFlags,
}

fn coordinator(why: &dyn std::fmt::Display) -> String {
    format!("bigfleet coordinator: {why}")
}

/// Runs it until the process is asked to end, or a part is lost.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(coordinator(why));
    let settings = settings(args).map_err(|problems| Failure::Undone(problems.join("\n")))?;
    args.logs
        .start_quieting(&["openraft"])
        .map_err(|why| undone(&why))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let mut running = start(settings).await.map_err(|why| undone(&why))?;
        tokio::select! {
            () = asked => {
                running.stop().await;
                Ok(())
            }
            failed = running.failed() => Err(undone(&failed)),
        }
    })
}

/// The settings these flags ask for, or everything that is wrong with them.
fn settings(args: &Args) -> Result<Settings, Vec<String>> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(coordinator(&problem));
        }
    };
    must(
        bigfleet_wire::is_portable_id(&args.id),
        "--id has to be letters, digits, '.', '_' and '-'",
    );
    let (min, max) = (args.raft_election_min, args.raft_election_max);
    must(
        args.raft_heartbeat < min && min < max,
        "--raft-heartbeat has to be below --raft-election-min, and that below --raft-election-max",
    );
    must(
        Duration::from_millis(10) <= args.raft_heartbeat,
        "--raft-heartbeat is below 10ms",
    );
    let number = ordinal(&args.id);
    must(
        args.join_addr.is_empty() || number.is_some(),
        "--id has to end with - and a number, as there are several replicas: coordinator-0",
    );
    must(
        Duration::from_secs(1) <= args.snapshot_export_interval,
        "--snapshot-export-interval is below 1s",
    );
    let told = [
        ("--advertise-addr", &args.advertise_addr),
        ("--raft-advertise", &args.raft_advertise),
    ];
    let told = told
        .into_iter()
        .filter_map(|(flag, given)| Some((flag, given.as_ref()?)));
    let joined = args.join_addr.iter().map(|addr| ("--join-addr", addr));
    for (flag, addr) in told.chain(joined) {
        let refused = Dial::check(addr).err();
        problems.extend(refused.map(|why| coordinator(&format!("{flag} {why}"))));
    }
    let tls = args.serving.tls.files().unwrap_or_else(|why| {
        problems.push(coordinator(&why));
        None
    });
    for (flag, addr) in [("--listen", &args.listen), ("--raft-bind", &args.raft_bind)] {
        let exposed = check_exposure(flag, addr, tls.is_some(), args.serving.insecure);
        problems.extend(exposed.err().map(|why| coordinator(&why)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let forming = match (&args.join_addr, args.bootstrap) {
        (addresses, _) if !addresses.is_empty() => Forming::Among {
            replicas: args.replicas as usize,
            addresses: addresses.clone(),
            is_first: number == Some(0),
        },
        (_, true) => Forming::Alone,
        (_, false) => Forming::Resumed,
    };
    Ok(Settings {
        name: args.id.clone(),
        data_dir: args.data_dir.clone(),
        listen: args.listen.clone(),
        raft_bind: args.raft_bind.clone(),
        metrics_addr: Some(args.metrics_addr.clone())
            .filter(|addr| !["", "0"].contains(&addr.as_str())),
        advertise_addr: args.advertise_addr.clone(),
        raft_advertise: args.raft_advertise.clone(),
        forming,
        pace: Pace {
            heartbeat: args.raft_heartbeat,
            election: (min, max),
        },
        report_interval: args.report_interval,
        export: args.snapshot_export_dir.clone().map(|folder| Export {
            folder,
            interval: args.snapshot_export_interval,
            retain: args.snapshot_export_retain as usize,
        }),
        tls,
        insecure: args.serving.insecure,
    })
}
