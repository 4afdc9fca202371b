//! Scale: the same promises with thousands of slots, and within their budgets.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ListFilter, MachineState as State};

use crate::list::ids;
use crate::subject::{Call, burst, configure, one_operation, standing};
use crate::{Behaviour, Capability, Check, Subject, Unmet};

const CURSORS: Option<Capability> = Some(Capability::SinceRevision);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "SCALE-01",
        "B1101",
        Scale,
        None,
        every_record,
        "every record of a large fleet is sound"
    ),
    behaviour!(
        "SCALE-02",
        "B1102",
        Scale,
        CURSORS,
        exact_delta,
        "a delta is exactly what moved"
    ),
    behaviour!(
        "SCALE-03",
        "B1103",
        Scale,
        CURSORS,
        paging,
        "pages of 500 name everything once"
    ),
    behaviour!(
        "SCALE-04",
        "B1104",
        Scale,
        None,
        churn,
        "machines that churn are clean at every IDLE"
    ),
    behaviour!(
        "SCALE-05",
        "B1105",
        Scale,
        Some(Capability::Delete),
        balance,
        "what was created and not deleted is there"
    ),
    behaviour!(
        "SCALE-06",
        "B1106",
        Scale,
        None,
        budgets,
        "Get, Create and List within their budgets"
    ),
    behaviour!(
        "SCALE-07",
        "B1107",
        Scale,
        None,
        full_list,
        "one full List within 3 s"
    ),
    behaviour!(
        "SCALE-08",
        "B1108",
        Scale,
        None,
        parallel,
        "sixteen Creates at once"
    ),
    behaviour!(
        "SCALE-09",
        "B1109",
        Scale,
        None,
        no_drift,
        "idle machines do not drift"
    ),
];

async fn every_record(subject: &Subject) -> Check {
    let all = subject.list(&[]).await?;
    ids(&all)?;
    ensure!(
        subject.seeds <= all.len(),
        "{} of {} machines",
        all.len(),
        subject.seeds
    );
    for m in &all {
        crate::shape::named(m)?;
        crate::shape::priced(m)?;
        crate::shape::in_a_place(m)?;
    }
    Ok(())
}

async fn exact_delta(subject: &Subject) -> Check {
    subject.quiet().await?;
    let mut moved = BTreeSet::new();
    for _ in 0..20 {
        moved.insert(subject.idle().await?);
    }
    let before = subject.head().await?;
    for id in &moved {
        subject.call(id, configure("a")).await?;
        subject.settled(id, State::Configured).await?;
    }
    let delta = ids(&subject.since(&before).await?.machines)?;
    ensure!(delta == moved, "{} machines, not 20", delta.len());
    Ok(())
}

async fn paging(subject: &Subject) -> Check {
    subject.quiet().await?;
    let all = ids(&subject.list(&[]).await?)?;
    let head = subject.head().await?;
    let (mut seen, mut cursor, mut echoes_head) = (Vec::new(), Vec::new(), None);
    loop {
        let since_revision = cursor.clone();
        let filter = ListFilter {
            max_results: 500,
            since_revision,
            ..ListFilter::default()
        };
        let page = subject.filter(filter).await?;
        ensure!(
            page.machines.len() <= 500,
            "{} on a page of 500",
            page.machines.len()
        );
        if page.machines.is_empty() {
            break;
        }
        seen.extend(page.machines);
        cursor = page.revision;
        echoes_head.get_or_insert(cursor == head);
        ensure!(seen.len() <= all.len(), "a machine occurs twice");
    }
    let seen = ids(&seen)?;
    ensure!(
        seen == all || echoes_head == Some(true),
        "{} of {} machines",
        seen.len(),
        all.len()
    );
    Ok(())
}

