//! Supply: the machines, what the provider last said of them, and what they are committed to.
//!
//! ```text
//! provider ─ List, Get ─▶ Provider: believed? ─▶ Ownership: ours? ─▶ Ledger ─▶ Engine
//! operators ─ node reports ─▶ Nodes ──────────────────────────────────┘
//! ```
//!
//! **Invariant:** inventory, indexes, gauges and engine agree, because the ledger has one way to write; and
//! a machine that is gone is gone from all of it.

mod ledger;
mod nodes;
mod ownership;
mod provider;
mod stock;

pub use ledger::GaugeKey;

pub(crate) use ledger::{Beside, EngineRows, Ledger};
pub(crate) use ownership::{ASSIGNED_SHARD, Owner};
pub(crate) use provider::{Absence, Listing};
pub(crate) use stock::Stock;

use crate::{
    effect::{GetId, ListId, NodeState, OperationId},
    event::Sighting,
    list_pace::ListKind,
    rails::Pool,
    record::{Kept, Record},
    settings::ShardConfig,
    uplink::Domain,
};
use bigfleet_engine::Part;
use bigfleet_model::{
    Action, ClusterId, Disruption, FleetMachine, Leaving, Machine, MachineId, NeedKey, Restamp, State, Time,
    Verdict, Via, WriteRefused,
};
use nodes::{Nodes, node_state};
use ownership::Ownership;
use provider::Provider;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The machines.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    ledger: Ledger,
    provider: Provider,
    ownership: Ownership,
    nodes: Nodes,
    /// Machines the last decision would have reclaimed but for what replaces them (RF-11), by id.
    kept_for_replacement: Vec<MachineId>,
}

/// What the engine decided, read whole before any of it changes what was decided on.
pub(crate) struct Decided {
    pub(crate) ended_intents: Vec<MachineId>,
    pub(crate) restamps: Vec<Restamp>,
    pub(crate) actions: Vec<Action>,
    /// Actions that were not spelled out, since there is no room for them.
    pub(crate) beyond: usize,
    /// The Needs that are short; `None` if nothing changed since the last decision.
    pub(crate) short: Option<Vec<Verdict>>,
    /// The Needs that are not served in full; `None` if neither machines nor nodes nor rows changed.
    pub(crate) lacking: Option<BTreeSet<NeedKey>>,
}

impl Supply {
    pub(crate) fn new(config: &ShardConfig) -> Self {
        Self {
            ledger: Ledger::new(config),
            provider: Provider::new(config.full_lists),
            ownership: Ownership::new(&config.shard, &config.own_domains),
            nodes: Nodes::default(),
            kept_for_replacement: Vec::new(),
        }
    }

    /// The machines as they are believed to be, to look at.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn get(&self, id: &MachineId) -> Option<&Machine> {
        self.ledger.get(id)
    }

    pub(crate) fn beside(&self, id: &MachineId) -> Beside {
        self.ledger.beside(id)
    }

    /// Machines bound to a cluster, by id.
    pub(crate) fn bound_to(&self, cluster: &ClusterId) -> impl Iterator<Item = &MachineId> {
        self.ledger.bound_to(cluster)
    }

    /// The clusters a machine concerns: the one it is bound to and the one it is meant for.
    pub(crate) fn clusters_of(&self, id: &MachineId) -> impl Iterator<Item = &ClusterId> {
        let known = self.ledger.get(id);
        let bound = known.and_then(Machine::cluster);
        let meant = known.and_then(Machine::intent);
        let meant = meant.map(|intent| &intent.need.cluster);
        bound.into_iter().chain(meant)
    }

    /// What a machine costs, in dollars per hour.
    pub(crate) fn price_of(&self, id: &MachineId) -> Option<f64> {
        let known = self.ledger.get(id)?;
        Some(known.price().dollars_per_hour())
    }

    /// The pool a machine belongs to.
    pub(crate) fn pool_of(&self, id: &MachineId) -> Option<Pool> {
        let known = self.ledger.get(id)?;
        Some(Pool::of(known.shape()))
    }
}

