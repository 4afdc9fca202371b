//! Properties: random calls against a model of a few lines.

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::check::{code, expect, refused};
use crate::fencing::passes;
use crate::subject::{Call, Map, configure, token};
use crate::{Behaviour, Capability, Check, Subject};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "PROP-01",
        "B1201",
        Core,
        None,
        tokens,
        "240 tokens near the boundaries match the oracle"
    ),
    behaviour!(
        "PROP-02",
        "B1202",
        Core,
        None,
        maps,
        "20 random maps round-trip and are cleared"
    ),
    behaviour!(
        "PROP-03",
        "B1203",
        Core,
        None,
        walks,
        "random walks follow the four edges"
    ),
    behaviour!(
        "PROP-04",
        "B1204",
        Core,
        None,
        pairs,
        "three shards on four machines match the oracle per pair"
    ),
    behaviour!(
        "PROP-05",
        "B1205",
        Core,
        None,
        bad_shapes,
        "bad shapes get their code and are never fenced"
    ),
];

async fn tokens(subject: &Subject) -> Check {
    let (probe, shard) = (subject.probe().await?, subject.shard());
    let mut random = Prng::new(subject.rng_seed);
    let mut mark: Option<(i64, i64)> = None;
    for step in 0..240 {
        let (epoch, sequence) = mark.unwrap_or((1, 1));
        let near = [
            (epoch, sequence),
            (epoch, sequence.saturating_add(1)),
            (epoch, (sequence - 1).max(0)),
            ((epoch - 1).max(0), i64::MAX),
            (
                epoch + i64::from(random.below(20) == 0),
                random.below(1000) as i64,
            ),
        ];
        let next = *random.pick(&near);
        let expected = mark.is_none_or(|mark| mark < next);
        let passed = passes(subject, &probe, &token(&shard, next.0, next.1)).await?;
        let seed = subject.rng_seed;
        ensure!(
            passed == expected,
            "step {step} of seed {seed}: {next:?} after {mark:?}"
        );
        if expected {
            mark = Some(next);
        }
    }
    Ok(())
}

async fn maps(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    let mut random = Prng::new(subject.rng_seed);
    for round in 0..20 {
        let count = random.below(12);
        let metadata: Map = (0..count)
            .map(|_| (text(&mut random, 20), text(&mut random, 60)))
            .collect();
        subject
            .call(&id, Call::Configure("a".to_owned(), metadata.clone()))
            .await?;
        let got = subject.settled(&id, State::Configured).await?;
        let listed = subject
            .list(&[State::Configured])
            .await?
            .into_iter()
            .find(|m| m.id == id);
        let same =
            got.shard_metadata == metadata && listed.is_some_and(|m| m.shard_metadata == metadata);
        ensure!(
            same,
            "round {round} of seed {}: the map changed",
            subject.rng_seed
        );
        subject.call(&id, Call::Drain(0)).await?;
        let idle = subject.settled(&id, State::Idle).await?;
        ensure!(idle.shard_metadata.is_empty(), "round {round}: not cleared");
    }
    Ok(())
}

async fn walks(subject: &Subject) -> Check {
    let mut random = Prng::new(subject.rng_seed);
    for walk in 0..5 {
        let (id, mut state) = if subject.can(Capability::Create) {
            (subject.fresh().await?, State::Speculative)
        } else {
            (subject.idle().await?, State::Idle)
        };
        for step in 0..9 {
            let call = random
                .pick(&[Call::Create, configure("a"), Call::Drain(0), Call::Delete])
                .clone();
            let (source, target) = match call {
                Call::Create => (State::Speculative, State::Idle),
                Call::Configure(..) => (State::Idle, State::Configured),
                Call::Drain(_) => (State::Configured, State::Idle),
                Call::Delete => (State::Idle, State::Speculative),
            };
            let answer = subject.call(&id, call.clone()).await;
            let place = format!(
                "walk {walk}, step {step}, seed {}: {call:?}",
                subject.rng_seed
            );
            match code(&answer) {
                Code::Ok if state == source => state = target,
                // A retry of what was done before.
                Code::Ok => ensure!(state == target, "{place} on {state:?} was accepted"),
                Code::Unimplemented if matches!(call, Call::Delete) => {}
                _ => {
                    refused(&place, &answer)?;
                    ensure!(state != source, "{place} on {state:?} was refused");
                }
            }
            subject.settled(&id, state).await?;
            subject
                .stays(&id, Duration::from_millis(30), |m| m.state() == state)
                .await?;
        }
    }
    Ok(())
}

