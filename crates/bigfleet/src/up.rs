//! `bigfleet up`: flags to checked options, and the whole system until somebody has seen enough.

use crate::{failure::Failure, input};
use bigfleet_model::{Fleet, shown};
use bigfleet_net::{LogFormat, asked_to_end, start_logs};
use bigfleet_provider_fake::duration;
use bigfleet_up::{Line, Options, SPEEDS, Scenario, Up};
use clap::{Args as ClapArgs, ValueEnum};
use std::{future::Future, io::Write, path::PathBuf, time::Duration};

/// More would be more than anyone can look at.
const MOST_CLUSTERS: usize = 200;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// What the clusters live through: tour, steady or none. By default the tour, or none with --fleet.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// How many clusters play the scenario.
    #[arg(long, default_value_t = 5)]
    clusters: usize,
    /// How many seconds pass for shard, cloud and clusters in one second here.
    #[arg(long, default_value_t = 60.0)]
    speed: f64,
    /// Where the cloud's draws come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Begin with the machines and the demand of this fleet file.
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Use this provider (host:port) and not a cloud in memory; it keeps its own time.
    #[arg(long, value_name = "ADDR", conflicts_with = "fleet")]
    provider_addr: Option<String>,
    /// Keep everything in this directory; by default a fresh one that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// End after this long, for example 60s.
    #[arg(long = "for", value_parser = duration, value_name = "DURATION")]
    within: Option<Duration>,
    /// Where the shard listens; a port of 0 is any that is free.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Where /metrics, /healthz, /readyz and /config are; 0 for nowhere.
    #[arg(long, default_value = "127.0.0.1:0")]
    metrics_addr: String,
    /// How it is told: a line per cycle, or an object per line.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// What is logged on standard error: error, warn, info, debug or trace.
    #[arg(long, default_value = "error")]
    log_level: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One object per line; the last one is a summary.
    Json,
}

/// Runs everything until somebody has seen enough, and says what was left running.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = options(args)?;
    start_logs(LogFormat::Text, &args.log_level)
        .map_err(|why| Failure::Input(format!("bigfleet up: --log-level: {why}")))?;
    let undone = |why: &dyn std::fmt::Display| Failure::Undone(format!("bigfleet up: {why}"));
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let up = Up::start(options).await.map_err(|why| undone(&why))?;
        let mut broken = None;
        let say = |line: &Line| {
            let told = tell(args.output, line);
            broken = told.err();
            broken.is_none()
        };
        let summary = up.run(ended(asked, args.within), say).await;
        let summary = summary.map_err(|why| undone(&why))?;
        if let Some(broken) = broken {
            return Err(Failure::Output(broken));
        }
        tell(args.output, &summary)?;
        match summary {
            Line::Summary { left_running, .. } if !left_running.is_empty() => Err(undone(
                &format!("left running: {}", left_running.join(", ")),
            )),
            _ => Ok(()),
        }
    })
}

/// Whatever comes first: somebody asks for the end, or the time is over.
async fn ended(asked: impl Future<Output = ()>, within: Option<Duration>) {
    let over = async {
        match within {
            Some(within) => tokio::time::sleep(within).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = asked => {}
        () = over => {}
    }
}

/// Says a line whole and at once: whoever reads along should not wait for the next.
fn tell(output: Option<Output>, line: &Line) -> std::io::Result<()> {
    let text = match output {
        Some(Output::Json) => line.json(),
        Some(Output::Text) | None => line.text(),
    };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// The options these flags ask for, or everything that is wrong with them.
fn options(args: &Args) -> Result<Options, Failure> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: String| {
        if !holds {
            problems.push(format!("bigfleet up: {problem}"));
        }
    };
    let (slowest, fastest) = (SPEEDS.start(), SPEEDS.end());
    must(
        SPEEDS.contains(&args.speed),
        format!(
            "--speed {} is not between {slowest} and {fastest}",
            args.speed
        ),
    );
    must(
        args.clusters <= MOST_CLUSTERS,
        format!("--clusters {} is more than {MOST_CLUSTERS}", args.clusters),
    );
    must(!args.listen.is_empty(), "--listen is empty".to_owned());
    let named = args.scenario.as_deref();
    let scenario = named.map(str::parse::<Scenario>).transpose();
    if let Err(unknown) = &scenario {
        must(
            false,
            format!("--scenario {}: {unknown}", shown(named.unwrap_or_default())),
        );
    }
    if !problems.is_empty() {
        return Err(Failure::Input(problems.join("\n")));
    }
    let fleet = args.fleet.as_ref().map(|path| -> Result<Fleet, Failure> {
        let loaded = input::load(path)?;
        for warning in &loaded.warnings {
            eprintln!("warning: {warning}");
        }
        Ok(loaded.fleet)
    });
    let fleet = fleet.transpose()?;
    let scenario = scenario.unwrap_or_default();
    let usual = match fleet {
        Some(_) => Scenario::None,
        None => Scenario::Tour,
    };
    Ok(Options {
        listen: args.listen.clone(),
        metrics_addr: Some(args.metrics_addr.clone())
            .filter(|addr| !["", "0"].contains(&addr.as_str())),
        data_dir: args.data_dir.clone(),
        // A fleet of its own brings its own clusters.
        clusters: match (scenario, &fleet) {
            (None, Some(_)) => 0,
            _ => args.clusters,
        },
        scenario: scenario.unwrap_or(usual),
        speed: args.speed,
        seed: args.seed,
        fleet,
        provider_addr: args.provider_addr.clone(),
    })
}
