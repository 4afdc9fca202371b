//! Concurrency: many identical calls are one; conflicting calls have one winner.

use std::collections::BTreeSet;

use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::check::{code, unfenced};
use crate::subject::{
    Call, SETTLE, burst, configure, has_host, machine, map, one_operation, send, token,
};
use crate::{Behaviour, Capability, Check, Subject, Unmet};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "CONC-01",
        "B401",
        Core,
        None,
        creates,
        "sixteen Creates are one"
    ),
    behaviour!(
        "CONC-02",
        "B402",
        Core,
        None,
        configures,
        "sixteen Configures are one"
    ),
    behaviour!(
        "CONC-03",
        "B403",
        Core,
        None,
        drains,
        "sixteen Drains are one"
    ),
    behaviour!(
        "CONC-04",
        "B404",
        Core,
        None,
        conflict,
        "Configure against Drain ends in one place"
    ),
    behaviour!(
        "CONC-05",
        "B405",
        Core,
        None,
        two_lives,
        "two lives of a shard: the old one loses every call"
    ),
    behaviour!(
        "CONC-06",
        "B407",
        Core,
        None,
        machines,
        "eight machines at once do not mix"
    ),
    behaviour!(
        "CONC-07",
        "B408",
        Core,
        None,
        snapshots,
        "every ack of a burst is consistent"
    ),
    behaviour!(
        "CONC-08",
        "B409",
        Core,
        Some(Capability::Delete),
        deletes,
        "sixteen Deletes are one"
    ),
];

async fn creates(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    one_operation(burst(&subject.client(), 16, &id, &Call::Create).await)?;
    subject.settled(&id, State::Idle).await.map(drop)
}

async fn configures(subject: &Subject) -> Check {
    let (id, metadata) = (subject.idle().await?, map(&[("k", "v"), ("empty", "")]));
    let call = Call::Configure("a".to_owned(), metadata.clone());
    one_operation(burst(&subject.client(), 16, &id, &call).await)?;
    let m = subject.settled(&id, State::Configured).await?;
    ensure!(
        m.cluster == "a" && m.shard_metadata == metadata,
        "not what was asked: {m:?}"
    );
    Ok(())
}

async fn drains(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    one_operation(burst(&subject.client(), 16, &id, &Call::Drain(0)).await)?;
    let m = subject.settled(&id, State::Idle).await?;
    ensure!(
        m.cluster.is_empty() && m.shard_metadata.is_empty(),
        "still bound: {m:?}"
    );
    Ok(())
}

async fn conflict(subject: &Subject) -> Check {
    for _ in 0..4 {
        let id = subject.configured("a").await?;
        let (configured, drained) = tokio::join!(
            subject.call(&id, configure("b")),
            subject.call(&id, Call::Drain(0))
        );
        unfenced("Configure", &configured)?;
        unfenced("Drain", &drained)?;
        let started = std::time::Instant::now();
        loop {
            let m = subject.get(&id).await?;
            match m.state() {
                State::Idle if m.cluster.is_empty() => break,
                State::Configured if m.cluster == "a" || m.cluster == "b" => break,
                State::Idle | State::Configured => {
                    return Err(Unmet::Broken(format!("mixed: {m:?}")));
                }
                state => ensure!(started.elapsed() < SETTLE, "stuck at {state:?}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    Ok(())
}

async fn two_lives(subject: &Subject) -> Check {
    let ((id, probe), shard) = (subject.probe().await?, subject.shard());
    subject
        .fenced(&id, &token(&shard, 1, 1000), probe.clone())
        .await?;
    // Before the first call of the new life the old one is stale only below its own mark.
    let mut tasks = Vec::new();
    for sequence in 1..=12 {
        for epoch in [1, 2] {
            let (client, id, probe) = (subject.client(), id.clone(), probe.clone());
            let token = token(&shard, epoch, sequence);
            let call = async move { (epoch, send(client, &id, &token, probe).await) };
            tasks.push(tokio::spawn(call));
        }
    }
    let mut live = 0;
    for task in tasks {
        let (epoch, answer) = task.await.map_err(|why| Unmet::Broken(why.to_string()))?;
        match (epoch, code(&answer)) {
            (1, Code::FailedPrecondition) | (2, Code::FailedPrecondition) => {}
            (2, Code::Ok) => live += 1,
            (epoch, code) => return Err(Unmet::Broken(format!("epoch {epoch}: {code:?}"))),
        }
    }
    ensure!(0 < live, "the new life was never accepted");
    let stale = subject
        .fenced(&id, &token(&shard, 1, 9), probe.clone())
        .await;
    crate::check::expect("(1, 9) afterwards", &stale, Code::FailedPrecondition)?;
    subject.fenced(&id, &token(&shard, 2, 9999), probe).await?;
    Ok(())
}

async fn machines(subject: &Subject) -> Check {
    let ids = subject.fresh_many(8).await?;
    let mut tasks = Vec::new();
    for id in &ids {
        let (client, id) = (subject.client(), id.clone());
        tasks.push(tokio::spawn(async move {
            burst(&client, 1, &id, &Call::Create).await
        }));
    }
    let mut operations = BTreeSet::new();
    for task in tasks {
        operations.insert(one_operation(
            task.await.map_err(|why| Unmet::Broken(why.to_string()))?,
        )?);
    }
    ensure!(
        operations.len() == 8,
        "eight machines, {} operations",
        operations.len()
    );
    for id in &ids {
        let m = subject.settled_with_others(id, State::Idle).await?;
        ensure!(
            m.id == *id && m.cluster.is_empty(),
            "foreign binding: {m:?}"
        );
    }
    Ok(())
}

async fn snapshots(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    for answer in burst(&subject.client(), 16, &id, &configure("a")).await {
        let ack = answer?;
        let m = machine(&ack)?;
        let right = match m.state() {
            State::Configuring => true,
            State::Configured => m.cluster == "a",
            _ => false,
        };
        ensure!(right, "an ack shows {:?} for \"{}\"", m.state(), m.cluster);
    }
    subject.settled(&id, State::Configured).await.map(drop)
}

async fn deletes(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    one_operation(burst(&subject.client(), 16, &id, &Call::Delete).await)?;
    let m = subject.settled(&id, State::Speculative).await?;
    ensure!(!has_host(&m), "the host is still there");
    Ok(())
}
