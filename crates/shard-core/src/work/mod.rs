//! Work: the operations under way, and what each of them waits for.
//!
//! ```text
//! commit ─▶ Disk ─▶ Ready ─▶ Blob, DrainReport ─▶ Ready ─▶ Call ─▶ Provider ─▶ end
//!                     │                                      └─▶ Backoff, Confirm ─▶ Ready
//!                     └─ in line: with a chance to leave · no call slot · its cluster has no call left, or no
//!                        room for its blob
//! ```
//!
//! **Invariant:** a machine has at most one operation, an operation is in exactly one stage, and whoever
//! waits is listed where its stage says and nowhere else. [`Work::enter`] is the one place that changes
//! a stage, and [`Work::check`] states the rule. Nobody outside can change an operation: the part hands
//! out shared references and takes in what happened.
//!
//! A call slot belongs to the call, not to its operation: one whose machine has gone holds its slot until
//! the call has ended.

mod blob_room;
mod check;
mod lists;
mod operation;

pub(crate) use operation::{Blob, Operation, WalkPosition, WorkStage};

use crate::{
    effect::{Barrier, OperationId, RequestId},
    event::{CallOutcome, Code},
    settings::{FIRST_RETRY, LONGEST_RETRY, MOST_IN_FLIGHT, ShardConfig},
};
use bigfleet_model::{Action, ClusterId, Machine, MachineId, Time};
use blob_room::BlobRoom;
use lists::Lists;
use std::collections::BTreeMap;

/// Of a cluster that has room for blobs again, so many are asked for at a time.
const ASKED_AT_ONCE: usize = 16;

/// Where an operation stands in line: how urgent its kind is, then the oldest.
pub(crate) type QueuePosition = (u8, OperationId);

/// The operations under way.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    epoch: u64,
    /// Calls on the wire at once.
    most_calls: usize,
    /// Of those, for one cluster; `None` is no limit of its own.
    most_calls_of_cluster: Option<usize>,

    operations: BTreeMap<MachineId, Operation>,
    machines: BTreeMap<OperationId, MachineId>,
    lists: Lists,
    blob_room: BlobRoom,
    /// Everything up to here is on disk.
    durable: Barrier,
    /// Calls that have not ended, by sequence number, and for which cluster they are.
    on_wire: BTreeMap<u64, Option<ClusterId>>,

    /// The last sequence number that was given out.
    sequence: u64,
    /// The last number of an operation or a request.
    number: u64,
}

/// A call that was entered as on the wire.
pub(crate) struct SentCall {
    pub(crate) operation: OperationId,
    pub(crate) sequence: u64,
    /// The call was made before.
    pub(crate) again: bool,
}

/// A call that ended and is the one its operation waits for.
pub(crate) struct EndedCall {
    pub(crate) machine: MachineId,
    /// Something was read of the machine meanwhile, and will not be shown again.
    pub(crate) overtaken: bool,
    /// See [`Operation::late`].
    pub(crate) late: Option<Box<Machine>>,
}

impl Work {
    pub(crate) fn new(config: &ShardConfig, epoch: u64) -> Self {
        Self {
            epoch,
            most_calls: config.execute_concurrency,
            most_calls_of_cluster: Some(config.calls_per_cluster).filter(|most| *most != 0),
            operations: BTreeMap::new(),
            machines: BTreeMap::new(),
            lists: Lists::default(),
            blob_room: BlobRoom::default(),
            durable: Barrier::default(),
            on_wire: BTreeMap::new(),
            sequence: 0,
            number: 0,
        }
    }

    /// The operation of a machine.
    pub(crate) fn get(&self, machine: &MachineId) -> Option<&Operation> {
        self.operations.get(machine)
    }

    pub(crate) fn is_at(&self, machine: &MachineId) -> bool {
        self.operations.contains_key(machine)
    }

