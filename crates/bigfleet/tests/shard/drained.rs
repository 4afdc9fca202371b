//! Machines that leave a running shard: a rack with a gang on it, killed on the way, and a spot machine that is
//! given two minutes (SH-20).
//!
//! The ledger in front of the provider is what judges: after each call it saw, what serves is added up.

use crate::shard_scene::ledger::{CallKind, Ledger, Ledgered, Seen};
use crate::shard_scene::operator::{Manner, Operator};
use crate::shard_scene::scene::knobs;
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::Dial;
use bigfleet_seeded::Prng;
use bigfleet_wire::v1alpha1 as wire;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tonic::Code;
use tonic::transport::Channel;
use wire::shard_admin_client::ShardAdminClient;
use wire::shard_read_client::ShardReadClient;

const RACK: &str = "rack";
const GANG: usize = 8;
const PLAIN: usize = 2;

/// The flag that offers these racks of machines of four cpus.
fn racks(folder: &Folder, racks: &[(&str, &str, usize)]) -> String {
    let entry = |(rack, tier, count): &(&str, &str, usize)| {
        serde_json::json!({
            // The type tells the racks' ids apart.
            "instance_type": format!("m4-{rack}"), "zone": "zone-a", "capacity_type": tier,
            "count": count, "resources": { "cpu": "4" }, "allocatable": { "cpu": "4" },
            "price_per_hour": if *tier == "spot" { 0.1 } else { 0.5 }, "labels": { RACK: rack },
        })
    };
    let all: Vec<_> = racks.iter().map(entry).collect();
    let path = folder.file("offerings.json");
    std::fs::write(&path, serde_json::Value::from(all).to_string()).unwrap();
    format!("--offerings={}", path.display())
}

/// A gang of eight machines in one rack, and two machines anywhere.
fn rows() -> Vec<wire::CapacityNeed> {
    let amount = |cpu: usize| BTreeMap::from([("cpu".to_owned(), cpu.to_string())]);
    let same = wire::NodeSelectorRequirement {
        key: RACK.to_owned(),
        operator: wire::node_selector_requirement::Operator::Same.into(),
        values: Vec::new(),
    };
    let gang = wire::CapacityNeed {
        aggregate_resources: amount(4 * GANG),
        min_unit: amount(4),
        priority: 1000,
        requirements: vec![same],
        group: "train".to_owned(),
        ..wire::CapacityNeed::default()
    };
    let plain = wire::CapacityNeed {
        aggregate_resources: amount(4 * PLAIN),
        min_unit: amount(4),
        priority: 100,
        ..wire::CapacityNeed::default()
    };
    vec![gang, plain]
}

fn channel(shard: &Process) -> Channel {
    Dial::unknown(None)
        .channel(&shard.addr.to_string())
        .unwrap()
}

async fn drain_rack(shard: &Process, dry_run: bool) -> wire::DrainMachinesResponse {
    let request = wire::DrainMachinesRequest {
        label_selector: format!("{RACK}=r1"),
        reason: "new switches".to_owned(),
        dry_run,
        accept_many: true,
        ..wire::DrainMachinesRequest::default()
    };
    let mut admin = ShardAdminClient::new(channel(shard));
    let answered = admin.drain_machines(request).await;
    answered.unwrap().into_inner()
}

/// Machines that are to leave, by id, and how far each is.
async fn leaving(shard: &Process) -> BTreeMap<String, wire::MachineLeaving> {
    use wire::inspect_machines_response::Frame;
    let request = wire::InspectMachinesRequest {
        leaving_only: true,
        ..wire::InspectMachinesRequest::default()
    };
    let mut reader = ShardReadClient::new(channel(shard));
    let Ok(stream) = reader.inspect_machines(request).await else {
        return BTreeMap::new();
    };
    let mut stream = stream.into_inner();
    let mut found = BTreeMap::new();
    while let Ok(Some(frame)) = stream.message().await {
        if let Some(Frame::Machine(view)) = frame.frame {
            found.insert(view.machine.unwrap().id, view.leaving.unwrap());
        }
    }
    found
}

