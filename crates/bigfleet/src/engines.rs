//! The engines: three ways to the same answer.

use crate::failure::Failure;
use bigfleet_model::{Decision, Fleet};
use clap::ValueEnum;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// The production engine, cold.
    Full,
    /// The rules transcribed one by one; slow.
    Oracle,
    /// The production engine, led to the fleet by random edits from an empty one.
    Incremental,
}

impl Engine {
    /// Decides. The seed is for engines that draw from one.
    pub(crate) fn decide(self, fleet: &Fleet, seed: u64) -> Result<Decision, Failure> {
        match self {
            Self::Full => full(fleet),
            Self::Oracle => Ok(oracle(fleet)),
            Self::Incremental => incremental(fleet, seed),
        }
    }
}

fn full(_fleet: &Fleet) -> Result<Decision, Failure> {
    Err(not_built("full"))
}

fn oracle(fleet: &Fleet) -> Decision {
    bigfleet_oracle::decide(fleet)
}

fn incremental(_fleet: &Fleet, _seed: u64) -> Result<Decision, Failure> {
    Err(not_built("incremental"))
}

fn not_built(engine: &str) -> Failure {
    let what = "is not part of this binary yet; --engine oracle is";
    Failure::Unable(format!("--engine {engine} {what}"))
}
