//! A process that ends at a named moment, for every cell of the table of restarts (SH-6).
//!
//! ```text
//! journalled    the provider shows    source      transitional   target    anything else
//! Create                              sent again  waited for     bound     intent ends
//! Configure                           sent again  waited for     done      conflict
//! Drain                               told again  waited for     done      never drained
//! Delete                              sent again  waited for     done      never deleted
//! ```
//!
//! Before a call leaves there is nothing but the journal; after its answer there is what the provider made
//! of it. The next process must come to the same end as if there had been one, by the ledger of what the
//! provider saw. A store that says it has written and has not must be caught by the same ledger.

use crate::shard_scene::ledger::{CallKind, Ledgered};
use crate::shard_scene::operator::{Manner, Operator, cpus};
use crate::shard_scene::scene::{knobs, offerings};
use crate::shard_scene::{Folder, Process, provider, shard, until};
use bigfleet_net::Dial;
use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use wire::MachineState::{self, Configured, Idle, Speculative};
use wire::capacity_provider_client::CapacityProviderClient;

/// What the provider shows to the next process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Source,
    Transitional,
    Target,
    Else,
}

/// Operations of the shard, as the provider counts them: Create, Configure, Drain, Delete.
type Counts = [usize; 4];

struct Cell {
    _folder: Folder,
    provider: Process,
    ledger: Ledgered,
    data: std::path::PathBuf,
}

impl Cell {
    /// So many machines of a tier, and a cloud in which one kind of operation takes this long.
    async fn new(name: &str, tier: &str, count: usize, slow: &str, latency: &str) -> Self {
        let folder = Folder::new(name);
        let mut times = serde_json::json!({
            "create": "10ms", "configure": "10ms", "drain": "10ms", "delete": "10ms",
        });
        times[slow] = latency.into();
        let turned = knobs(&folder, &serde_json::json!({ "latency": times }));
        let provider = provider(&[&offerings(&folder, &[(tier, count)]), &turned]);
        let ledger = Ledgered::start(provider.addr).await;
        let data = folder.file("data");
        Self {
            _folder: folder,
            provider,
            ledger,
            data,
        }
    }

    fn counts(&self) -> Counts {
        [
            CallKind::Create,
            CallKind::Configure,
            CallKind::Drain,
            CallKind::Delete,
        ]
        .map(|kind| self.ledger.ledger.operations(kind).len())
    }

    /// A process that ends at a named moment.
    fn doomed(&self, moment: &str, more: &[&str]) -> Process {
        let moment = format!("--trouble=abort-at={moment}");
        let flags = [&[moment.as_str()], more].concat();
        shard(&self.data, self.ledger.addr, &flags)
    }

    fn shard(&self) -> Process {
        shard(&self.data, self.ledger.addr, &[])
    }

    /// The one machine there is, once it is in a state.
    async fn until_it_is(&self, state: MachineState) {
        until(&format!("a machine in {state:?}"), async || {
            let machines = self.ledger.ledger.machines().await;
            (machines.contains_key(&state), machines)
        })
        .await;
    }

    /// Somebody else takes the machine for cluster `z`, past the shard.
    async fn taken_by_somebody(&self, from: MachineState) {
        let channel = Dial::provider(None).channel(&self.provider.addr.to_string());
        let mut client = CapacityProviderClient::new(channel.unwrap());
        let machines = self.ledger.ledger.machines().await;
        let id = machines[&from][0].id.clone();
        let mut sequence_number = 0;
        let mut next = || {
            sequence_number += 1;
            sequence_number
        };
        if from == Speculative {
            let create = wire::CreateRequest {
                machine_id: id.clone(),
                shard_id: "somebody".to_owned(),
                shard_epoch: 1,
                sequence_number: next(),
                ..Default::default()
            };
            client.create(create).await.unwrap();
            self.until_it_is(Idle).await;
        }
        if from == Configured {
            let drain = wire::DrainRequest {
                machine_id: id.clone(),
                shard_id: "somebody".to_owned(),
                shard_epoch: 1,
                sequence_number: next(),
                ..Default::default()
            };
            client.drain(drain).await.unwrap();
            self.until_it_is(Idle).await;
        }
        let sequence_number = next();
        self.configured_for_z(&mut client, id, sequence_number)
            .await;
    }

