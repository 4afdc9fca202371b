//! What the lines of an audit log come to: how many of each kind, of how many machines, and why.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::counted;
use jiff::Timestamp;
use serde_json::Value;

use super::{AuditFilter, AuditLine, about, reason_words};
use crate::text::printable;

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
    /// By kind and cluster: how often, when first, and what it said last.
    events: BTreeMap<(String, String), EventGroup>,
    /// What people did, and whatever else was said.
    told: Vec<String>,
}

#[derive(Debug, Default)]
struct EventGroup {
    count: usize,
    first: Option<Timestamp>,
    last: String,
}

#[derive(Debug, Default)]
struct ActionGroup {
    count: u64,
    machines: BTreeSet<String>,
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
                *detail = line.detail();
            }
            "event" => {
                let key = (line.kind().to_owned(), line.text("cluster").to_owned());
                let group = self.events.entry(key).or_default();
                group.count += 1;
                group.first = group.first.or(line.at);
                line.text("detail").clone_into(&mut group.last);
            }
            _ if self.told.len() < MOST_TOLD => self.told.push(line.words()),
            _ => {}
        }
    }

    /// The summary: what happened, and why.
    pub fn text(&self, of: &AuditFilter) -> String {
        let mut whose = Vec::new();
        whose.extend(
            of.cluster
                .as_ref()
                .map(|cluster| format!("cluster {cluster}")),
        );
        whose.extend(
            of.machine
                .as_ref()
                .map(|machine| format!("machine {machine}")),
        );
        let whose = match whose.as_slice() {
            [] => "everything".to_owned(),
            whose => whose.join(", "),
        };
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return format!("{}: nothing happened\n", printable(&whose));
        };
        let mut text = format!(
            "{}: {} from {first:.0} to {last:.0}\n",
            printable(&whose),
            counted(self.lines, "line", "lines")
        );
        for ((kind, outcome), group) in &self.actions {
            let kind = if kind.is_empty() { "machine" } else { kind };
            let mut line = format!("  {:>6} {kind} {outcome}", group.count);
            if !group.machines.is_empty() {
                let machines = counted(group.machines.len(), "machine", "machines");
                line += &format!(" of {machines}");
            }
            let reasons = group.reasons.iter();
            let reasons: Vec<String> = reasons
                .map(|(why, count)| format!("{count} {}", reason_words(why)))
                .collect();
            if !reasons.is_empty() {
                line += &format!(": {}", reasons.join(", "));
            }
            if !group.error.is_empty() {
                line += &format!("; last error: {}", group.error);
            }
            text += &(printable(&line) + "\n");
        }
        for ((rail, cluster), (count, detail)) in &self.rails {
            let cluster = about(" of cluster ", cluster);
            let times = if *count == 1 { "time" } else { "times" };
            let line = format!("  {count:>6} {times} held back by {rail}{cluster}: {detail}");
            text += &(printable(&line) + "\n");
        }
        // In the order in which they began: what came first may be the cause of the rest.
        let mut events: Vec<_> = self.events.iter().collect();
        events.sort_by_key(|(_, group)| group.first);
        for ((kind, cluster), group) in events {
            let cluster = about(" of cluster ", cluster);
            let first = group.first.map(|first| format!(", first {first:.0}"));
            let line = format!(
                "  {:>6} {kind}{cluster}{}: {}",
                group.count,
                first.unwrap_or_default(),
                group.last
            );
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
    use super::super::tests::{ACTION, ADMIN, LOST, RAIL, line};
    use super::*;

    #[test]
    fn events_are_summed_up_in_the_order_in_which_they_began() {
        let mut summary = AuditSummary::default();
        let later = LOST
            .replace("14:07", "14:11")
            .replace("connection refused", "it hung up");
        let ended = LOST
            .replace("14:07", "14:03")
            .replace("provider-lost", "session-ended");
        for text in [LOST, &later, &ended] {
            summary.add(&line(text));
        }
        let text = summary.text(&AuditFilter::default());
        let said: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            said,
            [
                "       1 session-ended, first 2026-11-18T14:03:00Z: the provider does not answer: connection refused",
                "       2 provider-lost, first 2026-11-18T14:07:00Z: the provider does not answer: it hung up",
            ]
        );
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
             1 Reclaim success of 1 machine: 1 since its cluster asks for less\n       \
             1 time held back by reclaim-cap of cluster a: 4 wait\n  \
             2026-11-18T14:05:00Z ann asked to Pause {\"scope\":\"a\"}: done, because: odd\n"
        );
    }
}
