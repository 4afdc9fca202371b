//! What reaches the provider, and what comes back.

use crate::{
    clock::Moment,
    cloud::{Changed, ListAsked, fault, host},
    dice::Latency,
    watch::Rule,
    world::{Happening, World},
};
use bigfleet_model::{Breach, MachineId, MachineRefused, State};
use bigfleet_provider_kit as kit;
use bigfleet_shard_core::{
    CallOutcome, Code, Event, GetId, Got, ListId, Listed, OperationId, ProviderCall, Token,
};
use bigfleet_shard_world::{call_ended, found, listed};
use std::sync::Arc;

impl World {
    pub(crate) fn call_arrives(
        &mut self,
        epoch: u64,
        operation: OperationId,
        machine: &MachineId,
        token: &Token,
        call: ProviderCall,
    ) {
        let outcome = self.answer_call(epoch, machine, token, call);
        let lost = self.happens("answer lost", self.plan.weather.answer_lost);
        let (outcome, after) = if lost {
            (
                CallOutcome::refused(Code::DeadlineExceeded),
                self.dice.between(5_000, 30_000),
            )
        } else {
            (outcome, self.dice.latency(self.plan.stages.network))
        };
        let event = call_ended(operation, token, outcome);
        self.later(self.now.after(after), epoch, event);
    }

    fn answer_call(
        &mut self,
        epoch: u64,
        machine: &MachineId,
        token: &Token,
        call: ProviderCall,
    ) -> CallOutcome {
        if self.now < self.cloud.away_until {
            return CallOutcome::refused(Code::Unavailable);
        }
        let ask = ask(call);
        let kind = ask.kind();
        if kind == kit::Transition::Delete && self.now < self.cloud.deletes_fail_until {
            self.struck("deletes fail");
            return CallOutcome::refused(Code::Internal);
        }
        let known = self.cloud.machine(machine).cloned();
        let empty = known.is_some_and(|known| self.cloud.is_out_of_stock(self.now, &known));
        if kind == kit::Transition::Create && empty {
            self.struck("stock-out");
        }
        // Some clouds refuse at once, others accept the call and fail it later: both happen here.
        if kind == kit::Transition::Create && empty && self.dice.per_mille(500) {
            self.create_failed(machine);
            return CallOutcome::refused(Code::ResourceExhausted);
        }
        let mutation = kit::Mutation {
            machine: machine.to_string(),
            token: self.fence(token),
            ask,
        };
        self.next_call += 1;
        let call = self.next_call;
        let (changed, effects) = self.cloud.tell(kit::Event::Mutate { call, mutation });
        let mut answer = Err(kit::Refusal::Defect);
        for effect in effects {
            if let kit::Effect::Answer { answer: given, .. } = effect {
                answer = given;
            } else if let kit::Effect::Start(work) = effect {
                self.took_effect(epoch, machine, kind);
                self.begin_work(work, empty);
            }
        }
        self.cloud_changed(changed);
        match answer {
            Ok(ack) => {
                let now = self.cloud.machine(machine).cloned();
                let now = now.unwrap_or(ack.machine);
                CallOutcome::acked(self.cloud.sighting(&now))
            }
            Err(refusal) => CallOutcome::refused(code(&refusal)),
        }
    }

    /// The token the provider checks; with the defect it does not check any.
    fn fence(&self, token: &Token) -> kit::Token {
        if self
            .defect
            .is_some_and(crate::Defect::provider_ignores_fences)
        {
            return kit::Token::default();
        }
        kit::Token {
            shard: token.shard.clone(),
            epoch: token.epoch as i64,
            sequence: token.sequence as i64,
        }
    }

    /// A call changed a machine: no older life of the shard may do that after a newer one.
    fn took_effect(&mut self, epoch: u64, machine: &MachineId, kind: kit::Transition) {
        match kind {
            kit::Transition::Create => self.log.creates.push(self.now),
            kit::Transition::Drain => self.log.drains += 1,
            kit::Transition::Configure | kit::Transition::Delete => {}
        }
        let newest = self.watch.newest.entry(machine.clone()).or_default();
        let overtaken = epoch < *newest;
        *newest = epoch.max(*newest);
        if overtaken {
            let text = format!("process {epoch} could {kind} {machine} after a newer one had it");
            self.watch.broke(Rule::Fenced, self.now, text);
        }
    }

