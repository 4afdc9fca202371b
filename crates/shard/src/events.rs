//! Events: what changed, for whoever asks later what happened (`InspectEvents`).
//!
//! ```text
//! sessions, roll-ups ────────────────────────┐
//! rails, pauses, provider: before and after ─┼─▶ the newest 4,096, numbered ─▶ readers
//! machines lost in one cycle ────────────────┤
//! certificates, disk, clock ─────────────────┘─▶ a line of the audit log each (AU-6)
//! ```
//!
//! Each is said once, when it changes, and names the cluster it concerns. What goes on unchanged is in `get`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_model::{Amounts, ClusterId, MachineId, Time, counted, quantity::format_short, shown};
use bigfleet_shard_core::RailsView;

use crate::audit::{AuditLines, ChangeRecord};
use crate::news::twin_text;

/// Events that are kept.
const KEPT: usize = 4096;
/// Sequences of one epoch: those of the next are all higher, so a reader can follow across a restart.
const PER_EPOCH: i64 = 1 << 32;
/// So many machines lost in one cycle are one event and one line, and not as many.
const MASS: usize = 4;
/// Clusters and machines that an event names.
const MOST_NAMED: usize = 5;
/// Kinds that are in the audit log already, under another name: a line of a rail, or one per machine.
const AUDITED_OTHERWISE: [&str; 9] = [
    "roll-up-held",
    "rail-engaged",
    "leaving-notices-held",
    "machine-lost",
    "drain",
    "undrain",
    "drain-deadline",
    "leaving-withdrawn",
    "leaving-announced",
];

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What is said of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct News {
    pub(crate) kind: &'static str,
    pub(crate) severity: Severity,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) text: String,
}