    /// The machine of an operation that has not ended.
    pub(crate) fn machine(&self, operation: OperationId) -> Option<&MachineId> {
        self.machines.get(&operation)
    }

    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Operations of machines after this one, by machine.
    pub(crate) fn after(&self, machine: Option<&MachineId>) -> impl Iterator<Item = &Operation> {
        use std::ops::Bound::{Excluded, Unbounded};
        let lower = machine.map_or(Unbounded, Excluded);
        let rest = self.operations.range::<MachineId, _>((lower, Unbounded));
        rest.map(|(_, operation)| operation)
    }

    /// How many more operations may be committed (SH-2).
    pub(crate) fn room(&self) -> usize {
        MOST_IN_FLIGHT.saturating_sub(self.operations.len())
    }

    /// How many operations could leave but for a pause, a slot or an operator.
    pub(crate) fn waiting(&self) -> usize {
        self.lists.in_line()
    }

    /// Whether the provider is at some of them: a List shows when it is done.
    pub(crate) fn waits_to_be_seen(&self) -> bool {
        0 < self.lists.at_provider()
    }

    /// Calls on the wire.
    pub(crate) fn on_wire(&self) -> usize {
        self.on_wire.len()
    }
}

/// From commit to end.
impl Work {
    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Takes on what was committed; it may leave once this barrier is on disk.
    pub(crate) fn commit(
        &mut self,
        action: Action,
        cycle: u64,
        now: Time,
        barrier: Barrier,
        not_ready: bool,
        late: Option<Machine>,
    ) {
        let id = OperationId {
            epoch: self.epoch,
            number: self.next_number(),
        };
        let mut operation = Operation::new(id, action, cycle, now, barrier);
        operation.not_ready = not_ready;
        operation.late = late.map(Box::new);
        self.insert(operation);
    }

    /// Takes on an operation, in the stage it is in.
    pub(crate) fn insert(&mut self, operation: Operation) {
        let machine = operation.machine.clone();
        self.lists.join(&operation);
        self.machines.insert(operation.id, machine.clone());
        self.operations.insert(machine, operation);
    }

    /// Ends the operation of a machine.
    pub(crate) fn end(&mut self, machine: &MachineId) -> Option<Operation> {
        let operation = self.operations.remove(machine)?;
        self.machines.remove(&operation.id);
        self.lists.leave(&operation);
        self.free_blob(&operation);
        Some(operation)
    }

    /// From now on the operation waits for this. The one place where a stage changes. Nothing is ready
    /// before its commit is on disk (SH-5).
    fn enter(&mut self, machine: &MachineId, stage: WorkStage, now: Time) {
        let Some(operation) = self.operations.get_mut(machine) else {
            return;
        };
        self.lists.leave(operation);
        // A List that shows it on its way once more is no reason to count its age anew.
        let is_still_there = [operation.stage, stage] == [WorkStage::Provider; 2];
        let is_early = stage == WorkStage::Ready && self.durable < operation.barrier;
        operation.stage = if is_early { WorkStage::Disk } else { stage };
        if !is_still_there {
            operation.since = now;
        }
        self.lists.join(operation);
    }
}

/// What an operation waits for before its call.
impl Work {
    /// Everything up to this barrier is on disk: what waited for it may leave.
    pub(crate) fn persisted(&mut self, barrier: Barrier, now: Time) {
        self.durable = self.durable.max(barrier);
        while let Some(operation) = self.lists.next_on_disk(self.durable) {
            let Some(machine) = self.machines.get(&operation).cloned() else {
                return;
            };
            self.enter(&machine, WorkStage::Ready, now);
        }
    }

    /// The next effect of an operation may leave.
    pub(crate) fn make_ready(&mut self, machine: &MachineId, now: Time) {
        self.enter(machine, WorkStage::Ready, now);
    }

