//! Where a Need stands: serving, coming, stuck, missing, and since when it lacks something (SV-1..SV-5).

use crate::support::{FULL, Refusal, World, at, cluster, id, world};
use bigfleet_model::{Amounts, NeedKey, State};
use bigfleet_shard_core::{
    Code, Event, Features, NodeFact, PauseNote, PausedBy, Progress, Scope, SessionId, Trouble,
};

/// Where the one Need of cluster a stands.
fn progress(world: &World) -> Progress {
    let (need, wants) = need(world);
    world.core.progress(&need, &wants).0
}

fn need(world: &World) -> (NeedKey, Amounts) {
    let decided = world.core.decided().unwrap();
    let mut needs = decided.needs.iter().map(|view| &view.verdict.need);
    let need = needs.find(|need| need.cluster == cluster("a")).unwrap();
    (need.key(), need.row.aggregate.clone())
}

/// cpu that serves, comes, is stuck and is missing.
fn cpus(progress: &Progress) -> [i128; 4] {
    let Progress {
        serving,
        coming,
        stuck,
        missing,
        ..
    } = progress;
    [serving, coming, stuck, missing].map(|of| of.get("cpu") / 1000)
}

/// `stage: why`, in order.
fn stages(progress: &Progress) -> Vec<String> {
    let stages = progress.stages.iter();
    stages
        .map(|one| match &one.stuck {
            Some(why) => format!("{} — {why}", one.stage),
            None => one.stage.clone(),
        })
        .collect()
}

/// One that serves, one that is idle, and slots, at a provider that takes a minute.
fn slow() -> World {
    let mut world = world("i1 Idle cpu=4 $1\n s1..s4 Speculative cpu=4 $2");
    world.provider.latency = 60.0;
    world
}

#[test]
fn what_is_on_its_way_comes_and_does_not_serve() {
    let mut world = slow();
    world.ask("a", "cpu=12", 5.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [0, 12, 0, 0]);
    assert!(world.core.decided().unwrap().needs[0].verdict.satisfied);
    assert_eq!(
        stages(&now),
        [
            "Create: the provider works on it",
            "Configure: the provider works on it"
        ]
    );
    assert_eq!(
        now.lacking_since,
        Some(at(1.0)),
        "from when it was asked for"
    );
    world.run(300.0);
    let then = progress(&world);
    assert_eq!((cpus(&then), then.lacking_since), ([12, 0, 0, 0], None));
    assert!(then.is_served() && then.stages.is_empty());
}

#[test]
fn what_is_beyond_all_machines_is_missing() {
    let mut world = slow();
    world.provider.latency = 0.0;
    world.ask("a", "cpu=40", 30.0);
    assert_eq!(cpus(&progress(&world)), [20, 0, 0, 20]);
}

#[test]
fn what_is_refused_again_and_again_is_stuck_since_the_first_time() {
    let mut world = slow();
    world.provider.latency = 0.0;
    let refusals = vec![Refusal::Code(Code::Unavailable); 20];
    world.provider.refuse.insert(id("i1"), refusals);
    world.ask("a", "cpu=4", 120.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [0, 0, 4, 0]);
    assert_eq!(
        stages(&now),
        ["Configure: to be tried again — the provider says \"UNAVAILABLE\""]
    );
    assert!(now.stages[0].since < at(5.0), "{now:?}");
    assert_eq!(now.stages[0].machine, id("i1"));
}

#[test]
fn what_a_pause_holds_is_stuck_and_what_it_keeps_from_beginning_is_missing() {
    let mut world = slow();
    world.ask("a", "cpu=8", 5.0);
    let pause = |scope| Event::Pause {
        by: PausedBy::Admin,
        scope,
        since: None,
        until: None,
        note: PauseNote {
            requested_by: "alice".to_owned(),
            reason: "storage work".to_owned(),
        },
    };
    world.tell(pause(Scope::Cluster(cluster("a"))));
    world.run(100.0);
    world.roll_up("a", "cpu=12");
    world.run(5.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [4, 0, 4, 4], "{:?}", stages(&now));
    assert_eq!(
        stages(&now),
        ["Idle, to be configured — cluster a is paused by alice: storage work"]
    );
    assert!(world.core.troubles().is_empty(), "it is one cluster's");
    world.tell(pause(Scope::All));
    assert!(matches!(&world.core.troubles()[..], [Trouble::Paused(_)]));
}

