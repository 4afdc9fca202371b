//! The plan of a drain: what the next cycle would decide if machines were marked, on a copy of the fleet.
//!
//! ```text
//! copy ─▶ decide ─┐
//! copy with marks ─▶ decide ─┴─▶ per machine: its Need, what is taken in its place, or why nothing is
//! ```
//!
//! The engine does not pair machines: it covers Needs. So what a Need claims with the marks and not without is
//! what takes the place of its marked machines, and is shown beside them one by one.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::Engine;
use bigfleet_model::{
    Decision, Fleet, FleetMachine, Leaving, Machine, MachineId, NeedKey, State, Verdict,
};
use bigfleet_wire::v1alpha1::{DrainMachinesResponse, LeavingPhase, MachineDrain};

use crate::hash_key::draw_hash_key;

/// What would be decided with these machines marked.
pub(super) fn plan(
    fleet: &Fleet,
    marked: &BTreeSet<MachineId>,
    word: Leaving,
) -> DrainMachinesResponse {
    let mut engine = Engine::keyed(draw_hash_key());
    engine.load(fleet);
    engine.decide(fleet.now);
    let before = Decided::of(engine.decision());
    for machine in marked.iter().filter_map(|id| fleet.machines.get(id)) {
        let told = FleetMachine {
            leaving: machine.leaving.max(Some(word)),
            ..machine.clone()
        };
        engine.put_machine(&told);
    }
    engine.decide(fleet.now);
    let after = Decided::of(engine.decision());
    let places = Places::of(marked, &before, &after);
    let rows = marked.iter().filter_map(|id| {
        let machine = &fleet.machines.get(id)?.machine;
        Some(row(fleet, machine, word, &before, &after, &places))
    });
    DrainMachinesResponse {
        machines: rows.collect(),
        moved_groups: moved(&before, &after),
    }
}

/// A decision, to look things up in.
struct Decided {
    claimed_by: BTreeMap<MachineId, NeedKey>,
    /// By Need, in the order they were claimed.
    claims: BTreeMap<NeedKey, Vec<MachineId>>,
    verdicts: BTreeMap<NeedKey, Verdict>,
}

impl Decided {
    fn of(decision: Decision) -> Self {
        let mut claims: BTreeMap<NeedKey, Vec<MachineId>> = BTreeMap::new();
        let mut claimed_by = BTreeMap::new();
        for claim in decision.claims {
            let of_need = claims.entry(claim.need.clone()).or_default();
            of_need.push(claim.machine.clone());
            claimed_by.insert(claim.machine, claim.need);
        }
        let verdicts = decision.needs.into_iter();
        Self {
            claimed_by,
            claims,
            verdicts: verdicts
                .map(|verdict| (verdict.need.key(), verdict))
                .collect(),
        }
    }

    fn claims(&self, need: &NeedKey) -> &[MachineId] {
        self.claims.get(need).map_or(&[], Vec::as_slice)
    }
}

/// What takes whose place.
struct Places(BTreeMap<MachineId, Vec<MachineId>>);

impl Places {
    fn of(marked: &BTreeSet<MachineId>, before: &Decided, after: &Decided) -> Self {
        let mut leaving: BTreeMap<&NeedKey, Vec<&MachineId>> = BTreeMap::new();
        for id in marked {
            let need = before.claimed_by.get(id);
            if let Some(need) = need.filter(|_| !after.claimed_by.contains_key(id)) {
                leaving.entry(need).or_default().push(id);
            }
        }
        let mut places: BTreeMap<MachineId, Vec<MachineId>> = BTreeMap::new();
        for (need, leaving) in leaving {
            let had: BTreeSet<&MachineId> = before.claims(need).iter().collect();
            let new = after.claims(need).iter().filter(|id| !had.contains(id));
            for (at, new) in new.enumerate() {
                let place = leaving[at % leaving.len()];
                let taken = places.entry(place.clone()).or_default();
                taken.push(new.clone());
            }
        }
        Self(places)
    }

