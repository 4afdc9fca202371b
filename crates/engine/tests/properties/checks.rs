//! The properties, each stated anew from the machines and the decision alone.

use bigfleet_model::{
    Action, ActionKind, Amounts, Claim, Decision, Fleet, Leaving, Machine, MachineId, Need, Reason,
    State, Verdict,
};
use std::collections::BTreeSet;

fn machine<'a>(fleet: &'a Fleet, id: &MachineId) -> &'a Machine {
    &fleet.machines[id].machine
}

fn can_use(need: &Need, machine: &Machine) -> bool {
    machine
        .shape()
        .serves(&need.row.profile, &need.row.min_unit)
}

/// What a machine counts with for a Need: units as long as one more fits, and the rest of other kinds
/// (RF-19).
fn credit(need: &Need, machine: &Machine) -> Amounts {
    let (all, unit) = (machine.shape().effective(), &need.row.min_unit);
    if !need.row.whole_units {
        return all.clone();
    }
    let mut units = Amounts::NONE;
    while all.covers(&units.add(unit)) {
        units = units.add(unit);
    }
    let others = all.iter().filter(|(name, _)| unit.get(name.as_str()) == 0);
    units.add(&Amounts::from_entries(
        others.map(|(name, milli)| (name.clone(), milli)),
    ))
}

fn total<'a>(
    fleet: &'a Fleet,
    need: &Need,
    ids: impl IntoIterator<Item = &'a MachineId>,
) -> Amounts {
    let add = |sum: Amounts, id: &MachineId| sum.add(&credit(need, machine(fleet, id)));
    ids.into_iter().fold(Amounts::NONE, add)
}

/// D-5: one action per machine, on machines that are there and at rest, from where it starts.
pub(crate) fn actions_fit_the_machines(fleet: &Fleet, decision: &Decision, seed: u64) {
    let mut seen = BTreeSet::new();
    for action in &decision.actions {
        let Action { machine: id, .. } = action;
        assert!(seen.insert(id), "seed {seed}: two actions on {id}");
        let found = machine(fleet, id);
        let from = match action.kind {
            ActionKind::Bootstrap | ActionKind::Delete => State::Idle,
            ActionKind::Provision => State::Speculative,
            ActionKind::Preempt | ActionKind::Reclaim => State::Configured,
            ActionKind::Restore => State::Draining,
        };
        assert_eq!(found.state(), from, "seed {seed}: {action:?}");
        let claimant = claimant(decision, id);
        let purpose = action.purpose.as_ref().map(|(need, _)| need);
        match action.kind {
            ActionKind::Bootstrap | ActionKind::Provision => {
                assert_eq!(claimant, purpose, "seed {seed}: {action:?}");
                let acquires = fleet.clusters[&purpose.expect("a purpose").cluster].acquire;
                assert!(acquires, "seed {seed}: {action:?} (RF-16)");
                let promised = action.reason == Reason::Promised;
                let available = promised || !fleet.machines[id].unavailable;
                assert!(available, "seed {seed}: {action:?} (RF-17)");
                let stays = fleet.machines[id].leaving.is_none();
                assert!(stays, "seed {seed}: {action:?} (RF-21)");
            }
            ActionKind::Restore => {
                assert_eq!(claimant, purpose, "seed {seed}: {action:?}");
                let to = purpose.map(|need| &need.cluster);
                assert_eq!(found.cluster(), to, "seed {seed}: {action:?} (RF-20)");
                let meant = found.intent().is_some() && !decision.ended_intents.contains(id);
                let leaves = fleet.machines[id].leaving.is_some();
                let reversible = fleet.machines[id].reversible && !meant && !leaves;
                assert!(reversible, "seed {seed}: {action:?} (RF-20)");
                let restamped = decision.restamps.iter().any(|to| to.machine == *id);
                assert!(!restamped, "seed {seed}: {action:?} (RF-20)");
            }
            ActionKind::Preempt => {
                let priority = found.assignment().terms.priority;
                assert!(
                    priority < action.preemptor_priority,
                    "seed {seed}: {action:?}"
                );
                let stays = fleet.machines[id].leaving.is_none();
                assert!(stays, "seed {seed}: {action:?} (RF-21)");
                let is_for = |verdict: &&Verdict| Some(&verdict.need.key()) == purpose;
                let preemptor = decision.needs.iter().find(is_for).expect("a Need");
                assert!(
                    !preemptor.satisfied,
                    "seed {seed}: {action:?} is for one that is served"
                );
            }
            ActionKind::Reclaim | ActionKind::Delete => {
                assert_eq!((claimant, purpose), (None, None), "seed {seed}: {action:?}");
            }
        }
        if action.kind == ActionKind::Reclaim {
            let cluster = found.cluster().expect("a Configured machine has a cluster");
            let ready = fleet.clusters.get(cluster).is_some_and(|known| known.ready);
            let leaving = fleet.machines[id].leaving;
            let may_go = ready || leaving == Some(Leaving::Now);
            assert!(may_go, "seed {seed}: {action:?} (R-1)");
            let reason = if leaving.is_some() {
                Reason::Leaving
            } else {
                Reason::Excess
            };
            assert_eq!(action.reason, reason, "seed {seed}: {action:?} (RF-21)");
        }
        let stays = fleet.machines[id].leaving.is_none();
        let may_go = action.kind != ActionKind::Delete || stays;
        assert!(may_go, "seed {seed}: {action:?} (RF-21)");
    }
}

