//! `fuzz`: starts the fuzzer, built for speed.
//!
//! It is a binary of its own, since this crate imports none of ours: `cargo xtask check` must run in
//! a tree that does not compile.

use clap::{Args, Subcommand};

use crate::steps::{Failed, run};

/// What to fuzz.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Target {
    /// The decision engine: oracle, full and incremental must agree on every step.
    Engine(EngineArgs),
}

/// How long, and from where.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EngineArgs {
    /// How long to go on.
    #[arg(long, value_name = "N")]
    seconds: u64,

    /// The first seed; each history takes the next.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Target {
    /// The arguments of cargo.
    fn arguments(self) -> Vec<String> {
        let Target::Engine(EngineArgs { seconds, seed }) = self;
        let run = "run --release --package bigfleet-engine-fuzz -- engine";
        let words = format!("{run} --seconds {seconds} --seed {seed}");
        words.split(' ').map(str::to_owned).collect()
    }
}

/// Runs until the time is up or an answer is wrong; that one is printed, made small.
pub(crate) fn fuzz(target: Target) -> Result<(), Failed> {
    run(&target.arguments(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzzer_gets_what_was_asked() {
        let target = Target::Engine(EngineArgs {
            seconds: 600,
            seed: 7,
        });
        assert_eq!(
            target.arguments().join(" "),
            "run --release --package bigfleet-engine-fuzz -- engine --seconds 600 --seed 7"
        );
    }
}
