//! Bad input: the code and the words, nothing applied, nothing lost.

use bigfleet_coordinator_core::{
    Ack, AckOutcome, AdminRequest, Caller, Code, ExceptionFacts, ExceptionKind, Pool, RecordState,
    ReportFacts, Scope, Stamp, TransferFacts,
};

use crate::support::{One, two_shards};

type Spoil = fn(&mut ReportFacts);

/// Each line spoils a good report in one way.
fn spoiled() -> Vec<(&'static str, Spoil)> {
    fn transfer() -> TransferFacts {
        TransferFacts {
            id: "1-1".to_owned(),
            state: RecordState::Released,
            machines: vec!["m".to_owned()],
            peer: "s2".to_owned(),
            domain: String::new(),
            stamp: Stamp::default(),
            expires: None,
        }
    }
    fn exception() -> ExceptionFacts {
        ExceptionFacts {
            machine: "m".to_owned(),
            kind: ExceptionKind::Away,
            transfer: String::new(),
            peer: String::new(),
            domain: String::new(),
            stamp: Stamp::default(),
        }
    }
    fn ack() -> Ack {
        Ack {
            instruction: String::new(),
            outcome: AckOutcome::Accepted,
        }
    }
    vec![
        ("shard id `` is empty", |f| f.shard.clear()),
        ("shard id `a/b` is not a letter", |f| {
            f.shard = "a/b".to_owned()
        }),
        ("shard_epoch -1", |f| f.epoch = -1),
        ("cycle -5", |f| f.cycle = -5),
        ("coordinator_term_seen -1", |f| f.term_seen = -1),
        ("process is not 16", |f| f.process = "xyz".to_owned()),
        ("process is not 16", |f| {
            f.process = "+00000000000000f".to_owned()
        }),
        ("101 shortfalls, and there may be 100", |f| {
            let shortfall = bigfleet_coordinator_core::Shortfall {
                requirements: Vec::new(),
                deficit: Default::default(),
                priority: 0,
                age_cycles: 0,
                bucket: bigfleet_model::Bucket::UNSPECIFIED,
                constrained: false,
                fingerprint: String::new(),
                min_unit: Default::default(),
                whole_units: false,
            };
            f.shortfalls = vec![shortfall; 101];
        }),
        ("65 pools", |f| f.summary.pools = vec![Pool::default(); 65]),
        ("4097 acks", |f| f.acks = vec![ack(); 4097]),
        ("20001 clusters", |f| {
            f.clusters = vec!["c".to_owned(); 20_001]
        }),
        ("200001 domains", |f| {
            f.domains = vec!["z=a".to_owned(); 200_001]
        }),
        ("65 transfers", |f| f.transfers = vec![transfer(); 65]),
        ("65 capabilities", |f| {
            f.capabilities = vec![String::new(); 65]
        }),
        ("shard_address has 5000 bytes", |f| {
            f.address = "a".repeat(5000)
        }),
        ("provider_address has 5000", |f| {
            f.provider = "a".repeat(5000)
        }),
        ("domain `zone` is not of the form", |f| {
            f.domains = vec!["zone".to_owned()]
        }),
        ("topology value `` is empty", |f| {
            f.domains = vec!["zone=".to_owned()]
        }),
        ("an id must not be empty", |f| {
            f.exceptions = vec![ExceptionFacts {
                machine: String::new(),
                ..exception()
            }];
        }),
        ("a machine has two exceptions", |f| {
            f.exceptions = vec![exception(); 2]
        }),
        ("a transfer has two records", |f| {
            f.transfers = vec![transfer(); 2]
        }),
        ("a transfer has no other side", |f| {
            f.transfers = vec![TransferFacts {
                peer: "s1".to_owned(),
                ..transfer()
            }];
        }),
        ("a transfer has no other side", |f| {
            f.transfers = vec![TransferFacts {
                peer: String::new(),
                ..transfer()
            }];
        }),
        ("51 machines in a transfer", |f| {
            f.transfers = vec![TransferFacts {
                machines: vec!["m".to_owned(); 51],
                ..transfer()
            }];
        }),
        ("scope WAIT is an answer", |f| f.scope = Some(Scope::Wait)),
        ("domains_digest is not a SHA-256", |f| {
            f.digest = vec![0; 31]
        }),
        ("and no scope", |f| f.scope = None),
        ("and there is no scope", |f| {
            (f.scope, f.digest) = (None, Vec::new());
            f.domains = vec!["zone=a".to_owned()];
        }),
    ]
}

