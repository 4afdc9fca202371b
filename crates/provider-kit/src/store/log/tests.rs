//! Files cut, flipped and blanked at every byte.

use super::*;
use crate::seed::tests::slot;
use crate::{Ask, Mutation, Token};
use crate::{Event, Kit, Options};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("bigfleet-kit-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        drop(fs::remove_dir_all(&folder));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn create(kit: &mut Kit, machine: &str, sequence: i64) {
    let token = Token {
        shard: "s".to_owned(),
        epoch: 1,
        sequence,
    };
    let ask = Ask::Create {
        metadata: Arc::default(),
    };
    let mutation = Mutation {
        machine: machine.to_owned(),
        token,
        ask,
    };
    kit.handle(Event::Mutate { call: 0, mutation }, &mut Vec::new());
}

fn store(kit: &mut Kit, log: &mut LogStore) {
    log.commit(kit.tables().pending()).unwrap();
    kit.commit();
    log.compact(kit.tables()).unwrap();
}

fn shown(tables: &Tables) -> String {
    let changes: Vec<Change> = tables.snapshot().collect();
    format!("{} {} {changes:?}", tables.head(), tables.next_operation())
}

/// Three batches; the answer is what was known after each, and where each ended.
fn written(path: &Path) -> Vec<(u64, String)> {
    let (mut log, tables) = LogStore::open(path).unwrap();
    let mut kit = Kit::new(tables, Options::default());
    let mut known = vec![(log.good, shown(kit.tables()))];
    kit.seed(&[slot("m1"), slot("m2")]).unwrap();
    store(&mut kit, &mut log);
    known.push((log.good, shown(kit.tables())));
    for (machine, sequence) in [("m1", 7), ("m2", 8), ("ghost", 9)] {
        create(&mut kit, machine, sequence);
        store(&mut kit, &mut log);
        known.push((log.good, shown(kit.tables())));
    }
    known
}

