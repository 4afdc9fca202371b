//! Every cut: a process may die at any moment, with any prefix of its last write on disk.

use crate::restarts::{config, reconnect, restarted_as};
use crate::support::{FULL, World, cluster};
use bigfleet_model::State;
use bigfleet_shard_core::{Defect, Effect, Frame, ShardConfig};
use bigfleet_shard_world::Disk;

/// A history with everything in it: buying, bootstrapping, preempting, reclaiming, releasing.
fn history(config: ShardConfig, jitter: u64) -> World {
    let machines = "i1..i2 Idle cpu=4 $1 OnDemand
         s1..s8 Speculative cpu=4 $2 OnDemand
         x1..x2 Configured b cpu=4 $1 stamp=100 own-raw=F,";
    let mut world = World::new(config, machines);
    world.provider.latency = 25.0;
    world.provider.jitter = jitter;
    world.disk_delay = Some(0.05);
    world.moments = Some(Vec::new());
    world.connect("a", FULL);
    world.ask("b", "cpu=8 prio=100", 5.0);
    world.roll_up("a", "cpu=20 prio=1000");
    world.run(40.0);
    world.roll_up("b", "cpu=12 prio=100");
    world.run(30.0);
    world.roll_up("a", "cpu=8 prio=1000");
    world.run(60.0);
    world
}

/// SH-5, SH-6: for every moment and for every prefix the disk may hold at it, torn last write
/// included, the new process ends where the old one would have: no machine bought twice, no intent
/// lost, nothing new drained before its cluster has reported.
#[test]
fn every_cut_of_a_history_ends_where_it_would_have_ended() {
    let histories = [history(config(), 0), history(config(), 7), sizes(config())];
    for (world, least) in histories.into_iter().zip([60, 60, 15]) {
        let (cuts, worse) = worse_ends(&config(), world);
        assert!(least < cuts, "{cuts} cuts");
        assert_eq!(worse, [] as [String; 0]);
    }
}

/// The failing arm: with intents left out of the records, the same histories show it.
#[test]
fn cuts_of_a_history_show_intents_that_are_not_durable() {
    let broken = ShardConfig {
        defect: Some(Defect::IntentNotDurable),
        ..config()
    };
    let (_, worse) = worse_ends(&broken, sizes(broken.clone()));
    assert!(
        !worse.is_empty(),
        "the guard no longer sees what it guards against"
    );
}

/// A history in which it matters what a machine in creation is meant for: the big one is the cheapest
/// for everybody, and only one Need cannot do without it.
fn sizes(config: ShardConfig) -> World {
    let machines = "big1 Speculative cpu=16 $1
         big2 Speculative cpu=16 $9
         small1..small2 Speculative cpu=4 $5";
    let mut world = World::new(config, machines);
    world.provider.latency = 60.0;
    world.disk_delay = Some(0.05);
    world.moments = Some(Vec::new());
    world.connect("a", FULL);
    world.ask("b", "cpu=16 min:cpu=16 prio=100", 5.0);
    world.roll_up("a", "cpu=4 prio=1000");
    world.run(40.0);
    world
}

/// How many cuts there are, and those after which the new process ends elsewhere.
fn worse_ends(config: &ShardConfig, mut world: World) -> (usize, Vec<String>) {
    let (mut cuts, mut worse) = (0, Vec::new());
    let moments = world.moments.take().unwrap();
    let mut last = None;
    for moment in &moments {
        // Between two writes, acks and provider steps every moment is like the last.
        let states: Vec<State> = moment
            .provider
            .machines
            .values()
            .map(|there| there.machine.state())
            .collect();
        let now = (
            moment.disk.durable(),
            moment.disk.len(),
            states,
            moment.demand.clone(),
        );
        if last.as_ref() == Some(&now) {
            continue;
        }
        last = Some(now);
        let mut unbroken = moment.clone();
        unbroken.moments = None;
        unbroken.run(600.0);
        // A file written anew says what all records so far say.
        let all = restarted_as(config, moment, moment.disk.len());
        let mut anew = moment.clone();
        anew.disk = Disk::holding(all.core.records());
        let anew = restarted_as(config, &anew, anew.disk.len());
        assert_eq!(anew.core.records(), all.core.records());
        for cut in moment.disk.durable()..=moment.disk.len() {
            cuts += 1;
            worse.extend(check_cut(config, moment, cut, &unbroken).err());
        }
    }
    (cuts, worse)
}

fn check_cut(
    config: &ShardConfig,
    moment: &World,
    cut: usize,
    unbroken: &World,
) -> Result<(), String> {
    let told = format!(
        "at {} with {cut} of {} records",
        moment.now,
        moment.disk.len()
    );
    let mut again = restarted_as(config, moment, cut);
    again.run(20.0);
    let fresh = again.every.iter().filter(|effect| match effect {
        Effect::Call { operation, .. } => operation.epoch == 2,
        Effect::Send {
            frame: Frame::Reclaim { instruction, .. },
            ..
        } => instruction.epoch == 2,
        _ => false,
    });
    if fresh.count() != 0 {
        return Err(format!("something new before a roll-up, {told}"));
    }
    reconnect(&mut again, moment);
    again.run(600.0);
    if again.provider.serving() != unbroken.provider.serving() {
        return Err(format!("another end, {told}"));
    }
    let (bought, expected) = (again.provider.creates(), unbroken.provider.creates());
    if bought != expected {
        return Err(format!("bought {bought}, not {expected}, {told}"));
    }
    for name in moment.demand.keys() {
        assert!(again.core.is_cluster_ready(&cluster(name)));
    }
    Ok(())
}
