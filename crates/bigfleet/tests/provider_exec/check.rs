//! `bigfleet provider exec check`: every problem in one line, and a try of every program.

use std::process::{Command, Output};

use crate::scene::{example, scripted};
use crate::shard_scene::Folder;

fn check(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let output: Output = command
        .args(["provider", "exec", "check"])
        .args(args)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn every_problem_is_a_line_and_the_status_is_2() {
    let folder = Folder::new("exec-check");
    let file = folder.file("bad.yaml");
    std::fs::write(
        &file,
        "programs: {create: {run: [./no]}, drian: {}}\nofferings: []\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let (status, out, err) = check(&[file]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    for problem in [
        "programs.create.run: ",
        "programs.drian: is not a known key",
        "programs.configure: is missing",
        "offerings: is missing or empty",
    ] {
        let line = format!("{file}: {problem}");
        assert!(
            err.lines().any(|it| it.starts_with(&line)),
            "{problem}: {err}"
        );
    }
    // The provider itself refuses the same file with the same lines.
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    let output = command
        .args(["provider", "exec", "--config", file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), err);
    let (status, _, err) = check(&["/no/such/file"]);
    assert_eq!((status, err.lines().count()), (Some(2), 1), "{err}");
}

#[test]
fn a_try_is_the_life_of_a_machine() {
    let folder = Folder::new("exec-try");
    let config = example(&folder, "local-processes");
    let config = config.to_str().unwrap();
    let (status, out, err) = check(&[config, "--try", "local-spot-process-here-00001"]);
    assert_eq!(status, Some(0), "{out}{err}");
    let tried = out.lines().filter(|line| line.contains("  ok  "));
    let tried: Vec<&str> = tried
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let all = [
        "create",
        "configure",
        "ready",
        "describe",
        "drain",
        "delete",
        "prices",
    ];
    assert_eq!(tried, all, "{out}");
    assert_eq!(
        std::fs::read_dir(folder.file("machines")).unwrap().count(),
        0
    );

    let (status, _, err) = check(&[config, "--try", "nobody"]);
    assert_eq!(status, Some(2));
    assert!(
        err.contains("no machine \"nobody\"; the first is \"local-on-demand-process-here-00000\""),
        "{err}"
    );
}

#[test]
fn a_program_that_fails_a_try_is_named_and_what_was_made_is_given_back() {
    let folder = Folder::new("exec-try-fails");
    let script = r#"echo $1 >> calls
case $1 in create) echo '{"host": "h"}' ;; configure) echo no network >&2; exit 3 ;; esac"#;
    let config = scripted(&folder, script);
    let (status, out, err) = check(&[config.to_str().unwrap(), "--try", "exec-s-00000"]);
    assert_eq!(status, Some(1), "{out}{err}");
    assert!(
        out.contains("configure: exit status 3: no network"),
        "{out}"
    );
    assert_eq!(err, "1 of the programs tried did not do their work\n");
    let calls = std::fs::read_to_string(folder.file("calls")).unwrap();
    assert_eq!(
        calls.split_whitespace().collect::<Vec<_>>(),
        ["create", "configure", "drain", "delete"]
    );
}
