//! Providers that are not ours: one that keeps the public contract and nothing more is CERTIFIED, started from
//! its binary, from a script around it, or where it runs behind TLS; one that does nothing, or ends in the
//! middle, is not.
//!
//! The binary of this test is also the provider: started with the boot contract it serves.

mod provider;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bigfleet_conformance::{
    Binary, Certificate, Options, Outcome, Profile, Provider, Verdict, run,
};

use bigfleet_net::testing::Authority;
use bigfleet_net::{Tls, TlsFiles};
use provider::{Flags, router, serve};

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
    let tests: [(&str, Judge, Start); 6] = [
        ("the plainest provider is certified", certified, PLAIN),
        ("so it is from a script around it", certified, SCRIPT),
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
    let verdict = runtime.block_on(behind_tls())?;
    kept &= verdict.is_ok();
    let shown = verdict.as_ref().map_or_else(String::as_str, |()| "ok");
    println!("test a target behind TLS is certified where it runs ... {shown}");
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How the provider is started, and for what it is certified.
struct Start {
    flag: Option<&'static str>,
    /// By a shell that waits for it, and would not take it along if it were killed alone. What it starts listens
    /// for metrics where the next one will, so there cannot be two.
    in_a_script: bool,
    profiles: &'static [Profile],
}

const SCRIPT: Start = Start {
    in_a_script: true,
    profiles: &[Profile::Core, Profile::Durable],
    ..PLAIN
};
const PLAIN: Start = Start {
    flag: None,
    in_a_script: false,
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
    in_a_script: false,
    profiles: &[Profile::Core, Profile::Durable],
};
const REFUSES: Start = core_with("--refuses");
const EMPTY: Start = core_with("--empty");
const DIES: Start = core_with("--dies-after=40");

const fn core_with(flag: &'static str) -> Start {
    Start {
        flag: Some(flag),
        in_a_script: false,
        profiles: &[Profile::Core],
    }
}

/// A folder of a run, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("other-hands-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

async fn certificate(start: &Start) -> Result<Certificate, Box<dyn Error>> {
    let folder = Folder::new()?;
    let (program, args) = if start.in_a_script {
        let script = "\"$0\" \"$@\"; exit $?".to_owned();
        let program = std::env::current_exe()?.display().to_string();
        let metrics = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let metrics = format!("--metrics-addr={metrics}");
        (
            "/bin/sh".into(),
            vec!["-c".to_owned(), script, program, metrics],
        )
    } else {
        (std::env::current_exe()?, Vec::new())
    };
    let args = args.into_iter().chain(start.flag.map(str::to_owned));
    let provider = Provider::Binary(Binary {
        program,
        args: args.map(Into::into).collect(),
        first_port: None,
    });
    judged(provider, start.profiles, &folder).await
}

async fn judged(
    provider: Provider,
    profiles: &[Profile],
    folder: &Folder,
) -> Result<Certificate, Box<dyn Error>> {
    let mut options = Options::new(provider, "plain", folder.0.clone());
    options.profiles = profiles.to_vec();
    options.scale_seeds = 700;
    options.soak = Duration::from_secs(1);
    let reports = run(&options, |_| {}).await?;
    Ok(Certificate {
        provider: options.label,
        profiles: options.profiles,
        rng_seed: options.rng_seed,
        strict_skips: false,
        command: String::new(),
        reports,
    })
}

/// It verifies who calls, and lets whoever is verified speak for any shard, as the contract has it.
async fn behind_tls() -> Result<Result<(), String>, Box<dyn Error>> {
    let folder = Folder::new()?;
    let ca = Authority::new("ca")?;
    let put = |name: &str| -> Result<TlsFiles, Box<dyn Error>> {
        Ok(ca.leaf(&[])?.write(&folder.0.join(name), &ca.pem)?)
    };
    let (server, caller) = (Tls::load(put("server")?)?, Tls::load(put("caller")?)?);
    let flags = Flags::parse(
        ["--provider=plain", "--seed-count=256"]
            .map(str::to_owned)
            .into_iter(),
    )?;
    let listener = bigfleet_net::listen("127.0.0.1:0").await?;
    let serving = bigfleet_net::serve(listener, Some(server), router(flags))?;
    let target = |tls| Provider::Target {
        addr: format!("localhost:{}", serving.addr().port()),
        tls,
    };
    let profiles = [Profile::Core, Profile::Cloud, Profile::Spot];
    let found = judged(target(Some(caller)), &profiles, &folder).await?;
    let verdict = expect(&found, Verdict::Certified);
    let plaintext = judged(target(None), &profiles, &folder).await;
    serving.stop(Duration::ZERO).await;
    Ok(match plaintext {
        Err(_) => verdict,
        Ok(_) => Err("FAILED: it answers those who do not say who they are".to_owned()),
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
