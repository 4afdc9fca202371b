//! Leaving machines in messages: where each stands, and what is in the way, in words (SH-20).

use bigfleet_model::{Leaving, Time};
use bigfleet_shard_core::{LeavingPhase, LeavingSource, LeavingView, LeavingWait, MachineView};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1 as wire;

/// A mark as readers see it.
pub(crate) fn message(view: &MachineView, now: Time) -> Option<wire::MachineLeaving> {
    let leaving = view.leaving.as_ref()?;
    let replacements = leaving.replacements.iter();
    Some(wire::MachineLeaving {
        word: leaving.word.word().to_owned(),
        source: leaving.source.word().to_owned(),
        reason: leaving.reason.clone(),
        since_unix_nanos: unix_nanos(leaving.since),
        deadline_unix_nanos: leaving.deadline.map_or(0, unix_nanos),
        phase: phase(leaving.phase).into(),
        phase_since_unix_nanos: leaving.phase_since.map_or(0, unix_nanos),
        requested_by: leaving.by.clone(),
        replacement_ids: replacements.map(ToString::to_string).collect(),
        sentence: sentence(view, leaving, now),
    })
}

pub(crate) fn phase(phase: LeavingPhase) -> wire::LeavingPhase {
    match phase {
        LeavingPhase::NoReplacement => wire::LeavingPhase::NoReplacement,
        LeavingPhase::ReplacementComing => wire::LeavingPhase::ReplacementComing,
        LeavingPhase::Draining => wire::LeavingPhase::Draining,
        LeavingPhase::Out => wire::LeavingPhase::Out,
    }
}

/// Where a machine stands and what is in the way.
pub(crate) fn sentence(view: &MachineView, leaving: &LeavingView, now: Time) -> String {
    let state = view.machine.state();
    match (leaving.phase, leaving.waits) {
        (LeavingPhase::NoReplacement, _) if leaving.word == Leaving::Now => {
            "it is to leave at once; the next cycle drains it".to_owned()
        }
        (LeavingPhase::NoReplacement, _) if !leaving.is_judged => {
            "the next cycle looks for what can take its place".to_owned()
        }
        (LeavingPhase::NoReplacement, _) => {
            "nothing free can take its place; it serves on until something can".to_owned()
        }
        (LeavingPhase::ReplacementComing, Some(wait)) => waits(wait, now),
        (LeavingPhase::ReplacementComing, None) => match leaving.replacements.as_slice() {
            [] => "its place is taken by machines that are not serving yet".to_owned(),
            [one] => format!("machine {one} is on its way in its place"),
            [one, rest @ ..] => {
                let more = rest.len();
                format!("machine {one} and {more} more are on their way in its place")
            }
        },
        (LeavingPhase::Draining, _) => "it is being drained".to_owned(),
        (LeavingPhase::Out, _) => {
            format!("it is out: {state}, and given to nobody until the mark is lifted")
        }
    }
}

fn waits(wait: LeavingWait, now: Time) -> String {
    let served = "its Need is served without it; ";
    let why = match wait {
        LeavingWait::Paused => "a pause holds it back (bigfleet get pauses)".to_owned(),
        LeavingWait::NoOperator => {
            "it waits for its cluster's operator, which is not connected".to_owned()
        }
        LeavingWait::Blocked(until) => {
            let seconds = until.duration_since(now).as_secs();
            format!(
                "evictions were blocked, likely by a disruption budget; tried again in {seconds} s"
            )
        }
        LeavingWait::ReclaimCap => {
            "it waits for its turn under the reclaim cap (bigfleet get rails)".to_owned()
        }
        LeavingWait::Cycle => "it is drained next".to_owned(),
    };
    format!("{served}{why}")
}

/// What is wrong with a leaving machine, if anything is: past its deadline, or stuck for longer than a while.
pub(crate) fn problem(view: &MachineView, stuck: std::time::Duration, now: Time) -> Option<String> {
    let leaving = view.leaving.as_ref()?;
    let id = view.machine.id();
    if leaving.overdue {
        let said = sentence(view, leaving, now);
        return Some(format!(
            "machine {id} is past the deadline of its drain: {said}"
        ));
    }
    let since = leaving.phase_since?;
    let waits = match leaving.phase {
        LeavingPhase::NoReplacement | LeavingPhase::ReplacementComing => true,
        LeavingPhase::Draining | LeavingPhase::Out => false,
    };
    let is_stuck = waits && stuck < now.duration_since(since);
    is_stuck.then(|| {
        let who = match leaving.source {
            LeavingSource::Admin => "is to leave",
            LeavingSource::Provider => "is announced to be taken away",
        };
        let said = sentence(view, leaving, now);
        format!("machine {id} {who}: {said}")
    })
}
