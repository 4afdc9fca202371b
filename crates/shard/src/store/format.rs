//! Format: records as bytes, and back.
//!
//! A value is a checksum and a message. Fields are numbered, so a later version may add some; what an
//! earlier one does not know it passes over. Anything else that does not read is damage, and is said.

mod demand;
mod drains;
mod holdings;
mod moments;
mod names;
mod rails;

pub(super) use demand::cluster;
pub(super) use drains::drained;
pub(super) use holdings::{exception, held_domain, transfer};
pub(super) use moments::{moment, seconds};
pub(super) use names::Names;
pub(super) use rails::{breaker, breaker_key, paused, reclaims, scope_key};

use bigfleet_model::{
    ActionKind, Assignment, ClusterId, Dollars, Fingerprint, Group, Intent, MachineId, NeedKey,
    Price, Reason, Terms,
};
use bigfleet_shard_core::{Kept, KeptOperation, OperationId, Record};
use prost::Message;

use demand::StoredCluster;
use rails::{StoredBreaker, StoredPause, StoredReclaims};

const CHECKSUM: usize = 4;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(message, optional, boxed, tag = "1")]
    machine: Option<Box<StoredMachine>>,
    #[prost(message, optional, tag = "2")]
    cluster: Option<StoredCluster>,
    #[prost(message, optional, tag = "3")]
    pause: Option<StoredPause>,
    #[prost(message, optional, tag = "4")]
    breaker: Option<StoredBreaker>,
    #[prost(message, optional, tag = "5")]
    reclaims: Option<StoredReclaims>,
    #[prost(message, optional, tag = "6")]
    drain: Option<drains::StoredDrain>,
    #[prost(message, optional, tag = "7")]
    held: Option<holdings::StoredHeld>,
    #[prost(message, optional, tag = "8")]
    exception: Option<holdings::StoredException>,
    #[prost(message, optional, tag = "9")]
    transfer: Option<holdings::StoredTransfer>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredMachine {
    #[prost(string, optional, tag = "1")]
    cluster: Option<String>,
    #[prost(message, optional, tag = "2")]
    assignment: Option<Commitment>,
    #[prost(message, optional, tag = "3")]
    intent: Option<Commitment>,
    #[prost(bool, tag = "4")]
    not_ready: bool,
    #[prost(message, optional, tag = "5")]
    operation: Option<StoredOperation>,
    #[prost(bool, tag = "6")]
    undeletable: bool,
    #[prost(message, optional, tag = "7")]
    given_up: Option<GivenUp>,
    /// Absent: not known, as in every file before there was this field.
    #[prost(message, optional, tag = "8")]
    bound_by: Option<StoredId>,
    /// Absent: it is not, as in every file before there was this field.
    #[prost(message, optional, tag = "9")]
    spent: Option<StoredSpent>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredSpent {
    #[prost(string, tag = "1")]
    cluster: String,
    #[prost(double, tag = "2")]
    at: f64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct StoredId {
    #[prost(uint64, tag = "1")]
    epoch: u64,
    #[prost(uint64, tag = "2")]
    number: u64,
}

#[derive(Clone, PartialEq, Message)]
struct GivenUp {
    #[prost(uint32, tag = "1")]
    times: u32,
    #[prost(double, tag = "2")]
    until: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Commitment {
    #[prost(string, tag = "1")]
    cluster: String,
    #[prost(string, tag = "2")]
    fingerprint: String,
    #[prost(string, tag = "3")]
    group: String,
    #[prost(sint32, tag = "4")]
    priority: i32,
    #[prost(double, tag = "5")]
    interruption: f64,
    #[prost(double, tag = "6")]
    reclamation: f64,
    #[prost(double, optional, tag = "7")]
    keep_price: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredOperation {
    #[prost(uint64, tag = "1")]
    epoch: u64,
    #[prost(uint64, tag = "2")]
    number: u64,
    #[prost(uint32, tag = "3")]
    action: u32,
    #[prost(uint32, tag = "4")]
    reason: u32,
    #[prost(string, optional, tag = "5")]
    cluster: Option<String>,
    #[prost(message, optional, tag = "6")]
    need: Option<Commitment>,
    #[prost(uint64, tag = "7")]
    decided_cycle: u64,
    #[prost(uint32, tag = "8")]
    grace_seconds: u32,
    #[prost(sint32, tag = "9")]
    preemptor_priority: i32,
    #[prost(double, tag = "10")]
    deadline: f64,
    /// Absent: it is not held back, as in every file before there was this field.
    #[prost(double, optional, tag = "11")]
    held_since: Option<f64>,
    /// Absent: it was ready, as in every file before there was this field.
    #[prost(bool, tag = "12")]
    not_ready: bool,
}

/// Numbers of this format; never changed, never used again.
const ACTIONS: [(ActionKind, u32); 6] = [
    (ActionKind::Bootstrap, 1),
    (ActionKind::Provision, 2),
    (ActionKind::Preempt, 3),
    (ActionKind::Reclaim, 4),
    (ActionKind::Delete, 5),
    (ActionKind::Restore, 6),
];
const REASONS: [(Reason, u32); 8] = [
    (Reason::Idle, 1),
    (Reason::Speculative, 2),
    (Reason::Promised, 3),
    (Reason::Inversion, 4),
    (Reason::Excess, 5),
    (Reason::Release, 6),
    (Reason::Restored, 7),
    (Reason::Leaving, 8),
];

fn number<T: PartialEq>(table: &[(T, u32)], of: &T) -> u32 {
    let found = table.iter().find(|(entry, _)| entry == of);
    found.map_or(0, |(_, number)| *number)
}

fn entry<T: Copy>(table: &[(T, u32)], number: u32) -> Result<T, String> {
    let found = table.iter().find(|(_, known)| *known == number);
    let found = found.map(|(entry, _)| *entry);
    found.ok_or_else(|| format!("{number} is not the number of anything"))
}

impl Value {
    pub(super) fn of_machine(kept: &Kept) -> Self {
        let machine = StoredMachine {
            cluster: kept.cluster.as_ref().map(ToString::to_string),
            assignment: (kept.assignment != Assignment::default())
                .then(|| Commitment::of_assignment(&kept.assignment)),
            intent: kept.intent.as_ref().map(Commitment::of_intent),
            not_ready: kept.not_ready,
            operation: kept.operation.as_deref().map(StoredOperation::of),
            undeletable: kept.undeletable,
            given_up: kept.given_up.map(|(times, until)| GivenUp {
                times,
                until: seconds(until),
            }),
            bound_by: kept.bound_by.map(|id| StoredId {
                epoch: id.epoch,
                number: id.number,
            }),
            spent: kept.spent.as_ref().map(|(cluster, at)| StoredSpent {
                cluster: cluster.to_string(),
                at: seconds(*at),
            }),
        };
        Self {
            machine: Some(Box::new(machine)),
            ..Self::default()
        }
    }

    /// The bytes, with a checksum in front.
    pub(super) fn seal(&self) -> Vec<u8> {
        let message = self.encode_to_vec();
        let mut bytes = crc32fast::hash(&message).to_le_bytes().to_vec();
        bytes.extend(message);
        bytes
    }

    fn unseal(bytes: &[u8]) -> Result<Self, String> {
        let (checksum, message) = bytes
            .split_at_checked(CHECKSUM)
            .ok_or("it is too short to be one")?;
        if crc32fast::hash(message).to_le_bytes() != checksum {
            return Err("its checksum does not fit".to_owned());
        }
        Self::decode(message).map_err(|why| why.to_string())
    }
}

impl Commitment {
    fn of_assignment(assignment: &Assignment) -> Self {
        Self {
            cluster: String::new(),
            fingerprint: assignment.fingerprint.to_string(),
            group: assignment.group.to_string(),
            ..Self::of_terms(assignment.terms, assignment.keep_price)
        }
    }

    fn of_intent(intent: &Intent) -> Self {
        Self::of_need(&intent.need, intent.terms, intent.keep_price)
    }

    fn of_need(need: &NeedKey, terms: Terms, keep_price: Option<Price>) -> Self {
        Self {
            cluster: need.cluster.to_string(),
            fingerprint: need.fingerprint.to_string(),
            group: need.group.to_string(),
            ..Self::of_terms(terms, keep_price)
        }
    }

    fn of_terms(terms: Terms, keep_price: Option<Price>) -> Self {
        Self {
            priority: terms.priority,
            interruption: terms.interruption.dollars(),
            reclamation: terms.reclamation.dollars(),
            keep_price: keep_price.map(Price::dollars_per_hour),
            ..Self::default()
        }
    }

    fn terms(&self) -> Result<Terms, String> {
        let dollars = |amount: f64| Dollars::new(amount).ok_or(format!("{amount} is no penalty"));
        Ok(Terms {
            priority: self.priority,
            interruption: dollars(self.interruption)?,
            reclamation: dollars(self.reclamation)?,
        })
    }

    fn price_kept(&self) -> Result<Option<Price>, String> {
        let price = |amount: f64| Price::new(amount).ok_or(format!("{amount} is no price"));
        self.keep_price.map(price).transpose()
    }

    fn need(&self, names: &mut Names) -> Result<NeedKey, String> {
        Ok(NeedKey {
            cluster: names.cluster(&self.cluster)?,
            fingerprint: names.fingerprint(&self.fingerprint),
            group: names.group(&self.group),
        })
    }

    fn assignment(&self, names: &mut Names) -> Result<Assignment, String> {
        Ok(Assignment {
            terms: self.terms()?,
            fingerprint: names.fingerprint(&self.fingerprint),
            group: names.group(&self.group),
            keep_price: self.price_kept()?,
        })
    }

    fn intent(&self, names: &mut Names) -> Result<Intent, String> {
        Ok(Intent {
            need: self.need(names)?,
            terms: self.terms()?,
            keep_price: self.price_kept()?,
        })
    }
}

impl StoredOperation {
    fn of(operation: &KeptOperation) -> Self {
        let need = operation.need.as_ref();
        Self {
            epoch: operation.id.epoch,
            number: operation.id.number,
            action: number(&ACTIONS, &operation.action),
            reason: number(&REASONS, &operation.reason),
            cluster: operation.cluster.as_ref().map(ToString::to_string),
            need: need.map(|need| Commitment::of_need(need, Terms::default(), None)),
            decided_cycle: operation.decided_cycle,
            grace_seconds: operation.grace_seconds,
            preemptor_priority: operation.preemptor_priority,
            deadline: seconds(operation.deadline),
            held_since: operation.held_since.map(seconds),
            not_ready: operation.not_ready,
        }
    }

    fn read(&self, names: &mut Names) -> Result<KeptOperation, String> {
        Ok(KeptOperation {
            id: OperationId {
                epoch: self.epoch,
                number: self.number,
            },
            action: entry(&ACTIONS, self.action)?,
            reason: entry(&REASONS, self.reason)?,
            cluster: names.of_option(&self.cluster)?,
            need: match &self.need {
                Some(need) => Some(need.need(names)?),
                None => None,
            },
            decided_cycle: self.decided_cycle,
            grace_seconds: self.grace_seconds,
            preemptor_priority: self.preemptor_priority,
            deadline: moment(self.deadline)?,
            held_since: self.held_since.map(moment).transpose()?,
            not_ready: self.not_ready,
        })
    }
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    ClusterId::new(text).map_err(|why| why.to_string())
}

fn machine_id(text: &str) -> Result<MachineId, String> {
    MachineId::new(text).map_err(|why| why.to_string())
}

/// What is remembered of a machine.
pub(super) fn machine(key: &str, bytes: &[u8], names: &mut Names) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.machine;
    let stored = stored.ok_or("it is no machine's")?;
    let assignment = stored.assignment.as_ref();
    let assignment = assignment.map(|assignment| assignment.assignment(names));
    let intent = stored.intent.as_ref();
    let intent = intent.map(|intent| intent.intent(names));
    Ok(Record::Machine {
        machine: machine_id(key)?,
        kept: Some(Box::new(Kept {
            cluster: names.of_option(&stored.cluster)?,
            bound_by: stored.bound_by.map(|id| OperationId {
                epoch: id.epoch,
                number: id.number,
            }),
            assignment: assignment.transpose()?.unwrap_or_default(),
            intent: intent.transpose()?,
            not_ready: stored.not_ready,
            undeletable: stored.undeletable,
            given_up: match &stored.given_up {
                Some(given_up) => Some((given_up.times, moment(given_up.until)?)),
                None => None,
            },
            spent: match &stored.spent {
                Some(spent) => Some((names.cluster(&spent.cluster)?, moment(spent.at)?)),
                None => None,
            },
            operation: stored
                .operation
                .as_ref()
                .map(|operation| operation.read(names).map(Box::new))
                .transpose()?,
        })),
    })
}

/// A machine of the owned set.
pub(super) fn owned(key: &str) -> Result<Record, String> {
    let machine = machine_id(key)?;
    let owned = true;
    Ok(Record::Owned { machine, owned })
}

/// A machine an admin has retired.
pub(super) fn retired(key: &str) -> Result<Record, String> {
    let machine = machine_id(key)?;
    Ok(Record::Retired {
        machine,
        retired: true,
    })
}

/// A cluster an admin has released.
pub(super) fn released(key: &str) -> Result<Record, String> {
    let cluster = cluster_id(key)?;
    let released = true;
    Ok(Record::Released { cluster, released })
}

/// When a row arrived.
pub(super) fn arrival(key: (&str, &str, &str), at: f64) -> Result<Record, String> {
    let need = NeedKey {
        cluster: cluster_id(key.0)?,
        fingerprint: Fingerprint::new(key.1),
        group: Group::new(key.2),
    };
    let at = Some(moment(at)?);
    Ok(Record::Arrival { need, at })
}
