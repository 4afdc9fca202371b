//! Minimise: the smallest trail on which an answer is still wrong, as far as greed finds it.
//!
//! ```text
//! fewer stops ─▶ fewer machines, clusters, rows ─▶ fewer edits ─▶ plainer fields ─┐
//!      ▲                                                                          │
//!      └──────────────────── until nothing can go any more ───────────────────────┘
//! ```
//!
//! Every part is taken away from all fleets of the trail at once. What stays wrong may become wrong
//! in another place; a smaller wrong answer of the same engine is worth more than the first one.

use crate::{
    Difference, Feed, Mismatch, Stop, Subject, Then, Way,
    compare::{against, at_the_end, attempt},
    edit::{Edit, play, stops},
    simplify,
    wander::walk,
};
use bigfleet_model::{Cluster, ClusterId, Fleet, Group, MachineId, Need, Profile};
use std::{collections::BTreeSet, sync::Arc};

/// Beyond this many tries, what there is will do.
const MOST_TRIES: usize = 20_000;

/// The same mistake in a smaller fleet.
pub fn minimise(subject: &dyn Subject, mismatch: &Mismatch) -> Mismatch {
    let mut shrinking = Shrinking {
        subject,
        way: mismatch.way,
        trail: mismatch.trail.clone(),
        differences: mismatch.differences.clone(),
        tries: 0,
    };
    if let Way::Wander(seed) = mismatch.way {
        shrinking.retrace(seed);
    }
    let mut before = usize::MAX;
    while shrinking.size() < before && shrinking.tries < MOST_TRIES {
        before = shrinking.size();
        shrinking.stops();
        shrinking.machines();
        shrinking.clusters();
        shrinking.rows();
        shrinking.edits();
        shrinking.fields();
    }
    let Shrinking {
        way,
        trail,
        differences,
        ..
    } = shrinking;
    Mismatch {
        way,
        trail,
        differences,
        ..mismatch.clone()
    }
}

pub(crate) struct Shrinking<'a> {
    subject: &'a dyn Subject,
    way: Way,
    pub(crate) trail: Vec<Stop>,
    differences: Vec<Difference>,
    tries: usize,
}