/// Deciding.
impl Supply {
    /// Runs the engine; `begins` hears of each of its parts.
    pub(crate) fn decide(&mut self, now: Time, begins: &mut dyn FnMut(Part)) {
        self.ledger.engine_mut().decide_in_parts(now, begins);
    }

    /// What was decided, with actions as far as there is room for them: a whole fleet may want to be
    /// bound at once.
    pub(crate) fn decided(&mut self, room: usize) -> Decided {
        let is_touched = self.ledger.take_touched();
        let has_moved = self.nodes.take_moved();
        let lacking = (is_touched || has_moved).then(|| self.lacking());
        let engine = self.ledger.engine();
        let (actions, beyond) = engine.actions_within(room);
        self.kept_for_replacement = engine.held();
        Decided {
            ended_intents: engine.ended_intents(),
            restamps: engine.restamps(),
            actions,
            beyond,
            short: is_touched.then(|| engine.short()),
            lacking,
        }
    }

    /// The Needs that Configured machines with ready nodes do not cover.
    fn lacking(&self) -> BTreeSet<NeedKey> {
        let mut lacking: BTreeSet<NeedKey> = self.ledger.engine().lacking().into_iter().collect();
        let unready = self.nodes.unready().filter_map(|id| self.ledger.get(id));
        let bound = unready.filter(|machine| machine.state() == State::Configured);
        lacking.extend(bound.filter_map(Machine::attribution));
        lacking
    }

    /// The machines that are recorded as a Need's: bound for it, or on their way to it.
    pub(crate) fn machines_of(&self, need: &NeedKey) -> Vec<MachineId> {
        self.ledger.engine().machines_of(need)
    }

    /// Since when the node of a machine is known not to be ready, and whether it never was.
    pub(crate) fn unready_since(&self, id: &MachineId) -> Option<(Option<Time>, bool)> {
        self.nodes.unready_since(id)
    }

    /// Every verdict of the decision, those of Needs that are served included.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.ledger.engine().verdicts()
    }

    /// Whether the last decision would have reclaimed a machine but for what replaces it (RF-11).
    pub(crate) fn is_kept_for_replacement(&self, id: &MachineId) -> bool {
        self.kept_for_replacement.binary_search(id).is_ok()
    }

    /// Where demand is told to the engine.
    pub(crate) fn rows(&mut self) -> EngineRows<'_> {
        self.ledger.rows()
    }

    /// A cluster counts as heard: [`crate::Defect::FirstRollUpGateOff`].
    pub(crate) fn take_as_heard(&mut self, cluster: &ClusterId) {
        self.ledger.engine_mut().ready(cluster);
    }
}

/// Writing machines.
impl Supply {
    /// Adds a machine seen for the first time.
    pub(crate) fn insert(&mut self, machine: Machine, now: Time) -> Result<(), WriteRefused> {
        self.ledger.insert(machine, now)
    }

    /// Replaces a known machine; returns what it was.
    pub(crate) fn apply(
        &mut self,
        machine: Machine,
        via: Via,
        now: Time,
    ) -> Result<Machine, WriteRefused> {
        self.ledger.apply(machine, via, now)
    }

    /// The provider no longer has a machine; returns what it was, and what was remembered of it.
    pub(crate) fn remove(&mut self, id: &MachineId) -> (Option<Machine>, Option<Box<Kept>>) {
        let remembered = self.provider.forget(id);
        (self.ledger.remove(id), remembered)
    }

    /// Has a machine share the one copy of its shape.
    pub(crate) fn share_shape(&mut self, machine: &mut Machine) {
        self.ledger.share_shape(machine);
    }

    /// Starts the idle clock of an Idle machine anew (RF-13).
    pub(crate) fn restart_idle_clock(&mut self, id: &MachineId, now: Time) {
        self.ledger.restart_idle_clock(id, now);
    }

    /// The operation a bound machine was bound by.
    pub(crate) fn bound_by(&self, id: &MachineId) -> Option<OperationId> {
        self.ledger.bound_by(id)
    }

