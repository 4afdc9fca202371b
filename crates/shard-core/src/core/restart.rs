//! Rebuild: from records back to a shard (SH-4..SH-8).
//!
//! ```text
//! records ─▶ remembered ─▶ first List ─▶ each operation by what the provider shows (SH-6)
//! ```
//!
//! Every unfinished operation is unknown after a restart. What the provider shows decides: not begun,
//! send again; on its way, wait; there, done; anything else, it ends, and nothing is ever drained.

use super::{ShardCore, breakers::is_supply, machines::bound_by};
use crate::{
    audit::Outcome,
    defect::Defect,
    effect::Effect,
    event::{PausedBy, Sighting},
    record::{Kept, Record},
    schedule::Timer,
    settings::ShardConfig,
    work::{Operation, WalkPosition},
};
use bigfleet_model::{ActionKind, ClusterId, Leaving, Machine, MachineId, Time, Via};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

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
    /// The epoch is at the end of what the wire can carry: after it there would be none.
    EpochAtEnd(u64),
}

/// No epoch from here on: the wire carries them in 63 bits, and one is kept to see that it was the last.
const EPOCHS_END: u64 = i64::MAX as u64;

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
            Self::EpochAtEnd(epoch) => write!(
                f,
                "epoch {epoch} is at the end of its range, below {EPOCHS_END} (SH-4): a number so large was \
                 not counted but given; if --epoch-floor or the epoch file is mistaken, correct it, and if \
                 the provider has seen it, give the shard another id and an empty data directory"
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
    let next = last.saturating_add(1).max(floor);
    if EPOCHS_END <= next {
        return Err(StartRefused::EpochAtEnd(next));
    }
    Ok(next)
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
        if EPOCHS_END <= epoch {
            return Err(StartRefused::EpochAtEnd(epoch));
        }
        let is_coordinated = config.coordinated;
        let mut has_past = false;
        let mut core = Self::empty(config, epoch, now);
        for record in records {
            has_past |= matches!(record, Record::Epoch(_));
            if let Record::Epoch(recorded) = record
                && epoch < recorded
            {
                return Err(StartRefused::EpochWentBack {
                    given: epoch,
                    recorded,
                });
            }
            core.recall(record.remembered_at(now));
        }
        if is_coordinated {
            let is_limited = core.supply.is_limited();
            let began = core.holdings.begin(has_past, is_limited);
            core.note_spoken(began);
        }
        core.expire_pauses(now);
        if let Some(expiry) = core.rails.next_expiry() {
            core.schedule.set(expiry, Timer::Pause);
        }
        core.hold_remembered(now);
        core.resume_leaving(now);
        core.resume_breakers(now);
        core.supply.recalled();
        core.recall_unfinished_reclaims();
        core.recall_serving();
        let remembered = core.supply.remembered().values();
        let clusters: BTreeSet<ClusterId> = remembered
            .flat_map(|kept| kept.clusters().cloned())
            .collect();
        for cluster in &clusters {
            core.expect_cluster(now, cluster);
        }
        let released: Vec<ClusterId> = core.rails.released().cloned().collect();
        for cluster in &released {
            core.drop_demand(now, cluster);
        }
        Ok(core)
    }

    /// Takes in one record of an earlier process.
    fn recall(&mut self, record: Record) {
        match record {
            Record::Epoch(_) => {}
            Record::Machine { machine, kept } => self.supply.recall(machine, kept),
            Record::Reclaims { cluster, left } => {
                if !self.has(Defect::ReclaimsForgotten) {
                    self.rails.recall_reclaims(cluster, &left, self.now);
                }
            }
            Record::Cluster {
                cluster,
                baseline,
                replaced,
            } => {
                self.supply.note_served(cluster.clone());
                self.demand.note_cluster(cluster.clone());
                let now = self.now;
                self.rails.recall_baseline(cluster, baseline, replaced, now);
            }
            Record::Owned { machine, owned } => self.supply.set_owned(machine, owned),
            Record::ForeignSeen => self.supply.note_foreign(),
            Record::Term(term) => drop(self.uplink.hear_term(term)),
            Record::Instruction(id) => self.uplink.note_done(id),
            Record::Scope(scope) => self.holdings.recall_scope(scope),
            Record::Domain { domain, held } => self.holdings.recall_domain(domain, held),
            Record::Exception { machine, exception } => {
                let exception = exception.map(|exception| *exception);
                self.holdings.recall_exception(machine, exception);
            }
            Record::Transfer { id, transfer } => {
                let transfer = transfer.map(|transfer| *transfer);
                self.holdings.recall_transfer(id, transfer);
            }
            Record::GoneShard(shard) => self.holdings.recall_gone(shard),
            Record::Superseded => self.rails.supersede(),
            Record::Arrival { need, at } => self.demand.recall_arrival(need, at),
            Record::Released { cluster, released } => {
                self.rails.set_released(&cluster, released);
            }
            Record::Retired { machine, retired } => self.supply.set_retired(&machine, retired),
            Record::Drained { machine, mark } => match mark {
                Some(mark) if !self.has(Defect::DrainNotDurable) => {
                    self.leaving.mark(machine, mark);
                }
                Some(_) => {}
                None => drop(self.leaving.lift(&machine)),
            },
            Record::Paused { scope, kept } => match kept {
                Some(kept) => self.rails.pause(PausedBy::Admin, scope, kept),
                None => self.rails.resume(PausedBy::Admin, scope),
            },
            Record::Breaker { key, kept } => self.rails.recall_breaker(key, kept),
            Record::ClusterForgotten(cluster) => self.drop_cluster(&cluster),
        }
    }

    /// SH-30: what an earlier process committed and did not finish is still to leave.
    fn recall_unfinished_reclaims(&mut self) {
        if self.has(Defect::ReclaimsForgotten) {
            return;
        }
        for (machine, kept) in self.supply.remembered() {
            let operation = kept.operation.as_deref();
            let reclaim = operation.filter(|one| one.action == ActionKind::Reclaim);
            let leaves_now = self.leaving.word(machine).map(|(word, _)| word) == Some(Leaving::Now);
            let reclaim = reclaim.filter(|_| !leaves_now);
            if let Some(cluster) = reclaim.and_then(|one| one.cluster.as_ref()) {
                self.rails.reclaim_committed(cluster, machine);
            }
        }
    }

    /// SH-31: a cluster may be heard before the provider has shown what serves it.
    fn recall_serving(&mut self) {
        let mut serving: BTreeMap<ClusterId, u32> = BTreeMap::new();
        let kept = self.supply.remembered().values();
        let left_alone = kept.filter(|kept| kept.operation.is_none());
        for cluster in left_alone.filter_map(|kept| kept.cluster.as_ref()) {
            match serving.get_mut(cluster) {
                Some(machines) => *machines += 1,
                None => drop(serving.insert(cluster.clone(), 1)),
            }
        }
        for (cluster, machines) in serving {
            self.rails.recall_serving(cluster, machines);
        }
    }

    /// Everything to remember now, for whoever writes a file anew: a shard rebuilt from it is the one
    /// rebuilt from all records so far.
    pub fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Epoch(self.epoch)];
        records.extend(self.supply.ownership_records());
        records.extend(self.uplink.records());
        records.extend(self.holdings.records());
        records.extend(self.rails.is_superseded().then_some(Record::Superseded));
        records.extend(self.rails.pause_records());
        records.extend(self.rails.reclaim_records(self.now));
        records.extend(self.supply.retired_records());
        records.extend(self.breaker_records());
        let marks = self.leaving.marks();
        records.extend(marks.map(|(machine, mark)| Record::Drained {
            machine: machine.clone(),
            mark: Some(mark.clone()),
        }));
        let released = self.rails.released().cloned();
        records.extend(released.map(|cluster| Record::Released {
            cluster,
            released: true,
        }));
        for (cluster, known) in self.demand.clusters() {
            for (need, at) in known.arrivals(cluster) {
                records.push(Record::Arrival { need, at: Some(at) });
            }
            if let Some(baseline) = self.rails.quarantine().baseline(cluster).cloned() {
                records.push(Record::Cluster {
                    cluster: cluster.clone(),
                    baseline,
                    replaced: self.rails.quarantine().replaced(cluster, self.now),
                });
            }
        }
        let known = self.supply.ledger().iter().map(Machine::id);
        for machine in known.chain(self.supply.remembered().keys()) {
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
    pub(super) fn recognise(
        &mut self,
        now: Time,
        sighting: Sighting,
        kept: Kept,
        effects: &mut Vec<Effect>,
    ) {
        let id = sighting.machine.id().clone();
        if self.is_foreign(&sighting) {
            self.conflict(&id, effects);
            self.remember(&id);
            return;
        }
        let seen = sighting.machine.state();
        let by = bound_by(&sighting);
        let is_rebound = by.is_some() && kept.bound_by.is_some() && by != kept.bound_by;
        let is_bound_alike = sighting.machine.cluster() == kept.cluster.as_ref() && !is_rebound;
        let assignment = if is_bound_alike {
            kept.assignment.clone()
        } else {
            sighting.recalled()
        };
        let intent = kept.intent.clone().filter(|_| seen.may_hold_intent());
        if let Some(given_up) = kept.given_up.filter(|_| is_bound_alike) {
            self.rails.recall_given_up(id.clone(), given_up);
        }
        if let Some((cluster, at)) = kept.spent.as_ref().filter(|_| !is_supply(seen)) {
            self.recall_spent(*at, &id, cluster);
        }
        let shown = sighting.machine.clone().committed(assignment, intent);
        let Some(journalled) = kept.operation.as_deref().cloned() else {
            self.admit_machine(now, &id, shown, effects);
            if let Some(by) = by.or(kept.bound_by.filter(|_| is_bound_alike)) {
                self.supply.note_bound_by(&id, by);
            }
            if kept.not_ready && is_bound_alike {
                self.supply.set_not_ready(&id, true);
            }
            if kept.undeletable {
                self.supply.note_undeletable(&id);
            }
            self.remember_if_other(&id, &kept);
            return;
        };
        let operation = Operation::remembered(journalled, id.clone(), now);
        match as_committed(&sighting, &kept, &operation) {
            Ok(committed) => {
                self.admit_machine(now, &id, Ok(committed), effects);
                if let Some(by) = kept.bound_by {
                    self.supply.note_bound_by(&id, by);
                }
                self.work.insert(operation);
                self.take_up(now, &id, &sighting, effects);
            }
            Err(outcome) => {
                self.admit_machine(now, &id, shown, effects);
                self.work.insert(operation);
                self.finish(now, &id, outcome, effects);
            }
        }
    }

    /// Goes on with a remembered operation from where the provider shows its machine.
    fn take_up(
        &mut self,
        now: Time,
        id: &MachineId,
        sighting: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        match self.position(id, sighting) {
            WalkPosition::Source => self.work.make_ready(id, now),
            WalkPosition::Transitional => self.work.taken_on(id, now),
            WalkPosition::Target => self.done(now, sighting, effects),
            WalkPosition::Conflict => {
                self.conflict(id, effects);
                self.end_elsewhere(now, sighting, Outcome::Conflict, effects);
            }
            WalkPosition::Elsewhere => {
                self.end_elsewhere(now, sighting, Outcome::ProviderError, effects);
            }
        }
        self.remember(id);
    }

    /// Ends a remembered operation whose machine is where it does not lead, and believes the provider.
    fn end_elsewhere(
        &mut self,
        now: Time,
        sighting: &Sighting,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let id = sighting.machine.id();
        self.note_elsewhere(sighting);
        self.finish(now, id, outcome, effects);
        let state = self.supply.get(id).map(Machine::state);
        let via = if state == Some(sighting.machine.state()) {
            Via::Step
        } else {
            Via::Adoption
        };
        self.arrive(now, sighting, via, effects);
    }
}

