//! Lifecycle: the four edges, and nothing between them that does not belong there.

use std::time::Duration;

use bigfleet_wire::v1alpha1::{Machine, MachineState as State};

use crate::subject::{Call, configure, has_host, map};
use crate::{Behaviour, Capability, Check, Subject};

const QUIET: Duration = Duration::from_millis(300);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "LIFE-01",
        "B101",
        Core,
        None,
        clean_at_every_idle,
        "four Configure and Drain rounds leave a clean IDLE"
    ),
    behaviour!(
        "LIFE-02",
        "B103",
        Core,
        None,
        only_configuring,
        "only CONFIGURING on the way to CONFIGURED"
    ),
    behaviour!(
        "LIFE-03",
        "B104",
        Core,
        None,
        only_draining,
        "only DRAINING on the way to IDLE"
    ),
    behaviour!(
        "LIFE-04",
        "B105",
        Core,
        None,
        neighbours,
        "each state seen is an allowed neighbour of the last"
    ),
    behaviour!(
        "LIFE-05",
        "B106",
        Core,
        None,
        cluster_follows,
        "the cluster comes with Configure and goes with Drain"
    ),
    behaviour!(
        "LIFE-06",
        "B107",
        Core,
        None,
        host_follows,
        "the host comes with Create and stays"
    ),
    behaviour!(
        "LIFE-07",
        "B108",
        Core,
        None,
        rests,
        "a settled machine does not move"
    ),
    behaviour!(
        "LIFE-08",
        "B109",
        Core,
        Some(Capability::Delete),
        only_deleting,
        "only DELETING on the way to SPECULATIVE"
    ),
];

fn only(seen: &[Machine], allowed: &[State]) -> Check {
    let stranger = seen
        .iter()
        .map(Machine::state)
        .find(|state| !allowed.contains(state));
    ensure!(
        stranger.is_none(),
        "saw {stranger:?}, which is not one of {allowed:?}"
    );
    Ok(())
}

fn clean(machine: &Machine) -> Check {
    let clean = machine.cluster.is_empty() && machine.shard_metadata.is_empty();
    ensure!(
        clean && machine.last_error.is_empty(),
        "not clean: {machine:?}"
    );
    Ok(())
}

async fn clean_at_every_idle(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    clean(&subject.get(&id).await?)?;
    for round in 0..4 {
        let metadata = map(&[("round", &round.to_string())]);
        subject
            .call(&id, Call::Configure(format!("c{round}"), metadata))
            .await?;
        subject.settled(&id, State::Configured).await?;
        subject.call(&id, Call::Drain(0)).await?;
        clean(&subject.settled(&id, State::Idle).await?)?;
    }
    Ok(())
}

async fn only_configuring(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    subject.call(&id, configure("a")).await?;
    only(
        &subject.trace(&id, State::Configured).await?,
        &[State::Configuring, State::Configured],
    )
}

async fn only_draining(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    subject.call(&id, Call::Drain(5)).await?;
    only(
        &subject.trace(&id, State::Idle).await?,
        &[State::Draining, State::Idle],
    )
}

async fn neighbours(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    let mut seen = vec![subject.get(&id).await?];
    let steps = [
        (Call::Create, State::Idle),
        (configure("a"), State::Configured),
        (Call::Drain(0), State::Idle),
    ];
    for (call, target) in steps {
        subject.call(&id, call).await?;
        seen.extend(subject.trace(&id, target).await?);
    }
    let mut states: Vec<State> = seen.iter().map(Machine::state).collect();
    states.dedup();
    ensure!(
        states.first() == Some(&State::Speculative),
        "began at {:?}",
        states.first()
    );
    for pair in states.windows(2) {
        let allowed = matches!(
            (pair[0], pair[1]),
            (State::Speculative, State::Creating | State::Idle)
                | (State::Creating, State::Idle)
                | (State::Idle, State::Configuring | State::Configured)
                | (State::Configuring, State::Configured)
                | (State::Configured, State::Draining | State::Idle)
                | (State::Draining, State::Idle)
        );
        ensure!(allowed, "{:?} is followed by {:?}", pair[0], pair[1]);
    }
    Ok(())
}

async fn cluster_follows(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    ensure!(
        subject.get(&id).await?.cluster.is_empty(),
        "bound while IDLE"
    );
    subject.call(&id, configure("blue")).await?;
    for machine in subject.trace(&id, State::Configured).await? {
        ensure!(
            machine.cluster == "blue",
            "{:?} without its cluster",
            machine.state()
        );
    }
    subject.call(&id, Call::Drain(0)).await?;
    let idle = subject.settled(&id, State::Idle).await?;
    ensure!(idle.cluster.is_empty(), "still bound to {}", idle.cluster);
    Ok(())
}

async fn host_follows(subject: &Subject) -> Check {
    let id = subject.fresh().await?;
    let resting = async |state: State, host: bool| -> Check {
        let machine = subject.get(&id).await?;
        ensure!(
            machine.state() == state,
            "rests at {:?}, not {state:?}",
            machine.state()
        );
        ensure!(
            has_host(&machine) == host,
            "{state:?} with host {:?}",
            machine.host
        );
        Ok(())
    };
    resting(State::Speculative, false).await?;
    subject.call(&id, Call::Create).await?;
    subject.settled(&id, State::Idle).await?;
    resting(State::Idle, true).await?;
    subject.call(&id, configure("a")).await?;
    subject.settled(&id, State::Configured).await?;
    resting(State::Configured, true).await?;
    subject.call(&id, Call::Drain(0)).await?;
    subject.settled(&id, State::Idle).await?;
    resting(State::Idle, true).await
}

async fn rests(subject: &Subject) -> Check {
    let id = subject.configured("a").await?;
    subject
        .stays(&id, QUIET, |machine| machine.state() == State::Configured)
        .await?;
    subject.call(&id, Call::Drain(0)).await?;
    subject.settled(&id, State::Idle).await?;
    subject
        .stays(&id, QUIET, |machine| machine.state() == State::Idle)
        .await
}

async fn only_deleting(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    subject.call(&id, Call::Delete).await?;
    let seen = subject.trace(&id, State::Speculative).await?;
    only(&seen, &[State::Deleting, State::Speculative])?;
    let last = seen.last();
    ensure!(
        last.is_some_and(|machine| !has_host(machine)),
        "the host is still there"
    );
    Ok(())
}
