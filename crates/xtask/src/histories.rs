//! `histories`: what clients of a coordinator see while its replicas and what is between them fail, judged.
//!
//! It is a test that goes on for longer, so that it cannot rot: the test command runs twelve.

use clap::Args;

use crate::steps::{Failed, run};

/// How many, and from where.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct HistoriesArgs {
    /// How many; fewer than eleven do not suffer everything, and are refused.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(11..))]
    count: u64,

    /// The seed of the first; each other has the next one.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Runs until all are judged, or one is none that a single copy can have written.
pub(crate) fn histories(args: HistoriesArgs) -> Result<(), Failed> {
    let words = "test --package bigfleet --test coordinator faults::every_history -- --nocapture";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let settings = [
        ("BIGFLEET_HISTORIES", args.count),
        ("BIGFLEET_HISTORY_SEED", args.seed),
    ];
    run(&words, &settings)
}
