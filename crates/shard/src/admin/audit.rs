//! Audit: who asked for what and why, and what came of it, refusals included.

use bigfleet_model::shown;
use bigfleet_net::Caller;
use serde_json::{Value, json};
use tonic::Status;

use super::Admin;
use super::answer::Written;
use crate::audit::AdminRecord;

/// Characters of a refusal that are written down.
const MOST_REFUSAL: usize = 1000;

/// A verb on its way.
pub(super) struct Asked<'a> {
    admin: &'a Admin,
    verb: &'static str,
    by: String,
    reason: String,
    dry_run: bool,
    /// What else was asked.
    asked: Value,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        admin: &'a Admin,
        verb: &'static str,
        caller: &Caller,
        (reason, dry_run): (&str, bool),
        asked: Value,
    ) -> Self {
        Self {
            admin,
            verb,
            by: name(caller),
            reason: shown(reason),
            dry_run,
            asked,
        }
    }

    /// Who asked.
    pub(super) fn by(&self) -> &str {
        &self.by
    }

    /// Writes down what came of it.
    pub(super) fn answered<T: Written>(self, answer: Result<T, Status>) -> Result<T, Status> {
        let (outcome, detail) = match &answer {
            Ok(answer) => ("done".to_owned(), answer.written()),
            Err(refused) => {
                let why: String = refused.message().chars().take(MOST_REFUSAL).collect();
                (format!("{:?}", refused.code()), json!({ "refused": why }))
            }
        };
        let Self {
            admin,
            verb,
            by,
            reason,
            dry_run,
            asked,
        } = self;
        tracing::info!(target: "bigfleet::audit", verb, by, reason, dry_run, %asked, outcome, %detail,
            "admin");
        if let Some(audit) = &admin.audit {
            audit.admin(AdminRecord {
                time: admin.info.now(),
                verb,
                by,
                reason,
                dry_run,
                asked,
                outcome,
                detail,
            });
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
        None => format!("somebody without a certificate at {addr}"),
    }
}
