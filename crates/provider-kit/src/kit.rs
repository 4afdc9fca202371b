//! The kit: the contract as a value. Events in, effects out; no clock, no I/O.
//!
//! ```text
//! Mutate ─▶ arguments ─▶ capability ─▶ fence ─▶ existence ─▶ replay ─▶ position ─▶ accept ─▶ Start
//!              │             │           │          │           │          │          │
//!              └─────────────┴───────────┴──────────┴───────────┴──────────┴──────────┴─▶ Answer
//! Settled, TimedOut ─▶ still under way? ─┬─ yes ─▶ target or Failed
//!                                        └─ no ──▶ Discarded
//! ```
//!
//! Every effect is valid only once the pending changes of [`Kit::tables`] are stored: whoever drives
//! the kit stores them first, then commits, then carries the effects out. If storing fails it rolls
//! back, and nothing has happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{CapacityType, Host, MachineId, State};

use crate::call::{Ack, Ask, Kind, MAX_BLOB_BYTES, MAX_METADATA_BYTES, Mutation, Refusal, Token};
use crate::machine::{Failure, Instance, Machine, TextMap};
use crate::seed::{self, SeedRefused};
use crate::tables::{Change, Mark, Tables};

/// The longest a transition may take, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Speculative to Idle.
    pub create: Duration,
    /// Idle to Configured, readiness included.
    pub configure: Duration,
    /// Configured to Idle, beyond the grace the caller grants.
    pub drain: Duration,
    /// Idle to Speculative.
    pub delete: Duration,
}

impl Timeouts {
    /// The same for every kind.
    pub fn all(timeout: Duration) -> Self {
        Self {
            create: timeout,
            configure: timeout,
            drain: timeout,
            delete: timeout,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            create: minutes(5),
            configure: minutes(5),
            drain: minutes(10),
            delete: minutes(5),
        }
    }
}

/// What a provider decides about its kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long each transition may take.
    pub timeouts: Timeouts,
    /// Whether an instance without a zone is refused.
    pub require_zone: bool,
    /// Whether Delete is supported at all. Bare metal is never deleted.
    pub deletes: bool,
    /// What operation ids start with.
    pub prefix: String,
}

impl Default for Options {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        Self {
            timeouts,
            require_zone: true,
            deletes: true,
            prefix: "op".to_owned(),
        }
    }
}

/// Names a call, so that its answer finds its way back.
pub type CallId = u64;

/// What Create learned about the host it made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Created {
    /// The host.
    pub host: Host,
    /// The base shape, where it differs from the offer.
    pub resources: Option<TextMap>,
    /// What the host really offers.
    pub allocatable: Option<TextMap>,
}

/// How backend work ended; only Create has something to tell.
pub type Outcome = Result<Option<Created>, Failure>;

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A mutation arrived.
    Mutate {
        /// To find the caller again.
        call: CallId,
        /// What it asks.
        mutation: Mutation,
    },
    /// Backend work ended.
    Settled {
        /// On which machine.
        machine: MachineId,
        /// Which operation.
        operation: Arc<str>,
        /// How.
        outcome: Outcome,
    },
    /// Backend work did not end in time.
    TimedOut {
        /// On which machine.
        machine: MachineId,
        /// Which operation.
        operation: Arc<str>,
    },
    /// The substrate was asked what there is.
    Described {
        /// What it said.
        instances: Vec<Instance>,
        /// The head revision when it was asked.
        as_of: u64,
    },
    /// The substrate says this machine is broken.
    Broke {
        /// Which machine.
        machine: MachineId,
        /// Why.
        failure: Failure,
    },
    /// The substrate says this machine no longer exists.
    Vanished {
        /// Which machine.
        machine: MachineId,
    },
}

/// Work for the backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The machine, already in its transitional state.
    pub machine: Arc<Machine>,
    /// Stable over retries, new per cycle: an idempotency token for the substrate.
    pub operation: Arc<str>,
    /// What to do.
    pub task: Task,
    /// How long it may take.
    pub timeout: Duration,
}

/// What the backend is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Make a host.
    Create,
    /// Join the machine's cluster.
    Configure {
        /// Opaque user data.
        blob: Arc<[u8]>,
    },
    /// Leave the cluster.
    Drain {
        /// How long disruption budgets are honoured.
        grace: Duration,
    },
    /// Release the host.
    Delete,
}

