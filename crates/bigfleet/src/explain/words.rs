//! Words: what each fate, rule and comparison is called.

use bigfleet_engine::{Comparison, Fate, How, Outranks, Rule, VictimFate};
use bigfleet_model::{Operator, Requirement, quantity::format_milli};

/// Which comparison puts a Need ahead.
pub(super) fn outranks(by: Outranks) -> String {
    match by {
        Outranks::Priority(theirs, ours) => format!("priority {theirs}, here {ours}"),
        Outranks::Interruption(theirs, ours) => {
            format!("interruption bucket {theirs}, here {ours}")
        }
        Outranks::Reclamation(theirs, ours) => {
            format!("reclamation bucket {theirs}, here {ours}")
        }
        Outranks::Arrival(theirs, ours) => {
            format!("arrival {}, here {}", theirs.seconds(), ours.seconds())
        }
        Outranks::Name => "name".to_owned(),
    }
}

/// Which rule chose a domain.
pub(super) fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Home => "its own machines are there (RF-4)",
        Rule::Complete => "free machines complete it there (RF-6, case 1)",
        Rule::WithVictims => "free machines and victims complete it there (RF-6, case 2)",
        Rule::Partial => "nothing completes it, most is at hand there (RF-6, case 3)",
    }
}

/// What decided between two domains.
pub(super) fn comparison(by: Comparison) -> &'static str {
    match by {
        Comparison::OwnCoverage => "its own machines cover more",
        Comparison::CreditCoverage => "its own and loose machines cover more",
        Comparison::CoverageAtHand => "what is there or idle covers more",
        Comparison::LeastToSpare => "less to spare",
        Comparison::FewestVictims => "fewer victims",
        Comparison::MostMachines => "more machines",
        Comparison::Value => "all equal, the smaller name",
    }
}

/// What became of a machine that was weighed as a victim.
pub(super) fn victim(fate: VictimFate) -> &'static str {
    match fate {
        VictimFate::Picked => "preempted",
        VictimFate::Pruned => "picked, but the others suffice",
        VictimFate::GivenBack => "picked, but the gang cannot be completed",
        VictimFate::NotReached => "not needed",
        VictimFate::Spread => "the spread does not allow it",
        VictimFate::OffersNothing => "offers nothing that is missing",
        VictimFate::NotOutranked => "not eligible: its priority is not lower",
        VictimFate::AlreadyTaken => "not eligible: preempted for another",
        VictimFate::OutsideDomain => "not eligible: outside of the domain",
    }
}

/// What became of a machine.
pub(super) fn fate(fate: &Fate) -> String {
    let text = match fate {
        Fate::Claimed(How::Own) => "claimed, its own",
        Fate::Claimed(How::Bound) => "claimed, of its cluster",
        Fate::Claimed(_) => "claimed",
        Fate::Preempted => "preempted for it",
        Fate::Pruned => "given back, the others suffice",
        Fate::NotReached => "not needed",
        Fate::OutsideDomain => "outside of the domain",
        Fate::NoDomain(key) => return format!("has no {key}"),
        Fate::Spread => "the spread does not allow it",
        Fate::OffersNothingMissing => "offers nothing that is missing",
        Fate::Unavailable => "unavailable now",
        Fate::MayNotAcquire => "the cluster may not acquire",
        Fate::Parked => "acquisition is parked",
        Fate::NotBoughtInPart => "not bought for a gang that cannot be completed",
        Fate::Held => "held until a replacement serves",
        Fate::FreedLater => "free only after its turn",
        Fate::ClaimedBy(need) => return format!("claimed by {need}"),
        Fate::PromisedTo(need) => return format!("promised to {need}"),
        Fate::PreemptedFor(need) => return format!("preempted for {need}"),
        Fate::Serving(cluster) => return format!("serves {cluster}"),
        Fate::OnItsWayTo(cluster) => return format!("on its way to {cluster}"),
        Fate::NotReady => "its node is not ready",
        Fate::Draining => "draining",
        Fate::Deleting => "being deleted",
        Fate::Failed => "failed",
        Fate::Requirement(requirement, value) => return requires(requirement, value.as_deref()),
        Fate::BelowMinUnit {
            dimension,
            has,
            unit,
        } => {
            let (has, unit) = (format_milli(*has), format_milli(*unit));
            return format!("{dimension} {has} is below the smallest unit of {unit}");
        }
        Fate::OffersNothing => "offers nothing that is asked for",
    };
    text.to_owned()
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