    async fn configured_for_z(
        &self,
        client: &mut CapacityProviderClient<Channel>,
        machine_id: String,
        sequence_number: i64,
    ) {
        let mark = ("bigfleet.lucy.sh/assigned-shard", "somebody");
        let configure = wire::ConfigureRequest {
            machine_id,
            cluster_id: "z".to_owned(),
            bootstrap_blob: b"join z".to_vec(),
            shard_id: "somebody".to_owned(),
            shard_epoch: 1,
            sequence_number,
            shard_metadata: [(mark.0.to_owned(), mark.1.to_owned())].into(),
        };
        client.configure(configure).await.unwrap();
        self.until_it_is(Configured).await;
    }

    /// The machine is still somebody else's, and the next process leaves it alone for ten cycles.
    async fn is_left_alone(&self, process: &Process, expected: Counts) {
        let cycle = || process.metric("bigfleet_shard_cycle");
        until("a first List", async || {
            let lists = process.metric("bigfleet_shard_lists_total");
            (2.0 <= lists, lists)
        })
        .await;
        let later = cycle() + 10.0;
        until("ten cycles", async || (later <= cycle(), cycle())).await;
        let held = self.ledger.ledger.machines().await;
        assert_eq!(held[&Configured][0].cluster, "z");
        assert_eq!(self.counts(), expected);
        self.ledger.ledger.check();
    }
}

/// The moment of the abort that leaves the provider showing this.
fn moment(call: &str, shows: Shows) -> String {
    match shows {
        Shows::Source | Shows::Else => format!("{call}-leaves"),
        Shows::Transitional | Shows::Target => format!("{call}-answered"),
    }
}

/// How long the call takes in a cloud that shows this.
fn latency(shows: Shows) -> &'static str {
    match shows {
        Shows::Transitional => "3s",
        Shows::Source | Shows::Target | Shows::Else => "10ms",
    }
}

async fn demanded(process: &Process, machines: usize) -> Operator {
    demanded_as(process, machines, Manner::Plain).await
}

async fn demanded_as(process: &Process, machines: usize, manner: Manner) -> Operator {
    let operator = Operator::connect(process.addr, "a", manner).await;
    let rows = (0 < machines).then(|| cpus(machines)).into_iter().collect();
    operator.needs(rows).await;
    operator
}

/// One machine is bought and bound, through an abort at the given moment.
async fn one_is_bought(name: &str, moment: &str, shows: Shows) {
    let cell = Cell::new(name, "on_demand", 4, "create", latency(shows)).await;
    let doomed = cell.doomed(moment, &[]);
    let operator = demanded(&doomed, 1).await;
    doomed.aborted().await;
    drop(operator);
    if shows == Shows::Target {
        cell.until_it_is(Idle).await;
    }
    let next = cell.shard();
    let a = demanded(&next, 1).await;
    a.has(1).await;
    // A second purchase may still be on its way when the first has arrived.
    until("nothing under way", async || {
        let open = next.metric("bigfleet_shard_operations_in_flight");
        (open == 0.0, open)
    })
    .await;
    cell.ledger.ledger.check();
    assert_eq!(
        cell.counts(),
        [1, 1, 0, 0],
        "{name}: one is bought, and bound"
    );
}

#[tokio::test]
async fn a_create_that_was_journalled() {
    for (name, shows) in [
        ("create-source", Shows::Source),
        ("create-transitional", Shows::Transitional),
        ("create-target", Shows::Target),
    ] {
        let moment = moment("create", shows);
        one_is_bought(name, &moment, shows).await;
    }
}

/// Before the commit nothing was decided; after it everything was, though nobody had heard.
#[tokio::test]
async fn a_commit_that_was_not_heard_of() {
    for moment in ["commit", "committed"] {
        one_is_bought(moment, moment, Shows::Source).await;
    }
}

