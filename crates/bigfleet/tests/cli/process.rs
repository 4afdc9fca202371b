//! Running the binary.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

/// Runs with these arguments and this text on stdin.
pub(crate) fn run(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("the binary starts: {error}"));
    if let Some(mut pipe) = child.stdin.take() {
        // A run that does not read its stdin closes it early.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let output = child.wait_with_output();
    output.unwrap_or_else(|error| panic!("the binary ends: {error}"))
}

/// Status 0; what stdout says.
pub(crate) fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Status 2, nothing on stdout; what stderr says.
pub(crate) fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(output.stdout.is_empty(), "stdout must be empty");
    stderr(output)
}
