//! Bad files: every problem is named, with its place, and nothing panics.

use bigfleet_fleet_file::{Format, MAX_TEXT_BYTES, read, write};
use bigfleet_seeded::Prng;
use bigfleet_testkit::generate::Generator;
use proptest::prelude::*;

/// The problems of a JSON file, one per line.
fn problems(json: &str) -> Vec<String> {
    let Err(refused) = read(json.as_bytes(), Format::Json) else {
        panic!("should be refused: {json}");
    };
    refused.to_string().lines().map(str::to_owned).collect()
}

fn machine(fields: &str) -> Vec<String> {
    let all = problems(&format!(r#"{{"machines": [{{"id": "m1", {fields}}}]}}"#));
    let own = |line: &String| {
        let stripped = line.strip_prefix("machines[0]: machine \"m1\": ");
        stripped.map_or_else(|| line.clone(), str::to_owned)
    };
    all.iter().map(own).collect()
}

fn row(fields: &str) -> Vec<String> {
    let all = problems(&format!(
        r#"{{"clusters": [{{"id": "a", "needs": [{{}}, {{{fields}}}]}}]}}"#
    ));
    let own = |line: &String| {
        let stripped = line.strip_prefix("clusters[0].needs[1]: cluster \"a\" row 1: ");
        stripped.map_or_else(|| line.clone(), str::to_owned)
    };
    all.iter().map(own).collect()
}

#[test]
fn all_problems_of_a_file_come_at_once() {
    let text = r#"{
        "now": "soon", "speed": 9,
        "holds": {"OnDemand": -1, "BareMetal": 5},
        "machines": [
            {"id": "m1", "state": "Confgured"},
            {"id": "m2", "state": "Configured", "price_per_hour": -1},
            {"id": "m2", "state": "Speculative"},
            7
        ],
        "clusters": [
            {"id": "a", "redy": true, "needs": [{}, {"priority": 1.5}]},
            {"id": "a", "needs": {}},
            {"needs": []}
        ]
    }"#;
    assert_eq!(
        problems(text),
        [
            "file: now: \"soon\" is not a finite number of seconds (EN-1)",
            "file: speed: is not a known key",
            "file: holds.OnDemand: -1 is neither a usable number of seconds nor null (R-4)",
            "file: holds.BareMetal: is not a known key",
            "machines[0]: machine \"m1\": state: \"Confgured\" is not a state (ST-5)",
            "machines[1]: machine \"m2\": state Configured needs a host (ST-5)",
            "machines[1]: machine \"m2\": state Configured needs a cluster (ST-5)",
            "machines[1]: machine \"m2\": price_per_hour -1 is not a finite non-negative number (ST-5)",
            "machines[2]: machine \"m2\": id: an earlier one has the same (INV-1)",
            "machines[3]: machine \"\": it: 7 is not an object",
            "clusters[0]: cluster \"a\": redy: is not a known key",
            "clusters[0].needs[1]: cluster \"a\" row 1: priority: 1.5 is not a whole number",
            "clusters[1]: cluster \"a\": id: an earlier one has the same (NT-2)",
            "clusters[1]: cluster \"a\": needs: an object is not a list",
            "clusters[2]: cluster \"\": id: is missing (NT-1)",
        ]
    );
}

/// A moment is 64 bits of nanoseconds; what is further away is refused with its digits.
#[test]
fn a_moment_beyond_292_years_is_refused() {
    let far = "is more than 292 years from 0 (EN-1)";
    for value in ["9223372036.854775808", "-9223372037", "1e300"] {
        assert_eq!(
            problems(&format!(r#"{{"now": {value}}}"#)),
            [format!("file: now: {value} {far}")]
        );
        assert_eq!(
            machine(&format!(r#""state": "Speculative", "idle_since": {value}"#)),
            [format!("idle_since: {value} {far}")]
        );
        assert_eq!(
            row(&format!(r#""arrival": {value}"#)),
            [format!("arrival: {value} {far}")]
        );
        let Err(refused) = read(format!("now: {value}").as_bytes(), Format::Yaml) else {
            panic!("{value} should be refused");
        };
        assert!(refused.to_string().ends_with(far), "{refused}");
    }
    assert_eq!(
        problems(r#"{"now": 1e400}"#),
        [format!("file: now: 1e400 {far}")]
    );
    for value in ["9223372036.854775807", "-9223372036.854775808"] {
        let json = format!(r#"{{"now": {value}}}"#);
        assert!(read(json.as_bytes(), Format::Json).is_ok(), "{value}");
    }
}

/// A moment in quotes is a text, with a fraction or without, in both formats.
#[test]
fn a_moment_in_quotes_is_refused() {
    for value in ["\"5\"", "\"0.5\"", "[0.5]"] {
        for (format, text) in [
            (Format::Json, format!(r#"{{"now": {value}}}"#)),
            (Format::Yaml, format!("now: {value}")),
        ] {
            let Err(refused) = read(text.as_bytes(), format) else {
                panic!("should be refused: {text}");
            };
            let why = "is not a finite number of seconds (EN-1)";
            assert!(refused.to_string().ends_with(why), "{refused}");
        }
    }
}

#[test]
fn every_breach_of_a_machine_is_named() {
    for (fields, expected) in [
        (
            r#""state": "Unspecified""#,
            &["Unspecified is not a state (ST-5)"][..],
        ),
        (r#""cluster": "a""#, &["state: is missing (ST-5)"]),
        (r#""state": 5"#, &["state: 5 is not text"]),
        (
            r#""state": "Creating", "host": {"provider": "p"}, "cluster": "a""#,
            &[
                "state Creating must have no host (ST-5)",
                "state Creating must have no cluster, but has \"a\" (ST-5)",
            ],
        ),
        (
            r#""state": "Failed""#,
            &["state Failed needs a last_error (ST-5)"],
        ),
        (
            r#""state": "Speculative", "interruption_probability": 1.5, "price_per_hour": "1""#,
            &[
                "price_per_hour: \"1\" is not a number",
                "interruption_probability 1.5 is not between 0 and 1 (ST-5)",
            ],
        ),
        (
            r#""state": "Speculative", "intent": {"cluster": "a"}"#,
            &["state Speculative cannot have an intent (model.md §1)"],
        ),
        (
            r#""state": "Creating", "intent": {"group": 1, "need": "x"}"#,
            &[
                "intent.cluster: is missing (RF-1)",
                "intent.group: 1 is not text",
                "intent.need: is not a known key",
            ],
        ),
        (
            r#""state": "Creating", "intent": {"cluster": ""}"#,
            &["intent.cluster: an id must not be empty (RF-1)"],
        ),
        (
            r#""state": "Speculative", "assigned": {"priority": 3000000000,
                "interruption_penalty_dollars": -1, "reclamation_penalty_dollars": "Inf",
                "keep_price": -1}"#,
            &[
                "assigned.priority: 3000000000 is out of range",
                "assigned.interruption_penalty_dollars: -1 is neither a non-negative number nor \"+Inf\" (MD-2)",
                "assigned.reclamation_penalty_dollars: \"Inf\" is neither a non-negative number nor \"+Inf\" (MD-2)",
                "assigned.keep_price: -1 is not a finite non-negative number (RF-2)",
            ],
        ),
        (
            r#""state": "Speculative", "labels": {"rack": 1, "a": "x", "a": "y"},
                "capacity_type": "Sport", "not_ready": "no", "idle_since": "x", "host": []"#,
            &[
                "host: a list is not an object",
                "capacity_type: \"Sport\" is not one of Unspecified, BareMetal, Reserved, OnDemand, Spot (model.md §1)",
                "labels.a: is given twice",
                "labels.rack: 1 is not text",
                "idle_since: \"x\" is not a finite number of seconds (EN-1)",
                "not_ready: \"no\" is neither true nor false",
            ],
        ),
        (
            r#""state": "Speculative", "disruption": 16, "reversible": 1"#,
            &[
                "disruption: 16 is not from 0 to 15 (RF-2)",
                "reversible: 1 is neither true nor false",
            ],
        ),
        (
            r#""state": "Speculative", "leaving": "later""#,
            &["leaving: \"later\" is neither soon nor now (RF-21)"],
        ),
        (
            r#""state": "Speculative", "leaving": true"#,
            &["leaving: true is not text"],
        ),
        (
            r#""state": "Speculative", "disruption": -1"#,
            &["disruption: -1 is not from 0 to 15 (RF-2)"],
        ),
        (
            r#""state": "Speculative", "disruption": "3""#,
            &["disruption: \"3\" is not a whole number"],
        ),
        (
            r#""state": "Speculative", "resources": {"": "1", "cpu": [4]}, "allocatable": 4"#,
            &[
                "resources.cpu: a list is not text",
                "allocatable: 4 is not an object",
            ],
        ),
        (
            r#""state": "Speculative", "resources": {"": "1"}, "state": "Idle""#,
            &[
                "state: is given twice",
                "resources: \"\": an id must not be empty (Q-1)",
            ],
        ),
    ] {
        assert_eq!(machine(fields), expected, "{fields}");
    }
}

#[test]
fn every_breach_of_a_row_is_named() {
    for (fields, expected) in [
        (
            r#""interruption_penalty_bucket": 28, "reclamation_penalty_bucket": -1"#,
            &[
                "interruption_penalty_bucket 28 is not a penalty bucket, 0 to 27 (NT-6)",
                "reclamation_penalty_bucket -1 is not a penalty bucket, 0 to 27 (NT-6)",
            ][..],
        ),
        (
            r#""aggregate_resources": {"cpu": "1x"}, "min_unit": {"cpu": "-1"}"#,
            &[
                "aggregate_resources[\"cpu\"]: quantity \"1x\" is malformed (Q-1)",
                "min_unit[\"cpu\"]: quantity \"-1\" is negative (Q-5)",
            ],
        ),
        (
            r#""requirements": [{"key": "rack"}, {"key": "", "operator": "In"},
                {"key": "k", "operator": "Unspecified"}, {"key": "k", "operator": "Same", "value": []}]"#,
            &[
                "requirements[0].operator: is missing (NT-6)",
                "requirements[3].value: is not a known key",
                "a requirement has an empty key (NT-6)",
                "requirement on \"k\": \"Unspecified\" is not an operator (NT-6)",
            ],
        ),
        (
            r#""spread": [{"topology_key": "zone", "max_skew": 0}, {"max_skew": 1},
                {"topology_key": "zone", "when_unsatisfiable": "Never"}, 5]"#,
            &[
                "spread[2].when_unsatisfiable: \"Never\" is not one of Unspecified, DoNotSchedule, ScheduleAnyway (P-2)",
                "spread[3]: 5 is not an object",
                "spread on \"zone\": max_skew 0 is not from 1 to 2147483647 (NT-6)",
                "a spread has an empty topology_key (NT-6)",
            ],
        ),
        (
            r#""arrival": true, "parked": 1, "count": 3"#,
            &[
                "arrival: true is not a finite number of seconds (EN-1)",
                "parked: 1 is neither true nor false",
                "count: is not a known key",
            ],
        ),
    ] {
        assert_eq!(row(fields), expected, "{fields}");
    }
}

#[test]
fn rows_that_cannot_be_added_up_are_refused() {
    let huge = r#"{"aggregate_resources": {"cpu": "170000000000000000000000000000000000"}}"#;
    let text = format!(r#"{{"clusters": [{{"id": "a", "needs": [{huge}, {huge}]}}]}}"#);
    assert_eq!(
        problems(&text),
        [
            "clusters[0].needs[1]: cluster \"a\" row 1: the sum of equal rows is too large to count (Q-3)"
        ]
    );
}

#[test]
fn over_long_texts_are_refused() {
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(
        machine(&format!(r#""state": "Speculative", "zone": "{long}""#)),
        ["zone: 65537 bytes are more than the 65536 allowed"]
    );
    let id = "x".repeat(513);
    let lines = problems(&format!(
        r#"{{"machines": [{{"id": "{id}", "state": "Speculative"}}],
            "clusters": [{{"id": "{id}"}}]}}"#
    ));
    assert_eq!(lines.len(), 2);
    assert!(lines[0].ends_with("an id of 513 bytes is longer than the 512 allowed (ST-5)"));
    assert!(lines[1].ends_with("an id of 513 bytes is longer than the 512 allowed (NT-1)"));
    assert!(lines.iter().all(|line| line.len() < 300), "shown cut");
}

#[test]
fn numbers_that_are_none_are_refused_in_yaml_too() {
    let yaml = "now: .nan
machines:
- {id: m1, state: Speculative, price_per_hour: .inf, interruption_probability: .nan}
- {id: m2, state: Speculative, assigned: {interruption_penalty_dollars: .nan}}
holds: {Spot: .inf}
";
    let refused = read(yaml.as_bytes(), Format::Yaml).expect_err("refused");
    let lines: Vec<String> = refused.problems.iter().map(|p| p.what.clone()).collect();
    assert_eq!(
        lines,
        [
            "now: NaN is not a finite number of seconds (EN-1)",
            "interruption_probability NaN is not between 0 and 1 (ST-5)",
            "price_per_hour inf is not a finite non-negative number (ST-5)",
            "assigned.interruption_penalty_dollars: NaN is neither a non-negative number nor \"+Inf\" (MD-2)",
            "holds.Spot: inf is neither a usable number of seconds nor null (R-4)",
        ]
    );
}

#[test]
fn what_is_not_a_file_at_all_is_refused() {
    for (text, format) in [
        ("", Format::Json),
        ("", Format::Yaml),
        ("[]", Format::Json),
        ("null", Format::Yaml),
        ("{} {}", Format::Json),
        ("{}\n---\n{}", Format::Yaml),
        ("{\"now\": 1e999}", Format::Json),
        ("{\"machines\": [{\"id\": \"m1\"", Format::Json),
        ("a: &x [*x]", Format::Yaml),
        ("machines: !odd []", Format::Yaml),
    ] {
        let refused = read(text.as_bytes(), format).expect_err(text);
        assert_eq!(refused.problems.len(), 1, "{text}: {refused}");
        assert!(refused.to_string().starts_with("file: "), "{refused}");
    }
    assert_eq!(
        problems(r#"{"machines": null, "clusters": {"a": 1}, "machines": []}"#),
        [
            "file: machines: null is not a list",
            "file: clusters: an object is not a list",
            "file: machines: is given twice"
        ]
    );
    let deep = format!("{{\"now\": {}", "[".repeat(1_000_000));
    assert!(read(deep.as_bytes(), Format::Json).is_err());
    assert!(read(&deep.as_bytes()[..20_000], Format::Yaml).is_err());
}

/// A few lines of YAML that stand for a billion texts.
#[test]
fn a_text_that_explodes_is_refused() {
    let mut bomb = "machines:\n- &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("- &a{level} [{aliases}]\n");
    }
    let refused = read(bomb.as_bytes(), Format::Yaml).unwrap_err();
    let last = refused.problems.last().map(ToString::to_string);
    assert!(last.is_some_and(|last| last.contains("repetition limit exceeded")));
}

/// Problems found before the text broke off are still told.
#[test]
fn a_file_that_breaks_off_tells_what_it_told() {
    let lines = problems(r#"{"machines": [{"id": "m1", "state": "x"}, {"id"#);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("\"x\" is not a state"));
    assert!(lines[1].starts_with("file: not a fleet in JSON: EOF"));
}

/// A good file with some bytes changed.
fn damaged(seed: u64, count: usize) -> Vec<u8> {
    let mut prng = Prng::new(seed);
    let mut text = write(&Generator::new(seed).fleet()).into_bytes();
    for _ in 0..count {
        let at = prng.below(text.len());
        match prng.below(3) {
            0 => text[at] = *prng.pick(b"{}[]\",:-0e.nx\\\xff\n "),
            1 => {
                text.remove(at);
            }
            _ => text.truncate(at.max(1)),
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_never_panic(seed: u64, count in 1..4_usize) {
        let text = damaged(seed, count);
        for format in [Format::Json, Format::Yaml] {
            if let Err(refused) = read(&text, format) {
                prop_assert!(!refused.problems.is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in [Format::Json, Format::Yaml, Format::of("", &text)] {
            if let Err(refused) = read(&text, format) {
                prop_assert!(!refused.problems.is_empty());
            }
        }
    }

    /// Any value anywhere: refusals always name the place and the path.
    #[test]
    fn odd_values_are_refused_by_path(
        field in prop::sample::select(vec![
            "id", "state", "cluster", "host", "instance_type", "zone", "capacity_type",
            "price_per_hour", "interruption_probability", "resources", "allocatable", "labels",
            "last_error", "not_ready", "unavailable", "assigned", "intent", "idle_since",
        ]),
        value in prop::sample::select(vec![
            "null", "true", "-1", "1e300", "\"\"", "\"\\u0000\"", "[]", "{}", "[[]]",
            "{\"x\": 1}", "{\"\": \"\"}", "99999999999999999999999999999999",
        ]),
    ) {
        let text = format!(r#"{{"machines": [{{"{field}": {value}}}]}}"#);
        if let Err(refused) = read(text.as_bytes(), Format::Json) {
            for problem in &refused.problems {
                prop_assert!(problem.to_string().starts_with("machines[0]: machine \""));
            }
        }
    }
}
