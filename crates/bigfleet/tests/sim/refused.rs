//! What makes no sense is refused, with what it was and why.

use super::{Folder, said, sim, text};
use std::fs;

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (line, why) in [
        ("run nothing", "there is no scenario nothing"),
        ("run runwya", "there is no scenario runwya; near it: runway"),
        ("run random-fault", "near it: random-faults"),
        (
            "run twins --defect none-such",
            "there is no defect none-such; `bigfleet sim list`",
        ),
        (
            "run twins --defect bare-pod",
            "there is no defect bare-pod; near it: bare-pods",
        ),
        (
            "run runway --without 99",
            "there is no entry 99 in this timeline",
        ),
        ("run steady-state --without 0", "it has none"),
        ("run runway --without x", "invalid digit"),
        ("sweep twinz", "near it: twins"),
        (
            "sweep --from 18446744073709551615 --seeds 3",
            "3 seeds from 18446744073709551615 on",
        ),
        ("sweep --seeds 18446744073709551615", "cannot be counted"),
        ("sweep --seeds 0", "0 is not in 1.."),
        ("sweep --jobs 0", "zero"),
        ("mutants --jobs 0", "zero"),
        ("mutants twinz", "near it: twins"),
        ("view t.txt --width 3", "3 is not in 40.."),
    ] {
        let output = sim(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
    }
    let output = sim("replay /nowhere");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere cannot be read"));
}

/// One thing wrong at a time in a trace that was good; both who replay it and who draw it refuse.
#[test]
fn a_trace_that_is_not_exactly_one_is_refused_by_its_line() {
    let folder = Folder::new("refused");
    let file = folder.file("t.txt");
    said(&format!("run twins --seed 3 --trace {file}"));
    let good = fs::read_to_string(&file).unwrap();
    let half = &good[..good.len() / 2];
    let cut = good.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    let with = |right: &str, wrong: &str| {
        assert!(good.contains(right), "{right}");
        good.replacen(right, wrong, 1)
    };
    for (text_of_it, why) in [
        (String::new(), "line 1 is missing"),
        ("hello\n".to_owned(), "so this is no trace"),
        (with("trace 1", "trace 2"), "version 2; this build reads 1"),
        (with("# build ", "# built "), "line 2: it does not say"),
        (
            with("fair-weather false", "fair-weather flase"),
            "fair-weather is flase",
        ),
        (with("without none", "without 99"), "no entry 99"),
        (with(" defect none", ""), "line 3: it does not say"),
        (
            with("seed 3", "seed three"),
            "seed three is not a whole number",
        ),
        (
            with("\n0.000 ", "\nNaN "),
            "line 4: \"NaN\" is not a moment",
        ),
        (half.to_owned(), "the trace is cut off"),
        (cut, "the trace is cut off"),
    ] {
        fs::write(&file, &text_of_it).unwrap();
        for verb in ["replay", "view"] {
            let output = sim(&format!("{verb} {file}"));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb}: {said}");
            assert!(
                said.starts_with(&file) && said.contains(why),
                "{why}: {said}"
            );
        }
    }
    fs::write(&file, with("sample short=", "sample short=inf")).unwrap();
    let said = text(&sim(&format!("view {file}")).stderr);
    assert!(said.contains("is not a count"), "{said}");
    assert!(!fs::exists(folder.file("t.svg")).unwrap());
}
