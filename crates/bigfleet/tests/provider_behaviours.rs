//! The certification of `bigfleet provider fake`, as a process of its own, by the command that certifies
//! any provider.
//!
//! `cargo test -p bigfleet --test provider_behaviours -- DUR-03` tries one behaviour.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let filter: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let folder = std::env::temp_dir().join(format!("bigfleet-behaviours-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let kept = if filter.is_empty() {
        is_certified(&folder)? && a_liar_is_caught(&folder)? && defects_are_caught()?
    } else {
        certify(&folder, &filter, &[])?.failed.is_empty()
    };
    std::fs::remove_dir_all(&folder)?;
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Run {
    status: Option<i32>,
    report: serde_json::Value,
    failed: Vec<String>,
}

fn certify(folder: &Path, filter: &[String], args: &[String]) -> Result<Run, Box<dyn Error>> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_bigfleet"));
    let mut command = Command::new(&program);
    command.arg("conformance").arg("--binary").arg(&program);
    for arg in ["provider", "fake"].map(str::to_owned).iter().chain(args) {
        command.arg("--binary-arg").arg(arg);
    }
    command.args([
        "--profile",
        "core,cloud,spot,bare-metal,fault,durable,scale",
    ]);
    command.args(["--soak", "3s", "--out"]).arg(folder);
    for glob in filter {
        command.arg("--filter").arg(glob);
    }
    let status = command.status()?.code();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("report.json"))?)?;
    let lists = ["baseline_tests", "behaviors", "additional"].map(|list| report[list].as_array());
    let failed = lists.into_iter().flatten().flatten();
    let failed = failed.filter(|line| line["status"] == "failed");
    let failed = failed.map(|line| line["id"].to_string()).collect();
    Ok(Run {
        status,
        report,
        failed,
    })
}

fn is_certified(folder: &Path) -> Result<bool, Box<dyn Error>> {
    let run = certify(folder, &[], &[])?;
    let levels = [
        "core",
        "cloud",
        "spot",
        "bare-metal",
        "durable",
        "fault",
        "scale",
    ];
    let passed = |list: &str| {
        let lines = run.report[list].as_array().into_iter().flatten();
        lines.filter(|line| line["status"] == "passed").count()
    };
    let counts = ["baseline_tests", "behaviors", "additional"].map(passed);
    let whole = run.status == Some(0)
        && run.report["verdict"] == "CERTIFIED"
        && run.report["levels"] == serde_json::json!(levels)
        && counts == [25, 93, 17];
    let verdict = if whole { "ok" } else { "FAILED" };
    println!("test the fake is certified, and skips nothing ... {verdict} {counts:?}");
    Ok(whole)
}

/// The failing arm: a provider that lies when it is listed must not pass.
fn a_liar_is_caught(folder: &Path) -> Result<bool, Box<dyn Error>> {
    let knobs = folder.join("lies.json");
    std::fs::write(&knobs, r#"{"flapping": 0.2, "stale_list": 0.5}"#)?;
    let filter = ["LIST-02", "LIST-03", "LIST-04", "LIST-06"].map(str::to_owned);
    let run = certify(folder, &filter, &[format!("--knobs={}", knobs.display())])?;
    let caught =
        run.status == Some(1) && run.report["verdict"] == "FAILED" && !run.failed.is_empty();
    let verdict = if caught {
        "ok"
    } else {
        "FAILED: nothing was found broken"
    };
    println!("test a liar is caught ... {verdict} ({:?})", run.failed);
    Ok(caught)
}

/// Every planted defect is noticed by a behaviour that is named for it.
fn defects_are_caught() -> Result<bool, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let output = command
        .args(["conformance", "mutants", "-o", "json"])
        .output()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|why| format!("{why}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let planted = found["planted"].as_u64().unwrap_or_default();
    let all =
        30 <= planted && found["caught"] == planted && found["missed"] == serde_json::json!([]);
    let caught = all && output.status.success();
    let verdict = if caught { "ok" } else { "FAILED" };
    println!(
        "test {planted} planted defects are caught ... {verdict}, missed {}",
        found["missed"]
    );
    Ok(caught)
}
