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
    ClusterId, INSTANCE_TYPE_KEY, Operator, Requirement, ZONE_KEY, quantity::format_short, shown,
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
        let victims = machines(verdict.victims_found as usize);
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

/// `1 machine`, `2 machines`.
fn machines(count: usize) -> String {
    match count {
        1 => "1 machine".to_owned(),
        count => format!("{count} machines"),
    }
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
    let how_many = |of: usize| match of == total {
        true => "no machine".to_owned(),
        false => format!("{of} of {total} machines do not, and none of them"),
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
        .map(|(why, count)| format!("{} that would fit: {why}", machines(count)))
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
            format!("they serve Need {} of its own cluster{why}", need.name())
        }
        Fate::ClaimedBy(need) => whose(&need.cluster),
        Fate::Serving(cluster) => whose(cluster),
        Fate::OnItsWayTo(cluster) => format!("they are on their way to cluster {cluster}"),
        Fate::PromisedTo(need) => {
            format!(
                "they are on their way to Need {} of cluster {}",
                need.name(),
                need.cluster
            )
        }
        Fate::PreemptedFor(need) => {
            format!(
                "they are drained for Need {} of cluster {}",
                need.name(),
                need.cluster
            )
        }
        Fate::Unavailable if around.breakers.is_empty() => {
            "they are left alone for now: their pool failed lately, or they are not confirmed"
                .to_owned()
        }
        Fate::Unavailable => format!(
            "they are left alone for now: {}",
            around.breakers.join("; ")
        ),
        Fate::MayNotAcquire => match &around.withheld {
            Some(why) => format!("they are free, but its cluster gets no new ones: {why}"),
            None => "they are free, but its cluster may get no new ones now".to_owned(),
        },
        Fate::Leaves(_) => "they are to leave".to_owned(),
        Fate::NotReady => "they are bound, but their Nodes are not Ready".to_owned(),
        Fate::OutsideDomain | Fate::NoDomain(_) => {
            "they are outside of the gang's domain".to_owned()
        }
        Fate::NotBoughtInPart => "they are not bought for part of a gang".to_owned(),
        Fate::Parked => "they are not tried, since the gang is parked".to_owned(),
        Fate::Spread => "taking one would break its hard spread".to_owned(),
        Fate::OffersNothingMissing => "they have nothing of what is missing".to_owned(),
        Fate::Held => "they are kept until what replaces them serves".to_owned(),
        Fate::FreedLater => "they become free only after its turn".to_owned(),
        Fate::Pruned | Fate::NotReached => "they are not needed".to_owned(),
        Fate::Draining => "they are being drained".to_owned(),
        Fate::Deleting => "they are being deleted".to_owned(),
        Fate::Failed => "they failed, and wait for a person".to_owned(),
        Fate::Claimed(_)
        | Fate::Preempted
        | Fate::Requirement(..)
        | Fate::BelowMinUnit { .. }
        | Fate::OffersNothing => String::new(),
    }
}

