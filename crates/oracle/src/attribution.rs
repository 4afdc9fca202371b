//! Attribution (RF-1): which Need each machine is committed to, and which intents have ended.
//!
//! ```text
//! as recorded ── names no current row ──▶ its heir, if there is exactly one ──▶ in force
//! ```

use crate::world::{Unit, is_ready, may_acquire};
use bigfleet_model::{Fleet, FleetMachine, Group, Need, NeedKey, Terms};
use std::collections::{BTreeMap, BTreeSet};

/// The folded form of a gang: its identity (RF-12). `None` for a plain row.
pub(crate) fn folded_key(need: &Need) -> Option<NeedKey> {
    need.row.profile.same_key()?;
    Some(NeedKey {
        cluster: need.cluster.clone(),
        fingerprint: need.row.profile.folded().fingerprint().clone(),
        group: folded_group(need),
    })
}

/// The group of the row a gang folds to (RF-12).
pub(crate) fn folded_group(need: &Need) -> Group {
    Group::new(&format!("fold:{}", need.row.aggregate.key()))
}

/// RF-1: the current demand of every cluster, rows as received and the folded forms of its gangs,
/// before folding; with the terms each commits machines on.
fn current_demand(fleet: &Fleet) -> BTreeMap<NeedKey, Terms> {
    let rows = fleet.clusters.values().flat_map(|cluster| cluster.needs());
    let mut current = BTreeMap::new();
    for row in rows {
        let terms = Terms::of(&row.row.profile);
        current.insert(row.key(), terms);
        if let Some(key) = folded_key(row) {
            current.insert(key, terms);
        }
    }
    current
}

/// RF-1: the machines, each with the attribution in force. Which intents have ended is not known
/// before the fold.
pub(crate) fn attribute(fleet: &Fleet) -> Vec<Unit<'_>> {
    let current = current_demand(fleet);
    let machines = fleet.machines.values();
    // "To which no machine is attributed" is judged as recorded, all at once (engine.md §22.3 no. 16).
    let taken: BTreeSet<NeedKey> = machines.clone().filter_map(recorded).collect();
    let unit = |found| {
        let mut unit = Unit {
            fleet: found,
            heir: None,
            attribution: recorded(found),
            ended: is_for_nobody(found),
        };
        if let Some(recorded) = &unit.attribution
            && let Some((key, terms)) = heir(recorded, &current, &taken)
        {
            unit.heir = Some((key.clone(), terms));
            unit.attribution = Some(key);
        }
        unit
    };
    machines.map(unit).collect()
}

/// The attribution as recorded.
fn recorded(found: &FleetMachine) -> Option<NeedKey> {
    let attribution = found.machine.attribution();
    attribution.filter(|_| !is_for_nobody(found))
}

/// RF-21: the intent of an unbound machine that leaves has ended before everything else, whatever its cluster.
fn is_for_nobody(found: &FleetMachine) -> bool {
    found.machine.intent().is_some() && found.leaving.is_some()
}

/// RF-1: a row whose priority was edited is the same Need. The one row of the same cluster and
/// group, with the same text from `|reqs=` on, to which no machine is attributed.
fn heir(
    recorded: &NeedKey,
    current: &BTreeMap<NeedKey, Terms>,
    taken: &BTreeSet<NeedKey>,
) -> Option<(NeedKey, Terms)> {
    if current.contains_key(recorded) {
        return None;
    }
    let constraints = recorded.fingerprint.constraints()?;
    let mut heirs = current.iter().filter(|(row, _)| {
        row.cluster == recorded.cluster
            && row.group == recorded.group
            && row.fingerprint.constraints() == Some(constraints)
            && !taken.contains(*row)
    });
    let only = heirs.next()?;
    heirs.next().is_none().then(|| (only.0.clone(), *only.1))
}

/// RF-1: an intent whose Need is not among this cycle's Needs, after folding, has ended before the
/// pass, if its cluster is ready; with `acquire: false` it stands too (engine.md §22.3 no. 15).
pub(crate) fn end_intents(fleet: &Fleet, units: &mut [Unit<'_>], needs: &[Need]) {
    for unit in units {
        let Some(key) = unit.machine().intent().and(unit.attribution.as_ref()) else {
            continue;
        };
        let present = needs.iter().any(|need| need.key() == *key);
        let may_end = is_ready(fleet, &key.cluster) && may_acquire(fleet, &key.cluster);
        unit.ended = !present && may_end;
    }
}
