//! What `provider exec` costs with programs that do nothing: operations per second, Lists, and what is left over.
//!
//! ```text
//! 32 callers, each: Create ─▶ Configure ─▶ Drain ─▶ Delete, and again       one run of a program each
//! before and after: threads of the provider, processes below it
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;
use serde::Serialize;
use tokio::task::JoinSet;
use wire::MachineState as State;

use super::process::Process;
use super::provider_client::{Client, client, list, refused};
use super::report::NotMeasured;
use crate::checks::Check;
use crate::percentiles::Percentiles;

/// The slots of the promise.
const SLOTS: usize = 2_000;
const CALLERS: usize = 32;
/// Lists are timed in so many rounds, of which the quietest counts.
const ROUNDS: usize = 5;
const LISTS: usize = 10;
/// How often a caller looks whether its operation is over.
const LOOK: Duration = Duration::from_millis(2);
/// How long one operation may take before the run is called off.
const WITHIN: Duration = Duration::from_secs(120);

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ExecReport {
    /// Slots of the provider.
    pub slots: usize,
    /// Operations that were carried out, each by a program.
    pub operations: usize,
    /// How many of them per second.
    pub operations_per_second: f64,
    /// A full List, received and decoded.
    pub list_ms: Percentiles,
    /// Threads of the provider afterwards, beyond those it had at first; where the system tells.
    pub threads_left: Option<f64>,
    /// Processes of the provider afterwards; where the system tells.
    pub processes_left: Option<f64>,
}

impl ExecReport {
    pub(super) fn checks(&self) -> Vec<Check> {
        let rate = self.operations_per_second;
        vec![
            Check::at_least("exec_operations_per_second", rate, 150.0),
            Check::at_most("exec_list_ms_p99", self.list_ms.p99, 100.0),
            Check::at_most("exec_threads_left", self.threads_left, 0.0),
            Check::at_most("exec_processes_left", self.processes_left, 0.0),
        ]
    }
}

/// Starts the provider with programs that do nothing, as a config file says that is written here, and carries out so many operations.
pub(super) async fn exec(
    program: &Path,
    config: &Path,
    slots: usize,
    operations: usize,
) -> Result<ExecReport, NotMeasured> {
    let slots = slots.min(SLOTS);
    let written = std::fs::write(config, programs_that_do_nothing().to_string());
    written.map_err(NotMeasured::system("the config file".to_owned()))?;
    let flags = vec![
        "--addr=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        format!("--config={}", config.display()),
        format!("--seed-count={slots}"),
    ];
    let process = Process::start(program, "provider", &["provider", "exec"], flags).await?;
    let client = client(&process)?;
    let ids = list(&client, 0, |_| true).await?;

    let cycles = operations.div_ceil(4).max(1);
    // What a runtime starts only once it is busy is started before it is counted.
    busy(&client, &ids, CALLERS).await?;
    let threads = threads(process.pid());
    let clock = Instant::now();
    busy(&client, &ids, cycles).await?;
    let took = clock.elapsed().as_secs_f64();
    let mut rounds = vec![Vec::new(); ROUNDS];
    for times in &mut rounds {
        for _ in 0..LISTS {
            let clock = Instant::now();
            let listed = list(&client, 0, |_| true).await?.len();
            times.push(clock.elapsed());
            if listed != slots {
                let problem = format!("{listed} of {slots} machines were listed");
                return Err(NotMeasured::Wrong(problem));
            }
        }
    }
    let after = self::threads(process.pid());
    let left = threads
        .zip(after)
        .map(|(before, after)| (after - before).max(0.0));
    Ok(ExecReport {
        slots,
        operations: 4 * cycles,
        operations_per_second: (4.0 * cycles as f64 / took).round(),
        list_ms: Percentiles::of_quietest(&rounds, Duration::from_millis(1)),
        threads_left: left,
        processes_left: children(process.pid()),
    })
}

fn programs_that_do_nothing() -> serde_json::Value {
    let nothing = serde_json::json!({"run": ["true"], "at_once": CALLERS});
    serde_json::json!({
        "programs": {
            "create": {"run": ["echo", "{\"host\": \"h\"}"], "at_once": CALLERS},
            "configure": nothing, "drain": nothing, "delete": nothing,
        },
        "offerings": [{
            "instance_type": "s", "zone": "z", "capacity_type": "on_demand", "price_per_hour": 1, "count": 1,
        }],
    })
}

/// So many lives of machines, by all callers together.
async fn busy(client: &Client, ids: &[String], lives: usize) -> Result<(), NotMeasured> {
    let mut callers = JoinSet::new();
    for (caller, id) in ids.iter().take(CALLERS).enumerate() {
        let (client, id) = (client.clone(), id.clone());
        let share = lives / CALLERS + usize::from(caller < lives % CALLERS);
        callers.spawn(async move {
            for _ in 0..share {
                live(client.clone(), &id).await?;
            }
            Ok::<_, tonic::Status>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        let ended = ended.map_err(|why| NotMeasured::Wrong(why.to_string()))?;
        ended.map_err(refused)?;
    }
    Ok(())
}

/// One life of a machine: four operations.
async fn live(mut client: Client, id: &str) -> Result<(), tonic::Status> {
    let machine_id = id.to_owned();
    let create = wire::CreateRequest {
        machine_id: machine_id.clone(),
        ..Default::default()
    };
    client.create(create).await?;
    reaches(&mut client, id, State::Idle).await?;
    let configure = wire::ConfigureRequest {
        machine_id: machine_id.clone(),
        cluster_id: "bench".to_owned(),
        bootstrap_blob: b"#cloud-config".to_vec(),
        ..Default::default()
    };
    client.configure(configure).await?;
    reaches(&mut client, id, State::Configured).await?;
    let drain = wire::DrainRequest {
        machine_id: machine_id.clone(),
        ..Default::default()
    };
    client.drain(drain).await?;
    reaches(&mut client, id, State::Idle).await?;
    let delete = wire::DeleteRequest {
        machine_id,
        ..Default::default()
    };
    client.delete(delete).await?;
    reaches(&mut client, id, State::Speculative).await
}

async fn reaches(client: &mut Client, id: &str, state: State) -> Result<(), tonic::Status> {
    let asked = Instant::now();
    loop {
        let machine = client.get(wire::MachineRef { id: id.to_owned() }).await?;
        let machine = machine.into_inner();
        if machine.state() == state {
            return Ok(());
        }
        if machine.state() == State::Failed || WITHIN < asked.elapsed() {
            let (now, error) = (machine.state(), machine.last_error);
            return Err(tonic::Status::aborted(format!("{id} is {now:?}: {error}")));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn threads(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))?;
    line.trim().parse().ok()
}

/// The processes below one, those that ended and were not noticed included.
fn children(pid: u32) -> Option<f64> {
    let mut count = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .ok()?
        .flatten()
    {
        let children = std::fs::read_to_string(task.path().join("children")).ok()?;
        count += children.split_whitespace().count();
    }
    Some(count as f64)
}
