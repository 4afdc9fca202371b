//! The baseline: the short suite that every provider passes first, known by the names of its tests.
//!
//! Most of it is said again, and more strictly, by the behaviours. It is kept as it is because others
//! count its tests: a report without them would not compare.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ListFilter, MachineState as State};
use tonic::Code;

use crate::check::{code, expect, refused};
use crate::subject::{Call, Token, configure, map, token};
use crate::{Behaviour, Capability, Check, Subject, Unmet};

/// How long a settled state may take after a Drain without grace.
const GRACE_ENDS: Duration = Duration::from_secs(10);

macro_rules! test {
    ($name:literal, $needs:expr, $check:path, $title:literal) => {
        behaviour!($name, "", Baseline, $needs, $check, $title)
    };
}

const CURSORS: Option<Capability> = Some(Capability::SinceRevision);
const DELETE: Option<Capability> = Some(Capability::Delete);

pub(crate) const ALL: &[Behaviour] = &[
    test!(
        "FullLifecycle",
        None,
        full_lifecycle,
        "the four edges in order"
    ),
    test!(
        "CreateIdempotent",
        None,
        create_twice,
        "two Creates, one operation"
    ),
    test!(
        "ConfigureIdempotent",
        None,
        configure_twice,
        "two Configures, one operation"
    ),
    test!(
        "DrainIdempotent",
        None,
        drain_twice,
        "two Drains, one operation"
    ),
    test!(
        "DeleteIdempotent",
        DELETE,
        delete_twice,
        "two Deletes, one operation"
    ),
    test!(
        "GetUnknownMachine",
        None,
        get_unknown,
        "Get of an unknown id is NOT_FOUND"
    ),
    test!(
        "DeleteUnknownMachine",
        None,
        delete_unknown,
        "Delete of an unknown id is NOT_FOUND"
    ),
    test!(
        "ListFiltersByState",
        None,
        filters,
        "List(IDLE) shows what is IDLE"
    ),
    test!("ListMaxResults", None, max_results, "a cap of one is a cap"),
    test!(
        "LabelShape",
        None,
        labels,
        "records have a type and a state"
    ),
    test!(
        "CostFieldBounds",
        None,
        costs,
        "prices and probabilities are in bounds"
    ),
    test!(
        "ListRevisionAdvances",
        CURSORS,
        revision,
        "a Create changes the revision"
    ),
    test!(
        "DrainOnSpeculative",
        None,
        drain_on_speculative,
        "Drain on SPECULATIVE is refused"
    ),
    test!(
        "DeleteOnConfigured",
        None,
        delete_on_configured,
        "Delete on CONFIGURED is refused"
    ),
    test!(
        "TransitionalStateObservability",
        None,
        observable,
        "only plausible states after Create"
    ),
    test!(
        "DrainGraceTimeout",
        None,
        grace,
        "a Drain without grace ends"
    ),
    test!(
        "FencingUnknownShardAccepted",
        None,
        unknown_shard,
        "a new shard is accepted"
    ),
    test!(
        "FencingStaleEpochRejected",
        None,
        stale_epoch,
        "an older epoch is fenced"
    ),
    test!(
        "FencingStaleSequenceRejected",
        None,
        stale_sequence,
        "an older sequence is fenced"
    ),
    test!(
        "FencingPerMachineIsolation",
        None,
        per_machine,
        "marks of machines do not interact"
    ),
    test!(
        "FencingNewEpochResetsSequence",
        None,
        new_epoch,
        "a new epoch begins anew"
    ),
    test!(
        "FencingReadsUnaffected",
        None,
        reads,
        "reads work for a fenced-out shard"
    ),
    test!(
        "MetadataEchoedOnGetAndList",
        None,
        echoed,
        "the map is on Get and List"
    ),
    test!(
        "MetadataAndBindingClearOnDrain",
        None,
        cleared,
        "Drain clears map and cluster"
    ),
    test!(
        "MetadataUnknownKeysPreservedVerbatim",
        None,
        verbatim,
        "unknown keys are kept"
    ),
];

