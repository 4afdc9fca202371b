//! A provider: gives BigFleet machines of a substrate of yours.
//!
//! ```text
//! substrate.rs   what your machines are: replace it        backend.rs   what the kit asks of it
//! offerings.rs   what there is to have, and its price      main.rs      flags to settings
//! ```

mod backend;
mod offerings;
mod substrate;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bigfleet_provider_kit::{Faithful, ProviderFlags, Timeouts, chain, run};
use clap::Parser;

use crate::backend::SubstrateBackend;
use crate::substrate::Substrate;

/// The name in metrics, and on hosts where --provider does not say otherwise.
const NAME: &str = "template";

/// A provider of machines that are folders.
#[derive(Debug, Parser)]
struct Flags {
    /// The folder its hosts are made in [default: the state file with the ending .hosts, or a temporary one]
    #[arg(long)]
    root: Option<PathBuf>,
    /// How many machines to offer
    #[arg(long, default_value_t = 32)]
    seed_count: usize,
    /// What every provider takes.
    #[command(flatten)]
    provider: ProviderFlags,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Flags::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}", chain(why.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn serve(flags: Flags) -> Result<(), Box<dyn Error>> {
    flags.provider.logs.start()?;
    let name = flags.provider.provider.as_deref().unwrap_or(NAME);
    // Hosts outlive the provider exactly if its records do.
    let beside = flags
        .provider
        .state
        .as_ref()
        .map(|state| state.with_extension("hosts"));
    let temporary = || std::env::temp_dir().join(format!("{NAME}-{}", std::process::id()));
    let root = flags.root.or(beside).unwrap_or_else(temporary);
    let backend = SubstrateBackend {
        offerings: offerings::all(name, flags.seed_count),
        substrate: Substrate::open(root)?,
        provider: name.to_owned(),
    };
    let settings = flags.provider.settings(NAME, Timeouts::default())?;
    Ok(run(Arc::new(backend), Arc::new(Faithful), settings).await?)
}
