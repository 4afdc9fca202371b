//! The process: `bigfleet provider fake`, with the flags every provider has and a few of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{LogFlags, LogsRefused, TlsFlags, TlsRefused, asked_to_end, chain};
use bigfleet_provider_kit::{
    Clock, Fencing, Instance, Options, Settings, StartRefused, Timeouts, start,
};

use crate::backend::FakeBackend;
use crate::catalogue::{OfferingsRefused, bare_metal, conventional, create_faults, offerings};
use crate::knobs::{ByKind, Knobs, KnobsRefused, Latency, duration};
use crate::lies::Lies;
use crate::substrate::Substrate;

/// How often chance gets its turn.
const TICK: Duration = Duration::from_millis(250);
const USUAL_METRICS: &str = ":9090";

/// Runs a provider on a simulated cloud.
#[derive(Clone, Debug, clap::Args)]
pub struct ProviderFakeArgs {
    /// Where to listen.
    #[arg(long, default_value = ":9000")]
    pub addr: String,
    /// The label on every host.
    #[arg(long, default_value = "fake")]
    pub provider: String,
    /// The state file; without one everything is forgotten with the process.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// How many slots the conventional catalogue has.
    #[arg(long, default_value_t = 32)]
    pub seed_count: usize,
    /// A JSON file of offerings, instead of the conventional catalogue.
    #[arg(long, conflicts_with = "bare_metal")]
    pub offerings: Option<PathBuf>,
    /// An Idle-only pool of bare metal, without Delete.
    #[arg(long)]
    pub bare_metal: bool,
    /// Accepted for the sake of every provider's boot contract; this backend is always a fake.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub use_fake_backend: Option<bool>,
    /// Lets callers pick faults over the wire, and adds the slots that cannot be created.
    #[arg(long)]
    pub fault_hooks: bool,
    /// How long any transition may take.
    #[arg(long, value_parser = duration)]
    pub transition_timeout: Option<Duration>,
    /// How long each transition takes: 10ms, 1s..5s, or "lognormal 45s 0.6".
    #[arg(long, default_value = "10ms")]
    pub latency: Latency,
    /// A JSON file of knobs: latencies, failures, stock, losses, lies.
    #[arg(long)]
    pub knobs: Option<PathBuf>,
    /// How often the inventory is taken.
    #[arg(long, value_parser = duration, default_value = "2m")]
    pub reconcile_interval: Duration,
    /// How often the price list is fetched; until then the last known prices are listed.
    #[arg(long, value_parser = duration, default_value = "30m")]
    pub price_refresh: Duration,
    /// Where /metrics, /healthz and /readyz are; empty for nowhere.
    #[arg(long)]
    pub metrics_addr: Option<String>,
    /// Whether to answer gRPC reflection.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = clap::ArgAction::Set)]
    pub reflection: bool,
    /// How long a failed machine is left alone before its slot is cleaned up and offered again;
    /// without it, for ever.
    #[arg(long, value_parser = duration)]
    pub clean_up_after: Option<Duration>,
    /// Requires a fencing token on every mutation, and refuses every older life of a shard on every
    /// machine.
    #[arg(long)]
    pub strict_fencing: bool,
    /// Certificates.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Logs.
    #[command(flatten)]
    pub logs: LogFlags,
}

/// Why the process ended without having served.
#[derive(Debug, thiserror::Error)]
pub enum FakeRefused {
    /// A file of the command line cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The knobs are not what they should be.
    #[error("{}: {source}", path.display())]
    Knobs {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// A latency is not one.
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
    /// Whether it was refused for what was given, and would be anywhere.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::Knobs { .. }
            | Self::Latency(_)
            | Self::Offerings(_)
            | Self::Tls(_)
            | Self::Logs(_)
            | Self::Start(StartRefused::Seed(_) | StartRefused::Tls(_)) => true,
            Self::Start(StartRefused::Listen(refused)) => refused.is_no_address(),
            Self::Start(_) | Self::Runtime(_) => false,
        }
    }
}

/// When the clock of a process said zero, and what it says since.
#[derive(Clone)]
pub struct Timepiece {
    /// Monotonic time since the beginning.
    pub clock: Clock,
    /// The beginning, in unix time.
    pub began_at: Duration,
}

/// Runs until asked to end.
pub fn run(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<(), FakeRefused> {
    args.logs.start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, time))
}

async fn serve(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<(), FakeRefused> {
    let asked = asked_to_end()?;
    let knobs = knobs(args)?;
    let lies = Arc::new(Lies::new(&knobs));
    let restless = restless(&knobs);
    let backend = Arc::new(backend(args, knobs)?);
    let provider = start(Arc::clone(&backend), lies, settings(args, time)?).await?;
    let chance = async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            let machines = provider.machines().await;
            let events = backend.substrate().tick(TICK, machines.iter());
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
            latency: ByKind::all(args.latency),
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
pub fn backend(args: &ProviderFakeArgs, knobs: Knobs) -> Result<FakeBackend, FakeRefused> {
    let mut slots: Vec<Instance> = match &args.offerings {
        Some(path) => offerings(&args.provider, &read(path)?)?,
        None if args.bare_metal => bare_metal(&args.provider, args.seed_count),
        None => conventional(&args.provider, args.seed_count),
    };
    if args.fault_hooks {
        slots.extend(create_faults());
    }
    let substrate = Substrate::new(&args.provider, slots, knobs, args.fault_hooks);
    Ok(FakeBackend::new(
        substrate,
        !args.bare_metal,
        args.fault_hooks,
    ))
}

/// How the provider is to be run.
pub fn settings(args: &ProviderFakeArgs, time: Option<Timepiece>) -> Result<Settings, FakeRefused> {
    let timeouts = args
        .transition_timeout
        .map(Timeouts::all)
        .unwrap_or_default();
    let metrics_addr = args
        .metrics_addr
        .clone()
        .unwrap_or_else(|| USUAL_METRICS.to_owned());
    Ok(Settings {
        metrics_addr: Some(metrics_addr),
        // Two providers on one host both want the usual address; the second goes without.
        metrics_required: args.metrics_addr.is_some(),
        state: args
            .state
            .clone()
            .filter(|state| !state.as_os_str().is_empty()),
        reflection: args.reflection,
        tls: args.tls.files()?,
        options: Options {
            timeouts,
            clean_up_after: args.clean_up_after,
            fencing: if args.strict_fencing {
                Fencing::Strict
            } else {
                Fencing::PerMachine
            },
            ..Options::default()
        },
        reconcile_interval: args.reconcile_interval,
        price_refresh: args.price_refresh,
        clock_began_at: time.as_ref().map_or(Duration::ZERO, |time| time.began_at),
        clock: time.map(|time| time.clock),
        ..Settings::new("fake", &args.addr)
    })
}
