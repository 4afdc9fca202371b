//! `bigfleet provider`: providers this binary can be.

mod new;

use crate::failure::Failure;
use bigfleet_provider_exec::{ExecInstead, ProviderExecArgs};
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
    /// Run a provider whose hands are programs of yours: real machines with a script
    Exec(Box<ProviderExecArgs>),
    /// Write a provider of your own to begin with: it builds, and keeps the whole contract, as written
    New(new::Args),
}

/// Runs it until the process is asked to end.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.which {
        Which::Fake(args) => fake(args),
        Which::Exec(args) => exec(args),
        Which::New(args) => new::run(args),
    }
}

fn fake(args: &ProviderFakeArgs) -> Result<(), Failure> {
    let origin = Instant::now();
    let time = Timepiece {
        clock: Arc::new(move || origin.elapsed()),
        // A host whose clock is before 1970 still gets a provider.
        began_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    };
    bigfleet_provider_fake::run(args, Some(time))
        .map_err(|refused| failure(refused.is_usage(), &refused))
}

fn exec(args: &ProviderExecArgs) -> Result<(), Failure> {
    match &args.instead {
        None => bigfleet_provider_exec::run(args)
            .map_err(|refused| failure(refused.is_usage(), &refused)),
        Some(ExecInstead::Check(args)) => {
            bigfleet_provider_exec::check(args, |line| println!("{line}"))
                .map_err(|failed| failure(failed.is_usage(), &failed))
        }
    }
}

fn failure(is_usage: bool, why: &dyn std::error::Error) -> Failure {
    if is_usage {
        Failure::Input(why.to_string())
    } else {
        Failure::Undone(why.to_string())
    }
}
