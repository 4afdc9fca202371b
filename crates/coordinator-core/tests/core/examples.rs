//! The examples of `docs/spec/coordinator.md` that concern the core, under their ids.

use bigfleet_coordinator_core::{Code, Scope, TransferState};

use crate::{
    shard::Shard,
    support::{One, machine, shard, shown, two_shards, zone},
};

/// EX-CO-11: a leader that comes back within its lease begins a reign of its own, and a report that was on its way is not heard.
#[test]
fn a_leader_that_comes_back_reigns_anew() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let under_way = s1.report();
    let reign = one.core.tables().reign();
    one.core.deposed();
    one.elect();
    assert_eq!(one.core.tables().reign(), reign + 1);
    let answer = one.take(under_way).unwrap();
    assert_eq!((answer.reign, answer.scope), (reign + 1, Scope::Wait));
    s1.hear(&answer);
    assert_eq!(one.round(&mut s1).scope, Scope::Assigned, "now it is heard");
}

/// EX-CO-12: a mark above the reign raises it; one that is absurdly high is counted and never heard.
#[test]
fn marks_raise_the_reign_within_reason() {
    let mut one = One::new(None);
    (0..6).for_each(|_| one.elect());
    assert_eq!(one.core.tables().reign(), 7);
    let mut s1 = Shard::new("s1", "p:1");
    s1.mark = 9;
    let answer = one.round(&mut s1);
    assert_eq!((answer.reign, answer.scope), (10, Scope::Wait));
    let mut one = One::new(None);
    (0..6).for_each(|_| one.elect());
    let mut liar = Shard::new("s2", "p:1");
    liar.mark = 1 << 40;
    for _ in 0..3 {
        let answer = one.take(liar.report()).unwrap();
        assert_eq!((answer.reign, answer.scope), (7, Scope::Wait));
    }
    assert_eq!(one.core.counters().floor_refused, 3);
}

/// A process that shows a higher mark with every report keeps nobody else from being heard.
#[test]
fn a_process_raises_the_reign_once() {
    let mut one = One::new(None);
    let (mut s1, mut liar) = two_shards(&mut one);
    for _ in 0..4 {
        liar.mark = one.core.tables().reign() + 1;
        one.take(liar.report()).unwrap();
        one.round(&mut s1);
    }
    assert_eq!(one.core.counters().floor_raised, 1);
    assert_eq!(one.round(&mut s1).scope, Scope::Assigned);
}

/// EX-CO-13: which process speaks for a shard.
#[test]
fn one_process_speaks_for_a_shard() {
    let mut one = One::new(None);
    let mut from = |epoch, directory, process, has_records: bool| {
        let mut s1 = Shard::new("s1", "p:1");
        (s1.epoch, s1.directory, s1.process) = (epoch, directory, process);
        s1.holdings = has_records.then(Default::default);
        let answer = one.take(s1.report());
        answer.map(drop).map_err(|refused| {
            assert_eq!(refused.code(), Code::AlreadyExists);
            refused.to_string()
        })
    };
    assert_eq!(from(5, 1, 1, true), Ok(()));
    assert_eq!(from(6, 1, 2, true), Ok(()));
    let earlier = from(5, 1, 1, true).unwrap_err();
    assert!(
        earlier.contains("with epoch 6: an earlier start"),
        "{earlier}"
    );
    assert!(
        from(6, 1, 9, true)
            .unwrap_err()
            .contains("both are at work")
    );
    let other = from(7, 2, 3, true).unwrap_err();
    assert!(other.contains("different data directories"), "{other}");
    assert_eq!(from(7, 2, 3, false), Ok(()));
    assert!(from(8, 1, 4, true).is_err());
}

/// EX-CO-19: a domain is moved while its grant is on the way; a report from before that grant does not say it was let go.
#[test]
fn an_old_report_frees_nothing() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    let before = s1.report();
    let answer = one.take(s1.report()).unwrap();
    assert_eq!(shown(&answer), "ASSIGNED assign zone=a");
    one.move_to("a", "s2").unwrap();
    assert_eq!(shown(&one.take(before).unwrap()), "WAIT");
    assert_eq!(one.holder("a").as_deref(), Some("s1"));
    s1.hear(&answer);
    one.rounds(&mut s2, 2);
    assert!(s1.acts_on(&machine("a1")) && !s2.acts_on(&machine("a1")));
    one.rounds(&mut s1, 2);
    s1.let_go();
    one.round(&mut s1);
    one.round(&mut s2);
    assert!(!s1.acts_on(&machine("a1")) && s2.acts_on(&machine("a1")));
}

