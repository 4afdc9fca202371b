//! A restart: how long until a shard that remembers a whole fleet is ready again.
//!
//! ```text
//! provider: all machines bound ─▶ data directory: a record of each ─▶ bigfleet shard ─▶ /readyz
//!                                                                     └──── measured ────┘
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bigfleet_model::{Assignment, ClusterId, MachineId, Terms};
use bigfleet_shard_core::{Kept, OperationId, Record};
use bigfleet_wire::Rollup;
use bigfleet_wire::v1alpha1 as wire;
use tokio::task::JoinSet;

use super::ShardSettings;
use super::demand::{cluster, whole_fleet, whole_machines};
use super::meter::Meter;
use super::provider_client::{Client, client, list, refused};
use super::report::{NotMeasured, RestartReport};
use super::scene::{FAST_LISTS, Folder, SHARD};
use crate::Progress;
use crate::memory::resident_mb;
use crate::percentiles::rounded;

/// Machines of one cluster.
const PER_CLUSTER: usize = 1_000;
/// Machines asked for per page.
const PAGE: i32 = 5_000;
/// Calls at once.
const CALLS: usize = 128;

/// Whose a machine is: its cluster, and the Need of it.
type Commitment = (ClusterId, Arc<Assignment>);

pub(crate) async fn run(
    settings: &ShardSettings,
    progress: Progress<'_>,
) -> Result<RestartReport, NotMeasured> {
    let machines = settings.records;
    let folder = Folder::new(&settings.folder, "restart")?;
    let provider = folder.provider(&settings.program, machines).await?;
    let client = client(&provider)?;
    let ids = list(&client, PAGE, |_| true).await?;
    let commitments = commitments(machines)?;
    let each = || ids.iter().zip(&commitments);
    bind(&client, each(), |so_far| {
        progress("binding", so_far, machines);
    })
    .await?;
    loop {
        let is_bound = |machine: &wire::Machine| machine.state() == wire::MachineState::Configured;
        let bound = list(&client, PAGE, is_bound).await?.len();
        progress("settling", bound, machines);
        if bound == machines {
            break;
        }
    }
    progress("remembering", 0, machines);
    let numbered = (1..).map(operation).zip(each());
    let records = numbered.map(|(bound_by, (id, one))| remembered(id, one, bound_by));
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    write(&folder.data(), &records)?;
    drop((records, commitments, ids));

    progress("restarting", 0, 1);
    let shard = folder.shard(&settings.program, &provider, &FAST_LISTS);
    let mut shard = shard.await?;
    let meter = Meter::start(shard.pid());
    let ready = shard.ready().await?;
    let cost = meter.read();
    Ok(RestartReport {
        machines,
        records: machines,
        known: shard.metric("bigfleet_shard_inventory_machines")? as usize,
        ready_seconds: rounded(ready.as_secs_f64()),
        listening_seconds: rounded(shard.up_after.as_secs_f64()),
        list_ms: shard.timings().list_ms.max,
        shard: cost,
        provider_rss_mb: resident_mb(provider.pid()),
    })
}

/// What so many machines are committed to, in the order of the demand of a walk.
fn commitments(machines: usize) -> Result<Vec<Commitment>, NotMeasured> {
    let clusters = machines.div_ceil(PER_CLUSTER);
    let mut commitments = Vec::with_capacity(machines);
    for number in 0..clusters {
        let wrong = |why: &dyn std::fmt::Display| NotMeasured::Wrong(why.to_string());
        let name = ClusterId::new(&cluster(number)).map_err(|why| wrong(&why))?;
        let demand = whole_fleet(number, clusters, machines);
        let wanted: Vec<usize> = demand.needs.iter().map(whole_machines).collect();
        let demand = Rollup::read(demand, &name).map_err(|why| wrong(&why))?;
        for (row, machines) in demand.rows.iter().zip(wanted) {
            let assignment = Arc::new(Assignment {
                terms: Terms::of(&row.profile),
                fingerprint: row.profile.fingerprint().clone(),
                ..Assignment::default()
            });
            let one = (name.clone(), assignment);
            commitments.extend(std::iter::repeat_n(one, machines));
        }
    }
    Ok(commitments)
}

/// The operation by which the n-th machine was bound.
fn operation(number: u64) -> OperationId {
    OperationId { epoch: 1, number }
}

/// What a shard's Configure leaves with the provider: the assignment, whose it is, and by which operation,
/// so that no two machines have the same.
fn noted(assignment: &Assignment, operation: OperationId) -> BTreeMap<String, String> {
    let mut metadata = assignment.to_metadata();
    let key = |name: &str| format!("bigfleet.lucy.sh/{name}");
    metadata.insert(key("assigned-shard"), SHARD.to_owned());
    metadata.insert(key("assigned-intent"), operation.to_string());
    metadata
}

async fn bind(
    client: &Client,
    each: impl Iterator<Item = (&String, &Commitment)>,
    mut progress: impl FnMut(usize),
) -> Result<(), NotMeasured> {
    let mut calls = JoinSet::new();
    for (sequence, (id, (cluster, assignment))) in (1..).zip(each) {
        if CALLS <= calls.len() {
            ended(calls.join_next().await)?;
        }
        if sequence % 10_000 == 0 {
            progress(sequence as usize);
        }
        let request = wire::ConfigureRequest {
            machine_id: id.clone(),
            cluster_id: cluster.to_string(),
            bootstrap_blob: b"join".to_vec(),
            shard_id: SHARD.to_owned(),
            shard_epoch: 1,
            sequence_number: sequence,
            shard_metadata: noted(assignment, operation(sequence as u64)),
        };
        let mut client = client.clone();
        calls.spawn(async move { client.configure(request).await.map(drop) });
    }
    while let Some(done) = calls.join_next().await {
        ended(Some(done))?;
    }
    Ok(())
}

fn ended(
    call: Option<Result<Result<(), tonic::Status>, tokio::task::JoinError>>,
) -> Result<(), NotMeasured> {
    match call {
        None | Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(status))) => Err(refused(status)),
        Some(Err(why)) => Err(NotMeasured::Wrong(why.to_string())),
    }
}

fn remembered(
    id: &str,
    (cluster, assignment): &Commitment,
    bound_by: OperationId,
) -> Result<Record, NotMeasured> {
    let machine = MachineId::new(id).map_err(|why| NotMeasured::Wrong(why.to_string()))?;
    let kept = Kept {
        cluster: Some(cluster.clone()),
        bound_by: Some(bound_by),
        assignment: (**assignment).clone(),
        intent: None,
        not_ready: false,
        undeletable: false,
        given_up: None,
        spent: None,
        operation: None,
    };
    let kept = Some(Box::new(kept));
    Ok(Record::Machine { machine, kept })
}

fn write(data: &Path, records: &[Record]) -> Result<(), NotMeasured> {
    let written = bigfleet_shard::remember(data, records);
    written.map_err(|why| NotMeasured::Wrong(why.to_string()))
}