fn claimant<'a>(decision: &'a Decision, id: &MachineId) -> Option<&'a bigfleet_model::NeedKey> {
    let mut claims = decision.claims.iter();
    let found = claims.find(|claim| claim.machine == *id);
    found.map(|claim| &claim.need)
}

/// D-5: every machine in at most one claim, of use to its Need, a gang's all in one domain.
pub(crate) fn claims_are_of_use(fleet: &Fleet, decision: &Decision, seed: u64) {
    let mut seen = BTreeSet::new();
    for Claim { machine: id, .. } in &decision.claims {
        assert!(seen.insert(id), "seed {seed}: {id} is claimed twice");
    }
    for verdict in &decision.needs {
        let need = &verdict.need;
        let claims = claims_of(decision, need);
        for id in &claims {
            let found = machine(fleet, id);
            assert!(can_use(need, found), "seed {seed}: {id} for {}", need.key());
            let (not_ready, leaving) = (fleet.machines[*id].not_ready, fleet.machines[*id].leaving);
            let unready = not_ready && found.state().is_bound();
            assert!(!unready, "seed {seed}: {id} is not ready");
            let may_count = match leaving {
                None => true,
                Some(Leaving::Soon) => found.state().is_bound(),
                Some(Leaving::Now) => false,
            };
            assert!(may_count, "seed {seed}: {id} leaves {leaving:?} (RF-21)");
            let elsewhere = found.state().is_bound() && found.cluster() != Some(&need.cluster);
            assert!(!elsewhere, "seed {seed}: {id} serves another cluster");
            if let Some(key) = need.row.profile.same_key() {
                let domain = found.shape().attribute(key);
                assert_eq!(
                    domain,
                    Some(verdict.same_domain.as_str()),
                    "seed {seed}: {id}"
                );
            }
        }
    }
}

fn claims_of<'a>(decision: &'a Decision, need: &Need) -> Vec<&'a MachineId> {
    let key = need.key();
    let claims = decision.claims.iter().filter(|claim| claim.need == key);
    claims.map(|claim| &claim.machine).collect()
}

/// D-5: Σ of what claims count with ≥ aggregate ⇔ satisfied. Machines promised in Phase 2 are claimed but
/// do not satisfy (engine.md §22.3 no. 13).
pub(crate) fn verdicts_add_up(fleet: &Fleet, decision: &Decision, seed: u64) {
    let promised = |id: &&MachineId| {
        let found = machine(fleet, id);
        let fresh = found.intent().is_none() || decision.ended_intents.contains(*id);
        let restores =
            |action: &Action| action.kind == ActionKind::Restore && action.machine == **id;
        let restored = decision.actions.iter().any(restores);
        found.state() == State::Draining && fresh && !restored
    };
    for verdict in &decision.needs {
        let need = &verdict.need;
        let claims = claims_of(decision, need);
        assert_eq!(claims.len(), verdict.claimed as usize, "seed {seed}");
        let counted = claims.into_iter().filter(|id| !promised(id));
        let have = total(fleet, need, counted);
        assert_eq!(
            have.covers(&need.row.aggregate),
            verdict.satisfied,
            "seed {seed}"
        );
        assert_eq!(
            need.row.aggregate.sub(&have),
            verdict.residual,
            "seed {seed}"
        );
    }
}

