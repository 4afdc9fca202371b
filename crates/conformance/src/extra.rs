//! Promises of ours: what follows from the contract and the reference suite does not check.

mod durable;
mod notices;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ListFilter, MachineRef, MachineState as State};
use tonic::Code;

use crate::check::{code, expect, refused};
use crate::list::ids;
use crate::subject::{Call, SETTLE, configure, grid, machine, map, send};
use crate::{Behaviour, Capability, Check, Subject, Token, Unmet};

const CURSORS: Option<Capability> = Some(Capability::SinceRevision);
/// Durable mutations per second a provider must reach with 64 callers.
const THROUGHPUT: f64 = 500.0;
/// More than half of what a transition may take where faults are injected, 2 s.
const DWELL: Duration = Duration::from_millis(1_200);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "X-01",
        "",
        Core,
        None,
        no_cluster,
        "Configure without a cluster is INVALID_ARGUMENT"
    ),
    behaviour!(
        "X-02",
        "",
        Core,
        None,
        other_cluster,
        "another cluster does not get a bound machine"
    ),
    behaviour!(
        "X-03",
        "",
        Core,
        None,
        delete_empty,
        "Delete with an empty id is INVALID_ARGUMENT"
    ),
    behaviour!(
        "X-04",
        "",
        Core,
        None,
        full_acks,
        "every ack carries a full record that fits its state"
    ),
    behaviour!(
        "X-05",
        "",
        Core,
        None,
        deadlines,
        "deadlines are honoured, unknown filter states handled"
    ),
    behaviour!(
        "X-06",
        "",
        Core,
        CURSORS,
        continuation,
        "a truncated page's cursor loses nothing"
    ),
    behaviour!(
        "X-07",
        "",
        Core,
        CURSORS,
        foreign_cursor,
        "a cursor of another store gives the full list"
    ),
    behaviour!(
        "X-08",
        "",
        Fault,
        CURSORS,
        field_change,
        "a price that changes is in the delta"
    ),
    behaviour!(
        "X-09",
        "",
        Durable,
        None,
        durable::killed_after_ack,
        "killed right after the ack: nothing acknowledged is lost"
    ),
    behaviour!(
        "X-10",
        "",
        Durable,
        None,
        durable::faults_survive,
        "faults of the provider itself survive a kill"
    ),
    behaviour!(
        "X-11",
        "",
        Durable,
        None,
        durable::never_torn,
        "killed again and again under load: never torn"
    ),
    behaviour!(
        "X-12",
        "",
        Scale,
        None,
        throughput,
        "durable mutations per second at scale"
    ),
    behaviour!(
        "X-13",
        "",
        Durable,
        None,
        durable::refused_mark,
        "the mark of a refused call survives"
    ),
    behaviour!(
        "X-14",
        "",
        Fault,
        None,
        forced_drain,
        "a Drain longer than its grace is forced"
    ),
    behaviour!(
        "X-15",
        "",
        BareMetal,
        None,
        bare_metal,
        "bare metal: idle hosts, never deleted"
    ),
    behaviour!(
        "X-16",
        "",
        Fault,
        None,
        mid_transition,
        "a retry in the middle starts nothing"
    ),
    behaviour!(
        "X-17",
        "",
        Fault,
        CURSORS,
        notices::announced_and_withdrawn,
        "a machine's notice is in Get and List, and so is its withdrawal"
    ),
];

async fn no_cluster(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    expect(
        "Configure for \"\"",
        &subject.call(&id, configure("")).await,
        Code::InvalidArgument,
    )?;
    subject
        .stays(&id, Duration::from_millis(100), |m| {
            m.state() == State::Idle
        })
        .await
}

async fn other_cluster(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    refused(
        "Configure for another cluster",
        &subject.call(&id, configure("b")).await,
    )?;
    let holds =
        |m: &bigfleet_wire::v1alpha1::Machine| m.state() == State::Configured && m.cluster == "a";
    subject.stays(&id, Duration::from_millis(100), holds).await
}

