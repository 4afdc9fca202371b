//! Words, numbers and refusals: what files, metrics, logs and other programs know them by.
//!
//! A text that changes here breaks a reader somewhere else, so each is written down.

#![allow(clippy::unwrap_used, reason = "a test says so by panicking")]

use bigfleet_model::{
    Action, ActionKind, Amounts, Breach, CapacityType, Claim, ClusterId, Decision, Dimension,
    Echoed, Fingerprint, Group, Host, IdRefused, Inventory, MAX_ID_BYTES, Machine, MachineFacts,
    MachineId, MachineRefused, MatchingSupply, Need, NeedKey, Operator, QuantityProblem,
    QuantityRefused, Reason, Restamp, RowFacts, RowRefused, Skipped, State, StateNumber, Terms,
    Time, UnmetReason, Verdict, Via, WhenUnsatisfiable, WriteRefused, shown,
};
use std::{collections::BTreeMap, sync::Arc};

fn id(text: &str) -> MachineId {
    MachineId::new(text).unwrap()
}

fn key(cluster: &str, fingerprint: &str, group: &str) -> NeedKey {
    NeedKey {
        cluster: ClusterId::new(cluster).unwrap(),
        fingerprint: Fingerprint::new(fingerprint),
        group: Group::new(group),
    }
}

#[test]
fn every_state_has_its_number_word_and_nature() {
    use State::*;
    // Rests until someone acts; serves or is made to; can be meant for a Need by intent.
    for (state, number, word, nature) in [
        (Speculative, 1, "Speculative", [true, false, false]),
        (Creating, 2, "Creating", [false, false, true]),
        (Idle, 3, "Idle", [true, false, true]),
        (Configuring, 4, "Configuring", [false, true, false]),
        (Configured, 5, "Configured", [true, true, false]),
        (Draining, 6, "Draining", [false, false, true]),
        (Deleting, 7, "Deleting", [false, false, false]),
        (Failed, 8, "Failed", [false, false, false]),
    ] {
        assert_eq!((state.number(), state.word()), (number, word));
        assert_eq!(State::from_number(number), Some(state));
        assert_eq!(state.to_string(), word);
        assert_eq!(StateNumber::from(state), StateNumber(number));
        let is = [state.is_stable(), state.is_bound(), state.may_hold_intent()];
        assert_eq!(is, nature, "{state}");
    }
    assert_eq!((State::from_number(0), State::from_number(9)), (None, None));
}

/// ST-1, DC-7: the whole table.
#[test]
fn every_edge_is_in_the_table() {
    use State::*;
    let edges = |via| {
        let all = State::ALL.into_iter().flat_map(|from| {
            State::ALL
                .into_iter()
                .filter(move |to| from.may_become(*to, via))
                .map(move |to| (from, to))
        });
        all.collect::<Vec<_>>()
    };
    let steps = [
        (Speculative, Creating),
        (Creating, Idle),
        (Creating, Failed),
        (Idle, Configuring),
        (Idle, Deleting),
        (Configuring, Idle),
        (Configuring, Configured),
        (Configuring, Failed),
        (Configured, Draining),
        (Draining, Idle),
        (Draining, Failed),
        (Deleting, Speculative),
        (Deleting, Failed),
    ];
    assert_eq!(edges(Via::Step), steps);
    let back = [
        (Creating, Speculative),
        (Draining, Configured),
        (Deleting, Idle),
    ];
    assert_eq!(edges(Via::Rollback), back);
    assert_eq!(edges(Via::Adoption).len(), 8 * 7, "any other state");
    assert!(!Idle.may_become(Idle, Via::Adoption));
}

