//! The engines: three ways to the same answer.

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
    pub(crate) fn decide(self, fleet: &Fleet, seed: u64) -> Decision {
        match self {
            Self::Full => bigfleet_engine::decide(fleet),
            Self::Oracle => bigfleet_oracle::decide(fleet),
            Self::Incremental => bigfleet_engine_fuzz::wander(fleet, seed),
        }
    }
}
