//! The contract: every promise a provider makes, kept by this one.

use std::path::PathBuf;
use std::time::Duration;

use bigfleet_conformance::{Binary, Lane, Options, Verdict, catalogue, run};

/// What this provider claims: everything but faults on request and metal.
const LANES: [Lane; 3] = [Lane::Core, Lane::Durable, Lane::Scale];

#[test]
fn every_promise_is_kept() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let claimed = catalogue()
        .into_iter()
        .filter(|it| LANES.contains(&it.lane));
    let options = Options {
        binary: Binary {
            program: PathBuf::from(env!("CARGO_BIN_EXE_bigfleet-provider-template")),
            args: vec![],
        },
        folder: folder.clone(),
        filter: claimed.map(|it| it.id.to_owned()).collect(),
        seeds: 512,
        scale_seeds: 1_000,
        soak: Duration::from_secs(1),
        rng_seed: 1,
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let reports = runtime.block_on(run(&options, |_| {}))?;
    std::fs::remove_dir_all(&folder)?;
    let broken = reports
        .iter()
        .filter(|report| report.verdict != Verdict::Kept);
    let broken: Vec<String> = broken
        .map(|report| format!("{}: {:?}", report.behaviour.id, report.verdict))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}
