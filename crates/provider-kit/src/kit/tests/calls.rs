//! Calls: what is done, what is refused, and what is left as it was.

use super::*;
use crate::options::Fencing;
use bigfleet_model::CapacityType;
use proptest::prelude::*;

#[test]
fn the_four_edges_and_what_each_leaves_behind() {
    let mut bench = bench(1);
    let ack = bench.ask("m1", create()).unwrap();
    assert_eq!(
        (ack.machine.state, &ack.machine.host),
        (State::Creating, &None)
    );
    bench.created();
    assert!(bench.machine("m1").host.is_some());
    let ack = bench.ask("m1", configure("a")).unwrap();
    assert_eq!(ack.machine.state, State::Configuring);
    assert_eq!(
        (ack.machine.cluster.as_str(), ack.machine.metadata.len()),
        ("a", 1)
    );
    bench.end(Ok(None));
    let ack = bench.ask("m1", drain()).unwrap();
    assert_eq!(
        (ack.machine.state, ack.machine.cluster.as_str()),
        (State::Draining, "a")
    );
    bench.end(Ok(None));
    let idle = bench.machine("m1");
    assert_eq!(
        (idle.state, idle.cluster.as_str(), idle.metadata.len()),
        (State::Idle, "", 0)
    );
    assert!(bench.ask("m1", Ask::Delete).unwrap().machine.host.is_some());
    bench.end(Ok(None));
    assert_eq!(
        (bench.machine("m1").state, &bench.machine("m1").host),
        (State::Speculative, &None)
    );
}

/// wire 12: the shard of the last Create or Configure, also after a restart, until the host is given back.
#[test]
fn a_record_says_which_shard_acquired_it_last() {
    let mut bench = bench(1);
    let by = |shard: &str, sequence| Token {
        shard: shard.to_owned(),
        ..token(1, sequence)
    };
    let owner = |bench: &Bench| {
        let machine = bench.machine("m1");
        let stored = crate::serve::convert::machine(&machine);
        assert_eq!(stored.owner_shard_id, *machine.owner);
        let read = crate::serve::convert::stored_machine(stored).unwrap();
        assert_eq!(read.owner, machine.owner);
        machine.owner.to_string()
    };
    assert_eq!(owner(&bench), "");
    bench.call("m1", by("one", 1), create()).unwrap();
    assert_eq!(owner(&bench), "one");
    bench.created();
    bench.call("m1", by("two", 1), configure("a")).unwrap();
    bench.end(Ok(None));
    assert_eq!(owner(&bench), "two");
    bench.call("m1", by("three", 1), drain()).unwrap();
    bench.end(Ok(None));
    assert_eq!(owner(&bench), "two", "a Drain acquires nothing");
    bench.call("m1", by("three", 2), Ask::Delete).unwrap();
    bench.end(Ok(None));
    assert_eq!(owner(&bench), "", "a slot is nobody's");
}

#[test]
fn the_fence_comes_before_existence_and_its_mark_stays() {
    let mut bench = bench(2);
    assert!(matches!(
        bench.call("ghost", token(5, 5), create()),
        Err(Refusal::NotFound(_))
    ));
    assert!(matches!(
        bench.call("ghost", token(5, 5), create()),
        Err(Refusal::Fenced { .. })
    ));
    assert!(matches!(
        bench.call("m1", token(5, 5), drain()),
        Err(Refusal::Position { .. })
    ));
    assert!(matches!(
        bench.call("m1", token(5, 4), create()),
        Err(Refusal::Fenced { .. })
    ));
    assert!(bench.call("m1", token(6, -9), create()).is_ok());
    assert!(bench.call("m2", token(0, 0), create()).is_ok());
    assert!(matches!(
        bench.call("m2", token(0, 0), create()),
        Err(Refusal::Fenced { .. })
    ));
    let most = i64::MAX;
    assert!(bench.call("m2", token(most, most), create()).is_ok());
    assert!(matches!(
        bench.call("m2", token(most, most), create()),
        Err(Refusal::Fenced { .. })
    ));
}

#[test]
fn a_bad_argument_does_not_touch_the_fence() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    let negative = Ask::Drain { grace_seconds: -5 };
    assert!(matches!(
        bench.call("m1", token(1, 1), negative),
        Err(Refusal::Invalid(_))
    ));
    assert!(matches!(
        bench.call("", token(1, 1), create()),
        Err(Refusal::Invalid(_))
    ));
    assert!(matches!(
        bench.call("m1", token(1, 1), configure("")),
        Err(Refusal::Invalid(_))
    ));
    assert!(bench.call("m1", token(1, 1), drain()).is_ok());
}