#[tokio::test]
async fn a_create_of_a_machine_that_went_elsewhere() {
    let cell = Cell::new("create-else", "on_demand", 1, "create", "10ms").await;
    let doomed = cell.doomed(&moment("create", Shows::Else), &[]);
    let operator = demanded(&doomed, 1).await;
    doomed.aborted().await;
    drop(operator);
    cell.taken_by_somebody(Speculative).await;
    let next = cell.shard();
    let _a = demanded(&next, 1).await;
    cell.is_left_alone(&next, [0, 0, 0, 0]).await;
}

#[tokio::test]
async fn a_configure_that_was_journalled() {
    for (name, shows) in [
        ("configure-source", Shows::Source),
        ("configure-transitional", Shows::Transitional),
        ("configure-target", Shows::Target),
    ] {
        let cell = Cell::new(name, "bare_metal", 1, "configure", latency(shows)).await;
        let doomed = cell.doomed(&moment("configure", shows), &[]);
        let operator = demanded(&doomed, 1).await;
        doomed.aborted().await;
        drop(operator);
        if shows == Shows::Target {
            cell.until_it_is(Configured).await;
        }
        let next = cell.shard();
        let a = demanded(&next, 1).await;
        a.has(1).await;
        assert_eq!(cell.counts(), [0, 1, 0, 0], "{name}");
        let pulled = a.heard().blobs;
        assert_eq!(
            pulled,
            usize::from(shows == Shows::Source),
            "{name}: the blob, if it is sent again"
        );
        cell.ledger.ledger.check();
    }
}

#[tokio::test]
async fn a_configure_of_a_machine_that_went_elsewhere() {
    let cell = Cell::new("configure-else", "bare_metal", 1, "configure", "10ms").await;
    let doomed = cell.doomed(&moment("configure", Shows::Else), &[]);
    let operator = demanded(&doomed, 1).await;
    doomed.aborted().await;
    drop(operator);
    cell.taken_by_somebody(Idle).await;
    let next = cell.shard();
    let _a = demanded(&next, 1).await;
    cell.is_left_alone(&next, [0, 0, 0, 0]).await;
    assert!(
        1.0 <= next.metric("bigfleet_shard_conflicts_total"),
        "and it is said"
    );
}

/// A cluster that has one machine, and then wants none.
async fn drained_until(name: &str, shows: Shows, manner: Manner) -> (Cell, Operator) {
    let cell = Cell::new(name, "bare_metal", 1, "drain", latency(shows)).await;
    let first = cell.shard();
    let a = demanded(&first, 1).await;
    a.has(1).await;
    first.kill();
    let doomed = cell.doomed(&moment("drain", shows), &[]);
    let a = demanded_as(&doomed, 0, manner).await;
    doomed.aborted().await;
    (cell, a)
}

/// One that has not left is announced again, in the same words; one that has is only waited for.
#[tokio::test]
async fn a_drain_that_was_journalled() {
    for (name, shows, manner) in [
        ("drain-source", Shows::Source, Manner::Reports),
        ("drain-source-plain", Shows::Source, Manner::Plain),
        ("drain-transitional", Shows::Transitional, Manner::Plain),
        ("drain-target", Shows::Target, Manner::Plain),
    ] {
        let (cell, before) = drained_until(name, shows, manner).await;
        if shows == Shows::Target {
            cell.until_it_is(Idle).await;
        }
        let next = cell.shard();
        let a = demanded_as(&next, 0, manner).await;
        cell.until_it_is(Idle).await;
        until("the end of it", async || {
            let open = next.metric("bigfleet_shard_operations_in_flight");
            let cycle = next.metric("bigfleet_shard_cycle");
            (open == 0.0 && 5.0 < cycle, (open, cycle))
        })
        .await;
        assert_eq!(cell.counts(), [0, 1, 1, 0], "{name}");
        cell.ledger.ledger.check();
        let (told, again) = (before.heard().instructions, a.heard().instructions);
        let announced = usize::from(shows == Shows::Source);
        assert_eq!(again.len(), announced, "{name}: {again:?}");
        // One that was sent in the moment of the abort may not have arrived; one that was answered has.
        assert!(
            manner == Manner::Plain || told.len() == 1,
            "{name}: {told:?}"
        );
        for second in &again {
            let Some(first) = told.first() else { break };
            assert_eq!(first.instruction_id, second.instruction_id, "{name}");
            let (given, left) = (first.grace_period_seconds, second.grace_period_seconds);
            assert!(
                0 < left && left <= given,
                "{name}: {given} s, then {left} s"
            );
        }
    }
}