#[test]
fn every_action_has_its_word_and_its_way() {
    use State::*;
    for (kind, word, way) in [
        (
            ActionKind::Bootstrap,
            "Bootstrap",
            [Idle, Configuring, Configured],
        ),
        (
            ActionKind::Provision,
            "Provision",
            [Speculative, Creating, Idle],
        ),
        (ActionKind::Preempt, "Preempt", [Configured, Draining, Idle]),
        (ActionKind::Reclaim, "Reclaim", [Configured, Draining, Idle]),
        (ActionKind::Delete, "Delete", [Idle, Deleting, Speculative]),
    ] {
        assert_eq!(kind.word(), word);
        assert_eq!([kind.source(), kind.transitional(), kind.target()], way);
    }
    for (reason, text) in [
        (Reason::Idle, "phase1.idle"),
        (Reason::Speculative, "phase1.speculative"),
        (Reason::Promised, "phase1.promised"),
        (Reason::Inversion, "phase2.inversion"),
        (Reason::Excess, "phase3.excess"),
        (Reason::Leaving, "phase3.leaving"),
        (Reason::Release, "phase3.release"),
    ] {
        assert_eq!(reason.text(), text);
    }
    for (reason, text) in [
        (UnmetReason::Unspecified, "UNSPECIFIED"),
        (UnmetReason::PriorityStarved, "PRIORITY_STARVED"),
        (UnmetReason::NoMatchingSupply, "NO_MATCHING_SUPPLY"),
        (UnmetReason::TopologyUnsatisfiable, "TOPOLOGY_UNSATISFIABLE"),
        (UnmetReason::PreemptionExhausted, "PREEMPTION_EXHAUSTED"),
        (UnmetReason::SpreadUnsatisfiable, "SPREAD_UNSATISFIABLE"),
    ] {
        assert_eq!(reason.text(), text);
    }
}

#[test]
fn words_and_numbers_of_the_wire_go_together() {
    let operators = Operator::ALL.map(|one| (one.number(), one.word()));
    assert_eq!(
        operators,
        [
            (1, "In"),
            (2, "NotIn"),
            (3, "Exists"),
            (4, "DoesNotExist"),
            (5, "Same")
        ]
    );
    for operator in Operator::ALL {
        assert_eq!(Operator::from_number(operator.number()), Some(operator));
    }
    assert_eq!(Operator::from_number(6), None);
    let types = CapacityType::ALL.map(|one| (one.number(), one.word()));
    assert_eq!(
        types,
        [
            (0, "Unspecified"),
            (1, "BareMetal"),
            (2, "Reserved"),
            (3, "OnDemand"),
            (4, "Spot")
        ]
    );
    let when = WhenUnsatisfiable::ALL.map(|one| (one.number(), one.word()));
    assert_eq!(
        when,
        [
            (0, "Unspecified"),
            (1, "DoNotSchedule"),
            (2, "ScheduleAnyway")
        ]
    );
}

#[test]
fn every_breach_of_the_grid_says_which_rule() {
    for (breach, text) in [
        (
            Breach::Id(IdRefused::Empty),
            "an id must not be empty (ST-5)",
        ),
        (
            Breach::Cluster(IdRefused::TooLong(513)),
            "cluster: an id of 513 bytes is longer than the 512 allowed (ST-5)",
        ),
        (
            Breach::HostGiven(State::Creating),
            "state Creating must have no host (ST-5)",
        ),
        (
            Breach::ClusterGiven(State::Creating, "a".to_owned()),
            "state Creating must have no cluster, but has \"a\" (ST-5)",
        ),
        (
            Breach::NoHost(State::Idle),
            "state Idle needs a host (ST-5)",
        ),
        (
            Breach::NoCluster(State::Draining),
            "state Draining needs a cluster (ST-5)",
        ),
        (Breach::NoError, "state Failed needs a last_error (ST-5)"),
        (
            Breach::UnknownState(StateNumber(9)),
            "State(9) is not a state (ST-5)",
        ),
        (
            Breach::IntentGiven(State::Failed),
            "state Failed cannot have an intent (model.md §1)",
        ),
    ] {
        assert_eq!(breach.label(), "structural");
        assert_eq!(breach.to_string(), text);
    }
    let price = Breach::Price(-1.0);
    assert_eq!(price.label(), "price");
    let refused = MachineRefused {
        id: "m1".to_owned(),
        breach: price,
    };
    assert_eq!(
        refused.to_string(),
        "machine \"m1\": price_per_hour -1 is not a finite non-negative number (ST-5)"
    );
    let chance = Breach::Probability(2.0);
    assert_eq!(chance.label(), "interruption_probability");
    assert_eq!(
        chance.to_string(),
        "interruption_probability 2 is not between 0 and 1 (ST-5)"
    );
}

