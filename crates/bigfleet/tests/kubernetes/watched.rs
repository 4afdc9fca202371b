//! `up --kubernetes`, for a person to watch.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The first line says where everything is, the last how it is; nothing is left behind.
#[test]
fn a_cluster_can_be_watched() {
    let mut up = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    up.args(["up", "--kubernetes", "--for", "30s", "-o", "json"]);
    let said = up.output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{error}");
    let lines = String::from_utf8(said.stdout).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (first, last) = (&lines[0], lines.last().unwrap());
    let kubeconfig = Path::new(first["kubeconfig"].as_str().unwrap());
    assert!(
        first["shard"].is_string() && !kubeconfig.exists(),
        "{first}"
    );
    assert!(
        last["pods"].is_u64() && last["nodes"].is_u64() && last["last"] == true,
        "{last}"
    );
}

/// Without the programs it says what to type, and starts nothing.
#[test]
fn without_kubernetes_it_says_what_to_type() {
    let mut up = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    up.args(["up", "--kubernetes", "--for", "1s"])
        .env_remove("KUBEBUILDER_ASSETS");
    let nowhere = std::env::temp_dir().join("bigfleet-no-such-cache");
    let said = up.env("XDG_CACHE_HOME", nowhere).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(error.contains("cargo xtask kube"), "{error}");
}
