//! Idempotency: a retry is answered from the record, and a new cycle is not a retry.

use std::collections::BTreeSet;

use bigfleet_wire::v1alpha1::MachineState as State;

use crate::subject::{Call, burst, configure, machine, one_operation};
use crate::{Behaviour, Capability, Check, Subject};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "IDEM-01",
        "B205",
        Core,
        None,
        no_flash,
        "a retry at the target moves nothing"
    ),
    behaviour!(
        "IDEM-02",
        "B206",
        Core,
        None,
        same_id,
        "a retry returns the original operation id"
    ),
    behaviour!(
        "IDEM-03",
        "B214",
        Core,
        None,
        five_ids,
        "five operations have five ids"
    ),
    behaviour!(
        "IDEM-04",
        "B406",
        Core,
        None,
        two_connections,
        "one operation over two connections"
    ),
];

async fn no_flash(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    if subject.can(Capability::Create) {
        let again = subject.call(&id, Call::Create).await?;
        let state = machine(&again)?.state();
        ensure!(state == State::Idle, "Create again shows {state:?}");
    }
    subject.call(&id, configure("a")).await?;
    subject.settled(&id, State::Configured).await?;
    let again = subject.call(&id, configure("a")).await?;
    let state = machine(&again)?.state();
    ensure!(
        state == State::Configured,
        "Configure again shows {state:?}"
    );
    let quiet = std::time::Duration::from_millis(250);
    subject
        .stays(&id, quiet, |m| m.state() == State::Configured)
        .await
}

async fn same_id(subject: &Subject) -> Check {
    let (id, creates) = subject.newcomer().await?;
    let mut created = String::new();
    for (call, target) in creates {
        created = subject.call(&id, call.clone()).await?.operation_id;
        subject.settled(&id, target).await?;
        let again = subject.call(&id, call).await?.operation_id;
        ensure!(
            !created.is_empty() && again == created,
            "Create: {created} became {again}"
        );
    }
    let configured = subject.call(&id, configure("a")).await?.operation_id;
    subject.settled(&id, State::Configured).await?;
    let again = subject.call(&id, configure("a")).await?.operation_id;
    ensure!(
        !configured.is_empty() && again == configured,
        "{configured} became {again}"
    );
    ensure!(
        created != configured,
        "Create and Configure share {created}"
    );
    Ok(())
}

async fn five_ids(subject: &Subject) -> Check {
    let (id, mut steps) = subject.newcomer().await?;
    let mut ids = BTreeSet::new();
    let mut last = String::new();
    steps.extend([
        (configure("a"), State::Configured),
        (Call::Drain(0), State::Idle),
        (configure("b"), State::Configured),
        (Call::Drain(0), State::Idle),
    ]);
    let operations = steps.len();
    for (call, target) in steps {
        last = subject.call(&id, call).await?.operation_id;
        ids.insert(last.clone());
        subject.settled(&id, target).await?;
    }
    ensure!(
        ids.len() == operations && !ids.contains(""),
        "{operations} operations, {} ids",
        ids.len()
    );
    let again = subject.call(&id, Call::Drain(0)).await?.operation_id;
    ensure!(
        again == last,
        "the last drain was {last}, its retry {again}"
    );
    Ok(())
}

async fn two_connections(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    let (one, two) = (subject.client(), subject.running().another()?);
    let call = configure("a");
    let (mut first, second) = tokio::join!(burst(&one, 8, &id, &call), burst(&two, 8, &id, &call));
    first.extend(second);
    let operation = one_operation(first)?;
    subject.settled(&id, State::Configured).await?;
    for client in [one, two] {
        let again = one_operation(burst(&client, 1, &id, &call).await)?;
        ensure!(again == operation, "{operation} became {again}");
    }
    Ok(())
}