/// Something is to be done, once the pending changes are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answer a call.
    Answer {
        /// Whose.
        call: CallId,
        /// With what.
        answer: Result<Ack, Refusal>,
    },
    /// Start background work; its end comes back as `Settled` or `TimedOut`.
    Start(Work),
    /// A completion came after the operation had been given up.
    Discarded {
        /// Which operation.
        operation: Arc<str>,
    },
    /// An entry of the inventory was skipped.
    Skipped(SeedRefused),
    /// A machine failed.
    Failed(Arc<Machine>),
}

/// A provider's whole state and the rules that move it.
#[derive(Debug)]
pub struct Kit {
    options: Options,
    tables: Tables,
    /// Machines the last describe did not confirm; the second miss counts.
    missed: BTreeMap<MachineId, ()>,
}

impl Kit {
    /// Takes over what a store held.
    pub fn new(tables: Tables, options: Options) -> Self {
        Self {
            options,
            tables,
            missed: BTreeMap::new(),
        }
    }

    /// Everything known.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The pending changes are stored.
    pub fn commit(&mut self) {
        self.tables.commit();
    }

    /// The pending changes could not be stored.
    pub fn rollback(&mut self) {
        self.tables.rollback();
    }

    /// First boot: every entry becomes a machine, or nothing does.
    pub fn seed(&mut self, instances: &[Instance]) -> Result<(), SeedRefused> {
        for instance in instances {
            let machine = seed::check(instance, self.options.require_zone)?;
            if self.tables.machines().contains_key(&machine.id) {
                let problem = "the id occurs twice".to_owned();
                return Err(SeedRefused {
                    id: instance.id.clone(),
                    problem,
                });
            }
            self.put(machine);
        }
        Ok(())
    }

    /// Puts a machine in as it is: for a fake that begins in the middle of a story.
    pub fn adopt(&mut self, machine: Machine) {
        self.put(machine);
    }

    /// Later boots: nobody is working on the transitions the last process left behind.
    pub fn recover(&mut self) -> usize {
        let entries = self.tables.machines().values();
        let stuck = entries.filter_map(|entry| {
            let kind = Kind::under_way(entry.machine.state)?;
            Some((
                kind,
                entry.operation(kind).cloned(),
                Machine::clone(&entry.machine),
            ))
        });
        let stuck: Vec<_> = stuck.collect();
        for (kind, operation, machine) in &stuck {
            let operation = operation.as_deref().unwrap_or("unknown");
            let text = format!(
                "{kind} was interrupted by a restart of the provider (operation {operation})"
            );
            self.fail(machine.clone(), &Failure::retryable(text));
        }
        stuck.len()
    }

