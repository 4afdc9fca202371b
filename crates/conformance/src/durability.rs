//! Durability: what was acknowledged is still so after a kill.

use std::collections::BTreeMap;
use std::path::Path;

use bigfleet_wire::v1alpha1::MachineState as State;
use tonic::Code;

use crate::check::expect;
use crate::fault::failed;
use crate::subject::{Call, SETTLE, configure, grid, machine, map, token};
use crate::{Behaviour, Capability, Check, Subject, Unmet};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "DUR-01",
        "B1001",
        Durable,
        None,
        marks,
        "a stale token is still stale"
    ),
    behaviour!(
        "DUR-02",
        "B1002",
        Durable,
        None,
        operations,
        "a retry gets the id from before"
    ),
    behaviour!(
        "DUR-03",
        "B1003",
        Durable,
        None,
        bindings,
        "cluster and metadata are verbatim"
    ),
    behaviour!(
        "DUR-04",
        "B1004",
        Durable,
        None,
        states,
        "every machine is where it was"
    ),
    behaviour!(
        "DUR-05",
        "B1005",
        Durable,
        None,
        new_ids,
        "new operations have new ids"
    ),
    behaviour!(
        "DUR-06",
        "B1006",
        Durable,
        None,
        interrupted,
        "an interrupted transition comes back FAILED"
    ),
    behaviour!(
        "DUR-07",
        "B1007",
        Durable,
        None,
        newcomers,
        "a new shard starts low"
    ),
];

const SLOTS: usize = 64;
/// Kills right after the ack, where the middle of a transition cannot be made to last.
const INTERRUPTIONS: usize = 5;

/// A process with a state file of its own.
pub(crate) async fn boot(
    subject: &Subject,
    state: &Path,
    flags: &[&str],
) -> Result<Subject, Unmet> {
    Ok(subject.boot(SLOTS, Some(state), flags).await?)
}

/// One that can be told to fail besides.
pub(crate) async fn boot_with_hooks(
    subject: &Subject,
    state: &Path,
    flags: &[&str],
) -> Result<Subject, Unmet> {
    let live = boot(subject, state, flags).await?;
    if live.has_fault_hooks().await {
        return Ok(live);
    }
    Err(Unmet::NotTried(
        "the provider has no fault hooks".to_owned(),
    ))
}

/// Kills the provider and starts it again on the same state, somewhere else. One that does not come
/// back from its own state has broken its promise.
pub(crate) async fn reborn(
    mut before: Subject,
    state: &Path,
    flags: &[&str],
) -> Result<Subject, Unmet> {
    before.kill();
    let again = before.boot(SLOTS, Some(state), flags).await;
    again.map_err(|why| Unmet::Broken(format!("it does not start again on its state: {why}")))
}

async fn marks(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let (id, probe) = live.probe().await?;
    live.fenced(&id, &token("s", 3, 7), probe.clone()).await?;
    live.quiet().await?;
    let live = reborn(live, &state, &[]).await?;
    for stale in [token("s", 3, 7), token("s", 3, 6), token("s", 2, 99)] {
        let answer = live.fenced(&id, &stale, probe.clone()).await;
        expect("a stale token", &answer, Code::FailedPrecondition)?;
    }
    live.fenced(&id, &token("s", 3, 8), probe).await?;
    Ok(())
}

async fn operations(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let id = live.idle().await?;
    let before = live.call(&id, configure("a")).await?.operation_id;
    live.settled(&id, State::Configured).await?;
    let live = reborn(live, &state, &[]).await?;
    let after = live.call(&id, configure("a")).await?.operation_id;
    ensure!(before == after, "{before} became {after}");
    Ok(())
}

async fn bindings(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let (id, metadata) = (
        live.idle().await?,
        map(&[("k\0", "v\n"), ("", ""), ("ß", "日本")]),
    );
    live.call(&id, Call::Configure("prod".to_owned(), metadata.clone()))
        .await?;
    live.settled(&id, State::Configured).await?;
    let live = reborn(live, &state, &[]).await?;
    let m = live.get(&id).await?;
    ensure!(
        m.cluster == "prod" && m.shard_metadata == metadata,
        "changed: {m:?}"
    );
    Ok(())
}

async fn placed(live: &Subject) -> Result<BTreeMap<String, (State, String)>, Unmet> {
    let place = |m: bigfleet_wire::v1alpha1::Machine| {
        let (state, host) = (m.state(), m.host.unwrap_or_default().r#ref);
        (m.id, (state, host))
    };
    Ok(live.list(&[]).await?.into_iter().map(place).collect())
}

async fn states(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    for _ in 0..3 {
        live.idle().await?;
        live.configured("a").await?;
    }
    let before = placed(&live).await?;
    let live = reborn(live, &state, &[]).await?;
    let after = placed(&live).await?;
    ensure!(
        before == after,
        "{} machines became {}",
        before.len(),
        after.len()
    );
    Ok(())
}

async fn new_ids(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let mut used = Vec::new();
    for _ in 0..4 {
        let (id, probe) = live.probe().await?;
        used.push(live.call(&id, probe).await?.operation_id);
    }
    live.quiet().await?;
    let live = reborn(live, &state, &[]).await?;
    if subject.can(Capability::SinceRevision) {
        ensure!(!live.head().await?.is_empty(), "no revision");
    }
    let (id, probe) = live.probe().await?;
    let new = live.call(&id, probe).await?.operation_id;
    ensure!(!used.contains(&new), "{new} was used before");
    Ok(())
}

/// A machine that is killed in the middle of Configure. With fault hooks the middle lasts as long as it
/// takes; without, the provider is killed as soon as it says that it has begun.
async fn interrupted(subject: &Subject) -> Check {
    let (state, flags) = (
        subject.state_file(),
        ["--fault-hooks", "--transition-timeout=30s"],
    );
    let Ok(live) = boot_with_hooks(subject, &state, &flags).await else {
        return interrupted_without_hooks(subject).await;
    };
    let id = live.idle().await?;
    live.call(&id, configure("fault-timeout")).await?;
    ensure!(
        live.get(&id).await?.state() == State::Configuring,
        "CONFIGURING was not seen"
    );
    let live = reborn(live, &state, &flags).await?;
    failed(&live, &id, &[], SETTLE).await.map(drop)
}

/// Whether the work was done by then is a race; that nothing is left in the middle is not. A provider that
/// takes the work up again may need a while to be through with it.
async fn interrupted_without_hooks(subject: &Subject) -> Check {
    let state = subject.state_file();
    let mut live = boot(subject, &state, &[]).await?;
    let mut seen = false;
    for _ in 0..INTERRUPTIONS {
        let id = live.idle().await?;
        let ack = live.call(&id, configure("a")).await?;
        seen |= machine(&ack)?.state() == State::Configuring;
        live = reborn(live, &state, &[]).await?;
        live.quiet().await?;
        let m = live.get(&id).await?;
        grid(&m)?;
        let rests = [State::Idle, State::Configured, State::Failed].contains(&m.state());
        ensure!(rests, "{id} is left {:?} by the restart", m.state());
    }
    if seen {
        Ok(())
    } else {
        Err(Unmet::Lacks(Capability::Transitions))
    }
}

async fn newcomers(subject: &Subject) -> Check {
    let state = subject.state_file();
    let live = boot(subject, &state, &[]).await?;
    let (id, probe) = live.probe().await?;
    live.fenced(&id, &token("old", 9, 9), probe).await?;
    let live = reborn(live, &state, &[]).await?;
    let (id, probe) = live.probe().await?;
    live.fenced(&id, &token("new", 1, 1), probe).await?;
    Ok(())
}
