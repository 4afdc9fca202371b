//! Reference: the state document of the reference coordinator, as a snapshot of ours (CO-47).
//!
//! ```text
//! { "shards": [{ID, Address, RegisteredAt, LastHeartbeat}], "cluster_to_shard": {…}, "domain_to_shard": [{domain: {Key, Value}, shard}] }
//! ```
//!
//! One way only. It says who shall have a domain and not who has it, so nobody has any until a restore is finished. Other tables it
//! once had are passed over.

use std::collections::BTreeMap;

use bigfleet_coordinator_core::{
    Domain, DomainRow, NameRefused, Provider, RowRefused, ShardId, ShardRow, Snapshot, Tables,
};
use bigfleet_model::{ClusterId, IdRefused, Time};
use serde::Deserialize;

/// Why a state document is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceRefused {
    /// It is not the JSON it should be.
    #[error("not a state document of a coordinator")]
    Json(#[from] serde_json::Error),
    /// It is some other document: an empty one must not pass for a fleet without shards.
    #[error("not a state document of a coordinator: it has no `shards`")]
    NoShards,
    /// A text is no name.
    #[error(transparent)]
    Name(#[from] NameRefused),
    /// A cluster's id is none.
    #[error("cluster: {0}")]
    Cluster(IdRefused),
    /// A row does not fit.
    #[error(transparent)]
    Row(#[from] RowRefused),
}

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    shards: Option<Vec<Shard>>,
    #[serde(default)]
    cluster_to_shard: Option<BTreeMap<String, String>>,
    #[serde(default)]
    domain_to_shard: Option<Vec<Assignment>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Shard {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    registered_at: String,
}

#[derive(Debug, Deserialize)]
struct Assignment {
    domain: KeyAndValue,
    shard: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyAndValue {
    key: String,
    value: String,
}

/// The document as a snapshot whose rows fit together.
pub fn read_reference(json: &[u8]) -> Result<Snapshot, ReferenceRefused> {
    let value: serde_json::Value = serde_json::from_slice(json)?;
    if value.get("shards").is_none() {
        return Err(ReferenceRefused::NoShards);
    }
    let document: Document = serde_json::from_value(value)?;
    let mut snapshot = Snapshot::default();
    for one in document.shards.into_iter().flatten() {
        let shard = ShardId::new(&one.id)?;
        let row = ShardRow {
            provider: Provider::of(&shard, ""),
            address: one.address,
            registered_at: moment(&one.registered_at),
        };
        snapshot.shards.push((shard, row));
    }
    for (cluster, shard) in document.cluster_to_shard.into_iter().flatten() {
        let cluster = ClusterId::new(&cluster).map_err(ReferenceRefused::Cluster)?;
        snapshot.clusters.push((cluster, ShardId::new(&shard)?));
    }
    for one in document.domain_to_shard.into_iter().flatten() {
        let domain = Domain::new(&one.domain.key, &one.domain.value)?;
        let row = DomainRow {
            desired: Some(ShardId::new(&one.shard)?),
            holder: None,
        };
        snapshot.domains.push((domain, row));
    }
    // Sorted, and with every row checked against the others.
    Ok(Tables::from_snapshot(snapshot)?.snapshot())
}

/// A moment it wrote; one that was never set, or is no moment of ours, is none.
fn moment(text: &str) -> Time {
    let read = text.parse::<jiff::Timestamp>().ok();
    let nanos = read.and_then(|at| i64::try_from(at.as_nanosecond()).ok());
    Time::from_nanos(nanos.unwrap_or_default().max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
        "shards": [
            {"ID": "s2", "Address": "s2:7780", "RegisteredAt": "2025-01-02T03:04:05.000000006Z", "LastHeartbeat": "0001-01-01T00:00:00Z"},
            {"ID": "s1", "Address": "", "RegisteredAt": "0001-01-01T00:00:00Z"}
        ],
        "cluster_to_shard": {"c1": "s1"},
        "domain_to_shard": [{"domain": {"Key": "zone", "Value": "a"}, "shard": "s2"}],
        "quotas": [], "providers": {}
    }"#;

    #[test]
    fn a_document_is_read_and_nobody_holds_anything() {
        let snapshot = read_reference(DOCUMENT.as_bytes()).unwrap();
        let ids: Vec<&str> = snapshot.shards.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["s1", "s2"]);
        assert_eq!(snapshot.shards[0].1.registered_at, Time::ZERO);
        let at = snapshot.shards[1].1.registered_at.nanos();
        assert_eq!(at, 1_735_787_045_000_000_006);
        assert_eq!(snapshot.clusters.len(), 1);
        let (domain, row) = &snapshot.domains[0];
        assert_eq!(domain.to_string(), "zone=a");
        assert_eq!(row.desired, ShardId::new("s2").ok());
        assert_eq!(row.holder, None);
        let empty = r#"{"shards": null, "cluster_to_shard": null, "domain_to_shard": null}"#;
        assert_eq!(
            read_reference(empty.as_bytes()).unwrap(),
            Snapshot::default()
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let wrong = [
            ("", "not a state document"),
            (
                "[]",
                "not a state document of a coordinator: it has no `shards`",
            ),
            (
                "{}",
                "not a state document of a coordinator: it has no `shards`",
            ),
            (r#"{"shards": 7}"#, "not a state document"),
            (r#"{"shards": [{"ID": "a/b"}]}"#, "shard id `a/b`"),
            (
                r#"{"shards": [{"ID": "s"}, {"ID": "s"}]}"#,
                "shard s: is there twice",
            ),
            (
                r#"{"shards": [], "cluster_to_shard": {"c": "s9"}}"#,
                "cluster c: shard s9 is not registered",
            ),
            (
                r#"{"shards": [], "cluster_to_shard": {"": "s9"}}"#,
                "cluster: an id must not be empty",
            ),
            (
                r#"{"shards": [], "domain_to_shard": [{"domain": {"Key": "zone", "Value": "a"}, "shard": "s9"}]}"#,
                "domain zone=a: shard s9 is not registered",
            ),
            (
                r#"{"shards": [], "domain_to_shard": [{"domain": {"Key": "", "Value": "a"}, "shard": "s9"}]}"#,
                "topology key `` is empty",
            ),
        ];
        for (document, words) in wrong {
            let refused = read_reference(document.as_bytes()).unwrap_err().to_string();
            assert!(refused.starts_with(words), "{refused}, not {words}");
        }
    }
}