    /// Takes in one event.
    pub fn handle(&mut self, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Mutate { call, mutation } => {
                let answer = self.mutate(mutation, effects);
                effects.push(Effect::Answer { call, answer });
            }
            Event::Settled {
                machine,
                operation,
                outcome,
            } => {
                self.settle(&machine, &operation, outcome, effects);
            }
            Event::TimedOut { machine, operation } => self.time_out(&machine, &operation, effects),
            Event::Described { instances, as_of } => self.reconcile(&instances, as_of, effects),
            Event::Broke { machine, failure } => {
                let found = self.tables.machines().get(&machine);
                let found = found.filter(|entry| entry.machine.state != State::Failed);
                if let Some(machine) = found.map(|entry| Machine::clone(&entry.machine)) {
                    effects.push(Effect::Failed(self.fail(machine, &failure)));
                }
            }
            Event::Vanished { machine } => self.remove(machine),
        }
    }

    fn mutate(&mut self, mutation: Mutation, effects: &mut Vec<Effect>) -> Result<Ack, Refusal> {
        let Mutation {
            machine: name,
            token,
            ask,
        } = mutation;
        let kind = ask.kind();
        let id = arguments(&name, &token, &ask)?;
        if kind == Kind::Delete && !self.options.deletes {
            return Err(Refusal::Unsupported(
                "this provider does not delete".to_owned(),
            ));
        }
        self.fence(&name, &token)?;
        let entry = self.tables.machines().get(&id);
        let entry = entry.ok_or_else(|| Refusal::NotFound(name.clone()))?;
        let machine = Arc::clone(&entry.machine);
        if kind == Kind::Delete && machine.offer.capacity_type == CapacityType::BareMetal {
            return Err(Refusal::Unsupported(
                "bare metal is never deleted".to_owned(),
            ));
        }
        bound_elsewhere(&machine, &ask)?;
        let at_or_near_target = [kind.transitional(), kind.target()].contains(&machine.state);
        if let Some(operation) = entry.operation(kind).filter(|_| at_or_near_target) {
            return Ok(Ack {
                operation: Arc::clone(operation),
                machine,
                replayed: true,
            });
        }
        if machine.state != kind.source() {
            return Err(Refusal::Position {
                machine: name,
                kind,
                state: machine.state,
            });
        }
        Ok(self.accept(&machine, ask, effects))
    }

    /// The mark advances as soon as the token passes, whatever becomes of the call.
    fn fence(&mut self, machine: &str, token: &Token) -> Result<(), Refusal> {
        if token.shard.is_empty() {
            return Ok(());
        }
        let mark = Mark {
            epoch: token.epoch,
            sequence: token.sequence,
        };
        let key = (Arc::from(machine), Arc::from(token.shard.as_str()));
        if self
            .tables
            .marks()
            .get(&key)
            .is_some_and(|seen| mark <= *seen)
        {
            return Err(Refusal::Fenced {
                shard: token.shard.clone(),
                machine: machine.to_owned(),
                epoch: token.epoch,
                sequence: token.sequence,
            });
        }
        self.tables.write(Change::Mark { key, mark });
        Ok(())
    }

    fn accept(&mut self, machine: &Machine, ask: Ask, effects: &mut Vec<Effect>) -> Ack {
        let kind = ask.kind();
        let next = self.tables.next_operation() + 1;
        let (prefix, store) = (&self.options.prefix, self.tables.incarnation());
        // Unique over all stores, so it is safe as an idempotency token in a shared account.
        let operation: Arc<str> = format!("{prefix}-{store:016x}-{next}").into();
        let mut machine = machine.clone();
        machine.state = kind.transitional();
        let timeouts = self.options.timeouts;
        let (task, timeout) = match ask {
            Ask::Create { metadata } => {
                machine.metadata = metadata;
                (Task::Create, timeouts.create)
            }
            Ask::Configure {
                cluster,
                blob,
                metadata,
            } => {
                machine.cluster = cluster;
                machine.metadata = metadata;
                (Task::Configure { blob }, timeouts.configure)
            }
            Ask::Drain { grace_seconds } => {
                let grace = Duration::from_secs(grace_seconds.unsigned_abs());
                (Task::Drain { grace }, timeouts.drain.saturating_add(grace))
            }
            Ask::Delete => (Task::Delete, timeouts.delete),
        };
        let id = machine.id.clone();
        let machine = self.put(machine);
        let record = Arc::clone(&operation);
        self.tables.write(Change::Operation {
            machine: id,
            kind,
            operation: record,
            next,
        });
        effects.push(Effect::Start(Work {
            machine: Arc::clone(&machine),
            operation: Arc::clone(&operation),
            task,
            timeout,
        }));
        Ack {
            operation,
            machine,
            replayed: false,
        }
    }

    /// The machine, if this operation is the one it is in the middle of.
    fn under_way(&self, machine: &MachineId, operation: &str) -> Option<(Kind, Machine)> {
        let entry = self.tables.machines().get(machine)?;
        let kind = Kind::under_way(entry.machine.state)?;
        let current = entry
            .operation(kind)
            .is_some_and(|current| **current == *operation);
        current.then(|| (kind, Machine::clone(&entry.machine)))
    }

    fn settle(
        &mut self,
        id: &MachineId,
        operation: &Arc<str>,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        let Some((kind, mut machine)) = self.under_way(id, operation) else {
            let operation = Arc::clone(operation);
            return effects.push(Effect::Discarded { operation });
        };
        let done = outcome.and_then(|created| land(&mut machine, kind, created));
        match done {
            Ok(()) => drop(self.put(machine)),
            Err(failure) => effects.push(Effect::Failed(self.fail(machine, &failure))),
        }
    }

    fn time_out(&mut self, id: &MachineId, operation: &Arc<str>, effects: &mut Vec<Effect>) {
        if let Some((kind, machine)) = self.under_way(id, operation) {
            let failure = Failure::retryable(format!(
                "{kind} timed out: not finished within its timeout (operation {operation})"
            ));
            effects.push(Effect::Failed(self.fail(machine, &failure)));
        }
    }

    fn reconcile(&mut self, instances: &[Instance], as_of: u64, effects: &mut Vec<Effect>) {
        let mut described = BTreeMap::new();
        for instance in instances {
            match seed::check(instance, self.options.require_zone) {
                Ok(machine) if described.contains_key(&machine.id) => {
                    let problem = "the id occurs twice".to_owned();
                    let id = instance.id.clone();
                    effects.push(Effect::Skipped(SeedRefused { id, problem }));
                }
                Ok(machine) => drop(described.insert(machine.id.clone(), machine)),
                Err(refused) => effects.push(Effect::Skipped(refused)),
            }
        }
        let inventory = crate::reconcile::compare(&self.tables, &described, as_of, &self.missed);
        self.missed = inventory.missed;
        for machine in inventory.changed {
            self.put(machine);
        }
        for (machine, failure) in inventory.lost {
            effects.push(Effect::Failed(self.fail(machine, &failure)));
        }
        for machine in inventory.gone {
            self.remove(machine);
        }
    }

    fn put(&mut self, machine: Machine) -> Arc<Machine> {
        let machine = Arc::new(machine);
        let revision = self.tables.next_revision();
        self.tables.write(Change::Machine {
            machine: Arc::clone(&machine),
            revision,
        });
        machine
    }

    fn fail(&mut self, mut machine: Machine, failure: &Failure) -> Arc<Machine> {
        machine.fail(failure);
        self.put(machine)
    }

    fn remove(&mut self, id: MachineId) {
        if self.tables.machines().contains_key(&id) {
            let revision = self.tables.next_revision();
            self.tables.write(Change::Removed { id, revision });
        }
    }
}

