//! `bigfleet crds`: what a cluster has to have installed before its operator starts.

use crate::failure::Failure;
use bigfleet_k8s::crds_yaml;
use clap::Args as ClapArgs;
use std::io::Write as _;

/// What was asked.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct Args {}

/// Prints them.
pub(crate) fn run(_: Args) -> Result<(), Failure> {
    std::io::stdout().write_all(crds_yaml().as_bytes())?;
    Ok(())
}