#[test]
fn every_refusal_of_a_row_says_which_rule() {
    let malformed = QuantityRefused {
        text: "1x".to_owned(),
        problem: QuantityProblem::Malformed,
    };
    for (refused, text) in [
        (
            RowRefused::Bucket("b", 28),
            "b 28 is not a penalty bucket, 0 to 27 (NT-6)",
        ),
        (
            RowRefused::Quantity("f", "cpu".to_owned(), malformed),
            "f[\"cpu\"]: quantity \"1x\" is malformed (Q-1)",
        ),
        (
            RowRefused::Resource("f", String::new()),
            "f: \"\" is not a resource name (NT-6)",
        ),
        (
            RowRefused::Operator("k".to_owned(), "o".to_owned()),
            "requirement on \"k\": \"o\" is not an operator (NT-6)",
        ),
        (
            RowRefused::RequirementKey,
            "a requirement has an empty key (NT-6)",
        ),
        (
            RowRefused::TopologyKey,
            "a spread has an empty topology_key (NT-6)",
        ),
        (
            RowRefused::Skew("k".to_owned(), 0),
            "spread on \"k\": max_skew 0 is not from 1 to 2147483647 (NT-6)",
        ),
        (
            RowRefused::Sum,
            "the sum of equal rows is too large to count (Q-3)",
        ),
    ] {
        assert_eq!(refused.to_string(), text);
    }
    let quantity = |problem| QuantityRefused {
        text: "q".to_owned(),
        problem,
    };
    assert_eq!(
        quantity(QuantityProblem::Negative).to_string(),
        "quantity \"q\" is negative (Q-5)"
    );
    assert_eq!(
        quantity(QuantityProblem::TooLarge).to_string(),
        "quantity \"q\" is too large (Q-3)"
    );
}

#[test]
fn a_refused_write_says_which_machine_and_why() {
    let mut inventory = Inventory::default();
    let machine = |name: &str| Machine::new(MachineFacts::new(name, State::Speculative)).unwrap();
    inventory.insert(machine("m1"), Time::default()).unwrap();
    let again = inventory.insert(machine("m1"), Time::default());
    assert_eq!(
        again.unwrap_err().to_string(),
        "machine m1 exists already (INV-1)"
    );
    let unknown = inventory.apply(machine("m2"), Via::Step, Time::default());
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "machine m2 is not known (INV-1)"
    );
    let edge = |via| WriteRefused::Transition {
        id: id("m1"),
        from: State::Idle,
        to: State::Failed,
        via,
    };
    assert_eq!(
        edge(Via::Step).to_string(),
        "machine m1: Idle does not become Failed (ST-1)"
    );
    assert_eq!(
        edge(Via::Rollback).to_string(),
        "machine m1: Idle does not roll back to Failed (DC-7)"
    );
}

#[test]
fn names_are_shown_as_they_are_and_hostile_ones_escaped() {
    assert_eq!(key("a", "f", "").to_string(), "a/f");
    assert_eq!(key("a", "f", "g\0").to_string(), "a/f/g\\0");
    assert_eq!(format!("{:?}", id("m1")), "\"m1\"");
    assert_eq!(shown(&"x".repeat(80)), "x".repeat(80));
    assert_eq!(shown(&"x".repeat(81)), "x".repeat(80) + "…");
    assert!(MachineId::new(&"m".repeat(MAX_ID_BYTES)).is_ok());
    assert!(Group::new("").is_empty() && !Group::new("g").is_empty());
    assert_eq!(
        IdRefused::TooLong(600).to_string(),
        "an id of 600 bytes is longer than the 512 allowed"
    );
    let skipped = Skipped {
        key: "k",
        value: "v".to_owned(),
    };
    assert_eq!(
        skipped.to_string(),
        "metadata k: value \"v\" is malformed and was skipped (MD-2)"
    );
    let echoed = Echoed::new([("a", "1"), ("b", "2")].into_iter());
    assert_eq!(format!("{echoed:?}"), r#"{"a": "1", "b": "2"}"#);
    let amounts = Amounts::from_entries([(Dimension::new("cpu").unwrap(), 1500)]);
    assert_eq!(format!("{amounts:?}"), r#"{"cpu": "1500m"}"#);
}

#[test]
#[should_panic(expected = "keys in order")]
fn echoed_keys_come_in_order() {
    drop(Echoed::new([("b", "1"), ("a", "2")].into_iter()));
}

#[test]
fn a_host_is_none_only_if_both_parts_are_empty() {
    let host = |provider: &str, reference: &str| Host {
        provider: provider.to_owned(),
        reference: reference.to_owned(),
    };
    assert!(host("", "").is_empty());
    assert!(!host("p", "").is_empty());
    assert!(!host("", "h").is_empty());
}

fn verdict() -> Verdict {
    let row = RowFacts {
        aggregate: BTreeMap::from([("cpu".to_owned(), "3".to_owned())]),
        ..RowFacts::default()
    };
    let amounts = |milli| Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)]);
    Verdict {
        need: Arc::new(Need {
            cluster: ClusterId::new("a").unwrap(),
            row: row.check().unwrap(),
            arrival: None,
            parked: false,
        }),
        satisfied: false,
        residual: amounts(7),
        claimed: 1,
        bootstrap: 2,
        provision: 3,
        same_domain: "d".to_owned(),
        same_satisfiable: false,
        parked: false,
        victims_found: 4,
        capacity_freed: amounts(9),
        unmet_reason: UnmetReason::PriorityStarved,
        matching_supply: MatchingSupply::capped(5, 6, 7),
        same_candidates: Vec::new(),
    }
}

