//! Rebuild: from records back to a shard (SH-4..SH-8).
//!
//! ```text
//! records ─▶ remembered ─▶ first List ─▶ each operation by what the provider shows (SH-6)
//! ```
//!
//! Every unfinished operation is unknown after a restart. What the provider shows decides: not begun,
//! send again; on its way, wait; there, done; anything else, it ends, and nothing is ever drained.

use crate::{
    ShardCore,
    audit::Outcome,
    effect::{Alert, Effect},
    event::{PausedBy, Sighting},
    operation::{Operation, Step, walk},
    record::{Kept, Record},
    report::Domain,
    settings::ShardConfig,
    settle::Place,
    timers::Timer,
};
use bigfleet_model::{ClusterId, Machine, MachineId, State, Time, Via};
use std::{collections::BTreeSet, fmt};

/// Why a shard does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartRefused {
    /// The shard's id is empty.
    NoShard,
    /// The epoch is zero.
    NoEpoch,
    /// The store has seen this epoch or a later one: another data directory, or an old copy.
    EpochWentBack {
        /// The epoch to start with.
        given: u64,
        /// The one on record.
        recorded: u64,
    },
    /// The epoch file does not hold a number.
    EpochUnreadable(String),
}

impl fmt::Display for StartRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoShard => f.write_str("a shard needs an id (PR-2)"),
            Self::NoEpoch => f.write_str("a shard needs an epoch of at least 1 (PR-2)"),
            Self::EpochWentBack { given, recorded } => write!(
                f,
                "epoch {given} is not above {recorded}, which the store has seen (SH-4); if no other \
                 process runs this shard, start once with --epoch-floor {}",
                recorded.saturating_add(1)
            ),
            Self::EpochUnreadable(text) => write!(
                f,
                "the epoch file holds \"{}\", which is not a number (FE-1)",
                bigfleet_model::shown(text)
            ),
        }
    }
}

impl std::error::Error for StartRefused {}

/// The epoch to start with, from what the epoch file holds and the least one allowed (FE-1, SH-4).
/// It is to be on disk before the first call.
pub fn next_epoch(file: Option<&str>, floor: u64) -> Result<u64, StartRefused> {
    let text = file.map_or("0", str::trim);
    let last: u64 = text
        .parse()
        .map_err(|_| StartRefused::EpochUnreadable(text.to_owned()))?;
    let next = last.checked_add(1);
    let next = next.ok_or_else(|| StartRefused::EpochUnreadable(text.to_owned()))?;
    Ok(next.max(floor))
}

impl ShardCore {
    /// A shard that remembers nothing.
    pub fn new(config: ShardConfig, epoch: u64, now: Time) -> Result<Self, StartRefused> {
        Self::rebuild(config, epoch, now, [])
    }

