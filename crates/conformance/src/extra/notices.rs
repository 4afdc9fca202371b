//! Notices: a provider that announces when a machine will be gone shows it everywhere, and takes it back.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::MachineState as State;

use crate::subject::{SETTLE, configure};
use crate::{Capability, Check, Subject, Unmet};

/// The cluster for which a notice is announced, and withdrawn after so many milliseconds.
const NOTICED: &str = "fault-notice-3000";
/// Whoever announces does so by then.
const ANNOUNCED: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(10);

/// A notice is in Get and in the delta, and so is its withdrawal.
pub(super) async fn announced_and_withdrawn(subject: &Subject) -> Check {
    let flags = [
        "--fault-hooks",
        "--transition-timeout=2s",
        "--reconcile-interval=200ms",
    ];
    let subject = &subject.boot(16, None, &flags).await?;
    let id = subject.idle().await?;
    let cursor = subject.head().await?;
    subject.call(&id, configure(NOTICED)).await?;
    subject.settled(&id, State::Configured).await?;
    let began = Instant::now();
    while subject.get(&id).await?.leaving_unix_nanos == 0 {
        // Announcing is an addition: a provider may do without it.
        if ANNOUNCED < began.elapsed() {
            return Err(Unmet::Lacks(Capability::Notices));
        }
        tokio::time::sleep(PAUSE).await;
    }
    let announced = subject.head().await?;
    let listed = async |cursor: &[u8]| {
        let delta = subject.since(cursor).await?.machines;
        let shown = delta.into_iter().find(|machine| machine.id == id);
        Ok::<_, Unmet>(shown.map(|machine| machine.leaving_unix_nanos))
    };
    let told = listed(&cursor).await?;
    ensure!(
        told.is_some_and(|at| at != 0),
        "Get announces that {id} will be gone, and List does not: {told:?}"
    );
    let began = Instant::now();
    while listed(&announced).await? != Some(0) {
        ensure!(
            began.elapsed() < SETTLE,
            "a notice that was withdrawn is still in List"
        );
        tokio::time::sleep(PAUSE).await;
    }
    let at = subject.get(&id).await?.leaving_unix_nanos;
    ensure!(at == 0, "a notice that was withdrawn is still in Get: {at}");
    Ok(())
}
