//! The hop `machine`: machines on their way that could hold the Pod. None is promised to it: the scheduler decides.

use super::{
    account::{Hop, HopName, HopState, Step, Stop, Verdict},
    facts::WhyFacts,
    request::said,
};
use crate::{
    demand::request::{Asked, understand},
    objects::{NodeReadiness, Phase, RequestFacts, UpcomingFacts},
};
use bigfleet_model::{Operator, counted};
use std::{cmp::Reverse, time::Duration};

/// A shard that has a machine to give has begun by then.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);

pub(super) fn step(facts: &WhyFacts, request: &RequestFacts) -> Step {
    let could = match could_hold(facts, request) {
        Ok(could) => could,
        Err(why) => {
            let hop = Hop::new(HopName::Machine, HopState::Unknown, why.clone());
            let sentence = format!("whether a machine is on its way to it cannot be told: {why}");
            let stop = Stop::new(Verdict::Unknown, sentence)
                .changed_by("get, list on upcomingnodes.bigfleet.lucy.sh let you see it");
            return Step::stopped(hop, stop);
        }
    };
    let coming: Vec<&UpcomingFacts> = could.iter().copied().filter(|it| is_coming(it)).collect();
    if let Some(first) = coming.first() {
        let how_far = how_far(first);
        let mut sentence = match coming.len() {
            1 => how_far.to_owned(),
            more => {
                let machines = counted(more, "machine", "machines");
                format!(
                    "{machines} that could hold it are on their way; the one that is furthest {how_far}"
                )
            }
        };
        if let Some(asked) = facts.shard.as_ref().and_then(|said| said.machine.as_ref()) {
            sentence += &format!("; the shard says: {asked}");
        }
        let hop = hop(first, HopState::Later, sentence);
        let stop = Stop::new(
            Verdict::Coming,
            format!("a machine that could hold it {how_far}"),
        );
        return Step::stopped(hop, stop);
    }
    if let Some(ready) = could.iter().find(|it| it.content.phase == Phase::Ready) {
        return Step::passed(hop(ready, HopState::Done, "it serves"));
    }
    none(facts, request, &could)
}

fn none(facts: &WhyFacts, request: &RequestFacts, could: &[&UpcomingFacts]) -> Step {
    let hop = Hop::new(
        HopName::Machine,
        HopState::Later,
        "none that could hold it is on its way",
    );
    let status = request.status.as_ref();
    let word = status.and_then(|status| status.served.as_ref());
    if let Some(word) = word.filter(|word| !word.is_served && word.reason == "Coming") {
        return Step::stopped(hop, Stop::new(Verdict::Coming, word.message.clone()));
    }
    if let Some(failed) = could.iter().find(|it| it.content.phase == Phase::Failed) {
        let why = match failed.content.last_error.as_str() {
            "" => "and did not say why",
            why => why,
        };
        let sentence = format!("a machine for it failed: {why}");
        let hop = self::hop(failed, HopState::Later, sentence.clone());
        let stop = Stop::new(Verdict::Stuck, sentence).changed_by(
            "whoever runs BigFleet looks at the machine; the shard tries another where it can",
        );
        return Step::stopped(hop, stop);
    }
    let told = status.and_then(|status| status.acknowledged_at);
    let is_new = told.is_some_and(|at| facts.now.duration_since(at) < BEGUN_WITHIN);
    let stop = if is_new {
        let sentence = "the shard has heard of it and no machine is on its way yet";
        Stop::new(Verdict::Coming, sentence)
    } else {
        let sentence =
            "no machine that could hold it is on its way, and the shard has not said why";
        Stop::new(Verdict::Stuck, sentence).changed_by(
            "`--shard HOST:PORT` asks the shard why; `kubectl get upn` shows all machines",
        )
    };
    Step::stopped(hop, stop)
}

pub(super) fn of_one_with_a_node(facts: &WhyFacts) -> Hop {
    let node = &facts.pod.facts.node_name;
    let without = |state, sentence: String| Hop::new(HopName::Machine, state, sentence);
    match &facts.upcoming {
        Err(why) => without(HopState::Unknown, said(why)),
        Ok(upcoming) => match upcoming.iter().find(|it| it.content.node_name == *node) {
            Some(machine) => hop(machine, HopState::Done, how_far(machine)),
            None => without(
                HopState::NotNeeded,
                "its Node is none that BigFleet brought".to_owned(),
            ),
        },
    }
}

