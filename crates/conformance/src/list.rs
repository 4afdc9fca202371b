//! List: filters, caps and cursors.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ListFilter, Machine, MachineList, MachineState as State};

use crate::subject::{Call, configure};
use crate::{Behaviour, Capability, Check, Subject, Unmet};

const CURSORS: Option<Capability> = Some(Capability::SinceRevision);

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "LIST-01",
        "B901",
        Core,
        None,
        filters,
        "filters are pure, and a union is a union"
    ),
    behaviour!("LIST-02", "B902", Core, None, caps, "a cap is a cap"),
    behaviour!(
        "LIST-03",
        "B903",
        Core,
        CURSORS,
        advances,
        "a mutation changes the revision and is in the delta"
    ),
    behaviour!(
        "LIST-04",
        "B904",
        Core,
        CURSORS,
        empty_at_head,
        "the delta since head is empty"
    ),
    behaviour!(
        "LIST-05",
        "B905",
        Core,
        CURSORS,
        older_cursors,
        "an older cursor shows everything later"
    ),
    behaviour!(
        "LIST-06",
        "B906",
        Core,
        None,
        junk,
        "a junk cursor gives the full list"
    ),
    behaviour!(
        "LIST-07",
        "B907",
        Core,
        CURSORS,
        pages,
        "a capped delta continues without loss"
    ),
    behaviour!(
        "LIST-08",
        "B908",
        Core,
        CURSORS,
        quiet,
        "nothing happens, nothing changes"
    ),
    behaviour!(
        "LIST-09",
        "B909",
        Core,
        CURSORS,
        damaged,
        "a damaged cursor never errs and invents nothing"
    ),
];

pub(crate) fn ids(machines: &[Machine]) -> Result<BTreeSet<String>, Unmet> {
    let ids: BTreeSet<String> = machines.iter().map(|m| m.id.clone()).collect();
    ensure!(ids.len() == machines.len(), "an id occurs twice");
    Ok(ids)
}

async fn capped(subject: &Subject, cap: i32, since: &[u8]) -> Result<MachineList, tonic::Status> {
    let since_revision = since.to_vec();
    let filter = ListFilter {
        max_results: cap,
        since_revision,
        ..ListFilter::default()
    };
    subject.filter(filter).await
}

async fn filters(subject: &Subject) -> Check {
    subject.idle().await?;
    subject.configured("a").await?;
    // What an earlier behaviour left on its way would arrive between two of these Lists.
    subject.quiet().await?;
    let states = [
        State::Speculative,
        State::Creating,
        State::Idle,
        State::Configuring,
        State::Configured,
        State::Draining,
        State::Deleting,
        State::Failed,
    ];
    for state in states {
        let found = subject.list(&[state]).await?;
        ids(&found)?;
        let stranger = found.iter().find(|m| m.state() != state);
        ensure!(stranger.is_none(), "{state:?} shows {stranger:?}");
    }
    let union = ids(&subject.list(&[State::Idle, State::Configured]).await?)?;
    let (idle, bound) = (
        ids(&subject.list(&[State::Idle]).await?)?,
        ids(&subject.list(&[State::Configured]).await?)?,
    );
    ensure!(
        union == idle.union(&bound).cloned().collect(),
        "the union is not the union"
    );
    Ok(())
}

async fn caps(subject: &Subject) -> Check {
    let all = ids(&subject.inventory().await?)?;
    for cap in [1, 2, 3] {
        let some = ids(&capped(subject, cap, &[]).await?.machines)?;
        ensure!(
            !some.is_empty() && some.len() <= cap as usize,
            "cap {cap}: {}",
            some.len()
        );
        ensure!(some.is_subset(&all), "cap {cap} invents ids");
    }
    let uncapped = ids(&capped(subject, 0, &[]).await?.machines)?;
    ensure!(uncapped == all, "cap 0 is a cap");
    Ok(())
}

/// Moves a machine; answers with its id and the head afterwards.
async fn mutate(subject: &Subject) -> Result<(String, Vec<u8>), Unmet> {
    let id = subject.configured("a").await?;
    Ok((id, subject.head().await?))
}

async fn advances(subject: &Subject) -> Check {
    let before = subject.head().await?;
    let (id, after) = mutate(subject).await?;
    ensure!(
        !before.is_empty() && before != after,
        "the revision did not change"
    );
    let delta = ids(&subject.since(&before).await?.machines)?;
    ensure!(delta.contains(&id), "{id} is not in the delta");
    Ok(())
}

