//! Running a verb, and making what it prints comparable.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// What a verb did.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs it, in an environment without a `bigfleet up`.
pub(crate) fn call(args: &[&str]) -> Called {
    call_in(Path::new("/nowhere"), args)
}

/// Runs it with this runtime directory.
pub(crate) fn call_in(runtime_dir: &Path, args: &[&str]) -> Called {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    command.args(args).env("XDG_RUNTIME_DIR", runtime_dir);
    command.env("BIGFLEET_CONFIG", runtime_dir.join("config.yaml"));
    command.env_remove("BIGFLEET_SHARD");
    command.env_remove("BIGFLEET_CONTEXT");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Called {
        status: status.code(),
        out: text(stdout),
        err: text(stderr),
    }
}

impl Called {
    /// It was done; what it printed.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.out
    }

    /// It could not be done: nothing on stdout, and why.
    #[track_caller]
    pub(crate) fn undone(self) -> String {
        assert_eq!((self.status, self.out.as_str()), (Some(1), ""), "{self:?}");
        self.err
    }

    /// The command line is wrong: nothing on stdout, and why.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        assert_eq!((self.status, self.out.as_str()), (Some(2), ""), "{self:?}");
        self.err
    }
}

/// A table with its cells apart, those that are never the same twice starred.
pub(crate) fn cells(table: &str, varies: &[&str]) -> String {
    let lines: Vec<Vec<char>> = table.lines().map(|line| line.chars().collect()).collect();
    let Some(header) = lines.first() else {
        return String::new();
    };
    let is_start = |at: &usize| header[*at] != ' ' && (*at == 0 || header[*at - 1] == ' ');
    let starts: Vec<usize> = (0..header.len()).filter(is_start).collect();
    let cell = |line: &[char], at: usize| -> String {
        let end = starts.get(at + 1).copied().unwrap_or(usize::MAX);
        let text: String = line.iter().take(end).skip(starts[at]).collect();
        text.trim().to_owned()
    };
    let names: Vec<String> = (0..starts.len()).map(|at| cell(header, at)).collect();
    let row = |(number, line): (usize, &Vec<char>)| -> String {
        let cells = names.iter().enumerate().map(|(at, name)| {
            let text = cell(line, at);
            let starred = 0 < number && varies.contains(&name.as_str());
            if starred { "*".to_owned() } else { text }
        });
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    let rows: Vec<String> = lines.iter().enumerate().map(row).collect();
    rows.join("\n")
}

/// A document with the values starred that are never the same twice.
pub(crate) fn starred(mut value: Value, varies: &[&str]) -> Value {
    star(&mut value, varies);
    value
}

fn star(value: &mut Value, varies: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| star(item, varies)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if varies.contains(&name.as_str()) {
                    *value = Value::String("*".to_owned())
                } else {
                    star(value, varies)
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Pages with what is never the same twice starred: moments, spans, ports, cycles.
pub(crate) fn page(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut words: Vec<String> = line.split(' ').map(word).collect();
        for at in 1..words.len() {
            if words[at].starts_with("cycle") {
                (words[at - 1], words[at]) = ("*".to_owned(), words[at].replace("cycles", "cycle"));
            }
            // As a sentence says it: "for 3 s".
            let is_unit = ["s", "min", "h"].contains(&words[at].trim_end_matches([',', ':', ';']));
            if is_unit && words[at - 1].parse::<u64>().is_ok() {
                words[at - 1] = "*".to_owned();
            }
        }
        words.join(" ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn word(word: &str) -> String {
    let bare = word.trim_matches(['(', ')', ',', ';', ':']);
    let is_moment = bare.len() >= 20 && bare.starts_with("20") && bare.ends_with('Z');
    let is_span = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with(['s', 'm', 'h'])
        && bare
            .chars()
            .all(|c| c.is_ascii_digit() || "msh".contains(c));
    let is_port = bare.starts_with("127.0.0.1:");
    if is_moment || is_span || is_port {
        word.replace(bare, "*")
    } else {
        word.to_owned()
    }
}
