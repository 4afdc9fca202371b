//! The pause file: while it is there, nothing leaves (SH-16).
//!
//! ```text
//! (empty)          everything
//! cluster a        what concerns one cluster, a line each
//! provider aws     every call to one provider
//! # a reason       for people
//! ```
//!
//! Looked at once a second. A file that cannot be read or understood pauses everything: whoever wrote it
//! wanted less to happen, not more. It and the flag are one layer; a remote admin has another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bigfleet_model::{ClusterId, Time};
use bigfleet_shard_core::{Event, PauseNote, PausedBy, Scope};

use crate::hub::Hub;
use crate::store::keep_private;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A pause file is a few lines; more is something else.
const MOST_BYTES: u64 = 1 << 20;

/// Why a pause file is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PauseFileRefused {
    /// A line is none of the known ones.
    #[error("line {number}: \"{text}\" is not \"all\", \"cluster <id>\" or \"provider <name>\"")]
    Line {
        /// The line, counted from 1.
        number: usize,
        /// Its text, made fit to print.
        text: String,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// What a pause file asks for.
fn scopes(text: &str) -> Result<BTreeSet<Scope>, PauseFileRefused> {
    let mut scopes = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let refused = || PauseFileRefused::Line {
            number: at + 1,
            text: bigfleet_model::shown(line),
        };
        match line.split_once(char::is_whitespace) {
            None if line.is_empty() => {}
            None if line == "all" => drop(scopes.insert(Scope::All)),
            Some(("cluster", id)) => {
                let id = ClusterId::new(id.trim()).map_err(|_| refused())?;
                scopes.insert(Scope::Cluster(id));
            }
            Some(("provider", name)) => {
                scopes.insert(Scope::Provider(name.trim().to_owned()));
            }
            None | Some(_) => return Err(refused()),
        }
    }
    if scopes.is_empty() {
        scopes.insert(Scope::All);
    }
    Ok(scopes)
}

fn look(path: &Path) -> Result<BTreeSet<Scope>, PauseFileRefused> {
    let unreadable = |why: std::io::Error| PauseFileRefused::Unreadable(why.to_string());
    match std::fs::metadata(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(why) => return Err(unreadable(why)),
        Ok(of) if MOST_BYTES < of.len() => {
            return Err(PauseFileRefused::Unreadable(format!("{} bytes", of.len())));
        }
        Ok(_) => {}
    }
    keep_private(path, 0o600);
    match std::fs::read_to_string(path) {
        Ok(text) => scopes(&text),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(why) => Err(unreadable(why)),
    }
}

/// When the file was last written: since then it asks for what it asks for, whichever process reads it.
fn written(path: &Path) -> Option<Time> {
    let written = std::fs::metadata(path).and_then(|of| of.modified());
    let since = written.ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time::from_nanos(0) + since)
}

/// The bottom layer of pauses: the flag, and the file as it is now.
#[derive(Debug)]
pub(crate) struct PauseFile {
    path: PathBuf,
    flag: bool,
    in_force: BTreeSet<Scope>,
    said: Option<PauseFileRefused>,
}

impl PauseFile {
    pub(crate) fn new(path: &Path, flag: bool) -> Self {
        Self {
            path: path.to_owned(),
            flag,
            in_force: BTreeSet::new(),
            said: None,
        }
    }

    /// What the core is to be told for what changed since the last look.
    pub(crate) fn changes(&mut self) -> Vec<Event> {
        let looked = look(&self.path);
        let problem = looked.as_ref().err().cloned();
        if let Some(refused) = problem.as_ref().filter(|_| self.said != problem) {
            let path = self.path.display();
            tracing::error!(%path, %refused, "the pause file is not understood: everything is paused");
        }
        self.said = problem;
        let mut wanted = looked.unwrap_or_else(|_| BTreeSet::from([Scope::All]));
        if self.flag {
            wanted.insert(Scope::All);
        }
        let by = PausedBy::Configuration;
        let mut events = Vec::new();
        for scope in wanted.difference(&self.in_force).cloned() {
            tracing::warn!(?scope, path = %self.path.display(), flag = self.flag, "actuation paused");
            let by_flag = self.flag && scope == Scope::All;
            events.push(Event::Pause {
                by,
                scope,
                since: (!by_flag).then(|| written(&self.path)).flatten(),
                until: None,
                note: PauseNote::default(),
            });
        }
        for scope in self.in_force.difference(&wanted).cloned() {
            tracing::warn!(?scope, path = %self.path.display(), "actuation resumed");
            events.push(Event::Resume { by, scope });
        }
        self.in_force = wanted;
        events
    }

    /// Looks again and again.
    pub(crate) async fn watch(mut self, hub: Hub) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            for event in self.changes() {
                if hub.tell(event).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(id: &str) -> Scope {
        Scope::Cluster(ClusterId::new(id).unwrap())
    }

    #[test]
    fn an_empty_file_pauses_everything_and_lines_pause_what_they_name() {
        let all = BTreeSet::from([Scope::All]);
        assert_eq!(scopes(""), Ok(all.clone()));
        assert_eq!(scopes("# a flood\n\n"), Ok(all));
        let named = BTreeSet::from([cluster("a"), Scope::Provider("aws".to_owned())]);
        assert_eq!(scopes("cluster a # ticket 7\n provider  aws\n"), Ok(named));
        let refused = scopes("cluster a\ncluser b").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "line 2: \"cluser b\" is not \"all\", \"cluster <id>\" or \"provider <name>\""
        );
    }

    #[test]
    fn the_core_hears_of_changes_only_and_the_flag_outlives_the_file() {
        let path = std::env::temp_dir().join(format!("bigfleet-pause-{}", std::process::id()));
        drop(std::fs::remove_file(&path));
        let by = PausedBy::Configuration;
        let pause = |scope, since| Event::Pause {
            by,
            scope,
            since,
            until: None,
            note: PauseNote::default(),
        };
        let resume = |scope| Event::Resume { by, scope };
        let mut file = PauseFile::new(&path, false);
        assert_eq!(file.changes(), []);
        std::fs::write(&path, "cluster a").unwrap();
        assert_eq!(file.changes(), [pause(cluster("a"), written(&path))]);
        assert_eq!(file.changes(), []);
        std::fs::write(&path, "what?").unwrap();
        let all = pause(Scope::All, written(&path));
        assert_eq!(file.changes(), [all.clone(), resume(cluster("a"))]);
        assert!(written(&path).is_some());
        let mut restarted = PauseFile::new(&path, false);
        assert_eq!(restarted.changes(), [all], "as old as the file");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.changes(), [resume(Scope::All)]);

        let mut file = PauseFile::new(&path, true);
        assert_eq!(file.changes(), [pause(Scope::All, None)]);
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.changes(), []);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.changes(), []);
    }
}