async fn churn(subject: &Subject) -> Check {
    let started = Instant::now();
    let mut machines = Vec::new();
    for _ in 0..8 {
        machines.push(subject.idle().await?);
    }
    while started.elapsed() < subject.soak {
        for id in &machines {
            subject.call(id, configure("a")).await?;
        }
        for id in &machines {
            subject.settled_with_others(id, State::Configured).await?;
            subject.call(id, Call::Drain(0)).await?;
        }
        for id in &machines {
            let m = subject.settled_with_others(id, State::Idle).await?;
            let clean = m.cluster.is_empty() && m.shard_metadata.is_empty();
            ensure!(clean && m.last_error.is_empty(), "not clean: {m:?}");
        }
    }
    Ok(())
}

async fn balance(subject: &Subject) -> Check {
    subject.quiet().await?;
    let (size, before) = (
        subject.list(&[]).await?.len(),
        subject.list(&[State::Idle]).await?.len(),
    );
    let (started, mut created, mut deleted) = (Instant::now(), 0, 0);
    while started.elapsed() < subject.soak / 2 {
        let (kept, gone) = (subject.idle().await?, subject.idle().await?);
        created += 2;
        subject.call(&gone, Call::Delete).await?;
        subject.settled(&gone, State::Speculative).await?;
        deleted += 1;
        drop(kept);
    }
    let after = subject.list(&[State::Idle]).await?.len();
    ensure!(
        after == before + created - deleted,
        "{before} + {created} - {deleted} is {after}"
    );
    ensure!(
        subject.list(&[]).await?.len() == size,
        "the fleet changed its size"
    );
    Ok(())
}

/// The time that 99 of 100 calls stay within.
pub(crate) fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = (times.len() * 99).div_ceil(100).max(1) - 1;
    times.get(at).copied().unwrap_or_default()
}

async fn budgets(subject: &Subject) -> Check {
    let some = subject.list(&[State::Speculative]).await?;
    let (mut gets, mut creates, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for m in some.iter().take(120) {
        let started = Instant::now();
        subject.get(&m.id).await?;
        gets.push(started.elapsed());
    }
    for id in subject.fresh_many(60).await? {
        let started = Instant::now();
        subject.call(&id, Call::Create).await?;
        creates.push(started.elapsed());
    }
    for _ in 0..120 {
        let started = Instant::now();
        subject.list(&[]).await?;
        lists.push(started.elapsed());
    }
    let (get, create, list) = (p99(gets), p99(creates), p99(lists));
    let within = get <= Duration::from_millis(250)
        && create <= Duration::from_millis(250)
        && list <= Duration::from_secs(2);
    ensure!(within, "p99: Get {get:?}, Create {create:?}, List {list:?}");
    Ok(())
}

async fn full_list(subject: &Subject) -> Check {
    subject.list(&[]).await?;
    let started = Instant::now();
    let count = subject.list(&[]).await?.len();
    let took = started.elapsed();
    ensure!(took <= Duration::from_secs(3), "{took:?}");
    ensure!(subject.seeds <= count, "{count} of {}", subject.seeds);
    Ok(())
}

async fn parallel(subject: &Subject) -> Check {
    // Sixteen, and not sixteen behind what an earlier check has left under way.
    subject.quiet().await?;
    let machines = subject.fresh_many(16).await?;
    let mut tasks = Vec::new();
    for id in machines.clone() {
        let client = subject.client();
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
    ensure!(operations.len() == 16, "{} operations", operations.len());
    for id in &machines {
        subject.settled_with_others(id, State::Idle).await?;
    }
    Ok(())
}

async fn no_drift(subject: &Subject) -> Check {
    subject.quiet().await?;
    let mut before = Vec::new();
    for _ in 0..8 {
        let id = subject.idle().await?;
        before.push(subject.get(&id).await?);
    }
    let (least, most) = (Duration::from_millis(500), Duration::from_secs(3));
    let window = (subject.soak / 4).clamp(least, most);
    let started = Instant::now();
    while started.elapsed() < window {
        for m in &before {
            let now = subject.get(&m.id).await?;
            ensure!(standing(&now) == standing(m), "{} drifted: {now:?}", m.id);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
