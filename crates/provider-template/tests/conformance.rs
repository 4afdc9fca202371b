//! The contract: this provider is certified for every profile it claims.

use std::path::PathBuf;
use std::time::Duration;

use bigfleet_conformance::{
    Binary, Certificate, Options, Outcome, Profile, Provider, Verdict, run,
};

/// Everything but faults on request and metal.
const CLAIMED: [Profile; 5] = [
    Profile::Core,
    Profile::Cloud,
    Profile::Spot,
    Profile::Durable,
    Profile::Scale,
];

#[test]
fn it_is_certified() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let provider = Provider::Binary(Binary {
        program: PathBuf::from(env!("CARGO_BIN_EXE_bigfleet-provider-template")),
        args: vec![],
        first_port: None,
    });
    let mut options = Options::new(provider, "certify", folder.clone());
    options.profiles = CLAIMED.to_vec();
    options.scale_seeds = 1_000;
    options.soak = Duration::from_secs(1);
    let runtime = tokio::runtime::Runtime::new()?;
    let reports = runtime.block_on(run(&options, |_| {}))?;
    for report in &reports {
        if let Outcome::Failed(why) = &report.outcome {
            println!("{}: {why}", report.behaviour.id);
        }
    }
    let certificate = Certificate {
        provider: options.label,
        profiles: options.profiles,
        rng_seed: options.rng_seed,
        strict_skips: false,
        command: String::new(),
        reports,
    };
    let missing = certificate.missing();
    assert_eq!(certificate.verdict(), Verdict::Certified, "{missing:?}");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
