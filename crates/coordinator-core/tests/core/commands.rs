//! Every command: what it does, when it does nothing, when it is refused, and by which code.

use bigfleet_coordinator_core::{
    AdminRequest, Applied, Code, Command, Domain, Identity, Provider, Refused, Tables,
};
use bigfleet_model::{ClusterId, Time};

use crate::support::{One, machine, shard, two_shards, zone};

fn add(id: &str) -> Command {
    Command::AddShard {
        shard: shard(id),
        address: format!("{id}:7780"),
        registered_at: Time::from_nanos(7),
    }
}

fn bind(cluster: &str, to: &str) -> Command {
    Command::BindCluster {
        cluster: ClusterId::new(cluster).unwrap(),
        shard: shard(to),
    }
}

fn assign(value: &str, to: &str) -> Command {
    Command::AssignDomain {
        domain: zone(value),
        shard: shard(to),
    }
}

fn remove(id: &str, gone: bool) -> Command {
    let shard = shard(id);
    Command::RemoveShard { shard, gone }
}

/// The code and the words of a refusal, and that nothing changed by it.
fn refused(one: &mut One, command: Command) -> (Code, String) {
    let before = one.core.tables().clone();
    let refused = one.apply(command).unwrap_err();
    assert_eq!(
        *one.core.tables(),
        before,
        "what is refused changes nothing"
    );
    (refused.code(), refused.to_string())
}

#[test]
fn a_shard_is_added_once() {
    let mut one = One::new(None);
    assert_eq!(one.apply(add("s1")), Ok(Applied::Changed));
    let again = refused(&mut one, add("s1"));
    assert_eq!(
        again,
        (Code::AlreadyExists, "shard s1 is registered".to_owned())
    );
}

#[test]
fn a_cluster_stays_where_it_was_first_seen() {
    let mut one = One::new(None);
    let unknown = refused(&mut one, bind("c", "s1"));
    assert_eq!(
        unknown,
        (Code::NotFound, "shard s1 is not registered".to_owned())
    );
    one.apply(add("s1")).unwrap();
    one.apply(add("s2")).unwrap();
    assert_eq!(one.apply(bind("c", "s1")), Ok(Applied::Changed));
    assert_eq!(one.apply(bind("c", "s1")), Ok(Applied::Nothing));
    let (code, words) = refused(&mut one, bind("c", "s2"));
    assert_eq!(code, Code::AlreadyExists);
    assert_eq!(words, "cluster c is bound to shard s1, not to s2");
}

#[test]
fn a_domain_is_assigned_to_one_shard() {
    let mut one = One::new(None);
    assert_eq!(refused(&mut one, assign("a", "s1")).0, Code::NotFound);
    one.apply(add("s1")).unwrap();
    one.apply(add("s2")).unwrap();
    assert_eq!(one.apply(assign("a", "s1")), Ok(Applied::Changed));
    assert_eq!(one.apply(assign("a", "s1")), Ok(Applied::Nothing));
    let (code, words) = refused(&mut one, assign("a", "s2"));
    assert_eq!(code, Code::AlreadyExists);
    assert!(words.contains("assigned to shard s1, not to s2"), "{words}");
    let moved = Command::MoveDomain {
        domain: zone("a"),
        to: shard("s2"),
    };
    assert_eq!(one.apply(moved.clone()), Ok(Applied::Changed));
    assert_eq!(one.apply(moved.clone()), Ok(Applied::Nothing));
    let unassign = Command::UnassignDomain { domain: zone("a") };
    assert_eq!(one.apply(unassign.clone()), Ok(Applied::Changed));
    assert_eq!(one.apply(unassign), Ok(Applied::Nothing));
    assert_eq!(
        refused(&mut one, moved).0,
        Code::NotFound,
        "nothing to move"
    );
    let nowhere = Command::MoveDomain {
        domain: zone("b"),
        to: shard("s9"),
    };
    assert_eq!(refused(&mut one, nowhere).0, Code::NotFound);
}

/// Two keys on one provider would give a machine with both labels two owners.
#[test]
fn domains_of_one_provider_have_one_key() {
    let mut one = One::new(None);
    let _shards = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    let rack = |to: &str| Command::AssignDomain {
        domain: Domain::new("rack", "1").unwrap(),
        shard: shard(to),
    };
    for to in ["s1", "s2"] {
        let (code, words) = refused(&mut one, rack(to));
        assert_eq!(code, Code::InvalidArgument);
        assert!(
            words.contains("domains of p:1 have the key zone"),
            "{words}"
        );
    }
    one.unassign("a");
    assert_eq!(
        one.apply(rack("s2")),
        Ok(Applied::Changed),
        "nobody has one"
    );
}

