//! Our own command line as lines of text, in the form pages are checked against.

use clap::Command;

/// One line per command: its path, then its flags.
pub(crate) fn lines(command: &Command, path: &str) -> String {
    let mut line = path.to_owned();
    for arg in command.get_arguments() {
        let short = arg.get_short().map(|short| format!(" -{short}"));
        let long = arg.get_long().map(|long| format!(" --{long}"));
        line.extend(short.into_iter().chain(long));
    }
    line.push_str(" -h --help\n");
    for below in command.get_subcommands() {
        line.push_str(&lines(below, &format!("{path} {}", below.get_name())));
    }
    line
}
