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
        need: ahead.need.to_string(),
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
mod tests {
    use super::*;
    use bigfleet_engine::{Explainer, Mark};
    use bigfleet_fleet_file::{Format, read, write};
    use bigfleet_model::ClusterId;
    use bigfleet_testkit::fleet;
    use serde_json::Value;

    /// Makes the edits, as RFC 6902 has it.
    fn edited(file: &str, patch: &str) -> String {
        let mut file: Value = serde_json::from_str(file).unwrap();
        let patch: Value = serde_json::from_str(patch).unwrap();
        for edit in patch.as_array().unwrap() {
            let path = edit["path"].as_str().unwrap();
            let (parent, key) = path.rsplit_once('/').unwrap();
            let parent = file.pointer_mut(parent).unwrap();
            match (edit["op"].as_str().unwrap(), parent) {
                ("add", Value::Array(list)) if key == "-" => list.push(edit["value"].clone()),
                ("add" | "replace", Value::Object(keys)) => {
                    keys.insert(key.to_owned(), edit["value"].clone());
                }
                ("remove", Value::Object(keys)) => drop(keys.remove(key).unwrap()),
                other => panic!("{other:?}"),
            }
        }
        file.to_string()
    }

    /// What is missing of everything cluster a asks for.
    fn left(fleet: &Fleet) -> Amounts {
        let a = ClusterId::new("a").unwrap();
        let decision = bigfleet_engine::decide(fleet);
        let of_a = decision.needs.iter().filter(|one| one.need.cluster == a);
        of_a.fold(Amounts::NONE, |sum, one| {
            sum.add(&one.residual.sub(&one.capacity_freed))
        })
    }

    /// The marks of a fleet whose cluster a has one Need, after each edit was made in the file and decided on.
    fn marks(of: &str) -> Vec<String> {
        let fleet = fleet(of);
        let file = write(&fleet);
        let key = fleet.clusters[&ClusterId::new("a").unwrap()].needs()[0].key();
        let mut explainer = Explainer::new(&fleet);
        let position = explainer.find(&key)[0];
        let explained = explainer.at(position).unwrap();
        let remedies = explainer.remedies(&explained);
        let before = left(&fleet);
        for (remedy, change) in remedies.iter().zip(changes(&fleet, &remedies)) {
            let file = edited(&file, &change.edit);
            let read = read(file.as_bytes(), Format::Json).unwrap().fleet;
            let after = left(&read);
            let agreed = match remedy.mark {
                Mark::Served => after.is_zero(),
                Mark::Better => !after.is_zero() && after != before && before.covers(&after),
                Mark::NoUse => after == before || !before.covers(&after),
            };
            assert!(agreed, "{change:?}: {before:?} → {after:?}\n{file}");
        }
        // Asking changed nothing.
        assert_eq!(explainer.at(position).unwrap(), explained);
        let changes = changes(&fleet, &remedies);
        let said = changes.iter();
        said.map(|one| format!("{}: {}", one.text, one.mark))
            .collect()
    }

    #[test]
    fn a_need_larger_than_everything_is_told_what_would_be_served() {
        assert_eq!(
            marks("i1..i2 Idle cpu=4 $1\n need a cpu=40 prio=5"),
            [
                "ask for cpu=8 in all: served",
                "one more machine: cpu=4: better"
            ]
        );
    }

    #[test]
    fn a_requirement_nobody_meets_is_tried_without() {
        assert_eq!(
            marks("i1 Idle cpu=4 $1 media=hdd zone=z1\n need a cpu=4 media=In(ssd) zone=In(z1)"),
            [
                "drop media In ssd: served",
                "drop topology.kubernetes.io/zone In z1: no use"
            ]
        );
    }

    #[test]
    fn a_unit_nobody_has_is_tried_smaller() {
        assert_eq!(
            marks("i1..i2 Idle cpu=4 $1\n need a cpu=8 min:cpu=64"),
            ["accept machines as small as cpu=4: served"]
        );
    }

    #[test]
    fn a_priority_above_the_holders_is_tried_only_where_somebody_holds_machines() {
        assert_eq!(
            marks(
                "b1..b3 Configured b cpu=4 $1 own=big stamp=1000
                 need a cpu=4 prio=100
                 need b name:big cpu=12 prio=1000"
            ),
            [
                "raise its priority to 1001, above whoever holds machines that fit: served",
                "one more machine: cpu=4: served"
            ]
        );
    }

    #[test]
    fn a_gang_is_tried_smaller_and_in_wider_domains() {
        let said = marks(
            "i1..i2 Idle cpu=4 $1 rack=r1 zone=z1\n i3 Idle cpu=4 $1 rack=r2 zone=z1
             need a cpu=12 min:cpu=4 group=g rack=Same",
        );
        assert!(
            said.contains(&"drop rack Same: served".to_owned()),
            "{said:?}"
        );
        assert!(
            said.contains(
                &"let the gang agree on topology.kubernetes.io/zone instead of rack: served"
                    .to_owned()
            ),
            "{said:?}"
        );
        assert!(
            said.contains(&"one more machine: z1 cpu=4: served".to_owned()),
            "{said:?}"
        );
    }

    #[test]
    fn nothing_is_suggested_to_one_that_has_what_it_asks_for() {
        assert!(marks("i1..i2 Idle cpu=4 $1\n need a cpu=8").is_empty());
    }
}