/// The machine that a shard can be asked about.
pub fn machine_to_ask(facts: &WhyFacts) -> Option<String> {
    let request = facts.request.as_ref().ok()?.as_ref()?;
    let could = could_hold(facts, request).ok()?;
    could.into_iter().find(|it| is_coming(it))?.machine.clone()
}

/// The Node that is worth reading: the Pod's own, or one the scheduler could take.
pub fn node_to_read(facts: &WhyFacts) -> Option<String> {
    let own = [&facts.pod.facts.node_name, &facts.pod.nominated];
    if let Some(own) = own.into_iter().find(|name| !name.is_empty()) {
        return Some(own.clone());
    }
    let request = facts.request.as_ref().ok()?.as_ref()?;
    let could = could_hold(facts, request).ok()?;
    let is_ready =
        |it: &&UpcomingFacts| it.content.phase == Phase::Ready && !it.content.node_name.is_empty();
    Some(could.into_iter().find(is_ready)?.content.node_name.clone())
}

/// Machines with the right labels and enough room, those that are furthest first.
fn could_hold<'a>(
    facts: &'a WhyFacts,
    request: &RequestFacts,
) -> Result<Vec<&'a UpcomingFacts>, String> {
    let upcoming = facts.upcoming.as_ref().map_err(said)?;
    let asked = understand(&request.key.namespace, &request.spec);
    let mut could: Vec<&UpcomingFacts> = upcoming
        .iter()
        .filter(|upcoming| fits(upcoming, &asked))
        .collect();
    could.sort_by_key(|it| (Reverse(it.content.phase), it.content.started, &it.name));
    Ok(could)
}

/// Whether it could hold the Pod. What an UpcomingNode does not say is not held against it.
fn fits(upcoming: &UpcomingFacts, asked: &Asked) -> bool {
    let content = &upcoming.content;
    let rules = asked.row.profile.requirements().iter();
    let mut rules = rules.filter(|rule| rule.operator() != Operator::Same);
    let has_room = content.resources.is_zero() || content.resources.covers(&asked.unit);
    let has_labels = content.labels.is_empty()
        || rules.all(|rule| rule.accepts(content.labels.get(rule.key()).map(String::as_str)));
    has_room && has_labels
}

fn is_coming(upcoming: &UpcomingFacts) -> bool {
    let is_there = upcoming.content.readiness == Some(NodeReadiness::Ready);
    match upcoming.content.phase {
        Phase::Provisioning | Phase::Launched | Phase::Registered => true,
        Phase::Ready => !is_there,
        Phase::Draining | Phase::Drained | Phase::Failed => false,
    }
}

/// How far it is, as the rest of a sentence about it.
fn how_far(upcoming: &UpcomingFacts) -> &'static str {
    match (upcoming.content.phase, upcoming.content.readiness) {
        (Phase::Provisioning, _) => "is being made",
        (Phase::Launched, _) => "runs, and is not given to this cluster yet",
        (Phase::Registered, _) => "is joining the cluster",
        (Phase::Ready, Some(NodeReadiness::Ready)) => "serves",
        (Phase::Ready, Some(NodeReadiness::NotReady)) => "has joined, and its Node is not Ready",
        (Phase::Ready, Some(NodeReadiness::Ambiguous)) => {
            "has joined, and more than one Node could be it"
        }
        (Phase::Ready, Some(NodeReadiness::NoNode) | None) => {
            "is set up, and its Node is not there yet"
        }
        (Phase::Draining | Phase::Drained, _) => "is being taken away",
        (Phase::Failed, _) => "has failed",
    }
}

fn hop(upcoming: &UpcomingFacts, state: HopState, sentence: impl Into<String>) -> Hop {
    let object = format!("upcomingnode/{}", upcoming.name);
    Hop::new(HopName::Machine, state, sentence).of(object, upcoming.content.started)
}
