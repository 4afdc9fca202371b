//! What an admin tells a running shard, and what comes of it.

use crate::shard_scene::operator::{Manner, Operator, fails_to_be_created, row};
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wire::pause_scope::Scope;
use wire::resume_request::Target;
use wire::shard_admin_client::ShardAdminClient;
use wire::shard_read_client::ShardReadClient;
use wire::{
    InspectMachinesRequest, MachineState, PauseRequest, PauseScope, PauseView,
    ReleaseClusterRequest, ResumeRequest, RetireMachineRequest,
};

struct Scene {
    _folder: Folder,
    _provider: Process,
    shard: Process,
    admin: ShardAdminClient<Channel>,
    reader: ShardReadClient<Channel>,
}

fn channel(shard: &Process) -> Channel {
    let channel = Dial::unknown(None).channel(&shard.addr.to_string());
    channel.unwrap()
}

fn scene(name: &str, flags: &[&str]) -> Scene {
    let folder = Folder::new(name);
    let provider = provider(flags);
    let shard = shard(&folder.file("data"), provider.addr, &[]);
    let channel = channel(&shard);
    Scene {
        _folder: folder,
        _provider: provider,
        shard,
        admin: ShardAdminClient::new(channel.clone()),
        reader: ShardReadClient::new(channel),
    }
}

impl Scene {
    async fn rails(&self) -> wire::InspectRailsResponse {
        let rails = self
            .reader
            .clone()
            .inspect_rails(wire::InspectRailsRequest {})
            .await;
        rails.unwrap().into_inner()
    }

    async fn cycles(&self, more: i64) {
        let cycle = async || self.rails().await.header.unwrap().cycle;
        let began = cycle().await;
        until("more cycles", async || {
            let now = cycle().await;
            (began + more <= now, now)
        })
        .await;
    }

    async fn machines(&self, states: &[MachineState]) -> Vec<String> {
        use wire::inspect_machines_response::Frame;
        let request = InspectMachinesRequest {
            states: states.iter().map(|state| (*state).into()).collect(),
            ..InspectMachinesRequest::default()
        };
        let stream = self.reader.clone().inspect_machines(request).await;
        let mut stream = stream.unwrap().into_inner();
        let mut ids = Vec::new();
        while let Some(frame) = stream.message().await.unwrap() {
            if let Some(Frame::Machine(view)) = frame.frame {
                ids.push(view.machine.unwrap().id);
            }
        }
        ids
    }
}

fn of(scope: Scope) -> Option<PauseScope> {
    Some(PauseScope { scope: Some(scope) })
}

fn pause_all() -> PauseRequest {
    PauseRequest {
        scope: of(Scope::All(wire::pause_scope::All {})),
        reason: "a test".to_owned(),
        expires_after_seconds: 3600,
        dry_run: false,
    }
}

fn said<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    (status.code(), status.message().to_owned())
}

