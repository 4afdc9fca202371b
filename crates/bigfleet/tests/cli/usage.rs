//! A command line that is wrong: status 2 and nothing on stdout, whichever verb it is for. Of a shard that is said
//! of flags there are none of; what it cannot start with is status 1 (docs/operating.md), tested in `tests/shard/gates.rs`.

use crate::process::{refusal, run};

/// For every verb a flag there is none of, a value that is none, and an address or a file that cannot be
/// one, where it takes such a thing.
const WRONG: &[(&str, &[&str])] = &[
    ("up", &["--speed=fast", "--speed=0", "--listen=nowhere"]),
    ("up", &["--provider-addr=nonsense", "--fleet=/no/such/file"]),
    ("up", &["--scenario=chaos", "--log-level=loud"]),
    ("decide", &["/no/such/file", "--engine=magic"]),
    ("bench decide", &["--workload=none"]),
    ("bench provider", &["--slots=many"]),
    ("provider fake", &["--seed-count=many", "--addr=nowhere"]),
    ("provider fake", &["--metrics-addr=nowhere", "--tls-cert=x"]),
    (
        "provider fake",
        &["--knobs=/no/such/file", "--latency=soon"],
    ),
    ("provider fake", &["--clean-up-after=soon"]),
    ("shard", &["--provider-address=127.0.0.1:1"]),
    ("get machines", &["-o=xml", "-l=state of (x)"]),
    ("get machines", &["--shard=nonsense", "--timeout=soon"]),
    ("get", &["nodes"]),
    ("describe", &["node", "machine"]),
    ("explain a", &["--shard=nonsense"]),
    ("top", &["--shard=nonsense"]),
    ("pause", &["--for=soon", "--cluster=a"]),
    ("resume", &["--shard=nonsense"]),
    ("retire", &["m1", "--shard=nonsense"]),
    ("release", &["a", "--machines=all"]),
    ("sim run", &["tour", "--seed=x"]),
    ("completions", &["tcsh"]),
    ("man", &["--no-such-flag"]),
    ("no-such-verb", &["x"]),
];

#[test]
fn every_verb_refuses_a_wrong_command_line_with_status_2() {
    for (verb, wrongs) in WRONG {
        for wrong in wrongs.iter().chain(&["--no-such-flag"]) {
            let mut args: Vec<&str> = verb.split(' ').collect();
            args.push(wrong);
            let said = refusal(&run(&args, ""));
            assert!(
                !said.trim().is_empty(),
                "{args:?} is refused without a word"
            );
        }
    }
}
