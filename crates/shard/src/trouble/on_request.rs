//! Trouble that can be requested: a moment at which the process ends without a word or a task panics, a
//! part that panics, a store that forgets, a host whose clock is set.
//!
//! ```text
//! decided ─▶ commit ─▶ disk ─▶ committed ─▶ gate ─▶ create-leaves ─▶ provider ─▶ create-answered ─▶ core
//! ```
//!
//! What a restart finds depends on where the process before it ended (SH-6). Kills at random moments hit
//! the wide places; a name hits each. Nothing of it is in force unless asked for, and asking is left out of
//! the help.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_shard_core::{ProviderCall, Record};

/// Every moment there is.
const MOMENTS: [&str; 10] = [
    "commit",
    "committed",
    "create-leaves",
    "create-answered",
    "configure-leaves",
    "configure-answered",
    "drain-leaves",
    "drain-answered",
    "delete-leaves",
    "delete-answered",
];

/// Every part and every kind of work that can be lost.
const PARTS: [&str; 10] = [
    "store",
    "pause file",
    "get",
    "list",
    "session",
    "roll-up",
    "read",
    "need-status",
    "problems",
    "link",
];

/// What goes wrong on purpose; nothing, by default.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    abort_at: Option<&'static str>,
    store_forgets: bool,
    /// Where to panic: once each, so that what survives it is seen to.
    panics: Option<Arc<Mutex<Vec<&'static str>>>>,
    panics_unheard: bool,
    lets_calls_go: bool,
    queues_calls: bool,
    /// A file that says how many seconds the host's clock was set forward, or back where there is a sign.
    clock_set_by: Option<PathBuf>,
}

impl Trouble {
    /// Whether this build takes requests for trouble.
    pub const CAN_BE_REQUESTED: bool = true;

    /// Adds `abort-at=MOMENT`, `panic-at=MOMENT`, `panic-in=PART`, `panics-unheard`, `calls-not-withdrawn`,
    /// `calls-queued-by-http2`, `store-forgets` or `clock-set-by=FILE`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            None if text == "store-forgets" => {
                self.store_forgets = true;
                Ok(())
            }
            None if text == "panics-unheard" => {
                self.panics_unheard = true;
                Ok(())
            }
            None if text == "calls-not-withdrawn" => {
                self.lets_calls_go = true;
                Ok(())
            }
            None if text == "calls-queued-by-http2" => {
                self.queues_calls = true;
                Ok(())
            }
            Some(("abort-at", name)) => {
                self.abort_at = Some(one_of(&MOMENTS, name)?);
                Ok(())
            }
            Some(("panic-at", name)) => {
                self.panics().push(one_of(&MOMENTS, name)?);
                Ok(())
            }
            Some(("clock-set-by", file)) => {
                self.clock_set_by = Some(file.into());
                Ok(())
            }
            Some(("panic-in", name)) => {
                self.panics().push(one_of(&PARTS, name)?);
                Ok(())
            }
            None | Some(_) => Err(format!("{text} is no trouble known here")),
        }
    }

    fn panics(&mut self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        let panics = self.panics.get_or_insert_default();
        panics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unix time by the host's clock, as far as it was set since.
    pub(crate) fn host_clock(&self) -> Duration {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix = unix.unwrap_or_default();
        let set = self.clock_set_by.as_ref().and_then(|file| {
            let text = std::fs::read_to_string(file).ok()?;
            text.trim().parse::<i64>().ok()
        });
        let set = set.unwrap_or(0);
        let by = Duration::from_secs(set.unsigned_abs());
        if set < 0 {
            unix.saturating_sub(by)
        } else {
            unix + by
        }
    }

    /// The store says that it has written, and has not.
    pub(crate) fn store_forgets(&self) -> bool {
        self.store_forgets
    }

    /// A call that was let go leaves, whatever closes meanwhile.
    pub(crate) fn lets_calls_go(&self) -> bool {
        self.lets_calls_go
    }

    /// Calls wait for a stream in the HTTP/2 client.
    pub(crate) fn queues_calls(&self) -> bool {
        self.queues_calls
    }

    /// A task takes its panic with it.
    pub(crate) fn panics_unheard(&self) -> bool {
        self.panics_unheard
    }

    /// A part begins its work, and may not survive that.
    pub(crate) fn works(&self, part: &'static str) {
        let Some(panics) = &self.panics else { return };
        let mut panics = panics.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = panics.iter().position(|name| *name == part);
        let asked = asked.map(|at| panics.swap_remove(at));
        drop(panics); // whoever shares it goes on
        assert!(asked.is_none(), "asked to, by --trouble");
    }

    /// A write begins, or is on disk. Only one that holds a decision is a moment.
    pub(crate) fn writes(&self, moment: &'static str, records: &[Record]) {
        let decides = |record: &Record| match record {
            Record::Machine { kept, .. } => {
                kept.as_ref().is_some_and(|kept| kept.operation.is_some())
            }
            _ => false,
        };
        if self.abort_at == Some(moment) && records.iter().any(decides) {
            std::process::abort();
        }
    }

    /// A call is about to leave.
    pub(crate) fn leaves(&self, call: Call) {
        self.reaches(call.0);
    }

    /// The answer to a call has come, and nobody has heard it.
    pub(crate) fn answered(&self, call: Call) {
        self.reaches(call.1);
    }

    fn reaches(&self, moment: &'static str) {
        if self.abort_at == Some(moment) {
            std::process::abort();
        }
        self.works(moment);
    }
}

fn one_of(names: &[&'static str], given: &str) -> Result<&'static str, String> {
    let known = names.iter().find(|name| **name == given);
    let unknown = || format!("{given} is none of {}", names.join(", "));
    known.copied().ok_or_else(unknown)
}

/// The two moments of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call(&'static str, &'static str);

impl From<&ProviderCall> for Call {
    fn from(call: &ProviderCall) -> Self {
        match call {
            ProviderCall::Create => Self("create-leaves", "create-answered"),
            ProviderCall::Configure { .. } => Self("configure-leaves", "configure-answered"),
            ProviderCall::Drain { .. } => Self("drain-leaves", "drain-answered"),
            ProviderCall::Delete => Self("delete-leaves", "delete-answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_taken() {
        let mut trouble = Trouble::default();
        assert_eq!(trouble.add("abort-at=drain-leaves"), Ok(()));
        assert_eq!(trouble.add("store-forgets"), Ok(()));
        assert!(
            trouble
                .add("abort-at=never")
                .unwrap_err()
                .contains("committed")
        );
        assert_eq!(trouble.add("panic-in=pause file"), Ok(()));
        assert!(
            trouble
                .add("panic-in=x")
                .unwrap_err()
                .contains("pause file")
        );
        assert_eq!(trouble.add("panic-at=create-leaves"), Ok(()));
        assert!(trouble.add("panic-at=link").is_err());
        assert_eq!(trouble.add("clock-set-by=/nowhere"), Ok(()));
        assert!(trouble.host_clock() <= Trouble::default().host_clock());
        assert!(trouble.add("flood").is_err());
        assert!(trouble.store_forgets());
    }
}
