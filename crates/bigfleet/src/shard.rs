//! `bigfleet shard`: flags to checked settings, and a shard until the process is asked to end.

use crate::failure::Failure;
use bigfleet_net::{Dial, LogFlags, ServingFlags, Tls, TlsFiles, asked_to_end, check_exposure};
use bigfleet_provider_fake::duration;
use bigfleet_shard::{Around, Rotation, Settings, Shard, Trouble, start};
use bigfleet_shard_core::{Rails, ShardConfig};
use bigfleet_shard_link::Link;
use clap::{Arg, ArgAction, ArgMatches, Args as ClapArgs, Command};
use std::{path::PathBuf, time::Duration};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The address that cluster operators and the other verbs connect to; without a host, only from this one
    #[arg(long, default_value = ":7780")]
    listen: String,
    /// The address of /metrics, /healthz, /readyz and /config; without a host, only for this one; 0 for none
    #[arg(long, default_value = ":8780")]
    metrics_addr: String,
    /// The shard's id; never change it, its certificate and the provider's records carry it
    #[arg(long, default_value = "shard-0")]
    id: String,
    /// The directory for what must survive a restart; created if it does not exist
    #[arg(long, default_value = "./data")]
    data_dir: PathBuf,
    /// Start with at least this epoch (the number of the start); only after losing the data directory
    #[arg(long, default_value_t = 0)]
    epoch_floor: u64,
    /// Forget everything the data directory holds but the number of the start; only if another process took over from it, or
    /// if it is a copy
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    records_lost: bool,
    /// The provider that creates and deletes machines: host:port
    #[arg(long)]
    provider_addr: String,
    /// A name for the provider, for `bigfleet pause --provider`
    #[arg(long, default_value = "provider")]
    provider_name: String,
    /// Manage only machines with this label (key=value); may be repeated
    #[arg(long = "own-domain", value_parser = pair)]
    own_domains: Vec<(String, String)>,
    /// Start paused: decide, but change no machine
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    actuation_paused: bool,
    /// While this file exists, no machine is changed [default: `pause` in the data directory]
    #[arg(long)]
    pause_file: Option<PathBuf>,
    /// The largest share of a cluster's machines that one cycle may take away; 0 for no limit
    #[arg(long, default_value_t = 0.05)]
    reclaim_cap_fraction: f64,
    /// Do not believe a roll-up (a cluster's report of what it needs) that withdraws nearly everything
    /// until it came three times
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    empty_rollup_guard: bool,
    /// Log what would be done, and change no machine
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    dry_run: bool,
    /// Append every decision to this file, one JSON object per line
    #[arg(long)]
    audit_log: Option<PathBuf>,
    /// Set the audit log aside when it would be longer than this many bytes; 0 for never
    #[arg(long, default_value_t = Rotation::default().max_bytes)]
    audit_max_bytes: u64,
    /// How many files of the audit log to keep, the current one included
    #[arg(long, default_value_t = Rotation::default().files,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    audit_files: u32,
    /// The most actions per cycle; 0 for no limit
    #[arg(long, default_value_t = 0)]
    max_actions_per_cycle: usize,
    /// How many calls to the provider may run at the same time
    #[arg(long, default_value_t = 32)]
    execute_concurrency: usize,
    /// Ask the provider only for what changed, and for everything every 60th time
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    incremental_reconcile: bool,
    /// The largest message a cluster's operator may send, in MiB: a report of what the cluster needs
    #[arg(long, default_value_t = Settings::LARGEST_FRAME_MIB)]
    max_rollup_mib: usize,
    /// How often to decide if nothing happens, and how often to ask the provider for its machines
    #[arg(long, value_parser = duration, default_value = "10s")]
    cycle_interval: Duration,
    /// The least time between two hints to a cluster about free capacity of one kind; 0s for 5s
    #[arg(long, value_parser = duration, default_value = "0s")]
    available_capacity_interval: Duration,
    /// Leave this many first cycles out of the duration metrics
    #[arg(long, default_value_t = 0)]
    metrics_warmup_cycles: u64,
    /// Answer gRPC reflection, if --listen is only for this host
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    reflection: bool,
    /// The coordinator to report to: host:port of its replicas, with commas [default: none, the shard runs alone]
    #[arg(long)]
    coordinator_addr: Option<String>,
    /// The address at which others reach this shard, for the coordinator [default: that of --listen]
    #[arg(long)]
    advertise_addr: Option<String>,
    /// How often to report to the coordinator
    #[arg(long, value_parser = duration, default_value = "10s")]
    coordinator_heartbeat_interval: Duration,
    /// Every 20th cycle, log whether machines that were taken away could have served unmet Needs
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", action = ArgAction::Set)]
    phase_attribution_log: bool,
    /// Certificates.
    #[command(flatten)]
    serving: ServingFlags,
    /// Logs.
    #[command(flatten)]
    logs: LogFlags,
}

