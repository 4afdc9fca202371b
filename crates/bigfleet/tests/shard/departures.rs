//! What leaves a shard that is paused or fenced while calls wait to be written: nothing (SH-16, FE-4).
//!
//! ```text
//! shard ─ Configure ×8 ─▶ [one stream] ─▶ ledger, which keeps the first one waiting ─▶ provider
//!            the other seven wait for the stream; the shard is paused; the stream is free
//! ```

use crate::shard_scene::ledger::{CallKind, Ledgered};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::offerings;
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::{Dial, Limits};
use bigfleet_wire::v1alpha1 as wire;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use wire::capacity_provider_client::CapacityProviderClient;
use wire::pause_scope::{All, Scope};
use wire::shard_admin_client::ShardAdminClient;

const MACHINES: usize = 8;

/// Eight machines behind a ledger that takes one call at a time.
struct Narrow {
    provider: Process,
    ledger: Ledgered,
    shard: Process,
    admin: ShardAdminClient<Channel>,
    _folder: Folder,
}

fn channel(process: &Process) -> Channel {
    let addr = process.addr.to_string();
    Dial::unknown(None).channel(&addr).unwrap()
}

impl Narrow {
    async fn new(name: &str, flags: &[&str]) -> Self {
        let folder = Folder::new(name);
        let offered = offerings(&folder, &[("bare_metal", MACHINES)]);
        let provider = provider(&[&offered, "--latency=5ms"]);
        let one_at_a_time = Limits {
            most_streams: 1,
            ..Limits::PROVIDER
        };
        let ledger = Ledgered::start_within(provider.addr, one_at_a_time).await;
        let shard = shard(&folder.file("data"), ledger.addr, flags);
        let admin = ShardAdminClient::new(channel(&shard));
        Self {
            provider,
            ledger,
            shard,
            admin,
            _folder: folder,
        }
    }

    /// One Configure is at the provider, and the others wait for their turn.
    async fn all_wait(&self) -> Operator {
        let operator = Operator::connect(self.shard.addr, "a", Manner::Plain).await;
        self.ledger.ledger.hold();
        operator.needs(vec![cpus(MACHINES)]).await;
        until("calls that wait for a stream", async || {
            let state = (self.ledger.ledger.waiting(), self.on_wire());
            (state == (1, MACHINES as f64), state)
        })
        .await;
        operator
    }

    fn on_wire(&self) -> f64 {
        self.shard.metric("bigfleet_shard_execute_inflight")
    }

    /// What reached the provider, once no call is under way.
    async fn reached(&self) -> usize {
        until("the end of all calls", async || {
            (self.on_wire() == 0.0, self.on_wire())
        })
        .await;
        self.ledger.ledger.seen().len()
    }

    async fn pause(&mut self) {
        let request = wire::PauseRequest {
            scope: Some(wire::PauseScope {
                scope: Some(Scope::All(All {})),
            }),
            reason: "a test".to_owned(),
            expires_after_seconds: 600,
            dry_run: false,
        };
        self.admin.pause(request).await.unwrap();
    }

    async fn resume(&mut self) {
        let request = wire::ResumeRequest {
            reason: "a test".to_owned(),
            dry_run: false,
            target: Some(wire::resume_request::Target::Scope(wire::PauseScope {
                scope: Some(Scope::All(All {})),
            })),
        };
        self.admin.resume(request).await.unwrap();
    }
}

/// They keep what they were decided for: once the pause is lifted the same operations leave.
#[tokio::test]
async fn calls_that_wait_to_be_written_do_not_leave_a_paused_shard() {
    let mut scene = Narrow::new("departure-pause", &[]).await;
    let operator = scene.all_wait().await;
    scene.pause().await;
    scene.ledger.ledger.let_go();
    assert_eq!(scene.reached().await, 1, "the one that was there already");
    let rolled_back = scene.shard.metric("bigfleet_shard_rollbacks_total");
    assert_eq!(rolled_back, 0.0, "nothing was taken back");
    scene.resume().await;
    operator.has(MACHINES).await;
    assert_eq!(
        scene.ledger.ledger.operations(CallKind::Configure).len(),
        MACHINES
    );
    let opened = scene.ledger.ledger.opened();
    assert_eq!(opened, MACHINES, "no headers left without their message");
    scene.ledger.ledger.check();
}

/// The failing arm: what was let go before the pause leaves after it.
#[tokio::test]
async fn calls_that_are_not_withdrawn_leave_a_paused_shard() {
    let trouble = ["--trouble=calls-not-withdrawn"];
    let mut scene = Narrow::new("departure-late", &trouble).await;
    let _operator = scene.all_wait().await;
    scene.pause().await;
    scene.ledger.ledger.let_go();
    assert_eq!(scene.reached().await, MACHINES);
}

/// The failing arm of waiting outside of the HTTP/2 client: what that has queued it opens, if only to reset it.
#[tokio::test]
async fn headers_that_wait_in_the_http2_client_leave_a_paused_shard() {
    let trouble = ["--trouble=calls-queued-by-http2"];
    let mut scene = Narrow::new("departure-headers", &trouble).await;
    let operator = scene.all_wait().await;
    scene.pause().await;
    scene.ledger.ledger.let_go();
    assert_eq!(scene.reached().await, 1, "no message");
    scene.resume().await;
    operator.has(MACHINES).await;
    let opened = scene.ledger.ledger.opened();
    assert!(MACHINES < opened, "{opened} streams");
}

/// The first call is refused by a fence: those behind it stay where they are. Its answer frees the stream, so the
/// next may be written while the answer is on its way to the core, but not all of them.
#[tokio::test]
async fn calls_that_wait_to_be_written_do_not_leave_a_fenced_shard() {
    let scene = Narrow::new("departure-fence", &[]).await;
    let _operator = scene.all_wait().await;
    let mut newer = CapacityProviderClient::new(channel(&scene.provider));
    let machines = scene.ledger.ledger.machines().await;
    for machine in &machines[&wire::MachineState::Idle] {
        let request = wire::ConfigureRequest {
            machine_id: machine.id.clone(),
            cluster_id: "a".to_owned(),
            bootstrap_blob: b"x".to_vec(),
            shard_id: "s1".to_owned(),
            shard_epoch: 7,
            sequence_number: 1,
            ..wire::ConfigureRequest::default()
        };
        newer.configure(request).await.unwrap();
    }
    let refused = Instant::now();
    scene.ledger.ledger.let_go();
    let reached = scene.reached().await;
    assert!(reached <= MACHINES / 2, "{reached} of {MACHINES}");
    for seen in scene.ledger.ledger.seen() {
        assert_eq!(seen.answer, Err(tonic::Code::FailedPrecondition));
        assert!(seen.at < refused + Duration::from_secs(1), "{seen:?}");
    }
}