    /// The provider works on an operation, for as long as is drawn.
    fn begin_work(&mut self, work: kit::Work, out_of_stock: bool) {
        let stages = self.plan.stages;
        let Some(kind) = kit::Transition::under_way(work.machine.state) else {
            return;
        };
        let (latency, outcome) = match kind {
            kit::Transition::Create => {
                let created = kit::Created {
                    host: host(work.machine.id.as_str()),
                    ..kit::Created::default()
                };
                (stages.create, Ok(Some(created)))
            }
            kit::Transition::Configure => (stages.configure, Ok(None)),
            kit::Transition::Drain => (stages.drain, Ok(None)),
            kit::Transition::Delete => (stages.delete, Ok(None)),
        };
        let mut takes = self.dice.latency(latency);
        if let kit::Task::Drain { grace } = &work.task {
            takes = takes.min(grace.as_millis() as u64);
        }
        let told_to = self.cloud.takes_a_failure(kind, &work.machine.id);
        if told_to {
            self.struck("calls fail");
        }
        let cluster = self.cluster_named(&work.machine.cluster);
        let is_refused = kind == kit::Transition::Configure
            && cluster.is_some_and(|one| self.now < self.clusters[one].configures_fail_until);
        if is_refused {
            self.struck("configures fail");
        }
        let fails =
            told_to || is_refused || self.happens("stage failed", self.plan.weather.stage_failed);
        let outcome = match () {
            () if kind == kit::Transition::Create && out_of_stock => {
                Err(fault("insufficient capacity"))
            }
            () if fails => Err(fault("simulated fault")),
            () => outcome,
        };
        let (machine, operation) = (work.machine.id.clone(), work.operation);
        if takes == 0 {
            self.settles(machine, operation, outcome);
            return;
        }
        let settles = Happening::Settles {
            machine,
            operation,
            outcome,
        };
        self.queue.at(self.now.after(takes), settles);
    }

    pub(crate) fn settles(
        &mut self,
        machine: MachineId,
        operation: Arc<str>,
        outcome: kit::Outcome,
    ) {
        let known = self.cloud.machine(&machine);
        let creating = known.filter(|one| one.state == State::Creating);
        if let Some(offer) = creating.map(|one| Arc::clone(&one.offer)) {
            if outcome.is_err() {
                self.watch.pool_failed(&offer, self.now)
            } else {
                self.watch.pool_delivered(&offer)
            }
        }
        let settled = kit::Event::Settled {
            machine,
            operation,
            outcome,
        };
        let changed = self.cloud.tell(settled).0;
        self.cloud_changed(changed);
    }

    fn create_failed(&mut self, machine: &MachineId) {
        if let Some(known) = self.cloud.machine(machine) {
            self.watch.pool_failed(&known.offer, self.now);
        }
    }

    /// Every Create under way fails, and a shard can hear of it from that moment on.
    pub(crate) fn creates_fail(&mut self, heard: Moment) {
        let under_way = self.cloud.machines();
        let under_way = under_way.filter(|one| one.state == State::Creating);
        let offers: Vec<Arc<kit::Offer>> = under_way.map(|one| Arc::clone(&one.offer)).collect();
        for offer in offers {
            self.watch.pool_failed(&offer, heard);
        }
    }

    pub(crate) fn list_arrives(&mut self, epoch: u64, list: ListId, cursor: Vec<u8>) {
        let after = self.dice.latency(self.plan.stages.list);
        let at = self.now.after(after);
        if self.now < self.cloud.away_until {
            let outcome = Listed::Failed;
            self.later(at, epoch, Event::ListEnded { list, outcome });
            return;
        }
        let asked = ListAsked {
            since: cursor,
            incremental: self.plan.shard.incremental,
            stale: self.happens("list stale", self.plan.weather.list_stale),
        };
        let mut answer = self.cloud.list(self.now, asked, &mut self.dice);
        if answer.lied {
            self.struck("list truncated");
        }
        let fails = self.happens("list failed", self.plan.weather.list_failed);
        if fails {
            // The first pages arrive, and then the List fails.
            let pages = self.dice.below(answer.machines.len() + 1);
            answer.machines.truncate(pages);
        }
        let mut refused = Vec::new();
        if answer.full
            && !answer.machines.is_empty()
            && self.happens("record invalid", self.plan.weather.record_invalid)
        {
            let at = self.dice.below(answer.machines.len());
            let id = answer.machines.swap_remove(at).machine.id().to_string();
            let breach = Breach::Price(f64::NAN);
            refused.push((id.clone(), MachineRefused { id, breach }));
            answer.lied = true;
        }
        match (answer.lied, answer.full) {
            _ if fails => {}
            (true, _) => self.watch.lied_at = self.now,
            (false, true) => {
                // The shard only now hears of what the wrong Lists had left out.
                if self.watch.truthful_at < self.watch.lied_at {
                    self.watch.disturbed(self.now);
                }
                self.watch.truthful_at = self.now;
            }
            (false, false) => {}
        }
        let outcome = if fails {
            Listed::Failed
        } else {
            Listed::Complete {
                full: answer.full,
                removed: answer.removed,
                cursor: answer.cursor,
            }
        };
        for event in listed(list, answer.machines, refused, outcome) {
            let event = Box::new(event);
            self.queue.in_order(at, Happening::Tell { epoch, event });
        }
    }

