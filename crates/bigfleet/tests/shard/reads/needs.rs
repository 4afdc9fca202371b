//! Needs and their verdicts, and one explained.

use bigfleet_wire::v1alpha1 as wire;
use tonic::Code;
use wire::{ExplainNeedRequest, InspectNeedsRequest, MachineState, UnmetReason};

use super::scene::{needs, of_new_reader, scene, settled};
use crate::shard_scene::operator::{Manner, Operator, row};
use crate::shard_scene::until;

#[tokio::test]
async fn needs_are_shown_with_their_verdicts() {
    let mut scene = scene("needs", 12).await;
    let (header, rows) = settled(&mut scene.reader).await;
    assert!(
        0 < header.cycle && 0 < header.computed_at_unix_nanos,
        "{header:?}"
    );
    assert_eq!(header.total_needs, 2);
    let covered = &rows[0];
    assert_eq!(covered.need.as_ref().unwrap().priority, 100);
    assert_eq!(
        (covered.cluster_id.as_str(), covered.claimed_machine_count),
        ("a", 1)
    );
    assert_eq!(covered.unmet_reason(), UnmetReason::Unspecified);
    assert_eq!(
        (covered.reason_detail.as_str(), covered.age_cycles_unmet),
        ("", 0)
    );
    let short = &rows[1];
    assert_eq!(short.unmet_reason(), UnmetReason::NoMatchingSupply);
    let missing = short.residual_deficit.as_ref().unwrap();
    assert_eq!(missing.resources["cpu"], "4");
    let supply = short.matching_supply.unwrap();
    assert_eq!(
        (supply.idle, supply.configured, supply.speculative),
        (0, 0, 0)
    );
    assert!(0 < short.age_cycles_unmet && 0 < short.lacking_since_unix_nanos);
    let cpu = |of: &Option<wire::Resources>| of.as_ref().unwrap().resources.get("cpu").cloned();
    let four = Some("4".to_owned());
    assert_eq!(
        (cpu(&covered.serving), cpu(&covered.missing)),
        (four.clone(), None)
    );
    assert_eq!((cpu(&short.serving), cpu(&short.missing)), (None, four));
    assert_eq!(covered.lacking_since_unix_nanos, 0);
    assert!(header.computed_at_unix_nanos <= header.answered_at_unix_nanos);
    assert!(
        short.reason_detail.starts_with("missing cpu=4 for ")
            && short
                .reason_detail
                .ends_with("meets its requirements and smallest size"),
        "{}",
        short.reason_detail
    );

    let one = InspectNeedsRequest {
        limit: 1,
        ..of_new_reader("")
    };
    let (header, rows) = needs(&mut scene.reader, one).await;
    assert_eq!((header.total_needs, rows.len()), (2, 1));
    let (header, rows) = needs(&mut scene.reader, of_new_reader("nobody")).await;
    assert_eq!((header.total_needs, rows.len()), (0, 0));
}

/// A reader that predates our reasons gets one it knows, and the same words.
#[tokio::test]
async fn an_old_reader_gets_a_reason_it_knows() {
    let mut scene = scene("reasons", 6).await;
    let other = Operator::connect(scene.shard.addr, "b", Manner::Plain).await;
    other.needs(vec![row(400, 10, "")]).await;
    other
        .sees("its roll-up accepted", |heard| 1 < heard.acks.len())
        .await;
    drop(other);
    let new = until("nobody speaks for b", async || {
        let (_, rows) = needs(&mut scene.reader.clone(), of_new_reader("b")).await;
        let gone = |row: &wire::NeedView| row.unmet_reason() == UnmetReason::NoOperatorSession;
        (rows.iter().any(gone), rows)
    })
    .await;
    assert!(
        new[0]
            .reason_detail
            .contains("no operator of its cluster is connected"),
        "{new:?}"
    );
    let old = InspectNeedsRequest {
        accept_new_reasons: false,
        ..of_new_reader("b")
    };
    let (_, old) = needs(&mut scene.reader, old).await;
    assert_eq!(old[0].unmet_reason(), UnmetReason::PriorityStarved);
    assert!(
        old[0]
            .reason_detail
            .contains("no operator of its cluster is connected")
    );

    let request = wire::InspectClustersRequest {
        cluster_id: "b".to_owned(),
    };
    let (header, clusters) = read!(
        scene.reader,
        inspect_clusters(request),
        inspect_clusters_response::Cluster
    );
    assert_eq!((header.total, clusters.len()), (1, 1));
    let b = &clusters[0];
    assert!(b.session.is_none() && 0 < b.session_ended_unix_nanos && !b.acquire);
    assert_eq!(b.acquire_block(), wire::AcquireBlock::NoSession);
    assert!(b.acquire_detail.contains(" s now"), "{}", b.acquire_detail);
}

#[tokio::test]
async fn a_row_is_explained() {
    let mut scene = scene("explain", 12).await;
    let (_, rows) = settled(&mut scene.reader).await;
    let of = |row: &wire::NeedView| ExplainNeedRequest {
        cluster_id: "a".to_owned(),
        profile_fingerprint: row.profile_fingerprint.clone(),
        group: String::new(),
    };
    let covered = scene
        .reader
        .explain_need(of(&rows[0]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(covered.summary, "all of cpu=4 is served");
    assert!(covered.remedies.is_empty() && !covered.claims_capped);
    let claims = covered.claims.iter();
    let claims: Vec<_> = claims.map(|one| (one.step.as_str(), one.state())).collect();
    assert_eq!(claims, [("own", MachineState::Configured)]);
    let own = covered
        .steps
        .iter()
        .find(|step| step.step == "own")
        .unwrap();
    assert_eq!(
        (own.considered, own.taken, &own.missing),
        (1, 1, &None),
        "{own:?}"
    );

    let short = scene
        .reader
        .explain_need(of(&rows[1]))
        .await
        .unwrap()
        .into_inner();
    assert!(
        short
            .summary
            .starts_with("of cpu=4, nothing is served; missing cpu=4")
    );
    assert!(
        short
            .remedies
            .iter()
            .any(|one| one == "drop topology.kubernetes.io/zone In nowhere (served)"),
        "{short:?}"
    );
    assert_eq!(
        short.need.unwrap().unmet_reason(),
        UnmetReason::NoMatchingSupply
    );

    let mut unknown = of(&rows[0]);
    unknown.group = "g".to_owned();
    let refused = scene.reader.explain_need(unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let mut empty = of(&rows[0]);
    empty.profile_fingerprint = String::new();
    let refused = scene.reader.explain_need(empty).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().contains("profile_fingerprint"),
        "{refused}"
    );
}