impl News {
    pub(crate) fn info(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            kind,
            severity: Severity::Info,
            cluster: None,
            text: text.into(),
        }
    }

    pub(crate) fn warning(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::info(kind, text)
        }
    }

    pub(crate) fn error(kind: &'static str, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            ..Self::info(kind, text)
        }
    }

    pub(crate) fn of(self, cluster: &ClusterId) -> Self {
        Self {
            cluster: Some(cluster.clone()),
            ..self
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Happened {
    pub(crate) sequence: i64,
    pub(crate) time: Time,
    pub(crate) news: News,
}

/// The newest events of one process, and the audit log, in which each is a line.
#[derive(Debug)]
pub(crate) struct Events {
    newest: Mutex<Newest>,
    audit: Option<AuditLines>,
}

#[derive(Debug)]
struct Newest {
    /// Oldest first.
    events: VecDeque<Arc<Happened>>,
    last: i64,
}

impl Events {
    /// Those of a process of this epoch, which begin empty.
    pub(crate) fn new(epoch: u64, audit: Option<AuditLines>) -> Self {
        let epoch = i64::try_from(epoch).unwrap_or(i64::MAX);
        let newest = Mutex::new(Newest {
            events: VecDeque::new(),
            last: epoch.saturating_mul(PER_EPOCH),
        });
        Self { newest, audit }
    }

    fn lock(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, time: Time, news: News) {
        if let Some(audit) = &self.audit
            && !AUDITED_OTHERWISE.contains(&news.kind)
        {
            let cluster = news.cluster.as_ref();
            audit.change(ChangeRecord {
                time,
                kind: news.kind,
                severity: news.severity.word(),
                cluster: cluster.map_or_else(String::new, ToString::to_string),
                detail: news.text.clone(),
            });
        }
        let mut newest = self.lock();
        newest.last += 1;
        let sequence = newest.last;
        if newest.events.len() == KEPT {
            newest.events.pop_front();
        }
        newest.events.push_back(Arc::new(Happened {
            sequence,
            time,
            news,
        }));
    }

    /// Those after a sequence, oldest first.
    pub(crate) fn after(&self, sequence: i64) -> Vec<Arc<Happened>> {
        let newest = self.lock();
        let later = newest.events.iter().filter(|one| sequence < one.sequence);
        later.cloned().collect()
    }
}

/// What is different about what limits the shard.
pub(crate) fn differences(before: &RailsView, after: &RailsView, said: &str) -> Vec<News> {
    let mut news = Vec::new();
    match (before.provider_lost, after.provider_lost) {
        (None, Some(_)) => {
            news.push(News::error("provider-lost", format!("the provider {said}")));
        }
        (Some(_), None) => news.push(News::info(
            "provider-back",
            "the provider answers again, and its List is whole",
        )),
        _ => {}
    }
    if after.fenced && !before.fenced {
        news.push(News::error(
            "fenced",
            "another process runs this shard; nothing leaves this one",
        ));
    }
    if let (None, Some((seen, own))) = (before.twin, after.twin) {
        news.push(News::error("twin", twin_text(seen, own)));
    }
    if after.dry_run && !before.dry_run {
        let text = "dry run: decisions are shown, and nothing leaves this shard";
        news.push(News::warning("dry-run", text));
    }
    if let (None, Some(what)) = (&before.incident, &after.incident) {
        news.push(News::error("incident", shown(what)));
    }
    let pauses = |view: &RailsView| -> BTreeMap<String, Option<ClusterId>> {
        let cluster = |scope: &bigfleet_shard_core::Scope| match scope {
            bigfleet_shard_core::Scope::Cluster(cluster) => Some(cluster.clone()),
            _ => None,
        };
        let pauses = view.pauses.iter();
        pauses
            .map(|one| (one.words(), cluster(&one.scope)))
            .collect()
    };
    turned(
        &mut news,
        pauses(before),
        pauses(after),
        ("paused", "resumed", "no more"),
    );
    let held = |view: &RailsView| -> BTreeMap<String, Option<ClusterId>> {
        let held = view.held.iter();
        let words = |cluster: &ClusterId| {
            format!("roll-ups of cluster {cluster} are held; its earlier demand stays in force")
        };
        held.map(|one| (words(&one.cluster), Some(one.cluster.clone())))
            .collect()
    };
    turned(
        &mut news,
        held(before),
        held(after),
        ("roll-up-held", "roll-up-released", "no more"),
    );
    let capped = |view: &RailsView| -> BTreeMap<String, Option<ClusterId>> {
        let words = |cluster: &ClusterId| {
            format!("the reclaim cap holds machines of cluster {cluster} back")
        };
        let capped = view.capped.iter();
        capped
            .map(|one| (words(&one.cluster), Some(one.cluster.clone())))
            .collect()
    };
    turned(
        &mut news,
        capped(before),
        capped(after),
        ("rail-engaged", "rail-released", "no more"),
    );
    let breakers = |view: &RailsView| -> BTreeMap<String, Option<ClusterId>> {
        let pools = view.breakers.iter().map(|one| {
            let (kind, zone) = (shown(&one.pool.instance_type), shown(&one.pool.zone));
            (
                format!("no machines of {kind} in zone {zone} are asked for: its Creates fail"),
                None,
            )
        });
        let joins = view.bootstraps.iter().map(|one| {
            let (cluster, step) = (&one.cluster, one.step.word());
            let text = format!(
                "cluster {cluster} gets one machine at a time or none: its machines fail at {step}"
            );
            (text, Some(cluster.clone()))
        });
        pools.chain(joins).collect()
    };
    turned(
        &mut news,
        breakers(before),
        breakers(after),
        ("breaker-opened", "breaker-closed", "no more"),
    );
    match (before.removals_held, after.removals_held) {
        (0, missing @ 1..) => news.push(News::warning(
            "removals-held",
            format!(
                "{} missing from the List, and kept until more Lists agree",
                counted(missing, "machine is", "machines are")
            ),
        )),
        (1.., 0) => news.push(News::info(
            "removals-settled",
            "no machine is missing from the List any more",
        )),
        _ => {}
    }
    news
}

/// What began and what ended.
fn turned(
    news: &mut Vec<News>,
    before: BTreeMap<String, Option<ClusterId>>,
    after: BTreeMap<String, Option<ClusterId>>,
    (begins, ends, no_more): (&'static str, &'static str, &str),
) {
    for (text, cluster) in &after {
        if !before.contains_key(text) {
            let cluster = cluster.clone();
            news.push(News {
                cluster,
                ..News::warning(begins, text.as_str())
            });
        }
    }
    for (text, cluster) in before {
        if !after.contains_key(&text) {
            news.push(News {
                cluster,
                ..News::info(ends, format!("{no_more}: {text}"))
            });
        }
    }
}

/// What a cluster asks for is not what it asked for.
pub(crate) fn demand_changed(
    cluster: &ClusterId,
    before: (usize, &Amounts),
    after: (usize, &Amounts),
) -> News {
    let words = |(rows, amounts): (usize, &Amounts)| {
        let word = |(name, milli): (&bigfleet_model::Dimension, i128)| {
            format!("{}={}", shown(name.as_str()), format_short(milli))
        };
        let words: Vec<String> = amounts.iter().take(MOST_NAMED).map(word).collect();
        match rows {
            0 => "nothing".to_owned(),
            rows => format!("{}, {}", counted(rows, "row", "rows"), words.join(" ")),
        }
    };
    let text = format!("demand changed: from {} to {}", words(before), words(after));
    News::info("demand", text).of(cluster)
}

/// Machines that were lost since a cycle ended, by the cluster they served.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(BTreeMap<Option<ClusterId>, Vec<MachineId>>);

impl Losses {
    pub(crate) fn add(&mut self, cluster: Option<ClusterId>, machine: MachineId) {
        self.0.entry(cluster).or_default().push(machine);
    }

    fn total(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Logs them: a line each, or one for all of them if they are many.
    pub(crate) fn log(&self) {
        let (total, clusters) = (self.total(), self.0.len());
        if MASS <= total {
            tracing::error!(
                total,
                clusters,
                "mass loss: machines are not where they were left"
            );
            return;
        }
        for (cluster, machines) in &self.0 {
            let cluster = cluster.as_ref().map_or("", ClusterId::as_str);
            for machine in machines {
                tracing::info!(
                    %machine,
                    cluster,
                    "machine adopted: its provider shows it elsewhere than it was left"
                );
            }
        }
    }

    /// What is to be said of them, once: machine by machine, or of all of them if they are many.
    pub(crate) fn take(&mut self) -> Vec<News> {
        let total = self.total();
        let lost = std::mem::take(&mut self.0);
        let whose = |cluster: &Option<ClusterId>| match cluster {
            Some(cluster) => format!("cluster {cluster}"),
            None => "no cluster".to_owned(),
        };
        if total < MASS {
            let each = lost.into_iter().flat_map(|(cluster, machines)| {
                let said = whose(&cluster);
                machines.into_iter().map(move |machine| News {
                    cluster: cluster.clone(),
                    ..News::warning(
                        "machine-lost",
                        format!("machine {machine} of {said} is not where it was left: its provider moved it"),
                    )
                })
            });
            return each.collect();
        }
        let mut by_cluster: Vec<(String, usize)> = lost
            .iter()
            .map(|(cluster, machines)| (whose(cluster), machines.len()))
            .collect();
        by_cluster.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let more = by_cluster.len().saturating_sub(MOST_NAMED);
        let words = by_cluster.iter().take(MOST_NAMED);
        let mut words: Vec<String> = words
            .map(|(who, count)| format!("{count} of {who}"))
            .collect();
        if 0 < more {
            let clusters = counted(more, "other cluster", "other clusters");
            words.push(format!("more of {clusters}"));
        }
        let text = format!(
            "mass loss: {total} machines are not where they were left: {}",
            words.join(", ")
        );
        vec![News::error("mass-loss", text)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn cluster(id: &str) -> ClusterId {
        ClusterId::new(id).unwrap()
    }

    #[test]
    fn the_newest_are_kept_and_a_reader_that_follows_sees_each_once() {
        let events = Events::new(3, None);
        for number in 0..KEPT + 10 {
            events.add(at(0), News::info("demand", number.to_string()));
        }
        let all = events.after(0);
        assert_eq!((all.len(), all[0].news.text.as_str()), (KEPT, "10"));
        let last = all[KEPT - 1].sequence;
        assert!(events.after(last).is_empty());
        events.add(at(1), News::info("demand", "next"));
        assert_eq!(events.after(last).len(), 1);
        let next = Events::new(4, None);
        next.add(at(2), News::info("demand", "after a restart"));
        assert!(last < next.after(0)[0].sequence);
    }

    #[test]
    fn a_mass_loss_is_one_event_and_a_few_are_each_their_own() {
        let mut losses = Losses::default();
        let machine = |number: usize| MachineId::new(&format!("m{number}")).unwrap();
        losses.add(Some(cluster("a")), machine(1));
        losses.add(None, machine(2));
        let few = losses.take();
        assert_eq!(few.len(), 2);
        assert_eq!(few[1].cluster, Some(cluster("a")));
        assert!(losses.take().is_empty());
        for number in 0..40 {
            let whose = if number % 4 == 0 { "b" } else { "a" };
            losses.add(Some(cluster(whose)), machine(number));
        }
        let [mass] = &losses.take()[..] else {
            panic!("one event");
        };
        assert_eq!(mass.severity, Severity::Error);
        assert_eq!(
            mass.text,
            "mass loss: 40 machines are not where they were left: 30 of cluster a, 10 of cluster b"
        );
    }

    #[test]
    fn demand_is_said_before_and_after() {
        let amounts = |milli| {
            let cpu = bigfleet_model::Dimension::new("cpu").unwrap();
            Amounts::from_entries([(cpu, milli)])
        };
        let news = demand_changed(&cluster("a"), (20, &amounts(80_000)), (1, &amounts(4000)));
        assert_eq!(
            news.text,
            "demand changed: from 20 rows, cpu=80 to 1 row, cpu=4"
        );
        assert_eq!(news.cluster, Some(cluster("a")));
    }
}
