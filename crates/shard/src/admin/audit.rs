//! Audit: who asked for what and why, and what came of it, refusals included.

use std::fmt::Debug;

use bigfleet_model::shown;
use bigfleet_net::Caller;
use tonic::Status;

/// A verb on its way.
pub(super) struct Asked {
    verb: &'static str,
    by: String,
    reason: String,
    dry_run: bool,
}

impl Asked {
    pub(super) fn new(verb: &'static str, caller: &Caller, reason: &str, dry_run: bool) -> Self {
        Self {
            verb,
            by: name(caller),
            reason: shown(reason),
            dry_run,
        }
    }

    /// Who asked.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// Writes down what came of it.
    pub(super) fn answered<T: Debug>(self, answer: Result<T, Status>) -> Result<T, Status> {
        let Self {
            verb,
            by,
            reason,
            dry_run,
        } = self;
        match &answer {
            Ok(answer) => {
                tracing::info!(target: "bigfleet::audit", verb, by, reason, dry_run,
                    outcome = "done", ?answer, "admin");
            }
            Err(refused) => {
                tracing::warn!(target: "bigfleet::audit", verb, by, reason, dry_run,
                    outcome = ?refused.code(), refused = refused.message(), "admin");
            }
        }
        answer
    }
}

/// A caller as people look for it: by certificate, or by address where there is none.
fn name(caller: &Caller) -> String {
    let addr = caller
        .addr()
        .map_or_else(|| "somewhere".to_owned(), |addr| addr.to_string());
    match caller.identity() {
        Some(identity) => format!("{identity} at {addr}"),
        None => format!("unchecked at {addr}"),
    }
}