/// Each field that is required is named by whoever misses it.
#[tokio::test]
async fn what_is_missing_is_named() {
    let mut scene = scene("missing", &["--seed-count=2"]);
    let invalid = |(code, text): (Code, String), field: &str| {
        assert_eq!(code, Code::InvalidArgument, "{text}");
        assert!(text.starts_with(field), "{field}: {text}");
    };
    for (change, field) in [
        (
            PauseRequest {
                scope: None,
                ..pause_all()
            },
            "scope",
        ),
        (
            PauseRequest {
                scope: Some(PauseScope::default()),
                ..pause_all()
            },
            "scope",
        ),
        (
            PauseRequest {
                scope: of(Scope::ClusterId(String::new())),
                ..pause_all()
            },
            "cluster_id",
        ),
        (
            PauseRequest {
                reason: " ".to_owned(),
                ..pause_all()
            },
            "reason",
        ),
        (
            PauseRequest {
                expires_after_seconds: 0,
                ..pause_all()
            },
            "expires_after_seconds",
        ),
        (
            PauseRequest {
                expires_after_seconds: -9,
                ..pause_all()
            },
            "expires_after_seconds",
        ),
    ] {
        invalid(said(scene.admin.pause(change).await), field);
    }
    let resume = ResumeRequest {
        reason: "a test".to_owned(),
        ..ResumeRequest::default()
    };
    invalid(said(scene.admin.resume(resume).await), "target");
    let target = Some(Target::PauseId("admin:all".to_owned()));
    let resume = ResumeRequest {
        target,
        ..ResumeRequest::default()
    };
    invalid(said(scene.admin.resume(resume).await), "reason");
    let retire = RetireMachineRequest::default();
    invalid(said(scene.admin.retire_machine(retire).await), "machine_id");
    let release = ReleaseClusterRequest {
        cluster_id: "a".to_owned(),
        ..ReleaseClusterRequest::default()
    };
    invalid(said(scene.admin.release_cluster(release).await), "reason");

    let stranger = of(Scope::ProviderAddress("elsewhere:1".to_owned()));
    let (code, text) = said(
        scene
            .admin
            .pause(PauseRequest {
                scope: stranger,
                ..pause_all()
            })
            .await,
    );
    assert_eq!(code, Code::NotFound);
    assert!(text.contains("elsewhere:1"), "{text}");
    assert_eq!(
        scene.rails().await.pauses,
        [],
        "nothing of it changed anything"
    );
}

/// Whoever pauses and then looks at the metrics sees a paused shard, and the other way round.
#[tokio::test]
async fn the_metric_of_a_pause_is_true_when_the_pause_is_answered() {
    let mut scene = scene("gauge", &["--seed-count=2"]);
    let gauge = |shard: &Process| shard.metric("bigfleet_shard_actuation_paused");
    for _ in 0..5 {
        assert_eq!(gauge(&scene.shard), 0.0);
        scene.admin.pause(pause_all()).await.unwrap();
        assert_eq!(gauge(&scene.shard), 1.0);
        let resume = ResumeRequest {
            reason: "the test goes on".to_owned(),
            target: pause_all().scope.map(Target::Scope),
            dry_run: false,
        };
        scene.admin.resume(resume).await.unwrap();
    }
}

#[tokio::test]
async fn nothing_leaves_while_paused_and_everything_after() {
    let mut scene = scene("paused", &["--seed-count=12"]);
    let operator = Operator::connect(scene.shard.addr, "a", Manner::Plain).await;
    let dry = PauseRequest {
        dry_run: true,
        ..pause_all()
    };
    let would = scene.admin.pause(dry).await.unwrap().into_inner();
    let id = would.pause.unwrap().pause_id;
    assert_eq!(scene.rails().await.pauses, [], "a dry run does nothing");

    let paused = scene.admin.pause(pause_all()).await.unwrap().into_inner();
    let pause = paused.pause.unwrap();
    assert_eq!(
        (&pause.pause_id, pause.origin()),
        (&id, wire::PauseOrigin::Admin)
    );
    assert_eq!(pause.reason, "a test");
    assert!(
        pause
            .requested_by
            .starts_with("somebody without a certificate at 127.0.0.1:"),
        "{pause:?}"
    );
    let lasts = (pause.expires_unix_nanos - pause.started_unix_nanos) / 1_000_000_000;
    assert!((3599..=3600).contains(&lasts), "{lasts}");
    assert_eq!(scene.rails().await.pauses, std::slice::from_ref(&pause));
    scene.shard.logged("admin");

    operator.needs(vec![row(4, 100, "")]).await;
    scene.cycles(3).await;
    assert_eq!(scene.machines(&[MachineState::Speculative]).await.len(), 12);

    let by_scope = |dry_run| ResumeRequest {
        reason: "the test goes on".to_owned(),
        target: Some(Target::Scope(
            of(Scope::All(wire::pause_scope::All {})).unwrap(),
        )),
        dry_run,
    };
    let would = scene
        .admin
        .resume(by_scope(true))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((would.lifted.len(), would.remaining), (1, vec![]));
    assert_eq!(
        scene.rails().await.pauses.len(),
        1,
        "a dry run does nothing"
    );
    let done = scene
        .admin
        .resume(by_scope(false))
        .await
        .unwrap()
        .into_inner();
    assert!(
        0 < done.lifted[0].withheld_total,
        "what it held back is counted: {done:?}"
    );
    let lifted = PauseView {
        withheld_total: 0,
        ..done.lifted[0].clone()
    };
    assert_eq!((lifted, done.remaining), (pause, Vec::<PauseView>::new()));
    operator.has(1).await;
    let again = scene
        .admin
        .resume(by_scope(false))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(again.lifted, []);
    let target = Some(Target::PauseId(id));
    let (code, _) = said(
        scene
            .admin
            .resume(ResumeRequest {
                target,
                ..by_scope(false)
            })
            .await,
    );
    assert_eq!(code, Code::NotFound);
}

