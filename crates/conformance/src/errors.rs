//! Errors: what is refused, with which code, and that it changes nothing.

use std::time::Duration;

use bigfleet_wire::v1alpha1 as wire;
use tonic::Code;
use wire::MachineState as State;

use crate::check::{code, expect, refused, unfenced};
use crate::subject::{CALL, Call, Map, Token, configure, map, token};
use crate::{Behaviour, Capability, Check, Subject};

const QUIET: Duration = Duration::from_millis(250);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "ERR-01",
        "B201",
        Core,
        None,
        create_on_configured,
        "Create on CONFIGURED is refused"
    ),
    behaviour!(
        "ERR-02",
        "B202",
        Core,
        None,
        configure_on_speculative,
        "Configure on SPECULATIVE is refused, nothing leaks"
    ),
    behaviour!(
        "ERR-03",
        "B203",
        Core,
        None,
        drain_on_idle,
        "Drain on IDLE leaves it IDLE"
    ),
    behaviour!(
        "ERR-04",
        "B204",
        Core,
        None,
        delete_out_of_place,
        "Delete on SPECULATIVE and CONFIGURED leaves them"
    ),
    behaviour!(
        "ERR-05",
        "B207",
        Core,
        None,
        unknown_machine,
        "mutations of an unknown id are NOT_FOUND"
    ),
    behaviour!(
        "ERR-06",
        "B208",
        Core,
        None,
        empty_id,
        "an empty id is INVALID_ARGUMENT"
    ),
    behaviour!(
        "ERR-07",
        "B209",
        Core,
        None,
        large_metadata,
        "512 keys of 1 KiB are kept verbatim or refused whole"
    ),
    behaviour!(
        "ERR-08",
        "B210",
        Core,
        None,
        negative_grace,
        "a negative grace is refused or means now"
    ),
    behaviour!(
        "ERR-09",
        "B211",
        Core,
        None,
        negative_tokens,
        "negative tokens of a new shard are never fenced"
    ),
    behaviour!(
        "ERR-10",
        "B212",
        Core,
        None,
        largest_token,
        "the largest token is a token"
    ),
    behaviour!(
        "ERR-11",
        "B213",
        Core,
        None,
        large_blob,
        "a 3 MiB blob is taken or refused whole"
    ),
    behaviour!(
        "ERR-12",
        "B215",
        Core,
        None,
        unknown_reads,
        "Get and Delete of an unknown id"
    ),
];

async fn create_on_configured(subject: &Subject) -> Check {
    // Configure away from Create's target; a Create at IDLE would be a legal retry.
    let id = subject.configured("keep").await?;
    refused(
        "Create on CONFIGURED",
        &subject.call(&id, Call::Create).await,
    )?;
    let holds = |m: &wire::Machine| m.state() == State::Configured && m.cluster == "keep";
    subject.stays(&id, QUIET, holds).await
}

async fn configure_on_speculative(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    let call = Call::Configure("leak".to_owned(), map(&[("k", "v")]));
    refused("Configure on SPECULATIVE", &subject.call(&id, call).await)?;
    let holds = |m: &wire::Machine| {
        m.state() == State::Speculative && m.cluster.is_empty() && m.shard_metadata.is_empty()
    };
    subject.stays(&id, QUIET, holds).await
}

async fn drain_on_idle(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    unfenced("Drain on IDLE", &subject.call(&id, Call::Drain(0)).await)?;
    subject
        .stays(&id, QUIET, |m| m.state() == State::Idle)
        .await
}

async fn delete_out_of_place(subject: &Subject) -> Check {
    if subject.can(Capability::Create) {
        let id = subject.fresh().await?;
        unfenced(
            "Delete on SPECULATIVE",
            &subject.call(&id, Call::Delete).await,
        )?;
        subject
            .stays(&id, QUIET, |m| m.state() == State::Speculative)
            .await?;
    }
    let id = subject.configured("keep").await?;
    refused(
        "Delete on CONFIGURED",
        &subject.call(&id, Call::Delete).await,
    )?;
    subject
        .stays(&id, QUIET, |m| {
            m.state() == State::Configured && m.cluster == "keep"
        })
        .await
}

async fn unknown_machine(subject: &Subject) -> Check {
    let ghost = subject.ghost();
    for call in [Call::Create, configure("a"), Call::Drain(0)] {
        let what = format!("{call:?} of an unknown id");
        expect(&what, &subject.call(&ghost, call).await, Code::NotFound)?;
    }
    expect("Get afterwards", &subject.get(&ghost).await, Code::NotFound)
}

async fn empty_id(subject: &Subject) -> Check {
    expect("Get", &subject.get("").await, Code::InvalidArgument)?;
    for call in [Call::Create, configure("a"), Call::Drain(0)] {
        let what = format!("{call:?} of an empty id");
        expect(&what, &subject.call("", call).await, Code::InvalidArgument)?;
    }
    Ok(())
}

