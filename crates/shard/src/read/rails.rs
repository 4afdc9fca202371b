//! InspectRails: what limits or stops the shard now, and by how much.

use std::sync::Arc;

use bigfleet_model::{Time, counted};
use bigfleet_shard_core::{BackoffView, CappedView, HeldView, Pause, PausedBy, RailsView, Scope};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::{
    BreakerView, InspectRailsResponse, PauseOrigin, PauseScope, PauseView, RailView, pause_scope,
};
use tonic::Status;

use super::stream::count;
use super::{Reads, ShardInfo, shortfall_text};
use crate::news::twin_text;

pub(super) async fn inspect(reads: &Reads) -> Result<InspectRailsResponse, Status> {
    let info = Arc::clone(&reads.info);
    let asked = reads.hub.ask(move |core| {
        let capped = core.counters().reclaims_capped;
        (info.header(core, 0), core.rails(), capped)
    });
    let (mut header, view, capped) = asked.await?;
    let rails = rails(&view, capped, reads.info.now());
    let lost = view.provider_lost.map(|_| reads.info.provider_problem());
    header.total = count(rails.len());
    Ok(InspectRailsResponse {
        header: Some(header),
        rails,
        pauses: pauses(&view, &reads.info),
        breakers: breakers(&view, &reads.info),
        dry_run: view.dry_run,
        fenced: view.fenced,
        provider_lost_unix_nanos: view.provider_lost.map_or(0, unix_nanos),
        provider_error: lost.unwrap_or_default(),
    })
}

fn rails(view: &RailsView, capped: u64, now: Time) -> Vec<RailView> {
    let mut rails = vec![reclaim_cap(view, capped), guard(view), sweep(view)];
    rails.extend(view.capped.iter().map(|one| capped_cluster(view, one)));
    rails.extend(view.held.iter().map(|held| held_rollup(view, held)));
    let backoffs = view.bootstraps.iter();
    rails.extend(backoffs.map(|backoff| bootstrap(backoff, now)));
    rails.sort_by(|one, other| (&one.name, &one.cluster_id).cmp(&(&other.name, &other.cluster_id)));
    rails
}

fn reclaim_cap(view: &RailsView, capped: u64) -> RailView {
    let cap = view.reclaim_cap_per_million;
    let waiting = view.reclaims_capped;
    RailView {
        name: "reclaim-cap".to_owned(),
        enabled: 0 < cap,
        engaged: 0 < waiting,
        setting: match cap {
            0 => "off".to_owned(),
            cap => format!(
                "{} ‰ of a cluster's configured machines per cycle, at least one",
                f64::from(cap) / 1000.0
            ),
        },
        detail: match waiting {
            0 => String::new(),
            waiting => format!("{waiting} reclaims of the last cycle wait for the next"),
        },
        withheld_total: capped.try_into().unwrap_or(i64::MAX),
        ..RailView::default()
    }
}

fn capped_cluster(view: &RailsView, capped: &CappedView) -> RailView {
    let waiting = capped.machines;
    RailView {
        cluster_id: capped.cluster.to_string(),
        detail: format!(
            "{} to be reclaimed: so many have just left",
            counted(waiting, "machine waits", "machines wait")
        ),
        withheld_total: waiting.try_into().unwrap_or(i64::MAX),
        reports: waiting.try_into().unwrap_or(i64::MAX),
        since_unix_nanos: unix_nanos(capped.since),
        ..reclaim_cap(view, waiting)
    }
}

fn guard(view: &RailsView) -> RailView {
    let held = view.held.len();
    RailView {
        name: "rollup-guard".to_owned(),
        enabled: view.roll_up_guard,
        engaged: 0 < held,
        setting: if view.roll_up_guard {
            "a roll-up that looks like a mistake is held until it was said three times in 20 s or more"
                .to_owned()
        } else {
            "off".to_owned()
        },
        detail: match held {
            0 => String::new(),
            held => {
                let clusters = counted(held, "cluster", "clusters");
                format!("the last roll-up of {clusters} is held")
            }
        },
        ..RailView::default()
    }
}

fn held_rollup(view: &RailsView, held: &HeldView) -> RailView {
    let (reports, why) = (held.reports, &held.why);
    RailView {
        cluster_id: held.cluster.to_string(),
        engaged: true,
        detail: format!(
            "{} held; its earlier demand stays in force: {why}",
            counted(reports, "roll-up is", "roll-ups in a row are")
        ),
        withheld_total: reports.into(),
        reports: reports.into(),
        since_unix_nanos: unix_nanos(held.since),
        ..guard(view)
    }
}

fn sweep(view: &RailsView) -> RailView {
    RailView {
        name: "removal-sweep".to_owned(),
        enabled: true,
        engaged: 0 < view.removals_held,
        setting: "1 % of the machines may be gone at once; more must be missing from 3 Lists"
            .to_owned(),
        detail: match view.removals_held {
            0 => String::new(),
            held => {
                let missing = counted(held, "machine is", "machines are");
                format!("{missing} kept that the last List did not have")
            }
        },
        withheld_total: i64::try_from(view.removals_held).unwrap_or(i64::MAX),
        ..RailView::default()
    }
}

