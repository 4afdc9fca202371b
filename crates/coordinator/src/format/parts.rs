//! Parts: what entries and snapshots have in common.

use std::collections::BTreeMap;

use bigfleet_coordinator_core::{
    Domain, Exception, ExceptionKind, Facts, Holdings, Identity, Provider, RecordState, ShardId,
    Stamp, TransferId, TransferRecord,
};
use bigfleet_model::{MachineId, Time};
use prost::Message;

use super::FormatRefused;

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredDomain {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl From<&Domain> for StoredDomain {
    fn from(domain: &Domain) -> Self {
        Self {
            key: domain.key().to_owned(),
            value: domain.value().to_owned(),
        }
    }
}

impl StoredDomain {
    pub(super) fn read(&self) -> Result<Domain, FormatRefused> {
        Ok(Domain::new(&self.key, &self.value)?)
    }
}

/// A part that must be there.
pub(crate) fn needed<'a, T>(
    part: &'a Option<T>,
    what: &'static str,
) -> Result<&'a T, FormatRefused> {
    part.as_ref().ok_or(FormatRefused::Missing(what))
}

pub(super) fn domain(part: &Option<StoredDomain>) -> Result<Domain, FormatRefused> {
    needed(part, "a domain")?.read()
}

pub(super) fn optional_domain(
    part: &Option<StoredDomain>,
) -> Result<Option<Domain>, FormatRefused> {
    part.as_ref().map(StoredDomain::read).transpose()
}

pub(super) fn optional_shard(part: &Option<String>) -> Result<Option<ShardId>, FormatRefused> {
    let shard = part.as_deref().map(ShardId::new).transpose();
    Ok(shard?)
}

pub(super) fn machines(texts: &[String]) -> Result<Vec<MachineId>, FormatRefused> {
    let machines: Result<_, _> = texts.iter().map(|text| MachineId::new(text)).collect();
    Ok(machines?)
}

pub(super) fn texts<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct StoredIdentity {
    #[prost(uint64, tag = "1")]
    epoch: u64,
    #[prost(uint64, optional, tag = "2")]
    directory: Option<u64>,
    #[prost(uint64, tag = "3")]
    process: u64,
}

impl From<Identity> for StoredIdentity {
    fn from(identity: Identity) -> Self {
        Self {
            epoch: identity.epoch,
            directory: identity.directory,
            process: identity.process,
        }
    }
}

