//! What the rails remember: pauses, breakers, and when machines were reclaimed.

use bigfleet_model::Time;
use bigfleet_shard_core::{
    BreakerKey, JoinStep, KeptBreaker, KeptPause, PauseNote, Pool, Record, Scope,
};
use prost::Message;

use super::moments::{moment, seconds};
use super::{Value, cluster_id};

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredPause {
    #[prost(double, tag = "1")]
    since: f64,
    #[prost(double, optional, tag = "2")]
    until: Option<f64>,
    #[prost(string, tag = "3")]
    requested_by: String,
    #[prost(string, tag = "4")]
    reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredBreaker {
    #[prost(uint32, tag = "1")]
    failures: u32,
    #[prost(uint32, tag = "2")]
    waits: u32,
    #[prost(double, tag = "3")]
    since: f64,
    #[prost(double, tag = "4")]
    until: f64,
    #[prost(string, tag = "5")]
    last_error: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StoredReclaims {
    #[prost(message, repeated, tag = "1")]
    left: Vec<Departure>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Departure {
    #[prost(double, tag = "1")]
    at: f64,
    #[prost(uint32, tag = "2")]
    count: u32,
}

impl Value {
    pub(in super::super) fn of_pause(kept: &KeptPause) -> Self {
        let pause = StoredPause {
            since: seconds(kept.since),
            until: kept.until.map(seconds),
            requested_by: kept.note.requested_by.clone(),
            reason: kept.note.reason.clone(),
        };
        Self {
            pause: Some(pause),
            ..Self::default()
        }
    }

    pub(in super::super) fn of_breaker(kept: &KeptBreaker) -> Self {
        let breaker = StoredBreaker {
            failures: kept.failures,
            waits: kept.waits,
            since: seconds(kept.since),
            until: seconds(kept.until),
            last_error: kept.last_error.clone(),
        };
        Self {
            breaker: Some(breaker),
            ..Self::default()
        }
    }

    pub(in super::super) fn of_reclaims(left: &[(Time, u32)]) -> Self {
        let left = left.iter().map(|(at, count)| Departure {
            at: seconds(*at),
            count: *count,
        });
        let reclaims = StoredReclaims {
            left: left.collect(),
        };
        Self {
            reclaims: Some(reclaims),
            ..Self::default()
        }
    }
}

/// What a pause covers, as a key. An id has no colon, so nothing is taken for something else.
pub(in super::super) fn scope_key(scope: &Scope) -> String {
    match scope {
        Scope::All => "all".to_owned(),
        Scope::Cluster(id) => format!("cluster:{id}"),
        Scope::Provider(name) => format!("provider:{name}"),
    }
}

/// What an admin has paused.
pub(in super::super) fn paused(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.pause;
    let stored = stored.ok_or("it is no pause's")?;
    let scope = match key.split_once(':') {
        None if key == "all" => Scope::All,
        Some(("cluster", id)) => Scope::Cluster(cluster_id(id)?),
        Some(("provider", name)) => Scope::Provider(name.to_owned()),
        None | Some(_) => return Err("it is no scope's".to_owned()),
    };
    let kept = KeptPause {
        since: moment(stored.since)?,
        until: stored.until.map(moment).transpose()?,
        note: PauseNote {
            requested_by: stored.requested_by,
            reason: stored.reason,
        },
    };
    Ok(Record::Paused {
        scope,
        kept: Some(kept),
    })
}

/// What keeps ending badly, as a key. A cluster's id has no colon; a zone and a type have their lengths.
pub(in super::super) fn breaker_key(key: &BreakerKey) -> String {
    match key {
        BreakerKey::Create(Pool {
            instance_type,
            zone,
        }) => format!("create:{}:{instance_type}{zone}", instance_type.len()),
        BreakerKey::Join(cluster, step) => format!("{}:{cluster}", step.word()),
    }
}

/// Something that keeps ending badly.
pub(in super::super) fn breaker(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.breaker;
    let stored = stored.ok_or("it is no breaker's")?;
    let kept = KeptBreaker {
        failures: stored.failures,
        waits: stored.waits,
        since: moment(stored.since)?,
        until: moment(stored.until)?,
        last_error: stored.last_error,
    };
    let no_key = || "it is no breaker's key".to_owned();
    let (kind, of) = key.split_once(':').ok_or_else(no_key)?;
    let key = if kind == "create" {
        let (length, names) = of.split_once(':').ok_or_else(no_key)?;
        let length = length.parse().map_err(|_| no_key())?;
        let (instance_type, zone) = names.split_at_checked(length).ok_or_else(no_key)?;
        BreakerKey::Create(Pool {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
        })
    } else {
        let mut steps = JoinStep::ALL.into_iter();
        let step = steps.find(|step| step.word() == kind);
        BreakerKey::Join(cluster_id(of)?, step.ok_or_else(no_key)?)
    };
    Ok(Record::Breaker {
        key,
        kept: Some(kept),
    })
}

/// When machines were reclaimed from a cluster.
pub(in super::super) fn reclaims(key: &str, bytes: &[u8]) -> Result<Record, String> {
    let stored = Value::unseal(bytes)?.reclaims;
    let stored = stored.ok_or("it is no reclaims'")?;
    let left = stored.left.iter();
    let left = left.map(|one| Ok((moment(one.at)?, one.count)));
    let left: Result<Vec<(Time, u32)>, String> = left.collect();
    Ok(Record::Reclaims {
        cluster: cluster_id(key)?,
        left: left?,
    })
}