/// EX-CO-20: a machine on its way keeps out of a domain that changes hands meanwhile.
#[test]
fn a_machine_on_its_way_is_foreign_to_a_new_holder() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    let mut s3 = Shard::new("s3", "p:1");
    one.rounds(&mut s3, 2);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    let stamp = one.core.stamp().unwrap();
    s1.release("1-1", &machine("a1"), &shard("s2"), stamp);
    one.rounds(&mut s1, 2);
    let snapshot = one.core.tables().snapshot();
    assert_eq!(snapshot.machines[0].1.owner, shard("s2"));
    assert_eq!(snapshot.transfers[0].1.state, TransferState::Moving);
    one.move_to("a", "s3").unwrap();
    one.rounds(&mut s1, 2);
    s1.let_go();
    one.rounds(&mut s1, 2);
    let answer = one.round(&mut s3);
    assert_eq!(shown(&answer), "ASSIGNED foreign a1 assign zone=a");
    assert!(s3.acts_on(&machine("a2")) && !s3.acts_on(&machine("a1")));
    assert_eq!(shown(&one.round(&mut s2)), "ASSIGNED claim a1");
    assert!(s2.acts_on(&machine("a1")));
    one.rounds(&mut s2, 3);
    one.rounds(&mut s1, 3);
    let snapshot = one.core.tables().snapshot();
    assert_eq!(snapshot.transfers, [], "both sides have closed it");
    assert_eq!(
        snapshot.machines[0].1.owner,
        shard("s2"),
        "it stays a guest"
    );
    assert!(s1.records.is_empty() && s2.records.is_empty());
}

/// EX-CO-22: a recipient whose disk is lost has its domains and its guests back with the second report.
#[test]
fn a_lost_disk_is_told_everything_again() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.assign("b", "s2").unwrap();
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 2);
    let stamp = one.core.stamp().unwrap();
    s1.release("1-1", &machine("a1"), &shard("s2"), stamp);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 4);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 2);
    assert!(s2.acts_on(&machine("a1")));
    assert_eq!(one.core.tables().snapshot().transfers, []);
    s2.lose_disk();
    assert!(!s2.acts_on(&machine("a1")));
    assert_eq!(shown(&one.round(&mut s2)), "WAIT");
    let answer = one.round(&mut s2);
    assert_eq!(shown(&answer), "ASSIGNED assign zone=b claim a1");
    assert!(s2.acts_on(&machine("a1")) && s2.acts_on(&machine("b1")));
    assert!(!s1.acts_on(&machine("a1")), "nobody else had it");
}

/// EX-CO-46: a copy from before two transfers that have both ended; one side has not closed the second.
#[test]
fn a_machine_that_came_home_is_not_claimed_again() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    let copy = one.core.tables().snapshot();
    let stamp = one.core.stamp().unwrap();
    s1.release("1-7", &machine("a1"), &shard("s2"), stamp);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 3);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 1);
    let stamp = one.core.stamp().unwrap();
    s2.release("1-9", &machine("a1"), &shard("s1"), stamp);
    one.rounds(&mut s2, 2);
    one.rounds(&mut s1, 2);
    assert!(s1.acts_on(&machine("a1")));
    assert!(!s2.records.is_empty(), "s2 has not heard that it is over");
    let mut one = crate::restoring::restored(copy);
    crate::restoring::finish(&mut one, &mut [&mut s1, &mut s2]);
    let snapshot = one.core.tables().snapshot();
    assert_eq!(snapshot.machines, [], "it is at home");
    let answer = one.round(&mut s1);
    assert_eq!(answer.instructions, [], "no claim: {}", shown(&answer));
    one.rounds(&mut s2, 3);
    one.rounds(&mut s1, 3);
    assert!(s1.acts_on(&machine("a1")) && !s2.acts_on(&machine("a1")));
    assert_eq!(one.core.tables().snapshot().transfers, []);
    assert!(s1.covers(Some(&zone("a"))));
}
