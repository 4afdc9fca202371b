//! `bigfleet-engine-fuzz`: goes on where the tests stop.
//!
//! | Exit status | Means |
//! |---|---|
//! | 0 | every answer was the oracle's |
//! | 1 | one was not; it is printed, as small as it could be made, with how to see it again |
//! | 2 | the command line or a file is wrong |

mod replay;
mod report;

use bigfleet_engine_fuzz::{Coverage, History, Mode, Production, minimise};
use clap::{Args, Parser, Subcommand};
use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Compares the engine with the oracle on invented histories.
#[derive(Debug, Parser)]
#[command(name = "bigfleet-engine-fuzz")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Invents histories until the time is up or an answer is wrong.
    Engine(EngineArgs),
    /// Goes along saved fleets and compares the last answer.
    Replay(replay::Args),
}

#[derive(Debug, Args)]
struct EngineArgs {
    /// How long to go on.
    #[arg(long, value_name = "N")]
    seconds: u64,

    /// The first seed; each history takes the next.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Where the fleets of a wrong answer are written.
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz")]
    into: PathBuf,
}

fn main() -> ExitCode {
    // What a subject says when it gives up is part of the report; a trace per try is not.
    std::panic::set_hook(Box::new(|_| {}));
    match Cli::parse().verb {
        Verb::Engine(args) => engine(&args),
        Verb::Replay(args) => replay::run(&args),
    }
}

fn engine(args: &EngineArgs) -> ExitCode {
    let (clock, time) = (Instant::now(), Duration::from_secs(args.seconds));
    let (mut coverage, mut seed) = (Coverage::default(), args.seed);
    while clock.elapsed() < time {
        match history(seed).run(&Production) {
            Ok(seen) => coverage.add(&seen),
            Err(mismatch) => {
                print!("{mismatch}\nmaking it smaller ...\n");
                let small = minimise(&Production, &mismatch);
                print!("{}", report::report(&small, &args.into));
                return ExitCode::FAILURE;
            }
        }
        seed = seed.wrapping_add(1);
    }
    let histories = seed.wrapping_sub(args.seed);
    print!("{coverage}");
    println!(
        "no wrong answer in {histories} histories from seed {}",
        args.seed
    );
    ExitCode::SUCCESS
}

/// Mostly fleets where everything meets everything, now and then a crowd.
fn history(seed: u64) -> History {
    match seed % 8 {
        7 => History {
            seed,
            steps: 30,
            mode: Mode::Crowd,
        },
        _ => History {
            seed,
            steps: 120,
            mode: Mode::Few,
        },
    }
}