/// The cascade: what points at the shard goes, what it may still act on stays (CO-51).
#[test]
fn a_removed_shard_may_still_run() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    one.apply(bind("c", "s1")).unwrap();
    one.remove("s1", false).unwrap();
    let snapshot = one.core.tables().snapshot();
    assert_eq!(snapshot.shards.len(), 1);
    assert_eq!(snapshot.clusters, []);
    assert_eq!(
        snapshot.identities.len(),
        2,
        "a later copy of it is still known"
    );
    assert_eq!(one.holder("a").as_deref(), Some("s1"));
    assert_eq!(refused(&mut one, remove("s1", false)).0, Code::NotFound);
    one.assign("a", "s2").unwrap();
    one.rounds(&mut s2, 3);
    assert!(
        !s2.acts_on(&machine("a1")),
        "given to nobody until s1 let go"
    );
    one.rounds(&mut s1, 3);
    s1.let_go();
    one.round(&mut s1);
    one.rounds(&mut s2, 2);
    assert!(s2.acts_on(&machine("a1")));
}

/// CO-52: an admin's word that it will not run again frees what it has.
#[test]
fn a_shard_that_is_gone_holds_nothing() {
    let mut one = One::new(None);
    let (mut s1, mut s2) = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    one.rounds(&mut s1, 2);
    let alive = one.remove("s1", true).unwrap_err();
    assert_eq!(alive.code(), Code::Aborted);
    assert!(alive.to_string().contains("reported 0 s ago"), "{alive}");
    one.now = one.now + std::time::Duration::from_secs(600);
    one.remove("s1", true).unwrap();
    assert_eq!(one.apply(remove("s1", true)), Ok(Applied::Nothing));
    assert_eq!(one.holder("a"), None);
    one.assign("a", "s2").unwrap();
    one.rounds(&mut s2, 2);
    assert!(s2.acts_on(&machine("a1")));
    let back = one.take(s1.report()).unwrap_err();
    assert_eq!(back, Refused::ShardGone(shard("s1")), "its id is used up");
    assert_eq!(back.code(), Code::AlreadyExists);
    assert_eq!(refused(&mut one, add("s1")).0, Code::AlreadyExists);
    assert_eq!(refused(&mut one, assign("b", "s1")).0, Code::AlreadyExists);
    assert_eq!(refused(&mut one, remove("s9", true)).0, Code::NotFound);
}

/// CO-11, CO-12.
#[test]
fn reigns_only_rise() {
    let mut tables = One::new(None);
    let begin = |floor| Command::BeginReign { floor };
    assert_eq!(tables.apply(begin(0)), Ok(Applied::Reign(2)));
    assert_eq!(tables.apply(begin(1)), Ok(Applied::Reign(3)));
    assert_eq!(tables.apply(begin(9)), Ok(Applied::Reign(10)));
    assert_eq!(
        tables.apply(begin(1 << 40)),
        Ok(Applied::Reign(11)),
        "too far"
    );
}

#[test]
fn a_consensus_group_has_one_name() {
    let mut one = One::new(None);
    let name = |id: &str, generation| Command::SetCluster {
        id: id.to_owned(),
        generation,
    };
    assert_eq!(one.apply(name("u1", 1)), Ok(Applied::Changed));
    assert_eq!(one.apply(name("u1", 1)), Ok(Applied::Nothing));
    assert_eq!(one.apply(name("u1", 2)), Ok(Applied::Changed));
    assert_eq!(refused(&mut one, name("u2", 3)).0, Code::InvalidArgument);
    assert_eq!(one.core.tables().cluster(), Some("u1"));
    assert_eq!(one.core.tables().generation(), 2);
    one.ask(AdminRequest::PauseRebalancing(true)).unwrap();
    assert!(one.core.tables().is_rebalancing_paused());
}

/// CO-20: words of another reign, or of a process that was replaced, change nothing.
#[test]
fn words_count_in_their_reign_and_from_their_process() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let heard = |reign, epoch| Command::Heard {
        reign,
        shard: shard("s1"),
        identity: Identity {
            epoch,
            directory: Some(1),
            process: 1,
        },
        facts: Default::default(),
    };
    one.round(&mut s1);
    assert!(one.apply(heard(1, 1)).is_ok());
    assert_eq!(refused(&mut one, heard(2, 1)).0, Code::Unavailable);
    assert_eq!(refused(&mut one, heard(1, 2)).0, Code::AlreadyExists);
}

/// The numbers of the log: 6 and 7 stay retired.
#[test]
fn kinds_have_their_numbers() {
    let commands = [
        add("s"),
        remove("s", false),
        bind("c", "s"),
        assign("a", "s"),
        Command::UnassignDomain { domain: zone("a") },
        Command::MoveDomain {
            domain: zone("a"),
            to: shard("s"),
        },
        Command::SetIdentity {
            shard: shard("s"),
            identity: Identity {
                epoch: 1,
                directory: None,
                process: 0,
            },
            has_records: false,
            address: String::new(),
            provider: Provider::of(&shard("s"), ""),
            registered_at: Time::ZERO,
        },
        Command::Heard {
            reign: 1,
            shard: shard("s"),
            identity: Identity {
                epoch: 1,
                directory: None,
                process: 0,
            },
            facts: Default::default(),
        },
        Command::BeginReign { floor: 0 },
        Command::FinishRestore {
            facts: Default::default(),
        },
        Command::SetRebalancePaused(true),
        Command::SetCluster {
            id: "u".to_owned(),
            generation: 1,
        },
    ];
    let kinds = commands.map(|command| command.kind());
    assert_eq!(kinds, [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!(Tables::default().revision(), 0);
}