    /// A shard that remembers these records, any prefix of what an earlier one handed out.
    pub fn rebuild(
        config: ShardConfig,
        epoch: u64,
        now: Time,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, StartRefused> {
        if config.shard.is_empty() {
            return Err(StartRefused::NoShard);
        }
        if epoch == 0 {
            return Err(StartRefused::NoEpoch);
        }
        let mut core = Self::empty(config, epoch, now);
        for record in records {
            match record {
                Record::Epoch(recorded) if epoch < recorded => {
                    return Err(StartRefused::EpochWentBack {
                        given: epoch,
                        recorded,
                    });
                }
                Record::Epoch(_) => {}
                Record::Machine {
                    machine,
                    kept: Some(kept),
                } => {
                    core.truth.remembered.insert(machine, kept);
                }
                Record::Machine {
                    machine,
                    kept: None,
                } => {
                    core.truth.remembered.remove(&machine);
                }
                Record::Cluster { cluster, baseline } => {
                    core.truth.served.insert(cluster.clone());
                    let known = core.demand.clusters.entry(cluster).or_default();
                    known.guard.baseline = Some(baseline);
                }
                Record::Owned { machine, owned } => {
                    match owned {
                        true => core.truth.owned.insert(machine),
                        false => core.truth.owned.remove(&machine),
                    };
                }
                Record::ForeignSeen => core.truth.foreign_seen = true,
                Record::Term(term) => core.upward.term = core.upward.term.max(term),
                Record::Instruction(id) => core.upward.remember(id),
                Record::Domain { domain, assigned } => core.upward.set_domain(domain, assigned),
                Record::Arrival { need, at } => {
                    let known = core.demand.clusters.entry(need.cluster).or_default();
                    let key = (need.fingerprint, need.group);
                    match at {
                        Some(at) => known.remembered.insert(key, at),
                        None => known.remembered.remove(&key),
                    };
                }
                Record::Released { cluster, released } => {
                    match released {
                        true => core.released.insert(cluster),
                        false => core.released.remove(&cluster),
                    };
                }
                Record::Retired { machine, retired } => {
                    match retired {
                        true => core.truth.retired.insert(machine),
                        false => core.truth.retired.remove(&machine),
                    };
                }
                Record::Paused { scope, kept } => match kept {
                    Some(kept) => core.pauses.pause(PausedBy::Admin, scope, kept),
                    None => core.pauses.resume(PausedBy::Admin, scope),
                },
            }
        }
        core.expire_pauses(now);
        if let Some(expiry) = core.pauses.next_expiry() {
            core.timers.set(expiry, Timer::Pause);
        }
        core.hold_remembered(now);
        core.truth.remembered_at_start = core.truth.remembered.len();
        core.ledger.reserve(core.truth.remembered_at_start);
        let intents = core.truth.remembered.values();
        let meant = intents.filter_map(|kept| Some(kept.intent.as_ref()?.need.cluster.clone()));
        let bound = core.truth.remembered.values();
        let bound = bound.filter_map(|kept| kept.cluster.clone());
        let clusters: BTreeSet<ClusterId> = meant.chain(bound).collect();
        for cluster in &clusters {
            core.expect_cluster(now, cluster);
        }
        let released: Vec<ClusterId> = core.released.iter().cloned().collect();
        for cluster in &released {
            core.drop_demand(now, cluster);
        }
        Ok(core)
    }

    /// Everything to remember now, for whoever writes a file anew: a shard rebuilt from it is the one
    /// rebuilt from all records so far.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Epoch(self.epoch)];
        if self.truth.foreign_seen {
            records.push(Record::ForeignSeen);
        }
        let owned = self.truth.owned.iter();
        records.extend(owned.map(|machine| Record::Owned {
            machine: machine.clone(),
            owned: true,
        }));
        let upward = &self.upward;
        records.extend((0 < upward.term).then_some(Record::Term(upward.term)));
        records.extend(upward.done.iter().cloned().map(Record::Instruction));
        if let Some(domains) = &upward.domains {
            records.extend(domains_of(domains));
        }
        records.extend(self.pauses.records());
        let retired = self.truth.retired.iter().cloned();
        records.extend(retired.map(|machine| Record::Retired {
            machine,
            retired: true,
        }));
        let released = self.released.iter().cloned();
        records.extend(released.map(|cluster| Record::Released {
            cluster,
            released: true,
        }));
        for (cluster, known) in &self.demand.clusters {
            for (need, at) in known.arrivals(cluster) {
                records.push(Record::Arrival { need, at: Some(at) });
            }
            if let Some(baseline) = known.guard.baseline.clone() {
                let cluster = cluster.clone();
                records.push(Record::Cluster { cluster, baseline });
            }
        }
        let known = self.ledger.iter().map(|known| known.id());
        for machine in known.chain(self.truth.remembered.keys()) {
            if let Some(kept) = self.kept(machine) {
                records.push(Record::Machine {
                    machine: machine.clone(),
                    kept: Some(kept),
                });
            }
        }
        records
    }

    /// SH-6: a remembered machine is seen for the first time.
    pub(crate) fn recognise(
        &mut self,
        now: Time,
        sighting: Sighting,
        kept: Kept,
        effects: &mut Vec<Effect>,
    ) {
        let id = sighting.machine.id().clone();
        if self.is_foreign(&sighting) {
            self.counters.conflicts += 1;
            effects.push(Effect::Alert(Alert::Conflict {
                machine: id.clone(),
            }));
            self.remember(&id);
            return;
        }
        let seen = sighting.machine.state();
        let by = crate::settle::bound_by(&sighting);
        let rebound = by.is_some() && kept.bound_by.is_some() && by != kept.bound_by;
        let same_cluster = sighting.machine.cluster() == kept.cluster.as_ref() && !rebound;
        let assignment = match same_cluster {
            true => kept.assignment.clone(),
            false => sighting.recalled(),
        };
        let intent = kept.intent.clone().filter(|_| seen.may_hold_intent());
        if let Some(given_up) = kept.given_up.filter(|_| same_cluster) {
            self.cancelled.recall(id.clone(), given_up);
        }
        let Some(journalled) = kept.operation.as_deref().cloned() else {
            let machine = sighting.machine.committed(assignment, intent);
            self.admit_machine(now, machine, effects);
            if let Some(by) = by.or(kept.bound_by.filter(|_| same_cluster)) {
                self.ledger.note_bound_by(&id, by);
            }
            self.mark_not_ready(&id, kept.not_ready && same_cluster);
            self.mark_undeletable(&id, kept.undeletable);
            self.remember_if_other(&id, &kept);
            return;
        };
        let shown = sighting.machine.clone().committed(assignment, intent);
        // The ledger holds what was committed: the state on the way, with its commitments.
        let walk = walk(journalled.action);
        let operation = Operation::remembered(journalled, id.clone(), now);
        let on_the_walk = [walk.source, walk.transitional, walk.target].contains(&seen);
        if !on_the_walk {
            self.admit_machine(now, shown, effects);
            self.end_remembered(now, operation, Outcome::ProviderError, effects);
            return;
        }
        let mut committed = sighting.machine.clone().into_facts();
        committed.state = walk.transitional.into();
        committed.intent = kept.intent.clone();
        committed.cluster = kept
            .cluster
            .as_ref()
            .map(ClusterId::to_string)
            .unwrap_or_default();
        committed.assignment = kept.assignment.clone();
        if matches!(walk.transitional, State::Creating) {
            committed.host = bigfleet_model::Host::default();
        } else if committed.host.is_empty() {
            // Delete that has come to its end: nothing is left to wait for.
            self.admit_machine(now, shown, effects);
            self.end_remembered(now, operation, Outcome::Success, effects);
            return;
        }
        self.admit_machine(now, Machine::new(committed), effects);
        if self.ledger.get(&id).is_none() {
            self.admit_machine(now, shown, effects);
            self.end_remembered(now, operation, Outcome::ProviderError, effects);
            return;
        }
        if let Some(by) = kept.bound_by {
            self.ledger.note_bound_by(&id, by);
        }
        self.by_operation.insert(operation.id, id.clone());
        self.operations.insert(id.clone(), operation);
        self.take_up(now, &id, &sighting, effects);
    }

