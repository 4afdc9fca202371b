//! Deciding: the engine is run on the ledger, and its answer is read whole before any of it is applied.

use super::{EngineRows, Supply};
use bigfleet_engine::Part;
use bigfleet_model::{
    Action, ClusterId, Machine, MachineId, NeedKey, Restamp, State, Time, Verdict,
};
use std::collections::BTreeSet;

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