const TROUBLE: &str = "trouble";

/// The command line, with `bigfleet shard --trouble` if this build has test switches: what goes wrong on
/// purpose, and a clock that runs faster.
pub(crate) fn with_trouble(command: Command, can_be_requested: bool) -> Command {
    if !can_be_requested {
        return command;
    }
    let flag = Arg::new(TROUBLE).long(TROUBLE).hide(true);
    let flag = flag.action(ArgAction::Append);
    command.mut_subcommand("shard", |shard| shard.arg(flag))
}

/// What that flag was given.
pub(crate) fn requested_trouble(matches: &ArgMatches) -> Vec<String> {
    let shard = matches.subcommand_matches("shard");
    let given = shard.and_then(|shard| shard.try_get_many::<String>(TROUBLE).ok().flatten());
    given.into_iter().flatten().cloned().collect()
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it is not key=value")?;
    if key.is_empty() {
        return Err("its key is empty".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// Runs it until the process is asked to end, or a part is lost. Settings that cannot be used end it as
/// a start that fails does, with exit status 1 (docs/operating.md).
pub(crate) fn run(args: &Args, trouble: &[String]) -> Result<(), Failure> {
    let settings =
        settings(args, trouble).map_err(|problems| Failure::Undone(problems.join("\n")))?;
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(shard(why));
    args.logs.start().map_err(|why| undone(&why))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let tls = settings.tls.clone();
        let mut running = start(settings).await.map_err(|why| undone(&why))?;
        let _link = link(args, &running, tls).map_err(|why| undone(&why))?;
        tokio::select! {
            () = asked => {
                running.stop().await;
                Ok(())
            }
            failed = running.failed() => Err(undone(&failed)),
        }
    })
}

/// Reports to the coordinator, if there is one: for as long as what this answers is kept.
fn link(args: &Args, running: &Shard, tls: Option<TlsFiles>) -> Result<Option<Link>, String> {
    let Some(coordinator_addr) = coordinator_addr(args) else {
        return Ok(None);
    };
    let tls = tls.map(Tls::load).transpose();
    let settings = bigfleet_shard_link::Settings {
        coordinator_addr,
        advertise_addr: advertised(args).to_owned(),
        provider_addr: args.provider_addr.clone(),
        interval: args.coordinator_heartbeat_interval,
        tls: tls.map_err(|why| format!("tls: {why}"))?,
    };
    let link = bigfleet_shard_link::start(running.hub().clone(), settings);
    link.map(Some).map_err(|why| format!("coordinator: {why}"))
}

fn coordinator_addr(args: &Args) -> Option<String> {
    args.coordinator_addr
        .clone()
        .filter(|addr| !addr.is_empty())
}

/// Where others are told to reach this shard.
fn advertised(args: &Args) -> &str {
    args.advertise_addr.as_deref().unwrap_or(&args.listen)
}

/// Whether somebody else can dial this: it names a host, and not every host there is.
fn is_dialable(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or("", |(host, _)| host);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let everywhere = bare
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_unspecified());
    !host.is_empty() && !everywhere
}

fn shard(why: &dyn std::fmt::Display) -> String {
    format!("bigfleet shard: {why}")
}