async fn pairs(subject: &Subject) -> Check {
    let mut machines = Vec::new();
    for _ in 0..4 {
        machines.push(subject.probe().await?);
    }
    let shards = [subject.shard(), subject.shard(), subject.shard()];
    let mut random = Prng::new(subject.rng_seed);
    let mut marks: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for step in 0..200 {
        let (probe, shard) = (random.pick(&machines), random.pick(&shards).clone());
        let id = probe.0.clone();
        let next = (random.below(4) as i64, random.below(30) as i64);
        let expected = marks
            .get(&(id.clone(), shard.clone()))
            .is_none_or(|mark| *mark < next);
        let passed = passes(subject, probe, &token(&shard, next.0, next.1)).await?;
        ensure!(
            passed == expected,
            "step {step} of seed {}: {next:?}",
            subject.rng_seed
        );
        if expected {
            marks.insert((id, shard), next);
        }
    }
    let new = subject.shard();
    for probe in &machines {
        ensure!(
            passes(subject, probe, &token(&new, 1, 1)).await?,
            "a new shard was fenced"
        );
    }
    Ok(())
}

async fn bad_shapes(subject: &Subject) -> Check {
    let mut random = Prng::new(subject.rng_seed);
    for round in 0..40 {
        let what = format!("round {round} of seed {}", subject.rng_seed);
        let odd = token(
            &subject.shard(),
            random.below(1 << 62) as i64,
            random.below(3) as i64,
        );
        match random.below(5) {
            0 => {
                let answer = subject.fenced("", &odd, Call::Create).await;
                expect(&what, &answer, Code::InvalidArgument)?;
            }
            1 => {
                let answer = subject.fenced(&subject.ghost(), &odd, Call::Drain(0)).await;
                expect(&what, &answer, Code::NotFound)?;
            }
            2 => {
                let id = subject.configured("a").await?;
                let grace = -1 - random.below(100) as i64;
                let answer = subject.fenced(&id, &odd, Call::Drain(grace)).await;
                let right = [Code::InvalidArgument, Code::Ok].contains(&code(&answer));
                ensure!(right, "{what}: grace {grace}: {:?}", code(&answer));
            }
            3 => {
                let count = 400 + random.below(400);
                let metadata: Map = (0..count)
                    .map(|at| {
                        (
                            format!("{at}{}", text(&mut random, 9)),
                            text(&mut random, 40),
                        )
                    })
                    .collect();
                crate::errors::whole_or_refused(subject, metadata).await?;
            }
            _ => {
                let blob = vec![round as u8; (64 << 10) + random.below(64 << 10)];
                crate::errors::blob_taken_or_refused(subject, &odd, blob).await?;
            }
        }
    }
    Ok(())
}

/// Any text, from control characters to the far planes.
fn text(random: &mut Prng, most: usize) -> String {
    let length = random.below(most + 1);
    (0..length)
        .map(|_| match random.below(4) {
            0 => char::from(random.below(32) as u8),
            1 => char::from(32 + random.below(95) as u8),
            2 => char::from_u32(0x00a1 + random.below(0x2000) as u32).unwrap_or('ß'),
            _ => char::from_u32(0x1_f300 + random.below(0x200) as u32).unwrap_or('🚀'),
        })
        .collect()
}
