//! The hop `pod`: from its creation until its scheduler has looked for a Node.

use super::{
    account::{Hop, HopName, HopState, Step, Stop, Verdict},
    facts::{WaitingPod, WhyFacts},
};
use crate::pods::{PodPhase, is_ignored};
use std::time::Duration;

/// A scheduler that runs has looked at a new Pod by then.
const LOOKED_AT_WITHIN: Duration = Duration::from_secs(30);

/// What is to be looked at further.
pub(super) enum Way {
    /// Nothing: it has ended, or is on its way out.
    Ends(Step),
    /// Nothing: nobody does anything for it before this changes.
    IsHeld(Step),
    /// It has a Node.
    HasNode(Step),
    /// It needs one.
    Waits(Step),
}

pub(super) fn way(facts: &WhyFacts) -> Way {
    let pod = &facts.pod;
    let brief = &pod.facts.brief;
    if let Some(ended) = ended(pod) {
        let hop = hop(pod, HopState::Done, "");
        return Way::Ends(Step::stopped(hop, Stop::new(Verdict::Over, ended)));
    }
    if !pod.facts.node_name.is_empty() {
        let hop = hop(pod, HopState::Done, "it has its Node");
        let since = pod.scheduled_at.or(hop.since);
        return Way::HasNode(Step::passed(Hop { since, ..hop }));
    }
    if !pod.gates.is_empty() {
        let gates = pod.gates.join(", ");
        let stop = Stop::new(
            Verdict::Stuck,
            format!("it is held back by {gates}: nobody looks for a Node before that is gone"),
        )
        .changed_by(format!(
            "whoever set it takes {gates} out of the Pod's spec.schedulingGates"
        ));
        return Way::IsHeld(Step::stopped(
            hop(pod, HopState::Later, "it has scheduling gates"),
            stop,
        ));
    }
    if brief.is_mirror() || brief.is_daemon() {
        let what = if brief.is_mirror() {
            "a static Pod of a kubelet"
        } else {
            "a Pod of a DaemonSet"
        };
        let sentence = format!(
            "it is {what}, which belongs to a Node that is there already; BigFleet brings no machine for it"
        );
        return Way::IsHeld(not_managed(pod, sentence, None));
    }
    if is_ignored(brief) {
        let sentence = "its annotation bigfleet.lucy.sh/ignore keeps BigFleet from it";
        let change = "without the annotation bigfleet.lucy.sh/ignore BigFleet looks for a machine";
        return Way::IsHeld(not_managed(pod, sentence.to_owned(), Some(change)));
    }
    Way::Waits(waits(facts, pod))
}

/// Why it needs no Node any more.
fn ended(pod: &WaitingPod) -> Option<String> {
    let because = match pod.ended_because.as_str() {
        "" => String::new(),
        why => format!(": {why}"),
    };
    match pod.facts.brief.phase {
        PodPhase::Succeeded => Some("it has ended, and well".to_owned()),
        PodPhase::Failed => Some(format!("it has ended, and failed{because}")),
        _ if pod.facts.brief.is_terminating => Some("it is being deleted".to_owned()),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => None,
    }
}

fn waits(facts: &WhyFacts, pod: &WaitingPod) -> Step {
    if !pod.nominated.is_empty() {
        let sentence = format!(
            "the scheduler makes room for it on Node {}: Pods of lower priority have to go first",
            pod.nominated
        );
        let stop = Stop::new(Verdict::Coming, sentence);
        let hop = hop(pod, HopState::Later, "a Node is being cleared for it");
        return Step::stopped(hop, stop);
    }
    if let Some((_, said)) = &pod.facts.unschedulable {
        return Step::passed(hop(pod, HopState::Done, scheduler_says(said)));
    }
    let scheduler = match pod.scheduler.as_str() {
        "" => "the scheduler",
        named => named,
    };
    let sentence = format!("{scheduler} has not looked for a Node for it yet");
    let is_late = LOOKED_AT_WITHIN <= facts.now.duration_since(pod.created);
    let hop = hop(pod, HopState::Later, sentence.clone());
    let stop = if is_late {
        Stop::new(Verdict::Stuck, sentence).changed_by(format!(
            "whoever runs the cluster sees whether {scheduler} runs: a Pod goes nowhere without its scheduler"
        ))
    } else {
        Stop::new(Verdict::Coming, sentence)
    };
    Step::stopped(hop, stop)
}

/// What the scheduler said last, as part of a sentence.
pub(super) fn scheduler_says(said: &str) -> String {
    match said {
        "" => "the scheduler finds no Node for it".to_owned(),
        said => format!("the scheduler finds no Node for it: {said}"),
    }
}

fn not_managed(pod: &WaitingPod, sentence: String, change: Option<&str>) -> Step {
    let mut stop = Stop::new(Verdict::NotManaged, sentence);
    if let Some((_, said)) = &pod.facts.unschedulable {
        stop.sentence = format!("{}; {}", stop.sentence, scheduler_says(said));
    }
    stop.changes.extend(change.map(str::to_owned));
    let seen = "BigFleet does nothing about it";
    Step::stopped(hop(pod, HopState::Later, seen), stop)
}

fn hop(pod: &WaitingPod, state: HopState, sentence: impl Into<String>) -> Hop {
    let object = format!("pod/{}", pod.facts.brief.key.name);
    Hop::new(HopName::Pod, state, sentence).of(object, Some(pod.created))
}