async fn delete_empty(subject: &Subject) -> Check {
    expect(
        "Delete of \"\"",
        &subject.call("", Call::Delete).await,
        Code::InvalidArgument,
    )
}

async fn full_acks(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    let slot = subject.get(&id).await?;
    let steps = [
        (Call::Create, State::Idle),
        (
            Call::Configure("a".to_owned(), map(&[("k", "v")])),
            State::Configured,
        ),
        (Call::Drain(0), State::Idle),
        (Call::Delete, State::Speculative),
    ];
    for (call, target) in steps {
        let answer = subject.call(&id, call.clone()).await;
        if code(&answer) == Code::Unimplemented {
            return Ok(());
        }
        let ack = answer?;
        let m = machine(&ack)?;
        grid(m)?;
        let whole = m.id == id
            && m.instance_type == slot.instance_type
            && m.zone == slot.zone
            && m.price_per_hour == slot.price_per_hour;
        ensure!(whole, "{call:?}: not a full record: {m:?}");
        subject.settled(&id, target).await?;
    }
    Ok(())
}

async fn deadlines(subject: &Subject) -> Check {
    // A timer takes a millisecond to fire, and a quick provider may answer within it; not every time.
    let mut given_up = Code::Ok;
    for _ in 0..100 {
        let mut request = tonic::Request::new(ListFilter::default());
        request.set_timeout(Duration::from_nanos(1));
        given_up = code(&subject.client().list(request).await);
        if given_up != Code::Ok {
            break;
        }
    }
    let right = [Code::DeadlineExceeded, Code::Cancelled].contains(&given_up);
    ensure!(right, "a deadline in the past: {given_up:?}");
    let hung_up = tokio::time::timeout(Duration::ZERO, subject.list(&[])).await;
    drop(hung_up);
    let id = subject.idle().await?;
    let mut request = tonic::Request::new(MachineRef { id });
    request.set_timeout(Duration::from_secs(5));
    subject.client().get(request).await?;
    let filter = ListFilter {
        states: vec![99],
        ..ListFilter::default()
    };
    match subject.filter(filter).await {
        Ok(list) => ensure!(list.machines.is_empty(), "state 99 matches something"),
        Err(status) => ensure!(status.code() == Code::InvalidArgument, "{status}"),
    }
    Ok(())
}

async fn continuation(subject: &Subject) -> Check {
    let all = ids(&subject.list(&[]).await?)?;
    let (mut seen, mut cursor, mut meanwhile) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
    for page in 0.. {
        let since_revision = cursor.clone();
        let filter = ListFilter {
            max_results: 50,
            since_revision,
            ..ListFilter::default()
        };
        let answer = subject.filter(filter).await?;
        if answer.machines.is_empty() {
            break;
        }
        // A machine that moves during the listing must come again, in its new state.
        for m in answer.machines {
            if m.state() == State::Configured {
                meanwhile.remove(&m.id);
            }
            seen.insert(m.id);
        }
        cursor = answer.revision;
        if page == 1 {
            meanwhile.insert(subject.configured("a").await?);
        }
        ensure!(page < 1000, "it does not end");
    }
    ensure!(seen == all, "{} of {} machines", seen.len(), all.len());
    ensure!(
        meanwhile.is_empty(),
        "what moved meanwhile was lost: {meanwhile:?}"
    );
    Ok(())
}

async fn foreign_cursor(subject: &Subject) -> Check {
    let other = subject.boot(16, None, &[]).await?;
    other.idle().await?;
    let cursor = other.head().await?;
    let all = ids(&subject.list(&[]).await?)?;
    let found = ids(&subject.since(&cursor).await?.machines)?;
    ensure!(found == all, "{} of {} machines", found.len(), all.len());
    Ok(())
}

