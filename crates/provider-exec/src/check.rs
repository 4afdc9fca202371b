//! `bigfleet provider exec check`: everything that is wrong with a config file, and a try of its programs.
//!
//! ```text
//! --try MACHINE:  create ─▶ configure ─▶ ready ─▶ describe ─▶ drain ─▶ delete ─▶ prices     one line each
//! ```
//!
//! A try is the life of one machine through the same code the provider runs, on the real substrate: it makes a host
//! and gives it back. A program that fails ends the way up; drain and delete are still run, so that nothing is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_model::{MachineId, State};
use bigfleet_provider_kit::{Backend, Cancelled, Failure, Job, Machine, Readiness, check_instance};

use crate::backend::ExecBackend;
use crate::config::{Config, ConfigRefused, ProgramKind};
use crate::slots::Slots;

/// Says everything that is wrong with a config file.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecCheckArgs {
    /// The config file
    pub file: PathBuf,
    /// Besides, run each program for this machine: makes a host and gives it back
    #[arg(long, value_name = "MACHINE")]
    pub r#try: Option<String>,
    /// The cluster the machine is configured for by --try
    #[arg(long, default_value = "try")]
    pub cluster: String,
    /// A file whose bytes --try gives to configure as bootstrap data [default: a line that says what it is]
    #[arg(long, value_name = "FILE")]
    pub blob: Option<PathBuf>,
}

/// Why a check did not end well.
#[derive(Debug, thiserror::Error)]
pub enum CheckFailed {
    /// The file is not what it should be.
    #[error(transparent)]
    Config(#[from] ConfigRefused),
    /// There is no such machine.
    #[error("--try: the file offers no machine {0:?}; the first is {1:?}")]
    NoSuchMachine(String, String),
    /// The bootstrap data cannot be read.
    #[error("--blob: {}: {source}", path.display())]
    Blob {
        /// The file of the command line.
        path: PathBuf,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// Programs that were tried failed.
    #[error("{0} of the programs tried did not do their work")]
    Tried(usize),
    /// There is no runtime to run on.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
}

impl CheckFailed {
    /// Whether the command line or a file it names is wrong.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::NoSuchMachine(..) | Self::Blob { .. } => true,
            Self::Tried(_) | Self::Runtime(_) => false,
        }
    }
}

/// Checks a file, and tells line by line what was found.
pub fn check(args: &ExecCheckArgs, mut tell: impl FnMut(&str)) -> Result<(), CheckFailed> {
    let config = Config::read(&args.file)?;
    let slots = Slots::new(&config, &config.provider, None);
    let kinds = config.programs.iter().map(|(kind, _)| kind.word());
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let (machines, offerings) = (slots.ids().count(), config.offerings.len());
    let file = args.file.display();
    tell(&format!(
        "{file}: {machines} machines in {offerings} offerings; programs: {kinds}"
    ));
    let Some(id) = &args.r#try else {
        return Ok(());
    };
    let Some(offer) = slots.offer(id).cloned() else {
        let first = slots.ids().next().unwrap_or_default().to_owned();
        return Err(CheckFailed::NoSuchMachine(id.clone(), first));
    };
    let blob = match &args.blob {
        None => b"# a try of bigfleet provider exec check\n".to_vec(),
        Some(path) => std::fs::read(path).map_err(|source| CheckFailed::Blob {
            path: path.clone(),
            source,
        })?,
    };
    let instance = bigfleet_provider_kit::Instance {
        id: id.clone(),
        offer,
        ..Default::default()
    };
    // An id of our own making, from an offering that was checked.
    let Ok(machine) = check_instance(&instance, true) else {
        return Err(CheckFailed::NoSuchMachine(id.clone(), String::new()));
    };
    let slot = slots.get(id);
    let host = slot
        .filter(|slot| slot.exists)
        .and_then(|slot| slot.host.as_deref());
    let host = host.map(|host| slots.host(host));
    let backend = ExecBackend::new(&config, slots);
    let mut life = Life {
        backend: &backend,
        machine: Machine { host, ..machine },
        failed: 0,
        tell: &mut tell,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(life.live(&args.cluster, blob.into()));
    match life.failed {
        0 => Ok(()),
        failed => Err(CheckFailed::Tried(failed)),
    }
}