#[test]
fn a_file_cut_anywhere_loads_what_was_whole() {
    let folder = Folder::new("cut");
    let known = written(&folder.file());
    let bytes = fs::read(folder.file()).unwrap();
    for cut in known[0].0..=bytes.len() as u64 {
        fs::write(folder.file(), &bytes[..cut as usize]).unwrap();
        let (_, tables) = LogStore::open(&folder.file()).unwrap();
        let (_, expected) = known.iter().rfind(|(end, _)| *end <= cut).unwrap();
        assert_eq!(&shown(&tables), expected, "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_is_refused_and_its_record_named() {
    let folder = Folder::new("flip");
    let known = written(&folder.file());
    let bytes = fs::read(folder.file()).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(folder.file(), &flipped).unwrap();
        let refused = LogStore::open(&folder.file()).unwrap_err();
        // The frame of an empty snapshot follows the header, so batch n is record n + 1.
        let record = match at as u64 {
            at if at < HEADER => 0,
            at => 1 + known.iter().filter(|(end, _)| *end <= at).count() as u64,
        };
        match refused {
            StoreRefused::Damaged { record: named, .. } => assert_eq!(named, record, "byte {at}"),
            other => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn a_tail_that_never_reached_the_disk_is_cut_off() {
    let folder = Folder::new("blank");
    let known = written(&folder.file());
    let mut bytes = fs::read(folder.file()).unwrap();
    let (start, expected) = &known[known.len() - 2];
    bytes[*start as usize..].fill(0);
    fs::write(folder.file(), &bytes).unwrap();
    let (_, tables) = LogStore::open(&folder.file()).unwrap();
    assert_eq!(&shown(&tables), expected);
}

#[test]
fn compaction_keeps_everything_and_shrinks_the_file() {
    let folder = Folder::new("compact");
    let (mut log, tables) = LogStore::open(&folder.file()).unwrap();
    log.compact_after = 10_000;
    log.base = 0;
    let mut kit = Kit::new(tables, Options::default());
    kit.seed(&[slot("m1")]).unwrap();
    store(&mut kit, &mut log);
    let mut largest = 0;
    for sequence in 0..2_000 {
        create(&mut kit, "m1", sequence);
        store(&mut kit, &mut log);
        largest = largest.max(log.good);
    }
    assert!(log.good < largest, "it was never rewritten");
    assert!(largest < 20_000, "{largest}");
    let before = shown(kit.tables());
    drop(log);
    assert_eq!(shown(&LogStore::open(&folder.file()).unwrap().1), before);
}

/// A restart in the minute of its cool-down must not make it one that stays.
#[test]
fn a_slot_that_found_no_stock_is_still_one_after_a_restart() {
    let folder = Folder::new("stock");
    let (mut log, tables) = LogStore::open(&folder.file()).unwrap();
    let mut kit = Kit::new(tables, Options::default());
    kit.seed(&[slot("m1")]).unwrap();
    create(&mut kit, "m1", 7);
    let under_way = kit.tables().machines().values().next().unwrap();
    let operation = under_way
        .operation(crate::Transition::Create)
        .unwrap()
        .clone();
    let settled = Event::Settled {
        machine: under_way.machine.id.clone(),
        operation,
        outcome: Err(crate::Failure::no_stock("none")),
    };
    kit.handle(settled, &mut Vec::new());
    store(&mut kit, &mut log);
    let before = shown(kit.tables());
    drop(log);
    let (_log, tables) = LogStore::open(&folder.file()).unwrap();
    assert_eq!(shown(&tables), before);
    assert!(before.contains("NoStock"), "{before}");
}

#[test]
fn two_processes_do_not_share_a_file() {
    let folder = Folder::new("lock");
    let held = LogStore::open(&folder.file()).unwrap();
    assert!(matches!(
        LogStore::open(&folder.file()),
        Err(StoreRefused::InUse(_))
    ));
    drop(held);
    assert!(LogStore::open(&folder.file()).is_ok());
}

const JSON: &str = r#"{
  "machines": [
    {"ID": "m1", "State": "Configured", "Host": {"Provider": "aws", "Ref": "i-1"},
     "InstanceType": "m5", "Zone": "a", "CapacityType": "OnDemand", "PricePerHour": 0.4,
     "InterruptionProbability": 0, "Resources": {"cpu": "4"}, "Allocatable": null, "Labels": {},
     "Cluster": "prod", "ShardMetadata": {"k": "v\u0000"}, "LastError": ""},
    {"ID": "m2", "State": "Speculative", "Host": null, "InstanceType": "m5", "Zone": "a",
     "CapacityType": "Spot", "PricePerHour": 0.1, "InterruptionProbability": 0.05}
  ],
  "fences": [{"shard_id": "s", "machine_id": "m1", "epoch": 3, "sequence": 7}],
  "ops": [{"machine_id": "m1", "kind": "configure", "operation_id": "op-12"}],
  "rev": 41, "next_op": 13
}"#;

#[test]
fn a_json_state_file_is_taken_over_once_and_kept() {
    let folder = Folder::new("import");
    fs::write(folder.file(), JSON).unwrap();
    let (log, tables) = LogStore::open(&folder.file()).unwrap();
    let first = shown(&tables);
    assert!(first.contains("v\\0") && first.contains("op-12"), "{first}");
    assert_eq!(
        (tables.head(), tables.next_operation(), tables.marks().len()),
        (43, 13, 1)
    );
    drop(log);
    let (_, again) = LogStore::open(&folder.file()).unwrap();
    assert_eq!(shown(&again), first);
    let kept = fs::read_to_string(with_suffix(&folder.file(), ".imported.json")).unwrap();
    assert_eq!(kept, JSON);
}

#[test]
fn a_json_state_file_that_makes_no_sense_is_refused_by_name() {
    let folder = Folder::new("import-bad");
    let cases = [
        ("Configured", "Melted", "m1"),
        ("\"configure\"", "\"dance\"", "dance"),
        ("{", "{,", "line 1"),
    ];
    for (from, to, named) in cases {
        fs::write(folder.file(), JSON.replacen(from, to, 1)).unwrap();
        let refused = LogStore::open(&folder.file()).unwrap_err().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}