/// Lists by machine id, each machine once.
pub(crate) fn lists_are_in_order(decision: &Decision, seed: u64) {
    let ascend = |ids: Vec<&MachineId>| ids.is_sorted_by(|a, b| a < b);
    let claims = decision.claims.iter().map(|claim| &claim.machine);
    let restamps = decision.restamps.iter().map(|to| &to.machine);
    for ids in [
        claims.collect(),
        restamps.collect(),
        decision.held.iter().collect(),
        decision.ended_intents.iter().collect(),
    ] {
        assert!(ascend(ids), "seed {seed}");
    }
}

/// RF-11: whoever is reclaimed, no Need of its cluster that could use it waits for a machine while
/// what serves it does not cover it; and what is held is at rest, unclaimed and untouched. What leaves `soon`
/// is held for its own Need alone, what leaves `now` for nobody (RF-21).
pub(crate) fn make_before_break(fleet: &Fleet, decision: &Decision, seed: u64) {
    let actions = |kind: ActionKind| decision.actions.iter().filter(move |a| a.kind == kind);
    let preempted: BTreeSet<&MachineId> =
        actions(ActionKind::Preempt).map(|a| &a.machine).collect();
    for action in actions(ActionKind::Reclaim) {
        let going = machine(fleet, &action.machine);
        let leaving = fleet.machines[&action.machine].leaving;
        for verdict in &decision.needs {
            let need = &verdict.need;
            let is_its_own = going.attribution() == Some(need.key());
            if leaving == Some(Leaving::Now) || leaving.is_some() && !is_its_own {
                continue;
            }
            let of_use = going.cluster() == Some(&need.cluster)
                && can_use(need, going)
                && going
                    .shape()
                    .effective()
                    .contributes_to(&need.row.aggregate);
            let serves = |id: &&MachineId| {
                machine(fleet, id).state() == State::Configured && !preempted.contains(*id)
            };
            let claims = claims_of(decision, need);
            let waits = claims.iter().any(|id| !serves(id)) || 0 < verdict.victims_found;
            let covered =
                total(fleet, need, claims.into_iter().filter(serves)).covers(&need.row.aggregate);
            assert!(
                !of_use || !waits || covered,
                "seed {seed}: {} goes while {} waits",
                going.id(),
                need.key()
            );
        }
    }
    for id in &decision.held {
        assert_eq!(machine(fleet, id).state(), State::Configured, "seed {seed}");
        assert_eq!(
            claimant(decision, id),
            None,
            "seed {seed}: {id} is held and claimed"
        );
        let untouched = decision.actions.iter().all(|action| action.machine != *id);
        assert!(untouched, "seed {seed}: {id} is held and acted on");
    }
}

/// RF-21: every machine that is to leave is where the decision says it is: replaced, and then held or gone;
/// not replaced, and then claimed by a Need; or nobody's, and then gone unless its cluster is silent.
pub(crate) fn what_leaves_is_accounted_for(fleet: &Fleet, decision: &Decision, seed: u64) {
    for (id, found) in &fleet.machines {
        let reclaims =
            |action: &Action| action.kind == ActionKind::Reclaim && action.machine == *id;
        let goes = decision.actions.iter().any(reclaims);
        let is_held = decision.held.contains(id);
        let is_claimed = claimant(decision, id).is_some();
        let cluster = found.machine.cluster();
        let is_silent =
            !cluster.is_some_and(|id| fleet.clusters.get(id).is_some_and(|one| one.ready));
        match (found.leaving, found.machine.state()) {
            (Some(Leaving::Now), State::Configured) => {
                assert!(goes && !is_held && !is_claimed, "seed {seed}: {id}");
            }
            (Some(Leaving::Soon), State::Configured) => {
                let ways = [goes, is_held, is_claimed, is_silent && !is_claimed];
                let ways = ways.into_iter().filter(|way| *way).count();
                assert_eq!(ways, 1, "seed {seed}: {id}");
            }
            (Some(_), state) if !state.is_bound() => {
                let ends = found.machine.intent().is_some();
                assert_eq!(
                    decision.ended_intents.contains(id),
                    ends,
                    "seed {seed}: {id}"
                );
                assert!(!is_claimed, "seed {seed}: {id}");
            }
            _ => {}
        }
    }
}