    pub(crate) fn note_bound_by(&mut self, id: &MachineId, operation: OperationId) {
        self.ledger.note_bound_by(id, operation);
    }

    /// Its provider cannot delete a machine.
    pub(crate) fn note_undeletable(&mut self, id: &MachineId) {
        if !self.ledger.beside(id).undeletable && self.ledger.get(id).is_some() {
            self.ledger.note(id, |beside| beside.undeletable = true);
        }
    }

    /// A machine's node is not ready, or is again; says whether that is new.
    pub(crate) fn set_not_ready(&mut self, id: &MachineId, not_ready: bool) -> bool {
        let is_new = self.ledger.beside(id).not_ready != not_ready;
        if is_new {
            self.ledger.note(id, |beside| beside.not_ready = not_ready);
        }
        is_new
    }

    /// Whether a machine's drain can still be taken back (SH-18).
    pub(crate) fn set_reversible(&mut self, id: &MachineId, reversible: bool) {
        if self.ledger.beside(id).reversible != reversible {
            self.ledger
                .note(id, |beside| beside.reversible = reversible);
        }
    }

    /// How a machine is to leave (SH-20); says whether that is new. Nothing for one that is not known.
    pub(crate) fn set_leaving(&mut self, id: &MachineId, leaving: Option<Leaving>) -> bool {
        let is_known = self.ledger.get(id).is_some();
        let is_new = is_known && self.ledger.beside(id).leaving != leaving;
        if is_new {
            self.ledger.note(id, |beside| beside.leaving = leaving);
        }
        is_new
    }

    /// What the provider shows of a machine is not confirmed: it is no supply until it is.
    pub(crate) fn set_unconfirmed(&mut self, id: &MachineId, unconfirmed: bool) {
        self.ledger
            .note(id, |beside| beside.unconfirmed = unconfirmed);
    }

    /// Closes or opens a pool to acquisition (RF-17); says whether that changes anything.
    pub(crate) fn set_closed(&mut self, pool: &Pool, closed: bool) -> bool {
        self.ledger.set_closed(pool, closed)
    }
}

/// Reading the provider.
impl Supply {
    /// Begins a List, unless one is under way; returns its id and where it goes on.
    pub(crate) fn begin_list(&mut self, now: Time, kind: ListKind) -> Option<(ListId, Vec<u8>)> {
        let ledger = &mut self.ledger;
        self.provider.begin_list(now, kind, || ledger.begin_read())
    }

    /// The place among reads and changes of the List under way, if it is this one.
    pub(crate) fn list_began(&self, list: ListId) -> Option<u64> {
        self.provider.listing(list).map(|listing| listing.began)
    }

    /// A List shows a record that was refused: it is not believed, but its machine is there.
    pub(crate) fn refuse_record(&mut self, list: ListId, id: MachineId, why: String) {
        if self.ledger.get(&id).is_some() {
            self.ledger.shown(&id, list);
            self.provider.refuse(id, why);
        } else {
            self.provider.refuse_unknown(id);
        }
    }

    /// A List shows a machine, and its record is good.
    pub(crate) fn accept_record(&mut self, id: &MachineId) {
        self.provider.accept(id);
    }

    /// Notes that a List shows a machine.
    pub(crate) fn shown(&mut self, id: &MachineId, list: ListId) {
        self.ledger.shown(id, list);
    }

    /// Whether a read that began then may show less than what was done here since.
    pub(crate) fn is_stale(&self, id: &MachineId, began: u64) -> bool {
        self.ledger.is_stale(id, began)
    }

    /// The List under way shows a machine otherwise than it is known, and is not believed.
    pub(crate) fn overtake(&mut self, id: MachineId) {
        self.provider.overtake(id);
    }

    /// A List is over.
    pub(crate) fn end_list(&mut self, list: ListId) -> Option<Listing> {
        self.provider.end_list(list)
    }

    /// Where the next List goes on.
    pub(crate) fn set_cursor(&mut self, cursor: Vec<u8>) {
        self.provider.set_cursor(cursor);
    }

