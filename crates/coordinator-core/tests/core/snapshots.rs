//! Snapshots: nothing is lost in one, and one that does not fit is refused with the row that does not.

use bigfleet_coordinator_core::{
    Command, CoordinatorCore, Domain, DomainRow, Exception, ExceptionKind, Facts, Holdings,
    Identity, Provider, RecordState, Snapshot, Stamp, Tables, Transfer, TransferId, TransferRecord,
    TransferState,
};
use bigfleet_model::{ClusterId, MachineId, Time};
use bigfleet_seeded::Prng;

use crate::support::{One, machine, settings, shard, two_shards, zone};

fn one_of(dice: &mut Prng, texts: &[&'static str]) -> &'static str {
    texts[dice.below(texts.len())]
}

/// Commands of every kind, sensible and not.
fn command(dice: &mut Prng, reign: u64) -> Command {
    let id = |dice: &mut Prng| shard(&format!("s{}", dice.below(5)));
    let domain = |dice: &mut Prng| {
        let key = one_of(dice, &["zone", "rack"]);
        Domain::new(key, one_of(dice, &["a", "b", "c"])).unwrap()
    };
    let identity = |dice: &mut Prng| Identity {
        epoch: dice.between(1, 3) as u64,
        directory: Some(1).filter(|_| !dice.percent(10)),
        process: dice.between(1, 2) as u64,
    };
    match dice.below(24) {
        0 | 1 => Command::AddShard {
            shard: id(dice),
            address: String::new(),
            registered_at: Time::ZERO,
        },
        2 => Command::RemoveShard {
            shard: id(dice),
            gone: dice.percent(20),
        },
        3 => Command::BindCluster {
            cluster: ClusterId::new(one_of(dice, &["c1", "c2"])).unwrap(),
            shard: id(dice),
        },
        4..7 => Command::AssignDomain {
            domain: domain(dice),
            shard: id(dice),
        },
        7 => Command::UnassignDomain {
            domain: domain(dice),
        },
        8 => Command::MoveDomain {
            domain: domain(dice),
            to: id(dice),
        },
        9..13 => {
            let shard = id(dice);
            Command::SetIdentity {
                identity: identity(dice),
                has_records: dice.percent(50),
                address: "a:1".to_owned(),
                provider: Provider::of(&shard, one_of(dice, &["p:1", "p:2", ""])),
                registered_at: Time::ZERO,
                shard,
            }
        }
        13 => Command::BeginReign {
            floor: dice.below(4) as u64,
        },
        14 => Command::SetRebalancePaused(dice.percent(50)),
        15 => Command::FinishRestore {
            facts: (0..5)
                .map(|n| (shard(&format!("s{n}")), facts(dice)))
                .collect(),
        },
        _ => Command::Heard {
            reign,
            shard: id(dice),
            identity: identity(dice),
            facts: facts(dice),
        },
    }
}

fn facts(dice: &mut Prng) -> Facts {
    if dice.percent(15) {
        return Facts::default();
    }
    let mut held = Holdings {
        everything: dice.percent(20),
        ..Holdings::default()
    };
    let transfer = |dice: &mut Prng| TransferId::new(&format!("1-{}", dice.below(4))).unwrap();
    let some = |dice: &mut Prng| machine(one_of(dice, &["m1", "m2", "m3"]));
    for value in ["a", "b", "c"] {
        if dice.percent(30) {
            held.domains.insert(zone(value));
        }
    }
    for _ in 0..dice.below(3) {
        let kind = *dice.pick(&[ExceptionKind::Away, ExceptionKind::Guest]);
        let exception = Exception {
            kind,
            transfer: Some(transfer(dice)),
            peer: None,
            domain: Some(zone("a")).filter(|_| dice.percent(80)),
            stamp: Stamp {
                reign: 1,
                sequence: dice.below(9) as u64,
            },
        };
        held.exceptions.insert(some(dice), exception);
    }
    let mut facts = Facts {
        holdings: Some(held),
        ..Facts::default()
    };
    for _ in 0..dice.below(3) {
        let states = [
            RecordState::Reserved,
            RecordState::Released,
            RecordState::Claimed,
            RecordState::Refused,
        ];
        let record = TransferRecord {
            state: *dice.pick(&states),
            machines: vec![some(dice)],
            peer: Some(shard(&format!("s{}", dice.below(6)))),
            domain: Some(zone("a")),
            stamp: Stamp {
                reign: 1,
                sequence: dice.below(9) as u64,
            },
            expires: None,
        };
        facts.records.insert(transfer(dice), record);
    }
    facts
}

/// Whatever commands come: refused ones change nothing, every state survives a snapshot with its indexes, and applying is
/// the same everywhere.
#[test]
fn any_commands_make_tables_that_survive() {
    let (mut applied, mut refused) = (0, 0);
    for seed in 0..300 {
        let mut dice = Prng::new(seed);
        let mut core = CoordinatorCore::new(settings(None), Tables::default());
        let mut other = core.clone();
        for _ in 0..120 {
            let reign = core.tables().reign();
            let command = command(&mut dice, reign);
            let before = core.tables().clone();
            let result = core.apply(std::slice::from_ref(&command)).remove(0);
            assert_eq!(other.apply(&[command]).remove(0), result);
            if result.is_err() {
                assert_eq!(*core.tables(), before);
                refused += 1;
            } else {
                applied += 1;
            }
            let mut snapshot = core.tables().snapshot();
            let back = Tables::from_snapshot(snapshot.clone()).unwrap();
            assert_eq!(back, *core.tables());
            if dice.percent(3) {
                snapshot = snapshot.begin_restore(1);
                let tables = Tables::from_snapshot(snapshot).unwrap();
                core.install(tables.clone());
                other.install(tables);
            }
        }
        assert_eq!(core.tables(), other.tables());
    }
    assert!(5_000 < applied && 5_000 < refused, "{applied}, {refused}");
}

fn sample() -> Snapshot {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    one.apply(Command::BindCluster {
        cluster: ClusterId::new("c1").unwrap(),
        shard: shard("s1"),
    })
    .unwrap();
    let stamp = one.core.stamp().unwrap();
    s1.release("1-1", &machine("a1"), &shard("s2"), stamp);
    one.rounds(&mut s1, 3);
    one.core.tables().snapshot()
}

fn again<T: Clone>(rows: &mut Vec<T>) {
    rows.push(rows[0].clone());
}

type Spoil = fn(&mut Snapshot);

/// Each line spoils a good snapshot in one way.
#[test]
fn a_row_that_does_not_fit_is_named() {
    let spoiled: [(&str, Spoil); 15] = [
        ("shard s1: is there twice", |s| again(&mut s.shards)),
        ("identity s1: is there twice", |s| again(&mut s.identities)),
        ("cluster c1: is there twice", |s| again(&mut s.clusters)),
        ("domain zone=a: is there twice", |s| again(&mut s.domains)),
        ("machine a1: is there twice", |s| again(&mut s.machines)),
        ("transfer 1-1: is there twice", |s| again(&mut s.transfers)),
        ("shard s1: shard s1 is gone for good", |s| {
            s.gone.push(shard("s1"))
        }),
        ("shard gone for good s9: is there twice", |s| {
            s.gone = vec![shard("s9"), shard("s9")];
        }),
        ("cluster c1: shard s9 is not registered", |s| {
            s.clusters[0].1 = shard("s9")
        }),
        ("cluster c/1: is no id", |s| {
            s.clusters[0].0 = ClusterId::new("c/1").unwrap()
        }),
        ("domain zone=a: shard s9 is not registered", |s| {
            s.domains[0].1.desired = Some(shard("s9"));
        }),
        ("domain zone=a: nothing is known of shard s9", |s| {
            s.domains[0].1.holder = Some(shard("s9"));
        }),
        ("domain zone=a: nobody has it", |s| {
            s.domains[0].1 = DomainRow::default()
        }),
        ("everything of p:9: nothing is known of shard s9", |s| {
            s.everything.push((Provider::At("p:9".into()), shard("s9")));
        }),
        ("reign 9223372036854775808: is too high", |s| {
            s.reign = 1 << 63
        }),
    ];
    assert!(Tables::from_snapshot(sample()).is_ok());
    for (words, spoil) in spoiled {
        let mut snapshot = sample();
        spoil(&mut snapshot);
        let why = Tables::from_snapshot(snapshot).unwrap_err().to_string();
        assert!(why.starts_with(words), "{why}, not {words}");
    }
    let mut snapshot = sample();
    let many = vec![MachineId::new("m").unwrap(); 51];
    let transfer = Transfer {
        machines: many,
        ..snapshot.transfers[0].1.clone()
    };
    assert_eq!(transfer.state, TransferState::Moving);
    snapshot.transfers[0].1 = transfer;
    let why = Tables::from_snapshot(snapshot).unwrap_err().to_string();
    assert_eq!(why, "transfer 1-1: it moves more than 50 machines");
}
