//! The hands of a process: they give events to its core and start the effects it answers with.
//!
//! ```text
//! event ─▶ busy with a cycle? wait ─▶ ShardCore::handle ─▶ effects ─▶ watch ─▶ on their way
//! ```
//!
//! Effects leave when the cycle that decided them is over, so that completions land during a cycle,
//! after its snapshot, as they do in a real process.

use crate::{
    clock::Moment,
    plan::Strike,
    process::RollUpOnSession,
    world::{Happening, World},
};
use bigfleet_shard_core::{CallOutcome, Code, Effect, Event, Frame, Listed};
use bigfleet_shard_world::call_ended;

/// Answers after which nobody knows whether the call was carried out.
const UNKNOWN: [Code; 4] = [
    Code::Transport,
    Code::Unavailable,
    Code::DeadlineExceeded,
    Code::Unknown,
];

impl World {
    /// Gives an event to a process. While it computes a cycle, the event waits for the end of it.
    pub(crate) fn tell(&mut self, epoch: u64, event: Event) {
        let Some(process) = self.processes.get_mut(&epoch) else {
            return;
        };
        if self.now < process.busy_until {
            let event = Box::new(event);
            let until = process.busy_until;
            self.queue.in_order(until, Happening::Tell { epoch, event });
            return;
        }
        let (event, said) = self.as_the_hands_put_it(epoch, event);
        self.trace.event(self.now, epoch, &event);
        self.note_told(epoch, &event);
        let listed = is_full_list(&event).then(|| self.unknown_to(epoch));
        let not_told = self.not_told(epoch).map(|core| (core, event.clone()));
        let Some(process) = self.processes.get_mut(&epoch) else {
            return;
        };
        process.fenced |= is_fence(&event);
        let before = process.core.cycle();
        let accepted = process.accepted(said.as_ref());
        let mut effects = Vec::new();
        process.core.handle(self.now.time(), event, &mut effects);
        if process.core.cycle() != before {
            let took = self.dice.latency(self.plan.stages.cycle);
            process.busy_until = self.now.after(took);
            let took = Event::CycleTook {
                seconds: took as f64 / 1000.0,
                phases: Vec::new(),
            };
            process.core.handle(self.now.time(), took, &mut effects);
        }
        process.remember(said, accepted);
        let start = process.busy_until.max(self.now);
        self.look(epoch, &effects);
        if let Some((core, event)) = not_told {
            self.check_disruption(epoch, core, event);
        }
        if let Some(unknown) = listed {
            self.look_at_list(epoch, unknown);
        }
        for effect in effects {
            self.perform(epoch, start, effect);
        }
    }

    /// A roll-up equal to the last accepted one of its session is handed in without its rows, as the
    /// runtime does. Also answers with the roll-up to remember if this one is accepted.
    fn as_the_hands_put_it(
        &mut self,
        epoch: u64,
        event: Event,
    ) -> (Event, Option<RollUpOnSession>) {
        let Event::RolledUp {
            session,
            rollup_id,
            rows: Ok(rows),
            ..
        } = &event
        else {
            return (event, None);
        };
        let session = *session;
        let process = self.processes.get(&epoch);
        let in_force = process.and_then(|process| process.in_force.get(&session));
        if in_force == Some(rows) {
            let rollup_id = rollup_id.clone();
            self.struck("roll-up repeated");
            return (Event::RollUpRepeated { session, rollup_id }, None);
        }
        let said = (session, rows.clone());
        (event, Some(said))
    }