    /// What a full List lacks, and what becomes of it (SH-10). `is_believed` has all of it gone:
    /// [`crate::Defect::TruncatedListBelieved`].
    pub(crate) fn sweep(
        &mut self,
        listing: &Listing,
        is_working: impl Fn(&MachineId) -> bool,
        is_believed: bool,
    ) -> Vec<(MachineId, Absence)> {
        let not_shown = self.ledger.not_shown(listing.id);
        let total = self.ledger.len();
        self.provider
            .sweep(listing, not_shown, total, is_working, is_believed)
    }

    /// A full List was taken in whole; says whether there is enough now to decide on, for the first time.
    pub(crate) fn listed(&mut self, listing: &Listing, now: Time) -> bool {
        self.ledger.settle_before(listing.began);
        self.provider.listed(now)
    }

    /// Whether enough has been seen since the start to decide on (SH-10).
    pub(crate) fn is_trusted(&self) -> bool {
        self.provider.is_trusted()
    }

    /// Complete full Lists so far.
    pub(crate) fn lists(&self) -> u32 {
        self.provider.lists()
    }

    /// Machines the last full List lacked and that are kept all the same.
    pub(crate) fn removals_held(&self) -> usize {
        self.provider.removals_held()
    }

    /// Why the provider's newest record of a machine was refused.
    pub(crate) fn refused(&self, id: &MachineId) -> Option<&String> {
        self.provider.refused(id)
    }

    /// When the provider last showed a machine; `None` if it has not since the start.
    pub(crate) fn seen_at(&self, id: &MachineId) -> Option<Time> {
        self.provider
            .seen_at(id, |list| self.ledger.is_shown(id, list))
    }

    /// Reads a machine by name before believing what a List or an ack says of it. It is no supply until
    /// then.
    pub(crate) fn doubt(&mut self, id: &MachineId) {
        if self.provider.doubt(id) && self.ledger.get(id).is_some() {
            self.set_unconfirmed(id, true);
        }
    }

    /// A Get failed, and is made again later.
    pub(crate) fn put_off(&mut self, id: &MachineId) {
        self.provider.put_off(id);
    }

    /// The time has come for a Get that failed.
    pub(crate) fn ask_again(&mut self, id: &MachineId) {
        if self.provider.ask_again(id) && self.ledger.get(id).is_some() {
            self.set_unconfirmed(id, true);
        }
    }

    /// The next Get to send, if any.
    pub(crate) fn next_get(&mut self) -> Option<(GetId, MachineId)> {
        let ledger = &mut self.ledger;
        self.provider.next_get(|| ledger.begin_read())
    }

    /// A Get came back: for which machine, and its place among reads and changes.
    pub(crate) fn got(&mut self, get: GetId) -> Option<(MachineId, u64)> {
        self.provider.got(get)
    }
}

/// What an earlier process remembered, and what is whose.
impl Supply {
    pub(crate) fn recall(&mut self, machine: MachineId, kept: Option<Box<Kept>>) {
        self.provider.recall(machine, kept);
    }

    /// Everything was recalled: there will be so many machines at least.
    pub(crate) fn recalled(&mut self) {
        let machines = self.provider.recalled();
        self.ledger.reserve(machines);
    }

    /// How many machines an earlier process was committed to.
    pub(crate) fn remembered_at_start(&self) -> usize {
        self.provider.remembered_at_start()
    }

    /// Machines that were not seen since the start, with what is remembered of them.
    pub(crate) fn remembered(&self) -> &BTreeMap<MachineId, Box<Kept>> {
        self.provider.remembered()
    }

    pub(crate) fn take_remembered(&mut self, id: &MachineId) -> Option<Box<Kept>> {
        self.provider.take_remembered(id)
    }

    /// Stops or resumes the deadlines of remembered operations; returns those that changed.
    pub(crate) fn hold_remembered(
        &mut self,
        is_closed: impl Fn(&Kept) -> bool,
        now: Time,
    ) -> Vec<MachineId> {
        self.provider.hold_remembered(is_closed, now)
    }

