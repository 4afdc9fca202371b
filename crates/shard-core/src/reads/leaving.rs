//! Leaving machines as readers are shown: how far each is, what takes its place, what is in the way (SH-20).

use super::Reads;
use crate::leaving::{LeavingPhase, LeavingSource, LeavingView, LeavingWait};
use bigfleet_model::{Leaving, Machine, MachineId, State, Time};
use std::collections::BTreeMap;

/// Replacements that a view names.
const MOST_NAMED: usize = 16;

/// Leaving machines, counted.
#[derive(Debug, Default)]
pub(crate) struct LeavingCounts {
    pub(crate) machines: BTreeMap<(LeavingSource, Leaving, LeavingPhase), u32>,
    /// Since when the one waits that has been without a replacement for longest.
    pub(crate) unreplaced_since: Option<Time>,
}

impl Reads<'_> {
    /// How a machine leaves; `None` if it does not.
    pub(crate) fn leaving_view(&self, id: &MachineId) -> Option<LeavingView> {
        let said = self.leaving.said_of(id)?;
        let machine = self.supply.get(id)?;
        let phase = self.leaving_phase(machine);
        let is_judged = self.leaving.phase_since(id, phase).is_some();
        let is_admins = said.source == LeavingSource::Admin;
        let has_passed = is_admins && said.word == Leaving::Now;
        Some(LeavingView {
            word: said.word,
            source: said.source,
            by: said.by.to_owned(),
            reason: said.reason.to_owned(),
            since: said.since,
            deadline: said.deadline,
            overdue: has_passed && phase != LeavingPhase::Out,
            phase,
            is_judged,
            phase_since: self.leaving_since(id, phase, said.since),
            replacements: self.replacements(machine, phase),
            waits: self.leaving_wait(machine, phase),
        })
    }

    /// Where a leaving machine is.
    fn leaving_phase(&self, machine: &Machine) -> LeavingPhase {
        let id = machine.id();
        let is_replaced = self.supply.is_kept_for_replacement(id) || self.leaving.is_due(id);
        LeavingPhase::of(machine.state(), is_replaced)
    }

    /// Since when it is there: not before it was marked, however long it has been in its state.
    fn leaving_since(&self, id: &MachineId, phase: LeavingPhase, marked: Time) -> Option<Time> {
        let judged = self.leaving.phase_since(id, phase);
        judged.or_else(|| Some(self.supply.ledger().state_since(id)?.max(marked)))
    }

    /// The machines on their way to the Need a leaving one serves.
    fn replacements(&self, machine: &Machine, phase: LeavingPhase) -> Vec<MachineId> {
        let need = machine.attribution();
        let Some(need) = need.filter(|_| phase == LeavingPhase::ReplacementComing) else {
            return Vec::new();
        };
        let of_need = self.supply.machines_of(&need).into_iter();
        let coming = of_need.filter(|id| {
            let known = self.supply.get(id);
            let is_coming = known.is_some_and(|known| known.state() != State::Configured);
            is_coming && self.supply.beside(id).leaving.is_none()
        });
        coming.take(MOST_NAMED).collect()
    }

    /// Why a machine is not drained that the last cycle decided to drain.
    fn leaving_wait(&self, machine: &Machine, phase: LeavingPhase) -> Option<LeavingWait> {
        let id = machine.id();
        if phase != LeavingPhase::ReplacementComing || !self.leaving.is_due(id) {
            return None;
        }
        let cluster = machine.cluster()?;
        if self.rails.is_closed_for(std::iter::once(cluster)) {
            return Some(LeavingWait::Paused);
        }
        let given_up = self.rails.given_up(id).map(|(_, until)| until);
        if let Some(until) = given_up.filter(|until| self.now < *until) {
            return Some(LeavingWait::Blocked(until));
        }
        if !self.sessions.is_connected(cluster) {
            return Some(LeavingWait::NoOperator);
        }
        let is_capped = self
            .rails
            .capped_clusters()
            .any(|one| one.cluster == *cluster);
        Some(if is_capped {
            LeavingWait::ReclaimCap
        } else {
            LeavingWait::Cycle
        })
    }

    /// Leaving machines by source, word and phase.
    pub(crate) fn leaving_counts(&self) -> LeavingCounts {
        let mut counts = LeavingCounts::default();
        for id in self.leaving.ids() {
            let (Some(said), Some(machine)) = (self.leaving.said_of(id), self.supply.get(id))
            else {
                continue;
            };
            let phase = self.leaving_phase(machine);
            let kind = (said.source, said.word, phase);
            *counts.machines.entry(kind).or_default() += 1;
            if phase == LeavingPhase::NoReplacement {
                let since = self.leaving_since(id, phase, said.since);
                counts.unreplaced_since = Time::earliest(counts.unreplaced_since, since);
            }
        }
        counts
    }
}