/// The life of the machine that is tried.
struct Life<'a> {
    backend: &'a ExecBackend,
    machine: Machine,
    failed: usize,
    tell: &'a mut dyn FnMut(&str),
}

impl Life<'_> {
    async fn live(&mut self, cluster: &str, blob: Arc<[u8]>) {
        if self.machine.host.is_none() {
            self.machine.state = State::Creating;
            let asked = Instant::now();
            let created = self.backend.create(self.job("create")).await;
            let host = created.as_ref().ok().map(|created| created.host.clone());
            let made = host
                .as_ref()
                .map_or(String::new(), |host| format!("host {}", host.reference));
            self.told(ProgramKind::Create, asked, created.map(|_| made));
            self.machine.host = host;
        }
        if self.machine.host.is_some() {
            self.machine.cluster = cluster.to_owned();
            self.serve(blob).await;
            self.describe().await;
            let asked = Instant::now();
            let drained = self
                .backend
                .drain(self.job("drain"), Duration::from_secs(30))
                .await;
            self.told(ProgramKind::Drain, asked, drained.map(|()| String::new()));
            self.machine.cluster.clear();
        }
        // Also after a create that failed: it may have left something behind.
        if self.backend.deletes() {
            let asked = Instant::now();
            let deleted = self.backend.delete(self.job("delete")).await;
            self.told(ProgramKind::Delete, asked, deleted.map(|()| String::new()));
        }
        let asked = Instant::now();
        let prices = self.backend.prices().await;
        let known = |prices: Vec<_>| format!("{} machines have a price", prices.len());
        self.told(ProgramKind::Prices, asked, prices.map(known));
    }

    async fn serve(&mut self, blob: Arc<[u8]>) {
        self.machine.state = State::Configuring;
        let asked = Instant::now();
        let configured = self.backend.configure(self.job("configure"), blob).await;
        let done = configured.is_ok();
        self.told(
            ProgramKind::Configure,
            asked,
            configured.map(|()| String::new()),
        );
        if done && self.backend.readiness() == Readiness::Confirmed {
            let asked = Instant::now();
            let ready = self.backend.confirm_node_ready(self.job("configure")).await;
            self.told(ProgramKind::Ready, asked, ready.map(|()| String::new()));
        }
    }

    /// The machine has a host now, so describe has to name it.
    async fn describe(&mut self) {
        let asked = Instant::now();
        let described = self.backend.describe().await;
        let id = self.machine.id.as_str();
        let named = described.and_then(|instances| {
            let hosts = instances.iter().filter(|it| it.host.is_some());
            match instances.iter().find(|it| it.id == id) {
                Some(it) if it.host == self.machine.host => Ok(format!("{} hosts", hosts.count())),
                Some(_) | None => Err(Failure::new(
                    "describe: does not name the host of this machine",
                )),
            }
        });
        self.told(ProgramKind::Describe, asked, named);
    }

    fn job(&self, call: &str) -> Job {
        let id: &MachineId = &self.machine.id;
        Job {
            machine: Arc::new(self.machine.clone()),
            operation: format!("try-{}-{call}-{id}", std::process::id()).into(),
            cancelled: Cancelled::never(),
        }
    }

    fn told(&mut self, kind: ProgramKind, asked: Instant, outcome: Result<String, Failure>) {
        let took = asked.elapsed().as_secs_f64();
        let (word, text) = match outcome {
            Ok(text) => ("ok", text),
            Err(why) => {
                self.failed += 1;
                ("FAILED", why.text)
            }
        };
        let line = format!("{:<9}  {word:<6}  {took:6.2} s  {text}", kind.word());
        (self.tell)(line.trim_end());
    }
}
