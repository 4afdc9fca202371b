//! Causes: why a Need does not get what it asks for, each cause in its own words.
//!
//! ```text
//! no machine fits ─▶ which requirement, and what they have instead · the unit · the zone · the type
//! some fit ────────▶ who has them, and why they cannot be had · the domain of a gang · its spread
//! ```
//!
//! What the engine weighed says most of it. What only a shard knows of the clusters that hold machines is
//! [`Around`]; a fleet from a file has none of it.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::{Alike, Explanation, Fate, Outranks, VictimFate};
use bigfleet_model::{
    ClusterId, INSTANCE_TYPE_KEY, Operator, Requirement, ZONE_KEY, counted, quantity::format_short,
    shown,
};

/// Values or holders that one cause names.
const MOST_NAMED: usize = 5;

/// What a shard knows of its clusters and pools beside the fleet.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Clusters whose operator is gone.
    pub gone: BTreeSet<ClusterId>,
    /// Clusters whose last roll-up is held.
    pub quarantined: BTreeSet<ClusterId>,
    /// Clusters that are paused by name.
    pub paused: BTreeSet<ClusterId>,
    /// Why nothing is acquired for the Need's own cluster.
    pub withheld: Option<String>,
    /// What keeps pools from being asked, a sentence each.
    pub breakers: Vec<String>,
}

/// Why an explained Need is short; nothing for one that is not.
pub fn causes(explained: &Explanation, around: &Around) -> Vec<String> {
    if explained.verdict.satisfied {
        return Vec::new();
    }
    let verdict = &explained.verdict;
    if verdict.residual.sub(&verdict.capacity_freed).is_zero() {
        let victims = counted(verdict.victims_found, "machine", "machines");
        return vec![format!(
            "drained for it, which is enough: {victims} of lower priority"
        )];
    }
    let (fit, unfit): (Vec<&Alike>, Vec<&Alike>) = explained
        .machines
        .iter()
        .partition(|alike| is_fit(&alike.fate));
    if fit.is_empty() {
        return why_unfit(explained, &unfit);
    }
    let mut causes = Vec::from_iter(gang(explained));
    causes.extend(why_not_had(explained, &fit, around));
    causes
}

fn is_fit(fate: &Fate) -> bool {
    !matches!(
        fate,
        Fate::Requirement(..) | Fate::BelowMinUnit { .. } | Fate::OffersNothing
    )
}

fn count(groups: &[&Alike]) -> usize {
    groups.iter().map(|alike| alike.count).sum()
}

/// `a (3), b (1)`, the most first, and how many more there are.
fn named(counts: BTreeMap<String, usize>) -> String {
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(MOST_NAMED);
    let words = counts.into_iter().take(MOST_NAMED);
    let words: Vec<String> = words
        .map(|(name, count)| format!("{name} ({count})"))
        .collect();
    match more {
        0 => words.join(", "),
        more => format!("{} and {more} more", words.join(", ")),
    }
}

/// No machine fits: what each of them lacks.
fn why_unfit(explained: &Explanation, unfit: &[&Alike]) -> Vec<String> {
    let total = count(unfit) + explained.left_out.machines;
    if total == 0 {
        return vec!["there are no machines at all, not even ones that could be bought".to_owned()];
    }
    let mut required: BTreeMap<&Requirement, BTreeMap<String, usize>> = BTreeMap::new();
    let mut units: BTreeMap<&str, (i128, i128, usize)> = BTreeMap::new();
    let mut nothing = 0;
    for alike in unfit {
        match &alike.fate {
            Fate::Requirement(requirement, value) => {
                let value = value.as_deref().map_or("nothing".to_owned(), shown);
                let values = required.entry(requirement).or_default();
                *values.entry(value).or_default() += alike.count;
            }
            Fate::BelowMinUnit {
                dimension,
                has,
                unit,
            } => {
                let known = units.entry(dimension.as_str()).or_insert((0, *unit, 0));
                (known.0, known.2) = (known.0.max(*has), known.2 + alike.count);
            }
            _ => nothing += alike.count,
        }
    }
    let how_many = |of: usize| {
        if of == total {
            "no machine".to_owned()
        } else {
            format!("{of} of {total} machines fail at this: none")
        }
    };
    let mut causes = Vec::new();
    for (requirement, values) in required {
        let of = values.values().sum();
        causes.push(unmet(requirement, &how_many(of), named(values)));
    }
    for (dimension, (has, unit, of)) in units {
        let (has, unit) = (format_short(has), format_short(unit));
        causes.push(format!(
            "{} is large enough: the smallest unit is {dimension}={unit}, and the largest machine that \
             meets the rest has {dimension}={has}",
            how_many(of)
        ));
    }
    if 0 < nothing {
        causes.push(format!(
            "{} has anything of what is asked for",
            how_many(nothing)
        ));
    }
    causes
}

