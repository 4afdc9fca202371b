//! Replay: a saved trail, gone along again.

use bigfleet_engine_fuzz::{Feed, Production, Stop, Then, Way, at_the_end};
use bigfleet_fleet_file::{Format, read};
use std::{fs, process::ExitCode};

/// What was asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tells the engine rows, not whole clusters.
    #[arg(long)]
    rows: bool,

    /// Also reaches the last fleet by random edits of this seed.
    #[arg(long, value_name = "SEED")]
    wander: Option<u64>,

    /// The fleets, in order. `:pass` and `:full` say that the engine does not decide at one, or on
    /// everything.
    #[arg(required = true, value_name = "FILE[:pass|:full]")]
    files: Vec<String>,
}

/// Compares what every way answers on the last fleet.
pub(crate) fn run(args: &Args) -> ExitCode {
    let trail: Result<Vec<Stop>, String> = args.files.iter().map(|file| stop(file)).collect();
    let trail = match trail {
        Ok(trail) => trail,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(2);
        }
    };
    let feed = if args.rows {
        Feed::Rows
    } else {
        Feed::Clusters
    };
    let mut ways = vec![Way::Full, Way::Incremental(feed)];
    ways.extend(args.wander.map(Way::Wander));
    let mut equal = true;
    for way in ways {
        let found = at_the_end(&Production, way, &trail);
        equal &= found.is_empty();
        if found.is_empty() {
            println!("{way}: equal to the oracle")
        } else {
            println!("{way}: differs from the oracle")
        }
        found.iter().for_each(|difference| println!("{difference}"));
    }
    if equal {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn stop(argument: &str) -> Result<Stop, String> {
    let named = argument
        .rsplit_once(':')
        .and_then(|(file, word)| Some((file, Then::named(word)?)));
    let (file, then) = named.unwrap_or((argument, Then::Decide));
    let text = fs::read(file).map_err(|error| format!("{file}: cannot be read: {error}"))?;
    let loaded = read(&text, Format::of(file, &text)).map_err(|refused| refused.to_string())?;
    Ok(Stop {
        fleet: loaded.fleet,
        then,
    })
}
