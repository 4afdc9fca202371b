//! The process: `bigfleet provider exec`, with the flags every provider has and the config file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bigfleet_net::{LogsRefused, TlsRefused, chain};
use bigfleet_provider_kit::{Faithful, ProviderFlags, StartRefused};

use crate::backend::ExecBackend;
use crate::check::ExecCheckArgs;
use crate::config::{Config, ConfigRefused};
use crate::slots::Slots;

/// Runs a provider whose hands are programs.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ProviderExecArgs {
    /// The file that says what is offered and which programs do the work
    #[arg(long, required = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How many machines to offer in all; scales the counts of the file [default: as in the file]
    #[arg(long)]
    pub seed_count: Option<usize>,
    /// What every provider takes.
    #[command(flatten)]
    pub flags: ProviderFlags,
    /// Instead of running it.
    #[command(subcommand)]
    pub instead: Option<ExecInstead>,
}

/// What else can be done with a config file.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ExecInstead {
    /// Say everything that is wrong with a config file, and try its programs if asked to
    Check(ExecCheckArgs),
}

/// Why the process ended without having served.
#[derive(Debug, thiserror::Error)]
pub enum ExecRefused {
    /// The config file is not what it should be.
    #[error(transparent)]
    Config(#[from] ConfigRefused),
    /// No config file was named.
    #[error("--config FILE is needed")]
    NoConfig,
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

impl ExecRefused {
    /// Whether the command line or a file it names is wrong, as opposed to this host.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::NoConfig | Self::Tls(_) | Self::Logs(_) => true,
            Self::Start(refused) => refused.is_usage(),
            Self::Runtime(_) => false,
        }
    }
}

/// Runs the provider until the process is asked to end.
pub fn run(args: &ProviderExecArgs) -> Result<(), ExecRefused> {
    args.flags.logs.start()?;
    let path = args.config.as_deref().ok_or(ExecRefused::NoConfig)?;
    let config = Config::read(path)?;
    let provider = args.flags.provider.as_deref().unwrap_or(&config.provider);
    let slots = Slots::new(&config, provider, args.seed_count);
    let backend = Arc::new(ExecBackend::new(&config, slots));
    let mut settings = args.flags.settings("exec", backend.timeouts())?;
    let origin = Instant::now();
    settings.clock = Some(Arc::new(move || origin.elapsed()));
    // A host whose clock is before 1970 still gets a provider.
    let began_at = SystemTime::now().duration_since(UNIX_EPOCH);
    settings.clock_began_at = began_at.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let serving = bigfleet_provider_kit::run(backend, Arc::new(Faithful), settings);
    Ok(runtime.block_on(serving)?)
}
