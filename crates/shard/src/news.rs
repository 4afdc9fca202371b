//! News: what an on-call greps for, said from what the core counted and asked for (`docs/operating.md`).
//!
//! At most one line per cycle and kind of trouble, never one per machine, except for actions that failed and
//! those of a dry run, which is what those logs are for. What is decided again, cycle after cycle, is not said
//! again (`intentions`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_model::ClusterId;
use bigfleet_shard_core::{
    Alert, AuditRecord, CallOutcome, Echo, Effect, Event, Frame, Outcome, RailsView, SessionId,
    ShardCore,
};

use crate::outbox::Link;

/// The least time between two lines about shortfalls that changed, and about ones that did not.
const CHANGED_AFTER: Duration = Duration::from_secs(10);
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// What was counted and said when it was last looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Actions of this cycle that a pause held back and did not hold back before.
    suppressed: u64,
    /// Actions of the last cycle were put off.
    is_deferring: bool,
    capped: u64,
    /// The clusters of which rail 1 holds machines back.
    capped_clusters: BTreeSet<ClusterId>,
    deferred: u64,
    short: Said,
}

/// What the last cycle decided and began not to commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldBack {
    /// Reclaims, by rail 1, of clusters of which none was held back before.
    pub(crate) capped: Vec<(ClusterId, u64)>,
    /// Actions, by the limit of a cycle or because so many are under way, if none was held back before.
    pub(crate) deferred: u64,
}

/// What was last said about shortfalls: how many, which are the oldest, and when.
#[derive(Clone, Debug, Default)]
struct Said {
    count: usize,
    oldest: Vec<String>,
    at: Option<Instant>,
    /// When the shortfalls were last looked through.
    looked: Option<Instant>,
}

impl Said {
    /// Whether to look through the shortfalls now: at once when they begin or end, and not with every
    /// cycle, since there may be tens of thousands.
    fn looks(&mut self, is_short: bool, now: Instant) -> bool {
        let turned = (0 < self.count) != is_short;
        let passed = |looked| CHANGED_AFTER <= now.saturating_duration_since(looked);
        let looks = turned || self.looked.is_none_or(passed);
        if looks {
            self.looked = Some(now);
        }
        looks
    }

    /// Whether to say this now: at once when it begins and when it ends, when it changed but not with
    /// every cycle, and again now and then.
    fn takes(&mut self, count: usize, oldest: &[&str], now: Instant) -> bool {
        let changed = self.count != count || self.oldest != oldest;
        let turned = (self.count == 0) != (count == 0);
        let passed = self.at.map(|at| now.saturating_duration_since(at));
        let due = match passed {
            Some(passed) if changed => CHANGED_AFTER <= passed,
            Some(passed) => AGAIN_AFTER <= passed && 0 < count,
            None => 0 < count,
        };
        if due || turned {
            let oldest = oldest.iter().map(|text| (*text).to_owned());
            (self.count, self.oldest, self.at) = (count, oldest.collect(), Some(now));
        }
        due || turned
    }
}

/// Says what the cycle that just ended brought, and answers with what it held back.
pub(crate) fn of_cycle(core: &ShardCore, before: &mut Counted, now: Instant) -> HeldBack {
    let counters = core.counters();
    let deferred = counters.deferred - before.deferred;
    let mut held_back = HeldBack {
        capped: Vec::new(),
        deferred: if before.is_deferring { 0 } else { deferred },
    };
    before.is_deferring = 0 < deferred;
    let suppressed = std::mem::take(&mut before.suppressed);
    if 0 < suppressed {
        tracing::warn!(suppressed, "actions suppressed by pause");
    }
    if before.capped < counters.reclaims_capped || !before.capped_clusters.is_empty() {
        held_back.capped = say_capped(&core.rails(), &mut before.capped_clusters);
    }
    before.capped = counters.reclaims_capped;
    before.deferred = counters.deferred;
    if before.short.looks(core.shortfalls().next().is_some(), now) {
        say_shortfalls(core, &mut before.short, now);
    }
    held_back
}

/// A cluster shrinks for many cycles: that it is held back is said when it begins and when it ends. Answers
/// with those of which it begins.
fn say_capped(rails: &RailsView, before: &mut BTreeSet<ClusterId>) -> Vec<(ClusterId, u64)> {
    let mut began = Vec::new();
    let cap_fraction = f64::from(rails.reclaim_cap_per_million) / 1e6;
    for capped in &rails.capped {
        let (cluster, deferred_reclaims) = (&capped.cluster, capped.machines);
        if !before.contains(cluster) {
            tracing::warn!(%cluster, deferred_reclaims, cap_fraction, "blast-radius cap engaged");
            began.push((cluster.clone(), deferred_reclaims));
        }
    }
    let now: BTreeSet<ClusterId> = rails.capped.iter().map(|one| one.cluster.clone()).collect();
    for cluster in before.difference(&now) {
        tracing::info!(%cluster, "blast-radius cap released");
    }
    *before = now;
    began
}

