//! Work under way, the clusters it is for, pools that are left alone, and what was decided.

use bigfleet_wire::v1alpha1 as wire;
use wire::MachineState;

use super::scene::{Reader, nowhere, reader, recent, scene, settled, unix_nanos};
use crate::shard_scene::operator::{Heard, Manner, Operator, row};
use crate::shard_scene::scene::knobs;
use crate::shard_scene::{Folder, provider, shard, until};

/// An operator that never gets done with a drain leaves work to look at.
#[tokio::test]
async fn work_and_clusters_show_a_drain_under_way() {
    let mut scene = scene("work", 12).await;
    let rollup = wire::ClusterCapacityNeeds {
        cluster_id: "a".to_owned(),
        timestamp_unix_nanos: 77,
        needs: vec![nowhere()],
        rollup_id: "r7".to_owned(),
    };
    let rollup = wire::operator_message::Payload::Rollup(rollup);
    scene.operator.send(rollup).await;
    let told = |heard: &Heard| !heard.instructions.is_empty();
    let heard = scene.operator.sees("an instruction to drain", told).await;
    let instruction = &heard.instructions[0];
    let request = wire::InspectWorkRequest {
        cluster_id: "a".to_owned(),
        kinds: vec![wire::WorkKind::Drain.into()],
        ..Default::default()
    };
    let (header, work) = read!(
        scene.reader,
        inspect_work(request),
        inspect_work_response::Work
    );
    assert_eq!((header.total, work.len()), (1, 1));
    let drain = &work[0];
    assert_eq!(drain.stage(), wire::WorkStage::AwaitingDrain);
    assert_eq!(drain.instruction_id, instruction.instruction_id);
    assert_eq!(drain.own_operation_id, instruction.instruction_id);
    assert_eq!(drain.machine_id, instruction.targets[0].machine_id);
    assert_eq!(drain.deadline_unix_nanos, instruction.deadline_unix_nanos);
    assert_eq!(drain.reason, "phase3.excess");
    assert!(drain.intent.is_none() && 0 < drain.decided_cycle);
    assert_eq!(
        drain.operation_id, "",
        "the provider has not been asked yet"
    );
    let old = wire::InspectWorkRequest {
        min_age_seconds: 3600,
        ..Default::default()
    };
    let (header, _) = read!(scene.reader, inspect_work(old), inspect_work_response::Work);
    assert_eq!(header.total, 0);

    let (header, clusters) = read!(
        scene.reader,
        inspect_clusters(wire::InspectClustersRequest::default()),
        inspect_clusters_response::Cluster
    );
    assert_eq!((header.total, clusters.len()), (1, 1));
    let a = &clusters[0];
    let session = a.session.as_ref().unwrap();
    assert_eq!(session.features, ["drain-report.v1", "resync.v1"]);
    assert!(session.started_unix_nanos < session.last_frame_unix_nanos);
    assert!(recent(session.last_frame_unix_nanos, unix_nanos()));
    assert_eq!(session.outbox_frames, 0, "this operator reads");
    assert!(a.ready && a.acquire);
    let rollup = a.rollup.as_ref().unwrap();
    assert_eq!((rollup.rows, rollup.timestamp_unix_nanos), (1, 77));
    assert_eq!(rollup.rollup_id, "r7");
    assert_eq!((a.needs, a.needs_unmet), (1, 1));
    let counted = a.machines.iter().map(|one| (one.state(), one.count));
    assert_eq!(counted.collect::<Vec<_>>(), [(MachineState::Draining, 1)]);
}

/// A pool that has run out is left alone, and what the provider said of it is shown.
#[tokio::test]
async fn a_pool_that_is_left_alone_says_why() {
    let folder = Folder::new("pool");
    let stock = serde_json::json!({ "stock": [{ "instance_type": "g8.standard", "hosts": 0 }] });
    let provider = provider(&["--seed-count=12", &knobs(&folder, &stock)]);
    let shard = shard(&folder.file("data"), provider.addr, &[]);
    let reader = reader(&shard);
    let operator = Operator::connect(shard.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(4, 100, "")]).await;
    let (asked_at, breakers) = until("a pool left alone", async || {
        let mut reader = reader.clone();
        let asked_at = unix_nanos();
        let rails = reader.inspect_rails(wire::InspectRailsRequest {}).await;
        let breakers = rails.unwrap().into_inner().breakers;
        (!breakers.is_empty(), (asked_at, breakers))
    })
    .await;
    let pool = &breakers[0];
    assert_eq!(pool.instance_type, "g8.standard");
    assert!(0 < pool.failures && asked_at < pool.retry_unix_nanos);
    assert!(!pool.last_error.is_empty(), "{pool:?}");
}

