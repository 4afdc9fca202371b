//! Work that panics: it is said and counted, whoever waits for it gets an answer, and the shard goes on.
//!
//! With the guard off, what waits for such work waits for ever: each of these has an arm that shows it.

use crate::shard_scene::ledger::CallKind;
use crate::shard_scene::operator::{Heard, Manner, cpus};
use crate::shard_scene::scene::Scene;
use crate::shard_scene::until;
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::Code;
use wire::MachineState::{Configured, Idle, Speculative};
use wire::shard_read_client::ShardReadClient;

/// A slot to be bought and a machine that is there, and a shard with this trouble.
async fn troubled(name: &str, metal: usize, slots: usize, trouble: &[&str]) -> Scene {
    let flags: Vec<String> = trouble
        .iter()
        .map(|what| format!("--trouble={what}"))
        .collect();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    // A hold is over, and an answer asked for again, in no time.
    flags.extend(["--trouble=clock-speed=200", "--cycle-interval=40s"]);
    Scene::with(name, metal, slots, &serde_json::json!({}), &flags).await
}

/// Waits until so many panics of a task are counted.
async fn panics(scene: &Scene, task: &str, count: f64) {
    let name = format!("bigfleet_shard_panics_total{{task=\"{task}\"}}");
    scene.shard.shows(&name, count).await;
}

async fn nothing_is_open(scene: &Scene) {
    let open = "bigfleet_shard_operations_in_flight";
    scene.shard.shows(open, 0.0).await;
}

/// Before a call leaves nothing was done, after its answer everything was; in both cases nobody heard.
/// One machine is bought, bound, drained and given back through all eight, and the Get that looks.
#[tokio::test]
async fn a_call_that_panics_is_looked_up_and_nothing_is_done_twice() {
    let calls = ["create", "configure", "drain", "delete"];
    let moments = calls.map(|call| {
        [
            format!("panic-at={call}-leaves"),
            format!("panic-at={call}-answered"),
        ]
    });
    let mut trouble: Vec<&str> = moments.as_flattened().iter().map(String::as_str).collect();
    trouble.push("panic-in=get");
    let mut scene = troubled("panics", 0, 1, &trouble).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    a.needs(Vec::new()).await;
    until("a slot again", async || {
        let seen = scene.count([Speculative, Idle, Configured]).await;
        let deleted = scene.operations(CallKind::Delete);
        (seen == [1, 0, 0] && deleted == 1, (seen, deleted))
    })
    .await;
    nothing_is_open(&scene).await;
    let done = [
        CallKind::Create,
        CallKind::Configure,
        CallKind::Drain,
        CallKind::Delete,
    ];
    assert_eq!(done.map(|kind| scene.operations(kind)), [1, 1, 1, 1]);
    scene.ledger.ledger.check();
    panics(&scene, "call", 8.0).await;
    panics(&scene, "get", 1.0).await;
    let said = scene
        .shard
        .logged("a task panicked: the shard goes on without its answer");
    assert_eq!(
        (&said["level"], &said["fields"]["task"]),
        (&"ERROR".into(), &"call".into())
    );
    assert_eq!(said["span"]["shard_id"], "s1", "{said}");
}

/// The failing arm: the answer is lost with its task, and the machine is on its way for ever.
#[tokio::test]
async fn a_call_whose_panic_nobody_hears_stays_open() {
    let trouble = ["panic-at=configure-answered", "panics-unheard"];
    let scene = troubled("unheard", 1, 0, &trouble).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(1)]).await;
    until("it is bound at the provider", async || {
        let seen = scene.count([Configured]).await;
        (seen == [1], seen)
    })
    .await;
    scene.cycles(20).await;
    let open = scene.shard.metric("bigfleet_shard_operations_in_flight");
    assert_eq!(open, 1.0, "the guard no longer makes a difference");
}

#[tokio::test]
async fn a_list_that_panics_is_one_that_failed() {
    let scene = troubled("list", 1, 0, &["panic-in=list"]).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    panics(&scene, "list", 1.0).await;
    scene
        .shard
        .shows("bigfleet_shard_lists_failed_total", 1.0)
        .await;
}

#[tokio::test]
async fn a_session_that_panics_ends_and_its_operator_connects_again() {
    let scene = troubled("session", 1, 0, &["panic-in=session"]).await;
    let a = scene.operator("a", Manner::Reports).await;
    let over = a
        .sees("its end", |heard: &Heard| heard.ended.is_some())
        .await;
    let (code, text) = over.ended.unwrap().unwrap_err();
    assert_eq!(code, Code::Internal, "{text}");
    let again = scene.operator("a", Manner::Reports).await;
    again.needs(vec![cpus(1)]).await;
    again.has(1).await;
    panics(&scene, "session", 1.0).await;
    // The first is not counted any more, and the second is.
    scene
        .shard
        .shows("bigfleet_shard_active_sessions", 1.0)
        .await;
}

/// What a session answered to its roll-ups so far.
fn answers(heard: &Heard) -> Vec<String> {
    let echoes = heard.acks.iter().map(|ack| ack.echo.clone());
    echoes.filter(|echo| echo.starts_with("rollup")).collect()
}

#[tokio::test]
async fn a_roll_up_that_panics_is_rejected_and_the_next_is_taken() {
    let scene = troubled("rollup", 2, 0, &["panic-in=roll-up"]).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(2)]).await;
    a.sees("a rejection", |heard| answers(heard) == ["rollup-rejected"])
        .await;
    a.needs(vec![cpus(1)]).await;
    a.has(1).await;
    panics(&scene, "roll-up", 1.0).await;
}

/// The failing arm: its lane is at work for ever, and no demand of that operator is heard any more.
#[tokio::test]
async fn a_roll_up_whose_panic_nobody_hears_stops_its_lane() {
    let scene = troubled("lane", 1, 0, &["panic-in=roll-up", "panics-unheard"]).await;
    let a = scene.operator("a", Manner::Reports).await;
    a.needs(vec![cpus(1)]).await;
    a.needs(vec![cpus(1)]).await;
    scene.cycles(20).await;
    assert_eq!(answers(&a.heard()), Vec::<String>::new());
    assert_eq!(scene.count([Configured]).await, [0]);
}

async fn needs_read(scene: &Scene) -> Result<usize, tonic::Status> {
    let channel = Dial::unknown(None).channel(&scene.shard.addr.to_string());
    let mut client = ShardReadClient::new(channel.unwrap());
    let asked = wire::InspectNeedsRequest::default();
    let mut frames = client.inspect_needs(asked).await?.into_inner();
    let mut count = 0;
    while frames.message().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[tokio::test]
async fn an_answer_that_panics_does_not_look_whole() {
    let scene = troubled("read", 1, 0, &["panic-in=read"]).await;
    let refused = needs_read(&scene).await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal, "{refused}");
    assert_eq!(needs_read(&scene).await.unwrap(), 1, "the header");
    panics(&scene, "read", 1.0).await;

    let scene = troubled("cut", 1, 0, &["panic-in=read", "panics-unheard"]).await;
    let cut = needs_read(&scene).await;
    assert_eq!(cut.unwrap(), 0, "nothing, as if that were all");
}