    pub(crate) fn get_arrives(&mut self, epoch: u64, get: GetId, machine: &MachineId) {
        let answer = if self.now < self.cloud.away_until {
            Got::Failed
        } else {
            let known = self.cloud.machine(machine).cloned();
            found(known.map(|known| self.cloud.sighting(&known)))
        };
        let at = self.now.after(self.dice.latency(self.plan.stages.network));
        self.later(at, epoch, Event::GotMachine { get, answer });
    }

    /// Machines changed at the provider: their nodes come and go, and broken slots are repaired later.
    pub(crate) fn cloud_changed(&mut self, changed: Vec<Changed>) {
        for (machine, now) in changed {
            self.watch.moved_at = self.now;
            let state = now.as_ref().map(|now| now.state);
            self.trace.machine(self.now, &machine, now.as_deref());
            let cluster = now
                .as_ref()
                .and_then(|now| self.cluster_named(&now.cluster));
            let serves = matches!(state, Some(State::Configured | State::Draining));
            for number in 0..self.clusters.len() {
                self.side_machine(number, &machine, state, serves && cluster == Some(number));
            }
            for (number, known) in self.clusters.iter_mut().enumerate() {
                if !(serves && cluster == Some(number)) && known.pods.has_node(&machine) {
                    known.pods.lose(&machine);
                }
            }
            if let (Some(State::Configured), Some(cluster)) = (state, cluster)
                && self.clusters[cluster].side.is_none()
                && !self.clusters[cluster].pods.has_node(&machine)
            {
                let after = self.dice.latency(self.plan.stages.join);
                let joins = Happening::Joins {
                    cluster,
                    machine: machine.clone(),
                };
                self.queue.at(self.now.after(after), joins);
            }
            let broken = matches!(state, None | Some(State::Failed));
            if broken && self.plan.stages.repair != Latency::NONE {
                let after = self.dice.latency(self.plan.stages.repair);
                self.watch.repairs += 1;
                self.queue
                    .at(self.now.after(after), Happening::Repair(machine));
            }
        }
    }
}

fn ask(call: ProviderCall) -> kit::Ask {
    match call {
        ProviderCall::Create => kit::Ask::Create {
            metadata: Arc::default(),
        },
        ProviderCall::Configure {
            cluster,
            blob,
            metadata,
        } => kit::Ask::Configure {
            cluster: cluster.to_string(),
            blob: blob.into(),
            metadata: Arc::new(metadata),
        },
        ProviderCall::Drain { grace_seconds } => kit::Ask::Drain {
            grace_seconds: grace_seconds.into(),
        },
        ProviderCall::Delete => kit::Ask::Delete,
    }
}

/// The status code of a refusal (wire 2.1).
fn code(refusal: &kit::Refusal) -> Code {
    match refusal {
        kit::Refusal::Invalid(_) => Code::InvalidArgument,
        kit::Refusal::Unsupported(_) => Code::Unimplemented,
        kit::Refusal::Fenced { .. } => Code::FailedPrecondition,
        kit::Refusal::NotFound(_) => Code::NotFound,
        kit::Refusal::Position { .. } | kit::Refusal::Defect => Code::Internal,
        kit::Refusal::Bound { .. } => Code::AlreadyExists,
        kit::Refusal::Unavailable => Code::Unavailable,
    }
}
