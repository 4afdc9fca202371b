//! Answers that come too late: ignored, counted by what they answer, and no reason to stop (SH-21).

use crate::support::{World, cluster, id};
use bigfleet_shard_core::{
    BlobAnswer, CallOutcome, Code, DrainPhase, Effect, Event, GetId, Got, LateAnswer, ListId,
    Listed, OperationId, RequestId, SessionId, ShardConfig,
};

/// What nobody waits for, one of every kind of answer.
fn unasked() -> Vec<(Event, LateAnswer)> {
    let session = SessionId(7);
    let (epoch, number) = (1, 99);
    let list = ListId(99);
    vec![
        (
            Event::ListPage {
                list,
                machines: Vec::new(),
                refused: Vec::new(),
            },
            LateAnswer::List,
        ),
        (
            Event::ListEnded {
                list,
                outcome: Listed::Failed,
            },
            LateAnswer::List,
        ),
        (
            Event::GotMachine {
                get: GetId(99),
                answer: Got::NotFound,
            },
            LateAnswer::Get,
        ),
        (
            Event::CallEnded {
                operation: OperationId { epoch, number },
                sequence: 99,
                outcome: CallOutcome::refused(Code::FailedPrecondition),
            },
            LateAnswer::Call,
        ),
        (
            Event::BlobAnswered {
                session,
                request: RequestId { epoch, number },
                answer: BlobAnswer::Error(String::new()),
            },
            LateAnswer::Blob,
        ),
        (
            Event::DrainReported {
                session,
                instruction: OperationId { epoch, number },
                machine: id("m1"),
                phase: DrainPhase::Drained,
            },
            LateAnswer::Drain,
        ),
        (Event::HelloAgain { session }, LateAnswer::Session),
        (Event::SessionClosed { session }, LateAnswer::Session),
        (
            Event::RolledUp {
                session,
                cluster: cluster("a"),
                rollup_id: String::new(),
                rows: Ok(Vec::new()),
            },
            LateAnswer::Session,
        ),
        (
            Event::RollUpRepeated {
                session,
                rollup_id: String::new(),
            },
            LateAnswer::Session,
        ),
        (
            Event::NodesReported {
                session,
                complete: true,
                nodes: Vec::new(),
            },
            LateAnswer::Session,
        ),
    ]
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing_and_is_counted() {
    let mut world = World::new(
        ShardConfig::undamped("s", "p"),
        "m1 Configured a cpu=4 $1\n m2 Idle cpu=4 $1",
    );
    world.ask("a", "cpu=8", 5.0);
    let before = world.core.records();
    for (event, answer) in unasked() {
        let count = |world: &World| world.core.counters().late_answers.get(&answer).copied();
        let known = count(&world).unwrap_or(0);
        world.clear();
        world.tell(event.clone());
        assert_eq!(count(&world), Some(known + 1), "{event:?}");
        let told = world.effects.iter().map(|(_, effect)| effect);
        let told: Vec<_> = told
            .filter(|effect| !matches!(effect, Effect::WakeAt(_)))
            .collect();
        assert!(told.is_empty(), "{event:?}: {told:?}");
    }
    assert_eq!(world.core.records(), before);
    assert!(world.core.is_ready() && world.core.rails().incident.is_none());
    assert_eq!(world.core.counters().incidents, 0);
}

/// A call whose machine was taken away meanwhile holds its slot until it ends, and then is late.
#[test]
fn a_call_outlives_its_machine_and_frees_its_slot() {
    let mut world = World::new(ShardConfig::undamped("s", "p"), "m1 Speculative cpu=4 $1");
    world.provider.answer_after = 30.0;
    world.ask("a", "cpu=4", 1.0);
    assert_eq!(world.core.gauges().on_wire, 1);
    world.provider.tombstones = vec![id("m1")];
    world.provider.machines.clear();
    world.run(20.0);
    let gauges = world.core.gauges();
    assert_eq!((gauges.in_flight, gauges.on_wire), (0, 1));
    world.run(20.0);
    assert_eq!(world.core.gauges().on_wire, 0);
    assert_eq!(world.core.counters().late_answers[&LateAnswer::Call], 1);
}