/// The machine of a remembered operation as the ledger holds it: the state on the way, with its
/// commitments. Errs with how the operation ended if there is nothing to go on with.
fn as_committed(
    sighting: &Sighting,
    kept: &Kept,
    operation: &Operation,
) -> Result<Machine, Outcome> {
    let (kind, seen) = (operation.action, &sighting.machine);
    if ![kind.source(), kind.transitional(), kind.target()].contains(&seen.state()) {
        return Err(Outcome::ProviderError);
    }
    if kind != ActionKind::Provision && seen.host().is_none() {
        // Delete that has come to its end: nothing is left to wait for.
        return Err(Outcome::Success);
    }
    let (cluster, intent) = (kept.cluster.clone(), kept.intent.clone());
    seen.resume(kind, cluster, kept.assignment.clone(), intent)
        .map_err(|_| Outcome::ProviderError)
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
    }

    /// An epoch that a typing mistake made is refused, and so is one that the wire would carry as negative.
    #[test]
    fn an_epoch_at_the_end_of_its_range_is_refused_with_advice() {
        let last = EPOCHS_END - 1;
        assert_eq!(next_epoch(Some(&(last - 1).to_string()), 0), Ok(last));
        assert_eq!(next_epoch(None, last), Ok(last));
        for (file, floor) in [
            (Some(last.to_string()), 0),
            (Some(u64::MAX.to_string()), 0),
            (None, EPOCHS_END),
            (None, u64::MAX),
        ] {
            let refused = next_epoch(file.as_deref(), floor).unwrap_err();
            assert!(matches!(refused, StartRefused::EpochAtEnd(_)));
            assert!(refused.to_string().contains("--epoch-floor"));
        }
        let config = ShardConfig::undamped("s", "p");
        let refused = ShardCore::new(config, EPOCHS_END, Time::ZERO).unwrap_err();
        assert_eq!(refused, StartRefused::EpochAtEnd(EPOCHS_END));
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
