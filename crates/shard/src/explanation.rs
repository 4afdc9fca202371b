//! Explanations: what the engine weighed for a Need, as everybody is told it: a shard's readers, and whoever
//! decides on a fleet file.

pub use crate::causes::{Around, causes};

use bigfleet_engine::{Alike, Choice, DomainWeight, Edit, Explanation, Preemption, Remedy, Victim};
use bigfleet_model::{Action, Amounts, Fleet, Need, Requirement, quantity::format_short, shown};
use bigfleet_wire::v1alpha1::{self as wire, NeedChange, NeedTable, need_table};

use crate::fate_text;

/// What was weighed, as a table.
pub fn table(explained: &Explanation) -> NeedTable {
    let ahead = explained.ahead.iter().map(|ahead| need_table::Ahead {
        need: fate_text::called(&ahead.need),
        by: fate_text::outranks(ahead.by),
        holds: count(ahead.holds),
    });
    let victims = explained.preemption.iter();
    let victims = victims.flat_map(|preemption| &preemption.victims);
    let left_out = |preemption: &Preemption| count(preemption.left_out);
    NeedTable {
        position: count(explained.position),
        needs: count(explained.needs),
        ahead: ahead.collect(),
        choice: explained.choice.as_ref().map(choice),
        actions: explained.actions.iter().map(action).collect(),
        victims: victims.map(victim).collect(),
        victims_left_out: explained.preemption.as_ref().map_or(0, left_out),
        candidates: explained.machines.iter().map(candidates).collect(),
        groups_left_out: count(explained.left_out.groups),
        machines_left_out: count(explained.left_out.machines),
        whole_units: explained.whole_units.as_ref().map(|whole| {
            let (counted, otherwise) = (words(&whole.counted), words(&whole.otherwise));
            need_table::WholeUnits { counted, otherwise }
        }),
    }
}

/// Edits that were tried, in words and as edits of the file that is written of the fleet.
pub fn changes(fleet: &Fleet, remedies: &[Remedy]) -> Vec<NeedChange> {
    let change = |remedy: &Remedy| {
        let edited = remedy.rows.iter().filter_map(|row| {
            let tried = Need {
                parked: false,
                ..row.clone()
            };
            let after = match &remedy.edit {
                Edit::Machine(_) => tried,
                edit => edit.apply(row)?,
            };
            Some((row.clone(), after))
        });
        let added = match &remedy.edit {
            Edit::Machine(machine) => Some(&**machine),
            _ => None,
        };
        let edited: Vec<(Need, Need)> = edited.collect();
        NeedChange {
            edit: bigfleet_fleet_file::patch(fleet, &edited, added).to_string(),
            mark: remedy.mark.word().to_owned(),
            text: in_words(remedy),
        }
    };
    remedies.iter().map(change).collect()
}

fn in_words(remedy: &Remedy) -> String {
    let profile = remedy.rows.first().map(|row| &row.row.profile);
    match &remedy.edit {
        Edit::Aggregate(amounts) => format!("ask for {} in all", words(amounts)),
        Edit::MinUnit(amounts) => format!("accept machines as small as {}", words(amounts)),
        Edit::SameKey(key) => {
            let before = profile.and_then(|profile| profile.same_key());
            let before = before.map_or_else(String::new, shown);
            format!("let the gang agree on {} instead of {before}", shown(key))
        }
        Edit::Drop(at) => {
            let dropped = profile.and_then(|profile| profile.requirements().get(*at));
            format!("drop {}", dropped.map_or_else(String::new, requirement))
        }
        Edit::Soften(at) => {
            let spread = profile.and_then(|profile| profile.spread().get(*at));
            let key = spread.map_or_else(String::new, |spread| shown(spread.topology_key()));
            format!("make the spread over {key} a wish (ScheduleAnyway)")
        }
        Edit::Priority(priority) => {
            format!("raise its priority to {priority}, above whoever holds machines that fit")
        }
        Edit::Machine(machine) => {
            let shape = machine.machine.shape();
            let kind = kind(&shape.instance_type, &shape.zone, shape.effective());
            format!("one more machine: {kind}")
        }
    }
}

fn requirement(requirement: &Requirement) -> String {
    let (key, word) = (shown(requirement.key()), requirement.operator().word());
    match requirement.values() {
        [] => format!("{key} {word}"),
        values => format!("{key} {word} {}", shown(&values.join(","))),
    }
}

fn action(action: &Action) -> String {
    let reason = action.reason.text();
    format!("{} {} ({reason})", action.kind.word(), action.machine)
}

fn choice(choice: &Choice) -> need_table::Choice {
    let some = |text: &Option<String>| text.clone().unwrap_or_default();
    let decided_by = choice.decided_by.map(fate_text::comparison);
    need_table::Choice {
        key: choice.key.clone(),
        rule: fate_text::rule(choice.rule).to_owned(),
        chosen: some(&choice.chosen),
        runner_up: some(&choice.runner_up),
        decided_by: decided_by.unwrap_or_default().to_owned(),
        domains: choice.domains.iter().map(domain).collect(),
        domains_left_out: count(choice.left_out),
    }
}

fn domain(weighed: &DomainWeight) -> need_table::Domain {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    need_table::Domain {
        domain: weighed.domain.clone(),
        qualifies: weighed.qualifies,
        own: whole(weighed.own),
        credited: whole(weighed.credited),
        idle: whole(weighed.idle),
        speculative: whole(weighed.speculative),
        own_coverage: weighed.own_coverage,
        credit_coverage: weighed.credit_coverage,
        coverage_at_hand: weighed.coverage_at_hand,
        fill: weighed.fill,
        victims: weighed.victims.map(count),
    }
}

fn victim(victim: &Victim) -> need_table::Victim {
    need_table::Victim {
        machine_id: victim.machine.to_string(),
        fate: fate_text::victim(victim.fate).to_owned(),
        standing_priority: victim.standing,
        score: victim.score,
        head_start: victim.has_head_start,
    }
}

fn candidates(alike: &Alike) -> need_table::Candidates {
    need_table::Candidates {
        why: fate_text::fate(&alike.fate),
        state: wire::MachineState::from(alike.state).into(),
        kind: kind(
            &alike.kind.instance_type,
            &alike.kind.zone,
            &alike.kind.offers,
        ),
        count: count(alike.count),
        machine_ids: alike.machines.iter().map(ToString::to_string).collect(),
    }
}

/// `m5.large z1 cpu=4`.
fn kind(instance_type: &str, zone: &str, offers: &Amounts) -> String {
    let parts = [instance_type.to_owned(), zone.to_owned(), words(offers)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// `cpu=4 memory=16`; empty for nothing.
fn words(amounts: &Amounts) -> String {
    let word = |(name, milli): (&bigfleet_model::Dimension, i128)| {
        format!("{}={}", shown(name.as_str()), format_short(milli))
    };
    let words: Vec<String> = amounts.iter().map(word).collect();
    words.join(" ")
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