#[test]
fn a_machine_whose_operator_is_gone_is_stuck() {
    let mut world = slow();
    let session = world.ask("a", "cpu=8", 5.0);
    world.tell(Event::SessionClosed { session });
    world.run(70.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [4, 0, 4, 0], "{:?}", stages(&now));
    assert_eq!(
        stages(&now),
        ["Idle, to be configured — no operator of its cluster is connected"]
    );
}

#[test]
fn a_provider_that_cannot_be_reached_is_a_trouble_of_the_whole_shard() {
    let mut world = slow();
    world.provider.latency = 1000.0;
    world.ask("a", "cpu=8", 5.0);
    world.provider.list_fails = true;
    world.run(25.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [0, 0, 8, 0]);
    for said in stages(&now) {
        assert!(said.ends_with("— the provider cannot be reached"), "{said}");
    }
    let lost = world.core.provider_lost().unwrap();
    assert!(at(5.0) < lost && lost < at(20.0), "{lost:?}");
    assert_eq!(world.core.troubles(), [Trouble::ProviderLost(lost)]);
    world.run(200.0);
    assert_eq!(
        world.core.provider_lost(),
        Some(lost),
        "it stays as old as it is"
    );
    world.provider.list_fails = false;
    world.run(25.0);
    assert_eq!(world.core.troubles(), []);
    assert_eq!(cpus(&progress(&world)), [0, 8, 0, 0]);
}

fn node(machine: &str, ready: bool) -> NodeFact {
    NodeFact {
        machine: Some(id(machine)),
        node_name: format!("node-{machine}"),
        provider_id: String::new(),
        ready,
        disruption: None,
    }
}

fn report(world: &mut World, session: SessionId, nodes: Vec<NodeFact>) {
    world.tell(Event::NodesReported {
        session,
        complete: true,
        nodes,
    });
}

#[test]
fn a_machine_serves_once_its_node_is_ready_where_nodes_are_reported() {
    let mut world = world("i1..i2 Idle cpu=4 $1");
    let session = world.connect("a", FULL);
    world.run(1.0);
    report(&mut world, session, Vec::new());
    world.roll_up("a", "cpu=8");
    world.run(30.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [0, 8, 0, 0]);
    assert_eq!(stages(&now), ["waits for its Node to be Ready"]);
    assert!(now.lacking_since.is_some_and(|since| since < at(3.0)));
    report(
        &mut world,
        session,
        vec![node("i1", true), node("i2", true)],
    );
    world.run(30.0);
    assert_eq!(cpus(&progress(&world)), [8, 0, 0, 0]);
    report(
        &mut world,
        session,
        vec![node("i1", true), node("i2", false)],
    );
    world.run(30.0);
    let now = progress(&world);
    assert_eq!(cpus(&now), [4, 0, 4, 0]);
    assert_eq!(
        stages(&now),
        ["Configured — its Node is not Ready any more"]
    );
    assert!(now.lacking_since.is_some_and(|since| at(60.0) < since));
}

#[test]
fn where_no_nodes_are_reported_configured_serves() {
    let mut world = world("i1 Idle cpu=4 $1");
    world.connect("a", Features::default());
    world.run(1.0);
    world.roll_up("a", "cpu=4");
    world.run(30.0);
    assert_eq!(
        world.core.machine(&id("i1")).unwrap().state(),
        State::Configured
    );
    assert_eq!(cpus(&progress(&world)), [4, 0, 0, 0]);
}

/// A pool that runs out lets the verdict flap: covered while a slot is tried, short while it is not. The Need
/// was served all the while by nobody.
#[test]
fn an_age_goes_on_while_a_stock_out_lets_the_verdict_flap() {
    let mut world = world("s1..s4 Speculative cpu=4 $2");
    for slot in ["s1", "s2", "s3", "s4"] {
        let refusals = vec![Refusal::Code(Code::ResourceExhausted); 50];
        world.provider.refuse.insert(id(slot), refusals);
    }
    world.provider.answer_after = 3.0;
    world.ask("a", "cpu=4", 0.0);
    let (mut satisfied, mut ages) = (0, Vec::new());
    for _ in 0..300 {
        world.run(1.0);
        let (need, _) = need(&world);
        satisfied += usize::from(world.core.shortfall(&need).is_none());
        ages.push(
            world
                .core
                .lacking()
                .find(|(one, _)| **one == need)
                .unwrap()
                .1,
        );
    }
    assert!(0 < satisfied, "the verdict flaps");
    ages.dedup();
    assert_eq!(ages, [at(1.0)], "one age, from the beginning");
}
