//! The config file: what is offered, and which programs do the work.
//!
//! ```text
//! bytes ── YAML or JSON ──▶ Node ── key by key ──▶ Config, or every problem of the file at once
//! ```
//!
//! A file is taken whole or not at all. Programs are looked up here, so that one that is missing is a
//! problem of the file and not of the first machine.

mod offerings;
mod programs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use bigfleet_fleet_file::document::{Fields, Node, node};
use bigfleet_fleet_file::{FilePart, Format, Refused};

pub(crate) use offerings::tier_word;
pub use offerings::{Offering, Supply};
pub use programs::{Program, ProgramKind};

/// The largest file read, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Everything a config file says, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The provider's name, written on every host.
    pub provider: String,
    /// Where the file is: programs are started there.
    pub folder: PathBuf,
    /// The variables programs are given, and no other.
    pub environment: Vec<(OsString, OsString)>,
    /// By kind; those left out are not there.
    pub programs: Vec<(ProgramKind, Program)>,
    /// At least one.
    pub offerings: Vec<Offering>,
}

/// Why a config file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(path, problems))]
pub struct ConfigRefused {
    /// The file of the command line.
    pub path: PathBuf,
    /// What is wrong with it, one line each.
    pub problems: Vec<String>,
}

fn lines(path: &Path, problems: &[String]) -> String {
    let line = |problem: &String| format!("{}: {problem}", path.display());
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Config {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigRefused> {
        let refused = |problem: String| ConfigRefused {
            path: path.to_owned(),
            problems: vec![problem],
        };
        let text = std::fs::read(path).map_err(|why| refused(why.to_string()))?;
        // Programs are looked for beside the file, wherever the provider itself was started.
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).map_err(|why| refused(why.to_string()))?;
        let format = Format::of(&path.to_string_lossy(), &text);
        Self::parse(&text, format, folder).map_err(|problems| ConfigRefused {
            path: path.to_owned(),
            problems,
        })
    }

    /// Takes a text apart; programs are looked up in `folder`.
    pub fn parse(text: &[u8], format: Format, folder: PathBuf) -> Result<Self, Vec<String>> {
        if MAX_FILE_BYTES < text.len() {
            let bytes = text.len();
            return Err(vec![format!(
                "{bytes} bytes are more than the {MAX_FILE_BYTES} allowed"
            )]);
        }
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err(vec!["is empty".to_owned()]);
        }
        let root = node(text, format).map_err(|why| vec![why])?;
        if !matches!(root, Node::Object(_)) {
            return Err(vec![format!("{root} is not an object with keys")]);
        }
        let mut refused = Refused::default();
        let config = Fields::open(root, &FilePart::File, String::new(), &mut refused)
            .map(|fields| whole(fields, folder));
        match config {
            Some(config) if refused.count() == 0 => Ok(config),
            _ => Err(refused.problems.into_iter().map(|it| it.what).collect()),
        }
    }

    /// The program of this kind, if there is one.
    pub fn program(&self, kind: ProgramKind) -> Option<&Program> {
        let found = self.programs.iter().find(|(of, _)| *of == kind);
        found.map(|(_, program)| program)
    }
}

fn whole(mut fields: Fields<'_>, folder: PathBuf) -> Config {
    let provider = match fields.text("provider") {
        name if name.is_empty() => "exec".to_owned(),
        name => name,
    };
    let environment = environment(&mut fields);
    let offerings = offerings::read(&mut fields);
    let programs = programs::read(&mut fields, &folder, &needed(&offerings));
    fields.close();
    Config {
        provider,
        folder,
        environment,
        programs,
        offerings,
    }
}

fn environment(fields: &mut Fields<'_>) -> Vec<(OsString, OsString)> {
    let mut variables = Vec::new();
    for name in fields.text_list("environment") {
        match std::env::var_os(&name) {
            Some(value) => variables.push((name.into(), value)),
            None => fields.note(
                "environment",
                &format!("the provider itself has no variable {name:?} to pass on"),
            ),
        }
    }
    variables
}

/// The programs that such offerings cannot do without.
fn needed(offerings: &[Offering]) -> Vec<ProgramKind> {
    let mut needed = vec![ProgramKind::Configure, ProgramKind::Drain];
    if offerings.iter().any(Offering::is_created) {
        needed.push(ProgramKind::Create);
    }
    if offerings.iter().any(Offering::is_deleted) {
        needed.push(ProgramKind::Delete);
    }
    needed
}

#[cfg(test)]
mod tests;
