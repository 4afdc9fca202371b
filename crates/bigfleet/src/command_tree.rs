//! `docs/commands.txt`: every verb and flag of this binary, which `cargo xtask tidy` holds the pages to.

use crate::Cli;
use clap::{Command, CommandFactory};
use std::path::Path;

const HEADER: &str = "\
# Every verb and flag of `bigfleet`, one command per line; words in braces are what its first argument may be.
# Written by: BIGFLEET_COMMANDS=write cargo test -p bigfleet --bin bigfleet command_tree
";

fn lines(command: &Command, path: &str) -> String {
    let mut line = path.to_owned();
    let first = command.get_positionals().next();
    let words = first
        .map(clap::Arg::get_possible_values)
        .unwrap_or_default();
    let words: Vec<&str> = words
        .iter()
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    if !words.is_empty() {
        line += &format!(" {{{}}}", words.join(","));
    }
    // A hidden flag is not for people, and may be there in some builds only.
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let short = arg.get_short().map(|short| format!(" -{short}"));
        let long = arg.get_long().map(|long| format!(" --{long}"));
        line.extend(short.into_iter().chain(long));
    }
    line.push('\n');
    for below in command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
    {
        line += &lines(below, &format!("{path} {}", below.get_name()));
    }
    line
}

#[test]
fn the_list_of_commands_is_the_binary_s() {
    let mut command = Cli::command();
    command.build();
    let expected = format!("{HEADER}{}", lines(&command, "bigfleet"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.txt");
    if std::env::var("BIGFLEET_COMMANDS").as_deref() == Ok("write") {
        std::fs::write(&page, &expected).expect("docs can be written");
    }
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        there == expected,
        "docs/commands.txt is not what the binary takes; its second line says how to write it"
    );
}