async fn all_out(shard: &Process, machines: usize) {
    until("every machine of the rack is out", async || {
        let leaving = leaving(shard).await;
        let is_out = |one: &wire::MachineLeaving| one.phase() == wire::LeavingPhase::Out;
        let out = leaving.values().filter(|one| is_out(one)).count();
        ((out, leaving.len()) == (machines, machines), leaving)
    })
    .await;
}

/// An independent look at what the provider saw: from when everything serves, no Drain leaves less than is asked
/// for.
fn never_below(seen: &[Seen], asked: usize) {
    let (mut serving, mut has_all) = (BTreeSet::new(), false);
    for one in seen.iter().filter(|one| one.answer.is_ok()) {
        match one.kind {
            CallKind::Configure => drop(serving.insert(one.machine.clone())),
            CallKind::Drain => drop(serving.remove(&one.machine)),
            CallKind::Create | CallKind::Delete => {}
        }
        has_all |= asked <= serving.len();
        assert!(
            !has_all || asked <= serving.len(),
            "{} serve after {one:?}",
            serving.len()
        );
    }
    assert!(has_all);
}

/// Asks the provider itself, over and over, how many machines serve, and remembers the fewest.
struct Serving {
    fewest: watch::Receiver<usize>,
    asking: tokio::task::JoinHandle<()>,
}

