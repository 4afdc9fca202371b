//! Trouble in the words of whoever had it: what operators and providers say is kept for people, and is
//! not mistaken for what the shard did (shard.md §7, wire 6.4.4).

use crate::support::{FULL, Refusal, World, cluster, id, world};
use bigfleet_model::State;
use bigfleet_shard_core::{BlobAnswer, Code, Event, Frame, JoinStep, Outcome};

/// How each action ended, and with which words.
fn said(world: &World) -> Vec<(Outcome, String)> {
    let audits = world.audits().into_iter();
    audits
        .map(|record| (record.outcome, record.error.clone()))
        .collect()
}

/// W-5: an operator that cannot bootstrap says why, and whoever looks is told.
#[test]
fn an_operators_reason_for_no_blob_is_shown_and_audited() {
    let mut world = world("m1 Idle cpu=4 $1");
    world.blobs = false;
    let session = world.ask("a", "cpu=4", 1.0);
    let request = world.frames(session).iter().find_map(|frame| match frame {
        Frame::BootstrapRequest { request, .. } => Some(*request),
        _ => None,
    });
    world.tell(Event::BlobAnswered {
        session,
        request: request.unwrap(),
        answer: BlobAnswer::Error("no join token for\nthis zone".to_owned()),
    });
    let text = "no join token for\\nthis zone";
    assert_eq!(said(&world), [(Outcome::BlobError, text.to_owned())]);
    let backoff = &world.core.rails().bootstraps[0];
    assert_eq!(
        (&backoff.cluster, backoff.step, backoff.breaker.failures),
        (&cluster("a"), JoinStep::Blob, 1)
    );
    assert_eq!(backoff.breaker.last_error, text);
    world.run(50.0);
    let backoff = &world.core.rails().bootstraps[0];
    assert_eq!(
        (
            backoff.breaker.failures,
            backoff.breaker.last_error.as_str()
        ),
        (2, "no answer to a request for a blob in 30 s")
    );
}

/// What failed says why; what came right in the end does not repeat what went wrong before.
#[test]
fn a_providers_words_end_an_action_that_failed_and_no_other() {
    let mut world = world("m1 Idle cpu=4 $1\n m2 Idle cpu=4 $2");
    let refused = vec![
        Refusal::Code(Code::Unavailable),
        Refusal::Code(Code::InvalidArgument),
    ];
    world.provider.refuse.insert(id("m1"), refused);
    world.ask("a", "cpu=4", 60.0);
    let text = Code::InvalidArgument.said("");
    assert_eq!(
        said(&world),
        [
            (Outcome::ProviderError, text),
            (Outcome::Success, String::new())
        ]
    );
}

/// SH-11: a machine that failed on its way says what the provider says of it.
#[test]
fn a_machine_that_failed_is_audited_with_the_providers_word_on_it() {
    let mut world = world("s1 Speculative cpu=4 $1");
    world.provider.latency = 30.0;
    world.ask("a", "cpu=4", 5.0);
    assert_eq!(world.state("s1"), State::Creating);
    let there = world.there("s1");
    there.due = None;
    there.become_state(State::Failed);
    world.run(30.0);
    let ended = said(&world);
    assert_eq!(ended[0].0, Outcome::ProviderError);
    assert_eq!(ended[0].1, "the provider shows it Failed: broken");
    assert_eq!(world.core.counters().adoptions, 0, "nobody else moved it");
}

/// wire 12: a frame of ours goes only to operators that said they know it.
#[test]
fn a_cancelled_reclaim_is_told_to_operators_that_know_the_frame() {
    for reports in [true, false] {
        let mut world = world("m1 Configured a cpu=4 $1");
        let refused = vec![Refusal::Code(Code::InvalidArgument)];
        world.provider.refuse.insert(id("m1"), refused);
        let features = bigfleet_shard_core::Features {
            drain_report: reports,
            ..FULL
        };
        let session = world.connect("a", features);
        world.run(1.0);
        world.roll_up("a", "");
        world.run(20.0);
        assert_eq!(world.state("m1"), State::Configured, "given up");
        let frames = world.frames(session);
        let told = |wanted: fn(&Frame) -> bool| frames.iter().any(|frame| wanted(frame));
        assert!(told(|frame| matches!(frame, Frame::Reclaim { .. })));
        assert_eq!(
            told(|frame| matches!(frame, Frame::ReclaimCancel { .. })),
            reports
        );
    }
}
