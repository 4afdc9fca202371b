//! What holds for every message: a conversion never panics, a refusal is short, printable and
//! changes nothing, and what we write we read back.

#![expect(clippy::unwrap_used, reason = "a test says so by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{
    Amounts, Assignment, Bucket, CapacityType, Cluster, ClusterId, Dimension, Dollars, Echoed,
    Fingerprint, Group, Host, Inventory, Machine, MachineFacts, Operator, Profile, Requirement,
    Row, Shape, Spread, State, StateNumber, Terms, Time, Via, WhenUnsatisfiable,
};
use bigfleet_wire::v1alpha1::{
    self, BootstrapBlobResponse, CapacityNeed, ClusterCapacityNeeds, DrainReport, Hello, HostRef,
    MachineList, NodeReport, NodeSelectorRequirement, OperatorMessage, Resources, ShardMessage,
    TopologySpread, TransitionAck,
};
use bigfleet_wire::{
    Ack, Alike, BlobAnswer, DrainProgress, Frame as _, Greeting, Listing, NodeSightings, Record,
    Rollup,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message;

/// Longer than any refusal: sixteen problems, each with a few values of at most 80 characters.
const LONGEST_TEXT: usize = 64 << 10;

fn session() -> ClusterId {
    ClusterId::new("a").unwrap()
}

fn check_text(refused: &impl std::fmt::Display) {
    let text = refused.to_string();
    assert!(text.len() < LONGEST_TEXT, "{} bytes", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// Every conversion there is, on every message the bytes decode to.
fn convert_all(bytes: &[u8]) {
    if let Ok(message) = ClusterCapacityNeeds::decode(bytes) {
        let _ = Rollup::read(message, &session()).map_err(|refused| check_text(&refused));
    }
    let in_place = Listing::read_bytes(bytes, &mut Alike::default());
    let message = MachineList::decode(bytes).map(Listing::read);
    if let Ok(listing) = message {
        // As text, since what is no number does not equal itself.
        assert_eq!(format!("{:?}", in_place.unwrap()), format!("{listing:?}"));
        assert_eq!(Listing::next_page(bytes), Ok(&listing.next_page[..]));
        listing.refused.iter().for_each(check_text);
        listing
            .records
            .iter()
            .flat_map(|record| &record.warnings)
            .for_each(check_text);
    } else {
        in_place
            .map_err(|refused| check_text(&refused))
            .unwrap_err();
    }
    if let Ok(message) = TransitionAck::decode(bytes) {
        let _ = Ack::read(message).map_err(|refused| check_text(&refused));
    }
    if let Ok(message) = Hello::decode(bytes) {
        let _ = Greeting::read(&message).map_err(|refused| check_text(&refused));
    }
    if let Ok(message) = OperatorMessage::decode(bytes) {
        let _ = Greeting::open(Some(message.clone())).map_err(|refused| check_text(&refused));
        let _ = message.content().map_err(|refused| check_text(&refused));
    }
    if let Ok(message) = ShardMessage::decode(bytes) {
        let _ = message.content();
    }
    if let Ok(message) = BootstrapBlobResponse::decode(bytes) {
        let _ = BlobAnswer::read(message).map_err(|refused| check_text(&refused));
    }
    if let Ok(message) = DrainReport::decode(bytes) {
        let _ = DrainProgress::read(message).map_err(|refused| check_text(&refused));
    }
    if let Ok(message) = NodeReport::decode(bytes) {
        let _ = NodeSightings::read(message).map_err(|refused| check_text(&refused));
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z]{0,3}",
        Just("\0\u{202e}\r\n".to_owned()),
        Just("x".repeat(10_000)),
    ]
}

fn hostile_quantity() -> impl Strategy<Value = String> {
    prop_oneof![
        hostile_text(),
        "[+-]?[0-9]{0,40}\\.?[0-9]{0,20}(m|Ki|E|e[0-9]{1,9})?",
        Just("1e999999999".to_owned()),
        Just("-0".to_owned()),
    ]
}

fn hostile_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-0.0),
        0.0..1.0
    ]
}