/// What the audit file says of admins.
fn admin_lines(data: &std::path::Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(data.with_extension("audit")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &serde_json::Value| line["msg"] == "admin")
        .collect()
}

/// Answered is on disk: a process that is killed at once leaves the pause to the next, which honours it.
/// Every call is a line of the audit file, refusals included.
#[tokio::test]
async fn a_pause_outlives_the_process_and_every_call_is_audited() {
    let folder = Folder::new("lasting");
    let provider = provider(&["--seed-count=12"]);
    let data = folder.file("data");
    let first = shard(&data, provider.addr, &[]);
    let mut admin = ShardAdminClient::new(channel(&first));
    let said_no = PauseRequest {
        reason: String::new(),
        ..pause_all()
    };
    let (code, _) = said(admin.pause(said_no).await);
    assert_eq!(code, Code::InvalidArgument);
    let paused = admin.pause(pause_all()).await.unwrap().into_inner();
    let lines = until("both calls in the audit file", async || {
        let lines = admin_lines(&data);
        (lines.len() == 2, lines)
    })
    .await;
    first.kill();
    let pause = paused.pause.unwrap();

    let second = shard(&data, provider.addr, &[]);
    assert_eq!(pauses(&second).await, std::slice::from_ref(&pause));
    let operator = Operator::connect(second.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(4, 100, "")]).await;
    until("something held back", async || {
        let pauses = pauses(&second).await;
        (0 < pauses[0].withheld_total, pauses)
    })
    .await;
    assert_eq!(operator.heard().blobs, 0, "nothing has left");

    let told = |line: &serde_json::Value| (line["verb"].clone(), line["outcome"].clone());
    assert_eq!(
        lines.iter().map(told).collect::<Vec<_>>(),
        [
            ("Pause".into(), "InvalidArgument".into()),
            ("Pause".into(), "done".into())
        ],
        "{lines:?}"
    );
    let done = &lines[1];
    assert_eq!(
        (&done["reason"], &done["asked"]["scope"]),
        (&"a test".into(), &"all".into())
    );
    assert_eq!(done["asked"]["expires_after_seconds"], 3600);
    assert!(
        done["by"]
            .as_str()
            .unwrap()
            .starts_with("somebody without a certificate at 127.0.0.1:")
    );
    let refused = lines[0]["detail"]["refused"].as_str().unwrap();
    assert!(refused.starts_with("reason is empty"), "{refused}");
    let detail = &done["detail"];
    assert_eq!(detail["pause"]["pause_id"], "admin:all", "{detail}");
    let until = detail["pause"]["expires_unix_nanos"].as_i64();
    assert_eq!(until, Some(pause.expires_unix_nanos), "{detail}");
    assert_eq!(detail["work_paused"], 0, "{detail}");
}

/// However long the restart takes: nothing leaves before the end of the pause, and everything after it.
#[tokio::test]
async fn a_pause_ends_when_it_was_to_end_also_in_the_next_process() {
    let folder = Folder::new("ending");
    let provider = provider(&["--seed-count=12"]);
    let data = folder.file("data");
    let first = shard(&data, provider.addr, &[]);
    let mut admin = ShardAdminClient::new(channel(&first));
    let short = PauseRequest {
        expires_after_seconds: 4,
        ..pause_all()
    };
    let paused = admin.pause(short).await.unwrap().into_inner();
    first.kill();
    let second = shard(&data, provider.addr, &[]);
    let operator = Operator::connect(second.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(4, 100, "")]).await;
    operator.has(1).await;
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(paused.pause.unwrap().expires_unix_nanos <= now.as_nanos() as i64);
    assert_eq!(pauses(&second).await, []);
}