/// Why machines of a cluster cannot be taken from it.
fn holder(explained: &Explanation, alike: &Alike, cluster: &ClusterId, around: &Around) -> String {
    let held = format!("cluster {cluster} has them");
    if around.paused.contains(cluster) {
        return format!("{held}, and it is paused");
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
            format!("{held}, and has not reported: nothing is taken from it{kept}")
        }
        Some((VictimFate::NotOutranked, standing)) => {
            format!("{held} at priority {standing}, which is not below {own}{kept}")
        }
        Some((VictimFate::Leaves, _)) => format!("{held}, and they are to leave"),
        Some((VictimFate::AlreadyTaken, _)) => {
            format!("{held}, and they make way for another Need")
        }
        Some((VictimFate::OutsideDomain, _)) => format!("{held}, outside of the gang's domain"),
        Some((VictimFate::GivenBack, _)) => {
            format!("{held}; they could be taken, but would not complete the gang")
        }
        _ => held + kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;

    /// Why the first Need of cluster a is short.
    fn said(of: &str, around: &Around) -> Vec<String> {
        let fleet = fleet(of);
        let key = fleet.clusters[&a()].needs()[0].key();
        causes(&bigfleet_engine::explain(&fleet, &key).unwrap(), around)
    }

    fn a() -> ClusterId {
        ClusterId::new("a").unwrap()
    }

    fn said_of(of: &str) -> Vec<String> {
        said(of, &Around::default())
    }

    #[test]
    fn a_requirement_nobody_meets_says_which_and_what_they_have() {
        assert_eq!(
            said_of(
                "i1..i3 Idle cpu=4 $1 media=hdd\n i4 Idle cpu=4 $1\n need a cpu=4 media=In(ssd)"
            ),
            ["no machine meets media In ssd: they have hdd (3), nothing (1)"]
        );
    }

    #[test]
    fn a_zone_and_a_type_nobody_has() {
        assert_eq!(
            said_of("i1..i3 Idle cpu=4 $1 zone=z1\n need a cpu=4 zone=In(z9)"),
            ["no machine is in zone z9: they are in z1 (3)"]
        );
        assert_eq!(
            said_of("i1..i3 Idle cpu=4 $1 type=m5\n need a cpu=4 type=In(p4)"),
            ["no machine is of type p4, so nobody offers it: they are of type m5 (3)"]
        );
    }

    #[test]
    fn a_dimension_below_the_unit() {
        assert_eq!(
            said_of("i1 Idle cpu=4 $1\n i2 Idle cpu=16 $1\n need a cpu=64 min:cpu=64"),
            [
                "no machine is large enough: the smallest unit is cpu=64, and the largest machine that \
                 meets the rest has cpu=16"
            ]
        );
    }

    #[test]
    fn one_that_others_make_way_for() {
        assert_eq!(
            said_of("b1 Configured b cpu=4 $1 stamp=1\n need a cpu=4 prio=1000"),
            ["drained for it, which is enough: 1 machine of lower priority"]
        );
    }

    #[test]
    fn no_machines_at_all() {
        assert_eq!(
            said_of("need a cpu=4"),
            ["there are no machines at all, not even ones that could be bought"]
        );
    }

    #[test]
    fn one_that_holds_everything_is_not_told_to_raise_its_priority() {
        assert_eq!(
            said_of("i1..i2 Idle cpu=4 $1\n need a cpu=40 prio=5"),
            [
                "it already holds every machine that fits, 2: no priority helps, only more machines or a \
                 smaller Need"
            ]
        );
    }

    #[test]
    fn machines_of_another_cluster_say_why_they_stay_there() {
        let of = "b1..b3 Configured b cpu=4 $1 own=big stamp=1000
                  need a cpu=4 prio=100
                  need b name:big cpu=12 prio=1000";
        assert_eq!(
            said_of(of),
            [
                "3 machines that would fit: cluster b has them at priority 1000, which is not below 100"
            ]
        );
        let b = BTreeSet::from([ClusterId::new("b").unwrap()]);
        let gone = Around {
            gone: b.clone(),
            ..Around::default()
        };
        assert_eq!(
            said(of, &gone),
            [
                "3 machines that would fit: cluster b has them at priority 1000, which is not below 100, \
                 kept for it while its operator is gone"
            ]
        );
        let quarantined = Around {
            quarantined: b.clone(),
            ..Around::default()
        };
        assert!(
            said(of, &quarantined)[0].ends_with("for its earlier demand: its last roll-up is held")
        );
        let paused = Around {
            paused: b,
            ..Around::default()
        };
        assert_eq!(
            said(of, &paused),
            ["3 machines that would fit: cluster b has them, and it is paused"]
        );
    }

    #[test]
    fn pools_behind_a_breaker_and_clusters_that_may_not_acquire() {
        let around = Around {
            breakers: vec!["m5 in z1 ran out, tried again in 40 s".to_owned()],
            ..Around::default()
        };
        assert_eq!(
            said(
                "s1..s2 Speculative cpu=4 $1 unavailable\n need a cpu=4",
                &around
            ),
            [
                "2 machines that would fit: they are left alone for now: m5 in z1 ran out, tried again in \
                 40 s"
            ]
        );
    }

    #[test]
    fn a_gang_says_how_much_its_best_domain_holds() {
        assert_eq!(
            said_of(
                "i1..i2 Idle cpu=4 $1 rack=r1\n i3 Idle cpu=4 $1 rack=r2\n need a cpu=12 group=g rack=Same"
            )[0],
            "no value of rack holds all of the gang: the best, r1, holds 66 % of it"
        );
    }
}
