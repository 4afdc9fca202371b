//! `bigfleet completions SHELL` and `bigfleet man`: the command line, for shells and for `man`.

use crate::{failure::Failure, output::say};
use clap::{Args as ClapArgs, Command};
use clap_complete::Shell;

/// The words that every other text uses, below `bigfleet --help`.
pub(crate) const WORDS: &str = "\
Words:
  Need         what a cluster asks for: amounts of cpu, memory and the like, with requirements
  fingerprint  the requirements of a Need as one text
  roll-up      a cluster's report of all its Needs
  shard        the process that decides for a part of the fleet
  provider     the server that creates and deletes machines for a shard
  slot         a machine that could be bought; Speculative in lists
  rail         a safety limit on what a shard may change at once";

/// `bigfleet completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell the script is for
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script that a shell reads to complete our command line.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match args.shell {
        Shell::Bash => script += BASH_NAMES,
        Shell::Fish => script += &(fish_words(&command) + FISH_NAMES),
        Shell::Zsh => script = with_zsh_names(&script),
        _ => {}
    }
    say(&script)
}

/// Names of what a shard has now, after a kind: `bigfleet get machines m-<TAB>`. A shard that does not answer
/// at once completes nothing.
const BASH_NAMES: &str = r#"
_bigfleet_live() {
    _bigfleet "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" kind=""
    [[ $COMP_CWORD -lt 2 || $cur == -* ]] && return
    case "${COMP_WORDS[1]}" in
        get|describe|wait) [[ $COMP_CWORD -gt 2 ]] && kind="${COMP_WORDS[2]}" ;;
        explain|release) kind=clusters ;;
        retire|drain|undrain) kind=machines ;;
    esac
    [[ $prev == --cluster ]] && kind=clusters && COMPREPLY=()
    [[ -z $kind ]] && return
    local names="$(bigfleet get "$kind" -o name --timeout 1s 2>/dev/null | cut -d/ -f2-)"
    COMPREPLY+=( $(compgen -W "$names" -- "$cur") )
}
complete -F _bigfleet_live -o nosort -o bashdefault -o default bigfleet
"#;

/// The same for fish.
const FISH_NAMES: &str = r#"function __fish_bigfleet_names
    set -l words (commandline -opc)
    switch $words[2]
        case get describe wait
            test (count $words) -ge 3; and bigfleet get $words[3] -o name --timeout 1s 2>/dev/null | cut -d/ -f2-
        case explain release
            bigfleet get clusters -o name --timeout 1s 2>/dev/null | cut -d/ -f2-
        case retire drain undrain
            bigfleet get machines -o name --timeout 1s 2>/dev/null | cut -d/ -f2-
    end
end
complete -c bigfleet -f -a "(__fish_bigfleet_names)"
complete -c bigfleet -l cluster -x -a "(bigfleet get clusters -o name --timeout 1s 2>/dev/null | cut -d/ -f2-)"
"#;

/// The same for zsh: what was generated becomes a function of another name, and the one that is called asks it
/// where no names are meant, or none begins like that. Where a flag waits for its value, none are.
const ZSH_NAMES: &str = r#"
_bigfleet() {
    local -a names
    local typed=$words[CURRENT] before=$words[CURRENT-1] kind=""
    if [[ $before == --cluster ]]; then
        kind=clusters
    elif [[ $CURRENT -gt 2 && $typed != -* && $before != -* ]]; then
        case $words[2] in
            get|describe|wait) [[ $CURRENT -gt 3 ]] && kind=$words[3] ;;
            explain|release) kind=clusters ;;
            retire|drain|undrain) kind=machines ;;
        esac
    fi
    if [[ -n $kind ]]; then
        names=(${(f)"$(bigfleet get $kind -o name --timeout 1s 2>/dev/null | cut -d/ -f2-)"})
        compadd -a names && return 0
    fi
    _bigfleet_words "$@"
}
"#;

fn with_zsh_names(script: &str) -> String {
    let script = script.replacen("\n_bigfleet() {", "\n_bigfleet_words() {", 1);
    // Whoever reads the script calls or registers the function at its end.
    match script.rfind("\nif [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{ZSH_NAMES}{}", &script[..end], &script[end..]),
        None => script + ZSH_NAMES,
    }
}

/// The words that may follow a verb, as in `get machines`: the generated script for fish lacks them.
fn fish_words(command: &Command) -> String {
    let name = command.get_name();
    let mut lines = String::new();
    for verb in command.get_subcommands() {
        let using = format!("__fish_{name}_using_subcommand {}", verb.get_name());
        lines += &fish_line(name, &using, verb);
        for below in verb.get_subcommands() {
            let seen = format!(
                "{using}; and __fish_seen_subcommand_from {}",
                below.get_name()
            );
            lines += &fish_line(name, &seen, below);
        }
    }
    lines
}

fn fish_line(name: &str, when: &str, verb: &Command) -> String {
    let words = verb
        .get_positionals()
        .flat_map(|arg| arg.get_possible_values());
    let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(
            "complete -c {name} -n \"{when}\" -f -a \"{}\"\n",
            words.join(" ")
        )
    }
}

/// `bigfleet man`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// The command, as it is typed, for example `get` or `provider fake` [default: bigfleet itself]
    verb: Vec<String>,
}

/// Prints a manual page.
pub(crate) fn man(args: &ManArgs, mut command: Command) -> Result<(), Failure> {
    // Gives every verb the full name its page is called by.
    command.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(find(&command, &args.verb)?.clone()).render(&mut page)?;
    say(&String::from_utf8_lossy(&page))
}

fn find<'a>(command: &'a Command, verb: &[String]) -> Result<&'a Command, Failure> {
    let Some((first, rest)) = verb.split_first() else {
        return Ok(command);
    };
    match command.find_subcommand(first) {
        Some(found) => find(found, rest),
        None => {
            let verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let verbs = verbs.join(" ");
            Err(Failure::Input(format!(
                "man: there is no verb {first:?}\n  there is {verbs}"
            )))
        }
    }
}
