//! The formats on disk: everything survives them, and nothing damaged gets through.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_coordinator::{FormatRefused, read_entry, read_snapshot, write_entry, write_snapshot};
use bigfleet_coordinator_core::{
    Command, CoordinatorCore, Domain, Exception, ExceptionKind, Facts, Holdings, Identity,
    Provider, RecordState, Settings, ShardId, Stamp, Tables, TransferId, TransferRecord,
};
use bigfleet_model::{ClusterId, MachineId, Time};
use bigfleet_seeded::Prng;

fn shard(id: &str) -> ShardId {
    ShardId::new(id).unwrap()
}

fn zone(value: &str) -> Domain {
    Domain::new("topology.kubernetes.io/zone", value).unwrap()
}

fn machine(id: &str) -> MachineId {
    MachineId::new(id).unwrap()
}

const STAMP: Stamp = Stamp {
    reign: 7,
    sequence: 3,
};

fn facts() -> Facts {
    let exception = |kind, transfer: Option<&str>| Exception {
        kind,
        transfer: transfer.map(|id| TransferId::new(id).unwrap()),
        peer: transfer.map(|_| shard("s2")),
        domain: Some(zone("a")),
        stamp: STAMP,
    };
    let record = |state, expires| TransferRecord {
        state,
        machines: vec![machine("m3"), machine("m4")],
        peer: Some(shard("s2")),
        domain: None,
        stamp: STAMP,
        expires,
    };
    let id = |text: &str| TransferId::new(text).unwrap();
    Facts {
        holdings: Some(Holdings {
            everything: false,
            domains: BTreeSet::from([zone("a"), zone("b")]),
            exceptions: BTreeMap::from([
                (machine("m1"), exception(ExceptionKind::Away, None)),
                (machine("m2"), exception(ExceptionKind::Guest, Some("7-1"))),
            ]),
        }),
        records: BTreeMap::from([
            (
                id("7-2"),
                record(RecordState::Reserved, Some(Time::from_nanos(-5))),
            ),
            (id("7-3"), record(RecordState::Released, None)),
            (id("7-4"), record(RecordState::Claimed, None)),
            (id("7-5"), record(RecordState::Refused, None)),
        ]),
    }
}

const IDENTITY: Identity = Identity {
    epoch: 5,
    directory: Some(u64::MAX),
    process: 9,
};

/// One of every kind.
fn commands() -> Vec<Command> {
    let set_identity = |id: &str, provider: &str, directory| Command::SetIdentity {
        shard: shard(id),
        identity: Identity {
            directory,
            ..IDENTITY
        },
        has_records: true,
        address: "s1:7780".to_owned(),
        provider: Provider::of(&shard(id), provider),
        registered_at: Time::from_nanos(12),
    };
    vec![
        Command::BeginReign { floor: 6 },
        Command::AddShard {
            shard: shard("s3"),
            address: String::new(),
            registered_at: Time::from_nanos(i64::MAX),
        },
        set_identity("s1", "p:1", IDENTITY.directory),
        set_identity("s2", "", None),
        Command::BindCluster {
            cluster: ClusterId::new("c1").unwrap(),
            shard: shard("s1"),
        },
        Command::AssignDomain {
            domain: zone("c"),
            shard: shard("s1"),
        },
        Command::MoveDomain {
            domain: zone("c"),
            to: shard("s2"),
        },
        Command::Heard {
            reign: 7,
            shard: shard("s1"),
            identity: IDENTITY,
            facts: facts(),
        },
        Command::UnassignDomain { domain: zone("x") },
        Command::SetRebalancePaused(true),
        Command::SetCluster {
            id: "u".to_owned(),
            generation: 2,
        },
        Command::RemoveShard {
            shard: shard("s3"),
            gone: true,
        },
        Command::FinishRestore {
            facts: BTreeMap::from([(shard("s1"), facts()), (shard("s2"), Facts::default())]),
        },
    ]
}

