//! `soak`: everything that can go wrong at once, against real processes, for minutes.
//!
//! It is a test that goes on for longer, so that it cannot rot: the test command runs it for seconds.

use clap::Args;

use crate::steps::{Failed, run};

/// How long, and from where.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SoakArgs {
    /// How long to go on.
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,

    /// Draws what goes wrong, and when.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Runs until the time is up or something does not hold.
pub(crate) fn soak(args: SoakArgs) -> Result<(), Failed> {
    let words = "test --package bigfleet --test shard soak::everything_at_once -- --nocapture";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let settings = [
        ("BIGFLEET_SOAK_SECONDS", args.minutes * 60),
        ("BIGFLEET_SOAK_SEED", args.seed),
    ];
    run(&words, &settings)
}