async fn field_change(subject: &Subject) -> Check {
    let flags = [
        "--fault-hooks",
        "--transition-timeout=2s",
        "--reconcile-interval=200ms",
        "--price-refresh=200ms",
    ];
    let subject = &subject.boot(16, None, &flags).await?;
    let id = subject.idle().await?;
    let (before, cursor) = (subject.get(&id).await?, subject.head().await?);
    subject.call(&id, configure("fault-reprice")).await?;
    subject.settled(&id, State::Configured).await?;
    let started = Instant::now();
    loop {
        let delta = subject.since(&cursor).await?.machines;
        let m = delta.iter().find(|m| m.id == id);
        if m.is_some_and(|m| m.price_per_hour != before.price_per_hour) {
            return Ok(());
        }
        ensure!(started.elapsed() < SETTLE, "the price never changed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// In a process of its own: with the store on, since a scale that is only reached in memory is none.
async fn throughput(subject: &Subject) -> Check {
    let state = subject.state_file();
    let subject = &subject.boot(subject.seeds, Some(&state), &[]).await?;
    let machines = subject.fresh_many(640).await?;
    let started = Instant::now();
    let mut tasks = Vec::new();
    for share in machines.chunks(10) {
        let (client, share) = (subject.client(), share.to_vec());
        tasks.push(tokio::spawn(async move {
            for id in share {
                send(client.clone(), &id, &Token::default(), Call::Create).await?;
            }
            Ok::<(), tonic::Status>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|why| Unmet::Broken(why.to_string()))??;
    }
    let rate = machines.len() as f64 / started.elapsed().as_secs_f64();
    let enough = THROUGHPUT <= rate;
    ensure!(enough, "{rate:.0} durable mutations per second");
    Ok(())
}

async fn forced_drain(subject: &Subject) -> Check {
    let id = subject.configured("fault-drain-slow").await?;
    subject.call(&id, Call::Drain(1)).await?;
    let started = Instant::now();
    loop {
        let m = subject.get(&id).await?;
        match m.state() {
            State::Idle => break,
            State::Failed if !m.last_error.is_empty() => break,
            State::Draining => {
                ensure!(started.elapsed() < Duration::from_secs(6), "still DRAINING");
            }
            state => return Err(Unmet::Broken(format!("{state:?}"))),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn bare_metal(subject: &Subject) -> Check {
    let pool = subject.list(&[]).await?;
    ensure!(!pool.is_empty(), "an empty pool");
    for m in &pool {
        grid(m)?;
        ensure!(m.state() == State::Idle, "{}: {:?}", m.id, m.state());
        let paid = m.price_per_hour == 0.0 && m.interruption_probability == 0.0;
        ensure!(paid, "{}: bare metal is paid for", m.id);
        let answer = subject.call(&m.id, Call::Delete).await;
        expect("Delete of bare metal", &answer, Code::Unimplemented)?;
    }
    let unknown = subject.call("nobody", Call::Delete).await;
    expect("Delete of an unknown id", &unknown, Code::Unimplemented)?;
    expect(
        "Delete of \"\"",
        &subject.call("", Call::Delete).await,
        Code::InvalidArgument,
    )?;
    let id = &pool[0].id;
    refused(
        "Create on an idle host",
        &subject.call(id, Call::Create).await,
    )?;
    subject.call(id, configure("a")).await?;
    subject.settled(id, State::Configured).await?;
    subject.call(id, Call::Drain(0)).await?;
    subject.settled(id, State::Idle).await.map(drop)
}

/// Carried out twice in a row the dwell would be longer than a transition may take, and the machine FAILED.
async fn mid_transition(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    let (asked, selector) = (Instant::now(), format!("fault-dwell-{}", DWELL.as_millis()));
    let first = subject.call(&id, configure(&selector)).await?;
    for _ in 0..5 {
        let again = subject.call(&id, configure(&selector)).await?;
        ensure!(
            again.operation_id == first.operation_id,
            "another operation was started"
        );
        let state = machine(&again)?.state();
        // An answer that took until after the dwell says nothing of its middle.
        ensure!(
            state == State::Configuring || DWELL <= asked.elapsed(),
            "{state:?} in the middle of the dwell"
        );
    }
    subject.settled(&id, State::Configured).await.map(drop)
}