/// Moves a machine to the target of its transition, or says why it cannot go there.
fn land(machine: &mut Machine, kind: Kind, created: Option<Created>) -> Result<(), Failure> {
    match kind {
        Kind::Create => {
            let created = created.ok_or_else(|| Failure::new("create yielded no host"))?;
            seed::usable(&created.host)
                .map_err(|why| Failure::new(format!("create yielded no usable host: {why}")))?;
            machine.host = Some(created.host);
            if created.resources.is_some() || created.allocatable.is_some() {
                let mut offer = (*machine.offer).clone();
                offer.resources = created.resources.unwrap_or(offer.resources);
                offer.allocatable = created.allocatable.unwrap_or(offer.allocatable);
                machine.offer = Arc::new(offer);
                machine.refined = true;
            }
        }
        Kind::Configure => {}
        Kind::Drain => machine.unbind(),
        Kind::Delete => {
            machine.host = None;
            machine.refined = false;
            machine.unbind();
        }
    }
    machine.state = kind.target();
    Ok(())
}

/// What no state could make valid. Runs before the fence and touches nothing.
fn arguments(machine: &str, token: &Token, ask: &Ask) -> Result<MachineId, Refusal> {
    let invalid = |text: String| Err(Refusal::Invalid(text));
    let id =
        MachineId::new(machine).map_err(|why| Refusal::Invalid(format!("machine_id: {why}")))?;
    if bigfleet_model::MAX_ID_BYTES < token.shard.len() {
        return invalid(format!(
            "shard_id: {} bytes are too many",
            token.shard.len()
        ));
    }
    match ask {
        Ask::Create { metadata } => fits(metadata)?,
        Ask::Configure {
            cluster,
            blob,
            metadata,
        } => {
            bigfleet_model::ClusterId::new(cluster)
                .map_err(|why| Refusal::Invalid(format!("cluster_id: {why}")))?;
            if MAX_BLOB_BYTES < blob.len() {
                let (is, most) = (blob.len(), MAX_BLOB_BYTES);
                return invalid(format!("bootstrap_blob: {is} bytes, more than {most}"));
            }
            fits(metadata)?;
        }
        Ask::Drain { grace_seconds } if *grace_seconds < 0 => {
            return invalid(format!("grace_period_seconds: {grace_seconds} is negative"));
        }
        Ask::Drain { .. } | Ask::Delete => {}
    }
    Ok(id)
}

fn fits(metadata: &TextMap) -> Result<(), Refusal> {
    let bytes: usize = metadata
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if MAX_METADATA_BYTES < bytes {
        let text = format!("shard_metadata: {bytes} bytes, more than {MAX_METADATA_BYTES}");
        return Err(Refusal::Invalid(text));
    }
    Ok(())
}

/// A bound machine answers for its own cluster only: an OK would claim a binding that is not there.
fn bound_elsewhere(machine: &Machine, ask: &Ask) -> Result<(), Refusal> {
    match ask {
        Ask::Configure { cluster, .. }
            if machine.state.is_bound() && machine.cluster != *cluster =>
        {
            Err(Refusal::Bound {
                machine: machine.id.to_string(),
                bound: machine.cluster.clone(),
                asked: cluster.clone(),
            })
        }
        Ask::Configure { .. } | Ask::Create { .. } | Ask::Drain { .. } | Ask::Delete => Ok(()),
    }
}

#[cfg(test)]
mod tests;
