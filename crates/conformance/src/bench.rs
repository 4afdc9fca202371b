//! What a provider costs: listing, one mutation, many durable mutations at once, memory.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::boot::Binary;
use crate::check::Unmet;
use crate::subject::{Call, Subject, Token, send};

/// Callers at the same time.
const IN_FLIGHT: usize = 64;
/// Fewer slots, to see that a mutation does not depend on how many there are.
const FEW: usize = 1_000;

/// What was measured. Times are milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Slots of the provider.
    pub slots: usize,
    /// From the start of the process to its first answer.
    pub boot_ms: f64,
    /// A full List, received and decoded.
    pub list_ms: Percentiles,
    /// The same machines, by pages of 1,000.
    pub list_pages_ms: f64,
    /// One Get.
    pub get_ms: Percentiles,
    /// One mutation without a disk, one caller.
    pub mutation_ms: Percentiles,
    /// The same with a twentieth of the slots: what a mutation costs does not depend on how many.
    pub mutation_ms_at_few: Percentiles,
    /// One durable mutation, one caller: its own sync included.
    pub durable_mutation_ms: Percentiles,
    /// Durable mutations per second, 64 callers.
    pub durable_mutations_per_second: f64,
    /// From a kill to the first answer, with everything loaded again.
    pub restart_ms: f64,
    /// The most memory the process held.
    pub peak_rss_mb: Option<f64>,
}

/// The middle, and the slow end.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentiles {
    /// Half are faster.
    pub p50: f64,
    /// All but one in a hundred are faster.
    pub p99: f64,
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn percentiles(mut times: Vec<Duration>) -> Percentiles {
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().max(1) - 1));
    let of = |share| ms(at(share).copied().unwrap_or_default());
    Percentiles {
        p50: of(50),
        p99: of(99),
    }
}

/// Boots the provider a few times and measures it; `folder` is for its state file.
pub async fn bench(binary: &Binary, folder: &Path, slots: usize) -> Result<BenchReport, Unmet> {
    let quiet = ["--metrics-addr="];
    let few = mutations(
        &boot(binary, folder, FEW.min(slots), None, &quiet).await?,
        300,
    )
    .await?;
    let memory = boot(binary, folder, slots, None, &quiet).await?;
    let mutation_ms = mutations(&memory, 300).await?;
    drop(memory);

    let state = folder.join("bench-state");
    let started = Instant::now();
    let durable = boot(binary, folder, slots, Some(&state), &quiet).await?;
    let boot_ms = ms(started.elapsed());
    let mut lists = Vec::new();
    for _ in 0..30 {
        let started = Instant::now();
        let count = durable.list(&[]).await?.len();
        ensure!(count == slots, "{count} of {slots} machines");
        lists.push(started.elapsed());
    }
    let list_pages_ms = pages(&durable, slots).await?;
    let mut gets = Vec::new();
    let id = durable.fresh().await?;
    for _ in 0..500 {
        let started = Instant::now();
        durable.get(&id).await?;
        gets.push(started.elapsed());
    }
    let durable_mutation_ms = mutations(&durable, 300).await?;
    let durable_mutations_per_second = throughput(&durable, slots).await?;
    let peak_rss_mb = peak_rss_mb(durable.running().pid());
    drop(durable);
    let started = Instant::now();
    drop(boot(binary, folder, slots, Some(&state), &quiet).await?);
    Ok(BenchReport {
        slots,
        boot_ms,
        list_ms: percentiles(lists),
        list_pages_ms,
        get_ms: percentiles(gets),
        mutation_ms,
        mutation_ms_at_few: few,
        durable_mutation_ms,
        durable_mutations_per_second,
        restart_ms: ms(started.elapsed()),
        peak_rss_mb,
    })
}

async fn boot(
    binary: &Binary,
    folder: &Path,
    slots: usize,
    state: Option<&Path>,
    flags: &[&str],
) -> Result<Subject, Unmet> {
    let running = binary.boot(slots, state, flags).await?;
    Ok(Subject::new(
        running,
        binary.clone(),
        folder.to_owned(),
        slots,
    ))
}

async fn mutations(subject: &Subject, count: usize) -> Result<Percentiles, Unmet> {
    let mut times = Vec::new();
    for id in subject.fresh_many(count).await? {
        let started = Instant::now();
        subject.call(&id, Call::Create).await?;
        times.push(started.elapsed());
    }
    Ok(percentiles(times))
}

async fn pages(subject: &Subject, slots: usize) -> Result<f64, Unmet> {
    let (started, mut count, mut page_token) = (Instant::now(), 0, Vec::new());
    loop {
        let filter = bigfleet_wire::v1alpha1::ListFilter {
            page_size: 1_000,
            page_token,
            ..Default::default()
        };
        let page = subject.filter(filter).await?;
        count += page.machines.len();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    ensure!(count == slots, "{count} of {slots} machines on all pages");
    Ok(ms(started.elapsed()))
}

/// Fenced Creates and retries of them: every one moves a mark, so every one is stored.
async fn throughput(subject: &Subject, slots: usize) -> Result<f64, Unmet> {
    let count = (slots / 4).clamp(1, 4_000);
    let machines = subject
        .fresh_many(count.min(slots.saturating_sub(2_000).max(1)))
        .await?;
    let share = machines.len().div_ceil(IN_FLIGHT);
    let started = Instant::now();
    let mut tasks = Vec::new();
    for share in machines.chunks(share) {
        let (client, share) = (subject.client(), share.to_vec());
        tasks.push(tokio::spawn(async move {
            for sequence in 1..=2 {
                for id in &share {
                    let token = Token {
                        shard: "bench".to_owned(),
                        epoch: 1,
                        sequence,
                    };
                    send(client.clone(), id, &token, Call::Create).await?;
                }
            }
            Ok::<usize, tonic::Status>(2 * share.len())
        }));
    }
    let mut done = 0;
    for task in tasks {
        done += task.await.map_err(|why| Unmet(why.to_string()))??;
    }
    Ok((done as f64 / started.elapsed().as_secs_f64()).round())
}

fn peak_rss_mb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib / 1024.0 * 10.0).round() / 10.0)
}