async fn full_lifecycle(subject: &Subject) -> Check {
    let (id, mut steps) = subject.newcomer().await?;
    steps.extend([
        (configure("a"), State::Configured),
        (Call::Drain(0), State::Idle),
        (Call::Delete, State::Speculative),
    ]);
    for (call, target) in steps {
        let answer = subject.call(&id, call).await;
        if target == State::Speculative && code(&answer) == Code::Unimplemented {
            return Ok(());
        }
        ensure!(!answer?.operation_id.is_empty(), "no operation id");
        // A Drain has longer here than in the behaviours.
        subject.settled_with_others(&id, target).await?;
    }
    Ok(())
}

/// Twice at once after another, one operation.
async fn twice(subject: &Subject, id: &str, call: Call) -> Check {
    let first = subject.call(id, call.clone()).await?.operation_id;
    let again = subject.call(id, call).await?.operation_id;
    ensure!(!first.is_empty(), "no operation id");
    ensure!(first == again, "{first} became {again}");
    Ok(())
}

async fn create_twice(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    twice(subject, &id, Call::Create).await
}

async fn configure_twice(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    twice(subject, &id, configure("a")).await
}

async fn drain_twice(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    twice(subject, &id, Call::Drain(0)).await
}

async fn delete_twice(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    twice(subject, &id, Call::Delete).await
}

async fn get_unknown(subject: &Subject) -> Check {
    let answer = subject.get(&subject.ghost()).await;
    expect("Get", &answer, Code::NotFound)
}

async fn delete_unknown(subject: &Subject) -> Check {
    let answer = subject.call(&subject.ghost(), Call::Delete).await;
    if code(&answer) == Code::Unimplemented {
        return Ok(());
    }
    expect("Delete", &answer, Code::NotFound)
}

async fn filters(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    let idle = subject.list(&[State::Idle]).await?;
    ensure!(idle.iter().any(|m| m.id == id), "{id} is missing");
    let stranger = idle.iter().find(|m| m.state() != State::Idle);
    ensure!(stranger.is_none(), "List(IDLE) shows {stranger:?}");
    Ok(())
}

async fn max_results(subject: &Subject) -> Check {
    subject.inventory().await?;
    let filter = ListFilter {
        max_results: 1,
        ..ListFilter::default()
    };
    let count = subject.filter(filter).await?.machines.len();
    ensure!(count == 1, "{count} machines");
    Ok(())
}

async fn labels(subject: &Subject) -> Check {
    let all = subject.inventory().await?;
    all.iter().try_for_each(crate::shape::named)
}

async fn costs(subject: &Subject) -> Check {
    let all = subject.inventory().await?;
    all.iter().try_for_each(crate::shape::priced)
}

async fn revision(subject: &Subject) -> Check {
    let before = subject.head().await?;
    subject.configured("a").await?;
    ensure!(
        before != subject.head().await?,
        "the revision did not change"
    );
    Ok(())
}

async fn drain_on_speculative(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    refused(
        "Drain on SPECULATIVE",
        &subject.call(&id, Call::Drain(0)).await,
    )
}

async fn delete_on_configured(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    refused(
        "Delete on CONFIGURED",
        &subject.call(&id, Call::Delete).await,
    )?;
    let state = subject.get(&id).await?.state();
    ensure!(state == State::Configured, "it is {state:?}");
    Ok(())
}

async fn observable(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    subject.call(&id, Call::Create).await?;
    let plausible = [State::Speculative, State::Creating, State::Idle];
    subject
        .stays(&id, Duration::from_secs(1), |m| {
            plausible.contains(&m.state())
        })
        .await
}

