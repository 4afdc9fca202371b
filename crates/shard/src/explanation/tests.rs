//! What would change it: each suggestion against deciding on the edited file.

use super::*;
use bigfleet_engine::{Explainer, Mark};
use bigfleet_fleet_file::{Format, read, write};
use bigfleet_model::{ClusterId, Group, NeedKey};
use bigfleet_testkit::{fleet, generate::Generator};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Fleets that are tried.
const SEEDS: u64 = 60;

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

/// The rows behind an explained Need: itself, or the gangs that folded to it.
fn rows_behind(fleet: &Fleet, key: &NeedKey) -> Vec<Need> {
    let rows = fleet.clusters.values().flat_map(|cluster| cluster.needs());
    let is_it = |row: &&Need| row.key() == *key || folded(row).as_ref() == Some(key);
    rows.filter(is_it).cloned().collect()
}

/// The name a gang is decided under together with its equals.
fn folded(row: &Need) -> Option<NeedKey> {
    row.row.profile.same_key()?;
    Some(NeedKey {
        cluster: row.cluster.clone(),
        fingerprint: row.row.profile.folded().fingerprint().clone(),
        group: Group::new(&format!("fold:{}", row.row.aggregate.key())),
    })
}

/// What is missing of these rows, after what is preempted for them.
fn left(fleet: &Fleet, rows: &[Need]) -> Amounts {
    let keys = rows.iter().flat_map(|row| [Some(row.key()), folded(row)]);
    let keys: BTreeSet<NeedKey> = keys.flatten().collect();
    let decision = bigfleet_engine::decide(fleet);
    let of_them = decision
        .needs
        .iter()
        .filter(|one| keys.contains(&one.need.key()));
    of_them.fold(Amounts::NONE, |sum, one| {
        sum.add(&one.residual.sub(&one.capacity_freed))
    })
}

/// What is suggested for the Need at a position, after each edit was made in the file and decided on.
fn checked(
    fleet: &Fleet,
    file: &str,
    explainer: &mut Explainer<'_>,
    position: usize,
) -> Vec<NeedChange> {
    let explained = explainer.at(position).unwrap();
    let remedies = explainer.remedies(&explained);
    let before = explained
        .verdict
        .residual
        .sub(&explained.verdict.capacity_freed);
    let behind = rows_behind(fleet, &explained.verdict.need.key());
    let changes = changes(fleet, &remedies);
    for (remedy, change) in remedies.iter().zip(&changes) {
        let file = edited(file, &change.edit);
        let read = read(file.as_bytes(), Format::Json).unwrap().fleet;
        let rows = behind.iter().map(|row| match &remedy.edit {
            Edit::Machine(_) => row.clone(),
            edit => edit.apply(row).unwrap(),
        });
        let after = left(&read, &rows.collect::<Vec<_>>());
        let mark = if after.is_zero() {
            Mark::Served
        } else if after != before && before.covers(&after) {
            Mark::Better
        } else {
            Mark::NoUse
        };
        assert_eq!(
            remedy.mark, mark,
            "{change:?}: {before:?} → {after:?}\n{file}"
        );
    }
    // Asking changed nothing.
    assert_eq!(explainer.at(position).unwrap(), explained);
    changes
}

/// The marks of a fleet whose cluster a has one Need.
fn marks(of: &str) -> Vec<String> {
    let fleet = fleet(of);
    let file = write(&fleet);
    let key = fleet.clusters[&ClusterId::new("a").unwrap()].needs()[0].key();
    let mut explainer = Explainer::new(&fleet);
    let position = explainer.find(&key)[0];
    let changes = checked(&fleet, &file, &mut explainer, position);
    let said = changes.iter();
    said.map(|one| format!("{}: {}", one.text, one.mark))
        .collect()
}

/// SV-7: whatever the fleet, deciding on the edited file says what the mark says.
#[test]
fn every_mark_is_what_deciding_on_the_edited_file_says() {
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..SEEDS {
        let fleet = Generator::new(seed).fleet();
        let file = write(&fleet);
        let mut explainer = Explainer::new(&fleet);
        for position in 0..explainer.needs().count() {
            for change in checked(&fleet, &file, &mut explainer, position) {
                *marks.entry(change.mark).or_default() += 1;
            }
        }
    }
    // The fleets are such that there is something to say.
    let many = |mark: &str| 20 < marks.get(mark).copied().unwrap_or(0);
    assert!(
        ["served", "better", "no use"].into_iter().all(many),
        "{marks:?}"
    );
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
            &"let the gang agree on topology.kubernetes.io/zone instead of rack: served".to_owned()
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