    /// A Get has shown our mark on its machine: its Drain may leave once.
    pub(crate) fn mark_seen(&mut self, machine: &MachineId, now: Time) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.mark_seen = true;
        }
        self.make_ready(machine, now);
    }

    /// The same for the one that waited to be tried again.
    pub(crate) fn retry(&mut self, operation: OperationId, now: Time) {
        let Some(machine) = self.machines.get(&operation).cloned() else {
            return;
        };
        let known = self.operations.get(&machine);
        if known.is_some_and(|known| known.stage == WorkStage::Backoff) {
            self.enter(&machine, WorkStage::Ready, now);
        }
    }

    /// The provider is back: whatever waits because it could not be reached is tried at once.
    pub(crate) fn retry_unreached(&mut self, now: Time) {
        let unreached = self.operations.values().filter(|one| {
            let code = one.refused.as_ref().map(|(code, _)| *code);
            one.stage == WorkStage::Backoff && code.is_some_and(Code::is_silence)
        });
        for machine in unreached.map(|one| one.machine.clone()).collect::<Vec<_>>() {
            self.enter(&machine, WorkStage::Ready, now);
        }
    }

    /// Whether an operator drains a machine.
    pub(crate) fn awaits_drain(&self, machine: &MachineId) -> bool {
        let operation = self.get(machine);
        operation.is_some_and(|operation| operation.stage == WorkStage::DrainReport)
    }

    /// Tries the same again later; says when, and whom to remind.
    pub(crate) fn back_off(
        &mut self,
        machine: &MachineId,
        now: Time,
    ) -> Option<(Time, OperationId)> {
        let operation = self.operations.get_mut(machine)?;
        operation.failing_since.get_or_insert(now);
        let doubled = FIRST_RETRY * (1 << operation.attempts.min(16));
        let again = (now + doubled.min(LONGEST_RETRY), operation.id);
        self.enter(machine, WorkStage::Backoff, now);
        Some(again)
    }

    /// The operator is asked for a blob.
    pub(crate) fn ask_for_blob(&mut self, machine: &MachineId, now: Time) -> Option<RequestId> {
        if !self.operations.contains_key(machine) {
            return None;
        }
        let request = RequestId {
            epoch: self.epoch,
            number: self.next_number(),
        };
        self.enter(machine, WorkStage::Blob(request), now);
        Some(request)
    }

    /// The operation that waits for the answer to a request.
    pub(crate) fn asked(&self, request: RequestId) -> Option<&Operation> {
        self.operations.get(self.lists.asked(request)?)
    }

    /// Machines that wait for a blob of this cluster's operator, oldest request first.
    pub(crate) fn waiting_for_blob(&self, cluster: &ClusterId) -> Vec<MachineId> {
        let asked = self.lists.all_asked();
        let of_cluster = asked.filter(|machine| {
            let operation = self.operations.get(*machine);
            operation.is_some_and(|operation| operation.cluster.as_ref() == Some(cluster))
        });
        of_cluster.cloned().collect()
    }

    /// The blob is here; says whether it was kept. If there is no room for it, it is asked for again.
    pub(crate) fn blob_came(&mut self, machine: &MachineId, blob: Blob, now: Time) -> bool {
        let Some(operation) = self.operations.get_mut(machine) else {
            return false;
        };
        let former = operation.blob.take().map_or(0, |blob| blob.user_data.len());
        let mut is_kept = true;
        if let Some(cluster) = &operation.cluster {
            self.blob_room.free(cluster, former);
            is_kept = self.blob_room.take(cluster, blob.user_data.len());
        }
        operation.blob = Some(blob).filter(|_| is_kept);
        self.enter(machine, WorkStage::Ready, now);
        is_kept
    }

    fn free_blob(&mut self, operation: &Operation) {
        if let (Some(cluster), Some(blob)) = (&operation.cluster, &operation.blob) {
            self.blob_room.free(cluster, blob.user_data.len());
        }
    }

    /// Whether there is room for the blob of an operation; one for which there is none waits for it.
    pub(crate) fn has_blob_room(&mut self, machine: &MachineId) -> bool {
        let Some(operation) = self.operations.get(machine) else {
            return true;
        };
        let cluster = operation.cluster.as_ref();
        let has_room = cluster.is_none_or(|cluster| self.blob_room.is_open(cluster));
        if !has_room {
            self.lists.await_room(operation);
        }
        has_room
    }

    /// The operator was told to drain; `reports` if it will say how far it is.
    pub(crate) fn instructed(&mut self, machine: &MachineId, reports: bool, now: Time) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.instructed = true;
            if reports {
                self.enter(machine, WorkStage::DrainReport, now);
            }
        }
    }

    /// A drain that waits for its operator's word is to be told to it anew once it may be.
    pub(crate) fn instruct_later(&mut self, machine: &MachineId, now: Time) {
        if let Some(operation) = self.operations.get_mut(machine)
            && operation.stage == WorkStage::DrainReport
        {
            operation.instructed = false;
            self.enter(machine, WorkStage::Ready, now);
        }
    }

    /// The operator's word that a node is empty, or that there is none: the call may follow.
    pub(crate) fn drained(&mut self, machine: &MachineId, now: Time) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.drained = true;
            self.enter(machine, WorkStage::Ready, now);
        }
    }

    /// The operator is at it, so it has never said that the node is empty: no Drain has left, not even one of
    /// an earlier process.
    pub(crate) fn still_evicting(&mut self, machine: &MachineId) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.touched = false;
        }
    }

    /// Stops an operation's deadline where it is, or lets it run on with the time given back; says
    /// whether that changed anything.
    pub(crate) fn hold(&mut self, machine: &MachineId, closed: bool, now: Time) -> bool {
        let Some(operation) = self.operations.get_mut(machine) else {
            return false;
        };
        let (held_since, deadline) = (&mut operation.held_since, &mut operation.deadline);
        hold_deadline(held_since, deadline, closed, now)
    }

    /// A drain is to end by then; says whether that is sooner than it was.
    pub(crate) fn end_drain_by(&mut self, machine: &MachineId, by: Time) -> bool {
        let Some(operation) = self.operations.get_mut(machine) else {
            return false;
        };
        let is_sooner = operation.is_drain() && by < operation.deadline;
        if is_sooner {
            operation.deadline = by;
        }
        is_sooner
    }

    /// What went wrong with an operation, in the words of whoever said so; for people.
    pub(crate) fn note_trouble(&mut self, machine: &MachineId, trouble: String) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.trouble = trouble;
        }
    }
}

