//! The programs of a config file: found, executable, and bounded.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bigfleet_fleet_file::document::Fields;
use bigfleet_provider_kit::duration;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramKind {
    /// Makes a host.
    Create,
    /// Makes the host a node of a cluster.
    Configure,
    /// Says whether the node is Ready.
    Ready,
    /// Takes the node out of its cluster.
    Drain,
    /// Gives the host back.
    Delete,
    /// Says which hosts exist.
    Describe,
    /// Says what everything costs.
    Prices,
}

impl ProgramKind {
    /// All of them, in the order of a machine's life.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Configure,
        Self::Ready,
        Self::Drain,
        Self::Delete,
        Self::Describe,
        Self::Prices,
    ];

    /// The key in the file, and the word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Configure => "configure",
            Self::Ready => "ready",
            Self::Drain => "drain",
            Self::Delete => "delete",
            Self::Describe => "describe",
            Self::Prices => "prices",
        }
    }

    /// How long a run may take if the file does not say.
    fn usual_deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Create | Self::Configure | Self::Ready | Self::Delete => 5 * 60,
            Self::Drain => 10 * 60,
            Self::Describe | Self::Prices => 20,
        })
    }

    /// The longest deadline allowed. The kit gives up an inventory after 30 s, whatever the file says.
    fn longest_deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Describe | Self::Prices => 25,
            _ => 24 * 3600,
        })
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A program, and how it may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable, found.
    pub path: PathBuf,
    /// What comes after it on the command line.
    pub args: Vec<String>,
    /// How long one run may take.
    pub deadline: Duration,
    /// How many may run at the same time.
    pub at_once: usize,
}

const USUAL_AT_ONCE: usize = 16;
const MOST_AT_ONCE: usize = 1024;

/// The programs of a file, and which of those `needed` it does not have.
pub(super) fn read(
    fields: &mut Fields<'_>,
    folder: &Path,
    needed: &[ProgramKind],
) -> Vec<(ProgramKind, Program)> {
    let mut programs = Vec::new();
    let Some(mut of_kind) = fields.object("programs") else {
        fields.note("programs", "is missing");
        return programs;
    };
    for kind in ProgramKind::ALL {
        if let Some(mut entry) = of_kind.object(kind.word()) {
            programs.extend(program(&mut entry, kind, folder).map(|program| (kind, program)));
            entry.close();
        } else if needed.contains(&kind) {
            of_kind.note(kind.word(), "is missing");
        }
    }
    of_kind.close();
    programs
}

fn program(entry: &mut Fields<'_>, kind: ProgramKind, folder: &Path) -> Option<Program> {
    let mut words = entry.text_list("run").into_iter();
    let deadline = deadline(entry, kind);
    let at_once = entry.whole("at_once", USUAL_AT_ONCE);
    if !(1..=MOST_AT_ONCE).contains(&at_once) {
        entry.note("at_once", &format!("{at_once} is not 1 to {MOST_AT_ONCE}"));
    }
    let Some(name) = words.next().filter(|name| !name.is_empty()) else {
        entry.note("run", "is missing: a list, the program first");
        return None;
    };
    match find(&name, folder) {
        Ok(path) => Some(Program {
            path,
            args: words.collect(),
            deadline,
            at_once,
        }),
        Err(why) => {
            entry.note("run", &why);
            None
        }
    }
}

fn deadline(entry: &mut Fields<'_>, kind: ProgramKind) -> Duration {
    let text = entry.text("deadline");
    if text.is_empty() {
        return kind.usual_deadline();
    }
    let longest = kind.longest_deadline();
    match duration(&text) {
        Ok(deadline) if deadline.is_zero() || longest < deadline => {
            let longest = longest.as_secs();
            entry.note(
                "deadline",
                &format!("{text:?} is not above 0 and at most {longest}s"),
            );
        }
        Ok(deadline) => return deadline,
        Err(why) => entry.note("deadline", &why.to_string()),
    }
    kind.usual_deadline()
}

/// The executable a name stands for: a path beside the file, or a program of the provider's PATH.
fn find(name: &str, folder: &Path) -> Result<PathBuf, String> {
    if name.contains('/') {
        let path = folder.join(name);
        return executable(&path)
            .map(|()| path.clone())
            .map_err(|why| format!("{}: {why}", path.display()));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    candidates
        .find(|path| executable(path).is_ok())
        .ok_or_else(|| format!("{name:?} is not a program of the PATH"))
}

fn executable(path: &Path) -> Result<(), String> {
    let found = std::fs::metadata(path).map_err(|_| "there is no such program".to_owned())?;
    if !found.is_file() {
        return Err("is not a file".to_owned());
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err("is not executable (chmod +x)".to_owned());
    }
    Ok(())
}
