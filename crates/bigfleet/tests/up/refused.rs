//! Bad input: one line that says what and what to do, an exit status that is not 0, nothing left behind.

use crate::process::{Home, root};
use std::net::TcpListener;
use std::path::Path;

/// Runs `up` with these flags: it must be refused with this status, and in one line that has all of these.
#[track_caller]
fn refused(home: &Home, flags: &[&str], status: i32, says: &[&str]) {
    let mut args = vec!["up"];
    args.extend(flags);
    let output = home.ends(&args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{flags:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{flags:?}: {text}");
    assert!(output.stdout.is_empty(), "{flags:?}");
    for part in says {
        assert!(text.contains(part), "{flags:?}: no \"{part}\" in: {text}");
    }
    home.is_empty();
}

#[test]
fn a_port_that_is_taken_is_named_with_the_flag_to_change_it() {
    let home = Home::new("ports");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    refused(
        &home,
        &["--listen", &addr],
        1,
        &[&addr, "in use", "--listen"],
    );
    refused(
        &home,
        &["--metrics-addr", &addr],
        1,
        &[&addr, "in use", "--metrics-addr"],
    );
    refused(&home, &["--listen", "nowhere"], 2, &["nowhere", "--listen"]);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let home = Home::new("folders");
    let file = home.file("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("data").display().to_string();
    refused(
        &home,
        &["--data-dir", &below],
        1,
        &[&below, "cannot be used", "--data-dir"],
    );

    let closed = home.file("closed");
    std::fs::create_dir(&closed).unwrap();
    readable_only(&closed);
    let inside = closed.join("data").display().to_string();
    // Root may write anywhere; for everybody else this is refused.
    if std::fs::create_dir(closed.join("probe")).is_err() {
        let says = [inside.as_str(), "ermission denied", "--data-dir"];
        refused(&home, &["--data-dir", &inside], 1, &says);
    }
}

fn readable_only(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o500)).unwrap();
}

#[test]
fn no_place_for_temporary_files_is_said_too() {
    let home = Home::new("nowhere");
    let mut command = home.bigfleet(&["up"]);
    let output = command
        .env("TMPDIR", home.file("missing"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.lines().count() == 1 && text.contains("--data-dir"),
        "{text}"
    );
}

#[test]
fn a_directory_in_use_is_refused_and_one_with_a_cloud_is_not_overwritten() {
    let home = Home::new("in-use");
    let kept = home.file("kept").display().to_string();
    let running = home.up(&["--scenario", "none", "--data-dir", &kept]);
    let elsewhere = Home::new("in-use-too");
    let flags = ["--scenario", "none", "--data-dir", kept.as_str()];
    refused(&elsewhere, &flags, 1, &["in use"]);
    running.end("-TERM");
    let file = root().join("examples/fleet.json").display().to_string();
    let flags = ["--fleet", file.as_str(), "--data-dir", kept.as_str()];
    refused(
        &elsewhere,
        &flags,
        1,
        &["holds a cloud already", "--data-dir"],
    );
}

#[test]
fn an_unknown_scenario_hears_which_there_are() {
    let home = Home::new("scenarios");
    let says = ["chaos", "tour", "steady", "none"];
    refused(&home, &["--scenario", "chaos"], 2, &says);
    refused(&home, &["--speed", "0"], 2, &["--speed 0", "0.1", "600"]);
    refused(
        &home,
        &["--clusters", "5000"],
        2,
        &["--clusters 5000", "200"],
    );
}

#[test]
fn a_provider_that_is_not_there_is_named() {
    let home = Home::new("providers");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = gone.local_addr().unwrap().to_string();
    drop(gone);
    let says = [addr.as_str(), "bigfleet provider fake", "--provider-addr"];
    refused(&home, &["--provider-addr", &addr], 1, &says);
    refused(&home, &["--provider-addr", "nonsense"], 2, &["nonsense"]);
}

#[test]
fn a_fleet_that_cannot_be_run_is_refused_by_its_rule() {
    let home = Home::new("fleets");
    let file = home.file("fleet.json");
    let path = file.display().to_string();
    refused(
        &home,
        &["--fleet", &path],
        2,
        &["fleet.json", "cannot be read"],
    );
    std::fs::write(
        &file,
        r#"{"machines": [{"id": "m1", "state": "Speculative", "price_per_hour": 1}]}"#,
    )
    .unwrap();
    refused(
        &home,
        &["--fleet", &path],
        2,
        &["machine m1", "instance_type is required"],
    );
}
