//! Candidates: every machine of the fleet, and what became of it for one Need.

use crate::table;
use bigfleet_model::{
    Decision, Fleet, FleetMachine, MachineId, Need, NeedKey, Operator, Requirement, Shape, State,
    Verdict, quantity::format_milli,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How many machines of a kind are named.
const MOST_NAMED: usize = 5;

/// Machines alike to the Need: of one kind, in one state, with one fate.
#[derive(Debug, Serialize)]
pub(crate) struct Candidates {
    pub(crate) why: String,
    pub(crate) state: &'static str,
    pub(crate) kind: String,
    pub(crate) count: usize,
    pub(crate) machines: Vec<String>,
}

/// Groups the fleet by what became of each machine; what the Need could use comes first.
pub(crate) fn candidates(
    fleet: &Fleet,
    decision: &Decision,
    claims: &BTreeMap<&MachineId, &NeedKey>,
    verdict: &Verdict,
) -> Vec<Candidates> {
    let preempted = decision.actions.iter().filter_map(|action| {
        let (need, _) = action.purpose.as_ref()?;
        (action.kind == bigfleet_model::ActionKind::Preempt).then_some((&action.machine, need))
    });
    let view = View {
        fleet,
        verdict,
        need: &verdict.need,
        key: verdict.need.key(),
        claims,
        preempted: preempted.collect(),
        held: decision.held.iter().collect(),
    };
    let mut groups: BTreeMap<(Rank, String, State, String), Vec<&MachineId>> = BTreeMap::new();
    for held in fleet.machines.values() {
        let (rank, why) = view.fate(held);
        let (state, kind) = (held.machine.state(), kind(held.machine.shape()));
        let group = groups.entry((rank, why, state, kind)).or_default();
        group.push(held.machine.id());
    }
    let one = |((_, why, state, kind), ids): ((Rank, String, State, String), Vec<&MachineId>)| {
        Candidates {
            why,
            state: state.word(),
            kind,
            count: ids.len(),
            machines: ids
                .iter()
                .take(MOST_NAMED)
                .map(ToString::to_string)
                .collect(),
        }
    };
    groups.into_iter().map(one).collect()
}

/// What is worth reading first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Claimed,
    Free,
    Taken,
    Victim,
    Away,
    Unusable,
}

struct View<'a> {
    fleet: &'a Fleet,
    verdict: &'a Verdict,
    need: &'a Need,
    key: NeedKey,
    claims: &'a BTreeMap<&'a MachineId, &'a NeedKey>,
    preempted: BTreeMap<&'a MachineId, &'a NeedKey>,
    held: BTreeSet<&'a MachineId>,
}