fn hostile_need() -> impl Strategy<Value = CapacityNeed> {
    let requirement = (hostile_text(), -1..8_i32, vec(hostile_text(), 0..3)).prop_map(
        |(key, operator, values)| NodeSelectorRequirement {
            key,
            operator,
            values,
        },
    );
    let spread =
        (hostile_text(), any::<i32>(), any::<i32>()).prop_map(|(key, skew, when)| TopologySpread {
            topology_key: key,
            max_skew: skew,
            when_unsatisfiable: when,
        });
    let quantities = || btree_map(hostile_text(), hostile_quantity(), 0..3);
    let lists = (vec(requirement, 0..3), vec(spread, 0..2));
    let numbers = (any::<i32>(), -1..30_i32, any::<i32>());
    (lists, numbers, quantities(), quantities(), hostile_text()).prop_map(
        |((requirements, spread), (priority, interruption, reclamation), sum, unit, group)| {
            CapacityNeed {
                requirements,
                aggregate_resources: sum,
                priority,
                spread,
                interruption_penalty_bucket: interruption,
                reclamation_penalty_bucket: reclamation,
                whole_units: unit.len() % 2 == 1,
                min_unit: unit,
                group,
            }
        },
    )
}

fn hostile_machine() -> impl Strategy<Value = v1alpha1::Machine> {
    let texts = (
        hostile_text(),
        hostile_text(),
        hostile_text(),
        hostile_text(),
    );
    let vector = || {
        proptest::option::of(
            btree_map(hostile_text(), hostile_quantity(), 0..3)
                .prop_map(|resources| Resources { resources }),
        )
    };
    let maps = || btree_map(hostile_text(), hostile_text(), 0..3);
    let host = proptest::option::of(
        (hostile_text(), hostile_text()).prop_map(|(provider, r#ref)| HostRef { provider, r#ref }),
    );
    let numbers = (-1..11_i32, any::<i32>(), hostile_number(), hostile_number());
    let numbers = (numbers, any::<i64>());
    (texts, numbers, host, (vector(), vector()), (maps(), maps())).prop_map(
        |(texts, ((state, tier, price, chance), leaving), host, vectors, maps)| {
            let (id, zone, cluster, last_error) = texts;
            v1alpha1::Machine {
                leaving_unix_nanos: leaving,
                id,
                state,
                host,
                zone,
                capacity_type: tier,
                price_per_hour: price,
                interruption_probability: chance,
                resources: vectors.0,
                labels: maps.0,
                last_error,
                allocatable: vectors.1,
                cluster,
                shard_metadata: maps.1,
                ..Default::default()
            }
        },
    )
}

fn amounts(most: i128) -> impl Strategy<Value = Amounts> {
    let dimension = prop::sample::select(vec!["cpu", "memory", "nvidia.com/gpu"]);
    vec((dimension, 0..=most), 0..3).prop_map(|entries| {
        let named = |(name, milli)| (Dimension::new(name).unwrap(), milli);
        entries
            .into_iter()
            .map(named)
            .fold(Amounts::NONE, |sum, entry| {
                sum.larger(&Amounts::from_entries([entry]))
            })
    })
}

fn profiles() -> impl Strategy<Value = Profile> {
    let requirement = (
        ".{1,9}",
        prop::sample::select(Operator::ALL.to_vec()),
        vec(".{0,9}", 0..3),
    )
        .prop_map(|(key, operator, values)| Requirement::new(key, operator, values).unwrap());
    let when = prop::sample::select(WhenUnsatisfiable::ALL.to_vec());
    let spread = (".{1,9}", 1..=i32::MAX, when)
        .prop_map(|(key, skew, when)| Spread::new(key, skew, when).unwrap());
    let bucket = || (0..=27_i64).prop_map(|number| Bucket::from_number(number).unwrap());
    (
        vec(requirement, 0..4),
        vec(spread, 0..3),
        any::<i32>(),
        bucket(),
        bucket(),
    )
        .prop_map(|(needs, spread, priority, ipb, rpb)| {
            Profile::new(needs, spread, priority, ipb, rpb)
        })
}

fn rows() -> impl Strategy<Value = Row> {
    (profiles(), amounts(i128::MAX), amounts(i128::MAX), ".{0,9}").prop_map(
        |(profile, aggregate, min_unit, group)| Row {
            profile: profile.into(),
            aggregate,
            min_unit,
            group: Group::new(&group),
            whole_units: false,
        },
    )
}

fn shapes() -> impl Strategy<Value = Shape> {
    let supply = || amounts(i64::MAX.into());
    let tier = prop::sample::select(CapacityType::ALL.to_vec());
    let texts = (".{0,9}", ".{0,9}", btree_map(".{0,9}", ".{0,9}", 0..3));
    (texts, tier, supply(), proptest::option::of(supply())).prop_map(
        |((instance_type, zone, labels), capacity_type, resources, allocatable)| Shape {
            instance_type,
            zone,
            capacity_type,
            labels,
            // Worth nothing beside nothing cannot be told from not stated, and need not be.
            allocatable: allocatable.filter(|given| !(given.is_zero() && resources.is_zero())),
            resources,
        },
    )
}

fn machines() -> impl Strategy<Value = Machine> {
    let state = prop::sample::select(State::ALL.to_vec());
    let terms = (
        any::<i32>(),
        0.0..1e9,
        prop_oneof![Just(f64::INFINITY), 0.0..1e9],
    );
    let commitment = (terms, ".{0,20}", ".{0,9}");
    (state, shapes(), 0.0..1e6, 0.0..=1.0, commitment).prop_map(
        |(state, shape, price, chance, ((priority, interruption, reclamation), text, group))| {
            let hostless = matches!(state, State::Speculative | State::Creating);
            let host = if hostless { "" } else { "h" }.to_owned();
            let bound = matches!(
                state,
                State::Configured | State::Draining | State::Configuring
            );
            let assignment = Assignment {
                terms: Terms {
                    priority,
                    interruption: Dollars::new(interruption).unwrap(),
                    reclamation: Dollars::new(reclamation).unwrap(),
                },
                fingerprint: Fingerprint::new(&text),
                group: Group::new(&group),
                keep_price: None,
            };
            Machine::new(MachineFacts {
                host: Host {
                    provider: host.clone(),
                    reference: host,
                },
                cluster: if bound { "c" } else { "" }.to_owned(),
                shape: Arc::new(shape),
                price_per_hour: price,
                interruption_probability: chance,
                last_error: if state == State::Failed { "boom" } else { "" }.to_owned(),
                assignment,
                ..MachineFacts::new("m1", state)
            })
            .unwrap()
        },
    )
}

fn rollup(needs: Vec<CapacityNeed>) -> ClusterCapacityNeeds {
    ClusterCapacityNeeds {
        needs,
        ..ClusterCapacityNeeds::default()
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        convert_all(&bytes);
    }

    /// Random bytes rarely get past the first tag; damaged messages get deep.
    #[test]
    fn damaged_messages_never_panic(
        needs in vec(hostile_need(), 0..4),
        machines in vec(hostile_machine(), 0..4),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let list = MachineList { machines, ..MachineList::default() };
        for mut bytes in [rollup(needs).encode_to_vec(), list.encode_to_vec()] {
            for (at, byte) in &damage {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
            }
            convert_all(&bytes);
        }
    }

    /// A peer may send fields twice, maps in any order, and messages in pieces that add up.
    #[test]
    fn a_list_reads_the_same_in_place_however_it_is_written(
        machines in vec((hostile_machine(), hostile_machine()), 0..4),
        again in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        for (one, more) in machines {
            let machine = [one.encode_to_vec(), more.encode_to_vec()].concat();
            for _ in 0..=u8::from(again) {
                bytes.push(0x0a);
                prost::encode_length_delimiter(machine.len(), &mut bytes).unwrap();
                bytes.extend(&machine);
            }
        }
        let rest = MachineList {
            revision: vec![1],
            removed_ids: vec!["m1".to_owned(), String::new()],
            is_full: again,
            total_machines: 7,
            features: vec!["f".to_owned()],
            next_page_token: vec![2],
            ..MachineList::default()
        };
        bytes.extend(rest.encode_to_vec());
        convert_all(&bytes);
    }

    /// What records share is what they say, whichever came before them.
    #[test]
    fn what_pages_share_changes_no_record(pages in vec(vec(hostile_machine(), 0..4), 1..4)) {
        let mut alike = Alike::default();
        for machines in pages {
            let list = MachineList { machines, ..MachineList::default() };
            let shared = Listing::read_bytes(&list.encode_to_vec(), &mut alike).unwrap();
            prop_assert_eq!(format!("{shared:?}"), format!("{:?}", Listing::read(list)));
        }
    }

    #[test]
    fn a_rollup_is_merged_or_refused_by_name(hostile in vec(hostile_need(), 1..4)) {
        match Rollup::read(rollup(hostile), &session()) {
            Ok(accepted) => {
                let rows = accepted.rows.iter().map(|row| (row.clone(), None, false));
                let again = Cluster::new(&session(), rows).unwrap();
                prop_assert_eq!(again.needs().len(), accepted.rows.len(), "nothing left to merge");
            }
            Err(refused) => {
                check_text(&refused);
                prop_assert!(refused.to_string().contains('('), "no rule in {refused}");
            }
        }
    }

    #[test]
    fn refused_records_leave_the_others_and_the_last_good_alone(
        known in machines(),
        hostile in vec(hostile_machine(), 1..4),
    ) {
        let mut inventory = Inventory::default();
        inventory.insert(known.clone(), Time::ZERO).unwrap();
        let mut messages = hostile;
        // A hostile record of a known machine, and a good one of another.
        messages[0].id = known.id().to_string();
        messages[0].price_per_hour = f64::NAN;
        let other = v1alpha1::Machine { id: "other".to_owned(), state: 1, ..Default::default() };
        messages.push(other);
        let count = messages.len();
        let listing = Listing::read(MachineList { machines: messages, ..Default::default() });
        prop_assert_eq!(listing.records.len() + listing.refused.len(), count);
        prop_assert!(listing.records.iter().any(|record| record.machine.id().as_str() == "other"));
        for refused in &listing.refused {
            check_text(refused);
            let labels = ["structural", "price", "interruption_probability"];
            prop_assert!(labels.contains(&refused.problem.label()));
        }
        for record in listing.records {
            if inventory.get(record.machine.id()).is_some() {
                inventory.apply(record.machine, Via::Adoption, Time::ZERO).unwrap();
            }
        }
        prop_assert_eq!(inventory.get(known.id()), Some(&known));
    }

    #[test]
    fn rows_come_back_as_they_went_out(row in rows()) {
        let message = rollup(vec![CapacityNeed::from(&row)]);
        let bytes = message.encode_to_vec();
        let read = Rollup::read(ClusterCapacityNeeds::decode(&bytes[..]).unwrap(), &session());
        prop_assert_eq!(read.unwrap().rows, vec![row]);
    }

    #[test]
    fn machines_come_back_as_they_went_out(machine in machines()) {
        let bytes = v1alpha1::Machine::from(&machine).encode_to_vec();
        let record = Record::read(v1alpha1::Machine::decode(&bytes[..]).unwrap()).unwrap();
        prop_assert_eq!(&record.warnings, &vec![]);
        let mut facts = record.machine.into_facts();
        prop_assert_eq!(facts.recall(None, &record.echoed), vec![]);
        prop_assert_eq!(Machine::new(facts).unwrap(), machine);
    }

    #[test]
    fn an_accepted_machine_is_one_the_grid_accepts(message in hostile_machine()) {
        if let Ok(record) = Record::read(message.clone()) {
            prop_assert_eq!(StateNumber::from(record.machine.state()).0, message.state);
            prop_assert_eq!(Machine::new(record.machine.clone().into_facts()), Ok(record.machine));
            prop_assert_eq!(record.echoed, Echoed::from(&message.shard_metadata));
        }
    }
}

/// A length prefix that promises two gigabytes must not reserve them.
#[test]
fn a_promised_length_is_not_believed() {
    for tag in [0x0a, 0x12, 0x1a] {
        let promise = [tag, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
        assert!(ClusterCapacityNeeds::decode(&promise[..]).is_err());
        assert!(MachineList::decode(&promise[..]).is_err());
    }
}

/// Messages nested far deeper than any of ours are refused by the decoder, not by the stack.
#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let mut bytes = Vec::new();
    for _ in 0..10_000 {
        let mut outer = vec![0x1a];
        prost::encode_length_delimiter(bytes.len(), &mut outer).unwrap();
        outer.append(&mut bytes);
        bytes = outer;
    }
    convert_all(&bytes);
}

#[test]
fn unknown_fields_are_never_a_reason_to_refuse() {
    let need = CapacityNeed {
        aggregate_resources: BTreeMap::from([("cpu".to_owned(), "1".to_owned())]),
        ..CapacityNeed::default()
    };
    let mut bytes = rollup(vec![need.clone()]).encode_to_vec();
    bytes.extend([0xfa, 0x7c, 0x02, 0xff, 0xff]); // field 1999 of a newer operator
    let newer = Rollup::read(
        ClusterCapacityNeeds::decode(&bytes[..]).unwrap(),
        &session(),
    );
    assert_eq!(newer, Rollup::read(rollup(vec![need]), &session()));
}
