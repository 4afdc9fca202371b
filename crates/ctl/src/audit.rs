//! The audit log, offline: which lines are meant, what each says in words, and what they come to.
//!
//! ```text
//! audit.jsonl.2 ─▶ audit.jsonl.1 ─▶ audit.jsonl ─▶ by time, machine, cluster, kind ─▶ a line each · a summary
//! ```
//!
//! Needs no shard: after a bad night the file is what is left. A line that cannot be read is counted, never
//! guessed at.

mod files;
mod summary;

pub use files::AuditFiles;
pub use summary::AuditSummary;

use std::time::Duration;

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
    /// Only of these kinds: an action (Bootstrap, Reclaim, …), an event (provider-lost, …), or what `msg` says.
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
        // What concerns the whole shard concerns each of its clusters.
        let is_whole = self.text("msg") == "event" && self.text("cluster").is_empty();
        let cluster = filter.cluster.as_ref().filter(|_| !is_whole);
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
                self.detail()
            ),
            "summary" => format!(
                "{} × {} {} since {}",
                self.fields["count"],
                self.text("kind"),
                self.text("outcome"),
                self.text("since")
            ),
            // An event, or what a later version writes.
            _ => format!(
                "{}{}: {}",
                self.kind(),
                about(" cluster ", self.text("cluster")),
                self.text("detail")
            ),
        };
        printable(&format!("{} {said}", self.text("time"))) + "\n"
    }

    fn action(&self) -> String {
        // What happened without an action of ours has no kind: its provider or a person moved the machine.
        let kind = match self.text("kind") {
            "" => "machine",
            kind => kind,
        };
        let mut said = format!(
            "{kind} {}{}: {}",
            self.text("machine"),
            about(" cluster ", self.text("cluster")),
            self.text("outcome")
        );
        said += &about(", ", reason_words(self.text("reason")));
        said += &about(", ", self.text("said"));
        said += &about(", error: ", self.text("error"));
        if let Some(took) = self.fields.get("duration_seconds").and_then(Value::as_f64) {
            said += &format!(", took {took:.1}s");
        }
        said + &about(", operation ", self.text("operation"))
    }

    /// What a rail says of itself: its own words if it has some, else each number by its name.
    fn detail(&self) -> String {
        let Some(detail) = self.fields.get("detail") else {
            return String::new();
        };
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let Value::Object(fields) = detail else {
            return word(detail);
        };
        let why = fields.get("why").map(word);
        let numbers = fields.iter().filter(|(key, _)| *key != "why");
        let named = |(key, value): (&String, &Value)| {
            let name = key.replace('_', " ");
            format!("{name} {}", word(value))
        };
        let mut numbers: Vec<String> = numbers.map(named).collect();
        numbers.sort();
        why.into_iter()
            .chain(numbers)
            .collect::<Vec<_>>()
            .join(", ")
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

/// Why something was decided, in words; the word of the log itself where it is one of a later version.
fn reason_words(reason: &str) -> &str {
    match reason {
        "phase1.idle" => "since a Need was short and the machine idle",
        "phase1.speculative" => "bought for a Need that was short",
        "phase1.promised" => "for the Need it was promised to",
        "phase1.restored" => "taken back, its Need wants it again",
        "phase2.inversion" => "for a Need of higher priority",
        "phase3.excess" => "since its cluster asks for less",
        "phase3.leaving" => "since the machine is to leave",
        "phase3.release" => "since nobody needs it",
        other => other,
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn line(text: &str) -> AuditLine {
        AuditLine::read(text).unwrap()
    }

    pub(super) const ACTION: &str = r#"{"time":"2026-11-18T14:02:11.5Z","msg":"action","kind":"Reclaim","machine":"m1","cluster":"a","outcome":"success","reason":"phase3.excess","error":"","operation":"01"}"#;
    pub(super) const ADMIN: &str = r#"{"time":"2026-11-18T14:05:00Z","msg":"admin","verb":"Pause","by":"ann","asked":{"scope":"a"},"outcome":"done","reason":"odd","dry_run":false}"#;
    pub(super) const LOST: &str = r#"{"time":"2026-11-18T14:07:00Z","msg":"event","kind":"provider-lost","severity":"error","cluster":"","detail":"the provider does not answer: connection refused"}"#;
    const GUARD: &str = r#"{"time":"2026-11-18T14:08:00Z","msg":"rail","rail":"roll-up-guard","cluster":"a","detail":{"rows_before":12,"rows_now":0,"held":1,"why":"it asks for nothing"}}"#;
    const MOVED: &str = r#"{"time":"2026-11-18T14:09:00Z","msg":"action","kind":"","machine":"m1","cluster":"a","outcome":"adopted","said":"by its provider"}"#;
    pub(super) const RAIL: &str = r#"{"time":"2026-11-18T14:06:00Z","msg":"rail","rail":"reclaim-cap","cluster":"a","detail":"4 wait"}"#;

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

    /// What happened to the whole shard happened to each of its clusters.
    #[test]
    fn an_event_of_the_whole_shard_is_about_every_cluster() {
        let of = |text: &str, cluster: &str, kind: &str| {
            line(text).is_meant(&AuditFilter {
                cluster: Some(cluster.to_owned()),
                kinds: vec![kind.to_owned()],
                ..AuditFilter::default()
            })
        };
        assert!(of(LOST, "a", "event") && of(LOST, "b", "provider-lost"));
        assert!(!of(LOST, "a", "rail"));
        assert!(!of(GUARD, "b", "rail"), "a rail is its cluster's");
    }

    #[test]
    fn every_kind_of_line_is_said_in_words() {
        for (text, words) in [
            (
                LOST,
                "2026-11-18T14:07:00Z provider-lost: the provider does not answer: connection refused",
            ),
            (
                GUARD,
                "2026-11-18T14:08:00Z roll-up-guard holds back cluster a: it asks for nothing, held 1, rows before 12, \
                 rows now 0",
            ),
            (
                MOVED,
                "2026-11-18T14:09:00Z machine m1 cluster a: adopted, by its provider",
            ),
        ] {
            assert_eq!(line(text).words(), format!("{words}\n"));
        }
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
