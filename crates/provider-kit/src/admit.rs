//! Admission: what becomes of a mutation, from its arguments to the work it starts.
//!
//! ```text
//! arguments ─▶ capability ─▶ fence ─▶ existence ─▶ binding ─▶ replay ─▶ position ─▶ accept ─▶ Start
//! ```
//!
//! The order is part of the contract. A refused argument does not touch the fence; a token that
//! passes advances its mark whatever becomes of the call.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::{CapacityType, MachineId};

use crate::call::{
    Ack, Ask, MAX_BLOB_BYTES, MAX_METADATA_BYTES, Mutation, Refusal, Token, Transition,
};
use crate::event::{Effect, Task, Work};
use crate::fencing_marks::Mark;
use crate::kit::Kit;
use crate::machine::{Machine, TextMap};
use crate::options::Fencing;
use crate::tables::Change;

impl Kit {
    pub(crate) fn mutate(
        &mut self,
        mutation: Mutation,
        effects: &mut Vec<Effect>,
    ) -> Result<Ack, Refusal> {
        let Mutation {
            machine: name,
            token,
            ask,
        } = mutation;
        let kind = ask.kind();
        let id = arguments(&name, &token, &ask)?;
        if kind == Transition::Delete && !self.options.deletes {
            return Err(Refusal::Unsupported(
                "this provider does not delete".to_owned(),
            ));
        }
        self.fence(&name, &token)?;
        let entry = self.tables.machines().get(&id);
        let entry = entry.ok_or_else(|| Refusal::NotFound(name.clone()))?;
        let machine = Arc::clone(&entry.machine);
        if kind == Transition::Delete && machine.offer.capacity_type == CapacityType::BareMetal {
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
        Ok(self.accept(&machine, &token.shard, ask, effects))
    }

    /// The mark advances as soon as the token passes, whatever becomes of the call.
    fn fence(&mut self, machine: &str, token: &Token) -> Result<(), Refusal> {
        let strict = self.options.fencing == Fencing::Strict;
        if token.shard.is_empty() {
            return if strict {
                Err(Refusal::Invalid(
                    "shard_id: this provider takes no call without a fencing token".to_owned(),
                ))
            } else {
                Ok(())
            };
        }
        let mark = Mark {
            epoch: token.epoch,
            sequence: token.sequence,
        };
        let key = (Arc::from(machine), Arc::from(token.shard.as_str()));
        let seen = self.tables.marks().get(&key);
        let stale = seen.is_some_and(|seen| mark <= *seen);
        let highest = self.tables.highest_epoch(&token.shard);
        let outlived = strict && highest.is_some_and(|highest| token.epoch < highest);
        if stale || outlived {
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

    fn accept(
        &mut self,
        machine: &Machine,
        shard: &str,
        ask: Ask,
        effects: &mut Vec<Effect>,
    ) -> Ack {
        let kind = ask.kind();
        let next = self.tables.next_operation() + 1;
        let (prefix, store) = (&self.options.prefix, self.tables.incarnation());
        // Unique over all stores, so it is safe as an idempotency token in a shared account.
        let operation: Arc<str> = format!("{prefix}-{store:016x}-{next}").into();
        let mut machine = machine.clone();
        machine.state = kind.transitional();
        let timeouts = self.options.timeouts;
        let mut grace_seconds = 0;
        let (task, timeout) = match ask {
            Ask::Create { metadata } => {
                machine.metadata = metadata;
                machine.owner = shard.into();
                (Task::Create, timeouts.create)
            }
            Ask::Configure {
                cluster,
                blob,
                metadata,
            } => {
                machine.cluster = cluster;
                machine.metadata = metadata;
                machine.owner = shard.into();
                (Task::Configure { blob }, timeouts.configure)
            }
            Ask::Drain {
                grace_seconds: granted,
            } => {
                grace_seconds = granted.unsigned_abs();
                let grace = Duration::from_secs(grace_seconds);
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
            grace_seconds,
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
