//! Machines, by what is asked, and while they are on their way.

use bigfleet_wire::v1alpha1 as wire;
use tonic::Code;
use wire::{InspectMachinesRequest, MachineState};

use super::scene::{ids, machines, reader, recent, scene, settled, unix_nanos};
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::{Folder, provider, shard, until};

#[tokio::test]
async fn machines_are_shown_by_what_is_asked() {
    let mut scene = scene("machines", 12).await;
    let (_, rows) = settled(&mut scene.reader).await;
    let (header, everything) = machines(&mut scene.reader, Default::default()).await;
    assert_eq!((header.total, everything.len()), (12, 12));
    assert_eq!(header.shard_id, "s1");
    let now = unix_nanos();
    assert!(
        0 < header.cycle_took_nanos && recent(header.computed_at_unix_nanos, now),
        "{header:?}"
    );
    for view in &everything {
        assert!(recent(view.seen_at_unix_nanos, now), "{view:?}");
        assert!(recent(view.state_since_unix_nanos, now), "{view:?}");
    }
    let every_id = ids(&everything);
    assert!(every_id.is_sorted());

    let request = InspectMachinesRequest {
        cluster_id: "a".to_owned(),
        states: vec![MachineState::Configured.into()],
        ..Default::default()
    };
    let (header, bound) = machines(&mut scene.reader, request).await;
    assert_eq!((header.total, bound.len()), (1, 1));
    let (view, machine) = (&bound[0], bound[0].machine.as_ref().unwrap());
    assert_eq!(
        (machine.cluster.as_str(), machine.shard_metadata.len()),
        ("a", 0)
    );
    let of = view.attribution.as_ref().unwrap();
    assert_eq!((of.cluster_id.as_str(), of.priority), ("a", 100));
    assert_eq!(of.profile_fingerprint, rows[0].profile_fingerprint);
    assert_eq!(of.keep_price_per_hour, Some(machine.price_per_hour));
    let waiting = InspectMachinesRequest {
        states: vec![MachineState::Speculative.into()],
        limit: 1,
        ..Default::default()
    };
    let (_, waiting) = machines(&mut scene.reader, waiting).await;
    assert!(
        waiting[0].state_since_unix_nanos < view.state_since_unix_nanos,
        "it came into its state after the others were first seen"
    );

    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let request = InspectMachinesRequest {
            after_id: after,
            limit: 5,
            ..Default::default()
        };
        let (header, page) = machines(&mut scene.reader, request).await;
        assert_eq!(header.total as usize, 12 - paged.len());
        paged.extend(ids(&page));
        match page.len() {
            5 => after = paged.last().unwrap().clone(),
            _ => break,
        }
    }
    assert_eq!(paged, every_id);

    let request = InspectMachinesRequest {
        machine_ids: vec![
            every_id[3].clone(),
            "no-such".to_owned(),
            every_id[1].clone(),
        ],
        ..Default::default()
    };
    let (header, named) = machines(&mut scene.reader, request).await;
    assert_eq!(
        (header.total, ids(&named)),
        (2, [1, 3].map(|at| every_id[at].clone()).into())
    );
    let request = InspectMachinesRequest {
        flagged_only: true,
        ..Default::default()
    };
    assert_eq!(machines(&mut scene.reader, request).await.0.total, 0);
    let request = InspectMachinesRequest {
        states: vec![99],
        ..Default::default()
    };
    let refused = scene.reader.inspect_machines(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "states 99 is no state");
}

/// While a machine is on its way to one row, one that lost its own row serves in its place: it is kept,
/// and shown as such. What the provider has taken on is shown by the provider's name for it.
#[tokio::test]
async fn what_is_on_its_way_and_what_is_kept_until_then() {
    let folder = Folder::new("way");
    let provider = provider(&["--seed-count=12", "--latency=1s"]);
    let shard = shard(&folder.file("data"), provider.addr, &[]);
    let mut reader = reader(&shard);
    let operator = Operator::connect(shard.addr, "a", Manner::Reports).await;
    let (one, two) = (row(4, 100, "one"), row(4, 100, "two"));
    operator.needs(vec![one.clone()]).await;
    operator.has(1).await;
    operator.needs(vec![one, two.clone()]).await;
    let work = until("a machine the provider has taken on", async || {
        let request = wire::InspectWorkRequest::default();
        let (_, work) = read!(
            reader.clone(),
            inspect_work(request),
            inspect_work_response::Work
        );
        let taken = |one: &wire::WorkView| !one.operation_id.is_empty();
        (work.iter().any(taken), work)
    })
    .await;
    assert_eq!(work[0].stage(), wire::WorkStage::AwaitingProvider);
    assert_eq!((work[0].attempts, work[0].last_error.as_str()), (1, ""));
    operator.needs(vec![two]).await;
    let flagged = InspectMachinesRequest {
        flagged_only: true,
        ..Default::default()
    };
    let kept = until("a machine that is kept", async || {
        let (_, kept) = machines(&mut reader.clone(), flagged.clone()).await;
        (!kept.is_empty(), kept)
    })
    .await;
    assert!(kept.len() == 1 && kept[0].held, "{kept:?}");
    assert_ne!(ids(&kept)[0], work[0].machine_id);
    until("the new one alone", async || {
        let nodes = operator.heard().nodes;
        let new = nodes.get(&work[0].machine_id) == Some(&MachineState::Configured);
        (new && operator.count(MachineState::Configured) == 1, nodes)
    })
    .await;
    assert_eq!(machines(&mut reader, flagged).await.0.total, 0);
}