fn say_shortfalls(core: &ShardCore, said: &mut Said, now: Instant) {
    let mut count = 0;
    // The three oldest, the first by name among equals.
    let mut oldest: Vec<(Reverse<u32>, &str, &ClusterId)> = Vec::new();
    for short in core.shortfalls() {
        count += 1;
        let one = (
            Reverse(short.age),
            short.need.row.profile.fingerprint().as_str(),
            &short.need.cluster,
        );
        if oldest.len() < 3 || oldest.last().is_some_and(|last| one < *last) {
            oldest.push(one);
            oldest.sort_unstable();
            oldest.truncate(3);
        }
    }
    let clusters: Vec<&str> = oldest
        .iter()
        .map(|(_, _, cluster)| cluster.as_str())
        .collect();
    let top_fingerprints: Vec<&str> = oldest.iter().map(|(_, text, _)| *text).collect();
    if said.takes(count, &top_fingerprints, now) {
        match count {
            0 => tracing::info!("no shortfall any more"),
            _ => tracing::warn!(count, ?clusters, ?top_fingerprints, "shortfalls present"),
        }
    }
}

/// Says what an effect means, where that is news; or counts it for the line of the cycle.
pub(crate) fn of_effect(
    effect: &Effect,
    counted: &mut Counted,
    sessions: &BTreeMap<SessionId, Arc<Link>>,
) {
    match effect {
        Effect::Audit(record) if record.outcome == Outcome::Suppressed => counted.suppressed += 1,
        Effect::Audit(record) => of_record(record),
        Effect::Alert(alert) => of_alert(alert),
        Effect::Send {
            session,
            frame:
                Frame::Ack {
                    echo: Echo::RollUpRejected,
                    reason,
                    ..
                },
        } => {
            if let Some(link) = sessions.get(session) {
                let cluster = &link.cluster;
                tracing::warn!(%cluster, reason, "roll-up rejected: the demand before stays");
            }
        }
        Effect::Persist { .. }
        | Effect::Call { .. }
        | Effect::Get { .. }
        | Effect::List { .. }
        | Effect::Send { .. }
        | Effect::Close { .. }
        | Effect::WakeAt(_) => {}
    }
}

fn of_record(record: &AuditRecord) {
    let kind = record.kind.map_or("", |kind| kind.word());
    let cluster = record.cluster.as_ref().map_or("", ClusterId::as_str);
    let reason = record.reason.map_or("", |reason| reason.text());
    let machine = &record.machine;
    let operation = record.operation.map(|id| id.to_string());
    let operation = operation.unwrap_or_default();
    match record.outcome {
        // Those that were moved by somebody else are said together, once a cycle.
        Outcome::Success | Outcome::TakenBack | Outcome::Suppressed | Outcome::Adopted => {}
        Outcome::DryRun => {
            let grace = record.grace_seconds;
            tracing::info!(kind, %machine, cluster, reason, grace, "shadow action");
        }
        Outcome::Fenced => {
            tracing::error!(kind, %machine, cluster, operation, "action fenced");
        }
        Outcome::Retired => tracing::info!(%machine, cluster, "machine retired"),
        Outcome::DrainMarked
        | Outcome::DrainLifted
        | Outcome::DrainDeadlinePassed
        | Outcome::LeavingAnnounced
        | Outcome::LeavingWithdrawn => {
            let (what, said) = (record.outcome.label(), &record.said);
            tracing::info!(%machine, cluster, what, said, "machine leaving");
        }
        outcome @ (Outcome::Timeout
        | Outcome::NoSession
        | Outcome::BlobError
        | Outcome::ProviderError
        | Outcome::NeverSent
        | Outcome::InventoryMiss
        | Outcome::Conflict
        | Outcome::DrainBlocked) => {
            let outcome = outcome.label();
            let err = match record.error.as_str() {
                "" => outcome,
                error => error,
            };
            tracing::warn!(kind, %machine, cluster, operation, reason, outcome, err, "action failed");
        }
    }
}

/// Says that a call was refused, the first time for each operation: it may be tried for hours before it
/// ends, and every other time is at debug level.
pub(crate) fn of_event(core: &ShardCore, event: &Event) {
    let Event::CallEnded {
        operation,
        outcome: CallOutcome::Refused { code, text },
        ..
    } = event
    else {
        return;
    };
    let work = core.work_of(*operation);
    if let Some(work) = work.filter(|work| work.refused.is_none()) {
        let (kind, machine) = (work.action.word(), &work.machine);
        let cluster = work.cluster.as_ref().map_or("", ClusterId::as_str);
        let err = code.said(text);
        tracing::warn!(kind, %machine, cluster, %operation, err, "call refused");
    }
}

