//! The hop `need`: what the cluster asks its shard for, of which the request is a part.

use super::{
    account::{Hop, HopName, HopState, Step, Stop, Verdict},
    facts::{NeedSaid, ShardSaid, WhyFacts},
    is_led,
};
use crate::{
    demand::{class::UnitClass, gang::Gang, request::understand},
    objects::{Availability, RequestFacts, RequestSpec, RequestStatus},
};
use bigfleet_model::counted;
use std::time::Duration;

/// An operator that runs and has a session has told the shard by then.
const TOLD_WITHIN: Duration = Duration::from_secs(20);
const ASK_THE_SHARD: &str = "`--shard HOST:PORT` asks the shard too, and says what it tried";

/// The name by which a shard knows a Need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeedName {
    /// The text of its profile.
    pub fingerprint: String,
    /// Its group: one of these, as settings of the operator decide.
    pub groups: Vec<String>,
}

/// The Need that a request of this namespace is a part of.
pub fn need_name(namespace: &str, spec: &RequestSpec) -> NeedName {
    let asked = understand(namespace, spec);
    let groups = match &asked.row.gang {
        Gang::Domain { group, .. } | Gang::Host(group) => vec![group.as_str().to_owned()],
        Gang::None => {
            let class = UnitClass::of(&asked.unit).group().as_str().to_owned();
            let mut groups = vec![class, String::new()];
            groups.dedup();
            groups
        }
    };
    NeedName {
        fingerprint: asked.row.profile.fingerprint().as_str().to_owned(),
        groups,
    }
}

/// What is known of the Need.
enum Standing {
    /// Nothing, or that it has all it asks for.
    Quiet,
    /// Something is on its way.
    Coming(String),
    /// Something is missing: why, in a word and a sentence.
    Short(String, String),
}

pub(super) fn step(facts: &WhyFacts, request: &RequestFacts) -> Step {
    let acknowledged = request
        .status
        .as_ref()
        .and_then(|status| status.acknowledged_at);
    let Some(at) = acknowledged else {
        return untold(facts, request);
    };
    let since = Some(at.max(request.created));
    let said = facts.shard.as_ref();
    let hop = |state, sentence: String| {
        let need = said.and_then(|said| said.need.as_ref());
        let object = need.map_or(String::new(), |need| {
            format!("need/{}/{}", need.cluster, need.name)
        });
        Hop::new(HopName::Need, state, sentence).of(object, since)
    };
    match standing(request.status.as_ref(), said) {
        Standing::Quiet => {
            let sentence = match said.and_then(|said| said.need.as_ref()) {
                Some(need) if !need.summary.is_empty() => need.summary.clone(),
                _ => "the shard has it".to_owned(),
            };
            Step::passed(hop(HopState::Done, sentence))
        }
        Standing::Coming(sentence) => Step::passed(hop(HopState::Done, sentence)),
        Standing::Short(word, sentence) => {
            let need = said.and_then(|said| said.need.as_ref());
            let mut stop = Stop::new(Verdict::Stuck, sentence.clone());
            stop.changes = changes(facts, request, &word, need);
            Step::stopped(hop(HopState::Later, sentence), stop)
        }
    }
}

pub(super) fn of_one_with_a_node(facts: &WhyFacts) -> Hop {
    let status = facts.request.as_ref().ok().and_then(Option::as_ref);
    let at = status.and_then(|request| request.status.as_ref()?.acknowledged_at);
    match at {
        Some(at) => Hop::new(HopName::Need, HopState::Done, "the shard has it").of("", Some(at)),
        None => Hop::new(HopName::Need, HopState::NotNeeded, ""),
    }
}

/// Acknowledgement is the word of the operator that the shard has the request.
fn untold(facts: &WhyFacts, request: &RequestFacts) -> Step {
    let hop = Hop::new(HopName::Need, HopState::Later, "the shard was not told yet")
        .of("", Some(request.created));
    let is_late = TOLD_WITHIN <= facts.now.duration_since(request.created);
    let stop = match is_led(&facts.operators, facts.now) {
        Some(false) => Stop::new(
            Verdict::Stuck,
            "nobody tells the shard: no operator has renewed its lease lately",
        )
        .changed_by("whoever runs BigFleet starts `bigfleet operator` for this cluster"),
        _ if is_late => Stop::new(
            Verdict::Stuck,
            "the shard was not told of it: the operator does not run, has no session with the shard, or holds demand back",
        )
        .changed_by("whoever runs BigFleet looks at /readyz and the log of `bigfleet operator`"),
        _ => Stop::new(
            Verdict::Coming,
            "the operator is about to tell the shard, which decides about machines",
        ),
    };
    Step::stopped(hop, stop)
}

