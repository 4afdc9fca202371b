//! `pause` and `resume`: a shard stops changing machines, and starts again.
//!
//! A pause always ends by itself and always has a reason. One that a flag or a file set is not ended
//! from here, and the answer says so.

use std::time::Duration;

use bigfleet_model::counted;
use bigfleet_wire::v1alpha1 as wire;
use wire::pause_scope::{All, Scope};

use crate::client::Client;
use crate::error::CtlError;
use crate::output::Answer;
use crate::record::{PauseRecord, scope_text};
use crate::text::printable;
use crate::when::{ahead, rfc3339};

/// What a pause or a resume applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PauseTarget {
    /// Every machine the shard manages.
    #[default]
    All,
    /// The machines of one cluster.
    Cluster(String),
    /// The machines of one provider, by its address or name.
    Provider(String),
}

impl From<&PauseTarget> for wire::PauseScope {
    fn from(target: &PauseTarget) -> Self {
        let scope = match target {
            PauseTarget::All => Scope::All(All {}),
            PauseTarget::Cluster(id) => Scope::ClusterId(id.clone()),
            PauseTarget::Provider(address) => Scope::ProviderAddress(address.clone()),
        };
        Self { scope: Some(scope) }
    }
}

/// Pauses. The time is rounded up to whole seconds.
pub async fn pause(
    client: &Client,
    target: &PauseTarget,
    lasting: Duration,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let seconds = lasting.as_secs() + u64::from(0 < lasting.subsec_nanos());
    let request = wire::PauseRequest {
        scope: Some(target.into()),
        reason: reason.to_owned(),
        expires_after_seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        dry_run,
    };
    let answered = client.pause(request).await?;
    let pause = PauseRecord::from(&answered.pause.unwrap_or_default());
    let verb = if dry_run { "would pause" } else { "paused" };
    let mut text = format!("{verb} {}", printable(&pause.scope));
    if let (Some(started), Some(expires)) = (pause.started, pause.expires) {
        text += &format!(
            " for {}, until {}",
            ahead(started, Some(expires)),
            rfc3339(expires)
        );
    }
    text += &match answered.work_paused {
        0 => "; no operation was in progress".to_owned(),
        held => {
            let wait = ("operation in progress waits", "operations in progress wait");
            format!("; {}", counted(held, wait.0, wait.1))
        }
    };
    Ok(Answer::of(text + "\n"))
}

/// Ends every pause that an admin set for exactly this target.
pub async fn resume(
    client: &Client,
    target: &PauseTarget,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, CtlError> {
    let request = wire::ResumeRequest {
        target: Some(wire::resume_request::Target::Scope(target.into())),
        reason: reason.to_owned(),
        dry_run,
    };
    let answered = client.resume(request).await?;
    Ok(resumed(&answered, &wire::PauseScope::from(target), dry_run))
}

/// What was ended, and what is still in force.
pub(crate) fn resumed(
    answered: &wire::ResumeResponse,
    asked: &wire::PauseScope,
    dry_run: bool,
) -> Answer {
    let verb = if dry_run { "would resume" } else { "resumed" };
    let text = if answered.lifted.is_empty() {
        format!(
            "{} was not paused with `bigfleet pause`; nothing to resume\n",
            printable(&scope_text(Some(asked)))
        )
    } else {
        format!("{verb} {}\n", printable(&scope_text(Some(asked))))
    };
    let still = |pause: &wire::PauseView| {
        let pause = PauseRecord::from(pause);
        let how = match pause.origin.as_str() {
            "Flag" => "start the shard without --actuation-paused",
            "File" => "remove its pause file",
            "Fenced" => "another process runs this shard; stop this one",
            _ => "`bigfleet resume` it too",
        };
        let reason = match pause.reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        printable(&format!("still paused: {}{reason}; {how}", pause.scope))
    };
    Answer {
        text,
        notes: answered.remaining.iter().map(still).collect(),
        failed: None,
    }
}
