//! Pause and Resume: nothing leaves for a scope until the pause expires or is lifted (SH-16).
//!
//! A scope has at most one pause of an admin: pausing it again changes until when, why and by whom.
//! What configuration pauses, only configuration lifts. Both are on disk before they are answered, so a
//! pause lasts as long as it was asked for, whatever happens to the process.

use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_shard_core::{Event, Pause, PauseNote, PausedBy, RailsView, Scope};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::{
    PauseOrigin, PauseRequest, PauseResponse, PauseView, ResumeRequest, ResumeResponse,
    resume_request::Target,
};
use tonic::Status;

use super::{Admin, checks};
use crate::read::{all_work, concerns, pause_id, pauses, scope_message};

pub(super) async fn pause(
    admin: &Admin,
    request: &PauseRequest,
    by: &str,
) -> Result<PauseResponse, Status> {
    let scope = checks::scope(request.scope.as_ref(), &admin.info)?;
    checks::reason(&request.reason)?;
    if request.expires_after_seconds < 1 {
        return Err(Status::invalid_argument(format!(
            "expires_after_seconds is {}; it must be at least 1, since a remote pause expires",
            request.expires_after_seconds
        )));
    }
    if let Scope::Cluster(id) = &scope {
        let asked = id.clone();
        let known = admin
            .hub
            .ask(move |core| core.cluster_view(&asked).is_some());
        if !known.await? {
            let why = format!("scope.cluster_id {id} is not known to this shard");
            return Err(Status::not_found(why));
        }
    }
    let now = admin.info.now();
    let until = now + Duration::from_secs(request.expires_after_seconds.unsigned_abs());
    let note = PauseNote {
        requested_by: by.to_owned(),
        reason: request.reason.clone(),
    };
    let work = all_work(&admin.hub).await?.into_iter();
    let work_paused = work.filter(|(one, _)| concerns(&scope, one)).count();
    let pause = if request.dry_run {
        PauseView {
            pause_id: pause_id(PausedBy::Admin, &scope),
            scope: Some(scope_message(&scope, &admin.info)),
            origin: PauseOrigin::Admin.into(),
            requested_by: note.requested_by,
            reason: note.reason,
            started_unix_nanos: unix_nanos(now),
            expires_unix_nanos: unix_nanos(until),
            withheld_total: 0,
        }
    } else {
        set(admin, scope, until, note).await?
    };
    Ok(PauseResponse {
        pause: Some(pause),
        work_paused: i32::try_from(work_paused).unwrap_or(i32::MAX),
    })
}

async fn set(
    admin: &Admin,
    scope: Scope,
    until: Time,
    note: PauseNote,
) -> Result<PauseView, Status> {
    let event = Event::Pause {
        by: PausedBy::Admin,
        scope: scope.clone(),
        since: None,
        until: Some(until),
        note,
    };
    let rails = admin.hub.submit_durably(event, |core| core.rails());
    let rails = rails.await?;
    let id = pause_id(PausedBy::Admin, &scope);
    let mut shown = pauses(&rails, &admin.info).into_iter();
    let shown = shown.find(|pause| pause.pause_id == id);
    shown.ok_or_else(|| Status::aborted("the pause ran out before it was answered"))
}

pub(super) async fn resume(
    admin: &Admin,
    request: &ResumeRequest,
) -> Result<ResumeResponse, Status> {
    checks::reason(&request.reason)?;
    let rails = admin.hub.ask(|core| core.rails()).await?;
    let scope = match &request.target {
        None => Err(Status::invalid_argument(
            "target is empty; it must be pause_id or scope",
        )),
        Some(Target::Scope(scope)) => checks::scope(Some(scope), &admin.info),
        Some(Target::PauseId(id)) => named(&rails, id),
    }?;
    let is_meant = |pause: &&Pause| pause.by == PausedBy::Admin && pause.scope == scope;
    let lifted: Vec<Pause> = rails.pauses.iter().filter(is_meant).cloned().collect();
    let lifted = pauses(&only(&rails, lifted), &admin.info);
    let after = if request.dry_run || lifted.is_empty() {
        rails.clone()
    } else {
        let event = Event::Resume {
            by: PausedBy::Admin,
            scope: scope.clone(),
        };
        let rails = admin.hub.submit_durably(event, |core| core.rails());
        rails.await?
    };
    let stays = |pause: &&Pause| {
        let goes = pause.by == PausedBy::Admin && pause.scope == scope;
        !(request.dry_run && goes) && touches(&pause.scope, &scope)
    };
    let remaining = after.pauses.iter().filter(stays).cloned().collect();
    let remaining = RailsView {
        pauses: remaining,
        ..after
    };
    Ok(ResumeResponse {
        lifted,
        remaining: pauses(&remaining, &admin.info),
    })
}

/// The same, with these pauses, and none of its own.
fn only(rails: &RailsView, pauses: Vec<Pause>) -> RailsView {
    RailsView {
        pauses,
        fenced: false,
        twin: None,
        incident: None,
        ..rails.clone()
    }
}

/// The scope of the admin's pause with this id.
fn named(rails: &RailsView, id: &str) -> Result<Scope, Status> {
    let mut pauses = rails.pauses.iter();
    let found = pauses.find(|pause| pause_id(pause.by, &pause.scope) == id);
    match found {
        Some(pause) if pause.by == PausedBy::Admin => Ok(pause.scope.clone()),
        Some(_) => Err(Status::failed_precondition(format!(
            "pause_id {id} was set by configuration, and only configuration lifts it (SH-16)"
        ))),
        None if id == "fenced" && rails.fenced => Err(Status::failed_precondition(
            "a fenced process does not act again; the one that took its info does",
        )),
        None if id == "twin" && rails.twin.is_some() => Err(Status::failed_precondition(
            "the provider's records show a higher epoch of this shard; see --epoch-floor",
        )),
        None if id == "incident" && rails.incident.is_some() => Err(Status::failed_precondition(
            "a shard that stopped itself after an incident acts again after a restart",
        )),
        None => Err(Status::not_found(format!(
            "pause_id \"{}\" is not in force",
            bigfleet_model::shown(id)
        ))),
    }
}

/// Whether two scopes have something in common. A shard has one provider.
fn touches(one: &Scope, other: &Scope) -> bool {
    match (one, other) {
        (Scope::Cluster(one), Scope::Cluster(other)) => one == other,
        (Scope::All | Scope::Provider(_), _) | (_, Scope::All | Scope::Provider(_)) => true,
    }
}
