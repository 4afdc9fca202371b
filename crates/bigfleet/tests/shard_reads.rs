//! What a running shard shows of itself, against what the test did to it; and a reader that does not
//! read, which only keeps itself waiting.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod shard_scene;

use bigfleet_fleet_file::Format;
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use shard_scene::operator::{Manner, Operator, row};
use shard_scene::{Folder, Process, provider, shard_flags, until};
use tonic::transport::Channel;
use tonic::{Code, Streaming};
use wire::shard_read_client::ShardReadClient;
use wire::{
    ExplainNeedRequest, InspectMachinesRequest, InspectNeedsRequest, MachineState, UnmetReason,
};

type Reader = ShardReadClient<Channel>;

fn reader(shard: &Process) -> Reader {
    let channel = Dial::unknown(None).channel(&shard.addr.to_string());
    ShardReadClient::new(channel.unwrap())
}

async fn all<T>(mut stream: Streaming<T>) -> Vec<T> {
    let mut frames = Vec::new();
    while let Some(frame) = stream.message().await.unwrap() {
        frames.push(frame);
    }
    frames
}

/// The header, then the rest, with nothing before and no second one.
macro_rules! read {
    ($reader:expr, $method:ident($request:expr), $module:ident::$entry:ident) => {{
        use wire::$module::Frame;
        let stream = $reader.$method($request).await.unwrap().into_inner();
        let mut frames = all(stream).await.into_iter().map(|one| one.frame.unwrap());
        let Some(Frame::Header(header)) = frames.next() else {
            panic!("no header comes first");
        };
        let entries: Vec<_> = frames
            .map(|frame| match frame {
                Frame::$entry(entry) => entry,
                other => panic!("{other:?}"),
            })
            .collect();
        (header, entries)
    }};
}

async fn needs(
    reader: &mut Reader,
    request: InspectNeedsRequest,
) -> (wire::InspectNeedsHeader, Vec<wire::NeedView>) {
    read!(reader, inspect_needs(request), inspect_needs_response::Need)
}

async fn machines(
    reader: &mut Reader,
    request: InspectMachinesRequest,
) -> (wire::InspectHeader, Vec<wire::MachineView>) {
    read!(
        reader,
        inspect_machines(request),
        inspect_machines_response::Machine
    )
}

fn ids(views: &[wire::MachineView]) -> Vec<String> {
    let id = |view: &wire::MachineView| view.machine.as_ref().unwrap().id.clone();
    views.iter().map(id).collect()
}

fn unix_nanos() -> i64 {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_nanos() as i64
}

/// Whether a moment was in the last minute.
fn recent(moment: i64, now: i64) -> bool {
    (now - 60_000_000_000..=now + 1_000_000_000).contains(&moment)
}

fn of_new_reader(cluster: &str) -> InspectNeedsRequest {
    InspectNeedsRequest {
        cluster_id: cluster.to_owned(),
        accept_new_reasons: true,
        ..InspectNeedsRequest::default()
    }
}

/// A row that only a zone could serve which does not exist.
fn nowhere() -> wire::CapacityNeed {
    let zone = wire::NodeSelectorRequirement {
        key: "topology.kubernetes.io/zone".to_owned(),
        operator: wire::node_selector_requirement::Operator::In.into(),
        values: vec!["nowhere".to_owned()],
    };
    wire::CapacityNeed {
        requirements: vec![zone],
        ..row(4, 50, "")
    }
}

/// A fleet that is more than one page and more than one chunk.
const MANY: usize = 12_000;

struct Scene {
    _folder: Folder,
    _provider: Process,
    shard: Process,
    operator: Operator,
    reader: Reader,
}

/// Cluster `a` has a row that one machine covers, and one that nothing can.
async fn scene(name: &str, slots: usize) -> Scene {
    let folder = Folder::new(name);
    let provider = provider(&[&format!("--seed-count={slots}")]);
    let mut flags = shard_flags(&folder.file("data"), provider.addr);
    if MANY <= slots {
        // A List of them takes longer than the cycle of a small fleet.
        flags.retain(|flag| !flag.starts_with("--cycle-interval="));
        flags.push("--cycle-interval=1s".to_owned());
    }
    let shard = Process::start(&["shard"], &flags);
    let operator = Operator::connect(shard.addr, "a", Manner::Stalls).await;
    operator.needs(vec![row(4, 100, ""), nowhere()]).await;
    operator.has(1).await;
    let reader = reader(&shard);
    Scene {
        _folder: folder,
        _provider: provider,
        shard,
        operator,
        reader,
    }
}

