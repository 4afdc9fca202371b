//! The sentences of an explanation: what became of a machine, and why one thing went before another.

use bigfleet_engine::{ClaimSource, Comparison, Fate, NotReplaced, Outranks, Rule, VictimFate};
use bigfleet_model::{Leaving, NeedKey, Operator, Requirement, Time, quantity::format_short};

/// The name by which every verb prints a Need and takes it: `prod/bfca3c4e`.
pub(crate) fn called(need: &NeedKey) -> String {
    format!("{}/{}", need.cluster, need.name())
}

/// Why a Need is served before the explained one.
pub(crate) fn outranks(by: Outranks) -> String {
    match by {
        Outranks::Priority(theirs, ours) => format!("priority {theirs}, here {ours}"),
        Outranks::Interruption(theirs, ours) => {
            format!("interruption bucket {theirs}, here {ours}")
        }
        Outranks::Reclamation(theirs, ours) => {
            format!("reclamation bucket {theirs}, here {ours}")
        }
        Outranks::Arrival(theirs, ours) => {
            let seconds = |at: Option<Time>| at.map_or(0.0, Time::seconds);
            format!("arrival {}, here {}", seconds(theirs), seconds(ours))
        }
        Outranks::Name => "name".to_owned(),
    }
}

/// Why a domain was chosen.
pub(crate) fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Home => "its own machines are there",
        Rule::Complete => "free machines complete it there",
        Rule::WithVictims => "free and preempted machines complete it there",
        Rule::Partial => "nothing completes it; most of it is available there",
    }
}

/// What decided between two domains.
pub(crate) fn comparison(by: Comparison) -> &'static str {
    match by {
        Comparison::OwnCoverage => "its own machines cover more",
        Comparison::CreditCoverage => "its own machines and unused ones of its cluster cover more",
        Comparison::CoverageAtHand => "what it has there and what is idle cover more",
        Comparison::LeastToSpare => "less is left over",
        Comparison::FewestVictims => "fewer machines are preempted",
        Comparison::MostMachines => "more machines",
        Comparison::Value => "all else is equal, and its name sorts first",
    }
}

/// What became of a machine that preemption could take.
pub(crate) fn victim(fate: VictimFate) -> &'static str {
    match fate {
        VictimFate::Picked => "preempted",
        VictimFate::Pruned => "chosen, but the others suffice",
        VictimFate::GivenBack => "chosen, but the gang cannot be completed",
        VictimFate::NotReached => "not needed",
        VictimFate::Spread => "the spread does not allow it",
        VictimFate::OffersNothing => "offers nothing that is missing",
        VictimFate::NotOutranked => "not eligible: its priority is not lower",
        VictimFate::Leaves => "not eligible: it is to leave",
        VictimFate::AlreadyTaken => "not eligible: preempted for another",
        VictimFate::OutsideDomain => "not eligible: outside the domain",
    }
}

/// What became of a machine.
pub(crate) fn fate(fate: &Fate) -> String {
    let text = match fate {
        Fate::Claimed(ClaimSource::Own) => "claimed, its own",
        Fate::Claimed(ClaimSource::Bound) => "claimed, of its cluster",
        Fate::Claimed(ClaimSource::Restored) => "claimed, its drain is taken back",
        Fate::Claimed(ClaimSource::Leaving(why)) => return not_replaced(*why),
        Fate::Claimed(_) => "claimed",
        Fate::Preempted => "preempted for it",
        Fate::Pruned => "given back, the others suffice",
        Fate::NotReached => "not needed",
        Fate::OutsideDomain => "outside the domain",
        Fate::NoDomain(key) => return format!("has no {key}"),
        Fate::Spread => "the spread does not allow it",
        Fate::OffersNothingMissing => "offers nothing that is missing",
        Fate::Unavailable => "unavailable now",
        Fate::MayNotAcquire => "the cluster may get no new machines now",
        Fate::Parked => "not tried: the gang made no progress and waits (parked)",
        Fate::NotBoughtInPart => "not bought for a gang that cannot be completed",
        Fate::Held => "kept until its replacement serves",
        Fate::FreedLater => "becomes free only after this Need is served",
        Fate::ClaimedBy(need) => return format!("claimed by {}", called(need)),
        Fate::PromisedTo(need) => return format!("promised to {}", called(need)),
        Fate::PreemptedFor(need) => return format!("preempted for {}", called(need)),
        Fate::Serving(cluster) => return format!("serves {cluster}"),
        Fate::OnItsWayTo(cluster) => return format!("on its way to {cluster}"),
        Fate::NotReady => "its node is not ready",
        Fate::Leaves(Leaving::Soon) => "is to leave",
        Fate::Leaves(Leaving::Now) => "leaves now",
        Fate::Draining => "draining",
        Fate::Deleting => "being deleted",
        Fate::Failed => "failed",
        Fate::Requirement(requirement, value) => return requires(requirement, value.as_deref()),
        Fate::BelowMinUnit {
            dimension,
            has,
            unit,
        } => {
            let (has, unit) = (format_short(*has), format_short(*unit));
            return format!("{dimension} {has} is below the smallest unit of {unit}");
        }
        Fate::OffersNothing => "offers nothing that is asked for",
    };
    text.to_owned()
}

/// Why a machine that leaves soon still serves (RF-21).
fn not_replaced(why: NotReplaced) -> String {
    let why = match why {
        NotReplaced::IncompleteGang => "its gang is incomplete and buys nothing",
        NotReplaced::Parked => "its gang made no progress and waits (parked)",
        NotReplaced::MayNotAcquire => "the cluster may get no new machines now",
        NotReplaced::NothingFree => "no other machine that fits is free",
        NotReplaced::OutsideDomain => {
            "none that is free is in the gang's domain, and no other domain holds all of it"
        }
        NotReplaced::NotEnough => "all that is free gives less than it does",
        NotReplaced::Spread => "the spread does not allow what is free",
        NotReplaced::FreedLater => "what is free became so only after its turn",
    };
    format!("claimed, leaves soon, not replaced: {why}")
}

fn requires(requirement: &Requirement, value: Option<&str>) -> String {
    let (key, word) = (requirement.key(), requirement.operator().word());
    let is = value.map_or("absent".to_owned(), |value| format!("\"{value}\""));
    let spelled = match requirement.operator() {
        Operator::In | Operator::NotIn | Operator::Same if !requirement.values().is_empty() => {
            format!("{key} {word} {}", requirement.values().join(","))
        }
        _ => format!("{key} {word}"),
    };
    format!("requires {spelled}, it is {is}")
}
