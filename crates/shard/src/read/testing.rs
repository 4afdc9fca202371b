//! A core with a fleet in it, for tests of what readers are shown.

use bigfleet_model::{Echoed, Time};
use bigfleet_shard_core::{
    Effect, Event, Features, Listed, SessionId, ShardConfig, ShardCore, Sighting,
};

/// A core that has seen the machines of this fleet, and whose clusters are connected and ask for its
/// Needs. It has decided on them at least once.
pub(super) fn core(fleet: &str) -> ShardCore {
    let fleet = bigfleet_testkit::fleet(fleet);
    let config = ShardConfig::production("s1", "fake");
    let mut core = ShardCore::rebuild(config, 1, now(0), []).unwrap();
    let mut effects = Vec::new();
    core.handle(now(0), Event::Woken, &mut effects);
    let lists = effects.iter().find_map(|effect| match effect {
        Effect::List { list, .. } => Some(*list),
        _ => None,
    });
    let list = lists.unwrap();
    let machines = fleet.machines.values().map(|one| Sighting {
        machine: one.machine.clone(),
        echoed: Echoed::default(),
        leaving: None,
    });
    let page = Event::ListPage {
        list,
        machines: machines.collect(),
        refused: Vec::new(),
    };
    let complete = Listed::Complete {
        full: true,
        removed: Vec::new(),
        cursor: Vec::new(),
    };
    let ended = Event::ListEnded {
        list,
        outcome: complete,
    };
    let mut events = vec![page, ended];
    for (number, (cluster, asks)) in (1..).zip(&fleet.clusters) {
        let session = SessionId(number);
        events.push(Event::SessionOpened {
            session,
            cluster: cluster.clone(),
            features: Features::default(),
            identity: None,
        });
        events.push(Event::RolledUp {
            session,
            cluster: cluster.clone(),
            rollup_id: String::new(),
            rows: Ok(asks.needs().iter().map(|need| need.row.clone()).collect()),
        });
    }
    events.push(Event::CycleDue);
    for event in events {
        core.handle(now(1), event, &mut effects);
    }
    core
}

fn now(seconds: i64) -> Time {
    Time::from_nanos((1_000 + seconds) * 1_000_000_000)
}