    fn perform(&mut self, epoch: u64, start: Moment, effect: Effect) {
        let stages = self.plan.stages;
        match effect {
            Effect::Persist { barrier, records } => {
                let due = start.after(self.dice.latency(stages.disk));
                if let Some(process) = self.processes.get_mut(&epoch) {
                    let due = process.write(barrier, records, due);
                    self.exposed(epoch, Strike::Writing, start, due);
                    self.queue
                        .in_order(due, Happening::Written { epoch, barrier });
                }
            }
            Effect::Call {
                operation,
                machine,
                token,
                call,
            } => {
                if self.happens("call lost", self.plan.weather.call_lost) {
                    let outcome = match self.dice.below(UNKNOWN.len() + 1) {
                        0 => CallOutcome::NeverSent,
                        at => CallOutcome::refused(UNKNOWN[at - 1]),
                    };
                    let event = call_ended(operation, &token, outcome);
                    let after = self.dice.between(1_000, 30_000);
                    self.later(start.after(after), epoch, event);
                    return;
                }
                let at = start.after(self.dice.latency(stages.network));
                let back = at.after(stages.network.most());
                self.exposed(epoch, Strike::Calling, start, back);
                let arrives = Happening::Call {
                    epoch,
                    operation,
                    machine,
                    token,
                    call,
                };
                self.queue.at(at, arrives);
            }
            Effect::Get { get, machine } => {
                let at = start.after(self.dice.latency(stages.network));
                let arrives = Happening::Get {
                    epoch,
                    get,
                    machine,
                };
                self.queue.at(at, arrives);
            }
            Effect::List { list, cursor } => {
                let at = start.after(self.dice.latency(stages.network));
                let back = at.after(stages.list.most());
                self.exposed(epoch, Strike::Listing, start, back);
                let arrives = Happening::List {
                    epoch,
                    list,
                    cursor,
                };
                self.queue.at(at, arrives);
            }
            Effect::Send { session, frame } => self.send(epoch, start, session, frame),
            Effect::WakeAt(time) => {
                if let Some(process) = self.processes.get_mut(&epoch) {
                    process.wake += 1;
                    let wake = process.wake;
                    let at = Moment::not_before(time).max(self.now);
                    self.queue.at(at, Happening::Wake { epoch, wake });
                }
            }
            Effect::Close { session, .. } => {
                if let Some(process) = self.processes.get_mut(&epoch) {
                    process.sessions.remove(&session);
                }
                self.side_replaced(session);
            }
            // Only the watch reads the others, and it has seen them already.
            _ => {}
        }
    }

    fn send(
        &mut self,
        epoch: u64,
        start: Moment,
        session: bigfleet_shard_core::SessionId,
        frame: Frame,
    ) {
        let process = self.processes.get(&epoch);
        let cluster = process.and_then(|process| process.sessions.get(&session).copied());
        let Some(cluster) = cluster else {
            return;
        };
        let drawn = start.after(self.dice.latency(self.plan.stages.stream));
        let known = &mut self.clusters[cluster];
        // Frames of one stream arrive in the order they were sent.
        known.last_down = known.last_down.after(1).max(drawn);
        let frame = Box::new(frame);
        let arrives = Happening::Frame {
            cluster,
            session,
            frame,
        };
        self.queue.in_order(known.last_down, arrives);
    }

    /// Gives an event to a process at a later moment.
    pub(crate) fn later(&mut self, at: Moment, epoch: u64, event: Event) {
        let event = Box::new(event);
        self.queue.at(at, Happening::Tell { epoch, event });
    }

    /// Draws whether a random fault strikes, with this chance in a thousand.
    pub(crate) fn happens(&mut self, fault: &'static str, per_mille: u64) -> bool {
        let happens = !self.is_calm && self.dice.per_mille(per_mille);
        if happens {
            self.struck(fault);
        }
        happens
    }

    /// Counts a fault that struck, so that one that never does is noticed.
    pub(crate) fn struck(&mut self, fault: &'static str) {
        *self.struck.entry(fault).or_default() += 1;
    }
}

fn is_full_list(event: &Event) -> bool {
    let Event::ListEnded { outcome, .. } = event else {
        return false;
    };
    matches!(
        outcome,
        Listed::Complete { full: true, .. } | Listed::Failed
    )
}

fn is_fence(event: &Event) -> bool {
    let fenced = CallOutcome::refused(Code::FailedPrecondition);
    matches!(event, Event::CallEnded { outcome, .. } if *outcome == fenced)
}
