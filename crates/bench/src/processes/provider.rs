//! What a provider costs: listing, one mutation, many durable mutations at once, memory.
//!
//! ```text
//! few slots ── mutations ──┐
//! all slots ── mutations ──┴─ ratio      all slots, a state file ── Lists, Gets, mutations ── killed ── again
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use tokio::task::JoinSet;

use super::exec::{ExecReport, exec};
use super::process::Process;
use super::provider_client::{Client, client, list, refused};
use super::report::NotMeasured;
use super::scene::Folder;
use crate::Progress;
use crate::checks::{Check, Promises, ratio};
use crate::memory::peak_mb;
use crate::percentiles::{Percentiles, millis};

/// Fewer slots, to see that a mutation does not depend on how many there are.
const FEW: usize = 1_000;
/// Each latency is measured in so many rounds, of which the quietest counts.
const ROUNDS: usize = 5;
/// Mutations of a round that are timed one by one; all rounds together take at most half of the slots.
const MUTATIONS: usize = 180;
/// Lists of a round.
const LISTS: usize = 10;
const GETS: usize = 500;
/// Machines on a page.
const PAGE: i32 = 1_000;
/// Callers at the same time.
const CALLERS: usize = 64;
/// The most machines they create, each twice.
const MOST_CREATED: usize = 4_000;

/// The most operations that programs carry out.
const MOST_OPERATIONS: usize = 10_000;
/// With fewer slots it is a quick try, and the provider is not certified: that takes most of a minute.
const CERTIFIED_FROM: usize = 4_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The binary whose `provider fake` is run.
    pub program: PathBuf,
    /// Where its state file is made: that disk is measured.
    pub folder: PathBuf,
    /// How many slots it has.
    pub slots: usize,
}

/// What was measured. Times are milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct ProviderReport {
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
    /// The same with 1,000 slots.
    pub mutation_ms_at_few: Percentiles,
    /// One durable mutation, one caller: its own sync included.
    pub durable_mutation_ms: Percentiles,
    /// Durable mutations per second, 64 callers.
    pub durable_mutations_per_second: f64,
    /// From the start of a process that has everything to load to its first answer.
    pub restart_ms: f64,
    /// The most memory the process held.
    pub peak_rss_mb: Option<f64>,
    /// `provider exec`, with programs that do nothing.
    pub exec: ExecReport,
    /// How long it takes to certify the provider in every profile; measured from so many slots on as
    /// profile scale has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conformance_seconds: Option<f64>,
}

impl Promises for ProviderReport {
    fn checks(&self) -> Vec<Check> {
        let rate = self.durable_mutations_per_second;
        let few = ratio(self.mutation_ms.p50, self.mutation_ms_at_few.p50);
        let certified = self.conformance_seconds;
        let certified = certified.map(|took| Check::at_most("conformance_seconds", took, 90.0));
        let mut checks = vec![
            Check::at_most("list_ms_p99", self.list_ms.p99, 250.0),
            Check::at_most("mutation_ms_p99", self.mutation_ms.p99, 1.0),
            Check::at_least("durable_mutations_per_second", rate, 2_000.0),
            Check::at_most("peak_rss_mb", self.peak_rss_mb, 200.0),
            Check::at_most("mutation_over_mutation_at_few", few, 2.0),
        ];
        checks.extend(self.exec.checks());
        checks.extend(certified);
        checks
    }
}

/// Starts the provider a few times and measures it.
pub async fn provider(
    settings: &ProviderSettings,
    progress: Progress<'_>,
) -> Result<ProviderReport, NotMeasured> {
    let slots = settings.slots;
    let folder = Folder::new(&settings.folder, "provider")?;
    let start = |slots, state| Running::start(&settings.program, slots, state);

    progress("mutations", 0, 1);
    let few = start(FEW.min(slots), None).await?;
    let mutation_ms_at_few = few.mutations().await?;
    drop(few);
    let many = start(slots, None).await?;
    let mutation_ms = many.mutations().await?;
    drop(many);

    let state = folder.data();
    let durable = start(slots, Some(&state)).await?;
    progress("lists", 0, 1);
    let list_ms = durable.lists(slots).await?;
    let clock = Instant::now();
    durable.count(PAGE, slots).await?;
    let list_pages_ms = millis(clock.elapsed());
    progress("gets", 0, 1);
    let get_ms = durable.gets().await?;
    progress("durable mutations", 0, 1);
    let durable_mutation_ms = durable.mutations().await?;
    let durable_mutations_per_second = durable.throughput().await?;
    let peak_rss_mb = peak_mb(durable.process.pid());
    let boot_ms = millis(durable.answered_after);
    drop(durable);
    progress("restart", 0, 1);
    let again = start(slots, Some(&state)).await?;
    let restart_ms = millis(again.answered_after);
    drop(again);
    progress("programs", 0, 1);
    let operations = (slots / 2).min(MOST_OPERATIONS);
    let config = folder.data().with_extension("json");
    let exec = exec(&settings.program, &config, slots, operations).await?;
    let conformance_seconds = if CERTIFIED_FROM <= slots {
        progress("conformance", 0, 1);
        Some(certified(&settings.program).await?)
    } else {
        None
    };
    Ok(ProviderReport {
        slots,
        boot_ms,
        list_ms,
        list_pages_ms,
        get_ms,
        mutation_ms,
        mutation_ms_at_few,
        durable_mutation_ms,
        durable_mutations_per_second,
        restart_ms,
        peak_rss_mb,
        exec,
        conformance_seconds,
    })
}

