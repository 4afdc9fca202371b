//! Fencing: per shard and machine, only a strictly newer token passes, before anything else is looked at.

use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::check::{code, expect, refused};
use crate::subject::{Call, Token, configure, token};
use crate::{Behaviour, Capability, Check, Subject};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "FENCE-01",
        "B301",
        Core,
        None,
        before_existence,
        "the fence comes before existence"
    ),
    behaviour!(
        "FENCE-02",
        "B302",
        Core,
        None,
        isolated,
        "marks of shards and machines do not interact"
    ),
    behaviour!(
        "FENCE-03",
        "B303",
        Core,
        None,
        table,
        "sixteen tokens on one pair"
    ),
    behaviour!(
        "FENCE-04",
        "B305",
        Core,
        None,
        reads,
        "reads work for a fenced-out shard"
    ),
    behaviour!(
        "FENCE-05",
        "B306",
        Core,
        None,
        stale_configure,
        "a stale replay of Configure is fenced, a fresh one replayed"
    ),
    behaviour!(
        "FENCE-06",
        "B307",
        Core,
        None,
        stale_drain,
        "a stale replay of Drain is fenced, a fresh one replayed"
    ),
    behaviour!(
        "FENCE-07",
        "B308",
        Core,
        None,
        absent,
        "an absent token is never fenced"
    ),
    behaviour!(
        "FENCE-08",
        "B309",
        Core,
        None,
        session,
        "an advancing session is accepted, its first token is stale later"
    ),
    behaviour!(
        "FENCE-09",
        "B310",
        Core,
        None,
        new_epoch,
        "a new epoch resets the sequence"
    ),
    behaviour!(
        "FENCE-10",
        "B311",
        Core,
        None,
        mark_of_a_refused_call,
        "a refused call leaves its mark"
    ),
    behaviour!(
        "FENCE-11",
        "B312",
        Core,
        None,
        oracle,
        "two hundred random tokens match the oracle"
    ),
];

/// A machine and the call it is asked with.
type Probe = (String, Call);

/// Whether a call with this token passes the fence.
pub(crate) async fn passes(
    subject: &Subject,
    (id, call): &Probe,
    token: &Token,
) -> Result<bool, crate::Unmet> {
    let answer = subject.fenced(id, token, call.clone()).await;
    match code(&answer) {
        Code::Ok => Ok(true),
        Code::FailedPrecondition => Ok(false),
        other => Err(crate::Unmet::Broken(format!("{token:?}: {other:?}"))),
    }
}

async fn expect_pass(subject: &Subject, probe: &Probe, token: &Token, expected: bool) -> Check {
    let passed = passes(subject, probe, token).await?;
    ensure!(
        passed == expected,
        "{token:?}: accepted is {passed}, not {expected}"
    );
    Ok(())
}

async fn before_existence(subject: &Subject) -> Check {
    let (ghost, shard) = (subject.ghost(), subject.shard());
    let answer = subject
        .fenced(&ghost, &token(&shard, 5, 5), Call::Create)
        .await;
    expect("(5, 5) on a ghost", &answer, Code::NotFound)?;
    for call in [Call::Create, configure("a"), Call::Drain(0), Call::Delete] {
        let answer = subject
            .fenced(&ghost, &token(&shard, 1, 1), call.clone())
            .await;
        let unsupported = matches!(call, Call::Delete) && code(&answer) == Code::Unimplemented;
        if !unsupported {
            expect("(1, 1) on a ghost", &answer, Code::FailedPrecondition)?;
        }
    }
    let answer = subject
        .fenced(&ghost, &token(&shard, 9, 9), Call::Create)
        .await;
    expect("(9, 9) on a ghost", &answer, Code::NotFound)
}

async fn isolated(subject: &Subject) -> Check {
    let (a, b) = (subject.probe().await?, subject.probe().await?);
    let (one, two) = (subject.shard(), subject.shard());
    expect_pass(subject, &a, &token(&one, 5, 30), true).await?;
    expect_pass(subject, &b, &token(&one, 5, 7), true).await?;
    expect_pass(subject, &a, &token(&two, 1, 1), true).await?;
    expect_pass(subject, &a, &token(&one, 5, 30), false).await?;
    expect_pass(subject, &b, &token(&one, 5, 7), false).await?;
    expect_pass(subject, &a, &token(&one, 4, 99), false).await?;
    expect_pass(subject, &a, &token(&two, 1, 2), true).await
}

async fn table(subject: &Subject) -> Check {
    let (probe, shard) = (subject.probe().await?, subject.shard());
    let steps = [
        (1, 1, true),
        (1, 1, false),
        (1, 2, true),
        (1, 1, false),
        (1, 10, true),
        (1, 9, false),
        (2, 0, true),
        (2, 0, false),
        (1, i64::MAX, false),
        (2, 1, true),
        (1, 11, false),
        (5, 3, true),
        (4, 1_000_000, false),
        (5, 2, false),
        (5, 4, true),
        (5, 4, false),
    ];
    for (epoch, sequence, expected) in steps {
        expect_pass(subject, &probe, &token(&shard, epoch, sequence), expected).await?;
    }
    Ok(())
}