    /// Whether a machine carries this shard's mark.
    pub(crate) fn is_marked(&self, sighting: &Sighting) -> bool {
        self.ownership.is_marked(sighting)
    }

    /// Whether a machine carries another shard's mark.
    pub(crate) fn is_foreign(&self, sighting: &Sighting) -> bool {
        self.ownership.is_foreign(sighting)
    }

    /// Whether a machine is the one that seems to be another shard's.
    pub(crate) fn is_suspect(&self, id: &MachineId) -> bool {
        self.ownership.is_suspect(id)
    }

    /// What a Get says of that one; says whether another shard's mark is seen for the first time.
    pub(crate) fn judge_suspect(&mut self, is_foreign: bool) -> bool {
        self.ownership.judge_suspect(is_foreign)
    }

    /// A full List is over: what it did not show is suspected no more.
    pub(crate) fn forget_suspect_not_shown(&mut self) {
        self.ownership.forget_suspect_not_shown();
    }

    /// Whose a machine is that was never seen before (SH-13).
    pub(crate) fn owner(
        &mut self,
        sighting: &Sighting,
        assigned: Option<&BTreeSet<Domain>>,
        is_ready: impl Fn(&ClusterId) -> bool,
    ) -> Owner {
        self.ownership.owner(sighting, assigned, is_ready)
    }

    pub(crate) fn set_owned(&mut self, machine: MachineId, is_owned: bool) {
        self.ownership.set_owned(machine, is_owned);
    }

    /// An admin forgets a machine, or it is something else again.
    pub(crate) fn set_retired(&mut self, machine: &MachineId, is_retired: bool) {
        self.ownership.set_retired(machine, is_retired);
    }

    /// Whether a machine was retired and is as it was then; and whether it is retired no longer.
    pub(crate) fn judge_retired(&mut self, machine: &Machine) -> (bool, bool) {
        self.ownership.judge_retired(machine)
    }

    /// A cluster that holds nothing is forgotten.
    pub(crate) fn forget_cluster(&mut self, cluster: &ClusterId) {
        self.ownership.forget_served(cluster);
        self.nodes.forget_cluster(cluster);
    }

    pub(crate) fn note_served(&mut self, cluster: ClusterId) {
        self.ownership.note_served(cluster);
    }

    pub(crate) fn note_foreign(&mut self) {
        self.ownership.note_foreign();
    }

    /// The records of what is owned.
    pub(crate) fn ownership_records(&self) -> impl Iterator<Item = Record> {
        self.ownership.records()
    }

    /// The records of retired machines.
    pub(crate) fn retired_records(&self) -> impl Iterator<Item = Record> {
        self.ownership.retired_records()
    }
}

/// Nodes.
impl Supply {
    /// The name of a machine's node; empty if it is not known.
    pub(crate) fn node_name(&self, id: &MachineId) -> &str {
        self.nodes.name(id)
    }

    /// What an operator is told of a machine (NS-2).
    pub(crate) fn node_state(&self, machine: &Machine) -> NodeState {
        node_state(machine, self.nodes.name(machine.id()))
    }

    pub(crate) fn forget_node(&mut self, id: &MachineId) {
        self.nodes.forget(id);
    }

    /// A machine became Configured; returns when its node must be ready.
    pub(crate) fn expect_node(
        &mut self,
        id: &MachineId,
        is_reported: bool,
        now: Time,
    ) -> Option<Time> {
        self.nodes.expect(id, is_reported, now)
    }

    /// Whether a machine's node was never ready since the machine became Configured.
    pub(crate) fn is_new_node(&self, id: &MachineId) -> bool {
        self.nodes.is_new(id)
    }

    /// How many machines of a cluster are Configured, and their nodes were neither ready since nor given up.
    pub(crate) fn awaited_nodes(&self, cluster: &ClusterId) -> usize {
        let bound = self.bound_to(cluster).filter(|id| {
            let known = self.ledger.get(id);
            self.nodes.is_new(id)
                && !self.ledger.beside(id).not_ready
                && known.is_some_and(|known| known.state() == State::Configured)
        });
        bound.count()
    }

