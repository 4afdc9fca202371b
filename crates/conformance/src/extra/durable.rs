//! Promises of ours about what survives when a provider is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::check::{code, expect, refused};
use crate::durability::{boot, boot_with_hooks, reborn};
use crate::fault::{broken, failed};
use crate::subject::{Call, SETTLE, configure, send, token};
use crate::{Capability, Check, Subject, Unmet};

pub(super) async fn killed_after_ack(subject: &Subject) -> Check {
    let (state, flags) = (
        subject.state_file(),
        ["--fault-hooks", "--transition-timeout=30s"],
    );
    let live = boot_with_hooks(subject, &state, &flags).await?;
    let id = live.idle().await?;
    let before = live
        .fenced(&id, &token("s", 2, 5), configure("fault-dwell-20000"))
        .await?;
    let live = reborn(live, &state, &flags).await?;
    let m = live.get(&id).await?;
    let stuck = [
        State::Creating,
        State::Configuring,
        State::Draining,
        State::Deleting,
    ];
    ensure!(!stuck.contains(&m.state()), "stuck at {:?}", m.state());
    ensure!(
        m.state() != State::Failed || !m.last_error.is_empty(),
        "FAILED without a reason"
    );
    let stale = live.fenced(&id, &token("s", 2, 5), configure("a")).await;
    expect("the old token", &stale, Code::FailedPrecondition)?;
    ensure!(!before.operation_id.is_empty(), "no operation id");
    Ok(())
}

pub(super) async fn faults_survive(subject: &Subject) -> Check {
    let (state, flags) = (
        subject.state_file(),
        ["--fault-hooks", "--transition-timeout=1s"],
    );
    let mut live = boot_with_hooks(subject, &state, &flags).await?;
    live.fault_timeout = Duration::from_secs(1);
    let mut before = Vec::new();
    for selector in ["fault-error", "fault-timeout", "fault-panic"] {
        before.push(broken(&live, selector).await?);
    }
    if live.can(Capability::Delete) {
        let id = live.configured("fault-delete-error").await?;
        live.call(&id, Call::Drain(0)).await?;
        live.settled(&id, State::Idle).await?;
        live.call(&id, Call::Delete).await?;
        before.push(failed(&live, &id, &[State::Deleting], SETTLE).await?);
    }
    let live = reborn(live, &state, &flags).await?;
    for m in before {
        ensure!(
            live.get(&m.id).await? == m,
            "{} changed over the restart",
            m.id
        );
    }
    Ok(())
}

/// Every acknowledged operation must be there after every kill.
pub(super) async fn never_torn(subject: &Subject) -> Check {
    let state = subject.state_file();
    let mut live = boot(subject, &state, &[]).await?;
    let machines: Vec<String> = live.list(&[]).await?.into_iter().map(|m| m.id).collect();
    for round in 1..=4_i64 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for id in &machines {
            let (client, id, stop) = (live.client(), id.clone(), Arc::clone(&stop));
            tasks.push(tokio::spawn(async move {
                let mut acknowledged = 0;
                for sequence in 1.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let token = token("s", round, sequence);
                    let answer = send(client.clone(), &id, &token, Call::Drain(0)).await;
                    // Refused by position, but past the fence: the mark is what must survive.
                    match code(&answer) {
                        Code::Internal | Code::Ok => acknowledged = sequence,
                        _ => break,
                    }
                }
                (id, acknowledged)
            }));
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
        live.kill();
        stop.store(true, Ordering::Relaxed);
        live = reborn(live, &state, &[]).await?;
        ensure!(
            live.list(&[]).await?.len() == machines.len(),
            "machines were lost"
        );
        for task in tasks {
            let (id, acknowledged) = task.await.map_err(|why| Unmet::Broken(why.to_string()))?;
            let answer = live
                .fenced(&id, &token("s", round, acknowledged), Call::Drain(0))
                .await;
            if 0 < acknowledged {
                expect("an acknowledged token", &answer, Code::FailedPrecondition)?;
            }
        }
    }
    Ok(())
}

pub(super) async fn refused_mark(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let id = live.fresh().await?;
    refused(
        "Drain on SPECULATIVE",
        &live.fenced(&id, &token("s", 4, 4), Call::Drain(0)).await,
    )?;
    let live = reborn(live, &state, &[]).await?;
    let stale = live.fenced(&id, &token("s", 4, 4), Call::Create).await;
    expect(
        "the token of the refused call",
        &stale,
        Code::FailedPrecondition,
    )?;
    live.fenced(&id, &token("s", 4, 5), Call::Create).await?;
    Ok(())
}
