//! `status`: one screen that says whether all is well, and what is not, worst first.
//!
//! The shard finds the problems; this side adds what only the caller can know: that the shard does not answer,
//! or that the caller's own certificate is about to end.

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use crate::client::Client;
use crate::enum_names::severity;
use crate::error::CtlError;
use crate::output::{Answer, Form, Style, document};
use crate::record::{at, some};
use crate::text::{Tint, printable, tinted};
use crate::when::{Moment, ago, local_now, moment};

/// What `status` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What to print.
    pub answer: Answer,
    /// Whether there is nothing to say.
    pub is_well: bool,
}

#[derive(Clone, Debug, Serialize)]
struct StatusRecord {
    ok: bool,
    shard: Option<String>,
    address: String,
    problems: Vec<ProblemRecord>,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemRecord {
    /// `critical` or `warning`.
    pub severity: String,
    /// What it is about, in a word: `provider`, `session`, `pause` and so on.
    pub kind: String,
    /// What is wrong.
    pub what: String,
    /// Since when; null if it is not known.
    #[serde(serialize_with = "at")]
    pub since: Moment,
    /// What to type to see more.
    pub verb: String,
}

impl ProblemRecord {
    /// Something that this side found.
    pub fn found_here(is_critical: bool, kind: &str, what: String, verb: &str) -> Self {
        let severity = if is_critical { "critical" } else { "warning" };
        Self {
            severity: severity.to_owned(),
            kind: kind.to_owned(),
            what,
            since: None,
            verb: verb.to_owned(),
        }
    }
}

impl From<&wire::ProblemView> for ProblemRecord {
    fn from(view: &wire::ProblemView) -> Self {
        Self {
            severity: severity(view.severity).to_lowercase(),
            kind: view.kind.clone(),
            what: view.what.clone(),
            since: moment(view.since_unix_nanos),
            verb: view.verb.clone(),
        }
    }
}

/// Asks how a shard is. `found_here` is what the caller knows already.
pub async fn status(
    client: &Client,
    found_here: Vec<ProblemRecord>,
    style: &Style,
) -> Result<Status, CtlError> {
    let (shard, now, found) = match client.status().await {
        Ok(answered) => {
            let header = answered.header.unwrap_or_default();
            let found: Vec<_> = answered.problems.iter().map(ProblemRecord::from).collect();
            let now = moment(answered.answered_at_unix_nanos);
            (some(&header.shard_id), now, found)
        }
        Err(error @ (CtlError::Usage(_) | CtlError::TooOld { .. } | CtlError::Denied { .. })) => {
            return Err(error);
        }
        // That it does not answer is the worst news there is, and no reason to say nothing.
        Err(error) => {
            let what = error.to_string();
            let verb = "bigfleet config get-contexts";
            let lost = ProblemRecord::found_here(true, "shard", what, verb);
            (None, None, vec![lost])
        }
    };
    let mut problems = found;
    problems.extend(found_here);
    let is_critical = |problem: &ProblemRecord| problem.severity == "critical";
    problems.sort_by_key(|problem| !is_critical(problem));
    let record = StatusRecord {
        ok: problems.is_empty(),
        shard,
        address: client.target().to_owned(),
        problems,
    };
    let page = || screen(&record, now.unwrap_or_else(local_now), style.colour);
    let text = document(&record, &style.form)?.unwrap_or_else(page);
    Ok(Status {
        answer: Answer::of(text),
        is_well: record.ok,
    })
}

/// Two lines each: what is wrong, and what to type.
fn screen(record: &StatusRecord, now: i64, colour: bool) -> String {
    let shard = match &record.shard {
        Some(id) => format!("shard {id} at {}", record.address),
        None => record.address.clone(),
    };
    let mut text = match record.problems.len() {
        0 => return format!("{}: all is well\n", printable(&shard)),
        1 => format!("{}: 1 problem\n", printable(&shard)),
        many => format!("{}: {many} problems\n", printable(&shard)),
    };
    for problem in &record.problems {
        let tint = match problem.severity.as_str() {
            "critical" => Tint::Bad,
            _ => Tint::Notable,
        };
        let head = format!("{:<8} {}", problem.severity, problem.kind);
        let since = match problem.since {
            None => String::new(),
            since => format!(" (for {})", ago(now, since)),
        };
        text += &format!(
            "\n{}{since}: {}\n         {}\n",
            tinted(&printable(&head), tint, colour),
            printable(&problem.what),
            printable(&problem.verb)
        );
    }
    text
}

#[derive(Serialize)]
struct VersionRecord<'a> {
    client: &'a str,
    shard: Option<&'a str>,
}

/// Which version this program is, and which the shard is, if one was asked.
pub fn versions(client: &str, shard: Option<&str>, form: &Form) -> Result<String, CtlError> {
    let page = || {
        let shard = shard.map(|version| format!("shard    {}\n", printable(version)));
        format!("bigfleet {client}\n{}", shard.unwrap_or_default())
    };
    Ok(document(&VersionRecord { client, shard }, form)?.unwrap_or_else(page))
}