impl View<'_> {
    fn fate(&self, held: &FleetMachine) -> (Rank, String) {
        let machine = &held.machine;
        let claimant = self.claims.get(machine.id());
        if claimant.is_some_and(|need| **need == self.key) {
            let own = machine.attribution().is_some_and(|need| need == self.key);
            let why = if own { "claimed, its own" } else { "claimed" };
            return (Rank::Claimed, why.to_owned());
        }
        if let Some(why) = self.unusable(machine.shape()) {
            return (Rank::Unusable, why);
        }
        if let Some(need) = self.preempted.get(machine.id()) {
            return (Rank::Taken, format!("preempted for {need}"));
        }
        if let Some(need) = claimant {
            return self.claimed_by(need, held);
        }
        if let Some(intent) = machine.intent() {
            return (Rank::Taken, format!("promised to {}", intent.need));
        }
        self.unclaimed(held)
    }

    /// Which requirement, or which dimension, rules the shape out (RM-3, RF-3).
    fn unusable(&self, shape: &Shape) -> Option<String> {
        let requirements = self.need.row.profile.requirements().iter();
        for requirement in requirements {
            let attribute = shape.attribute(requirement.key());
            if !requirement.accepts(attribute) {
                let is = attribute.map_or("absent".to_owned(), |value| format!("\"{value}\""));
                return Some(format!("requires {}, it is {is}", spelled(requirement)));
            }
        }
        for (name, wanted) in self.need.row.min_unit.iter() {
            let offered = shape.effective().get(name.as_str());
            if offered < wanted {
                let (offered, wanted) = (format_milli(offered), format_milli(wanted));
                let why = format!("{name} {offered} is below the smallest unit of {wanted}");
                return Some(why);
            }
        }
        let useful = shape.effective().contributes_to(&self.need.row.aggregate);
        (!useful).then(|| "offers nothing that is asked for".to_owned())
    }

    fn claimed_by(&self, need: &NeedKey, held: &FleetMachine) -> (Rank, String) {
        let rank = match held.machine.state() {
            State::Configured => Rank::Victim,
            _ => Rank::Taken,
        };
        (rank, format!("claimed by {need}"))
    }

    fn unclaimed(&self, held: &FleetMachine) -> (Rank, String) {
        let machine = &held.machine;
        let same_cluster = machine.cluster() == Some(&self.need.cluster);
        let cluster = machine.cluster().map_or("nobody", |id| id.as_str());
        let (rank, why) = match machine.state() {
            State::Configured | State::Configuring if same_cluster && held.not_ready => {
                (Rank::Away, "its node is not ready".to_owned())
            }
            State::Configured if same_cluster && self.held.contains(machine.id()) => {
                (Rank::Free, "held until a replacement serves".to_owned())
            }
            State::Configured | State::Configuring if same_cluster => (Rank::Free, self.free(held)),
            State::Configuring => (Rank::Away, format!("on its way to {cluster}")),
            State::Configured => {
                let (theirs, ours) = (machine.terms().priority, self.need.row.profile.priority());
                let below = if theirs < ours { "below" } else { "not below" };
                let why = format!("serves {cluster} at priority {theirs}, {below} {ours}");
                (Rank::Victim, why)
            }
            State::Idle | State::Creating | State::Speculative => (Rank::Free, self.free(held)),
            State::Draining => (Rank::Away, format!("draining from {cluster}")),
            State::Deleting => (Rank::Away, "being deleted".to_owned()),
            State::Failed => (Rank::Away, "failed".to_owned()),
        };
        (rank, why)
    }

    /// Why a machine that nobody has was left.
    fn free(&self, held: &FleetMachine) -> String {
        let (shape, state) = (held.machine.shape(), held.machine.state());
        let profile = &self.need.row.profile;
        let cluster = self.fleet.clusters.get(&self.need.cluster);
        let domain = profile.same_key().and_then(|key| shape.attribute(key));
        let elsewhere = domain.is_some_and(|value| value != self.verdict.same_domain);
        let why = if held.unavailable && !state.is_bound() {
            "unavailable now"
        } else if profile.same_key().is_some() && elsewhere {
            return format!("outside of the domain \"{}\"", self.verdict.same_domain);
        } else if self.verdict.satisfied {
            "not needed"
        } else if !state.is_bound() && cluster.is_some_and(|cluster| !cluster.acquire) {
            "the cluster may not acquire"
        } else if !state.is_bound() && self.verdict.parked {
            "acquisition is parked"
        } else if profile.hard_spreads().next().is_some() {
            "the spread does not allow it"
        } else if profile.same_key().is_some() && state == State::Speculative {
            "not bought for a gang that cannot be completed"
        } else {
            "not taken"
        };
        why.to_owned()
    }
}

fn spelled(requirement: &Requirement) -> String {
    let (key, word) = (requirement.key(), requirement.operator().word());
    match requirement.operator() {
        Operator::In | Operator::NotIn | Operator::Same if !requirement.values().is_empty() => {
            format!("{key} {word} {}", requirement.values().join(","))
        }
        _ => format!("{key} {word}"),
    }
}

fn kind(shape: &Shape) -> String {
    let parts = [
        shape.instance_type.clone(),
        shape.zone.clone(),
        table::amounts(shape.effective()),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}
