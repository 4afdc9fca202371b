//! Trouble on purpose: moments at which the process ends without a word, parts that do, and a store that
//! forgets.
//!
//! ```text
//! decided ─▶ commit ─▶ disk ─▶ committed ─▶ gate ─▶ create-leaves ─▶ provider ─▶ create-answered ─▶ core
//! ```
//!
//! What a restart finds depends on where the process before it ended (SH-6). Kills at random moments hit
//! the wide places; a name hits each. For tests alone: nothing of it is in force unless asked for, and
//! asking is left out of the help.

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

/// Every part that can be lost.
const PARTS: [&str; 2] = ["store", "pause file"];

/// What goes wrong on purpose; nothing, by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    abort_at: Option<&'static str>,
    store_forgets: bool,
    panic_in: Option<&'static str>,
}

impl Trouble {
    /// Adds `abort-at=MOMENT`, `panic-in=PART` or `store-forgets`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            None if text == "store-forgets" => {
                self.store_forgets = true;
                Ok(())
            }
            Some(("abort-at", name)) => {
                let known = MOMENTS.into_iter().find(|moment| *moment == name);
                let unknown = || format!("{name} is none of {}", MOMENTS.join(", "));
                self.abort_at = Some(known.ok_or_else(unknown)?);
                Ok(())
            }
            Some(("panic-in", name)) => {
                let known = PARTS.into_iter().find(|part| *part == name);
                let unknown = || format!("{name} is none of {}", PARTS.join(", "));
                self.panic_in = Some(known.ok_or_else(unknown)?);
                Ok(())
            }
            None | Some(_) => Err(format!("{text} is no trouble known here")),
        }
    }

    /// The store says that it has written, and has not.
    pub(crate) fn store_forgets(&self) -> bool {
        self.store_forgets
    }

    /// A part begins its work, and may not survive that.
    pub(crate) fn works(&self, part: &'static str) {
        assert!(self.panic_in != Some(part), "asked to, by --trouble");
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
    }
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
        assert!(trouble.add("flood").is_err());
        assert!(trouble.store_forgets());
    }
}