async fn actions(
    reader: &mut Reader,
    request: wire::InspectActionsRequest,
) -> (wire::InspectHeader, Vec<wire::ActionView>) {
    read!(
        reader,
        inspect_actions(request),
        inspect_actions_response::Action
    )
}

/// What was decided, from its commit to its end, and a reader that follows.
#[tokio::test]
async fn actions_are_shown_newest_first() {
    use wire::ActionKind::{Bootstrap, Provision, Reclaim};
    let mut scene = scene("actions", 12).await;
    let (_, rows) = settled(&mut scene.reader).await;
    let (header, entries) = actions(&mut scene.reader, Default::default()).await;
    assert_eq!((header.total, entries.len()), (4, 4), "{entries:#?}");
    let told = |entry: &wire::ActionView| (entry.kind(), entry.outcome.clone());
    let expected = [
        (Bootstrap, "success"),
        (Bootstrap, "committed"),
        (Provision, "success"),
        (Provision, "committed"),
    ];
    let expected = expected.map(|(kind, outcome)| (kind, outcome.to_owned()));
    assert_eq!(entries.iter().map(told).collect::<Vec<_>>(), expected);
    assert!(entries.is_sorted_by(|newer, older| older.sequence < newer.sequence));
    assert!(entries.is_sorted_by(|newer, older| older.time_unix_nanos <= newer.time_unix_nanos));
    for entry in &entries {
        assert_eq!(entry.machine_id, entries[0].machine_id);
        assert_eq!((&*entry.cluster_id, &*entry.from_cluster_id), ("a", ""));
        assert_eq!(entry.profile_fingerprint, rows[0].profile_fingerprint);
        assert_eq!(entry.priority, Some(100));
        assert!(0 < entry.decided_cycle && entry.decided_cycle <= entry.cycle);
    }
    assert_eq!(entries[0].operation_id, entries[1].operation_id);
    assert_ne!(entries[1].operation_id, entries[2].operation_id);
    assert_eq!(
        entries[0].detail,
        "Configure, for the Need of priority 100 of cluster a it was promised to: done"
    );

    scene.operator.needs(vec![nowhere()]).await;
    let told = |heard: &Heard| !heard.instructions.is_empty();
    let heard = scene.operator.sees("an instruction to drain", told).await;
    let followed = wire::InspectActionsRequest {
        after_sequence: entries[0].sequence,
        ..Default::default()
    };
    let (header, later) = actions(&mut scene.reader, followed).await;
    assert_eq!((header.total, later[0].kind()), (1, Reclaim));
    let drain = &later[0];
    assert_eq!((&*drain.cluster_id, &*drain.from_cluster_id), ("", "a"));
    assert_eq!(drain.operation_id, heard.instructions[0].instruction_id);
    assert_eq!(
        drain.detail,
        "Drain from cluster a, where no Need claims the machine: committed"
    );

    let two = wire::InspectActionsRequest {
        cluster_id: "a".to_owned(),
        machine_id: drain.machine_id.clone(),
        kinds: vec![Provision.into(), Reclaim.into()],
        limit: 2,
        ..Default::default()
    };
    let (header, entries) = actions(&mut scene.reader, two).await;
    let kinds: Vec<_> = entries.iter().map(wire::ActionView::kind).collect();
    assert_eq!((header.total, kinds), (3, vec![Reclaim, Provision]));
    let nobody = wire::InspectActionsRequest {
        cluster_id: "nobody".to_owned(),
        ..Default::default()
    };
    assert_eq!(actions(&mut scene.reader, nobody).await.0.total, 0);
    let refused = wire::InspectActionsRequest {
        kinds: vec![99],
        ..Default::default()
    };
    let refused = scene.reader.inspect_actions(refused).await.unwrap_err();
    assert_eq!(refused.message(), "kinds 99 is no kind");
}
