//! One operation, one name: whoever finds it in one place finds it in all others.

use serde_json::Value;

use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use wire::capacity_provider_client::CapacityProviderClient;

use crate::scene::Scene;
use crate::shard_scene::operator::{Heard, Manner, NO_BLOB, Operator, row};
use crate::shard_scene::until;

/// The lines of the audit log about a kind of action.
fn audited(scene: &Scene, kind: &str) -> Vec<Value> {
    let mut lines = scene.folder.audit();
    lines.retain(|line| line["kind"] == kind);
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_found_by_the_id_the_operator_has() {
    let scene = Scene::new("verbs-operation").await;
    let machine = scene.serving();

    // The operator comes back as one that never gets done, and then wants nothing.
    let slow = Operator::connect(scene.shard.addr, "a", Manner::Stalls).await;
    slow.needs(Vec::new()).await;
    let told = |heard: &Heard| !heard.instructions.is_empty();
    let heard = slow.sees("an instruction to drain", told).await;
    let id = heard.instructions[0].instruction_id.as_str();

    let text = scene.call(&["get", "work", id, "-o", "json"]).done();
    let work: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&work["operation"], &work["machine"], &work["work"]),
        (&id.into(), &machine.as_str().into(), &"Drain".into())
    );
    assert_eq!(work["stage"], "AwaitingDrain");
    for args in [
        ["get", "work", machine.as_str()],
        ["get", "work", "--no-headers"],
        ["get", "actions", id],
        ["describe", "machine", machine.as_str()],
    ] {
        let text = scene.call(&[&args[..], &["-o=wide"][..usize::from(args[0] == "get")]].concat());
        let text = text.done();
        assert!(text.contains(id), "{args:?}: {text}");
    }
    let selected = [
        "get",
        "work",
        "-l",
        "stage=awaitingdrain,cluster=a",
        "--no-headers",
    ];
    assert_eq!(scene.call(&selected).done().lines().count(), 1);
    let missing = scene.call(&["get", "work", "0000000100000000"]).undone();
    assert!(missing.starts_with("work \"0000000100000000\" not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_called_the_same_by_the_audit_log_the_log_and_the_provider() {
    let mut scene = Scene::new("verbs-name").await;
    let bound = until("the Bootstrap in the audit log", async || {
        let mut lines = audited(&scene, "Bootstrap");
        (!lines.is_empty(), lines.pop())
    })
    .await
    .unwrap();
    let channel = Dial::provider(None).channel(&scene.provider.addr.to_string());
    let asked = wire::MachineRef {
        id: bound["machine"].as_str().unwrap().to_owned(),
    };
    let record = CapacityProviderClient::new(channel.unwrap())
        .get(asked)
        .await;
    let record = record.unwrap().into_inner();
    let noted = &record.shard_metadata["bigfleet.lucy.sh/assigned-intent"];
    assert_eq!(bound["operation"], noted.as_str());

    let b = Operator::connect(scene.shard.addr, "b", Manner::WithoutBlobs).await;
    b.needs(vec![row(4, 100, "")]).await;
    let failed = scene.shard.logged("action failed");
    assert!(
        failed["fields"]["err"].as_str().unwrap().contains(NO_BLOB),
        "{failed}"
    );
    let id = failed["fields"]["operation"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 16, "{failed}");
    until("the same in the audit log", async || {
        let lines = audited(&scene, "Bootstrap");
        (
            lines.iter().any(|line| line["operation"] == id.as_str()),
            lines,
        )
    })
    .await;
    let decided = scene.call(&["get", "actions", &id, "-o", "wide"]).done();
    for said in ["blob_error", NO_BLOB] {
        assert!(decided.contains(said), "{said}: {decided}");
    }
}
