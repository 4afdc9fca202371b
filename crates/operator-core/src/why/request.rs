//! The hop `request`: the CapacityRequest that the pod controller makes of a Pod.

use super::{
    account::{Hop, HopName, HopState, Step, Stop, Verdict},
    facts::{NotRead, WhyFacts},
    is_led,
};
use crate::objects::{LabelRule, RequestFacts, RequestSpec};
use std::time::Duration;

/// A pod controller that runs has made a request by then.
const MADE_WITHIN: Duration = Duration::from_secs(15);

pub(super) fn step(facts: &WhyFacts) -> Step {
    match &facts.request {
        Ok(Some(request)) => Step::passed(hop(facts, request)),
        Ok(None) => missing(facts),
        Err(why) => not_read(why),
    }
}

pub(super) fn of_one_with_a_node(facts: &WhyFacts) -> Hop {
    let without = |state, sentence: &str| Hop::new(HopName::Request, state, sentence);
    match &facts.request {
        Ok(Some(request)) => hop(facts, request),
        Ok(None) => without(
            HopState::NotNeeded,
            "it has none, so BigFleet does not keep a Node for it",
        ),
        Err(NotRead::NotServed) => without(HopState::NotNeeded, "BigFleet is not installed here"),
        Err(why) => Hop::new(HopName::Request, HopState::Unknown, said(why)),
    }
}

fn hop(facts: &WhyFacts, request: &RequestFacts) -> Hop {
    let object = format!("capacityrequest/{}", request.key.name);
    let sentence = format!("it asks for {}", asks(&request.spec));
    let since = Some(request.created.max(facts.pod.created));
    Hop::new(HopName::Request, HopState::Done, sentence).of(object, since)
}

fn missing(facts: &WhyFacts) -> Step {
    let hop = Hop::new(HopName::Request, HopState::Later, "there is none")
        .of("", Some(facts.pod.created));
    if facts.now.duration_since(facts.pod.created) < MADE_WITHIN {
        let sentence = "its CapacityRequest, by which BigFleet hears of it, is not made yet";
        return Step::stopped(hop, Stop::new(Verdict::Coming, sentence));
    }
    let (why, change) = match is_led(&facts.pod_controllers, facts.now) {
        Some(true) => (
            "though a pod controller runs",
            "whoever runs BigFleet looks at the log of the pod controller, and at its --ignore-namespaces",
        ),
        Some(false) => (
            "and no pod controller, which makes them, has renewed its lease lately",
            "whoever runs BigFleet starts `bigfleet pod-controller` for this cluster",
        ),
        None => (
            "and whether a pod controller, which makes them, runs cannot be seen",
            "whoever runs BigFleet sees whether `bigfleet pod-controller` runs for this cluster",
        ),
    };
    let sentence = format!("BigFleet does not know of it: it has no CapacityRequest, {why}");
    Step::stopped(hop, Stop::new(Verdict::Stuck, sentence).changed_by(change))
}

fn not_read(why: &NotRead) -> Step {
    if *why == NotRead::NotServed {
        let hop = Hop::new(HopName::Request, HopState::Later, "there are none here");
        let sentence =
            "BigFleet is not installed in this cluster: it does not know CapacityRequests";
        let stop = Stop::new(Verdict::Stuck, sentence).changed_by(
            "whoever runs the cluster installs BigFleet, or adds a Node that could hold the Pod",
        );
        return Step::stopped(hop, stop);
    }
    let hop = Hop::new(HopName::Request, HopState::Unknown, said(why));
    let sentence = format!("how far it is cannot be told: {}", said(why));
    let stop = Stop::new(Verdict::Unknown, sentence).changed_by(
        "get, list on capacityrequests.bigfleet.lucy.sh in its namespace let you see it",
    );
    Step::stopped(hop, stop)
}

/// Why something was not read, as a sentence.
pub(super) fn said(why: &NotRead) -> String {
    match why {
        NotRead::NotServed => "this cluster does not know such objects".to_owned(),
        NotRead::Forbidden(said) => format!("you may not read it: {said}"),
        NotRead::Failed(said) => format!("it could not be read: {said}"),
    }
}

/// What a request asks for, in one line.
fn asks(spec: &RequestSpec) -> String {
    let amounts: Vec<String> = spec
        .resources
        .iter()
        .map(|(name, amount)| format!("{amount} {name}"))
        .collect();
    let mut text = if amounts.is_empty() {
        "nothing in particular".to_owned()
    } else {
        amounts.join(", ")
    };
    let rules: Vec<String> = spec.requirements.iter().map(rule).collect();
    if !rules.is_empty() {
        text += &format!("; {}", rules.join(", "));
    }
    if let Some(together) = &spec.co_location {
        text += &format!("; with others in one {}", together.topology_key);
    }
    for apart in &spec.anti_affinity {
        text += &format!("; apart from others by {}", apart.topology_key);
    }
    for spread in &spec.topology_spread {
        text += &format!("; spread over {}", spread.topology_key);
    }
    format!("{text}; priority {}", spec.priority)
}

fn rule(rule: &LabelRule) -> String {
    let values = rule.values.join(", ");
    match (rule.operator.as_str(), rule.values.as_slice()) {
        ("In", [one]) => format!("{}={one}", rule.key),
        (operator, []) => format!("{} {operator}", rule.key),
        (operator, _) => format!("{} {operator} ({values})", rule.key),
    }
}
