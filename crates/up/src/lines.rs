//! Lines: what a demonstration prints, as text for people or as JSON.
//!
//! ```text
//! text   t+12s  cycle 73: 6 Creating, 30 Configured · $8.21/h · 5 operators · 1 need not served · 4 Provision
//! json   {"type":"cycle","t":12.1,"cycle":73,…}        one object per line, the last one a summary
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use bigfleet_model::{ActionKind, State};
use serde::Serialize;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// Everything runs.
    Started {
        /// The address of the shard.
        shard: SocketAddr,
        /// The address of its metrics and probes.
        metrics: Option<SocketAddr>,
        /// The address of the provider.
        provider: String,
        /// The ids of the clusters that take part.
        clusters: Vec<String>,
        /// The name of the scenario.
        scenario: &'static str,
        /// How many seconds pass for the fleet in one real second.
        speed: f64,
        /// The seed of everything random in the cloud.
        seed: u64,
        /// The directory of all data.
        data_dir: PathBuf,
    },
    /// A step of the scenario happened.
    Step {
        /// Seconds since the start.
        t: f64,
        /// The fleet's seconds since the start.
        fleet_seconds: f64,
        /// What happens, in a sentence.
        says: String,
    },
    /// The state of the shard, once per cycle.
    Cycle {
        /// Seconds since the start.
        t: f64,
        /// The fleet's seconds since the start.
        fleet_seconds: f64,
        /// The shard's cycle counter.
        cycle: u64,
        /// Machines by state.
        machines: BTreeMap<&'static str, u64>,
        /// What all machines that exist cost together.
        dollars_per_hour: f64,
        /// Needs that the last decision left short.
        needs_short: usize,
        /// Needs that are not served in full.
        needs_lacking: usize,
        /// What concerns the whole shard: paused, fenced, its provider lost.
        troubles: Vec<&'static str>,
        /// Operators that are connected.
        sessions: usize,
        /// Whether all changes to machines are paused.
        paused: bool,
        /// What was decided since the line before.
        decided: BTreeMap<&'static str, u64>,
    },
    /// What happened in all, printed last.
    Summary {
        /// Seconds since the start.
        t: f64,
        /// The fleet's seconds since the start.
        fleet_seconds: f64,
        /// The shard's cycles.
        cycles: u64,
        /// What was decided in all, by kind.
        actions: BTreeMap<&'static str, u64>,
        /// How often a machine came into each state.
        states: BTreeMap<&'static str, u64>,
        /// What was still there after everything was stopped.
        left_running: Vec<String>,
    },
}

impl Line {
    /// As one JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// For people. The start and the summary have several lines.
    pub fn text(&self) -> String {
        match self {
            Self::Started {
                shard,
                metrics,
                provider,
                clusters,
                scenario,
                speed,
                seed,
                data_dir,
            } => {
                let metrics = metrics.map(|at| format!(", metrics on http://{at}/metrics"));
                format!(
                    "bigfleet is up: shard on {shard}{}, provider on {provider}\n\
                     clusters {}; scenario {scenario}, seed {seed}; one second here is {speed} s for the fleet\n\
                     data in {}; look at it with `bigfleet get clusters` or `bigfleet top` in another terminal; \
                     Ctrl-C ends it",
                    metrics.unwrap_or_default(),
                    clusters.join(" "),
                    data_dir.display(),
                )
            }
            Self::Step { t, says, .. } => format!("{} {says}", at(*t)),
            Self::Cycle {
                t,
                cycle,
                machines,
                dollars_per_hour,
                needs_lacking,
                troubles,
                sessions,
                decided,
                ..
            } => {
                let mut parts: Vec<String> = troubles.iter().map(|one| (*one).to_owned()).collect();
                parts.push(counts(machines, "no machines"));
                parts.push(format!("${dollars_per_hour:.2}/h"));
                parts.push(format!("{sessions} operators"));
                if 0 < *needs_lacking {
                    let needs = if *needs_lacking == 1 { "need" } else { "needs" };
                    parts.push(format!("{needs_lacking} {needs} not served"));
                }
                parts.push(counts(decided, "quiet"));
                format!("{} cycle {cycle}: {}", at(*t), parts.join(" · "))
            }
            Self::Summary {
                t,
                fleet_seconds,
                cycles,
                actions,
                states,
                left_running,
            } => {
                let left = match left_running.as_slice() {
                    [] => "nothing".to_owned(),
                    left => left.join(", "),
                };
                format!(
                    "{} for {:.0} minutes of the fleet, {cycles} cycles\n\
                     decided: {}\n\
                     machines came into: {}\n\
                     stopped; left running: {left}",
                    at(*t),
                    fleet_seconds / 60.0,
                    counts(actions, "nothing"),
                    counts(states, "no state"),
                )
            }
        }
    }
}

fn at(t: f64) -> String {
    format!("{:<6}", format!("t+{t:.0}s"))
}

/// The counts that are not zero, always in the same order (of a machine's life, or of a cycle), so that they
/// can be read while they scroll.
fn counts(of: &BTreeMap<&'static str, u64>, none: &str) -> String {
    let states = State::ALL.map(State::word).into_iter();
    let order = states.chain(ActionKind::ALL.map(ActionKind::word));
    let counted = order.filter_map(|name| Some((name, *of.get(name)?)));
    let some = counted.filter(|(_, count)| 0 < *count);
    let words: Vec<String> = some
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if words.is_empty() {
        none.to_owned()
    } else {
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_reads_as_a_sentence_and_as_an_object() {
        let line = Line::Cycle {
            t: 12.34,
            fleet_seconds: 740.4,
            cycle: 73,
            machines: BTreeMap::from([("Configured", 30), ("Creating", 6), ("Failed", 0)]),
            dollars_per_hour: 8.2149,
            needs_short: 1,
            needs_lacking: 1,
            troubles: Vec::new(),
            sessions: 5,
            paused: false,
            decided: BTreeMap::from([("Provision", 4), ("Delete", 0)]),
        };
        assert_eq!(
            line.text(),
            "t+12s  cycle 73: 6 Creating, 30 Configured · $8.21/h · 5 operators · 1 need not served · 4 Provision"
        );
        let object: serde_json::Value = serde_json::from_str(&line.json()).unwrap();
        assert_eq!(object["type"], "cycle");
        assert_eq!(object["machines"]["Failed"], 0);
    }

    #[test]
    fn the_last_line_says_what_was_left_running() {
        let summary = |left: &[&str]| Line::Summary {
            t: 60.0,
            fleet_seconds: 3600.0,
            cycles: 400,
            actions: BTreeMap::new(),
            states: BTreeMap::new(),
            left_running: left.iter().map(|part| (*part).to_owned()).collect(),
        };
        assert!(summary(&[]).text().ends_with("left running: nothing"));
        let text = summary(&["the shard"]).text();
        assert!(text.ends_with("left running: the shard"), "{text}");
    }
}
