//! Providers that are not ours: one that keeps the public contract and nothing more is CERTIFIED, and one
//! that does nothing, or ends in the middle, is not.
//!
//! The binary of this test is also the provider: started with the boot contract it serves.

mod provider;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use bigfleet_conformance::{
    Binary, Certificate, Options, Outcome, Profile, Provider, Verdict, run,
};

use provider::{Flags, serve};

/// What is expected of a certificate.
type Judge = fn(&Certificate) -> Result<(), String>;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    if std::env::args().any(|arg| arg.starts_with("--addr=")) {
        return match Flags::parse(std::env::args().skip(1)) {
            Ok(flags) => runtime.block_on(serve(flags)).map(|()| ExitCode::SUCCESS),
            Err(why) => {
                eprintln!("{why}");
                Ok(ExitCode::from(2))
            }
        };
    }
    let tests: [(&str, Judge, Start); 5] = [
        ("the plainest provider is certified", certified, PLAIN),
        ("what is optional may be missing", certified_without, BARE),
        ("who refuses everything has failed", failed, REFUSES),
        ("who lists nothing was not tried", untried, EMPTY),
        ("who ends in the middle is named once", ended, DIES),
    ];
    let mut kept = true;
    for (name, judge, start) in tests {
        let verdict = judge(&runtime.block_on(certificate(&start))?);
        kept &= verdict.is_ok();
        let shown = verdict.as_ref().map_or_else(String::as_str, |()| "ok");
        println!("test {name} ... {shown}");
    }
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How the provider is started, and for what it is certified.
struct Start {
    flag: Option<&'static str>,
    profiles: &'static [Profile],
}

const PLAIN: Start = Start {
    flag: None,
    profiles: &[
        Profile::Core,
        Profile::Cloud,
        Profile::Spot,
        Profile::Durable,
        Profile::Scale,
    ],
};
const BARE: Start = Start {
    flag: Some("--bare"),
    profiles: &[Profile::Core, Profile::Durable],
};
const REFUSES: Start = core_with("--refuses");
const EMPTY: Start = core_with("--empty");
const DIES: Start = core_with("--dies-after=40");

const fn core_with(flag: &'static str) -> Start {
    Start {
        flag: Some(flag),
        profiles: &[Profile::Core],
    }
}

async fn certificate(start: &Start) -> Result<Certificate, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("other-hands-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let provider = Provider::Binary(Binary {
        program: std::env::current_exe()?,
        args: start.flag.iter().map(Into::into).collect(),
        first_port: None,
    });
    let mut options = Options::new(provider, "plain", folder.clone());
    options.profiles = start.profiles.to_vec();
    options.scale_seeds = 700;
    options.soak = Duration::from_secs(1);
    let reports = run(&options, |_| {}).await;
    std::fs::remove_dir_all(&folder)?;
    Ok(Certificate {
        provider: options.label,
        profiles: options.profiles,
        rng_seed: options.rng_seed,
        strict_skips: false,
        command: String::new(),
        reports: reports?,
    })
}

fn broken(certificate: &Certificate) -> Vec<String> {
    let reports = certificate.reports.iter();
    let broken = reports.filter_map(|report| match &report.outcome {
        Outcome::Failed(why) => Some(format!("{}: {why}", report.behaviour.id)),
        _ => None,
    });
    broken.collect()
}

fn expect(certificate: &Certificate, verdict: Verdict) -> Result<(), String> {
    if certificate.verdict() == verdict {
        return Ok(());
    }
    let (found, missing) = (certificate.verdict(), certificate.missing());
    let broken = broken(certificate);
    Err(format!(
        "FAILED: {found}, not {verdict}: {missing:?}, {broken:?}"
    ))
}

/// What is ours in addition finds what it should, and does not decide.
fn certified(certificate: &Certificate) -> Result<(), String> {
    expect(certificate, Verdict::Certified)?;
    let broken = broken(certificate);
    for id in ["X-01", "X-02", "X-06"] {
        if !broken.iter().any(|line| line.starts_with(id)) {
            return Err(format!("FAILED: {id} found nothing in {broken:?}"));
        }
    }
    Ok(())
}

fn certified_without(certificate: &Certificate) -> Result<(), String> {
    expect(certificate, Verdict::Certified)?;
    let lacks: Vec<String> = certificate
        .lacks()
        .iter()
        .map(ToString::to_string)
        .collect();
    if lacks == ["Delete", "cursors", "visible transitions"] {
        return Ok(());
    }
    Err(format!("FAILED: it lacks {lacks:?}"))
}

fn failed(certificate: &Certificate) -> Result<(), String> {
    expect(certificate, Verdict::Failed)?;
    let passed = |id: &str| {
        let mut reports = certificate.reports.iter();
        reports.any(|it| it.behaviour.id == id && it.outcome == Outcome::Passed)
    };
    for id in ["FullLifecycle", "LIFE-01", "FENCE-03", "META-01", "PROP-03"] {
        if passed(id) {
            return Err(format!("FAILED: {id} is a hollow pass"));
        }
    }
    Ok(())
}

fn untried(certificate: &Certificate) -> Result<(), String> {
    expect(certificate, Verdict::Incomplete)?;
    let missing = certificate.missing().join("; ");
    if missing.contains("no IDLE machine is left") && missing.contains("lists no machine") {
        return Ok(());
    }
    Err(format!("FAILED: {missing}"))
}

/// One behaviour met its end; the others do not repeat that nobody answers.
fn ended(certificate: &Certificate) -> Result<(), String> {
    expect(certificate, Verdict::Failed)?;
    let (broken, missing) = (broken(certificate), certificate.missing().join("; "));
    let said = "the provider has ended: exit status: 3, saying: fatal: out of ideas";
    if broken.len() <= 2 && missing.contains(said) {
        return Ok(());
    }
    Err(format!("FAILED: {broken:?}; {missing}"))
}
