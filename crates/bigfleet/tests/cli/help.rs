//! `bigfleet completions` and `bigfleet man`.

use crate::process::{refusal, run, stdout};

#[test]
fn every_shell_can_complete_every_verb() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&run(&["completions", shell], ""));
        let words = "decide bench explain churning-clusters get describe top pause resume \
                     retire release no-headers from-shard";
        for word in words.split_whitespace() {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    for shell in ["bash", "fish", "zsh"] {
        let script = stdout(&run(&["completions", shell], ""));
        for word in ["shortfalls", "wide", "need"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    refusal(&run(&["completions", "csh"], ""));
}

/// zsh reads the script as the body of a function `_bigfleet`, which it then calls: that has to be ours, and what
/// was generated a part of it.
#[test]
fn what_zsh_calls_completes_live_names_too() {
    let script = stdout(&run(&["completions", "zsh"], ""));
    for name in [
        "\n_bigfleet() {",
        "\n_bigfleet_words() {",
        "_bigfleet_words \"$@\"",
    ] {
        assert_eq!(script.matches(name).count(), 1, "{name}");
    }
    let ours = script.find("\n_bigfleet() {").unwrap();
    let called = script
        .find("if [ \"$funcstack[1]\" = \"_bigfleet\" ]")
        .unwrap();
    assert!(ours < called && script.ends_with("compdef _bigfleet bigfleet\nfi\n"));
}

#[test]
fn there_is_a_page_for_the_binary_and_for_each_verb() {
    let page = stdout(&run(&["man"], ""));
    assert!(page.contains(".TH bigfleet 1"), "{page}");
    assert!(page.contains("bigfleet\\-decide(1)"), "{page}");
    let page = stdout(&run(&["man", "bench", "decide"], ""));
    assert!(page.contains(".TH bigfleet-bench-decide 1"), "{page}");
    assert!(page.contains("churning\\-clusters"), "{page}");
    let refused = refusal(&run(&["man", "bench", "nothing"], ""));
    let start = "man: there is no verb \"nothing\"\n  there is decide ";
    assert!(refused.starts_with(start), "{refused}");
}

/// Whoever reads the help needs nothing else to understand it.
#[test]
fn the_help_explains_its_own_words_as_the_glossary_does() {
    let help = stdout(&run(&["--help"], ""));
    assert!(
        help.contains("Stop all changes to machines for a while; deciding continues"),
        "{help}"
    );
    let (_, words) = help.split_once("Words:\n").unwrap();
    let words: Vec<&str> = words
        .split('\n')
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        words.contains(&"Need") && words.contains(&"rail"),
        "{words:?}"
    );
    let glossary = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/glossary.md");
    let glossary = std::fs::read_to_string(glossary).unwrap();
    for word in words {
        assert!(glossary.contains(&format!("| {word} |")), "{word}");
    }
}
