//! `bigfleet provider`: providers this binary can be.

use crate::failure::Failure;
use bigfleet_provider_fake::{ProviderFakeArgs, Timepiece};
use clap::{Args as ClapArgs, Subcommand};
use std::{
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Run a simulated cloud, which can be told to fail in many ways
    Fake(Box<ProviderFakeArgs>),
}

/// Runs it until the process is asked to end.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Which::Fake(args) = &args.which;
    let origin = Instant::now();
    let time = Timepiece {
        clock: Arc::new(move || origin.elapsed()),
        // A host whose clock is before 1970 still gets a provider.
        began_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    };
    bigfleet_provider_fake::run(args, Some(time)).map_err(|refused| {
        if refused.is_usage() {
            Failure::Input(refused.to_string())
        } else {
            Failure::Undone(refused.to_string())
        }
    })
}
