//! Snapshots: the state of the shard once per cycle, and the totals over all of them.
//!
//! ```text
//! shard's core ── between two events ──▶ CycleSnapshot ─┬─▶ a line
//!                                                       └─▶ RunTotals: states and decisions, counted
//! ```
//!
//! A snapshot is taken on the core's thread, so it has to be small.

use std::collections::BTreeMap;

use bigfleet_model::{ActionKind, MachineId, State};
use bigfleet_shard_core::ShardCore;

/// A shard at one moment.
#[derive(Clone, Debug)]
pub(crate) struct CycleSnapshot {
    pub(crate) cycle: u64,
    pub(crate) sessions: usize,
    /// Needs that the last decision left short.
    pub(crate) short: usize,
    /// Needs that are not served in full.
    pub(crate) lacking: usize,
    pub(crate) paused: bool,
    /// What concerns the whole shard.
    pub(crate) troubles: Vec<&'static str>,
    /// Dollars per hour of everything that exists.
    pub(crate) price: f64,
    machines: Vec<(MachineId, State)>,
    actions: BTreeMap<ActionKind, u64>,
}

impl CycleSnapshot {
    pub(crate) fn take(core: &ShardCore) -> Self {
        let gauges = core.gauges();
        let exists = |state: State| !matches!(state, State::Speculative | State::Failed);
        let costs = core.machines().filter(|machine| exists(machine.state()));
        Self {
            cycle: gauges.cycle,
            sessions: gauges.sessions,
            short: core.shortfalls().count(),
            lacking: core.lacking().count(),
            paused: gauges.paused,
            troubles: core.troubles().iter().map(|one| one.word()).collect(),
            // The sum of nothing is -0.0, which would be shown.
            price: costs
                .map(|machine| machine.price().dollars_per_hour())
                .fold(0.0, |sum, price| sum + price),
            machines: core
                .machines()
                .map(|machine| (machine.id().clone(), machine.state()))
                .collect(),
            actions: core.counters().actions.clone(),
        }
    }

    /// How many machines are in each state; states without any are listed with 0.
    pub(crate) fn by_state(&self) -> BTreeMap<State, u64> {
        let mut counts: BTreeMap<State, u64> = State::ALL.map(|state| (state, 0)).into();
        for (_, state) in &self.machines {
            *counts.entry(*state).or_default() += 1;
        }
        counts
    }
}

/// What happened over all snapshots.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTotals {
    last: BTreeMap<MachineId, State>,
    /// How often a machine was seen to have come into each state.
    visited: BTreeMap<State, u64>,
    decided: BTreeMap<ActionKind, u64>,
    pub(crate) cycle: u64,
}

impl RunTotals {
    /// Adds a snapshot; returns what was decided since the one before.
    pub(crate) fn add(&mut self, snapshot: &CycleSnapshot) -> BTreeMap<ActionKind, u64> {
        for (machine, state) in &snapshot.machines {
            if self.last.insert(machine.clone(), *state) != Some(*state) {
                *self.visited.entry(*state).or_default() += 1;
            }
        }
        let newly = |kind: ActionKind| {
            let count = |of: &BTreeMap<ActionKind, u64>| of.get(&kind).copied().unwrap_or(0);
            (
                kind,
                count(&snapshot.actions).saturating_sub(count(&self.decided)),
            )
        };
        let new = ActionKind::ALL.map(newly).into();
        self.decided.clone_from(&snapshot.actions);
        self.cycle = snapshot.cycle;
        new
    }

    /// Every state, and how often it was visited.
    pub(crate) fn visited(&self) -> BTreeMap<&'static str, u64> {
        let count = |state: State| self.visited.get(&state).copied().unwrap_or(0);
        State::ALL.map(|state| (state.word(), count(state))).into()
    }

    /// Every kind of action, and how many were decided.
    pub(crate) fn decided(&self) -> BTreeMap<&'static str, u64> {
        let count = |kind: ActionKind| self.decided.get(&kind).copied().unwrap_or(0);
        ActionKind::ALL
            .map(|kind| (kind.word(), count(kind)))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(state: State, provisions: u64) -> CycleSnapshot {
        CycleSnapshot {
            cycle: 1,
            sessions: 0,
            short: 0,
            lacking: 0,
            troubles: Vec::new(),
            paused: false,
            price: 0.0,
            machines: vec![(MachineId::new("m1").unwrap(), state)],
            actions: BTreeMap::from([(ActionKind::Provision, provisions)]),
        }
    }

    #[test]
    fn a_state_counts_when_a_machine_comes_into_it_and_a_decision_once() {
        let mut totals = RunTotals::default();
        let mut new = Vec::new();
        for (state, provisions) in [
            (State::Speculative, 0),
            (State::Creating, 1),
            (State::Creating, 1),
            (State::Idle, 1),
            (State::Creating, 3),
        ] {
            new.push(totals.add(&snapshot(state, provisions))[&ActionKind::Provision]);
        }
        assert_eq!(new, [0, 1, 0, 0, 2]);
        let visited = totals.visited();
        assert_eq!(
            (visited["Creating"], visited["Idle"], visited["Failed"]),
            (2, 1, 0)
        );
        assert_eq!(totals.decided()["Provision"], 3);
    }
}