/// How long the provider takes to be certified in every profile.
async fn certified(program: &Path) -> Result<f64, NotMeasured> {
    let mut command = tokio::process::Command::new(program);
    command
        .args(["conformance", "--binary-arg=provider", "--binary-arg=fake"])
        .arg("--profile=core,cloud,spot,bare-metal,fault,durable,scale")
        .arg("--binary")
        .arg(program)
        .kill_on_drop(true);
    let clock = Instant::now();
    let output = command.output().await;
    let output = output.map_err(NotMeasured::system("conformance"))?;
    if output.status.success() {
        return Ok((clock.elapsed().as_secs_f64() * 10.0).round() / 10.0);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Err(NotMeasured::Wrong(format!(
        "the provider is not certified:\n{said}"
    )))
}

/// A provider with slots nobody has created yet, and a client of it.
struct Running {
    process: Process,
    client: Client,
    answered_after: Duration,
}

impl Running {
    async fn start(
        program: &Path,
        slots: usize,
        state: Option<&Path>,
    ) -> Result<Self, NotMeasured> {
        let mut flags = vec![
            "--addr=127.0.0.1:0".to_owned(),
            "--metrics-addr=127.0.0.1:0".to_owned(),
            format!("--seed-count={slots}"),
        ];
        flags.extend(state.map(|state| format!("--state={}", state.display())));
        let clock = Instant::now();
        let process = Process::start(program, "provider", &["provider", "fake"], flags).await?;
        let client = client(&process)?;
        let one = wire::ListFilter {
            max_results: 1,
            ..wire::ListFilter::default()
        };
        client.clone().list(one).await.map_err(refused)?;
        Ok(Self {
            process,
            client,
            answered_after: clock.elapsed(),
        })
    }

    /// So many machines that can be created, or as many as there are.
    async fn speculative(&self, most: usize) -> Result<Vec<String>, NotMeasured> {
        let is_new = |machine: &wire::Machine| machine.state() == wire::MachineState::Speculative;
        let mut ids = list(&self.client, PAGE, is_new).await?;
        ids.truncate(most);
        Ok(ids)
    }

    /// Lists everything by pages of so many, and sees that it is everything.
    async fn count(&self, page_size: i32, slots: usize) -> Result<(), NotMeasured> {
        let listed = list(&self.client, page_size, |_| true).await?.len();
        if listed == slots {
            return Ok(());
        }
        let problem = format!("{listed} of {slots} machines were listed");
        Err(NotMeasured::Wrong(problem))
    }

    async fn lists(&self, slots: usize) -> Result<Percentiles, NotMeasured> {
        let mut rounds = vec![Vec::new(); ROUNDS];
        for times in &mut rounds {
            for _ in 0..LISTS {
                let clock = Instant::now();
                self.count(0, slots).await?;
                times.push(clock.elapsed());
            }
        }
        Ok(in_ms(&rounds))
    }

    async fn gets(&self) -> Result<Percentiles, NotMeasured> {
        let mut client = self.client.clone();
        let mut times = Vec::with_capacity(GETS);
        let ids = list(&self.client, PAGE, |_| true).await?;
        for id in ids.iter().cycle().take(GETS) {
            let clock = Instant::now();
            let asked = client.get(wire::MachineRef { id: id.clone() });
            asked.await.map_err(refused)?;
            times.push(clock.elapsed());
        }
        Ok(in_ms(&in_rounds(times)))
    }

    /// Creates, one after the other.
    async fn mutations(&self) -> Result<Percentiles, NotMeasured> {
        let mut client = self.client.clone();
        let mut ids = self.speculative(usize::MAX).await?;
        ids.truncate(ids.len().div_ceil(2).min(ROUNDS * MUTATIONS));
        let mut times = Vec::with_capacity(ids.len());
        for machine_id in ids {
            let request = wire::CreateRequest {
                machine_id,
                ..wire::CreateRequest::default()
            };
            let clock = Instant::now();
            client.create(request).await.map_err(refused)?;
            times.push(clock.elapsed());
        }
        Ok(in_ms(&in_rounds(times)))
    }

    /// Fenced Creates and their repetitions by many callers, per second: each moves the fence of its machine, so
    /// each is stored.
    async fn throughput(&self) -> Result<f64, NotMeasured> {
        let ids = self.speculative(MOST_CREATED).await?;
        let clock = Instant::now();
        let mut callers = JoinSet::new();
        for share in ids.chunks(ids.len().div_ceil(CALLERS).max(1)) {
            callers.spawn(create_twice(self.client.clone(), share.to_vec()));
        }
        while let Some(ended) = callers.join_next().await {
            let ended = ended.map_err(|why| NotMeasured::Wrong(why.to_string()))?;
            ended.map_err(refused)?;
        }
        let created = 2.0 * ids.len() as f64;
        Ok((created / clock.elapsed().as_secs_f64()).round())
    }
}

async fn create_twice(mut client: Client, ids: Vec<String>) -> Result<(), tonic::Status> {
    for sequence_number in 1..=2 {
        for machine_id in ids.iter().cloned() {
            let request = wire::CreateRequest {
                machine_id,
                shard_id: "bench".to_owned(),
                shard_epoch: 1,
                sequence_number,
                ..wire::CreateRequest::default()
            };
            client.create(request).await?;
        }
    }
    Ok(())
}

/// What was measured one after the other, cut into rounds.
fn in_rounds(times: Vec<Duration>) -> Vec<Vec<Duration>> {
    let rounds = times.chunks(times.len().div_ceil(ROUNDS).max(1));
    rounds.map(<[Duration]>::to_vec).collect()
}

fn in_ms(rounds: &[Vec<Duration>]) -> Percentiles {
    Percentiles::of_quietest(rounds, Duration::from_millis(1))
}
