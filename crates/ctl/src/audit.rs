//! The audit log, offline: which lines are meant, what each says in words, and what they come to.
//!
//! ```text
//! audit.jsonl.2 ─▶ audit.jsonl.1 ─▶ audit.jsonl ─▶ by time, machine, cluster, kind ─▶ a line each · a summary
//! ```
//!
//! Needs no shard: after a bad night the file is what is left. A line that cannot be read is counted, never
//! guessed at.

mod files;

pub use files::AuditFiles;

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_model::counted;
use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::text::printable;

/// Which lines are meant; all that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not after.
    pub until: Option<Timestamp>,
    /// Only about this machine.
    pub machine: Option<String>,
    /// Only about this cluster.
    pub cluster: Option<String>,
    /// Only of these kinds: an action (Bootstrap, Reclaim, …), `rail`, `admin`, or what `msg` says.
    pub kinds: Vec<String>,
}

/// A line that could be read.
#[derive(Clone, Debug)]
pub struct AuditLine {
    at: Option<Timestamp>,
    fields: Value,
}

/// A moment as people type it: RFC 3339, the time of a day in UTC such as 14:02, or how long ago, such as 15m.
pub fn audit_moment(
    text: &str,
    now: Timestamp,
    ago: Option<Duration>,
) -> Result<Timestamp, String> {
    if let Some(ago) = ago {
        return now.checked_sub(ago).map_err(|why| why.to_string());
    }
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let padded = match text.split(':').count() {
        2 => format!("{text}:00"),
        _ => text.to_owned(),
    };
    let time: Time = padded.parse().map_err(|_| {
        "it is not a moment such as 2026-11-18T14:02:00Z, a time of day in UTC such as 14:02, or how \
         long ago, such as 15m"
            .to_owned()
    })?;
    let today = now.to_zoned(TimeZone::UTC).date();
    let of_day = |day: jiff::civil::Date| {
        let zoned = day.to_datetime(time).to_zoned(TimeZone::UTC);
        zoned
            .map(|zoned| zoned.timestamp())
            .map_err(|why| why.to_string())
    };
    let moment = of_day(today)?;
    // A time that is still to come was meant of yesterday.
    if moment <= now {
        return Ok(moment);
    }
    of_day(today.yesterday().map_err(|why| why.to_string())?)
}

impl AuditLine {
    /// A line of the log; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let fields: Value = serde_json::from_str(text).ok()?;
        let at = fields.get("time")?.as_str()?.parse().ok();
        fields.get("msg")?.as_str()?;
        Some(Self { at, fields })
    }

    fn text(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// The action it is about, or else what kind of line it is.
    fn kind(&self) -> &str {
        match self.text("kind") {
            "" => self.text("msg"),
            kind => kind,
        }
    }

    /// Whether a cluster, or a machine, is named anywhere in it.
    fn names(&self, key: &str, wanted: &str) -> bool {
        if self.text(key) == wanted {
            return true;
        }
        // What an admin asked for, and what came of it, name things deeper down.
        ["asked", "detail"].iter().any(|part| {
            let part = self.fields.get(*part);
            part.is_some_and(|part| holds(part, wanted))
        })
    }

    /// Whether it is meant.
    pub fn is_meant(&self, filter: &AuditFilter) -> bool {
        let in_time = match self.at {
            Some(at) => {
                filter.since.is_none_or(|since| since <= at)
                    && filter.until.is_none_or(|until| at <= until)
            }
            None => filter.since.is_none() && filter.until.is_none(),
        };
        let machine = filter.machine.as_ref();
        let cluster = filter.cluster.as_ref();
        let (kind, msg) = (self.kind(), self.text("msg"));
        let is_kind =
            |wanted: &String| wanted.eq_ignore_ascii_case(kind) || wanted.eq_ignore_ascii_case(msg);
        in_time
            && machine.is_none_or(|machine| self.names("machine", machine))
            && cluster.is_none_or(|cluster| self.names("cluster", cluster))
            && (filter.kinds.is_empty() || filter.kinds.iter().any(is_kind))
    }

    /// The line as it stands in the file, fit for a terminal.
    pub fn json(&self) -> String {
        printable(&self.fields.to_string()) + "\n"
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let said = match self.text("msg") {
            "action" => self.action(),
            "admin" => self.admin(),
            "rail" => format!(
                "{} holds back{}: {}",
                self.text("rail"),
                about(" cluster ", self.text("cluster")),
                self.text("detail")
            ),
            "summary" => format!(
                "{} × {} {} since {}",
                self.fields["count"],
                self.text("kind"),
                self.text("outcome"),
                self.text("since")
            ),
            other => {
                let told = ["what", "detail", "text", "event"].map(|key| self.text(key));
                let told = told.into_iter().find(|told| !told.is_empty());
                format!(
                    "{other}{}: {}",
                    about(" cluster ", self.text("cluster")),
                    told.unwrap_or_default()
                )
            }
        };
        printable(&format!("{} {said}", self.text("time"))) + "\n"
    }

    fn action(&self) -> String {
        let mut said = format!(
            "{} {}{}: {}",
            self.text("kind"),
            self.text("machine"),
            about(" cluster ", self.text("cluster")),
            self.text("outcome")
        );
        said += &about(", decided by ", self.text("reason"));
        said += &about(", ", self.text("event"));
        said += &about(", error: ", self.text("error"));
        if let Some(took) = self.fields.get("duration_seconds").and_then(Value::as_f64) {
            said += &format!(", took {took:.1}s");
        }
        said + &about(", operation ", self.text("operation"))
    }

    fn admin(&self) -> String {
        let asked = self.fields.get("asked").map(ToString::to_string);
        let dry = match self.fields.get("dry_run") {
            Some(Value::Bool(true)) => " (dry run)",
            _ => "",
        };
        format!(
            "{} asked to {}{dry} {}: {}{}",
            match self.text("by") {
                "" => "somebody",
                by => by,
            },
            self.text("verb"),
            asked.unwrap_or_default(),
            self.text("outcome"),
            about(", because: ", self.text("reason"))
        )
    }
}