/// The pauses a shard shows.
async fn pauses(shard: &Process) -> Vec<PauseView> {
    let mut reader = ShardReadClient::new(channel(shard));
    let rails = reader.inspect_rails(wire::InspectRailsRequest {}).await;
    rails.unwrap().into_inner().pauses
}

/// One that cannot be created stays Failed until a person says that it is to be forgotten.
#[tokio::test]
async fn a_failed_machine_is_retired_and_no_other() {
    let mut scene = scene("retire", &["--seed-count=2", "--fault-hooks"]);
    let operator = Operator::connect(scene.shard.addr, "a", Manner::Plain).await;
    operator.needs(vec![fails_to_be_created()]).await;
    let failed = until("a machine that failed", async || {
        let failed = scene.machines(&[MachineState::Failed]).await;
        (!failed.is_empty(), failed)
    })
    .await;
    operator.needs(vec![]).await;
    let retire = |id: &str, dry_run| RetireMachineRequest {
        machine_id: id.to_owned(),
        reason: "a test".to_owned(),
        dry_run,
    };
    let other = scene.machines(&[MachineState::Speculative]).await;
    let (code, text) = said(scene.admin.retire_machine(retire(&other[0], false)).await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("Speculative"), "{text}");
    let shown = scene
        .admin
        .retire_machine(retire(&failed[0], true))
        .await
        .unwrap();
    let shown = shown.into_inner().machine.unwrap().machine.unwrap();
    assert_eq!(
        (shown.id.as_str(), shown.state()),
        (failed[0].as_str(), MachineState::Failed)
    );
    assert!(!shown.last_error.is_empty());
    assert!(
        scene
            .machines(&[MachineState::Failed])
            .await
            .contains(&failed[0])
    );
    scene
        .admin
        .retire_machine(retire(&failed[0], false))
        .await
        .unwrap();
    scene.cycles(3).await;
    assert!(
        !scene.machines(&[]).await.contains(&failed[0]),
        "its provider still shows it"
    );
    let (code, _) = said(scene.admin.retire_machine(retire(&failed[0], false)).await);
    assert_eq!(code, Code::NotFound);
}

#[tokio::test]
async fn a_cluster_is_released_by_the_number_of_its_machines() {
    let mut scene = scene("release", &["--seed-count=12"]);
    let operator = Operator::connect(scene.shard.addr, "a", Manner::Plain).await;
    operator.needs(vec![row(12, 100, "")]).await;
    operator.has(2).await;
    let release = |confirm_machines, dry_run| ReleaseClusterRequest {
        cluster_id: "a".to_owned(),
        reason: "a test".to_owned(),
        confirm_machines,
        dry_run,
    };
    let (code, text) = said(scene.admin.release_cluster(release(2, false)).await);
    assert_eq!(code, Code::FailedPrecondition);
    assert!(text.contains("operator connected"), "{text}");
    drop(operator);
    let would = until("nobody speaks for a", async || {
        let answer = scene.admin.clone().release_cluster(release(0, true)).await;
        (answer.is_ok(), answer)
    })
    .await;
    let would = would.unwrap().into_inner();
    assert_eq!((would.machines, would.needs), (2, 1));
    let (code, text) = said(scene.admin.release_cluster(release(3, false)).await);
    assert_eq!(code, Code::Aborted);
    assert!(text.contains("has 2 machines, not 3"), "{text}");
    let done = scene
        .admin
        .release_cluster(release(2, false))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((done.machines, done.needs), (2, 1));
    let again = scene
        .admin
        .release_cluster(release(0, true))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(again.needs, 0, "its demand is gone");
    let unknown = ReleaseClusterRequest {
        cluster_id: "nobody".to_owned(),
        ..release(0, false)
    };
    let (code, _) = said(scene.admin.release_cluster(unknown).await);
    assert_eq!(code, Code::NotFound);
}
