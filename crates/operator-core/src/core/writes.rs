//! Writes: how they ended (OP-9).

use super::OperatorCore;
use crate::{
    effect::{Alert, Effect, Write},
    event::{EffectId, WriteOutcome},
    queue::Item,
};
use bigfleet_model::Time;

impl OperatorCore {
    pub(super) fn wrote(
        &mut self,
        now: Time,
        id: EffectId,
        outcome: WriteOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some(item) = self.queue.ended(id) else {
            return;
        };
        let write = match &item {
            Item::Write(write) => write.clone(),
            Item::Evict { .. } => return, // its answer is Evicted
        };
        match outcome {
            WriteOutcome::Throttled(after) => {
                self.queue.throttled(now, after);
                return self.queue.put_back(item);
            }
            // An object of our own says what we say, whatever it said when it was read: it is tried again as it is.
            WriteOutcome::Conflict if is_our_object(&write) => {
                self.queue.is_well();
                return self.queue.failed(now, item);
            }
            WriteOutcome::Failed(_) => {
                self.queue.is_well();
                return self.queue.failed(now, item);
            }
            WriteOutcome::Done
            | WriteOutcome::Gone
            | WriteOutcome::Conflict
            | WriteOutcome::Refused(_) => {}
        }
        self.queue.is_well();
        self.queue.settled(&item);
        let is_done = outcome == WriteOutcome::Done;
        match write {
            Write::Acknowledge { request, uid, .. } => {
                self.counters.acknowledged += u64::from(is_done);
                if is_done || outcome == WriteOutcome::Gone {
                    self.acknowledgements.done(&request, &uid);
                }
                return; // a test that failed is another request, which its own roll-up acknowledges (OP-28)
            }
            Write::Serve { .. } => return,
            Write::CordonNode { node, .. } => {
                let mut steps = Vec::new();
                self.drains.cordoned(now, &node, is_done, &mut steps);
                self.drain_steps(steps, effects);
            }
            Write::ReleaseNode { node, .. } => {
                self.drains
                    .released(&node, is_done || outcome == WriteOutcome::Gone);
            }
            Write::LabelNode { .. }
            | Write::DeleteNode { .. }
            | Write::ApplyUpcoming { .. }
            | Write::DeleteUpcoming { .. }
            | Write::ApplyAvailable { .. }
            | Write::DeleteAvailable { .. } => {}
            Write::SpareRecord { text } => {
                if is_done && self.spares.wrote(&text) {
                    self.pace.begin_now(now);
                }
                self.write_spares();
            }
        }
        if let WriteOutcome::Refused(why) = outcome {
            self.counters.writes_refused += 1;
            effects.push(Effect::Alert(Alert::WriteRefused(why)));
        }
    }
}

fn is_our_object(write: &Write) -> bool {
    matches!(
        write,
        Write::ApplyUpcoming { .. }
            | Write::DeleteUpcoming { .. }
            | Write::ApplyAvailable { .. }
            | Write::DeleteAvailable { .. }
    )
}
