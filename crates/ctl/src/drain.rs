//! `drain` and `undrain`: machines leave once others serve in their place, and stay after all.
//!
//! ```text
//! drain --dry-run ─▶ per machine: its Need, what takes its place, what it costs before and after
//! drain           ─▶ the same question with counts ─▶ marked ─▶ `get drains` shows how far each is
//! ```
//!
//! Nothing is drained from here: the shard replaces machine by machine, cycle by cycle, as its rails allow.

use std::collections::BTreeSet;
use std::time::Duration;

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;

use crate::client::Client;
use crate::error::CtlError;
use crate::output::{Answer, AnswerSource, ListSource, Style, document, list};
use crate::record::PlannedDrain;
use crate::text::printable;

/// When to stop waiting for replacements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DrainDeadline {
    /// Never.
    #[default]
    None,
    /// So long from now, by the shard's clock.
    In(Duration),
    /// At this moment, in nanoseconds since 1970.
    At(i64),
    /// At once.
    Now,
}

impl DrainDeadline {
    /// A moment as people type it, RFC 3339; `None` if it is none.
    pub fn moment(text: &str) -> Option<Self> {
        let at: jiff::Timestamp = text.parse().ok()?;
        i64::try_from(at.as_nanosecond()).ok().map(Self::At)
    }

    /// As the wire has it, if the shard's clock shows `now`.
    fn unix_nanos(&self, now: i64) -> i64 {
        match self {
            Self::None => 0,
            Self::In(span) => {
                now.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
            }
            // 0 would be none.
            Self::At(0) | Self::Now => 1,
            Self::At(moment) => *moment,
        }
    }

    /// Whether nothing is waited for, if the shard's clock shows `now`; and whether that was not asked for.
    fn is_past(&self, now: i64) -> bool {
        match self {
            Self::At(moment) => *moment <= now,
            Self::None | Self::In(_) | Self::Now => false,
        }
    }
}

/// Which machines, and why.
#[derive(Clone, Debug, Default)]
pub struct DrainOrder {
    /// The machines by id; empty if they are selected.
    pub machines: Vec<String>,
    /// The machines by labels, `key=value,…`; empty if they are named.
    pub selector: String,
    /// What the audit log and `get drains` show as the reason.
    pub reason: String,
    /// When to stop waiting.
    pub deadline: DrainDeadline,
    /// More than a tenth of all machines may be meant.
    pub accepts_many: bool,
}

/// What a drain does, for scripts.
#[derive(Serialize)]
struct DrainDocument<'a> {
    #[serde(flatten)]
    source: &'a AnswerSource,
    dry_run: bool,
    machines: &'a [PlannedDrain],
    moved_gangs: &'a [String],
    notes: &'a [String],
}

/// What is going to happen, in one question: how many machines of how many clusters, and which gangs move.
pub async fn drain_question(client: &Client, order: &DrainOrder) -> Result<String, CtlError> {
    let (_, answered, _) = ask(client, order, true).await?;
    Ok(question(&answered))
}

/// Marks machines to leave, or says what that would do.
pub async fn drain(
    client: &Client,
    order: &DrainOrder,
    dry_run: bool,
    style: &Style,
) -> Result<Answer, CtlError> {
    let (source, answered, is_past) = ask(client, order, dry_run).await?;
    let machines: Vec<PlannedDrain> = answered.machines.iter().map(Into::into).collect();
    let mut notes = Vec::new();
    if is_past {
        notes.push("the deadline has passed, so nothing is waited for: as with --now".to_owned());
    }
    notes.push(counts(&machines, &answered.moved_groups, dry_run));
    for gang in &answered.moved_groups {
        notes.push(format!(
            "gang {} moves as a whole, and is served there first",
            printable(gang)
        ));
    }
    if !dry_run {
        notes.push("`bigfleet get drains` shows how far each is".to_owned());
    }
    written(
        &source,
        &machines,
        &answered.moved_groups,
        notes,
        dry_run,
        style,
    )
}

/// Lifts marks.
pub async fn undrain(
    client: &Client,
    order: &DrainOrder,
    style: &Style,
) -> Result<Answer, CtlError> {
    let source = source(client).await?;
    let request = wire::UndrainMachinesRequest {
        machine_ids: order.machines.clone(),
        label_selector: order.selector.clone(),
        reason: order.reason.clone(),
    };
    let answered = client.undrain_machines(request).await?;
    let machines: Vec<PlannedDrain> = answered.machines.iter().map(Into::into).collect();
    let notes = vec![format!(
        "{}; a machine that is being drained may be taken back if something still wants it",
        match machines.len() {
            1 => "1 machine stays".to_owned(),
            count => format!("{count} machines stay"),
        }
    )];
    written(&source, &machines, &[], notes, false, style)
}

