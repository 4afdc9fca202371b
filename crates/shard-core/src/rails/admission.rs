//! Admission: which of a cycle's actions are committed (SH-2, DC-8).
//!
//! ```text
//! decided, in emission order ─▶ a share for drains ─▶ acquisitions ─▶ more drains ─▶ deletes
//! ```
//!
//! A ramp must not starve the drains it waits for, so those have a share of their own. What is not
//! admitted commits nothing and derives again.

use bigfleet_model::{Action, ActionKind, NeedKey};
use std::collections::BTreeSet;

/// One in so many places is kept for Preempt and Reclaim.
const DRAIN_SHARE: usize = 4;

/// Splits actions into those there is room for and the number of the others. Emission order stays. What only
/// takes something back makes room, and needs none.
pub(crate) fn admit(actions: Vec<Action>, room: usize) -> (Vec<Action>, usize) {
    let undoes = |action: &&Action| action.kind == ActionKind::Restore;
    let room = room.saturating_add(actions.iter().filter(undoes).count());
    if actions.len() <= room {
        return (actions, 0);
    }
    let units = units(&actions);
    let drains: Vec<&Vec<usize>> = units
        .iter()
        .filter(|unit| is_drain(&actions[unit[0]]))
        .collect();
    let others = |delete: bool| {
        let kind = move |unit: &&Vec<usize>, actions: &[Action]| {
            let action = &actions[unit[0]];
            !is_drain(action) && (action.kind == ActionKind::Delete) == delete
        };
        let actions = &actions;
        units.iter().filter(move |unit| kind(unit, actions))
    };
    let mut taken = BTreeSet::new();
    let mut fill = |unit: &Vec<usize>, room: usize| {
        if taken.contains(&unit[0]) || room < taken.len() + unit.len() {
            return;
        }
        taken.extend(unit.iter().copied());
    };
    let share = (room / DRAIN_SHARE).max(room.min(1));
    let restores = actions.iter().enumerate();
    let restores = restores.filter(|(_, action)| undoes(action));
    restores.for_each(|(at, _)| fill(&vec![at], room));
    drains.iter().for_each(|unit| fill(unit, share));
    others(false).for_each(|unit| fill(unit, room));
    drains.iter().for_each(|unit| fill(unit, room));
    others(true).for_each(|unit| fill(unit, room));
    let cut = actions.len() - taken.len();
    let kept = actions.into_iter().enumerate();
    let kept = kept.filter(|(at, _)| taken.contains(at));
    (kept.map(|(_, action)| action).collect(), cut)
}

/// Positions that stand or fall together: the Preempts of one gang, everything else alone.
fn units(actions: &[Action]) -> Vec<Vec<usize>> {
    let mut units: Vec<(Option<&NeedKey>, Vec<usize>)> = Vec::new();
    for (at, action) in actions.iter().enumerate() {
        let gang = gang(action);
        let known = units
            .iter_mut()
            .rev()
            .take_while(|(key, _)| key.is_some())
            .find(|(key, _)| gang.is_some() && *key == gang);
        match known {
            Some((_, unit)) => unit.push(at),
            None => units.push((gang, vec![at])),
        }
    }
    units.into_iter().map(|(_, unit)| unit).collect()
}

/// The gang a Preempt is for.
pub(super) fn gang(action: &Action) -> Option<&NeedKey> {
    let (need, _) = action.purpose.as_ref()?;
    let group = need.group.as_str();
    let is_gang = !group.is_empty() && !group.starts_with("fold:");
    (action.kind == ActionKind::Preempt && is_gang).then_some(need)
}

fn is_drain(action: &Action) -> bool {
    matches!(action.kind, ActionKind::Preempt | ActionKind::Reclaim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{ClusterId, Fingerprint, Group, MachineId, Reason, Terms};

    fn action(text: &str) -> Action {
        let (kind, id) = text.split_once(' ').unwrap();
        let (id, group) = id.split_once('/').unwrap_or((id, ""));
        let kind = [
            ActionKind::Bootstrap,
            ActionKind::Provision,
            ActionKind::Preempt,
            ActionKind::Reclaim,
            ActionKind::Delete,
        ]
        .into_iter()
        .find(|one| one.word() == kind)
        .unwrap();
        let need = NeedKey {
            cluster: ClusterId::new("a").unwrap(),
            fingerprint: Fingerprint::new("f"),
            group: Group::new(group),
        };
        Action {
            kind,
            machine: MachineId::new(id).unwrap(),
            cluster: None,
            purpose: Some((need, Terms::default())),
            grace_seconds: 0,
            preemptor_priority: 0,
            reason: Reason::Idle,
        }
    }

    fn admitted(room: usize, actions: &[&str]) -> (String, usize) {
        let (kept, cut) = admit(actions.iter().map(|text| action(text)).collect(), room);
        let ids: Vec<_> = kept.iter().map(|action| action.machine.as_str()).collect();
        (ids.join(" "), cut)
    }

    #[test]
    fn a_ramp_does_not_starve_drains_and_deletes_come_last() {
        let actions = [
            "Provision p1",
            "Provision p2",
            "Provision p3",
            "Provision p4",
            "Reclaim r1",
            "Reclaim r2",
            "Delete d1",
        ];
        assert_eq!(admitted(4, &actions), ("p1 p2 p3 r1".to_owned(), 3));
        assert_eq!(admitted(6, &actions), ("p1 p2 p3 p4 r1 r2".to_owned(), 1));
        assert_eq!(admitted(0, &actions), (String::new(), 7));
    }

    #[test]
    fn the_preempts_of_a_gang_stand_or_fall_together() {
        let actions = ["Provision p1", "Preempt v1/g", "Preempt v2/g", "Preempt w1"];
        assert_eq!(admitted(2, &actions), ("p1 w1".to_owned(), 2));
        assert_eq!(admitted(3, &actions), ("p1 w1".to_owned(), 2));
        assert_eq!(admitted(4, &actions).1, 0);
    }
}