fn about(before: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{before}{text}"),
    }
}

fn holds(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(items) => items.iter().any(|item| holds(item, wanted)),
        Value::Object(fields) => fields.values().any(|field| holds(field, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What the lines come to.
#[derive(Debug, Default)]
pub struct AuditSummary {
    lines: usize,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    /// By action and outcome: how many, of how many machines, why, and the last error.
    actions: BTreeMap<(String, String), ActionGroup>,
    /// By rail and cluster: how often, and what it said last.
    rails: BTreeMap<(String, String), (usize, String)>,
    /// What people did, and whatever else was said.
    told: Vec<String>,
}

#[derive(Debug, Default)]
struct ActionGroup {
    count: u64,
    machines: std::collections::BTreeSet<String>,
    reasons: BTreeMap<String, u64>,
    error: String,
}

/// Lines of people and events that a summary repeats.
const MOST_TOLD: usize = 50;

impl AuditSummary {
    /// Takes a line in.
    pub fn add(&mut self, line: &AuditLine) {
        self.lines += 1;
        self.first = self.first.or(line.at);
        self.last = line.at.or(self.last);
        match line.text("msg") {
            "action" | "summary" => {
                let key = (
                    line.text("kind").to_owned(),
                    line.text("outcome").to_owned(),
                );
                let group = self.actions.entry(key).or_default();
                let count = line.fields.get("count").and_then(Value::as_u64);
                group.count += count.unwrap_or(1);
                let machine = line.text("machine");
                if !machine.is_empty() {
                    group.machines.insert(machine.to_owned());
                }
                let reason = line.text("reason");
                if !reason.is_empty() {
                    *group.reasons.entry(reason.to_owned()).or_default() += 1;
                }
                let error = line.text("error");
                if !error.is_empty() {
                    error.clone_into(&mut group.error);
                }
            }
            "rail" => {
                let key = (
                    line.text("rail").to_owned(),
                    line.text("cluster").to_owned(),
                );
                let (count, detail) = self.rails.entry(key).or_default();
                *count += 1;
                line.text("detail").clone_into(detail);
            }
            _ if self.told.len() < MOST_TOLD => self.told.push(line.words()),
            _ => {}
        }
    }

    /// The summary: what happened, and why.
    pub fn text(&self, of: &AuditFilter) -> String {
        let mut about = Vec::new();
        about.extend(
            of.cluster
                .as_ref()
                .map(|cluster| format!("cluster {cluster}")),
        );
        about.extend(
            of.machine
                .as_ref()
                .map(|machine| format!("machine {machine}")),
        );
        let about = match about.as_slice() {
            [] => "everything".to_owned(),
            about => about.join(", "),
        };
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return format!("{}: nothing happened\n", printable(&about));
        };
        let mut text = format!(
            "{}: {} from {first:.0} to {last:.0}\n",
            printable(&about),
            counted(self.lines, "line", "lines")
        );
        for ((kind, outcome), group) in &self.actions {
            let kind = if kind.is_empty() { "other" } else { kind };
            let mut line = format!("  {:>6} {kind} {outcome}", group.count);
            if !group.machines.is_empty() {
                let machines = counted(group.machines.len(), "machine", "machines");
                line += &format!(" of {machines}");
            }
            let reasons = group.reasons.iter();
            let reasons: Vec<String> = reasons
                .map(|(why, count)| format!("{why} {count}"))
                .collect();
            if !reasons.is_empty() {
                line += &format!(", decided by {}", reasons.join(", "));
            }
            if !group.error.is_empty() {
                line += &format!("; last error: {}", group.error);
            }
            text += &(printable(&line) + "\n");
        }
        for ((rail, cluster), (count, detail)) in &self.rails {
            let cluster = self::about(" of cluster ", cluster);
            let line = format!("  {count:>6} times held back by {rail}{cluster}: {detail}");
            text += &(printable(&line) + "\n");
        }
        for told in &self.told {
            text += &format!("  {told}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> AuditLine {
        AuditLine::read(text).unwrap()
    }

    const ACTION: &str = r#"{"time":"2026-11-18T14:02:11.5Z","msg":"action","kind":"Reclaim","machine":"m1","cluster":"a","outcome":"success","reason":"phase3.excess","error":"","operation":"01"}"#;
    const ADMIN: &str = r#"{"time":"2026-11-18T14:05:00Z","msg":"admin","verb":"Pause","by":"ann","asked":{"scope":"a"},"outcome":"done","reason":"odd","dry_run":false}"#;
    const RAIL: &str = r#"{"time":"2026-11-18T14:06:00Z","msg":"rail","rail":"reclaim-cap","cluster":"a","detail":"4 wait"}"#;

    #[test]
    fn lines_are_chosen_by_time_machine_cluster_and_kind() {
        let moment = |text: &str| Some(text.parse().unwrap());
        let all = AuditFilter::default();
        let of = |filter: &AuditFilter| {
            let lines = [ACTION, ADMIN, RAIL].map(line);
            lines.map(|line| line.is_meant(filter))
        };
        assert_eq!(of(&all), [true; 3]);
        let since = moment("2026-11-18T14:05:00Z");
        assert_eq!(
            of(&AuditFilter {
                since,
                ..all.clone()
            }),
            [false, true, true]
        );
        let until = moment("2026-11-18T14:05:00Z");
        assert_eq!(
            of(&AuditFilter {
                until,
                ..all.clone()
            }),
            [true, true, false]
        );
        let cluster = Some("a".to_owned());
        assert_eq!(
            of(&AuditFilter {
                cluster,
                ..all.clone()
            }),
            [true; 3]
        );
        let machine = Some("m1".to_owned());
        assert_eq!(
            of(&AuditFilter {
                machine,
                ..all.clone()
            }),
            [true, false, false]
        );
        let kinds = vec!["reclaim".to_owned(), "rail".to_owned()];
        assert_eq!(of(&AuditFilter { kinds, ..all }), [true, false, true]);
        assert!(AuditLine::read("{\"torn").is_none());
    }

    #[test]
    fn a_summary_says_what_happened_and_why() {
        let mut summary = AuditSummary::default();
        for text in [ACTION, ADMIN, RAIL] {
            summary.add(&line(text));
        }
        let of = AuditFilter {
            cluster: Some("a".to_owned()),
            ..AuditFilter::default()
        };
        assert_eq!(
            summary.text(&of),
            "cluster a: 3 lines from 2026-11-18T14:02:11Z to 2026-11-18T14:06:00Z\n       \
             1 Reclaim success of 1 machine, decided by phase3.excess 1\n       \
             1 times held back by reclaim-cap of cluster a: 4 wait\n  \
             2026-11-18T14:05:00Z ann asked to Pause {\"scope\":\"a\"}: done, because: odd\n"
        );
    }

    #[test]
    fn moments_are_read_as_people_type_them() {
        let now: Timestamp = "2026-11-18T14:30:00Z".parse().unwrap();
        let read = |text: &str| audit_moment(text, now, None).map(|at| at.to_string());
        assert_eq!(read("14:02").unwrap(), "2026-11-18T14:02:00Z");
        assert_eq!(read("14:31").unwrap(), "2026-11-17T14:31:00Z");
        assert_eq!(
            read("2026-01-02T03:04:05Z").unwrap(),
            "2026-01-02T03:04:05Z"
        );
        assert!(read("soon").is_err());
        let ago = audit_moment("", now, Some(Duration::from_secs(900)));
        assert_eq!(ago.unwrap().to_string(), "2026-11-18T14:15:00Z");
    }
}