/// The line of those that are ready.
impl Work {
    fn has_slot(&self) -> bool {
        self.on_wire.len() < self.most_calls
    }

    /// How many more calls of a cluster may be on the wire: one cluster, or one slow way of configuring,
    /// does not take every slot (SH-2).
    fn share_left(&self, cluster: &ClusterId) -> usize {
        let Some(most) = self.most_calls_of_cluster else {
            return usize::MAX;
        };
        let on_wire = self.on_wire.values().flatten();
        most.saturating_sub(on_wire.filter(|one| *one == cluster).count())
    }

    /// Whether a call for this cluster may leave.
    fn may_call(&self, cluster: Option<&ClusterId>) -> bool {
        self.has_slot() && cluster.is_none_or(|cluster| 0 < self.share_left(cluster))
    }

    /// Of each cluster that has part of its share left and is not closed, as many of those that wait for
    /// it as that is have a chance again; and some of those that wait for room for their blobs, if there is any.
    pub(crate) fn ease(&mut self, is_closed: impl Fn(&ClusterId) -> bool) {
        if self.has_slot() {
            for cluster in self.lists.crowded_clusters() {
                if !is_closed(&cluster) {
                    self.lists.ease(&cluster, self.share_left(&cluster));
                }
            }
        }
        for cluster in self.lists.clusters_without_room() {
            if !is_closed(&cluster) && self.blob_room.is_open(&cluster) {
                self.lists.make_room(&cluster, ASKED_AT_ONCE);
            }
        }
    }

    /// The next in line after this one that has a chance to leave.
    pub(crate) fn next_ready(
        &self,
        after: Option<QueuePosition>,
    ) -> Option<(QueuePosition, &MachineId)> {
        let position = self.lists.next_ready(after, self.has_slot())?;
        Some((position, self.machines.get(&position.1)?))
    }

    /// Puts one that only lacks a slot, of all or of its cluster's, where it is not looked at until there
    /// may be one. Not one whose blob may run out before: that has to be asked for again.
    pub(crate) fn put_aside(&mut self, machine: &MachineId) {
        let Some(operation) = self.operations.get(machine) else {
            return;
        };
        let expires = operation
            .blob
            .as_ref()
            .is_some_and(|one| one.until.is_some());
        if operation.stage != WorkStage::Ready || expires {
            return;
        }
        let cluster = operation.cluster.as_ref();
        if !self.has_slot() {
            self.lists.await_slot(operation);
        } else if cluster.is_some_and(|cluster| self.share_left(cluster) == 0) {
            self.lists.await_share(operation);
        }
    }
}