async fn grace(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    subject.call(&id, Call::Drain(0)).await?;
    let started = Instant::now();
    loop {
        let m = subject.get(&id).await?;
        match m.state() {
            State::Idle => return Ok(()),
            State::Failed if !m.last_error.is_empty() => return Ok(()),
            State::Draining if started.elapsed() < GRACE_ENDS => {}
            state => {
                return Err(Unmet::Broken(format!(
                    "{state:?} after {:?}",
                    started.elapsed()
                )));
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Tokens on one machine, in order, and whether each must pass.
async fn tokens(subject: &Subject, steps: &[(i64, i64, bool)]) -> Check {
    let (probe, shard) = (subject.probe().await?, subject.shard());
    for (epoch, sequence, expected) in steps {
        let token = token(&shard, *epoch, *sequence);
        let passed = crate::fencing::passes(subject, &probe, &token).await?;
        ensure!(
            passed == *expected,
            "({epoch}, {sequence}): accepted is {passed}"
        );
    }
    Ok(())
}

async fn unknown_shard(subject: &Subject) -> Check {
    tokens(subject, &[(1, 1, true)]).await
}

async fn stale_epoch(subject: &Subject) -> Check {
    tokens(subject, &[(2, 1, true), (1, 99, false)]).await
}

async fn stale_sequence(subject: &Subject) -> Check {
    tokens(subject, &[(1, 5, true), (1, 4, false), (1, 5, false)]).await
}

async fn per_machine(subject: &Subject) -> Check {
    let (a, b, shard) = (
        subject.probe().await?,
        subject.probe().await?,
        subject.shard(),
    );
    for (probe, sequence) in [(&a, 9), (&b, 3)] {
        let passed = crate::fencing::passes(subject, probe, &token(&shard, 1, sequence)).await?;
        ensure!(passed, "(1, {sequence}) on {} was fenced", probe.0);
    }
    Ok(())
}

async fn new_epoch(subject: &Subject) -> Check {
    tokens(subject, &[(1, 50, true), (2, 1, true)]).await
}

async fn reads(subject: &Subject) -> Check {
    let ((id, probe), shard) = (subject.probe().await?, subject.shard());
    subject
        .fenced(&id, &token(&shard, 5, 5), probe.clone())
        .await?;
    let stale = subject.fenced(&id, &token(&shard, 1, 1), probe).await;
    expect("a stale token", &stale, Code::FailedPrecondition)?;
    subject.get(&id).await?;
    ensure!(!subject.list(&[]).await?.is_empty(), "List is empty");
    Ok(())
}

/// A machine that was configured with this map, as Get and as List show it.
async fn echo(subject: &Subject, pairs: &[(&str, &str)]) -> Result<String, Unmet> {
    let (id, metadata) = (subject.idle().await?, map(pairs));
    let call = Call::Configure("a".to_owned(), metadata.clone());
    subject.fenced(&id, &Token::default(), call).await?;
    let got = subject.settled(&id, State::Configured).await?;
    ensure!(
        got.shard_metadata == metadata,
        "Get shows {:?}",
        got.shard_metadata
    );
    let listed = subject.list(&[State::Configured]).await?;
    let listed = listed.into_iter().find(|m| m.id == id);
    ensure!(
        listed.is_some_and(|m| m.shard_metadata == metadata),
        "List shows something else"
    );
    Ok(id)
}

async fn echoed(subject: &Subject) -> Check {
    let pairs = [("bigfleet.lucy.sh/assigned-priority", "100")];
    echo(subject, &pairs).await.map(drop)
}

async fn cleared(subject: &Subject) -> Check {
    let id = echo(subject, &[("k", "v")]).await?;
    subject.call(&id, Call::Drain(0)).await?;
    let m = subject.settled_with_others(&id, State::Idle).await?;
    let clean = m.cluster.is_empty() && m.shard_metadata.is_empty();
    ensure!(clean, "not cleared: {m:?}");
    Ok(())
}

async fn verbatim(subject: &Subject) -> Check {
    let pairs = [("vendor.example/Unknown Key", " as is "), ("empty", "")];
    echo(subject, &pairs).await.map(drop)
}