/// The settings these flags ask for, or everything that is wrong with them.
fn settings(args: &Args, requested: &[String]) -> Result<Settings, Vec<String>> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(shard(&problem));
        }
    };
    must(!args.listen.is_empty(), "--listen is empty");
    must(
        bigfleet_wire::is_portable_id(&args.id),
        "--id has to be letters, digits, '.', '_' and '-'",
    );
    must(
        (0.0..=1.0).contains(&args.reclaim_cap_fraction),
        "--reclaim-cap-fraction is not between 0 and 1",
    );
    must(
        (1..=64).contains(&args.max_rollup_mib),
        "--max-rollup-mib is not between 1 and 64, which is what one caller may have in memory",
    );
    must(
        Duration::from_millis(100) <= args.cycle_interval,
        "--cycle-interval is below 100ms",
    );
    must(
        Duration::from_millis(100) <= args.coordinator_heartbeat_interval,
        "--coordinator-heartbeat-interval is below 100ms",
    );
    let reports = args
        .coordinator_addr
        .as_ref()
        .is_some_and(|addr| !addr.is_empty());
    must(
        !reports || is_dialable(advertised(args)),
        "--advertise-addr has to be host:port that others can dial, as there is a coordinator to \
         tell it to; without it, --listen has to be",
    );
    // Before anything is on disk.
    let replicas = coordinator_addr(args).unwrap_or_default();
    let replicas = replicas.split(',').filter(|_| !replicas.is_empty());
    let coordinator = replicas.map(|addr| ("--coordinator-addr", addr.trim().to_owned()));
    let dialled = [("--provider-addr", args.provider_addr.clone())].into_iter();
    for (flag, addr) in dialled.chain(coordinator) {
        let refused = Dial::check(&addr).err();
        problems.extend(refused.map(|why| shard(&format!("{flag} {why}"))));
    }
    let tls = args.serving.tls.files().unwrap_or_else(|why| {
        problems.push(shard(&why));
        None
    });
    let exposed = check_exposure(
        "--listen",
        &args.listen,
        tls.is_some(),
        args.serving.insecure,
    );
    problems.extend(exposed.err().map(|why| shard(&why)));
    let (mut trouble, mut speed) = (Trouble::default(), 1.0);
    for text in requested {
        let taken = match text.strip_prefix("clock-speed=") {
            Some(given) => given
                .parse()
                .map(|given| speed = given)
                .map_err(|_| format!("--trouble clock-speed={given} is no number")),
            None => trouble.add(text).map_err(|why| format!("--trouble {why}")),
        };
        problems.extend(taken.err().map(|why| shard(&why)));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let production = ShardConfig::production(&args.id, &args.provider_name);
    let hint_interval = match args.available_capacity_interval {
        Duration::ZERO => production.hint_interval,
        given => given,
    };
    Ok(Settings {
        core: ShardConfig {
            cycle_interval: args.cycle_interval,
            execute_concurrency: args.execute_concurrency.max(1),
            max_actions_per_cycle: args.max_actions_per_cycle,
            metrics_warmup_cycles: args.metrics_warmup_cycles,
            hint_interval,
            rails: Rails {
                reclaim_cap_per_million: Rails::cap(args.reclaim_cap_fraction),
                roll_up_guard: args.empty_rollup_guard,
            },
            dry_run: args.dry_run,
            own_domains: args.own_domains.clone(),
            coordinated: coordinator_addr(args).is_some(),
            ..production
        },
        listen: args.listen.clone(),
        metrics_addr: Some(args.metrics_addr.clone())
            .filter(|addr| !["", "0"].contains(&addr.as_str())),
        epoch_floor: args.epoch_floor,
        records_lost: args.records_lost,
        provider_addr: args.provider_addr.clone(),
        incremental_reconcile: args.incremental_reconcile,
        largest_frame: args.max_rollup_mib << 20,
        actuation_paused: args.actuation_paused,
        pause_file: args
            .pause_file
            .clone()
            .unwrap_or_else(|| args.data_dir.join("pause")),
        data_dir: args.data_dir.clone(),
        audit_rotation: Rotation {
            max_bytes: args.audit_max_bytes,
            files: args.audit_files,
        },
        audit_log: args
            .audit_log
            .clone()
            .filter(|path| !path.as_os_str().is_empty()),
        tls,
        insecure: args.serving.insecure,
        reflection: args.reflection,
        speed,
        attribution_probe: args.phase_attribution_log
            || std::env::var("BIGFLEET_PHASEDUMP").is_ok_and(|value| value == "1"),
        trouble,
        around: Around {
            coordinator_addr: coordinator_addr(args),
            advertise_addr: advertised(args).to_owned(),
            heartbeat: args.coordinator_heartbeat_interval,
            log_format: format!("{:?}", args.logs.log_format).to_lowercase(),
            log_level: args.logs.log_level.clone(),
        },
    })
}