#[tokio::test]
async fn a_drain_of_a_machine_that_went_elsewhere() {
    let (cell, _before) = drained_until("drain-else", Shows::Else, Manner::Plain).await;
    cell.taken_by_somebody(Configured).await;
    let next = cell.shard();
    let _a = demanded(&next, 0).await;
    cell.is_left_alone(&next, [0, 1, 0, 0]).await;
}

/// A machine of spot that its cluster gave up, and a process whose clock runs: its hold is over at once.
async fn deleted_until(name: &str, shows: Shows, more: &[&str]) -> Cell {
    let cell = Cell::new(name, "spot", 1, "delete", latency(shows)).await;
    let first = cell.shard();
    let a = demanded(&first, 1).await;
    a.has(1).await;
    a.needs(Vec::new()).await;
    cell.until_it_is(Idle).await;
    until("the end of the drain", async || {
        let open = first.metric("bigfleet_shard_operations_in_flight");
        (open == 0.0, open)
    })
    .await;
    first.kill();
    let mut flags = vec!["--trouble=clock-speed=200", "--cycle-interval=40s"];
    flags.extend(more);
    let doomed = cell.doomed(&moment("delete", shows), &flags);
    doomed.aborted().await;
    cell
}

/// One machine is given back, through an abort; says what the ledger has against it.
async fn one_is_given_back(name: &str, shows: Shows, more: &[&str]) -> Result<(), String> {
    let cell = deleted_until(name, shows, more).await;
    if shows == Shows::Target {
        cell.until_it_is(Speculative).await;
    }
    let next = cell.shard();
    // What is remembered is taken up with the first List, not after another hold.
    until("fifteen cycles, and nothing under way", async || {
        let open = next.metric("bigfleet_shard_operations_in_flight");
        let cycle = next.metric("bigfleet_shard_cycle");
        (open == 0.0 && 15.0 <= cycle, (open, cycle))
    })
    .await;
    cell.ledger.ledger.check();
    let there = cell.ledger.ledger.machines().await;
    match (cell.counts(), there.contains_key(&Speculative)) {
        ([1, 1, 1, 1], true) => Ok(()),
        other => Err(format!(
            "{name}: {other:?}, not one of each and a slot again"
        )),
    }
}

#[tokio::test]
async fn a_delete_that_was_journalled() {
    for (name, shows) in [
        ("delete-source", Shows::Source),
        ("delete-transitional", Shows::Transitional),
        ("delete-target", Shows::Target),
    ] {
        one_is_given_back(name, shows, &[]).await.unwrap();
    }
}

/// The failing arm: what was decided is lost with the process, and the ledger says so.
#[tokio::test]
async fn a_store_that_does_not_write_is_found_out() {
    let forgets = &["--trouble=store-forgets"];
    let caught = one_is_given_back("forgets", Shows::Source, forgets).await;
    let caught = caught.expect_err("the ledger no longer shows the defect it guards against");
    assert!(caught.contains("[1, 1, 1, 0]"), "{caught}");
}

#[tokio::test]
async fn a_delete_of_a_machine_that_went_elsewhere() {
    let cell = deleted_until("delete-else", Shows::Else, &[]).await;
    cell.taken_by_somebody(Idle).await;
    let next = cell.shard();
    cell.is_left_alone(&next, [1, 1, 1, 0]).await;
}
