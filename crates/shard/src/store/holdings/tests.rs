//! Holdings and identity, told by what comes back: after a close, from an earlier version, from a copy.

use super::super::tests::Folder;
use super::super::{FORMAT_KEY, Wanted, commit, open};
use super::*;
use bigfleet_model::{MachineId, Time};
use bigfleet_shard_core::{
    Exception, ExceptionKind, Stamp, TransferRecord, TransferRole, TransferState,
};
use redb::ReadableDatabase;

fn domain(value: &str, held: Option<HeldDomain>) -> Record {
    let (key, value) = ("zone".to_owned(), value.to_owned());
    let domain = Domain { key, value };
    Record::Domain { domain, held }
}

fn exception(machine: &str, kind: Option<ExceptionKind>) -> Record {
    let exception = kind.map(|kind| {
        Box::new(Exception {
            kind,
            transfer: "7-1".to_owned(),
            peer: "s2".to_owned(),
            domain: Some(Domain {
                key: "zone".to_owned(),
                value: "a".to_owned(),
            }),
            stamp: Stamp {
                term: 7,
                sequence: 3,
            },
        })
    });
    let machine = MachineId::new(machine).unwrap();
    Record::Exception { machine, exception }
}

fn transfer(id: &str, state: Option<TransferState>) -> Record {
    let transfer = state.map(|state| {
        Box::new(TransferRecord {
            role: TransferRole::Donor,
            state,
            machines: vec![MachineId::new("m1").unwrap()],
            peer: "s2".to_owned(),
            domain: None,
            stamp: Stamp::default(),
            expires: Time::from_seconds(9.5),
        })
    });
    let id = id.to_owned();
    Record::Transfer { id, transfer }
}

fn format_of(folder: &Folder) -> u64 {
    let opened = folder.open().unwrap();
    let read = opened.database.begin_read().unwrap();
    let meta = read.open_table(META).unwrap();
    meta.get(FORMAT_KEY).unwrap().unwrap().value()
}

#[test]
fn what_is_held_is_there_again_and_later_records_replace_earlier_ones() {
    let folder = Folder::new("holdings");
    let opened = folder.open().unwrap();
    let leaving = HeldDomain {
        leaving: true,
        shared: true,
    };
    let first = [
        Record::Epoch(1),
        Record::Scope(HeldScope::Unsaid),
        Record::Scope(HeldScope::EverythingLeaving),
        domain("a", Some(HeldDomain::default())),
        domain("b", Some(HeldDomain::default())),
        exception("m1", Some(ExceptionKind::Away)),
        exception("m2", Some(ExceptionKind::Away)),
        transfer("7-1", Some(TransferState::Reserved)),
        transfer("7-2", Some(TransferState::Claimed)),
        Record::GoneShard("s9".to_owned()),
    ];
    commit(&opened.database, &first, &[]).unwrap();
    let second = [
        domain("a", Some(leaving)),
        domain("b", None),
        exception("m1", Some(ExceptionKind::Guest)),
        exception("m2", None),
        transfer("7-1", Some(TransferState::Released)),
        transfer("7-2", None),
    ];
    commit(&opened.database, &second, &[]).unwrap();
    drop(opened);
    assert_eq!(
        folder.open().unwrap().records,
        [
            Record::Epoch(1),
            Record::Scope(HeldScope::EverythingLeaving),
            domain("a", Some(leaving)),
            exception("m1", Some(ExceptionKind::Guest)),
            transfer("7-1", Some(TransferState::Released)),
            Record::GoneShard("s9".to_owned()),
        ]
    );
}

/// A version that does not know of holdings must not act on a directory that has some.
#[test]
fn a_file_has_the_later_format_only_once_there_are_holdings() {
    let folder = Folder::new("format");
    drop(folder.open().unwrap());
    assert_eq!(format_of(&folder), 1);
    let opened = folder.open().unwrap();
    let scope = Record::Scope(HeldScope::Unsaid);
    commit(&opened.database, &[Record::Epoch(3), scope], &[]).unwrap();
    commit(&opened.database, &[Record::Term(4)], &[]).unwrap();
    drop(opened);
    assert_eq!(format_of(&folder), FORMAT);
}

#[test]
fn the_domains_of_an_earlier_version_are_all_that_is_held() {
    let folder = Folder::new("earlier");
    let opened = folder.open().unwrap();
    commit(&opened.database, &[Record::Epoch(1)], &[]).unwrap();
    let write = opened.database.begin_write().unwrap();
    let mut earlier = write.open_table(DOMAINS).unwrap();
    earlier.insert(("zone", "a"), true).unwrap();
    earlier.insert(("zone", "b"), false).unwrap();
    drop(earlier);
    write.commit().unwrap();
    drop(opened);
    let expected = [
        Record::Epoch(1),
        Record::Scope(HeldScope::Assigned),
        domain("a", Some(HeldDomain::default())),
    ];
    for _ in 0..2 {
        assert_eq!(folder.open().unwrap().records, expected);
    }
    assert_eq!(format_of(&folder), FORMAT);
}

#[test]
fn a_directory_has_one_number_for_its_life() {
    let folder = Folder::new("number");
    let number = folder.open().unwrap().directory;
    assert!(number != 0 && folder.open().unwrap().directory == number);
    let other = Folder::new("other-number");
    assert_ne!(other.open().unwrap().directory, number);
}

/// CO-14: refused until somebody says that its records are lost, and then only the epoch is left.
#[test]
fn a_superseded_directory_is_refused_until_its_records_are_lost() {
    let folder = Folder::new("superseded");
    let opened = folder.open().unwrap();
    let (number, epoch) = (opened.directory, opened.epoch);
    let written = [
        Record::Epoch(epoch),
        Record::Scope(HeldScope::Everything),
        Record::Superseded,
    ];
    commit(&opened.database, &written, &[]).unwrap();
    drop(opened);
    assert!(folder.refused().contains("--records-lost"));
    let wanted = Wanted {
        records_lost: true,
        ..Wanted::default()
    };
    let opened = open(&folder.0, wanted).unwrap();
    assert_eq!(opened.records, [Record::Epoch(epoch)]);
    assert_ne!(opened.directory, number);
    assert_eq!(opened.epoch, epoch + 1, "a refused start takes none");
    drop(opened);
    assert!(folder.open().is_ok());
}

#[test]
fn a_copy_is_refused_where_somebody_would_take_it_for_the_original() {
    let folder = Folder::new("original");
    drop(folder.open().unwrap());
    let copy = Folder::new("copied");
    std::fs::create_dir_all(&copy.0).unwrap();
    for name in ["shard.redb", "epoch"] {
        std::fs::copy(folder.file(name), copy.file(name)).unwrap();
    }
    let careful = Wanted {
        refuses_copies: true,
        ..Wanted::default()
    };
    let refused = open(&copy.0, careful).err().unwrap().to_string();
    assert!(refused.contains("is a copy"), "{refused}");
    assert!(open(&folder.0, careful).is_ok(), "the original is none");
    assert!(copy.open().is_ok(), "nobody above is told of it");
    let lost = Wanted {
        records_lost: true,
        ..careful
    };
    drop(open(&copy.0, lost).unwrap());
    assert!(
        open(&copy.0, careful).is_ok(),
        "it is a directory of its own now"
    );
}
