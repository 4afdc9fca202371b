//! The store told by what comes back: after a close, after a copy, after damage.

use super::*;
use bigfleet_model::{
    ActionKind, Amounts, Assignment, ClusterId, Dimension, Dollars, Fingerprint, Group, Intent,
    MachineId, NeedKey, Price, Reason, Terms, Time,
};
use bigfleet_shard_core::{
    Baseline, BreakerKey, Domain, DrainMark, HeldDomain, JoinStep, Kept, KeptBreaker,
    KeptOperation, KeptPause, OperationId, PauseNote, Pool, Scope,
};
use proptest::prelude::*;

pub(super) struct Folder(pub(super) PathBuf);

fn floor(epoch_floor: u64) -> Wanted {
    Wanted {
        epoch_floor,
        ..Wanted::default()
    }
}

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let folder = format!("bigfleet-store-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        drop(std::fs::remove_dir_all(&folder));
        Self(folder)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn open(&self) -> Result<Opened, StoreRefused> {
        open(&self.0, Wanted::default())
    }

    pub(super) fn refused(&self) -> String {
        match self.open() {
            Ok(_) => panic!("it should have been refused"),
            Err(refused) => refused.to_string(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn machine(id: &str) -> MachineId {
    MachineId::new(id).unwrap()
}

fn kept(id: &str, cluster: Option<&str>) -> Record {
    Record::Machine {
        machine: machine(id),
        kept: Some(Box::new(Kept {
            cluster: cluster.map(|id| ClusterId::new(id).unwrap()),
            bound_by: None,
            assignment: Assignment::default(),
            intent: None,
            not_ready: false,
            undeletable: false,
            given_up: None,
            spent: None,
            operation: None,
        })),
    }
}

/// EX-FE1, and a directory of the reference, which holds `epoch` alone.
#[test]
fn each_start_takes_the_next_epoch_and_a_directory_with_only_an_epoch_is_a_start() {
    let folder = Folder::new("epochs");
    assert_eq!(folder.open().unwrap().epoch, 1);
    assert_eq!(folder.open().unwrap().epoch, 2);
    let of_reference = Folder::new("reference");
    std::fs::create_dir_all(&of_reference.0).unwrap();
    std::fs::write(of_reference.file("epoch"), "41").unwrap();
    let opened = of_reference.open().unwrap();
    assert_eq!((opened.epoch, opened.records.len()), (42, 0));
    drop(opened);
    assert_eq!(
        std::fs::read_to_string(of_reference.file("epoch")).unwrap(),
        "42\n"
    );
    assert_eq!(
        open(&of_reference.0, floor(100)).unwrap().epoch,
        100,
        "a floor"
    );
}

#[test]
fn what_was_committed_is_there_again_and_later_records_replace_earlier_ones() {
    let folder = Folder::new("again");
    let opened = folder.open().unwrap();
    let baseline = Baseline {
        rows: 7,
        totals: Amounts::from_entries([(Dimension::new("cpu").unwrap(), i128::MAX)]),
    };
    let cluster = ClusterId::new("a").unwrap();
    let owned = |id: &str, owned| Record::Owned {
        machine: machine(id),
        owned,
    };
    let released = |released| Record::Released {
        cluster: cluster.clone(),
        released,
    };
    let domain = |value: &str, held: bool| Record::Domain {
        domain: Domain {
            key: "zone".to_owned(),
            value: value.to_owned(),
        },
        held: held.then(HeldDomain::default),
    };
    let arrival = |print: &str, at| Record::Arrival {
        need: NeedKey {
            cluster: cluster.clone(),
            fingerprint: Fingerprint::new(print),
            group: Group::new("zone\0app=db,"),
        },
        at,
    };
    let moment = Time::from_seconds(17.25);
    let forgotten = |id: &str| Record::Machine {
        machine: machine(id),
        kept: None,
    };
    let instruction = |id: &str| Record::Instruction(id.to_owned());
    let paused = |scope, until: Option<Option<f64>>| Record::Paused {
        scope,
        kept: until.map(|until| KeptPause {
            since: moment.unwrap(),
            until: until.and_then(Time::from_seconds),
            note: PauseNote {
                requested_by: "somebody".to_owned(),
                reason: "a flood".to_owned(),
            },
        }),
    };
    let provider = || Scope::Provider("cluster:a".to_owned());
    let breaker = |step, failures: Option<u32>| Record::Breaker {
        key: BreakerKey::Join(cluster.clone(), step),
        kept: failures.map(|failures| KeptBreaker {
            failures,
            waits: 1,
            since: moment.unwrap(),
            until: moment.unwrap(),
            last_error: "no".to_owned(),
        }),
    };
    let drained = |id: &str, deadline: Option<Option<f64>>| Record::Drained {
        machine: machine(id),
        mark: deadline.map(|deadline| DrainMark {
            passed: deadline == Some(9.0),
            ..DrainMark::new(
                "somebody",
                "new disks",
                moment.unwrap(),
                deadline.and_then(Time::from_seconds),
            )
        }),
    };
    let reclaims = |cluster: &str, left: &[f64]| Record::Reclaims {
        cluster: ClusterId::new(cluster).unwrap(),
        left: left
            .iter()
            .map(|at| (Time::from_seconds(*at).unwrap(), 3))
            .collect(),
    };
    commit(
        &opened.database,
        &[
            kept("m1", Some("a")),
            kept("m2", None),
            owned("m3", true),
            owned("m4", true),
            released(true),
            domain("a", true),
            arrival("f", moment),
            arrival("g", moment),
            instruction("z"),
            paused(Scope::All, Some(Some(9.0))),
            paused(Scope::Cluster(cluster.clone()), Some(None)),
            paused(provider(), Some(Some(9.0))),
            breaker(JoinStep::Blob, Some(3)),
            breaker(JoinStep::Node, Some(4)),
            drained("m5", Some(None)),
            drained("m6", Some(Some(30.5))),
            drained("m7", Some(None)),
            reclaims("a", &[1.5]),
            reclaims("b", &[1.5]),
        ],
        &[],
    )
    .unwrap();
    let larger = Baseline {
        rows: 70,
        ..baseline.clone()
    };
    let cluster_record = Record::Cluster {
        cluster: cluster.clone(),
        baseline,
        replaced: vec![(moment.unwrap(), larger)],
    };
    commit(
        &opened.database,
        &[
            Record::Epoch(1),
            Record::Term(5),
            Record::ForeignSeen,
            forgotten("m2"),
            kept("m1", Some("b")),
            owned("m4", false),
            Record::Retired {
                machine: machine("m9"),
                retired: true,
            },
            domain("a", false),
            domain("b", true),
            arrival("g", None),
            cluster_record.clone(),
            instruction("a"),
            paused(Scope::All, None),
            paused(provider(), Some(Some(10.5))),
            breaker(JoinStep::Blob, None),
            breaker(JoinStep::Node, Some(5)),
            drained("m6", None),
            drained("m7", Some(Some(9.0))),
            reclaims("a", &[2.25, 3.0]),
            reclaims("b", &[]),
        ],
        &[],
    )
    .unwrap();
    drop(opened);
    assert_eq!(
        folder.open().unwrap().records,
        [
            Record::Epoch(1),
            Record::ForeignSeen,
            Record::Term(5),
            instruction("z"),
            instruction("a"),
            domain("b", true),
            owned("m3", true),
            Record::Retired {
                machine: machine("m9"),
                retired: true,
            },
            released(true),
            paused(Scope::Cluster(cluster.clone()), Some(None)),
            paused(provider(), Some(Some(10.5))),
            breaker(JoinStep::Node, Some(5)),
            drained("m5", Some(None)),
            drained("m7", Some(Some(9.0))),
            reclaims("a", &[2.25, 3.0]),
            arrival("f", moment),
            cluster_record,
            kept("m1", Some("b")),
        ]
    );
}

/// Whatever the core says is to be remembered, the file gives back: no record is left out.
#[test]
fn a_core_rebuilt_from_the_file_remembers_what_the_core_before_it_did() {
    use bigfleet_shard_core::{Answer, Event, Instruction, Order, ShardConfig, ShardCore};
    let folder = Folder::new("core");
    let opened = folder.open().unwrap();
    let config = ShardConfig::production("s1", "p");
    let now = Time::from_seconds(1000.0).unwrap();
    let mut core = ShardCore::new(config.clone(), opened.epoch, now).unwrap();
    let instruction = |id: &str, order| Instruction {
        id: id.to_owned(),
        term: 3,
        sequence: 1,
        order,
    };
    let mut effects = Vec::new();
    let zone = Domain {
        key: "zone".to_owned(),
        value: "b".to_owned(),
    };
    let instructions = vec![instruction("i1", Order::AssignDomain(zone))];
    let answered = Event::Answered(Box::new(Answer {
        term: 3,
        gone: vec!["s9".to_owned()],
        foreign: vec![machine("m2")],
        instructions,
        ..Answer::default()
    }));
    core.handle(now, answered, &mut effects);
    let owned = Event::Owned {
        add: [machine("m1")].into(),
        remove: Default::default(),
    };
    core.handle(now, owned, &mut effects);
    let records = core.records();
    assert!(
        4 < records.len(),
        "there is something to remember: {records:?}"
    );
    commit(&opened.database, &records, &[]).unwrap();
    drop(opened);
    let again = folder.open().unwrap();
    let core = ShardCore::rebuild(config, 1, now, again.records).unwrap();
    assert_eq!(core.records(), records);
}

#[test]
fn a_directory_in_use_newer_damaged_or_older_than_itself_is_refused_by_name() {
    let folder = Folder::new("refused");
    let opened = folder.open().unwrap();
    assert!(folder.refused().contains("in use by another process"));
    assert_eq!(
        std::fs::read_to_string(folder.file("epoch")).unwrap(),
        "1\n",
        "a refused start takes no epoch"
    );
    commit(&opened.database, &[Record::Epoch(9), kept("m1", None)], &[]).unwrap();
    drop(opened);
    let text = folder.refused();
    assert!(
        text.contains("epoch 2 is not above 9") && text.contains("--epoch-floor 10"),
        "an old copy of the epoch file: {text}"
    );
    assert!(
        open(&folder.0, floor(9)).is_err(),
        "epoch 9 was used before"
    );
    let opened = open(&folder.0, floor(10)).unwrap();
    assert_eq!(opened.epoch, 10, "as the refusal advised");
    drop(opened);
    std::fs::write(folder.file("epoch"), "abc").unwrap();
    assert!(folder.refused().contains("\"abc\", which is not a number"));
    std::fs::write(folder.file("epoch"), "9").unwrap();

    let opened = folder.open().unwrap();
    let write = opened.database.begin_write().unwrap();
    let mut machines = write.open_table(MACHINES).unwrap();
    machines.insert("m1", b"\0\0\0\0junk".as_slice()).unwrap();
    drop(machines);
    write.commit().unwrap();
    drop(opened);
    let text = folder.refused();
    assert!(
        text.contains("the entry \"m1\" of machines: its checksum does not fit"),
        "{text}"
    );

    let newer = Folder::new("newer");
    let opened = newer.open().unwrap();
    commit(&opened.database, &[], &[]).unwrap();
    let write = opened.database.begin_write().unwrap();
    write
        .open_table(META)
        .unwrap()
        .insert(FORMAT_KEY, 3)
        .unwrap();
    write.commit().unwrap();
    drop(opened);
    assert!(
        newer
            .refused()
            .contains("has format 3, and this version knows 2")
    );
}

/// SH-24: a cluster that is forgotten leaves nothing behind, and another one everything.
#[test]
fn a_forgotten_cluster_is_gone_from_every_table() {
    let folder = Folder::new("forgotten");
    let opened = folder.open().unwrap();
    let of = |name: &str| {
        let cluster = ClusterId::new(name).unwrap();
        let need = NeedKey {
            cluster: cluster.clone(),
            fingerprint: Fingerprint::new("f"),
            group: Group::default(),
        };
        [
            Record::Released {
                cluster,
                released: true,
            },
            Record::Arrival {
                need,
                at: Time::from_seconds(1.0),
            },
        ]
    };
    let forgotten = Record::ClusterForgotten(ClusterId::new("a").unwrap());
    let written = [vec![Record::Epoch(1)], of("a").into(), of("b").into()].concat();
    commit(&opened.database, &written, &[]).unwrap();
    commit(&opened.database, &[forgotten], &[]).unwrap();
    drop(opened);
    let left = [vec![Record::Epoch(1)], of("b").into()].concat();
    assert_eq!(folder.open().unwrap().records, left);
}

/// SV-3: ages ride along with records, and are not among them.
#[test]
fn ages_come_back_until_they_are_over() {
    let folder = Folder::new("ages");
    let opened = folder.open().unwrap();
    assert_eq!(opened.ages, []);
    let need = |group: &str| NeedKey {
        cluster: ClusterId::new("a").unwrap(),
        fingerprint: Fingerprint::new("p=1|reqs=zone:1:x;"),
        group: Group::new(group),
    };
    let moment = Time::from_seconds(17.25).unwrap();
    let began = [(need(""), Some(moment)), (need("g"), Some(moment))];
    commit(&opened.database, &[Record::Epoch(1)], &began).unwrap();
    drop(opened);
    let opened = folder.open().unwrap();
    assert_eq!(opened.ages, [(need(""), moment), (need("g"), moment)]);
    assert_eq!(opened.records, [Record::Epoch(1)]);
    commit(&opened.database, &[], &[(need(""), None)]).unwrap();
    drop(opened);
    assert_eq!(folder.open().unwrap().ages, [(need("g"), moment)]);
}

/// Pauses and breakers came after the other tables, under the same number.
#[test]
fn a_directory_from_before_there_were_pauses_has_none_and_takes_them() {
    let folder = Folder::new("older");
    let opened = folder.open().unwrap();
    let before = [Record::Epoch(1), kept("m1", Some("a"))];
    commit(&opened.database, &before, &[]).unwrap();
    let write = opened.database.begin_write().unwrap();
    assert!(write.delete_table(PAUSES).unwrap());
    assert!(write.delete_table(BREAKERS).unwrap());
    write.commit().unwrap();
    drop(opened);
    let opened = folder.open().unwrap();
    assert_eq!(opened.records, before);
    let pause = Record::Paused {
        scope: Scope::All,
        kept: Some(KeptPause {
            since: Time::from_nanos(0),
            until: Time::from_seconds(9.0),
            note: PauseNote::default(),
        }),
    };
    commit(&opened.database, std::slice::from_ref(&pause), &[]).unwrap();
    drop(opened);
    assert!(folder.open().unwrap().records.contains(&pause));

    // Any other table has always been there.
    let opened = folder.open().unwrap();
    let write = opened.database.begin_write().unwrap();
    assert!(write.delete_table(MACHINES).unwrap());
    write.commit().unwrap();
    drop(opened);
    assert!(folder.refused().contains("is damaged"));
}

/// Whatever happens to the bytes of the file: an answer, never a panic, never another shard's past.
#[test]
fn a_file_cut_or_overwritten_anywhere_is_refused_or_reads_as_it_was() {
    let folder = Folder::new("damage");
    let opened = folder.open().unwrap();
    let records: Vec<Record> = (0..300)
        .map(|n| kept(&format!("m{n}"), Some("a")))
        .collect();
    commit(&opened.database, &records, &[]).unwrap();
    drop(opened);
    let path = folder.file("shard.redb");
    let whole = std::fs::read(&path).unwrap();
    let before = folder.open().unwrap().records;
    let mut refused = 0;
    for step in 0..40 {
        let at = whole.len() * step / 40;
        let mut bytes = whole.clone();
        match step % 2 {
            0 => bytes.truncate(at),
            _ => bytes[at..(at + 512).min(whole.len())].fill(0xA5),
        }
        std::fs::write(&path, &bytes).unwrap();
        match folder.open() {
            Ok(opened) if bytes.is_empty() => assert!(opened.records.is_empty()),
            Ok(opened) => assert_eq!(opened.records, before, "damage at {at}"),
            Err(_) => refused += 1,
        }
    }
    assert!(0 < refused, "no damage was ever seen");
}

fn terms() -> impl Strategy<Value = Terms> {
    let dollars = || prop_oneof![Just(f64::INFINITY), 0.0..1e12];
    (any::<i32>(), dollars(), dollars()).prop_map(|(priority, one, other)| Terms {
        priority,
        interruption: Dollars::new(one).unwrap(),
        reclamation: Dollars::new(other).unwrap(),
    })
}

fn keep_price() -> impl Strategy<Value = Option<Price>> {
    prop::option::of((0.0..1e6).prop_map(|price| Price::new(price).unwrap()))
}

fn need() -> impl Strategy<Value = NeedKey> {
    ("[a-z]{1,9}", any::<String>(), any::<String>()).prop_map(|(cluster, print, group)| NeedKey {
        cluster: ClusterId::new(&cluster).unwrap(),
        fingerprint: Fingerprint::new(&print),
        group: Group::new(&group),
    })
}

/// Moments that were on disk before.
fn stored_time() -> impl Strategy<Value = Time> {
    let nanos = i64::MIN / 2..i64::MAX / 2;
    nanos.prop_map(|nanos| format::moment(format::seconds(Time::from_nanos(nanos))).unwrap())
}

fn operation() -> impl Strategy<Value = KeptOperation> {
    let actions = prop::sample::select(vec![
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Preempt,
        ActionKind::Reclaim,
        ActionKind::Delete,
    ]);
    let reasons = prop::sample::select(vec![
        Reason::Idle,
        Reason::Speculative,
        Reason::Promised,
        Reason::Inversion,
        Reason::Excess,
        Reason::Release,
        Reason::Restored,
        Reason::Leaving,
    ]);
    let ids = (any::<u64>(), any::<u64>(), any::<u64>());
    let held = prop::option::of(stored_time());
    let rest = (
        any::<u32>(),
        any::<i32>(),
        stored_time(),
        held,
        any::<bool>(),
    );
    (ids, actions, reasons, prop::option::of(need()), rest).prop_map(
        |((epoch, number, decided_cycle), action, reason, need, rest)| KeptOperation {
            id: OperationId { epoch, number },
            action,
            reason,
            cluster: need.as_ref().map(|need| need.cluster.clone()),
            need,
            decided_cycle,
            grace_seconds: rest.0,
            preemptor_priority: rest.1,
            deadline: rest.2,
            held_since: rest.3,
            not_ready: rest.4,
        },
    )
}

proptest! {
    #[test]
    fn every_commitment_reads_as_it_was_written(
        bound in prop::option::of("[a-z]{1,9}"),
        assigned in (terms(), any::<String>(), any::<String>(), keep_price()),
        intent in prop::option::of((need(), terms(), keep_price())),
        not_ready: bool,
        given_up in prop::option::of((any::<u32>(), stored_time())),
        spent in prop::option::of(("[a-z]{1,9}", stored_time())),
        operation in prop::option::of(operation()),
    ) {
        let kept = Kept {
            cluster: bound.map(|id| ClusterId::new(&id).unwrap()),
            bound_by: operation.as_ref().map(|one: &KeptOperation| one.id),
            assignment: Assignment {
                terms: assigned.0,
                fingerprint: Fingerprint::new(&assigned.1),
                group: Group::new(&assigned.2),
                keep_price: assigned.3,
            },
            intent: intent.map(|(need, terms, keep_price)| Intent { need, terms, keep_price }),
            not_ready,
            undeletable: !not_ready,
            given_up,
            spent: spent.map(|(id, at)| (ClusterId::new(&id).unwrap(), at)),
            operation: operation.map(Box::new),
        };
        let bytes = Value::of_machine(&kept).seal();
        let record = Record::Machine { machine: machine("m1"), kept: Some(Box::new(kept)) };
        prop_assert_eq!(format::machine("m1", &bytes, &mut format::Names::default()), Ok(record));
    }

    #[test]
    fn every_breaker_reads_as_it_was_written(
        names in (any::<String>(), any::<String>(), "[a-z]{1,9}"),
        step in prop::sample::select(JoinStep::ALL.to_vec()),
        numbers: (u32, u32),
        times in (stored_time(), stored_time()),
        last_error: String,
    ) {
        let kept = KeptBreaker {
            failures: numbers.0,
            waits: numbers.1,
            since: times.0,
            until: times.1,
            last_error,
        };
        let bytes = Value::of_breaker(&kept).seal();
        let pool = Pool { instance_type: names.0, zone: names.1 };
        let cluster = ClusterId::new(&names.2).unwrap();
        for key in [BreakerKey::Create(pool), BreakerKey::Join(cluster, step)] {
            let read = format::breaker(&format::breaker_key(&key), &bytes);
            prop_assert_eq!(read, Ok(Record::Breaker { key, kept: Some(kept.clone()) }));
        }
    }

    /// The file has seconds as doubles, and no restart may move a moment again and again.
    #[test]
    fn a_moment_of_whole_microseconds_is_read_as_it_was_written(
        micros in -8_500_000_000_000_000..8_500_000_000_000_000_i64,
        beyond in 0..1_000_i64,
    ) {
        let moment = Time::from_nanos(micros * 1_000);
        prop_assert_eq!(format::moment(format::seconds(moment)), Ok(moment));
        let between = Time::from_nanos(micros * 1_000 + beyond);
        let read = format::moment(format::seconds(between)).unwrap();
        prop_assert!(read.nanos().abs_diff(between.nanos()) < 1_000, "{:?} {:?}", between, read);
    }

    #[test]
    fn hostile_bytes_are_refused_and_never_panic(bytes: Vec<u8>) {
        prop_assert!(format::machine("m1", &bytes, &mut format::Names::default()).is_err());
        prop_assert!(format::cluster("c1", &bytes).is_err());
    }
}
