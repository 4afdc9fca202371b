//! `bigfleet decide`.

use crate::process::{refusal, run, stderr, stdout};
use bigfleet_fleet_file::{decision_json, write};
use bigfleet_testkit::{fleet, generate::Generator};
use std::{path::Path, process::Output};

fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples/fleet.json").display().to_string()
}

fn decide(args: &[&str], stdin: &str) -> Output {
    run(&[&["decide", "-"], args].concat(), stdin)
}

#[test]
fn a_broken_file_is_refused_with_all_its_problems() {
    let text = r#"{"now": "x", "machines": [{"id": "m1", "state": "Idle", "prize": 1}],
                   "clusters": [{"id": "a", "needs": [{"aggregate_resources": {"cpu": "1x"}}]}]}"#;
    for output in ["json", "yaml", "table"] {
        assert_eq!(
            refusal(&decide(&["-o", output], text)),
            "file: now: \"x\" is not a finite number of seconds (EN-1)\n\
             machines[0]: machine \"m1\": prize: is not a known key\n\
             machines[0]: machine \"m1\": state Idle needs a host (ST-5)\n\
             clusters[0].needs[0]: cluster \"a\" row 0: aggregate_resources[\"cpu\"]: \
             quantity \"1x\" is malformed (Q-1)\n"
        );
    }
}

#[test]
fn what_cannot_be_read_or_understood_is_refused() {
    refusal(&run(&["decide", "no-such-file.json"], ""));
    refusal(&run(&["decide", "."], ""));
    refusal(&decide(&[], ""));
    refusal(&run(&["decide"], ""));
    refusal(&decide(&["--engine", "guess"], "{}"));
    refusal(&decide(&["-o", "xml"], "{}"));
    refusal(&decide(&["--seed", "-1"], "{}"));
    refusal(&run(&[], ""));
}

#[test]
fn the_same_fleet_gives_the_same_bytes_however_it_comes() {
    let text = std::fs::read_to_string(example()).unwrap();
    let from_stdin = stdout(&decide(&[], &text));
    let args = ["decide", &example(), "-o", "json"];
    assert_eq!(stdout(&run(&args, "")), from_stdin, "a pipe gets JSON");
    // JSON after a line that makes it YAML.
    assert_eq!(
        stdout(&decide(&[], &format!("# saved\n{text}"))),
        from_stdin
    );
}

#[test]
fn json_is_the_decision_and_nothing_else() {
    for seed in 0..20 {
        let fleet = Generator::new(seed).fleet();
        let expected = decision_json(&bigfleet_oracle::decide(&fleet));
        assert_eq!(
            stdout(&decide(&["-o", "json"], &write(&fleet))),
            expected,
            "seed {seed}"
        );
    }
}

#[test]
fn the_example_decides_what_its_page_says() {
    let page = include_str!("../../../../examples/README.md");
    let table = stdout(&run(&["decide", &example(), "-o", "table"], ""));
    assert!(
        page.contains(&table),
        "examples/README.md should show:\n{table}"
    );
    let explained = stdout(&run(
        &["decide", &example(), "-o", "table", "--explain", "web"],
        "",
    ));
    assert!(
        page.contains(&explained),
        "examples/README.md should show:\n{explained}"
    );
}

#[test]
fn yaml_and_table_say_the_same() {
    let text = write(&fleet(
        "need a cpu=4\n i1 Idle cpu=4\n m1 Configured b cpu=1",
    ));
    let yaml = stdout(&decide(&["-o", "yaml"], &text));
    assert!(
        yaml.starts_with("actions:\n- kind: Bootstrap\n  machine: i1\n"),
        "{yaml}"
    );
    let table = stdout(&decide(&["-o", "table"], &text));
    assert!(table.contains("Bootstrap  i1"), "{table}");
    let quiet = stdout(&decide(&["-o", "table"], "{}"));
    assert!(quiet.starts_with("Nothing to do.\n"), "{quiet}");
}

#[test]
fn a_malformed_machine_quantity_is_a_warning() {
    let text = r#"{"machines": [{"id": "m1", "state": "Speculative", "resources": {"cpu": "x"}}]}"#;
    let output = decide(&[], text);
    stdout(&output);
    assert_eq!(
        stderr(&output),
        "warning: machines[0]: machine \"m1\": resources.cpu: quantity \"x\" is malformed (Q-1), \
         read as 0 (Q-5)\n"
    );
}

