//! Fold (RF-12, F-2): gangs of which one machine holds a whole member become one plain row.
//!
//! A gang served as a gang stays one; one that holds nothing changes form freely.

use crate::{
    attribution::{folded_group, folded_key},
    order::total_order,
    world::{Unit, is_gang},
};
use bigfleet_model::{Amounts, ClusterId, Fleet, Need, NeedKey, Profile, Row, State};
use std::{collections::BTreeMap, sync::Arc};

/// Gangs equal in (cluster, profile, aggregate).
type Class = (ClusterId, Arc<Profile>, Amounts);

/// This cycle's Needs: every row that does not fold as it is, and the folded rows.
pub(crate) fn fold(fleet: &Fleet, units: &[Unit<'_>]) -> Vec<Need> {
    let rows: Vec<&Need> = fleet
        .clusters
        .values()
        .flat_map(|cluster| cluster.needs())
        .collect();
    let mut classes: BTreeMap<Class, Vec<&Need>> = BTreeMap::new();
    for row in rows.iter().filter(|row| is_gang(row)) {
        let class = (
            row.cluster.clone(),
            Arc::clone(&row.row.profile),
            row.row.aggregate.clone(),
        );
        classes.entry(class).or_default().push(row);
    }
    let mut folding: Vec<&Need> = Vec::new();
    for gangs in classes.into_values() {
        folding.extend(folding_of(&rows, gangs, units));
    }
    let stays = |row: &&&Need| !folding.iter().any(|gang| std::ptr::eq(*gang, **row));
    let mut needs: Vec<Need> = rows
        .iter()
        .filter(stays)
        .map(|row| (*row).clone())
        .collect();
    needs.extend(folded_rows(&folding));
    needs
}

/// RF-12: the gangs of one class that fold. (b) No machine is attributed to exactly this gang;
/// (a) among those, in T order, as many as the witnesses hold.
fn folding_of<'n>(rows: &[&Need], gangs: Vec<&'n Need>, units: &[Unit<'_>]) -> Vec<&'n Need> {
    let Some(one) = gangs.first().copied() else {
        return Vec::new();
    };
    let attributed = |gang: &Need| {
        let key = gang.key();
        units
            .iter()
            .any(|unit| unit.attribution == Some(key.clone()))
    };
    let mut free: Vec<&Need> = gangs.into_iter().filter(|gang| !attributed(gang)).collect();
    free.sort_by_cached_key(|gang| total_order(gang));
    let others = other_rows(rows, one);
    let witnesses = units.iter().filter(|unit| is_witness(unit, one, &others));
    let most = witnesses.fold(0_u128, |most, unit| {
        most.saturating_add(members(unit.allocatable(), &one.row.aggregate))
    });
    free.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    free
}

/// How many whole members a machine holds. A gang with zero aggregate folds on any match (engine.md §22.3
/// no. 17).
fn members(allocatable: &Amounts, member: &Amounts) -> u128 {
    let whole = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        (allocatable.get(name.as_str()) / milli).unsigned_abs()
    };
    member.iter().map(whole).min().unwrap_or(u128::MAX)
}

/// engine.md §22.3 no. 14: every current row of the cluster, sibling gangs included, and the folded forms of
/// all its gangs but the class's own.
fn other_rows(rows: &[&Need], one: &Need) -> Vec<NeedKey> {
    let own_form = folded_key(one);
    let of_cluster = rows.iter().filter(|row| row.cluster == one.cluster);
    let forms = of_cluster.clone().filter_map(|row| folded_key(row));
    let other_forms = forms.filter(|form| Some(form) != own_form.as_ref());
    of_cluster
        .clone()
        .map(|row| row.key())
        .chain(other_forms)
        .collect()
}

/// RF-12: a witness matches the profile and covers one member's aggregate, and may serve. One that leaves is
/// one only while bound, and `soon` (RF-21): its intent has ended, and `now` is as `not_ready`.
fn is_witness(unit: &Unit<'_>, one: &Need, others: &[NeedKey]) -> bool {
    let matches = unit.machine().shape().matches(&one.row.profile);
    if !matches || !unit.allocatable().covers(&one.row.aggregate) || unit.not_ready() {
        return false;
    }
    let form = folded_key(one);
    let for_form = unit.machine().intent().is_some() && unit.attribution == form;
    match unit.state() {
        State::Configured | State::Configuring => {
            let elsewhere = |key: &NeedKey| others.contains(key);
            unit.bound_to(&one.cluster) && !unit.attribution.as_ref().is_some_and(elsewhere)
        }
        // Intents as recorded, after the passing on: one that is about to end still counts.
        State::Idle | State::Creating => {
            for_form || (unit.machine().intent().is_none() && !unit.fleet.is_out_of_reach())
        }
        State::Speculative => !unit.fleet.is_out_of_reach(),
        State::Draining => for_form,
        State::Deleting | State::Failed => false,
    }
}

/// F-2 with RF-12: one plain row per (cluster, folded profile, aggregate).
fn folded_rows(folding: &[&Need]) -> Vec<Need> {
    let mut groups: BTreeMap<(ClusterId, Profile, Amounts), Vec<&Need>> = BTreeMap::new();
    for gang in folding {
        let group = (
            gang.cluster.clone(),
            gang.row.profile.folded(),
            gang.row.aggregate.clone(),
        );
        groups.entry(group).or_default().push(gang);
    }
    let folded = |((cluster, profile, member), gangs): (_, Vec<&Need>)| Need {
        cluster,
        arrival: gangs.iter().filter_map(|gang| gang.arrival).min(),
        parked: false, // engine.md §22.3 no. 4
        row: Row {
            profile: Arc::new(profile),
            aggregate: Amounts::scale(&member, i64::try_from(gangs.len()).unwrap_or(i64::MAX)),
            // RF-19: one gang is one unit, if all that fold into it ask for whole units.
            whole_units: !member.is_zero() && gangs.iter().all(|gang| gang.row.whole_units),
            min_unit: member,
            group: folded_group(gangs[0]),
        },
    };
    groups.into_iter().map(folded).collect()
}