fn tables() -> Tables {
    let settings = Settings {
        sha256: |_| [0; 32],
        report_interval: std::time::Duration::from_secs(10),
        defect: None,
    };
    let mut core = CoordinatorCore::new(settings, Tables::default());
    core.apply(&commands());
    let tables = core.tables().clone();
    let rows = tables.snapshot();
    let is_full = !rows.shards.is_empty()
        && !rows.identities.is_empty()
        && !rows.gone.is_empty()
        && !rows.clusters.is_empty()
        && !rows.domains.is_empty()
        && !rows.machines.is_empty()
        && !rows.transfers.is_empty();
    assert!(is_full, "every table has a row: {rows:?}");
    tables
}

#[test]
fn every_command_survives() {
    let commands = commands();
    let kinds: BTreeSet<u8> = commands.iter().map(Command::kind).collect();
    assert_eq!(
        kinds,
        BTreeSet::from([1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14])
    );
    let bytes = write_entry(&commands);
    assert_eq!(read_entry(&bytes).unwrap(), commands);
    assert_eq!(
        write_entry(&commands),
        bytes,
        "equal values are equal bytes"
    );
    assert_eq!(read_entry(&write_entry(&[])).unwrap(), []);
}

#[test]
fn every_table_survives() {
    let tables = tables();
    let bytes = write_snapshot(&tables);
    let rows = read_snapshot(&bytes).unwrap();
    assert_eq!(rows, tables.snapshot());
    assert_eq!(Tables::from_snapshot(rows).unwrap(), tables);
}

/// A bit that flips anywhere, and an end that is missing, are noticed.
#[test]
fn damage_is_said() {
    let bytes = write_snapshot(&tables());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(read_snapshot(&flipped).is_err(), "bit {bit} of byte {at}");
        }
        assert!(read_snapshot(&bytes[..at]).is_err(), "cut at {at}");
    }
    let mut later = bytes;
    later[0] = 2;
    let refused = read_snapshot(&later).unwrap_err();
    assert!(matches!(refused, FormatRefused::Version(2)), "{refused}");
    let words = "written in version 2 of the format; this program reads version 1";
    assert_eq!(refused.to_string(), words);
}

/// Bytes with a right checksum and anything inside: read or refused, never more.
#[test]
fn anything_inside_is_read_or_refused() {
    let (entry, snapshot) = (write_entry(&commands()), write_snapshot(&tables()));
    let (mut read, mut refused) = (0, 0);
    let mut dice = Prng::new(1);
    for turn in 0..20_000 {
        let mut bytes = if turn % 2 == 0 {
            entry.clone()
        } else {
            snapshot.clone()
        };
        for _ in 0..dice.between(1, 4) {
            let at = dice.between(5, bytes.len() - 1);
            match dice.below(3) {
                0 => bytes[at] = dice.next_u64() as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, dice.next_u64() as u8),
            }
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(&[1]);
        sum.update(&bytes[5..]);
        bytes[1..5].copy_from_slice(&sum.finalize().to_le_bytes());
        let entry_read = read_entry(&bytes).is_ok();
        let rows = read_snapshot(&bytes).ok();
        let tables_read = rows
            .and_then(|rows| Tables::from_snapshot(rows).ok())
            .is_some();
        if entry_read || tables_read {
            read += 1;
        } else {
            refused += 1;
        }
    }
    assert!(
        100 < read && 1_000 < refused,
        "{read} read, {refused} refused"
    );
}

/// A command of a later program: tables without it would be other tables, so it is refused and not passed over.
#[test]
fn an_unknown_command_is_refused() {
    // Entry { command { field 15: "" } }.
    let message = [0x0a, 0x02, 0x7a, 0x00];
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[1]);
    sum.update(&message);
    let mut bytes = vec![1];
    bytes.extend(sum.finalize().to_le_bytes());
    bytes.extend(message);
    let refused = read_entry(&bytes).unwrap_err();
    assert!(
        matches!(refused, FormatRefused::Missing("a command")),
        "{refused}"
    );
}