impl StoredIdentity {
    pub(super) fn read(&self) -> Identity {
        Identity {
            epoch: self.epoch,
            directory: self.directory,
            process: self.process,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredProvider {
    #[prost(oneof = "ProviderPlace", tags = "1, 2")]
    place: Option<ProviderPlace>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum ProviderPlace {
    #[prost(string, tag = "1")]
    At(String),
    #[prost(string, tag = "2")]
    Within(String),
}

impl From<&Provider> for StoredProvider {
    fn from(provider: &Provider) -> Self {
        let place = match provider {
            Provider::At(address) => ProviderPlace::At(address.to_string()),
            Provider::Within(shard) => ProviderPlace::Within(shard.to_string()),
        };
        Self { place: Some(place) }
    }
}

pub(super) fn provider(part: &Option<StoredProvider>) -> Result<Provider, FormatRefused> {
    let stored = needed(part, "a provider")?;
    Ok(match needed(&stored.place, "a provider's place")? {
        ProviderPlace::At(address) => Provider::At(address.as_str().into()),
        ProviderPlace::Within(shard) => Provider::Within(ShardId::new(shard)?),
    })
}

#[derive(Clone, Copy, PartialEq, Message)]
struct StoredStamp {
    #[prost(uint64, tag = "1")]
    reign: u64,
    #[prost(uint64, tag = "2")]
    sequence: u64,
}

fn stamp(part: Option<StoredStamp>) -> Stamp {
    let StoredStamp { reign, sequence } = part.unwrap_or_default();
    Stamp { reign, sequence }
}

fn stored_stamp(stamp: Stamp) -> Option<StoredStamp> {
    let Stamp { reign, sequence } = stamp;
    Some(StoredStamp { reign, sequence })
}

#[derive(Clone, PartialEq, Message)]
struct StoredException {
    #[prost(string, tag = "1")]
    machine: String,
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(string, optional, tag = "3")]
    transfer: Option<String>,
    #[prost(string, optional, tag = "4")]
    peer: Option<String>,
    #[prost(message, optional, tag = "5")]
    domain: Option<StoredDomain>,
    #[prost(message, optional, tag = "6")]
    stamp: Option<StoredStamp>,
}

impl StoredException {
    fn new(machine: &MachineId, exception: &Exception) -> Self {
        Self {
            machine: machine.to_string(),
            kind: match exception.kind {
                ExceptionKind::Away => 1,
                ExceptionKind::Guest => 2,
            },
            transfer: exception.transfer.as_ref().map(ToString::to_string),
            peer: exception.peer.as_ref().map(ToString::to_string),
            domain: exception.domain.as_ref().map(StoredDomain::from),
            stamp: stored_stamp(exception.stamp),
        }
    }

    fn read(&self) -> Result<(MachineId, Exception), FormatRefused> {
        let kind = match self.kind {
            1 => ExceptionKind::Away,
            2 => ExceptionKind::Guest,
            value => {
                let what = "an exception's kind";
                return Err(FormatRefused::Number { what, value });
            }
        };
        let exception = Exception {
            kind,
            transfer: self.transfer.as_deref().map(TransferId::new).transpose()?,
            peer: optional_shard(&self.peer)?,
            domain: optional_domain(&self.domain)?,
            stamp: stamp(self.stamp),
        };
        Ok((MachineId::new(&self.machine)?, exception))
    }
}

#[derive(Clone, PartialEq, Message)]
struct StoredHoldings {
    #[prost(bool, tag = "1")]
    everything: bool,
    #[prost(message, repeated, tag = "2")]
    domains: Vec<StoredDomain>,
    #[prost(message, repeated, tag = "3")]
    exceptions: Vec<StoredException>,
}

impl StoredHoldings {
    fn new(held: &Holdings) -> Self {
        let exceptions = held.exceptions.iter();
        let exceptions = exceptions.map(|(id, one)| StoredException::new(id, one));
        Self {
            everything: held.everything,
            domains: held.domains.iter().map(StoredDomain::from).collect(),
            exceptions: exceptions.collect(),
        }
    }

    fn read(&self) -> Result<Holdings, FormatRefused> {
        let domains = self.domains.iter().map(StoredDomain::read);
        let exceptions = self.exceptions.iter().map(StoredException::read);
        Ok(Holdings {
            everything: self.everything,
            domains: domains.collect::<Result<_, _>>()?,
            exceptions: exceptions.collect::<Result<_, _>>()?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
struct StoredRecord {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(uint32, tag = "2")]
    state: u32,
    #[prost(string, repeated, tag = "3")]
    machines: Vec<String>,
    #[prost(string, optional, tag = "4")]
    peer: Option<String>,
    #[prost(message, optional, tag = "5")]
    domain: Option<StoredDomain>,
    #[prost(message, optional, tag = "6")]
    stamp: Option<StoredStamp>,
    #[prost(sint64, optional, tag = "7")]
    expires: Option<i64>,
}

impl StoredRecord {
    fn new(id: &TransferId, record: &TransferRecord) -> Self {
        Self {
            id: id.to_string(),
            state: match record.state {
                RecordState::Reserved => 2,
                RecordState::Released => 3,
                RecordState::Claimed => 4,
                RecordState::Refused => 5,
            },
            machines: texts(&record.machines),
            peer: record.peer.as_ref().map(ToString::to_string),
            domain: record.domain.as_ref().map(StoredDomain::from),
            stamp: stored_stamp(record.stamp),
            expires: record.expires.map(Time::nanos),
        }
    }

    fn read(&self) -> Result<(TransferId, TransferRecord), FormatRefused> {
        let state = match self.state {
            2 => RecordState::Reserved,
            3 => RecordState::Released,
            4 => RecordState::Claimed,
            5 => RecordState::Refused,
            value => {
                let what = "a record's state";
                return Err(FormatRefused::Number { what, value });
            }
        };
        let record = TransferRecord {
            state,
            machines: machines(&self.machines)?,
            peer: optional_shard(&self.peer)?,
            domain: optional_domain(&self.domain)?,
            stamp: stamp(self.stamp),
            expires: self.expires.map(Time::from_nanos),
        };
        Ok((TransferId::new(&self.id)?, record))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredFacts {
    #[prost(message, optional, tag = "1")]
    holdings: Option<StoredHoldings>,
    #[prost(message, repeated, tag = "2")]
    records: Vec<StoredRecord>,
}

impl From<&Facts> for StoredFacts {
    fn from(facts: &Facts) -> Self {
        let records = facts.records.iter();
        let records = records.map(|(id, record)| StoredRecord::new(id, record));
        Self {
            holdings: facts.holdings.as_ref().map(StoredHoldings::new),
            records: records.collect(),
        }
    }
}

pub(super) fn facts(part: &Option<StoredFacts>) -> Result<Facts, FormatRefused> {
    let stored = needed(part, "what a shard said")?;
    let holdings = stored.holdings.as_ref().map(StoredHoldings::read);
    let records = stored.records.iter().map(StoredRecord::read);
    Ok(Facts {
        holdings: holdings.transpose()?,
        records: records.collect::<Result<BTreeMap<_, _>, _>>()?,
    })
}