fn written(
    source: &AnswerSource,
    machines: &[PlannedDrain],
    moved_gangs: &[String],
    notes: Vec<String>,
    dry_run: bool,
    style: &Style,
) -> Result<Answer, CtlError> {
    let whole = DrainDocument {
        source,
        dry_run,
        machines,
        moved_gangs,
        notes: &notes,
    };
    if let Some(text) = document(&whole, &style.form)? {
        return Ok(Answer::of(text));
    }
    Ok(Answer {
        text: list(machines, source, style),
        notes,
        failed: None,
    })
}

/// Who answers, and what its clock shows.
async fn source(client: &Client) -> Result<AnswerSource, CtlError> {
    Ok(client.rails().await?.header.unwrap_or_default().into())
}

async fn ask(
    client: &Client,
    order: &DrainOrder,
    dry_run: bool,
) -> Result<(AnswerSource, wire::DrainMachinesResponse, bool), CtlError> {
    let source = source(client).await?;
    let now = source.now();
    let request = wire::DrainMachinesRequest {
        machine_ids: order.machines.clone(),
        label_selector: order.selector.clone(),
        reason: order.reason.clone(),
        deadline_unix_nanos: order.deadline.unix_nanos(now),
        dry_run,
        accept_many: order.accepts_many,
    };
    let answered = client.drain_machines(request).await?;
    Ok((source, answered, order.deadline.is_past(now)))
}

fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

fn question(answered: &wire::DrainMachinesResponse) -> String {
    let meant = answered.machines.iter().filter(|row| !row.passed_over);
    let rows: Vec<PlannedDrain> = meant.map(Into::into).collect();
    let clusters: BTreeSet<&str> = rows
        .iter()
        .map(|row| row.cluster.as_str())
        .filter(|cluster| !cluster.is_empty())
        .collect();
    let unreplaced = rows.iter().filter(|row| row.is_unreplaced()).count();
    let mut text = format!(
        "drain {} of {}",
        counted(rows.len(), "machine"),
        counted(clusters.len(), "cluster")
    );
    match answered.moved_groups.len() {
        0 => text += ", no gang moves",
        1 => text += ", 1 gang moves",
        gangs => text += &format!(", {gangs} gangs move"),
    }
    if 0 < unreplaced {
        text += &format!(", {unreplaced} cannot be replaced now");
    }
    text
}

/// What it comes to, in one line.
fn counts(machines: &[PlannedDrain], moved: &[String], dry_run: bool) -> String {
    let meant: Vec<&PlannedDrain> = machines.iter().filter(|row| !row.passed_over).collect();
    let unreplaced = meant.iter().filter(|row| row.is_unreplaced()).count();
    let passed_over = machines.len() - meant.len();
    let verb = match (dry_run, meant.len()) {
        (true, _) => "would leave",
        (false, 1) => "leaves",
        (false, _) => "leave",
    };
    let mut text = format!("{} {verb}", counted(meant.len(), "machine"));
    if dry_run {
        let before: f64 = meant.iter().map(|row| row.price_per_hour).sum();
        let after: f64 = meant.iter().map(|row| row.replacement_price_per_hour).sum();
        text += &format!("; ${before:.2} per hour leaves, ${after:.2} per hour comes");
        text += &format!("; {unreplaced} cannot be replaced now");
        text += &match moved.len() {
            1 => "; 1 gang moves".to_owned(),
            gangs => format!("; {gangs} gangs move"),
        };
    }
    if 0 < passed_over {
        text += &format!("; {} passed over", counted(passed_over, "machine"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_by_the_shard_s_clock_and_a_past_one_is_now() {
        let now = 1_000_000_000_000;
        let hour = Duration::from_secs(3600);
        assert_eq!(DrainDeadline::None.unix_nanos(now), 0);
        assert_eq!(
            DrainDeadline::In(hour).unix_nanos(now),
            now + 3_600_000_000_000
        );
        assert_eq!(DrainDeadline::At(0).unix_nanos(now), 1, "0 would be none");
        assert!(0 < DrainDeadline::Now.unix_nanos(now));
        assert!(DrainDeadline::At(now).is_past(now));
        assert!(!DrainDeadline::Now.is_past(now), "that was asked for");
    }

    #[test]
    fn the_question_names_machines_clusters_and_gangs() {
        let row = |cluster: &str, phase| wire::MachineDrain {
            cluster_id: cluster.to_owned(),
            phase,
            ..wire::MachineDrain::default()
        };
        let mut answered = wire::DrainMachinesResponse {
            machines: vec![row("a", 2), row("b", 1), row("", 4)],
            moved_groups: vec!["a/train".to_owned()],
        };
        assert_eq!(
            question(&answered),
            "drain 3 machines of 2 clusters, 1 gang moves, 1 cannot be replaced now"
        );
        answered.machines.truncate(1);
        answered.moved_groups.clear();
        assert_eq!(
            question(&answered),
            "drain 1 machine of 1 cluster, no gang moves"
        );
    }
}
