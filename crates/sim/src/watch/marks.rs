//! Marks: machines that are to leave, as whoever marked them means it (SH-20).
//!
//! ```text
//! told to a process, or found on its disk ─▶ the shard knows it ─▶ nobody gets the machine ─▶ it is out,
//!                                                                or nothing free can take its place
//! ```
//!
//! That nothing is drained which still serves is [cover](super::cover)'s to see, of what leaves as of
//! everything else.

use super::{Decided, Rule, cover};
use crate::{
    clock::{Moment, seconds},
    world::World,
};
use bigfleet_model::{ActionKind, Leaving, Machine, MachineId, Reason, Row, State};
use bigfleet_shard_core::{Event, LeavingPhase, Record, ShardCore};
use std::collections::BTreeMap;

/// Longer than it takes a shard to notice that a deadline has passed.
const NOTICED: u64 = seconds(30);

/// What admins have marked, and until when each is to wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(BTreeMap<MachineId, Option<Moment>>);

impl Marks {
    /// A process is told of marks, or that some are lifted.
    pub(super) fn told(&mut self, event: &Event) {
        match event {
            Event::DrainMachines { machines, mark } => {
                let deadline = mark.deadline.map(Moment::not_before);
                let marked = machines.iter().map(|one| (one.clone(), deadline));
                self.0.extend(marked);
            }
            Event::UndrainMachines { machines, .. } => {
                self.0.retain(|machine, _| !machines.contains(machine));
            }
            _ => {}
        }
    }

    /// A process finds these on its disk, and nothing else.
    pub(super) fn found(&mut self, records: &[Record]) {
        self.0.clear();
        for record in records {
            if let Record::Drained { machine, mark } = record {
                match mark {
                    Some(mark) => {
                        let deadline = mark.deadline.map(Moment::not_before);
                        self.0.insert(machine.clone(), deadline);
                    }
                    None => drop(self.0.remove(machine)),
                }
            }
        }
    }
}

/// How a machine leaves, as the shard has it.
pub(super) fn word(core: &ShardCore, machine: &MachineId) -> Option<Leaving> {
    core.leaving(machine)
}

/// Whether a decision is about a machine that is waited for no more.
pub(super) fn is_hurried(core: &ShardCore, one: &Decided) -> bool {
    one.reason == Reason::Leaving && word(core, &one.machine) == Some(Leaving::Now)
}

impl World {
    /// Nobody gets a machine that is to leave, and it is not given back either.
    pub(super) fn check_left_alone(&mut self, decided: &[Decided]) {
        let touched = decided.iter().find(|one| {
            let is_taken = match one.kind {
                ActionKind::Bootstrap | ActionKind::Provision | ActionKind::Delete => true,
                ActionKind::Preempt | ActionKind::Reclaim | ActionKind::Restore => false,
            };
            is_taken && self.watch.marks.0.contains_key(&one.machine)
        });
        if let Some(one) = touched {
            let (kind, machine) = (one.kind.word(), &one.machine);
            let text = format!("{kind} of {machine}, which is to leave");
            self.watch.broke(Rule::LeftAlone, self.now, text);
        }
    }

    /// Whatever happens to processes, the shard knows what was marked and which deadline has passed.
    pub(super) fn check_marks(&mut self) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        if !core.is_ready() {
            return;
        }
        let forgotten = self.watch.marks.0.iter().find_map(|(machine, deadline)| {
            core.machine(machine)?;
            let is_over = deadline.is_some_and(|deadline| deadline.after(NOTICED) < self.now);
            match word(core, machine) {
                None => Some(format!(
                    "{machine} is to leave, and the shard does not know"
                )),
                Some(Leaving::Soon) if is_over => Some(format!(
                    "the deadline of {machine} has passed, and it still waits"
                )),
                Some(_) => None,
            }
        });
        // Whoever is marked by nobody stays; a List may have to say so first.
        let lists = self.patience().max(NOTICED);
        let kept = core.leaving_machines().chain(
            core.machines()
                .filter_map(|one| word(core, one.id()).map(|_| one.id())),
        );
        let kept = kept.into_iter().find(|id| {
            let there = self.cloud.machine(id);
            let is_announced = there.is_none_or(|one| one.leaving.is_some());
            let is_settled = lists < self.now.since(self.watch.disturbed_at);
            is_settled && !is_announced && !self.watch.marks.0.contains_key(*id)
        });
        let kept = kept.map(|id| format!("{id} stays, and the shard has it leave"));
        if let Some(text) = forgotten.or(kept) {
            self.watch.broke(Rule::MarksKept, self.now, text);
        }
    }

    /// At rest each is out, or serves and nothing free could take its place.
    pub(super) fn check_out(&mut self) {
        let Some(core) = self.process().map(|process| &process.core) else {
            return;
        };
        let stuck = self.watch.marks.0.keys().find_map(|id| {
            let machine = core.machine(id)?;
            let view = core.machine_view(id)?.leaving;
            let phase = view.map(|leaving| leaving.phase);
            match phase {
                Some(LeavingPhase::Out) => None,
                Some(LeavingPhase::NoReplacement) => {
                    let free = self.free_in_place_of(core, machine)?;
                    Some(format!("{id} waits for a replacement, and {free} is free"))
                }
                other => Some(format!("{id} is to leave, and is {other:?} for ever")),
            }
        });
        if let Some(text) = stuck {
            self.watch.broke(Rule::GetsOut, self.now, text);
        }
    }

    /// A machine that is free and holds as much as one that leaves, for a plain Need: the rest is the engine's
    /// business.
    fn free_in_place_of(&self, core: &ShardCore, leaves: &Machine) -> Option<MachineId> {
        let cluster = self.cluster_named(leaves.cluster()?.as_str())?;
        let need = leaves.attribution()?;
        let rows = self.watch.demand.of(cluster)?;
        let id = &self.clusters[cluster].id;
        let is_it = |row: &&Row| cover::is_plain(row) && cover::key(id, row) == need;
        let row = rows.iter().find(is_it)?;
        let free = core.machines().find(|one| {
            matches!(one.state(), State::Idle | State::Speculative)
                && one.intent().is_none()
                && word(core, one.id()).is_none()
                && !core.is_pending(one.id())
                && cover::can_use(row, one.shape())
                && one.shape().effective().covers(leaves.shape().effective())
        })?;
        Some(free.id().clone())
    }
}
