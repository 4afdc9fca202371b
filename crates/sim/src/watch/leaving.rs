//! Leaving: what may go out of a process, and when.
//!
//! ```text
//! Call, Reclaim ──┐
//!                 ├─▶ its decision is on disk? nobody paused? not fenced? ─▶ goes
//! BootstrapRequest┘                     Call: one of no more than there are workers
//! ```

use super::Rule;
use crate::{clock::Moment, world::World};
use bigfleet_model::Leaving;
use bigfleet_shard_core::{Effect, Event, Frame, PausedBy, ProviderCall, Record, Scope};

impl World {
    /// One effect that acts on a machine, as it leaves.
    pub(crate) fn look_at_leaving(&mut self, epoch: u64, effect: &Effect) {
        let Some(machine) = effect.acts_on() else {
            return;
        };
        let (what, operation) = match effect {
            Effect::Call { operation, .. } => ("a call about", Some(*operation)),
            Effect::Send {
                frame: Frame::Reclaim { instruction, .. },
                ..
            } => ("an instruction for", Some(*instruction)),
            _ if epoch != self.current => return,
            _ => (
                "a request for a blob for",
                self.watch.commits.newest_of(machine),
            ),
        };
        let left = operation.map_or(Err("was never written"), |operation| {
            self.watch.commits.leaves(operation)
        });
        if let Err(why) = left {
            let operation = operation.map_or_else(String::new, |one| one.to_string());
            let text = format!("{what} {machine} left, but {operation} {why}");
            self.watch.broke(Rule::DurableFirst, self.now, text);
        }
        if let Some(operation) = operation.filter(|_| epoch == self.current) {
            self.check_window(operation);
        }
        let Some(process) = self.processes.get_mut(&epoch) else {
            return;
        };
        if epoch == self.current && epoch < self.epochs {
            let newest = self.epochs;
            let text = format!("{what} {machine} left epoch {epoch}, and {newest} was used before");
            self.watch.broke(Rule::Fenced, self.now, text);
        }
        if process.fenced {
            let text = format!("process {epoch} was fenced, and {what} {machine} still left");
            self.watch.broke(Rule::Fenced, self.now, text);
        }
        if epoch == self.current && self.now < self.watch.held_until {
            let until = self.watch.held_until;
            let text = format!("{what} {machine} left, though all is paused until {until} s");
            self.watch.broke(Rule::Paused, self.now, text);
        }
        if let Effect::Call {
            machine,
            call: ProviderCall::Drain { .. },
            ..
        } = effect
            && let Some(cluster) = process.core.machine(machine).and_then(|one| one.cluster())
            && process.core.leaving(machine) == Some(Leaving::Soon)
            && let Some(cluster) = self.clusters.iter().find(|one| one.id == *cluster)
            && cluster.session.is_some()
            && self.now < cluster.drains_blocked_until
        {
            let text =
                format!("{machine} is to leave soon, and is drained past a disruption budget");
            self.watch.broke(Rule::MakeBeforeBreak, self.now, text);
        }
        if let Effect::Call {
            operation, token, ..
        } = effect
        {
            self.watch.taken_back.called(*operation);
            process.calls.insert((*operation, token.sequence));
            let (out, workers) = (process.calls.len(), self.plan.shard.workers);
            if workers < out {
                let text = format!("{out} calls are out at once, of {workers} allowed");
                self.watch.broke(Rule::Workers, self.now, text);
            }
        }
    }

    /// What a process is about to be told, as far as it bears on what may leave.
    pub(crate) fn note_told(&mut self, epoch: u64, event: &Event) {
        if epoch == self.current {
            self.watch.marks.told(event);
        }
        match event {
            Event::CallEnded {
                operation,
                sequence,
                ..
            } => {
                if let Some(process) = self.processes.get_mut(&epoch) {
                    process.calls.remove(&(*operation, *sequence));
                }
            }
            Event::Pause {
                by: PausedBy::Admin,
                scope: Scope::All,
                until: Some(until),
                ..
            } if epoch == self.current => self.watch.held_until = Moment::not_before(*until),
            Event::Resume {
                by: PausedBy::Admin,
                scope: Scope::All,
            } if epoch == self.current => self.watch.held_until = self.now,
            _ => {}
        }
    }

    /// What a new process finds on its disk: a pause holds it too, if it was written.
    pub(crate) fn note_found(&mut self, records: &[Record]) {
        self.watch.commits.found(records);
        self.watch.marks.found(records);
        if records.is_empty() {
            self.watch.reclaims.forget();
        }
        let paused = records.iter().rev().find_map(|record| match record {
            Record::Paused {
                scope: Scope::All,
                kept,
            } => Some(kept.as_ref().and_then(|kept| kept.until)),
            _ => None,
        });
        let until = paused.flatten().map_or(Moment::START, Moment::not_before);
        self.watch.held_until = until;
    }
}