fn bootstrap(backoff: &BackoffView, now: Time) -> RailView {
    RailView {
        name: format!("{}-breaker", backoff.step.word()),
        cluster_id: backoff.cluster.to_string(),
        enabled: true,
        engaged: true,
        setting:
            "10 s after a failure, doubling to 10 min; from the third on one machine at a time"
                .to_owned(),
        detail: shortfall_text::backoff(backoff, now),
        reports: backoff.breaker.failures.into(),
        since_unix_nanos: unix_nanos(backoff.breaker.since),
        ..RailView::default()
    }
}

/// The pauses in force as readers see them, oldest first.
pub(crate) fn pauses(view: &RailsView, info: &ShardInfo) -> Vec<PauseView> {
    let mut pauses: Vec<PauseView> = view
        .pauses
        .iter()
        .map(|pause| pause_view(pause, info))
        .collect();
    if view.fenced {
        pauses.push(PauseView {
            pause_id: "fenced".to_owned(),
            scope: Some(scope_message(&Scope::All, info)),
            origin: PauseOrigin::Fenced.into(),
            reason: "a provider refused a token as old: another process runs this shard".to_owned(),
            ..PauseView::default()
        });
    }
    if let Some((seen, own)) = view.twin {
        pauses.push(PauseView {
            pause_id: "twin".to_owned(),
            scope: Some(scope_message(&Scope::All, info)),
            origin: PauseOrigin::Fenced.into(),
            reason: twin_text(seen, own),
            ..PauseView::default()
        });
    }
    if let Some(what) = &view.incident {
        pauses.push(PauseView {
            pause_id: "incident".to_owned(),
            scope: Some(scope_message(&Scope::All, info)),
            origin: PauseOrigin::Fenced.into(),
            reason: format!("something happened that cannot: {what}; restart the shard"),
            ..PauseView::default()
        });
    }
    pauses.sort_by(|one, other| {
        (one.started_unix_nanos, &one.pause_id).cmp(&(other.started_unix_nanos, &other.pause_id))
    });
    pauses
}

fn pause_view(pause: &Pause, info: &ShardInfo) -> PauseView {
    let origin = match pause.by {
        PausedBy::Admin => PauseOrigin::Admin,
        PausedBy::Configuration if info.flag_pauses && pause.scope == Scope::All => {
            PauseOrigin::Flag
        }
        PausedBy::Configuration => PauseOrigin::File,
    };
    PauseView {
        pause_id: pause_id(pause.by, &pause.scope),
        scope: Some(scope_message(&pause.scope, info)),
        origin: origin.into(),
        requested_by: pause.note.requested_by.clone(),
        reason: pause.note.reason.clone(),
        started_unix_nanos: unix_nanos(pause.since),
        expires_unix_nanos: pause.until.map_or(0, unix_nanos),
        withheld_total: pause.withheld.try_into().unwrap_or(i64::MAX),
    }
}

/// There is one pause per layer and scope, so these name it: the same before and after a restart.
pub(crate) fn pause_id(by: PausedBy, scope: &Scope) -> String {
    let layer = match by {
        PausedBy::Admin => "admin",
        PausedBy::Configuration => "config",
    };
    match scope {
        Scope::All => format!("{layer}:all"),
        Scope::Cluster(id) => format!("{layer}:cluster:{id}"),
        Scope::Provider(name) => format!("{layer}:provider:{name}"),
    }
}

/// A scope as the wire has it: people know the provider by its address.
pub(crate) fn scope_message(scope: &Scope, info: &ShardInfo) -> PauseScope {
    let scope = match scope {
        Scope::All => pause_scope::Scope::All(pause_scope::All {}),
        Scope::Cluster(id) => pause_scope::Scope::ClusterId(id.to_string()),
        Scope::Provider(name) if *name == info.provider => {
            pause_scope::Scope::ProviderAddress(info.provider_address.clone())
        }
        Scope::Provider(name) => pause_scope::Scope::ProviderAddress(name.clone()),
    };
    PauseScope { scope: Some(scope) }
}

fn breakers(view: &RailsView, info: &ShardInfo) -> Vec<BreakerView> {
    let breakers = view.breakers.iter();
    breakers
        .map(|breaker| BreakerView {
            provider_address: info.provider_address.clone(),
            instance_type: breaker.pool.instance_type.clone(),
            zone: breaker.pool.zone.clone(),
            failures: count(breaker.breaker.failures as usize),
            retry_unix_nanos: unix_nanos(breaker.breaker.until),
            last_error: breaker.breaker.last_error.clone(),
            since_unix_nanos: unix_nanos(breaker.breaker.since),
        })
        .collect()
}
