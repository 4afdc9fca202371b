//! `bigfleet up`: flags to checked options, and the whole system until somebody has seen enough.

use crate::{failure::Failure, input, up_kubernetes, verbs::has_colour};
use bigfleet_ctl::{
    Client, USUAL_TIMEOUT,
    address::PublishedAddress,
    live::{self, LiveOptions},
};
use bigfleet_model::{Fleet, shown};
use bigfleet_net::{LogFormat, asked_to_end, start_logs};
use bigfleet_provider_fake::duration;
use bigfleet_up::{Line, Options, SPEEDS, Scenario, Up};
use clap::{Args as ClapArgs, ValueEnum};
use std::{
    future::Future,
    io::{IsTerminal, Write, stdin, stdout},
    path::PathBuf,
    time::Duration,
};

/// More than this nobody can look at.
const MOST_CLUSTERS: usize = 200;
/// How often the live view asks the shard: often, since a second is a minute here.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Steps of a scenario that wait to be shown.
const NOTES: usize = 64;

/// `bigfleet up`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// What happens: tour (demand comes and goes, a failure or two), steady (demand stays), none
    /// [default: tour; none with --fleet]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// How many clusters take part
    #[arg(long, default_value_t = 5)]
    clusters: usize,
    /// How fast time runs: 60 makes a second here a minute for shard, cloud and clusters
    #[arg(long, default_value_t = 60.0)]
    speed: f64,
    /// The seed of everything random in the simulated cloud
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Start with the machines and the demand of this fleet file
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Use the provider at this address instead of a simulated cloud; it runs at its own speed
    #[arg(long, value_name = "ADDR", conflicts_with = "fleet")]
    provider_addr: Option<String>,
    /// Run a real Kubernetes instead, with hollow kubelets: needs what `cargo xtask kube` built, or KUBEBUILDER_ASSETS
    #[arg(long, conflicts_with_all = ["scenario", "fleet", "provider_addr", "data_dir"])]
    kubernetes: bool,
    /// Keep all data in this directory [default: a new one that is removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Stop after this long, for example 60s [default: runs until Ctrl-C]
    #[arg(long = "for", value_parser = duration, value_name = "DURATION")]
    within: Option<Duration>,
    /// The address the shard listens on; port 0 takes any free port
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Listen for other hosts too: whoever reaches --listen may do anything
    #[arg(long)]
    insecure: bool,
    /// The address of /metrics, /healthz, /readyz and /config; 0 for none
    #[arg(long, default_value = "127.0.0.1:0")]
    metrics_addr: String,
    /// What to print instead of the live view [default: the live view on a terminal, else text]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// What to log on standard error: error, warn, info, debug or trace
    #[arg(long, default_value = "error")]
    log_level: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line per cycle, for people.
    Text,
    /// A JSON object per line; the last one is a summary.
    Json,
}

/// Runs everything until somebody ends it, and says what was left running.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = options(args)?;
    let on_screen = args.output.is_none() && stdout().is_terminal() && stdin().is_terminal();
    if !on_screen {
        // On a terminal, log lines would destroy the live view.
        start_logs(LogFormat::Text, &args.log_level, &[])
            .map_err(|why| Failure::Input(format!("bigfleet up: --log-level: {why}")))?;
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|why| undone(&why))?;
    if args.kubernetes {
        let is_json = args.output == Some(Output::Json);
        return runtime.block_on(async {
            let asked = asked_to_end().map_err(|why| undone(&why))?;
            up_kubernetes::run(is_json, ended(asked, args.within)).await
        });
    }
    runtime.block_on(async {
        let asked = asked_to_end().map_err(|why| undone(&why))?;
        let up = Up::start(options).await.map_err(|why| {
            if why.is_usage() {
                Failure::Input(format!("bigfleet up: {why}"))
            } else {
                undone(&why)
            }
        })?;
        // So that the other verbs find this shard without --shard.
        let _found = PublishedAddress::publish(up.addr()).inspect_err(|why| {
            eprintln!(
                "bigfleet up: the other verbs will need --shard {}: {why}",
                up.addr()
            )
        });
        let ended = ended(asked, args.within);
        if on_screen {
            show(up, ended).await
        } else {
            tell_all(up, args.output.unwrap_or(Output::Text), ended).await
        }
    })
}

fn undone(why: &dyn std::fmt::Display) -> Failure {
    Failure::Undone(format!("bigfleet up: {why}"))
}

/// A line for everything that happens.
async fn tell_all(up: Up, output: Output, ended: impl Future<Output = ()>) -> Result<(), Failure> {
    let mut broken = None;
    let say = |line: &Line| {
        broken = tell(output, line).err();
        broken.is_none()
    };
    let summary = up.run(ended, say).await.map_err(|why| undone(&why))?;
    match broken {
        Some(broken) => Err(Failure::Output(broken)),
        None => last(output, &summary),
    }
}

/// The live view; what the scenario does next is noted in it.
async fn show(up: Up, ended: impl Future<Output = ()>) -> Result<(), Failure> {
    let (note, notes) = tokio::sync::mpsc::channel(NOTES);
    let options = LiveOptions {
        every: LOOK_EVERY,
        colour: has_colour(),
        notes: Some(notes),
        ..LiveOptions::default()
    };
    let client = Client::new(&up.addr().to_string(), None, USUAL_TIMEOUT);
    let mut error = None;
    let seen_enough = async {
        let shown = async { live::run(client?, options).await };
        tokio::select! {
            shown = shown => error = shown.err(),
            () = ended => {}
        }
    };
    let say = |line: &Line| {
        if matches!(line, Line::Step { .. }) {
            // If the view is behind, a note is lost and the next one is shown.
            drop(note.try_send(line.text()));
        }
        true
    };
    let summary = up.run(seen_enough, say).await.map_err(|why| undone(&why))?;
    match error {
        Some(error) => Err(undone(&format!("{error}, or print lines with -o text"))),
        None => last(Output::Text, &summary),
    }
}

/// Says how it was. What is left running is a failure of ours.
fn last(output: Output, summary: &Line) -> Result<(), Failure> {
    tell(output, summary)?;
    match summary {
        Line::Summary { left_running, .. } if !left_running.is_empty() => {
            let left = left_running.join(", ");
            Err(undone(&format!("left running: {left}")))
        }
        _ => Ok(()),
    }
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
fn tell(output: Output, line: &Line) -> std::io::Result<()> {
    let text = match output {
        Output::Json => line.json(),
        Output::Text => line.text(),
    };
    let mut stdout = stdout().lock();
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
        insecure: args.insecure,
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