    fn of_machine(&self, id: &MachineId) -> &[MachineId] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

fn row(
    fleet: &Fleet,
    machine: &Machine,
    word: Leaving,
    before: &Decided,
    after: &Decided,
    places: &Places,
) -> MachineDrain {
    let id = machine.id();
    let need = before.claimed_by.get(id);
    let replacements = places.of_machine(id);
    let prices = replacements.iter().filter_map(|id| {
        let price = fleet.machines.get(id)?.machine.price();
        Some(price.dollars_per_hour())
    });
    let (phase, sentence) = outlook(machine, word, need, after, replacements);
    MachineDrain {
        machine_id: id.to_string(),
        phase: phase.into(),
        need_fingerprint: need
            .map(|need| need.fingerprint.to_string())
            .unwrap_or_default(),
        group: need.map(|need| need.group.to_string()).unwrap_or_default(),
        replacement_ids: replacements.iter().map(ToString::to_string).collect(),
        sentence,
        cluster_id: machine
            .cluster()
            .map(ToString::to_string)
            .unwrap_or_default(),
        price_per_hour: price_now(machine),
        replacement_price_per_hour: prices.sum(),
        passed_over: false,
    }
}

/// What a machine costs now; a slot costs nothing yet.
fn price_now(machine: &Machine) -> f64 {
    match machine.state() {
        State::Speculative => 0.0,
        _ => machine.price().dollars_per_hour(),
    }
}

/// Where a machine would be after the next cycle, in words too.
fn outlook(
    machine: &Machine,
    word: Leaving,
    need: Option<&NeedKey>,
    after: &Decided,
    replacements: &[MachineId],
) -> (LeavingPhase, String) {
    let is_short = |need: &NeedKey| {
        let verdict = after.verdicts.get(need);
        verdict.is_some_and(|verdict| !verdict.satisfied)
    };
    match machine.state() {
        State::Draining => {
            let text = "it is being drained already, and is given to nobody afterwards";
            (LeavingPhase::Draining, text.to_owned())
        }
        State::Configuring | State::Configured => match need {
            _ if after.claimed_by.contains_key(machine.id()) => (
                LeavingPhase::NoReplacement,
                format!("nothing free can take its place{}", for_need(need)),
            ),
            Some(need) if word == Leaving::Now && is_short(need) => (
                LeavingPhase::NoReplacement,
                format!(
                    "it is drained at once, and what it serves is then short{}",
                    for_need(Some(need))
                ),
            ),
            Some(_) if replacements.is_empty() => (
                LeavingPhase::ReplacementComing,
                "what it serves is covered without another machine".to_owned(),
            ),
            Some(_) => (
                LeavingPhase::ReplacementComing,
                match replacements {
                    [one] => format!("machine {one} takes its place"),
                    several => format!("{} machines take its place", several.len()),
                },
            ),
            None => (
                LeavingPhase::ReplacementComing,
                "no Need claims it: it is drained as the rails allow".to_owned(),
            ),
        },
        state @ (State::Speculative
        | State::Creating
        | State::Idle
        | State::Deleting
        | State::Failed) => (
            LeavingPhase::Out,
            format!("it is {state} and serves nobody; it is given to nobody from now on"),
        ),
    }
}

fn for_need(need: Option<&NeedKey>) -> String {
    let Some(need) = need else {
        return String::new();
    };
    let NeedKey {
        cluster,
        fingerprint,
        group,
    } = need;
    if group.as_str().is_empty() {
        format!(", for the Need {fingerprint} of cluster {cluster}")
    } else {
        format!(", for gang {group} of cluster {cluster}")
    }
}

/// Gangs whose domain is another one, as `cluster/group`.
fn moved(before: &Decided, after: &Decided) -> Vec<String> {
    let moved = after.verdicts.iter().filter(|(need, verdict)| {
        let was = before.verdicts.get(*need);
        was.is_some_and(|was| {
            let domains = [&was.same_domain, &verdict.same_domain];
            domains.iter().all(|domain| !domain.is_empty()) && domains[0] != domains[1]
        })
    });
    let mut names: Vec<String> = moved
        .map(|(need, _)| format!("{}/{}", need.cluster, need.group))
        .collect();
    names.dedup();
    names
}