async fn reads(subject: &Subject) -> Check {
    let (id, shard) = (subject.configured("a").await?, subject.shard());
    subject
        .fenced(&id, &token(&shard, 9, 9), configure("a"))
        .await?;
    for call in [Call::Create, configure("a"), Call::Drain(0), Call::Delete] {
        let answer = subject.fenced(&id, &token(&shard, 1, 1), call).await;
        let fenced = [Code::FailedPrecondition, Code::Unimplemented].contains(&code(&answer));
        ensure!(fenced, "a stale call: {:?}", code(&answer));
        ensure!(
            subject.get(&id).await?.state() == State::Configured,
            "it moved"
        );
        ensure!(!subject.list(&[]).await?.is_empty(), "List is empty");
        let listed = subject.list(&[State::Configured]).await?;
        ensure!(
            listed.iter().any(|m| m.id == id),
            "it is missing from List(CONFIGURED)"
        );
    }
    Ok(())
}

async fn replayed(subject: &Subject, id: &str, call: Call, target: State) -> Check {
    let shard = subject.shard();
    let first = subject
        .fenced(id, &token(&shard, 1, 1), call.clone())
        .await?;
    subject.settled(id, target).await?;
    let stale = subject.fenced(id, &token(&shard, 1, 1), call.clone()).await;
    expect("the same token again", &stale, Code::FailedPrecondition)?;
    let fresh = subject.fenced(id, &token(&shard, 1, 2), call).await?;
    let (first, again) = (first.operation_id, fresh.operation_id);
    ensure!(first == again, "{first} became {again}");
    Ok(())
}

async fn stale_configure(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    replayed(subject, &id, configure("a"), State::Configured).await
}

async fn stale_drain(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    replayed(subject, &id, Call::Drain(0), State::Idle).await
}

async fn absent(subject: &Subject) -> Check {
    let (a, b) = (subject.probe().await?, subject.probe().await?);
    for probe in [&a, &a, &b] {
        expect_pass(subject, probe, &Token::default(), true).await?;
    }
    Ok(())
}

async fn session(subject: &Subject) -> Check {
    let shard = subject.shard();
    let (id, mut steps) = subject.newcomer().await?;
    for _ in 0..2 {
        steps.extend([
            (configure("a"), State::Configured),
            (Call::Drain(0), State::Idle),
        ]);
    }
    for (sequence, (call, target)) in (1..).zip(steps) {
        subject
            .fenced(&id, &token(&shard, 1, sequence), call)
            .await?;
        subject.settled(&id, target).await?;
    }
    let first = subject
        .fenced(&id, &token(&shard, 1, 1), Call::Drain(0))
        .await;
    expect("its first token", &first, Code::FailedPrecondition)
}

/// Without Delete, so that it also runs where nothing can be deleted.
async fn new_epoch(subject: &Subject) -> Check {
    let (probe, shard) = (subject.probe().await?, subject.shard());
    for sequence in [1, 50, 51] {
        expect_pass(subject, &probe, &token(&shard, 1, sequence), true).await?;
    }
    expect_pass(subject, &probe, &token(&shard, 2, 0), true).await?;
    for (epoch, sequence) in [(1, 51), (1, 52), (1, 9_999), (2, 0), (0, 1)] {
        expect_pass(subject, &probe, &token(&shard, epoch, sequence), false).await?;
    }
    expect_pass(subject, &probe, &token(&shard, 2, 1), true).await
}

async fn mark_of_a_refused_call(subject: &Subject) -> Check {
    let shard = subject.shard();
    let (probe, out_of_place) = if subject.can(Capability::Create) {
        (subject.probe().await?, Call::Drain(0))
    } else {
        (
            (subject.configured("probe").await?, configure("probe")),
            Call::Create,
        )
    };
    let answer = subject
        .fenced(&probe.0, &token(&shard, 5, 5), out_of_place)
        .await;
    refused("a call out of place", &answer)?;
    expect_pass(subject, &probe, &token(&shard, 5, 4), false).await?;
    expect_pass(subject, &probe, &token(&shard, 5, 6), true).await
}

async fn oracle(subject: &Subject) -> Check {
    let (probe, shard) = (subject.probe().await?, subject.shard());
    let mut random = Prng::new(subject.rng_seed);
    let mut mark = None;
    for step in 0..200 {
        let (epoch, sequence) = match step {
            0 => (0, 0),
            _ => (random.below(6) as i64, random.below(40) as i64),
        };
        let expected = mark.is_none_or(|mark| mark < (epoch, sequence));
        expect_pass(subject, &probe, &token(&shard, epoch, sequence), expected).await?;
        if expected {
            mark = Some((epoch, sequence));
        }
    }
    Ok(())
}
