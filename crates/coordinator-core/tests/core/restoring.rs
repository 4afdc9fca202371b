//! A backup put back: nothing is told before every shard was heard, and then shards are believed.

use bigfleet_coordinator_core::{
    AdminRequest, Code, Command, Refused, Scope, Snapshot, TERM_BUMP, Tables,
};

use crate::{
    shard::Shard,
    support::{One, machine, shard, two_shards},
};

/// A leader over a backup.
pub(crate) fn restored(copy: Snapshot) -> One {
    let tables = Tables::from_snapshot(copy.begin_restore(TERM_BUMP)).unwrap();
    One::with(None, tables, 1000)
}

/// Every shard reports until it was heard, and the restore is finished.
pub(crate) fn finish(one: &mut One, shards: &mut [&mut Shard]) {
    for shard in shards {
        for _ in 0..3 {
            assert_eq!(one.round(shard).scope, Scope::Wait);
        }
    }
    one.ask(AdminRequest::FinishRestore).unwrap();
}

#[test]
fn nothing_is_told_until_everybody_was_heard() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    let copy = one.core.tables().snapshot();
    // What the backup does not know: the domain went to s2.
    one.move_to("a", "s2").unwrap();
    one.rounds(&mut s1, 2);
    s1.let_go();
    one.round(&mut s1);
    one.rounds(&mut s2, 2);
    assert!(s2.acts_on(&machine("a1")));

    let mut one = restored(copy);
    assert!(one.core.tables().is_restored());
    assert_eq!(one.core.tables().generation(), 1);
    assert!(
        s1.mark < one.core.tables().reign(),
        "above whatever was heard"
    );
    assert_eq!(one.round(&mut s1).scope, Scope::Wait);
    let early = one.ask(AdminRequest::FinishRestore).unwrap_err();
    assert_eq!(early, Refused::NotHeard(vec![shard("s1"), shard("s2")]));
    assert_eq!(early.code(), Code::Aborted);
    one.rounds(&mut s1, 2);
    let early = one.ask(AdminRequest::FinishRestore).unwrap_err();
    assert_eq!(early, Refused::NotHeard(vec![shard("s2")]));
    one.rounds(&mut s2, 3);
    one.ask(AdminRequest::FinishRestore).unwrap();
    assert!(!one.core.tables().is_restored());
    assert_eq!(
        one.holder("a").as_deref(),
        Some("s2"),
        "who holds it says so"
    );

    // The backup wants it back at s1, and gets it in the ordinary way.
    one.rounds(&mut s1, 2);
    assert!(!s1.acts_on(&machine("a1")));
    one.rounds(&mut s2, 2);
    s2.let_go();
    one.rounds(&mut s2, 2);
    one.round(&mut s1);
    assert!(s1.acts_on(&machine("a1")) && !s2.acts_on(&machine("a1")));
}

#[test]
fn a_shard_that_is_gone_is_not_waited_for() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let copy = one.core.tables().snapshot();
    let mut one = restored(copy);
    one.rounds(&mut s1, 3);
    assert!(one.ask(AdminRequest::FinishRestore).is_err());
    one.remove("s2", true).unwrap();
    one.ask(AdminRequest::FinishRestore).unwrap();
    let again = one.ask(AdminRequest::FinishRestore).unwrap_err();
    assert_eq!(again, Refused::NotRestored);
}

/// A guest whose transfer the backup does not know stays where it is.
#[test]
fn guests_are_believed() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    let copy = one.core.tables().snapshot();
    let stamp = one.core.stamp().unwrap();
    s1.release("1-1", &machine("a1"), &shard("s2"), stamp);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 3);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 1);
    let mut one = restored(copy);
    finish(&mut one, &mut [&mut s1, &mut s2]);
    let rows = one.core.tables().snapshot().machines;
    assert_eq!(rows[0].1.owner, shard("s2"));
    one.rounds(&mut s1, 3);
    one.rounds(&mut s2, 3);
    assert!(s2.acts_on(&machine("a1")) && !s1.acts_on(&machine("a1")));
}

#[test]
fn words_cannot_be_taken_while_restored() {
    let mut one = One::new(None);
    let (s1, _s2) = two_shards(&mut one);
    let mut one = restored(one.core.tables().snapshot());
    let heard = Command::Heard {
        reign: one.core.tables().reign(),
        shard: s1.id.clone(),
        identity: bigfleet_coordinator_core::Identity {
            epoch: s1.epoch,
            directory: Some(s1.directory),
            process: s1.process,
        },
        facts: Default::default(),
    };
    assert_eq!(one.apply(heard), Err(Refused::Restored));
}
