//! Subject: what is compared with the oracle.

use crate::{Way, wander};
use bigfleet_engine::Engine;
use bigfleet_model::{Cluster, ClusterId, Decision, Fleet, Need};

/// The engine, or in a test one with a defect.
pub trait Subject {
    /// An engine that knows nothing yet.
    fn engine(&self) -> Engine {
        Engine::new()
    }

    /// The answer with no memory of an earlier one.
    fn full(&self, fleet: &Fleet) -> Decision {
        self.answer(Way::Full, fleet, bigfleet_engine::decide(fleet))
    }

    /// The answer after random edits from an empty fleet.
    fn wander(&self, fleet: &Fleet, seed: u64) -> Decision {
        self.answer(Way::Wander(seed), fleet, wander(fleet, seed))
    }

    /// Tells an engine what differs between two fleets.
    fn follow(&self, engine: &mut Engine, feed: Feed, before: &Fleet, after: &Fleet) {
        feed.follow(engine, before, after);
    }

    /// What becomes of a decision on its way out.
    fn answer(&self, way: Way, fleet: &Fleet, decision: Decision) -> Decision {
        let _ = (way, fleet);
        decision
    }
}

/// The engine as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Production;

impl Subject for Production {}

/// How demand reaches an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// A cluster's whole roll-up, when anything in it differs.
    Clusters,
    /// The rows that differ.
    Rows,
}

impl Feed {
    /// Tells an engine what differs between two fleets.
    pub fn follow(self, engine: &mut Engine, before: &Fleet, after: &Fleet) {
        match self {
            Self::Clusters => engine.follow(before, after),
            Self::Rows => follow_rows(engine, before, after),
        }
    }
}

fn follow_rows(engine: &mut Engine, before: &Fleet, after: &Fleet) {
    let mut told = before.clone();
    for (id, cluster) in &after.clusters {
        if let Some(known) = before.clusters.get(id)
            && (known.ready, known.acquire) == (cluster.ready, cluster.acquire)
        {
            tell_rows(engine, known, cluster);
            told.clusters.insert(id.clone(), cluster.clone());
        } else if !before.clusters.contains_key(id) && cluster.ready && cluster.acquire {
            report(engine, id, cluster);
            told.clusters.insert(id.clone(), cluster.clone());
        }
    }
    // What is left differs in flags or is gone, and machines.
    engine.follow(&told, after);
}

fn report(engine: &mut Engine, id: &ClusterId, cluster: &Cluster) {
    engine.ready(id);
    for need in cluster.needs() {
        engine.put_row(need);
    }
}

fn tell_rows(engine: &mut Engine, before: &Cluster, after: &Cluster) {
    let same = |one: &Need, other: &Need| {
        (&one.row.profile, &one.row.group) == (&other.row.profile, &other.row.group)
    };
    for gone in before.needs() {
        if !after.needs().iter().any(|need| same(need, gone)) {
            engine.remove_row(gone);
        }
    }
    for need in after.needs() {
        if !before.needs().contains(need) {
            engine.put_row(need);
        }
    }
}
