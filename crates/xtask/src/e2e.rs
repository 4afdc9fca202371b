//! `e2e`: everything together on a real Kubernetes, with more kills on the way than the test command takes time for.

use clap::Args;

use crate::steps::{Failed, run};

/// How many kills.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EndToEndArgs {
    /// Kill at least so many of our processes while machines come and go; five take some two minutes.
    #[arg(long, value_name = "N", default_value_t = 30)]
    kills: u64,
}

/// Runs until the last one, or until something does not hold.
pub(crate) fn end_to_end(args: EndToEndArgs) -> Result<(), Failed> {
    let words = "test --package bigfleet --test kubernetes kills_on_the_way -- --nocapture";
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    run(&words, &[("BIGFLEET_E2E_KILLS", args.kills)])
}