#[test]
fn a_report_that_cannot_be_read_changes_nothing() {
    let mut one = One::new(None);
    let (mut s1, _s2) = two_shards(&mut one);
    let seen = |one: &One| {
        let shown = one.core.read(&Caller::Unverified).unwrap();
        (one.core.tables().clone(), shown.reports(one.now, None))
    };
    let before = seen(&one);
    for (words, spoil) in spoiled() {
        let mut facts = s1.report();
        spoil(&mut facts);
        let refused = one.take(facts).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{words}");
        assert!(
            refused.to_string().contains(words),
            "{refused}, not {words}"
        );
        assert_eq!(seen(&one), before, "{words}");
    }
    one.take(s1.report()).unwrap();
}

#[test]
fn admins_are_told_what_is_wrong() {
    let mut one = One::new(None);
    let _shards = two_shards(&mut one);
    one.assign("a", "s1").unwrap();
    let before = one.core.tables().clone();
    let assign = |key: &str, value: &str, shard: &str| AdminRequest::AssignDomain {
        key: key.to_owned(),
        value: value.to_owned(),
        shard: shard.to_owned(),
    };
    let remove = |shard: &str| AdminRequest::RemoveShard {
        shard: shard.to_owned(),
        gone: false,
    };
    let unassign = |key: &str, value: &str| AdminRequest::UnassignDomain {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let wrong = [
        (
            assign("", "a", "s1"),
            Code::InvalidArgument,
            "topology key `` is empty",
        ),
        (
            assign("zone", "", "s1"),
            Code::InvalidArgument,
            "topology value `` is empty",
        ),
        (
            assign("zone", "a", ""),
            Code::InvalidArgument,
            "shard id `` is empty",
        ),
        (
            assign("zone", "a", "-"),
            Code::InvalidArgument,
            "shard id `-` is not",
        ),
        (
            assign("zo=ne", "a", "s1"),
            Code::InvalidArgument,
            "contains `=`",
        ),
        (
            assign("zone", "b", "s9"),
            Code::NotFound,
            "shard s9 is not registered",
        ),
        (
            assign("zone", "a", "s2"),
            Code::AlreadyExists,
            "assigned to shard s1",
        ),
        (unassign("", "a"), Code::InvalidArgument, "topology key"),
        (
            unassign("zone", ""),
            Code::InvalidArgument,
            "topology value",
        ),
        (remove(""), Code::InvalidArgument, "shard id `` is empty"),
        (remove("s9"), Code::NotFound, "shard s9 is not registered"),
        (
            AdminRequest::FinishRestore,
            Code::Aborted,
            "no restore to finish",
        ),
    ];
    for (request, code, words) in wrong {
        let refused = one.ask(request).unwrap_err();
        assert_eq!(refused.code(), code, "{words}");
        assert!(
            refused.to_string().contains(words),
            "{refused}, not {words}"
        );
        assert_eq!(*one.core.tables(), before, "{words}");
    }
    let reader = Caller::Named("bigfleet://readonly".to_owned());
    let refused = one.core.admin(one.now, &reader, &assign("", "", ""));
    let refused = refused.unwrap_err();
    assert_eq!(
        refused.code(),
        Code::PermissionDenied,
        "before the arguments"
    );
    let words = "this needs bigfleet://admin, and the certificate presented is bigfleet://readonly";
    assert_eq!(refused.to_string(), words);
    assert!(one.core.read(&reader).is_ok());
}

/// A peer that registers shard after shard fills the table, and nothing else.
#[test]
fn there_is_room_for_so_many_shards() {
    let mut one = One::new(None);
    for number in 0..4096 {
        let mut shard = crate::shard::Shard::new(&format!("s{number}"), "p:1");
        one.take(shard.report()).unwrap();
    }
    let mut last = crate::shard::Shard::new("one-too-many", "p:1");
    let refused = one.take(last.report()).unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.to_string().contains("4096 shards"), "{refused}");
    let mut known = crate::shard::Shard::new("s7", "p:1");
    known.cycle = 1;
    one.take(known.report()).unwrap();
}
