//! The behaviours of the provider contract, each by its id, against `bigfleet provider fake` as a
//! process of its own.
//!
//! `cargo test -p bigfleet --test provider_behaviours -- DUR-03` runs one of them.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bigfleet_conformance::{Binary, Options, Report, Verdict, run};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let filter = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let folder = std::env::temp_dir().join(format!("bigfleet-behaviours-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut options = Options {
        binary: Binary {
            program: PathBuf::from(env!("CARGO_BIN_EXE_bigfleet")),
            args: vec!["provider".into(), "fake".into()],
        },
        folder: folder.clone(),
        filter,
        seeds: 512,
        scale_seeds: 4_000,
        soak: Duration::from_secs(3),
        rng_seed: 1,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let started = Instant::now();
    let reports = runtime.block_on(run(&options, tell))?;
    let kept = reports
        .iter()
        .filter(|report| report.verdict == Verdict::Kept)
        .count();
    let caught = if options.filter.is_empty() {
        runtime.block_on(a_liar_is_caught(&mut options))?
    } else {
        true
    };
    std::fs::remove_dir_all(&folder)?;
    let all = reports.len();
    println!(
        "\ntest result: {kept} of {all} behaviours kept in {:.1?}",
        started.elapsed()
    );
    Ok(if kept == all && caught {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The failing arm: a provider that lies when it is listed must not pass.
async fn a_liar_is_caught(options: &mut Options) -> Result<bool, Box<dyn Error>> {
    let knobs = options.folder.join("lies.json");
    std::fs::write(&knobs, r#"{"flapping": 0.2, "stale_list": 0.5}"#)?;
    options
        .binary
        .args
        .push(format!("--knobs={}", knobs.display()).into());
    options.filter = ["LIST-02", "LIST-03", "LIST-04", "LIST-06"]
        .map(str::to_owned)
        .to_vec();
    let reports = run(options, |_| {}).await?;
    let broken = |report: &&Report| matches!(report.verdict, Verdict::Broken(_));
    let broken = reports.iter().filter(broken).count();
    let verdict = if 0 < broken {
        "ok"
    } else {
        "FAILED: nothing was found broken"
    };
    println!(
        "test a liar is caught ... {verdict} ({broken} of {} broken)",
        reports.len()
    );
    Ok(0 < broken)
}

fn tell(report: &Report) {
    let verdict = match &report.verdict {
        Verdict::Kept => "ok".to_owned(),
        Verdict::Skipped(capability) => format!("SKIPPED: no {capability:?}"),
        Verdict::Broken(why) => format!("FAILED: {why}"),
    };
    let behaviour = &report.behaviour;
    let name = format!("{} {}", behaviour.id, behaviour.title);
    println!("test {name} ... {verdict} ({:.2?})", report.took);
}