    /// A cluster's machines by their hosts, which is what an operator knows a node by that has no mark
    /// of ours.
    pub(crate) fn by_host(&self, cluster: &ClusterId) -> BTreeMap<String, MachineId> {
        let hosts = self.bound_to(cluster).filter_map(|id| {
            let host = self.get(id)?.host()?;
            Some((host.reference.clone(), id.clone()))
        });
        hosts.filter(|(host, _)| !host.is_empty()).collect()
    }

    /// A cluster's operator speaks of the node of a machine; no name leaves it as it was. `None` if the
    /// machine is not the cluster's.
    pub(crate) fn report_node(
        &mut self,
        cluster: &ClusterId,
        id: &MachineId,
        name: Option<String>,
        is_ready: bool,
        now: Time,
    ) -> Option<NodeReport> {
        let known = self.ledger.get(id)?;
        if known.cluster() != Some(cluster) {
            return None;
        }
        let serves = known.state() == State::Configured;
        let is_first = is_ready && self.nodes.is_new(id);
        let deadline = self.nodes.report(id, name, is_ready, serves, now);
        Some(NodeReport {
            deadline,
            is_first,
            is_ready_again: is_ready && self.set_not_ready(id, false),
        })
    }

    /// A cluster's operator tells what draining a machine of it would disturb, or does not (SH-19).
    pub(crate) fn note_disruption(&mut self, id: &MachineId, told: Option<Disruption>) {
        self.ledger.note_disruption(id, told);
    }

    /// Another operator speaks for a cluster: what the last one told of disruption is not known any more.
    pub(crate) fn forget_disruption(&mut self, cluster: &ClusterId) {
        for id in self.bound_to(cluster).cloned().collect::<Vec<_>>() {
            self.ledger.note_disruption(&id, None);
        }
    }

    /// The cluster of a Configured machine whose node should have become ready by now.
    pub(crate) fn overdue_node(&self, id: &MachineId, now: Time) -> Option<&ClusterId> {
        let known = self.ledger.get(id)?;
        let is_overdue = known.state() == State::Configured && self.nodes.is_overdue(id, now);
        known.cluster().filter(|_| is_overdue)
    }

    /// Whether so many nodes of a cluster are not ready that none of them is to blame (SH-17).
    pub(crate) fn is_partitioned(&mut self, cluster: &ClusterId, now: Time) -> bool {
        let ledger = &self.ledger;
        let serves = |id: &&MachineId| {
            let known = ledger.get(id);
            known.is_some_and(|known| known.state() == State::Configured)
                && ledger.beside(id).leaving.is_none()
        };
        let serving = ledger.bound_to(cluster).filter(serves);
        self.nodes.is_partitioned(cluster, serving, now)
    }

    /// Takes a machine as not ready, unless a tenth of its cluster is within a window; says which.
    pub(crate) fn flip_node(
        &mut self,
        id: &MachineId,
        cluster: &ClusterId,
        window: Duration,
        now: Time,
    ) -> bool {
        let most = (self.ledger.configured(cluster) / 10).max(1) as usize;
        let may_flip = self.nodes.flip(id, cluster, most, window, now);
        if may_flip {
            self.ledger.note(id, |beside| beside.not_ready = true);
        }
        may_flip
    }

    /// A machine with everything the engine is told of it.
    pub(crate) fn told(&self, id: &MachineId) -> Option<FleetMachine> {
        self.ledger.told(id)
    }
}

/// What an operator's word about a node comes to.
#[derive(Debug)]
pub(crate) struct NodeReport {
    /// When the node must be ready.
    pub(crate) deadline: Option<Time>,
    /// It is ready for the first time since its machine became Configured.
    pub(crate) is_first: bool,
    /// It was taken as not ready, and is ready now.
    pub(crate) is_ready_again: bool,
}
