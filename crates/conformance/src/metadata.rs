//! Metadata: the caller's map, stored and echoed byte for byte, gone with the binding.

use bigfleet_wire::v1alpha1::MachineState as State;

use crate::check::unfenced;
use crate::subject::{Call, Map, map};
use crate::{Behaviour, Check, Subject};

pub(crate) const ALL: &[Behaviour] = &[
    behaviour!(
        "META-01",
        "B501",
        Core,
        None,
        hostile,
        "55 hostile entries come back byte for byte"
    ),
    behaviour!(
        "META-02",
        "B502",
        Core,
        None,
        cleared,
        "Drain clears the map, the next one is not mixed in"
    ),
    behaviour!(
        "META-03",
        "B503",
        Core,
        None,
        two_mebibytes,
        "2 MiB are kept verbatim or refused"
    ),
    behaviour!(
        "META-04",
        "B504",
        Core,
        None,
        from_acceptance,
        "the map is there from acceptance on"
    ),
    behaviour!(
        "META-05",
        "B505",
        Core,
        None,
        own_copy,
        "what the caller does to its map later does not matter"
    ),
];

fn hostile_map() -> Map {
    let mut entries = map(&[
        ("bigfleet.lucy.sh/assigned-priority", "1000000"),
        ("bigfleet.lucy.sh/assigned-group", ""),
        (
            "bigfleet.lucy.sh/assigned-need-fingerprint",
            "v1|in:zone=a,b",
        ),
        ("", "an empty key"),
        ("empty", ""),
        ("nul\0key", "nul\0value"),
        ("spaces ", " trailing  "),
        ("new\nline", "a\r\n\tb"),
        ("emoji🚀", "日本語 ßüö"),
        ("json", "{\"a\": [1, null]}"),
    ]);
    for control in 0..31_u8 {
        entries.insert(
            format!("control-{control}"),
            char::from(control).to_string(),
        );
    }
    for index in 0..14 {
        entries.insert(format!("x.example/{index}"), "é".repeat(index * 17));
    }
    entries
}

async fn hostile(subject: &Subject) -> Check {
    let (id, metadata) = (subject.idle().await?, hostile_map());
    ensure!(metadata.len() == 55, "{} entries", metadata.len());
    subject
        .call(&id, Call::Configure("a".to_owned(), metadata.clone()))
        .await?;
    subject.settled(&id, State::Configured).await?;
    for _ in 0..4 {
        ensure!(
            subject.get(&id).await?.shard_metadata == metadata,
            "Get changed the map"
        );
    }
    let listed = subject.list(&[State::Configured]).await?;
    let listed = listed.into_iter().find(|m| m.id == id);
    ensure!(
        listed.is_some_and(|m| m.shard_metadata == metadata),
        "List changed the map"
    );
    Ok(())
}

async fn cleared(subject: &Subject) -> Check {
    let id = subject.idle().await?;
    for metadata in [map(&[("a", "1"), ("b", "2")]), map(&[("c", "3")])] {
        subject
            .call(&id, Call::Configure("x".to_owned(), metadata.clone()))
            .await?;
        let m = subject.settled(&id, State::Configured).await?;
        ensure!(
            m.shard_metadata == metadata,
            "not the new map: {:?}",
            m.shard_metadata
        );
        subject.call(&id, Call::Drain(0)).await?;
        let m = subject.settled(&id, State::Idle).await?;
        ensure!(
            m.shard_metadata.is_empty() && m.cluster.is_empty(),
            "not cleared: {m:?}"
        );
    }
    Ok(())
}

async fn two_mebibytes(subject: &Subject) -> Check {
    let entry = |key: usize| (format!("key-{key:04}"), "x".repeat(8 << 10));
    crate::errors::whole_or_refused(subject, (0..256).map(entry).collect()).await
}

async fn from_acceptance(subject: &Subject) -> Check {
    let (id, metadata) = (subject.idle().await?, map(&[("k", "v")]));
    let ack = subject
        .call(&id, Call::Configure("a".to_owned(), metadata.clone()))
        .await?;
    let mut seen = subject.trace(&id, State::Configured).await?;
    seen.push(crate::subject::machine(&ack)?.clone());
    for m in seen {
        ensure!(
            m.shard_metadata == metadata,
            "{:?} without its map",
            m.state()
        );
    }
    Ok(())
}

async fn own_copy(subject: &Subject) -> Check {
    let (id, mut metadata) = (subject.idle().await?, map(&[("k", "before")]));
    subject
        .call(&id, Call::Configure("a".to_owned(), metadata.clone()))
        .await?;
    metadata.insert("k".to_owned(), "after".to_owned());
    subject.settled(&id, State::Configured).await?;
    // A retry with another map is answered as a retry or refused; the stored map stays either way.
    let again = subject.call(&id, Call::Configure("a".to_owned(), metadata));
    unfenced("Configure again with another map", &again.await)?;
    let m = subject.get(&id).await?;
    ensure!(
        m.shard_metadata == map(&[("k", "before")]),
        "the echo followed the caller"
    );
    Ok(())
}