/// The requirement that machines do not meet, and what they have instead.
fn unmet(requirement: &Requirement, none: &str, have: String) -> String {
    let values: Vec<String> = requirement.values().iter().map(|one| shown(one)).collect();
    let values = values.join(" or ");
    match (requirement.key(), requirement.operator()) {
        (ZONE_KEY, Operator::In) => {
            format!("{none} is in zone {values}: they are in {have}")
        }
        (INSTANCE_TYPE_KEY, Operator::In) => {
            format!("{none} is of type {values}, so nobody offers it: they are of type {have}")
        }
        (key, operator) => {
            let key = shown(key);
            let asked = match values.as_str() {
                "" => format!("{key} {}", operator.word()),
                values => format!("{key} {} {values}", operator.word()),
            };
            format!("{none} meets {asked}: they have {have}")
        }
    }
}

/// Why no domain holds a gang.
fn gang(explained: &Explanation) -> Option<String> {
    if explained.verdict.parked {
        return None; // no domain was looked at
    }
    let key = explained.verdict.need.row.profile.same_key()?;
    let (key, best) = (shown(key), explained.verdict.same_candidates.first());
    Some(match best {
        None => format!("no value of {key} holds any of the gang"),
        Some(best) if best.satisfiable => return None,
        Some(best) => {
            let (domain, covered) = (shown(&best.domain), best.coverage_per_mille / 10);
            format!(
                "no value of {key} holds all of the gang: the best, {domain}, holds {covered} % of it"
            )
        }
    })
}

/// Machines fit: who has those that it does not, and why they cannot be had.
fn why_not_had(explained: &Explanation, fit: &[&Alike], around: &Around) -> Vec<String> {
    let own = explained.verdict.claimed as usize;
    let is_own = |alike: &&&Alike| matches!(alike.fate, Fate::Claimed(_) | Fate::Preempted);
    let others: Vec<&Alike> = fit.iter().filter(|one| !is_own(one)).copied().collect();
    if others.is_empty() {
        return vec![format!(
            "it already holds every machine that fits, {own}: no priority helps, only more machines or a \
             smaller Need"
        )];
    }
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for alike in others {
        *held.entry(obstacle(explained, alike, around)).or_default() += alike.count;
    }
    let mut causes: Vec<(String, usize)> = held.into_iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = causes.len().saturating_sub(MOST_NAMED);
    let mut said: Vec<String> = causes
        .into_iter()
        .take(MOST_NAMED)
        .map(|(why, count)| {
            format!(
                "{} that would fit: {why}",
                counted(count, "machine", "machines")
            )
        })
        .collect();
    if 0 < more {
        said.push(format!("and {more} more reasons; the table has them"));
    }
    said
}

