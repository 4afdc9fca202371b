//! The process: `bigfleet provider fake`, with the flags every provider has and a few of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_net::{LogsRefused, TlsRefused, asked_to_end, chain};
use bigfleet_provider_kit::{
    Clock, Instance, ProviderFlags, Settings, StartRefused, Timeouts, start,
};

use crate::backend::FakeBackend;
use crate::catalogue::{OfferingsRefused, bare_metal, conventional, create_faults, offerings};
use crate::knobs::{Knobs, KnobsRefused, Latency, PerTransition, duration};
use crate::lies::Lies;
use crate::substrate::Substrate;

/// How often random events (failures, price changes) are drawn.
const TICK: Duration = Duration::from_millis(250);
/// Its name, unless the flags give it another.
const NAME: &str = "fake";

/// Runs a provider on a simulated cloud.
#[derive(Clone, Debug, clap::Args)]
pub struct ProviderFakeArgs {
    /// How many machines to offer (slots), from the built-in catalogue
    #[arg(long, default_value_t = 32)]
    pub seed_count: usize,
    /// Offer the machines of this JSON file instead of the built-in catalogue
    #[arg(long, conflicts_with = "bare_metal")]
    pub offerings: Option<PathBuf>,
    /// Offer machines that already exist and cannot be deleted (bare metal)
    #[arg(long)]
    pub bare_metal: bool,
    /// For tests: callers choose faults by the name of the cluster, and some machines cannot be created
    #[arg(long)]
    pub fault_hooks: bool,
    /// Fail an operation that takes longer than this
    #[arg(long, value_parser = duration)]
    pub transition_timeout: Option<Duration>,
    /// How long each operation takes: 10ms, 1s..5s, or "lognormal 45s 0.6"
    #[arg(long, default_value = "10ms")]
    pub latency: Latency,
    /// A JSON file that says how the cloud misbehaves: latencies, failures, stock, losses, untrue lists
    #[arg(long)]
    pub knobs: Option<PathBuf>,
    /// After a restart, show a machine whose Configure was interrupted as idle, to be configured again,
    /// instead of failed
    #[arg(long)]
    pub reconfigure: bool,
    /// What every provider takes.
    #[command(flatten)]
    pub flags: ProviderFlags,
}

/// Why the process ended without having served.
#[derive(Debug, thiserror::Error)]
pub enum FakeRefused {
    /// A file of the command line cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file of the command line.
        path: PathBuf,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// The knobs are not what they should be.
    #[error("{}: {source}", path.display())]
    Knobs {
        /// The file of the command line.
        path: PathBuf,
        /// What the parser says, with line and column.
        source: serde_json::Error,
    },
    /// A latency cannot be read.
    #[error(transparent)]
    Latency(#[from] KnobsRefused),
    /// The offerings are not what they should be.
    #[error(transparent)]
    Offerings(#[from] OfferingsRefused),
    /// The certificate flags do not fit together.
    #[error(transparent)]
    Tls(#[from] TlsRefused),
    /// The log flags are not what they should be.
    #[error(transparent)]
    Logs(#[from] LogsRefused),
    /// The provider did not start.
    #[error("{}", chain(.0))]
    Start(#[from] StartRefused),
    /// There is no runtime to run on.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

impl FakeRefused {
    /// Whether the command line or a file it names is wrong, as opposed to this host.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::Knobs { .. }
            | Self::Latency(_)
            | Self::Offerings(_)
            | Self::Tls(_)
            | Self::Logs(_) => true,
            Self::Start(refused) => refused.is_usage(),
            Self::Runtime(_) => false,
        }
    }
}

/// A clock, and the unix time at which it started.
#[derive(Clone)]
pub struct Timepiece {
    /// Monotonic time since the beginning.
    pub clock: Clock,
    /// The beginning, in unix time.
    pub began_at: Duration,
}

/// Runs the provider until the process is asked to end.
pub fn run(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<(), FakeRefused> {
    args.flags.logs.start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, time))
}

async fn serve(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<(), FakeRefused> {
    let asked = asked_to_end()?;
    let knobs = knobs(args)?;
    let lies = Arc::new(Lies::new(&knobs));
    let restless = restless(&knobs) || args.fault_hooks;
    let clock = time.clone();
    let now = move || {
        let time = clock.as_ref();
        let since_1970 = time.map(|time| time.began_at.saturating_add((time.clock)()));
        Time::ZERO + since_1970.unwrap_or_default()
    };
    let backend = Arc::new(backend(args, knobs)?);
    let provider = start(Arc::clone(&backend), lies, settings(args, time)?).await?;
    let chance = async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let machines = provider.machines().await;
            let events = backend.substrate().tick(now(), TICK, machines.iter());
            for event in events {
                provider.report(event).await;
            }
        }
    };
    tokio::select! {
        () = asked => {}
        () = chance, if restless => {}
    }
    provider.stop().await;
    Ok(())
}

fn restless(knobs: &Knobs) -> bool {
    let rates = [
        knobs.failure_rate,
        knobs.host_loss_rate,
        knobs.interruption_factor,
        knobs.price_change_rate,
        knobs.label_change_rate,
    ];
    rates.iter().any(|rate| *rate != 0.0)
}

fn read(path: &PathBuf) -> Result<String, FakeRefused> {
    std::fs::read_to_string(path).map_err(|source| FakeRefused::File {
        path: path.clone(),
        source,
    })
}

fn knobs(args: &ProviderFakeArgs) -> Result<Knobs, FakeRefused> {
    let Some(path) = &args.knobs else {
        return Ok(Knobs {
            latency: PerTransition::all(args.latency),
            ..Knobs::default()
        });
    };
    let text = read(path)?;
    serde_json::from_str(&text).map_err(|source| FakeRefused::Knobs {
        path: path.clone(),
        source,
    })
}

/// The simulated cloud these flags ask for.
fn backend(args: &ProviderFakeArgs, knobs: Knobs) -> Result<FakeBackend, FakeRefused> {
    let provider = args.flags.provider.as_deref().unwrap_or(NAME);
    let mut slots: Vec<Instance> = match &args.offerings {
        Some(path) => offerings(provider, &read(path)?)?,
        None if args.bare_metal => bare_metal(provider, args.seed_count),
        None => conventional(provider, args.seed_count),
    };
    if args.fault_hooks {
        slots.extend(create_faults());
    }
    let substrate = Substrate::new(provider, slots, knobs, args.fault_hooks);
    let backend = FakeBackend::new(substrate, !args.bare_metal, args.fault_hooks);
    Ok(backend.reconfiguring(args.reconfigure))
}

/// How the provider is to be run.
fn settings(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<Settings, FakeRefused> {
    let timeouts = args
        .transition_timeout
        .map(Timeouts::all)
        .unwrap_or_default();
    Ok(Settings {
        clock_began_at: time.as_ref().map_or(Duration::ZERO, |time| time.began_at),
        clock: time.map(|time| time.clock),
        ..args.flags.settings(NAME, timeouts)?
    })
}