/// The map is there byte for byte, or the machine was not touched.
pub(crate) async fn whole_or_refused(subject: &Subject, metadata: Map) -> Check {
    let id = subject.idle().await?;
    let answer = subject
        .call(&id, Call::Configure("big".to_owned(), metadata.clone()))
        .await;
    match code(&answer) {
        Code::Ok => {
            let machine = subject.settled(&id, State::Configured).await?;
            ensure!(machine.shard_metadata == metadata, "the map was changed");
        }
        Code::InvalidArgument => {
            let m = subject.get(&id).await?;
            let clean = m.cluster.is_empty() && m.shard_metadata.is_empty();
            ensure!(
                m.state() == State::Idle && clean,
                "refused and yet moved: {:?}",
                m.state()
            );
        }
        other => return Err(crate::Unmet::Broken(format!("{other:?}"))),
    }
    Ok(())
}

async fn large_metadata(subject: &Subject) -> Check {
    let entry = |key: usize| (format!("key-{key:04}"), "v".repeat(1024));
    whole_or_refused(subject, (0..512).map(entry).collect()).await
}

async fn negative_grace(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    let answer = subject.call(&id, Call::Drain(-5)).await;
    match code(&answer) {
        Code::InvalidArgument => {
            subject
                .stays(&id, QUIET, |m| {
                    m.state() == State::Configured && m.cluster == "a"
                })
                .await
        }
        Code::Ok => {
            let idle = subject.settled(&id, State::Idle).await?;
            ensure!(
                idle.cluster.is_empty() && idle.last_error.is_empty(),
                "not clean"
            );
            Ok(())
        }
        other => Err(crate::Unmet::Broken(format!("{other:?}"))),
    }
}

async fn negative_tokens(subject: &Subject) -> Check {
    for (epoch, sequence) in [(-1, 1), (1, -1), (-7, -3)] {
        let id = subject.fresh().await?;
        let token = token(&subject.shard(), epoch, sequence);
        let answer = subject.fenced(&id, &token, Call::Create).await;
        match code(&answer) {
            Code::Ok => drop(subject.settled(&id, State::Idle).await?),
            Code::InvalidArgument => {
                let state = subject.get(&id).await?.state();
                ensure!(state == State::Speculative, "refused and yet {state:?}");
            }
            other => {
                return Err(crate::Unmet::Broken(format!(
                    "({epoch}, {sequence}): {other:?}"
                )));
            }
        }
    }
    Ok(())
}

async fn largest_token(subject: &Subject) -> Check {
    let (id, shard, most) = (subject.idle().await?, subject.shard(), i64::MAX);
    subject
        .fenced(&id, &token(&shard, most, most), configure("a"))
        .await?;
    for stale in [token(&shard, most, most), token(&shard, most - 1, most)] {
        let answer = subject.fenced(&id, &stale, configure("a")).await;
        expect(
            "a token that is not newer",
            &answer,
            Code::FailedPrecondition,
        )?;
    }
    Ok(())
}

async fn large_blob(subject: &Subject) -> Check {
    blob_taken_or_refused(subject, &Token::default(), vec![0xa5; 3 << 20]).await
}

/// The machine is bound, or it was not touched.
pub(crate) async fn blob_taken_or_refused(
    subject: &Subject,
    token: &Token,
    bootstrap_blob: Vec<u8>,
) -> Check {
    let id = subject.idle().await?;
    let mut request = tonic::Request::new(wire::ConfigureRequest {
        machine_id: id.clone(),
        cluster_id: "a".to_owned(),
        bootstrap_blob,
        shard_id: token.shard.clone(),
        shard_epoch: token.epoch,
        sequence_number: token.sequence,
        ..Default::default()
    });
    request.set_timeout(CALL);
    let answer = subject.client().configure(request).await;
    match code(&answer) {
        Code::Ok => {
            let machine = subject.settled(&id, State::Configured).await?;
            ensure!(machine.cluster == "a", "not bound");
        }
        Code::InvalidArgument | Code::ResourceExhausted => {
            let m = subject.get(&id).await?;
            ensure!(
                m.state() == State::Idle && m.cluster.is_empty(),
                "refused and yet moved"
            );
        }
        other => return Err(crate::Unmet::Broken(format!("{other:?}"))),
    }
    Ok(())
}

async fn unknown_reads(subject: &Subject) -> Check {
    let ghost = subject.ghost();
    expect("Get", &subject.get(&ghost).await, Code::NotFound)?;
    let delete = code(
        &subject
            .fenced(&ghost, &Token::default(), Call::Delete)
            .await,
    );
    // A provider may give back some of its machines and not others, and cannot know which this would be.
    let right = [Code::NotFound, Code::Unimplemented].contains(&delete);
    ensure!(right, "Delete: {delete:?}");
    Ok(())
}