/// What a shard that does not act says, and what to do about it (SH-33).
pub(crate) fn twin_text(seen: u64, own: u64) -> String {
    let floor = seen.saturating_add(1);
    format!(
        "the provider's records show epoch {seen} of this shard, and this process has epoch {own}: its data \
         directory is new or an old copy; if no other process runs this shard, start it once with \
         --epoch-floor {floor}"
    )
}

fn of_alert(alert: &Alert) {
    match alert {
        Alert::Fenced { machine } => tracing::error!(%machine,
            "incident: the provider has seen a newer token of this shard; all mutations stop"),
        Alert::Twin { seen, own } => {
            let advice = twin_text(*seen, *own);
            tracing::error!(
                seen,
                own,
                advice,
                "incident: the provider knows a later epoch of this shard; all mutations stop"
            );
        }
        Alert::Superseded => tracing::error!(
            "incident: the coordinator knows another process as this shard; all mutations stop, and later starts in this \
             data directory need --records-lost"
        ),
        Alert::Impossible { machine, what } => tracing::error!(%machine, what,
            "incident: something happened that cannot; all mutations stop until a restart"),
        Alert::CallRefused { machine } => {
            tracing::error!(%machine, "the provider calls a call of ours malformed");
        }
        Alert::DeleteGivenUp { machine } => tracing::warn!(%machine,
            "the provider did not delete a machine: it stays Idle and is used again"),
        Alert::Conflict { machine } => {
            tracing::error!(%machine, "conflict: bound to somebody else than asked");
        }
        Alert::ForeignShard { machine } => tracing::error!(%machine,
            "another shard's mark was seen: no new unbound machine is taken over"),
        Alert::NodesFrozen { cluster } => tracing::warn!(%cluster,
            "so many nodes stopped being ready at once that none is believed"),
        Alert::RollUpSuspicious {
            cluster,
            rows_before,
            rows_now,
            held: 0,
            why,
        } => tracing::warn!(%cluster, rows_before, rows_now, held = 0, why,
            "roll-up confirmed and accepted: it was said often enough"),
        Alert::RollUpSuspicious {
            cluster,
            rows_before,
            rows_now,
            held,
            why,
        } => tracing::warn!(%cluster, rows_before, rows_now, held, why,
            "roll-up quarantined: the demand before stays"),
        Alert::DrainFallback {
            machine,
            cluster,
            grace_seconds,
        } => tracing::warn!(%machine, %cluster, grace = grace_seconds,
            "reclaim fallback: operator disconnected, drained through the provider without eviction"),
        Alert::NoticesHeld { cluster, machines } => tracing::error!(%cluster, machines,
            "the provider announces to take away more than half of a cluster: the latest are not hurried"),
        Alert::RemovalHeld { missing } => tracing::warn!(
            missing,
            "machines are missing from the List; they are kept until more Lists agree"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortfalls_are_looked_through_when_they_begin_and_end_and_every_ten_seconds() {
        let (mut said, start) = (Said::default(), Instant::now());
        let mut at = |tenths: u64, count: usize| {
            let now = start + Duration::from_millis(100 * tenths);
            let looks = said.looks(0 < count, now);
            if looks {
                said.takes(count, &[], now);
            }
            looks
        };
        let looked =
            (0..400).filter(|tenths| at(*tenths, usize::from(5 <= *tenths && *tenths < 300)));
        assert_eq!(looked.collect::<Vec<_>>(), [0, 5, 105, 205, 300]);
    }

    /// Cycles come ten times a second; a day of one shortfall is a few hundred lines.
    #[test]
    fn a_shortfall_is_said_when_it_begins_changes_and_ends_and_now_and_then() {
        let (mut said, start) = (Said::default(), Instant::now());
        let mut at = |tenths: u64, count, oldest: &[&str]| {
            said.takes(count, oldest, start + Duration::from_millis(100 * tenths))
        };
        assert!(!at(0, 0, &[]), "nothing is short");
        assert!(at(1, 2, &["f", "g"]), "it begins");
        assert!(!at(2, 3, &["f", "g"]), "not with every cycle");
        assert!(at(101, 3, &["f", "g"]), "it changed");
        assert!(!at(1000, 3, &["f", "g"]), "it did not");
        assert!(at(3101, 3, &["f", "g"]), "a reminder");
        assert!(at(3102, 0, &[]), "it ends");
        assert!(!at(9999, 0, &[]), "and is over");
    }
}