impl Shrinking<'_> {
    /// Takes the other trail if the answer is wrong there too.
    pub(crate) fn attempt(&mut self, trail: Vec<Stop>) -> bool {
        if trail == self.trail || MOST_TRIES <= self.tries {
            return false;
        }
        self.tries += 1;
        let differences = at_the_end(self.subject, self.way, &trail);
        let wrong = !differences.is_empty();
        if wrong {
            (self.trail, self.differences) = (trail, differences);
        }
        wrong
    }

    /// As [`Self::attempt`], with every fleet of the trail changed.
    pub(crate) fn attempt_on_all(&mut self, change: impl Fn(&mut Fleet)) -> bool {
        let mut trail = self.trail.clone();
        trail.iter_mut().for_each(|stop| change(&mut stop.fleet));
        self.attempt(trail)
    }

    /// Writes down the edits of a walk, leaves out those that do not matter, and goes the rest as a
    /// trail. Without this every machine taken away would make it another walk.
    fn retrace(&mut self, seed: u64) {
        let Some(last) = self.trail.last() else {
            return;
        };
        let mut script = Vec::new();
        walk(&last.fleet, seed, &mut |edit| script.push(edit));
        let is_wrong = |script: &[Edit]| {
            let mut known = Fleet::default();
            let answer = attempt(|| {
                let (engine, fleet) = play(script);
                known = fleet;
                self.subject.answer(self.way, &known, engine.decision())
            });
            !against(&bigfleet_oracle::decide(&known), &answer).is_empty()
        };
        // The last edit asks for the answer.
        let question = script.pop();
        let mut chunk = script.len().next_power_of_two();
        while 0 < chunk {
            let mut at = 0;
            while at < script.len() && self.tries < MOST_TRIES {
                self.tries += 1;
                let end = (at + chunk).min(script.len());
                let kept = script[..at].iter().chain(&script[end..]).chain(&question);
                let kept: Vec<Edit> = kept.cloned().collect();
                if is_wrong(&kept) {
                    drop(script.drain(at..end))
                } else {
                    at = end
                }
            }
            chunk /= 2;
        }
        script.extend(question);
        let way = std::mem::replace(&mut self.way, Way::Incremental(Feed::Rows));
        if !self.attempt(stops(&script)) {
            self.way = way;
        }
    }

    /// The length of what would be printed.
    fn size(&self) -> usize {
        let text = |stop: &Stop| bigfleet_fleet_file::write(&stop.fleet).len();
        self.trail.iter().map(text).sum()
    }

    /// Leaves out stops, many at first, then one by one; never the last.
    fn stops(&mut self) {
        let mut chunk = self.trail.len().next_power_of_two();
        while 0 < chunk {
            let mut at = 0;
            while at + 1 < self.trail.len() {
                let end = (at + chunk).min(self.trail.len() - 1);
                let mut trail = self.trail.clone();
                trail.drain(at..end);
                if !self.attempt(trail) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
        for at in 0..self.trail.len() {
            for then in [Then::Decide, Then::Pass] {
                let mut trail = self.trail.clone();
                let last = at + 1 == trail.len();
                trail[at].then = if last { Then::Decide } else { then };
                self.attempt(trail);
            }
        }
    }

    fn machines(&mut self) {
        let stops = self
            .trail
            .iter()
            .flat_map(|stop| stop.fleet.machines.keys().cloned());
        let all: BTreeSet<MachineId> = stops.collect();
        self.without(
            all.into_iter().collect(),
            |fleet, machines: &[MachineId]| {
                fleet.machines.retain(|id, _| !machines.contains(id));
            },
        );
    }

    fn clusters(&mut self) {
        let stops = self
            .trail
            .iter()
            .flat_map(|stop| stop.fleet.clusters.keys().cloned());
        let all: BTreeSet<ClusterId> = stops.collect();
        self.without(
            all.into_iter().collect(),
            |fleet, clusters: &[ClusterId]| {
                fleet.clusters.retain(|id, _| !clusters.contains(id));
            },
        );
    }

    fn rows(&mut self) {
        let mut all: Vec<Identity> = Vec::new();
        for need in self.trail.iter().flat_map(|stop| needs(&stop.fleet)) {
            let identity = identity(need);
            if !all.contains(&identity) {
                all.push(identity);
            }
        }
        self.without(all, |fleet, gone: &[Identity]| {
            change_rows(fleet, |need| !gone.contains(&identity(need)));
        });
    }

    /// Takes away as many of these as possible, many at first, then one by one.
    fn without<T: Clone>(&mut self, mut all: Vec<T>, take: impl Fn(&mut Fleet, &[T])) {
        let mut chunk = all.len().next_power_of_two();
        while 0 < chunk {
            let mut at = 0;
            while at < all.len() {
                let end = (at + chunk).min(all.len());
                if self.attempt_on_all(|fleet| take(fleet, &all[at..end])) {
                    drop(all.drain(at..end))
                } else {
                    at = end
                }
            }
            chunk /= 2;
        }
    }

    /// Lets a fact be from the start what it becomes later.
    fn edits(&mut self) {
        for at in (0..self.trail.len().saturating_sub(1)).rev() {
            let after = self.trail[at + 1].fleet.clone();
            let machines: BTreeSet<MachineId> = self.trail[at]
                .fleet
                .machines
                .keys()
                .chain(after.machines.keys())
                .cloned()
                .collect();
            for id in machines {
                let mut trail = self.trail.clone();
                let fleet = &mut trail[at].fleet;
                match after.machines.get(&id) {
                    Some(machine) => drop(fleet.machines.insert(id, machine.clone())),
                    None => drop(fleet.machines.remove(&id)),
                }
                self.attempt(trail);
            }
            let clusters: BTreeSet<ClusterId> = self.trail[at]
                .fleet
                .clusters
                .keys()
                .chain(after.clusters.keys())
                .cloned()
                .collect();
            for id in clusters {
                let mut trail = self.trail.clone();
                let fleet = &mut trail[at].fleet;
                match after.clusters.get(&id) {
                    Some(cluster) => drop(fleet.clusters.insert(id, cluster.clone())),
                    None => drop(fleet.clusters.remove(&id)),
                }
                self.attempt(trail);
            }
            let mut trail = self.trail.clone();
            trail[at].fleet.now = after.now;
            trail[at].fleet.holds = after.holds;
            self.attempt(trail);
        }
    }

    fn fields(&mut self) {
        simplify::fleets(self);
        let stops = self
            .trail
            .iter()
            .flat_map(|stop| stop.fleet.machines.keys().cloned());
        let machines: BTreeSet<MachineId> = stops.collect();
        for id in machines {
            simplify::machine(self, &id);
        }
        let rows: Vec<Identity> = self
            .trail
            .iter()
            .flat_map(|stop| needs(&stop.fleet))
            .map(identity)
            .collect();
        for row in rows {
            simplify::row(self, &row);
        }
    }
}

/// What tells a row from the others.
pub(crate) type Identity = (ClusterId, Arc<Profile>, Group);

pub(crate) fn identity(need: &Need) -> Identity {
    (
        need.cluster.clone(),
        need.row.profile.clone(),
        need.row.group.clone(),
    )
}

fn needs(fleet: &Fleet) -> impl Iterator<Item = &Need> {
    fleet.clusters.values().flat_map(|cluster| cluster.needs())
}

/// Changes the rows of every cluster, and leaves out those of which the change says so.
pub(crate) fn change_rows(fleet: &mut Fleet, mut keep: impl FnMut(&mut Need) -> bool) {
    for (id, cluster) in &mut fleet.clusters {
        let mut needs = cluster.needs().to_vec();
        needs.retain_mut(&mut keep);
        let rows = needs
            .into_iter()
            .map(|need| (need.row, need.arrival, need.parked));
        if let Ok(changed) = Cluster::new(id, rows) {
            let (ready, acquire) = (cluster.ready, cluster.acquire);
            *cluster = changed;
            (cluster.ready, cluster.acquire) = (ready, acquire);
        }
    }
}
