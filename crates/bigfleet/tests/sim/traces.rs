//! Traces that are written, replayed and drawn.

use super::{Folder, said, sim, text};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::{fs, io::Read};

#[test]
fn a_trace_is_replayed_to_the_line_and_drawn() {
    let folder = Folder::new("drawn");
    let trace = folder.file("t.txt");
    said(&format!("run priority-inversion --seed 5 --trace {trace}"));
    let again = said(&format!("replay {trace}"));
    assert!(
        again.starts_with("the same ") && again.contains("every rule held"),
        "{again}"
    );
    let drawn = said(&format!("view {trace}"));
    assert!(drawn.starts_with("priority-inversion seed 5\n"), "{drawn}");
    assert!(
        drawn.contains("Configured") && drawn.contains("|0 "),
        "{drawn}"
    );
    // Not a terminal, so a hundred characters; only lists of names may be longer.
    let chart = drawn.lines().take_while(|line| !line.starts_with("marks:"));
    assert!(
        chart.clone().all(|line| line.chars().count() <= 100),
        "{drawn}"
    );
    assert!(
        chart.clone().any(|line| 80 < line.chars().count()),
        "{drawn}"
    );
    let svg = fs::read_to_string(folder.file("t.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("priority-inversion seed 5"));
}

#[test]
fn what_was_left_out_is_left_out_of_the_replay_as_well() {
    let folder = Folder::new("without");
    let trace = folder.file("t.txt");
    let left_out = "--without 1,3 --fair-weather";
    let run = |rest: &str| {
        sim(&format!(
            "run random-faults --seed 5 --trace {trace} {rest}"
        ))
    };
    run("");
    let whole = fs::read_to_string(&trace).unwrap();
    run(left_out);
    let less = fs::read_to_string(&trace).unwrap();
    assert_ne!(whole.lines().nth(100), less.lines().nth(100));
    let header = less.lines().nth(2).unwrap();
    assert!(
        header.ends_with("defect none fair-weather true without 1,3"),
        "{header}"
    );
    let again = said(&format!("replay {trace}"));
    let lines = less.lines().count() - 4; // the header and the end
    assert!(
        again.starts_with(&format!("the same {lines} lines")),
        "{again}"
    );
    let drawn = said(&format!("view {trace}"));
    assert!(
        drawn.starts_with("random-faults seed 5, fair weather, without 2 entries"),
        "{drawn}"
    );
}

#[test]
fn a_broken_rule_is_the_last_line_of_its_trace_and_is_drawn() {
    let folder = Folder::new("broken");
    let trace = folder.file("t.txt");
    let run = format!("run runway --seed 2 --defect creating-not-credited --trace {trace}");
    assert_eq!(sim(&run).status.code(), Some(1));
    let text = fs::read_to_string(&trace).unwrap();
    let last = text.lines().rev().nth(1).unwrap();
    assert!(last.ends_with(" broke gate: 19 Creates, not 1"), "{last}");
    let again = said(&format!("replay {trace}"));
    assert!(again.contains("19 Creates, not 1"), "{again}");
    let drawn = said(&format!("view {trace}"));
    assert!(drawn.contains("broke gate: 19 Creates, not 1"), "{drawn}");
    let svg = fs::read_to_string(folder.file("t.svg")).unwrap();
    assert!(svg.contains("19 Creates, not 1") && svg.contains("a rule broke (1)"));
}

#[test]
fn a_trace_that_differs_says_where_and_who_may_have_changed() {
    let folder = Folder::new("differs");
    let trace = folder.file("t.txt");
    said(&format!("run priority-inversion --seed 5 --trace {trace}"));
    let right = fs::read_to_string(&trace).unwrap();
    let replayed = |changed: String| {
        fs::write(&trace, changed).unwrap();
        let output = sim(&format!("replay {trace}"));
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let line = right.lines().position(|line| line.contains("Preempt"));
    let changed = right.replacen("Preempt", "Reclaim", 1);
    let differs = replayed(changed.clone());
    let place = format!("line {}: it was", line.unwrap() + 1);
    assert!(differs.starts_with(&place), "{differs}");
    assert!(
        differs.contains("the trace or the sources were changed"),
        "{differs}"
    );
    let build = format!("# build {}", env!("CARGO_PKG_VERSION"));
    assert!(changed.contains(&build));
    let differs = replayed(changed.replacen(&build, "# build 0.0.9", 1));
    assert!(
        differs.contains("made by version 0.0.9 and this is"),
        "{differs}"
    );
}

#[test]
fn a_picture_never_replaces_a_trace() {
    let folder = Folder::new("same");
    let (trace, other) = (folder.file("t.svg"), folder.file("other.txt"));
    for file in [&trace, &other] {
        said(&format!("run twins --seed 1 --trace {file}"));
    }
    let before = fs::read_to_string(&trace).unwrap();
    for line in [
        format!("view {trace}"),
        format!("view {trace} --svg {other}"),
    ] {
        let output = sim(&line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains("a picture would replace it"));
    }
    assert_eq!(fs::read_to_string(&trace).unwrap(), before);
    let picture = folder.file("p.svg");
    for _ in 0..2 {
        said(&format!("view {trace} --svg {picture}")); // an older picture may be replaced
    }
}

/// What a person sees: as wide as the terminal, and no wider.
#[test]
fn a_chart_is_as_wide_as_the_terminal() {
    let folder = Folder::new("terminal");
    let trace = folder.file("t.txt");
    said(&format!("run twins --seed 1 --trace {trace}"));
    for cols in [72, 140] {
        let size = PtySize {
            rows: 60,
            cols,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args(["sim", "view", &trace]);
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave); // or its end would never be read
        let mut shown = Vec::new();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let _ = reader.read_to_end(&mut shown); // ends in an error once the other side is gone
        assert!(child.wait().unwrap().success());
        let shown = text(&shown);
        let row = shown.lines().find(|line| line.starts_with("Configured"));
        let wide = row.unwrap_or_else(|| panic!("{shown}")).trim_end();
        let wide = wide.chars().count();
        assert!(
            (cols as usize - 20..=cols as usize).contains(&wide),
            "{wide}: {shown}"
        );
    }
}