/// Calls.
impl Work {
    /// Whether the call of an operation could leave now.
    pub(crate) fn may_send(&self, machine: &MachineId) -> bool {
        let operation = self.operations.get(machine);
        operation.is_some_and(|operation| {
            operation.stage == WorkStage::Ready && self.may_call(operation.cluster.as_ref())
        })
    }

    /// Enters a call as on the wire; its sequence number is fresh (FE-2).
    pub(crate) fn send(&mut self, machine: &MachineId, now: Time) -> Option<SentCall> {
        let operation = self.operations.get_mut(machine)?;
        self.sequence += 1;
        let sequence = self.sequence;
        self.on_wire.insert(sequence, operation.cluster.clone());
        operation.attempts += 1;
        operation.touched = true;
        operation.mark_seen = false;
        let sent = SentCall {
            operation: operation.id,
            sequence,
            again: 1 < operation.attempts,
        };
        self.enter(machine, WorkStage::Call(sequence), now);
        Some(sent)
    }

    /// A call ended and its slot is free. `None` if no operation waits for it any more: a late answer.
    pub(crate) fn call_ended(
        &mut self,
        operation: OperationId,
        sequence: u64,
        outcome: &CallOutcome,
    ) -> Option<EndedCall> {
        self.on_wire.remove(&sequence);
        let machine = self.machines.get(&operation)?.clone();
        let known = self.operations.get_mut(&machine)?;
        if known.stage != WorkStage::Call(sequence) {
            return None;
        }
        match outcome {
            CallOutcome::Acked { operation, .. } => known.name.clone_from(operation),
            CallOutcome::Refused { code, text } => {
                known.trouble = code.said(text);
                known.refused = Some((*code, text.clone()));
            }
            CallOutcome::NeverSent => known.attempts -= 1,
        }
        Some(EndedCall {
            overtaken: std::mem::take(&mut known.overtaken),
            late: known.late.take(),
            machine,
        })
    }

    /// The provider is at it; a List or a Get will show the end.
    pub(crate) fn taken_on(&mut self, machine: &MachineId, now: Time) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.acked = true;
            operation.failing_since = None;
            self.enter(machine, WorkStage::Provider, now);
        }
    }

    /// The provider shows that it has not begun after all.
    pub(crate) fn not_begun(&mut self, machine: &MachineId) {
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.acked = false;
        }
    }

    /// What became of the call is read from the machine.
    pub(crate) fn confirm(&mut self, machine: &MachineId, now: Time) {
        self.enter(machine, WorkStage::Confirm, now);
    }

    /// Whether a call for this machine is on the wire.
    pub(crate) fn is_calling(&self, machine: &MachineId) -> bool {
        let operation = self.operations.get(machine);
        operation.is_some_and(|one| matches!(one.stage, WorkStage::Call(_)))
    }

    /// Something was read of a machine while its call is out, and is looked at again when that has ended.
    /// Says whether there is such a call.
    pub(crate) fn overtake(&mut self, machine: &MachineId) -> bool {
        let is_calling = self.is_calling(machine);
        if let Some(operation) = self.operations.get_mut(machine) {
            operation.overtaken |= is_calling;
        }
        is_calling
    }
}

/// Stops a deadline where it is, or lets it run on with the time given back; says whether that changed
/// anything.
pub(crate) fn hold_deadline(
    held_since: &mut Option<Time>,
    deadline: &mut Time,
    closed: bool,
    now: Time,
) -> bool {
    match (closed, *held_since) {
        (true, None) => *held_since = Some(now),
        (false, Some(since)) => {
            *held_since = None;
            *deadline = *deadline + now.duration_since(since);
        }
        (true, Some(_)) | (false, None) => return false,
    }
    true
}

#[cfg(test)]
mod tests;