async fn empty_at_head(subject: &Subject) -> Check {
    subject.quiet().await?;
    mutate(subject).await?;
    subject.quiet().await?;
    let head = subject.head().await?;
    let delta = subject.since(&head).await?;
    ensure!(
        delta.machines.is_empty(),
        "{} machines since head",
        delta.machines.len()
    );
    Ok(())
}

async fn older_cursors(subject: &Subject) -> Check {
    let mut cursors = vec![subject.head().await?];
    let mut moved = Vec::new();
    for _ in 0..4 {
        let (id, head) = mutate(subject).await?;
        moved.push(id);
        ensure!(!cursors.contains(&head), "a cursor came back");
        cursors.push(head);
    }
    for (at, cursor) in cursors.iter().enumerate() {
        let delta = ids(&subject.since(cursor).await?.machines)?;
        let missing = moved[at..].iter().find(|id| !delta.contains(*id));
        ensure!(missing.is_none(), "cursor {at}: {missing:?} is missing");
    }
    Ok(())
}

async fn junk(subject: &Subject) -> Check {
    let all = ids(&subject.inventory().await?)?;
    let long: Vec<u8> = (0..4096_u32).map(|at| (at * 7) as u8).collect();
    // No plain number: to a provider that counts changes it is a cursor like any other.
    for cursor in [&b""[..], b"yesterday", &[0, 255, 1, 254], &long] {
        let found = ids(&subject.since(cursor).await?.machines)?;
        ensure!(
            found == all,
            "cursor of {} bytes: {} machines, not {}",
            cursor.len(),
            found.len(),
            all.len()
        );
    }
    Ok(())
}

async fn pages(subject: &Subject) -> Check {
    subject.quiet().await?;
    let before = subject.head().await?;
    let mut moved = BTreeSet::new();
    for _ in 0..5 {
        moved.insert(mutate(subject).await?.0);
    }
    let head = subject.head().await?;
    let (mut seen, mut cursor, mut echoes_head) = (Vec::new(), before.clone(), None);
    loop {
        let page = capped(subject, 2, &cursor).await?;
        ensure!(
            page.machines.len() <= 2,
            "{} machines on a page of 2",
            page.machines.len()
        );
        if page.machines.is_empty() {
            break;
        }
        seen.extend(page.machines);
        cursor = page.revision;
        // A provider may answer every page with head; then nobody can page, and the whole delta counts.
        echoes_head.get_or_insert(cursor == head);
        ensure!(seen.len() <= 5, "more machines than moved");
    }
    let seen = if echoes_head == Some(true) {
        ids(&subject.since(&before).await?.machines)?
    } else {
        ids(&seen)?
    };
    let lost: Vec<&String> = moved.difference(&seen).collect();
    ensure!(lost.is_empty(), "lost on the way: {lost:?}");
    Ok(())
}

async fn quiet(subject: &Subject) -> Check {
    subject.quiet().await?;
    let (head, started) = (subject.head().await?, Instant::now());
    while started.elapsed() < Duration::from_millis(750) {
        let delta = subject.since(&head).await?;
        ensure!(
            delta.machines.is_empty(),
            "{} machines moved",
            delta.machines.len()
        );
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Ok(())
}

async fn damaged(subject: &Subject) -> Check {
    subject.quiet().await?;
    let id = subject.idle().await?;
    let cursor = subject.head().await?;
    subject.call(&id, configure("a")).await?;
    subject.settled(&id, State::Configured).await?;
    subject.call(&id, Call::Drain(0)).await?;
    subject.settled(&id, State::Idle).await?;
    let all = ids(&subject.list(&[]).await?)?;
    let exact = ids(&subject.since(&cursor).await?.machines)?;
    ensure!(exact.contains(&id), "the exact cursor does not show {id}");
    ensure!(exact.len() < all.len(), "the exact cursor shows everything");
    for spoiled in [[b"x", &cursor[..]].concat(), [&cursor[..], b"x"].concat()] {
        let found = ids(&subject.since(&spoiled).await?.machines)?;
        ensure!(
            found == all,
            "a longer cursor shows {} machines, not {}",
            found.len(),
            all.len()
        );
    }
    for at in 0..cursor.len() {
        let mut flipped = cursor.clone();
        flipped[at] ^= 0x01;
        let found = ids(&subject.since(&flipped).await?.machines)?;
        ensure!(found.is_subset(&all), "byte {at} flipped invents ids");
    }
    Ok(())
}