    /// Goes on with a remembered operation from where the provider shows its machine.
    fn take_up(
        &mut self,
        now: Time,
        id: &MachineId,
        sighting: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        match self.place(id, sighting) {
            Place::Source => self.make_ready(id),
            Place::Transitional => {
                if let Some(operation) = self.operations.get_mut(id) {
                    operation.acked = true;
                    operation.enter(Step::Provider, now);
                }
            }
            Place::Target => {
                self.arrive(now, sighting, Via::Step, effects);
                self.finish(now, id, Outcome::Success, effects);
            }
            place @ (Place::Elsewhere | Place::Conflict) => {
                let outcome = match place {
                    Place::Conflict => Outcome::Conflict,
                    _ => Outcome::ProviderError,
                };
                if place == Place::Conflict {
                    self.counters.conflicts += 1;
                    effects.push(Effect::Alert(Alert::Conflict {
                        machine: id.clone(),
                    }));
                }
                self.note_elsewhere(sighting);
                self.finish(now, id, outcome, effects);
                let via = match self.ledger.get(id).map(|known| known.state()) {
                    Some(state) if state == sighting.machine.state() => Via::Step,
                    _ => Via::Adoption,
                };
                self.arrive(now, sighting, via, effects);
            }
        }
        self.remember(id);
    }

    /// Ends an operation of an earlier process as one of this, so that it is counted and audited.
    pub(crate) fn end_remembered(
        &mut self,
        now: Time,
        operation: Operation,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let id = operation.machine.clone();
        self.by_operation.insert(operation.id, id.clone());
        self.operations.insert(id.clone(), operation);
        self.finish(now, &id, outcome, effects);
    }

    pub(crate) fn mark_undeletable(&mut self, id: &MachineId, undeletable: bool) {
        let is_known = || self.ledger.get(id).is_some();
        if undeletable && !self.ledger.beside(id).undeletable && is_known() {
            self.ledger.note(id, |beside| beside.undeletable = true);
        }
    }

    fn mark_not_ready(&mut self, id: &MachineId, not_ready: bool) {
        if not_ready {
            self.ledger.note(id, |beside| beside.not_ready = true);
        }
    }
}

/// Domains as records; an empty set is one that was taken away.
fn domains_of(domains: &BTreeSet<Domain>) -> Vec<Record> {
    let record = |domain: &Domain, assigned| Record::Domain {
        domain: domain.clone(),
        assigned,
    };
    if domains.is_empty() {
        return vec![record(&Domain::default(), false)];
    }
    domains.iter().map(|domain| record(domain, true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EX-FE1.
    #[test]
    fn ex_fe1_an_absent_file_is_epoch_one_and_each_start_adds_one() {
        assert_eq!(next_epoch(None, 0), Ok(1));
        assert_eq!(next_epoch(Some("1\n"), 0), Ok(2));
        assert_eq!(
            next_epoch(Some("1"), 9),
            Ok(9),
            "a floor, for a lost directory"
        );
    }

    /// EX-FE2.
    #[test]
    fn ex_fe2_a_file_that_holds_no_number_refuses_the_start() {
        let refused = next_epoch(Some("abc"), 0).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the epoch file holds \"abc\", which is not a number (FE-1)"
        );
        assert!(next_epoch(Some(&u64::MAX.to_string()), 0).is_err());
    }

    #[test]
    fn a_store_that_has_seen_a_later_epoch_refuses_the_start() {
        let config = ShardConfig::undamped("s", "p");
        let refused = ShardCore::rebuild(config, 3, Time::ZERO, [Record::Epoch(4)]).unwrap_err();
        assert_eq!(
            refused,
            StartRefused::EpochWentBack {
                given: 3,
                recorded: 4
            }
        );
    }
}
