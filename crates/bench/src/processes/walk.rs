//! The walk: every machine of a fleet from Idle to Configured, as fast as the shard can.
//!
//! ```text
//! roll-ups ─▶ decided ─▶ on disk ─▶ a blob asked for ─▶ Configure ─▶ seen Configured ─▶ told
//! └──────────────────────────────── the time that is measured ───────────────────────────────┘
//! ```

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::ShardSettings;
use super::demand::{ROWS, whole_fleet};
use super::meter::Meter;
use super::operators::{BLOB_BYTES, Operators};
use super::process::Process;
use super::report::{NotMeasured, WalkReport};
use super::scene::Folder;
use crate::Progress;
use crate::percentiles::rounded;

/// Machines of one cluster.
const PER_CLUSTER: usize = 1_000;
/// How long the count may stand still before the walk is given up.
const STUCK_AFTER: Duration = Duration::from_secs(60);

pub(crate) async fn run(
    settings: &ShardSettings,
    differing: &[&str],
    progress: Progress<'_>,
) -> Result<WalkReport, NotMeasured> {
    let (machines, clusters) = (settings.machines, settings.machines.div_ceil(PER_CLUSTER));
    let folder = Folder::new(&settings.folder, "walk")?;
    let provider = folder.provider(&settings.program, machines).await?;
    let shard = folder.shard(&settings.program, &provider, differing);
    let mut shard = shard.await?;
    shard.ready().await?;
    let operators = Operators::connect(shard.addr, clusters, |_| ()).await?;
    let demand: Vec<_> = (0..clusters)
        .map(|number| whole_fleet(number, clusters, machines))
        .collect();
    let rows = demand.iter().map(|demand| demand.needs.len()).sum();
    debug_assert!(rows <= clusters * ROWS);

    let _ = shard.timings(); // of the start
    let meters = [shard.pid(), provider.pid(), std::process::id()].map(Meter::start);
    let began = Instant::now();
    for (operator, demand) in operators.each.iter().zip(demand) {
        operator.roll_up(demand).await;
    }
    configured(&operators, &mut shard, machines, |so_far| {
        progress("walk", so_far, machines);
    })
    .await?;
    let took = began.elapsed();
    let [shard_cost, provider_cost, operators_cost] = meters.map(|meter| meter.read());
    Ok(WalkReport {
        machines,
        clusters,
        rows,
        configured: *operators.told.configured.borrow(),
        blobs: operators.told.blobs.load(Ordering::Relaxed),
        blob_bytes: BLOB_BYTES,
        seconds: rounded(took.as_secs_f64()),
        bindings_per_second: (machines as f64 / took.as_secs_f64()).round(),
        shard: shard_cost,
        provider: provider_cost,
        operators: operators_cost,
        timings: shard.timings(),
    })
}

/// Waits until the operators know of so many Configured machines.
pub(crate) async fn configured(
    operators: &Operators,
    shard: &mut Process,
    wanted: usize,
    mut progress: impl FnMut(usize),
) -> Result<(), NotMeasured> {
    let mut told = operators.told.configured.subscribe();
    loop {
        let so_far = *told.borrow_and_update();
        progress(so_far);
        if wanted <= so_far {
            return Ok(());
        }
        shard.is_alive()?;
        let moved = tokio::time::timeout(STUCK_AFTER, told.changed()).await;
        if moved.is_err() {
            let problem = format!("{so_far} of {wanted} machines are Configured, and no more come");
            return Err(shard.failed(&problem));
        }
    }
}