/// The rows of `a` once the first is covered.
async fn settled(reader: &mut Reader) -> (wire::InspectNeedsHeader, Vec<wire::NeedView>) {
    until("one row covered and one not", async || {
        let (header, rows) = needs(&mut reader.clone(), of_new_reader("a")).await;
        let covered: Vec<bool> = rows.iter().map(|row| row.satisfied).collect();
        (covered == [true, false], (header, rows))
    })
    .await
}

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
    assert!(0 < short.age_cycles_unmet);
    assert!(
        short.reason_detail.starts_with("short of cpu=4 for ")
            && short
                .reason_detail
                .ends_with("meets its requirements and smallest unit"),
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
    let told = |heard: &shard_scene::operator::Heard| !heard.instructions.is_empty();
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

/// While a machine is on its way to one row, one that lost its own row serves in its place: it is kept,
/// and shown as such. What the provider has taken on is shown by the provider's name for it.
#[tokio::test]
async fn what_is_on_its_way_and_what_is_kept_until_then() {
    let folder = Folder::new("way");
    let provider = provider(&["--seed-count=12", "--latency=1s"]);
    let shard = shard_scene::shard(&folder.file("data"), provider.addr, &[]);
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

/// A pool that has run out is left alone, and what the provider said of it is shown.
#[tokio::test]
async fn a_pool_that_is_left_alone_says_why() {
    let folder = Folder::new("pool");
    let knobs = serde_json::json!({ "stock": [{ "instance_type": "g8.standard", "hosts": 0 }] });
    let path = folder.file("knobs.json");
    std::fs::write(&path, knobs.to_string()).unwrap();
    let provider = provider(&["--seed-count=12", &format!("--knobs={}", path.display())]);
    let shard = shard_scene::shard(&folder.file("data"), provider.addr, &[]);
    let reader = reader(&shard);
    let operator = Operator::connect(shard.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(4, 100, "")]).await;
    let breakers = until("a pool left alone", async || {
        let mut reader = reader.clone();
        let rails = reader.inspect_rails(wire::InspectRailsRequest {}).await;
        let breakers = rails.unwrap().into_inner().breakers;
        (!breakers.is_empty(), breakers)
    })
    .await;
    let pool = &breakers[0];
    assert_eq!(pool.instance_type, "g8.standard");
    assert!(0 < pool.failures && unix_nanos() < pool.retry_unix_nanos);
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
    let told = |heard: &shard_scene::operator::Heard| !heard.instructions.is_empty();
    let heard = scene.operator.sees("an instruction to drain", told).await;
    let followed = wire::InspectActionsRequest {
        after_sequence: entries[0].sequence,
        ..Default::default()
    };
    let (header, later) = actions(&mut scene.reader, followed).await;
    assert_eq!((header.total, later[0].kind()), (1, Reclaim));
    let drain = &later[0];
    assert_eq!((&*drain.cluster_id, &*drain.from_cluster_id), ("", "a"));
    // The operator knows the operation by the digits of its two numbers (wire 3.3).
    let numbers = drain.operation_id.strip_prefix("op-").unwrap().split('-');
    let digits = numbers.map(|part| format!("{:08x}", part.parse::<u32>().unwrap()));
    let digits: String = digits.collect();
    assert_eq!(digits, heard.instructions[0].instruction_id);
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
    assert_eq!(
        covered.summary,
        "cpu=4 is covered by 1 machine, of which 0 new"
    );
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
            .starts_with("0 machines count for it and it is short of cpu=4")
    );
    assert!(
        short
            .remedies
            .iter()
            .any(|one| one.contains("requirements")),
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

/// CRC-32 (IEEE), bit by bit: not the code under test.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The file of an export, checked against its end.
async fn exported(reader: &mut Reader, cluster: &str) -> (usize, Vec<u8>) {
    use wire::export_fleet_response::Frame;
    let cluster_id = cluster.to_owned();
    let request = wire::ExportFleetRequest { cluster_id };
    let stream = reader.export_fleet(request).await.unwrap().into_inner();
    let frames = all(stream).await.into_iter();
    let mut frames: Vec<Frame> = frames.map(|one| one.frame.unwrap()).collect();
    let Frame::Header(header) = frames.remove(0) else {
        panic!("no header comes first");
    };
    let Some(Frame::End(end)) = frames.pop() else {
        panic!("no end comes last");
    };
    let mut file = Vec::new();
    for frame in frames {
        let Frame::Data(data) = frame else {
            panic!("{frame:?}")
        };
        assert!(!data.is_empty() && data.len() <= 1 << 20);
        file.extend(data);
    }
    assert_eq!(
        (end.size_bytes as usize, end.crc32),
        (file.len(), crc32(&file))
    );
    (header.total as usize, file)
}

#[tokio::test]
async fn the_fleet_is_exported_as_a_file_that_reads_back() {
    let mut scene = scene("export", MANY).await;
    let (total, file) = exported(&mut scene.reader, "").await;
    assert!(1 << 20 < file.len(), "more than one chunk");
    let fleet = bigfleet_fleet_file::read(&file, Format::Json)
        .unwrap()
        .fleet;
    assert_eq!((fleet.machines.len(), total), (MANY, MANY));
    let a = &fleet.clusters[&bigfleet_model::ClusterId::new("a").unwrap()];
    assert_eq!(a.needs().len(), 2);
    let bound = fleet.machines.values();
    assert_eq!(
        bound.filter(|one| one.machine.cluster().is_some()).count(),
        1
    );

    // Of the two types, half of the slots each, only one has the smallest unit of its rows.
    let (total, file) = exported(&mut scene.reader, "a").await;
    let part = bigfleet_fleet_file::read(&file, Format::Json)
        .unwrap()
        .fleet;
    assert_eq!((part.machines.len(), total), (MANY / 2, MANY / 2));
    let types = part.machines.values();
    assert!(
        types
            .clone()
            .all(|one| one.machine.shape().instance_type == "g8.standard")
    );
    let request = wire::ExportFleetRequest {
        cluster_id: "nobody".to_owned(),
    };
    let mut nobody = scene
        .reader
        .export_fleet(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(nobody.message().await.unwrap_err().code(), Code::NotFound);
}

/// A reader that stops reading keeps only itself waiting: cycles go on, and so do other readers.
#[tokio::test]
async fn a_slow_reader_slows_nobody_but_itself() {
    use wire::inspect_machines_response::Frame;
    let scene = scene("slow", MANY).await;
    let cycle = async || {
        let mut reader = scene.reader.clone();
        let rails = reader.inspect_rails(wire::InspectRailsRequest {}).await;
        rails.unwrap().into_inner().header.unwrap().cycle
    };
    // Room for less than a page: what the shard has not been able to write, it holds.
    let narrow = Dial {
        stream_window: 1 << 16,
        connection_window: 1 << 16,
        ..Dial::unknown(None)
    };
    let mut slow = Reader::new(narrow.channel(&scene.shard.addr.to_string()).unwrap());
    let stream = slow.inspect_machines(InspectMachinesRequest::default());
    let mut stream = stream.await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap().frame.unwrap();
    let Frame::Header(header) = first else {
        panic!("{first:?}");
    };
    assert_eq!(header.total as usize, MANY);

    let began = cycle().await;
    until("five more cycles", async || {
        let now = cycle().await;
        (began + 5 <= now, now)
    })
    .await;
    let (header, rows) = needs(&mut scene.reader.clone(), of_new_reader("a")).await;
    assert!(began < header.cycle && rows.len() == 2);

    let rest = all(stream).await;
    assert_eq!(rest.len(), MANY, "and it still gets everything");
    // One that goes away in the middle leaves nothing behind that would hold up the next.
    for _ in 0..50 {
        let stream = slow.inspect_machines(InspectMachinesRequest::default());
        drop(stream.await.unwrap());
    }
    let (header, _) = machines(&mut slow, InspectMachinesRequest::default()).await;
    assert_eq!(header.total as usize, MANY);
}
