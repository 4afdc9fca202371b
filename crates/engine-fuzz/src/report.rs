//! Report: a wrong answer, the fleets it is wrong on, and how to see it again.

use bigfleet_engine_fuzz::{Feed, Mismatch, Stop, Then, Way};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Writes the fleets into the folder and says everything.
pub(crate) fn report(mismatch: &Mismatch, into: &Path) -> String {
    let mut text = format!("\n{mismatch}\n{}", mismatch.fleets());
    text += &match save(mismatch, into) {
        Ok(files) => commands(mismatch, &files),
        Err(error) => format!("{}: cannot be written: {error}\n", into.display()),
    };
    text
}

fn save(mismatch: &Mismatch, into: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(into)?;
    let name = |at| {
        format!(
            "engine-{}-{}-{at}.json",
            mismatch.history.seed, mismatch.step
        )
    };
    let mut files = Vec::new();
    for (at, stop) in mismatch.trail.iter().enumerate() {
        let file = into.join(name(at + 1));
        fs::write(&file, bigfleet_fleet_file::write(&stop.fleet))?;
        files.push(file);
    }
    Ok(files)
}

fn commands(mismatch: &Mismatch, files: &[PathBuf]) -> String {
    let stops = mismatch.trail.iter().zip(files);
    let argument = |(stop, file): (&Stop, &PathBuf)| match stop.then {
        Then::Decide => file.display().to_string(),
        Then::Pass | Then::Full => format!("{}:{}", file.display(), stop.then.word()),
    };
    let arguments: Vec<String> = stops.map(argument).collect();
    let option = match mismatch.way {
        Way::Full | Way::Incremental(Feed::Clusters) => String::new(),
        Way::Incremental(Feed::Rows) => "--rows ".to_owned(),
        Way::Wander(seed) => format!("--wander {seed} "),
    };
    let replay = "cargo run -p bigfleet-engine-fuzz -- replay";
    let mut text = format!("replay: {replay} {option}{}\n", arguments.join(" "));
    if let [file] = files {
        let decide = format!("cargo run -p bigfleet -- decide {}", file.display());
        text += &format!("     or: {decide} --engine oracle\n         {decide} --engine full\n");
    }
    text
}
