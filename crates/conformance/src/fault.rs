//! Faults: what the backend does wrong ends as FAILED, says why, and stays that way.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{Machine, MachineState as State};

use crate::check::refused;
use crate::subject::{CREATE_FAULT, Call, SETTLE, configure, standing};
use crate::{Behaviour, Check, Subject, Unmet};

/// How much later than its timeout a transition may be seen to have failed.
const MARGIN: Duration = Duration::from_secs(3);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "FAULT-01",
        "B701",
        Fault,
        None,
        configure_error,
        "a Configure error ends FAILED, never back"
    ),
    behaviour!(
        "FAULT-02",
        "B702",
        Fault,
        None,
        create_error,
        "a Create error ends FAILED"
    ),
    behaviour!(
        "FAULT-03",
        "B703",
        Fault,
        None,
        timeout,
        "a blocking backend ends FAILED at its timeout"
    ),
    behaviour!(
        "FAULT-04",
        "B704",
        Fault,
        None,
        late_success,
        "a success after the timeout is ignored"
    ),
    behaviour!(
        "FAULT-05",
        "B705",
        Fault,
        None,
        mutations_on_failed,
        "a FAILED machine refuses every mutation"
    ),
    behaviour!(
        "FAULT-06",
        "B706",
        Fault,
        None,
        drain_error,
        "a failing Drain without grace is never stuck"
    ),
    behaviour!(
        "FAULT-07",
        "B707",
        Fault,
        None,
        readable,
        "a FAILED machine stays readable"
    ),
    behaviour!(
        "FAULT-08",
        "B708",
        Fault,
        None,
        readiness,
        "without readiness there is no CONFIGURED"
    ),
];

/// The machine once it has failed; no state outside of `on_the_way` may be seen before.
pub(crate) async fn failed(
    subject: &Subject,
    id: &str,
    on_the_way: &[State],
    within: Duration,
) -> Result<Machine, Unmet> {
    let started = std::time::Instant::now();
    loop {
        let m = subject.get(id).await?;
        if m.state() == State::Failed {
            ensure!(!m.last_error.is_empty(), "FAILED without a reason");
            return Ok(m);
        }
        ensure!(
            on_the_way.contains(&m.state()),
            "{:?} before FAILED",
            m.state()
        );
        ensure!(
            started.elapsed() < within,
            "still {:?} after {within:?}",
            m.state()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A machine that failed to configure with this selector.
pub(crate) async fn broken(subject: &Subject, selector: &str) -> Result<Machine, Unmet> {
    let id = subject.idle().await?;
    subject.call(&id, configure(selector)).await?;
    let within = subject.fault_timeout + MARGIN;
    failed(subject, &id, &[State::Configuring], within).await
}

async fn unchanged(subject: &Subject, before: &Machine, window: Duration) -> Check {
    let stands = standing(before);
    let holds = |m: &Machine| standing(m) == stands;
    subject.stays(&before.id, window, holds).await
}

async fn configure_error(subject: &Subject) -> Check {
    let m = broken(subject, "fault-error").await?;
    unchanged(subject, &m, Duration::from_millis(300)).await
}

async fn create_error(subject: &Subject) -> Check {
    let slots = subject.list(&[State::Speculative]).await?;
    let marked = |m: &&Machine| {
        m.labels
            .get(CREATE_FAULT)
            .is_some_and(|value| value == "error")
    };
    let slot = slots.iter().find(marked);
    let slot = slot.ok_or_else(|| Unmet::NotTried("no slot is marked as failing".to_owned()))?;
    subject.call(&slot.id, Call::Create).await?;
    let m = failed(
        subject,
        &slot.id,
        &[State::Creating, State::Speculative],
        SETTLE,
    )
    .await?;
    unchanged(subject, &m, Duration::from_millis(300)).await
}

async fn timeout(subject: &Subject) -> Check {
    let m = broken(subject, "fault-timeout").await?;
    let error = m.last_error.to_lowercase();
    let says = error.contains("time") || error.contains("deadline");
    ensure!(says, "the error does not speak of time: {}", m.last_error);
    Ok(())
}

async fn late_success(subject: &Subject) -> Check {
    let m = broken(subject, "fault-slow-ok").await?;
    // The success comes a second after the timeout; look well past it.
    unchanged(subject, &m, Duration::from_millis(1800)).await
}

async fn mutations_on_failed(subject: &Subject) -> Check {
    let before = broken(subject, "fault-error").await?;
    for call in [
        Call::Create,
        configure("a"),
        configure("fault-error"),
        Call::Drain(0),
        Call::Delete,
    ] {
        refused(
            &format!("{call:?} on FAILED"),
            &subject.call(&before.id, call.clone()).await,
        )?;
        let now = subject.get(&before.id).await?;
        let unchanged = standing(&now) == standing(&before);
        ensure!(unchanged, "{call:?} changed it: {now:?}");
    }
    Ok(())
}

async fn drain_error(subject: &Subject) -> Check {
    let id = subject.configured("fault-drain-error").await?;
    subject.call(&id, Call::Drain(0)).await?;
    let started = std::time::Instant::now();
    loop {
        let m = subject.get(&id).await?;
        match m.state() {
            State::Idle => return Ok(()),
            State::Failed => {
                ensure!(!m.last_error.is_empty(), "FAILED without a reason");
                return Ok(());
            }
            state => ensure!(
                state == State::Draining && started.elapsed() < SETTLE,
                "{state:?} after {:?}",
                started.elapsed()
            ),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn readable(subject: &Subject) -> Check {
    let before = broken(subject, "fault-error").await?;
    for _ in 0..3 {
        let m = subject.get(&before.id).await?;
        ensure!(
            m.last_error == before.last_error,
            "the error changed: {}",
            m.last_error
        );
    }
    let listed = subject.list(&[State::Failed]).await?;
    let listed = listed.into_iter().find(|m| m.id == before.id);
    ensure!(
        listed.is_some_and(|m| standing(&m) == standing(&before)),
        "List(FAILED) differs from Get"
    );
    Ok(())
}

async fn readiness(subject: &Subject) -> Check {
    broken(subject, "fault-readiness-block").await.map(drop)
}