fn action() -> Action {
    Action {
        kind: ActionKind::Bootstrap,
        machine: id("m1"),
        cluster: Some(ClusterId::new("a").unwrap()),
        purpose: Some((key("a", "f", "g"), Terms::default())),
        grace_seconds: 30,
        preemptor_priority: 5,
        reason: Reason::Idle,
    }
}

fn decision() -> Decision {
    Decision {
        actions: vec![action()],
        claims: vec![Claim {
            machine: id("m1"),
            need: key("a", "f", "g"),
        }],
        ended_intents: vec![id("m2")],
        held: vec![id("m3")],
        restamps: vec![Restamp {
            machine: id("m4"),
            need: key("a", "f", ""),
            terms: Terms::default(),
        }],
        needs: vec![verdict()],
    }
}

/// Digests are compared across machines and versions. Computed by hand from the definition, FNV-1a over
/// length-prefixed fields.
#[test]
fn the_digest_of_a_decision_is_fixed() {
    assert_eq!(
        Decision::default().digest().to_string(),
        "510135e9c5ad70e35e73239f257f8a0d"
    );
    assert_eq!(
        decision().digest().to_string(),
        "3051f9b38bff596593e4093e69e0d665"
    );
    assert_eq!(
        format!("{:?}", decision().digest()),
        decision().digest().to_string()
    );
}

#[test]
fn the_digest_moves_with_every_part_of_a_verdict_and_an_action() {
    let amounts = || Amounts::from_entries([(Dimension::new("gpu").unwrap(), 1)]);
    let verdicts: [fn(&mut Verdict); 13] = [
        |one| one.satisfied = true,
        |one| one.claimed = 9,
        |one| one.bootstrap = 9,
        |one| one.provision = 9,
        |one| one.same_domain.push('x'),
        |one| one.same_satisfiable = true,
        |one| one.parked = true,
        |one| one.victims_found = 9,
        |one| one.unmet_reason = UnmetReason::NoMatchingSupply,
        |one| one.matching_supply.idle = 9,
        |one| one.matching_supply.speculative = 9,
        |one| one.matching_supply.configured = 9,
        |one| one.matching_supply.capped = true,
    ];
    let mut digests = vec![decision().digest().to_string()];
    for change in verdicts {
        let mut other = decision();
        change(&mut other.needs[0]);
        digests.push(other.digest().to_string());
    }
    for residual in [true, false] {
        let mut other = decision();
        let verdict = &mut other.needs[0];
        *(if residual {
            &mut verdict.residual
        } else {
            &mut verdict.capacity_freed
        }) = amounts();
        digests.push(other.digest().to_string());
    }
    let actions: [fn(&mut Action); 7] = [
        |one| one.kind = ActionKind::Delete,
        |one| one.machine = id("m9"),
        |one| one.cluster = None,
        |one| one.purpose = None,
        |one| one.grace_seconds = 31,
        |one| one.preemptor_priority = 6,
        |one| one.reason = Reason::Promised,
    ];
    for change in actions {
        let mut other = decision();
        change(&mut other.actions[0]);
        digests.push(other.digest().to_string());
    }
    let all = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), all, "no two are equal");
}

#[test]
fn supply_is_empty_only_if_every_count_is() {
    let supply = |counts: [u32; 3]| MatchingSupply::capped(counts[0], counts[1], counts[2]);
    assert!(supply([0, 0, 0]).is_empty());
    for at in 0..3 {
        let mut counts = [0; 3];
        counts[at] = 1;
        assert!(!supply(counts).is_empty());
        counts[at] = 1001;
        assert!(supply(counts).capped);
        let capped = supply(counts);
        let held = [capped.idle, capped.speculative, capped.configured];
        assert_eq!(held[at], 1000);
    }
}
