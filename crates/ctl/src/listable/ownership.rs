//! What the coordinator has on record, in lists.

use crate::output::Listable;
use crate::record::{
    ClusterOwnerRecord, DomainRecord, InstructionRecord, ReplicaRecord, ReportRecord, ShardRecord,
};
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::ago;

/// What only a report says, and there was none yet.
const UNKNOWN: &str = "unknown";

fn known(number: Option<u32>) -> Field {
    number.map_or_else(|| UNKNOWN.into(), Field::number)
}

fn or_none(text: Option<&String>) -> Field {
    text.cloned().unwrap_or_default().into()
}

impl Listable for ShardRecord {
    const ONE: &'static str = "shard";
    const MANY: &'static str = "shards";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "SHARD",
            "ADDRESS",
            "MACHINES",
            "FREE",
            "DOMAINS",
            "CLUSTERS",
            "LAST-REPORT",
        ],
        &["PROVIDER", "HOLDS", "REGISTERED"],
    );
    const KEYS: &'static [&'static str] = &[
        "shard", "address", "provider", "machines", "free", "domains", "holds", "clusters",
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "shard" | "id" | "name" => Fact::text(&self.id),
            "address" => Fact::text(self.address.as_deref().unwrap_or_default()),
            "provider" => Fact::text(self.provider.as_deref().unwrap_or_default()),
            "machines" => self.machines.and_then(Fact::word),
            "free" => self.free.and_then(Fact::word),
            "domains" => Fact::word(self.domains),
            "holds" => Fact::word(self.holds),
            "clusters" => Fact::word(self.clusters),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let last = match self.last_report {
            None => Field::tinted("none yet", Tint::Notable),
            last => format!("{} ago", ago(now, last)).into(),
        };
        vec![
            self.id.clone().into(),
            or_none(self.address.as_ref()),
            known(self.machines),
            known(self.free),
            Field::number(self.domains),
            Field::number(self.clusters),
            last,
        ]
    }

    fn more(&self, now: i64) -> Vec<Field> {
        vec![
            or_none(self.provider.as_ref()),
            Field::number(self.holds),
            ago(now, self.registered).into(),
        ]
    }
}

impl Listable for DomainRecord {
    const ONE: &'static str = "domain";
    const MANY: &'static str = "domains";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["DOMAIN", "SHARD", "HELD-BY", "STATE"], &[]);
    const KEYS: &'static [&'static str] = &["domain", "key", "value", "shard", "held-by", "state"];

    fn name(&self) -> String {
        self.domain.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.domain == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "domain" | "name" => Fact::text(&self.domain),
            "key" => Fact::text(&self.key),
            "value" => Fact::text(&self.value),
            "shard" => Fact::text(self.shard.as_deref().unwrap_or_default()),
            "held-by" => Fact::text(self.held_by.as_deref().unwrap_or_default()),
            "state" => Fact::word(self.state),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        let tint = match self.state {
            "held" => Tint::Good,
            _ => Tint::Notable,
        };
        vec![
            self.domain.clone().into(),
            or_none(self.shard.as_ref()),
            or_none(self.held_by.as_ref()),
            Field::tinted(self.state, tint),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        Vec::new()
    }
}

impl Listable for ClusterOwnerRecord {
    const ONE: &'static str = "cluster";
    const MANY: &'static str = "clusters";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["CLUSTER", "SHARD", "ALSO-AT"], &[]);
    const KEYS: &'static [&'static str] = &["cluster", "shard", "also-at"];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "cluster" | "id" | "name" => Fact::text(&self.id),
            "shard" => Fact::text(&self.shard),
            "also-at" => Fact::text(&self.also_at.join(",")),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        vec![
            self.id.clone().into(),
            self.shard.clone().into(),
            Field::tinted(self.also_at.join(","), Tint::Bad),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        Vec::new()
    }
}

impl Listable for ReplicaRecord {
    const ONE: &'static str = "replica";
    const MANY: &'static str = "replicas";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["REPLICA", "ROLE", "VOTES", "REIGN", "ADDRESS"],
        &["RAFT-ADDRESS"],
    );
    const KEYS: &'static [&'static str] = &["replica", "role", "votes", "reign", "address"];

    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "replica" | "name" => Fact::text(&self.name),
            "role" => Fact::word(role(self)),
            "votes" | "voter" => Fact::word(votes(self)),
            "reign" => self.reign.and_then(Fact::word),
            "address" => Fact::text(&self.address),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        let reign = self.reign.map(Field::number);
        vec![
            self.name.clone().into(),
            role(self).into(),
            votes(self).into(),
            reign.unwrap_or_default(),
            self.address.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![self.raft_address.clone().into()]
    }
}

fn role(replica: &ReplicaRecord) -> &'static str {
    if replica.leader { "leader" } else { "follower" }
}

fn votes(replica: &ReplicaRecord) -> &'static str {
    if replica.voter { "yes" } else { "not yet" }
}

impl Listable for InstructionRecord {
    const ONE: &'static str = "instruction";
    const MANY: &'static str = "instructions";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["INSTRUCTION", "SHARD", "KIND", "ABOUT"],
        &["REIGN", "NUMBER"],
    );
    const KEYS: &'static [&'static str] = &["instruction", "shard", "kind", "about", "number"];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "instruction" | "id" | "name" => Fact::text(&self.id),
            "shard" => Fact::text(&self.shard),
            "kind" => Fact::word(self.kind),
            "about" => Fact::text(&self.about),
            "number" => Fact::word(self.number),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        vec![
            self.id.clone().into(),
            self.shard.clone().into(),
            self.kind.into(),
            self.about.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![Field::number(self.reign), Field::number(self.number)]
    }
}

impl Listable for ReportRecord {
    const ONE: &'static str = "report";
    const MANY: &'static str = "reports";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["SHARD", "RECEIVED", "MACHINES", "FREE", "SHORTFALLS"],
        &["PROVIDER", "POOLS", "NUMBER"],
    );
    const KEYS: &'static [&'static str] = &[
        "shard",
        "provider",
        "machines",
        "free",
        "shortfalls",
        "number",
    ];

    fn name(&self) -> String {
        self.shard.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.shard == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "shard" | "name" => Fact::text(&self.shard),
            "provider" => Fact::text(self.provider.as_deref().unwrap_or_default()),
            "machines" => Fact::word(self.machines),
            "free" => Fact::word(self.free),
            "shortfalls" => Fact::word(self.shortfalls.len()),
            "number" => Fact::word(self.number),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        vec![
            self.shard.clone().into(),
            format!("{} ago", ago(now, self.received)).into(),
            Field::number(self.machines),
            Field::number(self.free),
            Field::number(self.shortfalls.len()),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![
            or_none(self.provider.as_ref()),
            Field::number(self.pools.len()),
            Field::number(self.number),
        ]
    }
}
