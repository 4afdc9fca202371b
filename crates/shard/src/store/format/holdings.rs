//! Domains, exceptions and transfers as bytes, and back.

use bigfleet_model::MachineId;
use bigfleet_shard_core::{
    Domain, Exception, ExceptionKind, HeldDomain, Record, Stamp, TransferRecord, TransferRole,
    TransferState,
};
use prost::Message;

use super::{Value, entry, machine_id, moment, number, seconds};

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct StoredHeld {
    #[prost(bool, tag = "1")]
    leaving: bool,
    #[prost(bool, tag = "2")]
    shared: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StoredDomain {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredException {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    transfer: String,
    #[prost(string, tag = "3")]
    peer: String,
    #[prost(message, optional, tag = "4")]
    domain: Option<StoredDomain>,
    #[prost(uint64, tag = "5")]
    term: u64,
    #[prost(uint64, tag = "6")]
    sequence: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredTransfer {
    #[prost(uint32, tag = "1")]
    role: u32,
    #[prost(uint32, tag = "2")]
    state: u32,
    #[prost(string, repeated, tag = "3")]
    machines: Vec<String>,
    #[prost(string, tag = "4")]
    peer: String,
    #[prost(message, optional, tag = "5")]
    domain: Option<StoredDomain>,
    #[prost(uint64, tag = "6")]
    term: u64,
    #[prost(uint64, tag = "7")]
    sequence: u64,
    #[prost(double, optional, tag = "8")]
    expires: Option<f64>,
}

/// Numbers of this format; never changed, never used again.
const KINDS: [(ExceptionKind, u32); 2] = [(ExceptionKind::Away, 1), (ExceptionKind::Guest, 2)];
const ROLES: [(TransferRole, u32); 2] = [(TransferRole::Donor, 1), (TransferRole::Recipient, 2)];
const STATES: [(TransferState, u32); 4] = [
    (TransferState::Reserved, 1),
    (TransferState::Released, 2),
    (TransferState::Claimed, 3),
    (TransferState::Refused, 4),
];

impl StoredDomain {
    fn of(domain: &Domain) -> Self {
        Self {
            key: domain.key.clone(),
            value: domain.value.clone(),
        }
    }

    fn read(self) -> Domain {
        Domain {
            key: self.key,
            value: self.value,
        }
    }
}

impl Value {
    pub(in super::super) fn of_held_domain(held: HeldDomain) -> Self {
        let held = StoredHeld {
            leaving: held.leaving,
            shared: held.shared,
        };
        Self {
            held: Some(held),
            ..Self::default()
        }
    }

    pub(in super::super) fn of_exception(one: &Exception) -> Self {
        let exception = StoredException {
            kind: number(&KINDS, &one.kind),
            transfer: one.transfer.clone(),
            peer: one.peer.clone(),
            domain: one.domain.as_ref().map(StoredDomain::of),
            term: one.stamp.term,
            sequence: one.stamp.sequence,
        };
        Self {
            exception: Some(exception),
            ..Self::default()
        }
    }

    pub(in super::super) fn of_transfer(one: &TransferRecord) -> Self {
        let transfer = StoredTransfer {
            role: number(&ROLES, &one.role),
            state: number(&STATES, &one.state),
            machines: one.machines.iter().map(ToString::to_string).collect(),
            peer: one.peer.clone(),
            domain: one.domain.as_ref().map(StoredDomain::of),
            term: one.stamp.term,
            sequence: one.stamp.sequence,
            expires: one.expires.map(seconds),
        };
        Self {
            transfer: Some(transfer),
            ..Self::default()
        }
    }
}

/// A domain that is held.
pub(in super::super) fn held_domain(key: (&str, &str), bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.held.ok_or("it is no domain's")?;
    let (key, value) = (key.0.to_owned(), key.1.to_owned());
    Ok(Record::Domain {
        domain: Domain { key, value },
        held: Some(HeldDomain {
            leaving: stored.leaving,
            shared: stored.shared,
        }),
    })
}

/// A machine that does not follow its domain.
pub(in super::super) fn exception(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.exception;
    let stored = stored.ok_or("it is no exception")?;
    let exception = Exception {
        kind: entry(&KINDS, stored.kind)?,
        transfer: stored.transfer,
        peer: stored.peer,
        domain: stored.domain.map(StoredDomain::read),
        stamp: Stamp {
            term: stored.term,
            sequence: stored.sequence,
        },
    };
    Ok(Record::Exception {
        machine: machine_id(key)?,
        exception: Some(Box::new(exception)),
    })
}

/// A transfer that is open.
pub(in super::super) fn transfer(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.transfer;
    let stored = stored.ok_or("it is no transfer")?;
    let machines = stored.machines.iter().map(|id| machine_id(id));
    let transfer = TransferRecord {
        role: entry(&ROLES, stored.role)?,
        state: entry(&STATES, stored.state)?,
        machines: machines.collect::<Result<Vec<MachineId>, _>>()?,
        peer: stored.peer,
        domain: stored.domain.map(StoredDomain::read),
        stamp: Stamp {
            term: stored.term,
            sequence: stored.sequence,
        },
        expires: stored.expires.map(moment).transpose()?,
    };
    Ok(Record::Transfer {
        id: key.to_owned(),
        transfer: Some(Box::new(transfer)),
    })
}
