//! `pause` and `resume`: a shard told to hold still, and to go on.
//!
//! A pause always ends by itself and always has a reason; what a flag or a file pauses is not lifted
//! from here, and the answer says so.

use std::time::Duration;

use bigfleet_wire::v1alpha1 as wire;
use wire::pause_scope::{All, Scope};

use crate::client::Client;
use crate::output::Answer;
use crate::record::{PauseRecord, scope_text};
use crate::text::printable;
use crate::trouble::Trouble;
use crate::when::{ahead, rfc3339};

/// What is to hold still or to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Steered {
    /// Everything the shard does.
    #[default]
    All,
    /// What concerns one cluster.
    Cluster(String),
    /// What goes to one provider.
    Provider(String),
}

impl From<&Steered> for wire::PauseScope {
    fn from(steered: &Steered) -> Self {
        let scope = match steered {
            Steered::All => Scope::All(All {}),
            Steered::Cluster(id) => Scope::ClusterId(id.clone()),
            Steered::Provider(address) => Scope::ProviderAddress(address.clone()),
        };
        Self { scope: Some(scope) }
    }
}

/// Pauses. Lasts at least a second; a fraction more than whole seconds counts as one.
pub async fn pause(
    client: &Client,
    steered: &Steered,
    lasting: Duration,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, Trouble> {
    let seconds = lasting.as_secs() + u64::from(0 < lasting.subsec_nanos());
    let request = wire::PauseRequest {
        scope: Some(steered.into()),
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
        0 => "; no operation is in flight".to_owned(),
        1 => "; 1 operation in flight waits".to_owned(),
        held => format!("; {held} operations in flight wait"),
    };
    Ok(Answer {
        text: text + "\n",
        notes: Vec::new(),
    })
}

/// Lifts every pause that was set for exactly this.
pub async fn resume(
    client: &Client,
    steered: &Steered,
    reason: &str,
    dry_run: bool,
) -> Result<Answer, Trouble> {
    let request = wire::ResumeRequest {
        target: Some(wire::resume_request::Target::Scope(steered.into())),
        reason: reason.to_owned(),
        dry_run,
    };
    let answered = client.resume(request).await?;
    Ok(resumed(
        &answered,
        &wire::PauseScope::from(steered),
        dry_run,
    ))
}

/// What was lifted, and what is still in force.
pub(crate) fn resumed(
    answered: &wire::ResumeResponse,
    asked: &wire::PauseScope,
    dry_run: bool,
) -> Answer {
    let verb = if dry_run { "would resume" } else { "resumed" };
    let text = if answered.lifted.is_empty() {
        format!(
            "{} was not paused by an admin; nothing to resume\n",
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
    }
}