impl Serving {
    fn watch(ledger: &Ledger) -> Self {
        let (told, fewest) = watch::channel(usize::MAX);
        let ledger = ledger.clone();
        let asking = tokio::spawn(async move {
            loop {
                let machines = ledger.machines().await;
                let serving = machines.get(&wire::MachineState::Configured);
                let serving = serving.map_or(0, Vec::len);
                told.send_modify(|fewest| *fewest = serving.min(*fewest));
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        Self { fewest, asking }
    }

    /// What serves was never below what is asked for.
    fn check(self, asked: usize) {
        self.asking.abort();
        let fewest = *self.fewest.borrow();
        assert!(
            asked <= fewest && fewest < usize::MAX,
            "{fewest} of {asked}"
        );
    }
}

struct Rack {
    data: PathBuf,
    ledger: Ledgered,
    _cloud: Process,
    _folder: Folder,
}

impl Rack {
    async fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let offered = [("r1", "bare_metal", 10), ("r2", "on_demand", 10)];
        let cloud = provider(&[&racks(&folder, &offered), "--latency=1ms..500ms"]);
        Self {
            data: folder.file("data"),
            ledger: Ledgered::start(cloud.addr).await,
            _cloud: cloud,
            _folder: folder,
        }
    }

    async fn begin(&self) -> (Process, Operator) {
        let process = shard(&self.data, self.ledger.addr, &[]);
        let a = Operator::connect(process.addr, "a", Manner::Reports).await;
        a.needs(rows()).await;
        (process, a)
    }

    fn machines(&self, kind: CallKind) -> BTreeSet<String> {
        let seen = self.ledger.ledger.seen().into_iter();
        let of_kind = seen.filter(|one| one.kind == kind && one.answer.is_ok());
        of_kind.map(|one| one.machine).collect()
    }

    /// Ten machines of r1 were drained, ten of r2 bought in their place, and each once.
    fn check(&self) {
        let ledger = &self.ledger.ledger;
        ledger.check();
        let (bought, drained) = (
            self.machines(CallKind::Create),
            self.machines(CallKind::Drain),
        );
        assert_eq!((bought.len(), drained.len()), (10, 10));
        assert!(bought.iter().all(|id| id.contains("r2")), "{bought:?}");
        assert!(drained.iter().all(|id| id.contains("r1")), "{drained:?}");
        let count = |kind| ledger.operations(kind).len();
        assert_eq!((count(CallKind::Create), count(CallKind::Drain)), (10, 10));
        never_below(&ledger.seen(), GANG + PLAIN);
    }
}

/// Ten bought, ten drained, and what serves is never below what is asked for: the dry run had said so.
#[tokio::test]
async fn a_rack_with_a_gang_is_served_elsewhere_before_it_leaves() {
    let rack = Rack::new("drained-rack").await;
    let (shard, a) = rack.begin().await;
    a.has(GANG + PLAIN).await;
    let planned = drain_rack(&shard, true).await;
    assert_eq!(planned.machines.len(), 10, "{planned:?}");
    assert_eq!(planned.moved_groups, ["a/train"]);
    let is_replaced = |row: &wire::MachineDrain| !row.replacement_ids.is_empty();
    assert!(planned.machines.iter().all(is_replaced), "{planned:?}");
    assert!(leaving(&shard).await.is_empty(), "a dry run marks nothing");
    let serving = Serving::watch(&rack.ledger.ledger);
    let done = drain_rack(&shard, false).await;
    assert_eq!((done.machines.len(), done.moved_groups.len()), (10, 0));
    all_out(&shard, 10).await;
    a.has(GANG + PLAIN).await;
    serving.check(GANG + PLAIN);
    rack.check();
    // Brought back, they are supply again, and nobody moves for it.
    let request = wire::UndrainMachinesRequest {
        label_selector: format!("{RACK}=r1"),
        reason: "serviced".to_owned(),
        ..wire::UndrainMachinesRequest::default()
    };
    let mut admin = ShardAdminClient::new(channel(&shard));
    let back = admin.undrain_machines(request).await.unwrap().into_inner();
    assert_eq!(back.machines.len(), 10);
    assert!(leaving(&shard).await.is_empty());
}

/// A rack that leaves, and up to so many kills on the way, each after a few calls were made or answered. Returns how
/// many there were until it was out.
async fn killed_on_the_way(name: &str, most: usize, draws: &mut Prng) -> usize {
    let rack = Rack::new(name).await;
    let (mut shard, mut a) = rack.begin().await;
    a.has(GANG + PLAIN).await;
    let serving = Serving::watch(&rack.ledger.ledger);
    let done = drain_rack(&shard, false).await;
    assert_eq!(done.machines.len(), 10);
    let mut kills = 0;
    while kills < most {
        let moments = draws.below(6);
        tokio::select! {
            () = rack.ledger.ledger.moments(moments) => {}
            () = all_out(&shard, 10) => break,
        }
        shard.kill();
        kills += 1;
        (shard, a) = rack.begin().await;
    }
    all_out(&shard, 10).await;
    a.has(GANG + PLAIN).await;
    serving.check(GANG + PLAIN);
    rack.check();
    kills
}

/// The mark is kept, nothing is bought or drained twice, and capacity stays, however often the shard dies.
#[tokio::test]
async fn a_drain_that_is_killed_twenty_times_on_the_way_ends_as_it_began() {
    let (mut kills, mut draws) = (0, Prng::new(7));
    while kills < 20 {
        let name = format!("drained-kills-{kills}");
        kills += killed_on_the_way(&name, 20 - kills, &mut draws).await;
    }
}

/// The cycles in which actions of a kind were decided.
async fn decided(shard: &Process, kind: wire::ActionKind) -> BTreeSet<i64> {
    use wire::inspect_actions_response::Frame;
    let request = wire::InspectActionsRequest {
        kinds: vec![kind.into()],
        ..wire::InspectActionsRequest::default()
    };
    let mut reader = ShardReadClient::new(channel(shard));
    let stream = reader.inspect_actions(request).await;
    let mut stream = stream.unwrap().into_inner();
    let mut cycles = BTreeSet::new();
    while let Some(frame) = stream.message().await.unwrap() {
        if let Some(Frame::Action(action)) = frame.frame {
            cycles.insert(action.decided_cycle);
        }
    }
    cycles
}

/// A spot machine is given two minutes: its Drain is sent within five seconds of the notice, and its replacement
/// is bought in the same cycle.
#[tokio::test]
async fn a_spot_notice_drains_within_seconds_and_buys_at_once() {
    let folder = Folder::new("spot-notice");
    let offered = [("r1", "spot", 1), ("r2", "on_demand", 4)];
    let path = racks(&folder, &offered);
    // Whatever serves this cluster is announced to be taken away as soon as it does.
    let lead = Duration::from_secs(120);
    let mood = serde_json::json!({ "interruption_notice": format!("{}s", lead.as_secs()) });
    let cloud = provider(&[&path, &knobs(&folder, &mood), "--fault-hooks"]);
    let ledger = Ledgered::start(cloud.addr).await;
    let shard = shard(&folder.file("data"), ledger.addr, &[]);
    let a = Operator::connect(shard.addr, "fault-notice-600000", Manner::Reports).await;
    let mut one = rows().remove(1);
    one.aggregate_resources = one.min_unit.clone();
    a.needs(vec![one]).await;
    let is_out = |one: &wire::MachineLeaving| {
        one.source == "provider" && one.phase() == wire::LeavingPhase::Out
    };
    let leaving = until("the notice is heard and the machine out", async || {
        let leaving = leaving(&shard).await;
        (leaving.values().any(is_out), leaving)
    })
    .await;
    let (machine, notice) = leaving.iter().find(|(_, one)| is_out(one)).unwrap();
    let seen = ledger.ledger.seen();
    let is_drain = |one: &&Seen| one.kind == CallKind::Drain && one.machine == *machine;
    let drained_at = SystemTime::now() - seen.iter().find(is_drain).unwrap().at.elapsed();
    // The provider said when it takes the machine away; it gave notice the lead before.
    let gone_after = Duration::from_nanos(notice.deadline_unix_nanos.try_into().unwrap());
    let noticed_at = UNIX_EPOCH + gone_after - lead;
    let waited = drained_at.duration_since(noticed_at).unwrap();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let bought = |one: &&Seen| one.kind == CallKind::Create && one.machine != *machine;
    let bought = seen.iter().find(bought).unwrap();
    assert!(bought.machine.contains("r2"), "{bought:?}");
    let [bought, reclaimed] = [wire::ActionKind::Provision, wire::ActionKind::Reclaim];
    let (bought, reclaimed) = (
        decided(&shard, bought).await,
        decided(&shard, reclaimed).await,
    );
    let first = reclaimed.first().unwrap();
    assert!(bought.contains(first), "{bought:?}, {reclaimed:?}");
}

/// What cannot be meant is refused as a whole, and says what to do.
#[tokio::test]
async fn a_drain_that_cannot_be_meant_changes_nothing() {
    let rack = Rack::new("drain-refused").await;
    let (shard, a) = rack.begin().await;
    a.has(GANG + PLAIN).await;
    let mut admin = ShardAdminClient::new(channel(&shard));
    let known = rack
        .machines(CallKind::Configure)
        .into_iter()
        .next()
        .unwrap();
    let known = known.as_str();
    let request = |ids: &[&str], selector: &str, reason: &str| wire::DrainMachinesRequest {
        machine_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        label_selector: selector.to_owned(),
        reason: reason.to_owned(),
        ..wire::DrainMachinesRequest::default()
    };
    for (request, code, text) in [
        (
            request(&[known, "nobody"], "", "why"),
            Code::NotFound,
            "nobody",
        ),
        (
            request(&[], "rack=r9", "why"),
            Code::NotFound,
            "no machine of 20",
        ),
        (
            request(&[], "rack=r1", "why"),
            Code::FailedPrecondition,
            "10 of 20",
        ),
        (
            request(&[], "rack", "why"),
            Code::InvalidArgument,
            "KEY=VALUE",
        ),
        (request(&[known], "", ""), Code::InvalidArgument, "reason"),
        (request(&[], "", "why"), Code::InvalidArgument, "neither"),
        (
            request(&[known], "rack=r1", "why"),
            Code::InvalidArgument,
            "both",
        ),
    ] {
        let refused = admin.drain_machines(request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.message().contains(text), "{refused}");
    }
    assert!(leaving(&shard).await.is_empty());
    let undrain = wire::UndrainMachinesRequest {
        machine_ids: vec![known.to_owned()],
        reason: "why".to_owned(),
        ..wire::UndrainMachinesRequest::default()
    };
    let refused = admin.undrain_machines(undrain).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}