/// Why machines that fit cannot be had.
fn obstacle(explained: &Explanation, alike: &Alike, around: &Around) -> String {
    let own = &explained.verdict.need.cluster;
    let whose = |cluster: &ClusterId| holder(explained, alike, cluster, around);
    match &alike.fate {
        Fate::ClaimedBy(need) if need.cluster == *own => {
            let by = explained.ahead.iter().find(|ahead| ahead.need == *need);
            let why = by.map_or("", |ahead| match ahead.by {
                Outranks::Priority(..) => ", which has a higher priority",
                Outranks::Interruption(..) | Outranks::Reclamation(..) => {
                    ", whose interruption costs more"
                }
                Outranks::Arrival(..) => ", which came first",
                Outranks::Name => ", which comes first by name",
            });
            format!("in use by Need {} of its own cluster{why}", need.name())
        }
        Fate::ClaimedBy(need) => whose(&need.cluster),
        Fate::Serving(cluster) => whose(cluster),
        Fate::OnItsWayTo(cluster) => format!("on the way to cluster {cluster}"),
        Fate::PromisedTo(need) => {
            format!(
                "on the way to Need {} of cluster {}",
                need.name(),
                need.cluster
            )
        }
        Fate::PreemptedFor(need) => {
            format!(
                "being drained for Need {} of cluster {}",
                need.name(),
                need.cluster
            )
        }
        Fate::Unavailable if around.breakers.is_empty() => {
            "left alone for now: the pool failed lately, or the provider has not confirmed that there are any"
                .to_owned()
        }
        Fate::Unavailable => format!("left alone for now: {}", around.breakers.join("; ")),
        Fate::MayNotAcquire => match &around.withheld {
            Some(why) => format!("free, but its cluster gets no new machines: {why}"),
            None => "free, but its cluster may get no new machines now".to_owned(),
        },
        Fate::Leaves(_) => "marked to leave".to_owned(),
        Fate::NotReady => "bound, but not Ready as a Node, so nothing can run there".to_owned(),
        Fate::OutsideDomain => "outside of the gang's domain".to_owned(),
        Fate::NoDomain(key) => format!("without any {}", shown(key)),
        Fate::NotBoughtInPart => "not bought for part of a gang".to_owned(),
        Fate::Parked => "not tried, since the gang is parked until something changes".to_owned(),
        Fate::Spread => "taking one would break its hard spread".to_owned(),
        Fate::OffersNothingMissing => "without anything of what is missing".to_owned(),
        Fate::Held => "kept until the replacement serves".to_owned(),
        Fate::FreedLater => "free only after its turn".to_owned(),
        Fate::Pruned | Fate::NotReached => "not needed".to_owned(),
        Fate::Draining => "being drained".to_owned(),
        Fate::Deleting => "being deleted".to_owned(),
        Fate::Failed => "failed; a person has to look (`bigfleet get machines -l state=Failed`)".to_owned(),
        Fate::Claimed(_)
        | Fate::Preempted
        | Fate::Requirement(..)
        | Fate::BelowMinUnit { .. }
        | Fate::OffersNothing => String::new(),
    }
}

/// Why machines of a cluster cannot be taken from it.
fn holder(explained: &Explanation, alike: &Alike, cluster: &ClusterId, around: &Around) -> String {
    let held = format!("in use by cluster {cluster}");
    if around.paused.contains(cluster) {
        return format!("{held}, which is paused");
    }
    let victims = explained.preemption.iter().flat_map(|one| &one.victims);
    let victim = victims
        .clone()
        .find(|victim| alike.machines.contains(&victim.machine));
    let kept = if around.gone.contains(cluster) {
        ", kept for it while its operator is gone"
    } else if around.quarantined.contains(cluster) {
        ", for its earlier demand: its last roll-up is held"
    } else {
        ""
    };
    let own = explained.verdict.need.row.profile.priority();
    match victim.map(|victim| (victim.fate, victim.standing)) {
        Some((VictimFate::NotOutranked, i32::MAX)) => {
            format!("{held}, which has not reported: nothing is taken from it{kept}")
        }
        Some((VictimFate::NotOutranked, standing)) => {
            format!("{held} at priority {standing}, which is not below {own}{kept}")
        }
        Some((VictimFate::Leaves, _)) => format!("{held}, and marked to leave"),
        Some((VictimFate::AlreadyTaken, _)) => {
            format!("{held}, and about to make way for another Need")
        }
        Some((VictimFate::OutsideDomain, _)) => format!("{held}, outside of the gang's domain"),
        Some((VictimFate::GivenBack, _)) => {
            format!("{held}; preempting that would not complete the gang")
        }
        _ => held + kept,
    }
}

#[cfg(test)]
mod tests;
