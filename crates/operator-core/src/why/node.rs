//! The hop `node`: the Pod is given a Node by the scheduler, and started by its kubelet.

use super::{
    account::{Hop, HopName, HopState, Step, Stop, Verdict},
    facts::WhyFacts,
    pod::scheduler_says,
    request::said,
};
use crate::{
    objects::{NodeFacts, RequestFacts, StuckReason},
    pods::PodPhase,
};
use std::time::Duration;

/// What a container waits for while all is well.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A kubelet that complains for longer than this is not only slow.
const STARTED_WITHIN: Duration = Duration::from_secs(300);
const DESCRIBE: &str =
    "not a matter of machines: `kubectl describe pod` has the Events of the Node's kubelet";

/// A Pod without a Node, though a machine that could hold it serves.
pub(super) fn step(facts: &WhyFacts, request: &RequestFacts) -> Step {
    let (hop, name) = match &facts.node {
        Ok(Some(node)) => (hop(node, HopState::Later), format!("Node {}", node.name)),
        Ok(None) => (
            Hop::new(HopName::Node, HopState::Later, ""),
            "a machine".to_owned(),
        ),
        Err(why) => (
            Hop::new(HopName::Node, HopState::Unknown, said(why)),
            "a machine".to_owned(),
        ),
    };
    let scheduler = facts.pod.facts.unschedulable.as_ref();
    let scheduler = scheduler_says(scheduler.map_or("", |(_, said)| said));
    let could = format!("{name} could hold it by labels and size, and {scheduler}");
    let stuck = request.status.as_ref().and_then(|status| status.stuck);
    let stop = match stuck.map(|stuck| stuck.reason) {
        None => Stop::new(Verdict::Coming, could).changed_by(
            "time: a Pod that finds no Node for 30 s is said to be stuck, and more is asked for it",
        ),
        Some(StuckReason::Insufficient | StuckReason::Alone) => Stop::new(Verdict::Coming, could)
            .changed_by("time: BigFleet asks for one machine more for Pods that stay without room"),
        Some(StuckReason::Other) => Stop::new(Verdict::Stuck, could).changed_by(
            "what the scheduler names: taints, affinity, volumes; another Node would not change it",
        ),
    };
    Step::stopped(hop, stop)
}

/// A Pod that has its Node.
pub(super) fn of_one_with_a_node(facts: &WhyFacts) -> Step {
    let pod = &facts.pod;
    let name = &pod.facts.node_name;
    let object = format!("node/{name}");
    let waits_for = |(word, sentence): &(String, String)| match sentence.as_str() {
        "" => word.clone(),
        sentence => format!("{word} ({sentence})"),
    };
    let here = |sentence: &str| {
        Hop::new(HopName::Node, HopState::Done, sentence).of(object.clone(), pod.scheduled_at)
    };
    if pod.facts.brief.phase == PodPhase::Running {
        let (sentence, since) = match (pod.ready_at, &pod.container) {
            (Some(at), _) => (format!("it runs on Node {name}"), Some(at)),
            (None, Some(container)) => {
                let waits = waits_for(container);
                (
                    format!("it runs on Node {name} and is not Ready: {waits}"),
                    None,
                )
            }
            (None, None) => (format!("it runs on Node {name} and is not Ready yet"), None),
        };
        let hop = here("the Pod runs here");
        let hop = Hop {
            since: since.or(hop.since),
            ..hop
        };
        return Step::stopped(hop, Stop::new(Verdict::Runs, sentence));
    }
    let later = |sentence: &str| Hop {
        state: HopState::Later,
        ..here(sentence)
    };
    match &facts.node {
        Ok(None) => {
            let stop = Stop::new(Verdict::Stuck, format!("its Node {name} is gone")).changed_by(
                "the Pod is removed by the cluster; delete it where that takes too long",
            );
            return Step::stopped(later("it is gone"), stop);
        }
        Ok(Some(node)) if !node.is_ready => {
            let stop = Stop::new(Verdict::Stuck, format!("its Node {name} is not Ready"))
                .changed_by("whoever runs the cluster looks at the Node: `kubectl describe node`");
            let hop = Hop {
                since: Some(node.ready_since),
                ..later("it is not Ready")
            };
            return Step::stopped(hop, stop);
        }
        Ok(Some(_)) | Err(_) => {}
    }
    match &pod.container {
        Some(container) if !STARTING.contains(&container.0.as_str()) => {
            let waits = waits_for(container);
            let sentence =
                format!("it has its Node {name}, and a container does not start: {waits}");
            let stop = Stop::new(Verdict::Stuck, sentence).changed_by(DESCRIBE);
            Step::stopped(later("a container does not start"), stop)
        }
        Some(_) | None => {
            let sentence = format!("it has its Node {name}, which starts its containers");
            let stop = match &pod.warning {
                None => Stop::new(Verdict::Coming, sentence),
                Some(warning) => {
                    let since = pod.scheduled_at.unwrap_or(pod.created);
                    let is_late = STARTED_WITHIN <= facts.now.duration_since(since);
                    let verdict = if is_late {
                        Verdict::Stuck
                    } else {
                        Verdict::Coming
                    };
                    let sentence = format!("{sentence}; its Node says {}", waits_for(warning));
                    Stop::new(verdict, sentence).changed_by(DESCRIBE)
                }
            };
            Step::stopped(later("its containers are being started"), stop)
        }
    }
}

fn hop(node: &NodeFacts, state: HopState) -> Hop {
    let sentence = match (node.is_ready, node.is_cordoned) {
        (true, false) => "it is Ready",
        (true, true) => "it is Ready and cordoned: no Pod is put there",
        (false, _) => "it is not Ready",
    };
    Hop::new(HopName::Node, state, sentence)
        .of(format!("node/{}", node.name), Some(node.ready_since))
}