#[test]
fn a_retry_gets_the_recorded_id_and_a_new_cycle_a_new_one() {
    let mut bench = bench(1);
    let first = bench.ask("m1", create()).unwrap();
    let again = bench.ask("m1", create()).unwrap();
    assert_eq!((&again.operation, again.replayed), (&first.operation, true));
    assert_eq!(bench.started.len(), 1, "a retry starts nothing");
    bench.created();
    assert_eq!(
        bench.ask("m1", create()).unwrap().operation,
        first.operation
    );
    assert!(matches!(
        bench.ask("m1", drain()),
        Err(Refusal::Position { .. })
    ));
    bench.ask("m1", Ask::Delete).unwrap();
    bench.end(Ok(None));
    assert_ne!(
        bench.ask("m1", create()).unwrap().operation,
        first.operation
    );
}

#[test]
fn another_cluster_does_not_get_the_binding() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    assert!(matches!(
        bench.ask("m1", configure("b")),
        Err(Refusal::Bound { .. })
    ));
    assert!(bench.ask("m1", configure("a")).unwrap().replayed);
    assert_eq!(bench.machine("m1").cluster, "a");
}

#[test]
fn a_strict_fence_turns_an_older_life_away_everywhere() {
    let mut bench = bench(2);
    assert!(bench.call("m1", token(5, 1), create()).is_ok());
    assert!(
        bench.call("m2", token(4, 1), create()).is_ok(),
        "off: each machine for itself"
    );
    bench.kit.options.fencing = Fencing::Strict;
    let older = bench.call("m2", token(4, 2), create());
    assert!(matches!(older, Err(Refusal::Fenced { .. })), "{older:?}");
    assert!(bench.call("m2", token(5, 2), create()).is_ok());
    let nobody = bench.ask("m2", create());
    assert!(matches!(nobody, Err(Refusal::Invalid(_))), "{nobody:?}");
    let other = Token {
        shard: "t".to_owned(),
        ..token(1, 1)
    };
    assert!(
        bench.call("m2", other, create()).is_ok(),
        "other shards have lives of their own"
    );
}

#[test]
fn bare_metal_is_never_deleted_and_a_provider_may_not_delete_at_all() {
    let mut bench = bench(1);
    let mut metal = slot("metal");
    Arc::make_mut(&mut metal.offer).capacity_type = CapacityType::BareMetal;
    metal.host = Some(Host {
        provider: "p".to_owned(),
        reference: "r".to_owned(),
    });
    bench.kit.seed(&[metal]).unwrap();
    assert!(matches!(
        bench.ask("metal", Ask::Delete),
        Err(Refusal::Unsupported(_))
    ));
    assert!(matches!(
        bench.ask("ghost", Ask::Delete),
        Err(Refusal::NotFound(_))
    ));
    bench.kit.options.deletes = false;
    assert!(matches!(
        bench.ask("ghost", Ask::Delete),
        Err(Refusal::Unsupported(_))
    ));
    assert!(matches!(
        bench.ask("", Ask::Delete),
        Err(Refusal::Invalid(_))
    ));
}

proptest! {
    /// What a store that fails at random times leaves behind is what the acknowledged calls made.
    #[test]
    fn a_rolled_back_call_never_happened(calls in proptest::collection::vec(
        (1..4_usize, 0..4_usize, 0..4_i64, any::<bool>()), 1..40,
    )) {
        let mut real = bench(3);
        let mut twin = bench(3);
        for (machine, ask, sequence, stored) in calls {
            let ask = [create(), configure("a"), drain(), Ask::Delete][ask].clone();
            let (machine, token) = (format!("m{machine}"), token(1, sequence));
            let mutation = Mutation { machine, token, ask };
            let mut effects = Vec::new();
            real.kit.handle(Event::Mutate { call: 0, mutation: mutation.clone() }, &mut effects);
            if stored {                     real.kit.commit();
                    twin.kit.handle(Event::Mutate { call: 0, mutation }, &mut effects);
                    twin.kit.commit();
                 } else { real.kit.rollback() }
        }
        let all = |bench: &Bench| bench.kit.tables().snapshot().collect::<Vec<_>>();
        prop_assert_eq!(all(&real), all(&twin));
        prop_assert_eq!(real.kit.tables().cursor(), twin.kit.tables().cursor());
    }
}