#[test]
fn needs_are_explained_by_cluster_fingerprint_and_group() {
    let text = write(&fleet(
        "need a group=g1 gpu=16 rack=Same prio=5
         need a cpu=4
         i1 Idle cpu=4
         x1 Idle gpu=8 rack=r1",
    ));
    let of = |called: &str| stdout(&decide(&["--explain", called, "-o", "table"], &text));
    assert_eq!(of("a").matches("\nserved ").count(), 2);
    let gang = of("a/p=5|ipb=1|rpb=1|reqs=rack:5:;|spr=/g1");
    assert!(gang.contains("no value of rack holds"), "{gang}");
    assert!(gang.contains("requires rack Same, it is absent"), "{gang}");
    let json = stdout(&decide(
        &["--explain", "a/p=0|ipb=1|rpb=1|reqs=|spr="],
        &text,
    ));
    assert!(json.contains(r#""position": 2"#), "{json}");
    let refused = refusal(&decide(&["--explain", "b"], &text));
    let (first, named) = refused.split_once("\n  there is a/").unwrap();
    assert_eq!(
        first,
        "--explain b: there is no such Need (what a cluster asks for)"
    );
    let (name, fingerprint) = named.split_once(": ").unwrap();
    assert!(fingerprint.starts_with("a/p=5"), "{refused}");
    let gang = of(&format!("a/{name}"));
    assert!(gang.contains("no value of rack holds"), "{gang}");
    assert_eq!(of(name), gang, "by its name alone");
}

/// EX-S1 and EX-RF10: the page says why the domain was chosen, the runner-up and what decided; victims have scores.
#[test]
fn a_gang_is_explained_with_its_domains_and_victims() {
    let page = |text: &str| {
        let text = write(&fleet(text));
        stdout(&decide(&["--explain", "a", "-o", "table"], &text))
    };
    let complete = page(
        "need a group=g1 rack=Same gpu=24 min:gpu=8
         a0..a1 Idle gpu=8 rack=r1
         b0..b4 Idle gpu=8 rack=r2
         c0..c2 Idle gpu=8 rack=r3",
    );
    let chosen = "rack r3: free machines complete it there\n\
                  before r2: less is left over\n";
    assert!(complete.contains(chosen), "{complete}");
    assert!(complete.contains("outside the domain"), "{complete}");
    let with_victims = page(
        "need a group=g1 rack=Same gpu=16 min:gpu=8 prio=1000000
         cluster b not-ready
         b1..b2 Configured b gpu=8 rack=r1 stamp=100
         b3 Configured b gpu=8 rack=r2 stamp=100",
    );
    let chosen = "rack r1: free and preempted machines complete it there\n";
    assert!(with_victims.contains(chosen), "{with_victims}");
    assert!(with_victims.contains("999920.003333"), "{with_victims}");
    let elsewhere = "not eligible: outside the domain";
    assert!(with_victims.contains(elsewhere), "{with_victims}");
}

/// A gang that folded is found under the name its cluster gave it.
#[test]
fn a_folded_gang_is_explained_by_its_own_name() {
    let text = write(&fleet(
        "need a group=g1 cpu=8 rack=Same\n i1 Idle cpu=8 rack=r1",
    ));
    let called = "a/p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=/g1";
    let page = stdout(&decide(&["--explain", called, "-o", "table"], &text));
    assert!(
        page.contains(" of cluster a, gang fold:cpu=8000;\n"),
        "{page}"
    );
}

/// Three ways to one answer, in bytes.
#[test]
fn every_engine_prints_the_same_bytes() {
    let text = std::fs::read_to_string(example()).unwrap();
    let mut files = vec![text, "{}".to_owned()];
    for seed in 0..8 {
        let mut generator = Generator::new(seed);
        let mut fleet = generator.fleet();
        (0..seed).for_each(|_| {
            generator.edit(&mut fleet);
        });
        files.push(write(&fleet));
    }
    for text in files {
        let plain = stdout(&decide(&[], &text));
        for engine in ["full", "oracle", "incremental"] {
            assert_eq!(
                stdout(&decide(&["--engine", engine], &text)),
                plain,
                "{engine}: {text}"
            );
        }
        for seed in ["2", "18446744073709551615"] {
            let args = ["--engine", "incremental", "--seed", seed];
            assert_eq!(stdout(&decide(&args, &text)), plain, "seed {seed}: {text}");
        }
    }
}