/// The condition on the request is about this Pod; the shard's word is about all that are like it.
fn standing(status: Option<&RequestStatus>, said: Option<&ShardSaid>) -> Standing {
    let served = status.and_then(|status| status.served.as_ref());
    if let Some(served) = served.filter(|served| !served.is_served) {
        let sentence = served.message.clone();
        match served.reason.as_str() {
            "Coming" => return Standing::Coming(sentence),
            "Served" => {}
            "Unplaceable" => {
                let sentence = "another Node did not help it, so no more is asked for it";
                return Standing::Short(served.reason.clone(), sentence.to_owned());
            }
            word => return Standing::Short(word.to_owned(), sentence),
        }
    }
    match said {
        None => Standing::Quiet,
        Some(ShardSaid { need: None, .. }) => Standing::Short(
            "NoSuchNeed".to_owned(),
            "the shard that was asked has no Need like it".to_owned(),
        ),
        Some(ShardSaid {
            need: Some(need), ..
        }) if need.is_served => Standing::Quiet,
        Some(ShardSaid {
            need: Some(need), ..
        }) if need.is_coming => Standing::Coming(need.summary.clone()),
        Some(ShardSaid {
            need: Some(need), ..
        }) => {
            let why = need.causes.first().unwrap_or(&need.summary);
            Standing::Short(String::new(), why.clone())
        }
    }
}

/// What would change that it is short: what the shard tried, or else what such a word means.
fn changes(
    facts: &WhyFacts,
    request: &RequestFacts,
    word: &str,
    need: Option<&NeedSaid>,
) -> Vec<String> {
    let mut changes: Vec<String> = need.map_or_else(Vec::new, |need| need.changes.clone());
    let usual = match word {
        "NoMatchingSupply" => Some(
            "smaller requests or other labels (nodeSelector, affinity) that some machine offers; or whoever runs BigFleet \
             adds such machines",
        ),
        "PriorityStarved" => Some(
            "a PriorityClass of higher value, or others that end: what is there goes to them first",
        ),
        "PreemptionExhausted" => Some(
            "others that end: those of lower priority that could make room do not have enough of it",
        ),
        "TopologyUnsatisfiable" => Some(
            "fewer or smaller Pods that must share a domain, such as a zone: no single one has room for all of them",
        ),
        "SpreadUnsatisfiable" => Some(
            "a larger maxSkew, or whenUnsatisfiable: ScheduleAnyway: one of the domains has no machine to give",
        ),
        "ProviderBackoff" => {
            Some("time: the provider refuses such machines, and is asked again by itself")
        }
        "ActuationPaused" => Some(
            "whoever paused changes to machines ends it: `bigfleet get pauses`, `bigfleet resume`",
        ),
        "Stuck" => Some(
            "whoever runs BigFleet looks why a machine for it gets no further: `bigfleet get work`",
        ),
        "Unplaceable" => Some(
            "affinity, anti-affinity, volumes or host ports of the Pod: with them no further Node is of use",
        ),
        "NoSuchNeed" => Some("the shard of this cluster: another one was asked"),
        _ => None,
    };
    changes.extend(usual.map(str::to_owned));
    changes.extend(hint(facts, request));
    if facts.shard.is_none() && word != "Unplaceable" {
        changes.push(ASK_THE_SHARD.to_owned());
    }
    changes
}

/// What an AvailableCapacity with the same conditions says could be had.
fn hint(facts: &WhyFacts, request: &RequestFacts) -> Option<String> {
    let wanted = understand(&request.key.namespace, &request.spec);
    let wanted = wanted.row.profile;
    let found = facts.available.as_ref().ok()?.iter().find(|available| {
        let content = &available.content;
        content.availability != Availability::None && content.requirements == wanted.requirements()
    })?;
    let machines = counted(found.content.count, "machine", "machines");
    Some(format!(
        "AvailableCapacity {} says that {machines} with these labels could be had: it is a matter of size or rank",
        found.name
    ))
}
