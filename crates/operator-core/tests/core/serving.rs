//! Who is told how a request is served, when, and how often (OP-53).

use crate::support::{World, amounts, at, config, request};
use bigfleet_model::Row;
use bigfleet_operator_core::{
    Defect, Heard, ObjectKey, OperatorConfig, RequestFacts, RowStatus, Served, Stuck, StuckReason,
    Write,
};

fn stuck(name: &str) -> RequestFacts {
    let mut facts = request(name, "1");
    facts.status.as_mut().unwrap().stuck = Some(Stuck {
        since: at(0),
        reason: StuckReason::Insufficient,
    });
    facts
}

/// What the shard says of a row that is short of so much.
fn status(row: &Row, missing: &str, reason: &str) -> RowStatus {
    let cpu = |text: &str| amounts(&[("cpu", text)]);
    RowStatus {
        fingerprint: row.profile.fingerprint().as_str().to_owned(),
        group: row.group.as_str().to_owned(),
        serving: cpu("1"),
        coming: cpu("0"),
        stuck: cpu("0"),
        missing: cpu(missing),
        reason: reason.to_owned(),
        sentence: format!("missing cpu={missing}"),
    }
}

fn hear(world: &mut World, missing: &str, reason: &str) {
    let row = world.last_rows()[0].clone();
    let rows = vec![status(&row, missing, reason)];
    world.hear(Heard::NeedStatus {
        rows,
        is_complete: true,
    });
}

fn served(world: &World, name: &str) -> Option<Served> {
    let facts = &world.requests[&ObjectKey::namespaced("ns", name)];
    facts.status.as_ref()?.served.clone()
}

fn words(world: &World) -> Vec<(String, String)> {
    let word = |write: &Write| match write {
        Write::Serve {
            request, served, ..
        } => Some((request.name.clone(), served.reason.clone())),
        _ => None,
    };
    world.writes.iter().filter_map(word).collect()
}

#[test]
fn who_waits_is_told_why_and_once_more_when_it_is_served() {
    let mut world = World::started(config());
    world.add_request(stuck("waits"));
    world.add_request(request("runs", "1"));
    world.run_for(5);
    hear(&mut world, "1", "NoMatchingSupply");
    world.run_for(5);
    let told = served(&world, "waits").unwrap();
    assert_eq!(
        (told.is_served, told.reason.as_str(), told.message.as_str()),
        (false, "NoMatchingSupply", "missing cpu=1")
    );
    assert_eq!(served(&world, "runs"), None, "its Pod runs");
    hear(&mut world, "1", "NoMatchingSupply");
    world.run_for(60);
    assert_eq!(words(&world).len(), 1, "the same is not written twice");
    hear(&mut world, "0", "Served");
    world.run_for(5);
    assert_eq!(words(&world).len(), 1, "its Pod is still stuck");
    let mut placed = world.requests[&ObjectKey::namespaced("ns", "waits")].clone();
    placed.status.as_mut().unwrap().stuck = None;
    world.add_request(placed);
    world.run_for(5);
    assert!(served(&world, "waits").unwrap().is_served);
    assert_eq!(words(&world).len(), 2);
}

#[test]
fn a_request_without_a_pod_is_told_after_30_seconds_and_when_its_row_is_served() {
    let mut world = World::started(config());
    let mut made = request("made", "1");
    (made.owner, made.created) = (None, world.now);
    world.add_request(made);
    world.run_for(5);
    hear(&mut world, "1", "PriorityStarved");
    world.run_for(24);
    assert_eq!(words(&world), [], "29 s after it was made");
    world.run_for(2);
    assert_eq!(served(&world, "made").unwrap().reason, "PriorityStarved");
    hear(&mut world, "0", "Served");
    world.run_for(5);
    assert!(served(&world, "made").unwrap().is_served);
    hear(&mut world, "0", "Served");
    world.run_for(60);
    assert_eq!(words(&world).len(), 2);
}

#[test]
fn nobody_is_told_what_no_condition_could_say_or_before_the_shard_has_said_anything() {
    let mut world = World::started(config());
    world.add_request(stuck("waits"));
    world.run_for(60);
    assert_eq!(words(&world), []);
    for reason in ["", "two words", "Ünlesbar", "1st"] {
        hear(&mut world, "1", reason);
        world.run_for(60);
    }
    assert_eq!(words(&world), []);
    hear(&mut world, "1", "PriorityStarved");
    world.run_for(1);
    assert_eq!(words(&world).len(), 1);
}

#[test]
fn ten_conditions_are_written_in_a_second_the_oldest_first() {
    let mut world = World::started(config());
    for number in 0..100 {
        let mut facts = stuck(&format!("r{number:02}"));
        facts.created = at(100 - number);
        world.add_request(facts);
    }
    world.run_for(120);
    hear(&mut world, "1", "PriorityStarved");
    world.run_for(2);
    let told = words(&world);
    assert!((19..=21).contains(&told.len()), "{} in 2 s", told.len());
    assert_eq!(told[0].0, "r99", "made first");
    world.run_for(10);
    assert_eq!(words(&world).len(), 100);
}

/// How rows are named depends on what the shard can do, which is known only once it was heard.
#[test]
fn a_request_that_was_there_before_the_session_is_told_too() {
    let mut world = World::new(config());
    world.is_shard_up = false;
    world.lead();
    let mut large = stuck("large");
    large.spec.resources = [("cpu".to_owned(), "30".to_owned())].into();
    world.add_request(large);
    world.run_for(60);
    world.is_shard_up = true;
    world.run_for(120);
    hear(&mut world, "30", "PriorityStarved");
    world.run_for(5);
    assert_eq!(words(&world).len(), 1);
}

/// [`Defect::RunningPodsTold`].
#[test]
fn with_the_mistake_a_pod_that_runs_is_told_that_it_is_not_served() {
    let told = |config: OperatorConfig| {
        let mut world = World::started(config);
        world.add_request(request("runs", "1"));
        world.run_for(60);
        hear(&mut world, "1", "PriorityStarved");
        world.run_for(5);
        words(&world).len()
    };
    let broken = OperatorConfig {
        defect: Some(Defect::RunningPodsTold),
        ..config()
    };
    assert_eq!((told(config()), told(broken)), (0, 1));
}
