//! News: what an on-call greps for, said from what the core counted and asked for (`operations.md` §7.2).
//!
//! One line per cycle and kind of trouble, never one per machine, except for actions that failed and
//! those of a dry run, which is what those logs are for.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::ClusterId;
use bigfleet_shard_core::{
    Alert, AuditRecord, CallOutcome, Echo, Effect, Event, Frame, Outcome, SessionId, ShardCore,
};

use crate::outbox::Link;

/// What was counted when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    suppressed: u64,
    capped: u64,
}

/// Says what the cycle that just ended brought.
pub(crate) fn of_cycle(core: &ShardCore, before: &mut Counted) {
    let counters = core.counters();
    let suppressed: u64 = counters.suppressed.values().sum();
    if before.suppressed < suppressed {
        let suppressed = suppressed - before.suppressed;
        tracing::warn!(suppressed, "actions suppressed by pause");
    }
    if before.capped < counters.reclaims_capped {
        let deferred_reclaims = counters.reclaims_capped - before.capped;
        let cap_fraction = f64::from(core.rails().reclaim_cap_per_million) / 1e6;
        tracing::warn!(deferred_reclaims, cap_fraction, "blast-radius cap engaged");
    }
    *before = Counted {
        suppressed,
        capped: counters.reclaims_capped,
    };
    let mut count = 0;
    // The three oldest, the first by name among equals: there may be thousands, and this is each cycle.
    let mut oldest: Vec<(Reverse<u32>, &str)> = Vec::new();
    for short in core.shortfalls() {
        count += 1;
        let fingerprint = short.need.row.profile.fingerprint();
        oldest.push((Reverse(short.age), fingerprint.as_str()));
        oldest.sort_unstable();
        oldest.truncate(3);
    }
    if 0 < count {
        let top_fingerprints: Vec<&str> = oldest.into_iter().map(|(_, text)| text).collect();
        tracing::warn!(count, ?top_fingerprints, "shortfalls present");
    }
}

/// Says what an effect means, where that is news.
pub(crate) fn of_effect(
    core: &ShardCore,
    effect: &Effect,
    sessions: &BTreeMap<SessionId, Arc<Link>>,
) {
    match effect {
        Effect::Audit(record) => of_record(record),
        Effect::Alert(alert) => of_alert(alert),
        Effect::Send {
            session,
            frame:
                Frame::Ack {
                    echo: echo @ (Echo::RollUpHeld | Echo::RollUpRejected),
                    reason,
                    ..
                },
        } => {
            if let Some(link) = sessions.get(session) {
                of_roll_up(core, *echo, reason, &link.cluster);
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

fn of_roll_up(core: &ShardCore, echo: Echo, reason: &str, cluster: &ClusterId) {
    match echo {
        Echo::RollUpHeld => {
            let held = core.counters().rollups_held.get(cluster).copied();
            let held = held.unwrap_or_default();
            tracing::warn!(%cluster, held, "roll-up quarantined: the demand before stays");
        }
        _ => tracing::warn!(%cluster, reason, "roll-up rejected: the demand before stays"),
    }
}

fn of_record(record: &AuditRecord) {
    let kind = record.kind.map_or("", |kind| kind.word());
    let cluster = record.cluster.as_ref().map_or("", ClusterId::as_str);
    let reason = record.reason.map_or("", |reason| reason.text());
    let machine = &record.machine;
    match record.outcome {
        Outcome::Success | Outcome::Suppressed => {}
        Outcome::DryRun => {
            let grace = record.grace_seconds;
            tracing::info!(kind, %machine, cluster, reason, grace, "shadow action");
        }
        Outcome::Fenced => {
            tracing::error!(kind, %machine, cluster, "action fenced");
        }
        Outcome::Adopted => {
            tracing::info!(%machine, cluster,
                "machine adopted: its provider shows it elsewhere than it was left");
        }
        Outcome::Retired => tracing::info!(%machine, cluster, "machine retired"),
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
            tracing::warn!(kind, %machine, cluster, reason, outcome, err, "action failed");
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

fn of_alert(alert: &Alert) {
    match alert {
        Alert::Fenced { machine } => tracing::error!(%machine,
            "incident: the provider has seen a newer token of this shard; all mutations stop"),
        Alert::CallRefused { machine } => {
            tracing::error!(%machine, "the provider calls a call of ours malformed");
        }
        Alert::Conflict { machine } => {
            tracing::error!(%machine, "conflict: bound to somebody else than asked");
        }
        Alert::ForeignShard { machine } => tracing::error!(%machine,
            "another shard's mark was seen: no new unbound machine is taken over"),
        Alert::NodesFrozen { cluster } => tracing::warn!(%cluster,
            "so many nodes stopped being ready at once that none is believed"),
        Alert::DrainFallback {
            machine,
            cluster,
            grace_seconds,
        } => tracing::warn!(%machine, %cluster, grace = grace_seconds,
            "reclaim fallback: operator disconnected, drained through the provider without eviction"),
        Alert::RemovalHeld { missing } => tracing::warn!(
            missing,
            "machines are missing from the List; they are kept until more Lists agree"
        ),
    }
}
