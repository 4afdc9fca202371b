//! Booting: a provider as a process of ours, on a port of its own, killed when we are done with it;
//! or one that already runs.

mod answers;
mod process;

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bigfleet_net::{Dial, Tls};
use bigfleet_wire::v1alpha1::ListFilter;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::exchange::{Client, Transcript};
use crate::mutants::{Defect, Proxy};
use crate::subject::CALL;
use answers::{not_a_provider, reason};
use process::Process;

/// How long a provider may take until it answers a List.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a target that already runs may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// So many ports are tried where each turns out to be taken.
const MOST_PORTS: usize = 3;
/// So many calls without an answer are enough to know.
const MOST_UNANSWERED: usize = 3;
/// A full List of many machines is larger than the usual limit.
const MOST_BYTES: usize = 256 << 20;

/// A provider binary, and the arguments that come before the shared flags.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The executable to start.
    pub program: PathBuf,
    /// For example `provider fake`.
    pub args: Vec<OsString>,
    /// The first of the ports to use; `None` for whichever are free.
    pub first_port: Option<u16>,
}

/// What is certified.
#[derive(Clone, Debug)]
pub enum Provider {
    /// An executable, started and killed as the checks need it.
    Binary(Binary),
    /// One that already runs. It cannot be killed and started again.
    Target {
        /// `host:port`.
        addr: String,
        /// Certificates; `None` for plaintext.
        tls: Option<Arc<Tls>>,
    },
}

/// A provider did not come up, or does not answer like one.
#[derive(Debug, thiserror::Error)]
pub enum BootFailed {
    /// The process did not start.
    #[error("{}: {source}", program.display())]
    Start {
        /// The program that was started.
        program: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The port it was to be started on is somebody else's.
    #[error("port {port} for the provider: {source}")]
    Port {
        /// The port of this computer.
        port: u16,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It ended before it answered.
    #[error("the provider ended before it answered{}: {status}{}", with(.flags), saying(.said))]
    Ended {
        /// The flags beyond the boot contract.
        flags: Vec<String>,
        /// How it ended.
        status: String,
        /// The last line it wrote.
        said: String,
    },
    /// It did not answer in time.
    #[error("the provider did not answer a List within {READY_WITHIN:?}: {0}")]
    Silent(String),
    /// Nothing that answers is there.
    #[error("{addr} does not answer: {why}")]
    NoAnswer {
        /// The address of the command line.
        addr: String,
        /// What was in the way.
        why: String,
    },
    /// What answers is something else.
    #[error("{addr} is not a BigFleet provider: {why}")]
    NoProvider {
        /// The address of the command line.
        addr: String,
        /// What it answered.
        why: String,
    },
    /// A check asked to start a provider that is somebody else's process.
    #[error("a running target is not ours to start or kill; certify its binary with --binary")]
    IsTarget,
}

fn with(flags: &[String]) -> String {
    if flags.is_empty() {
        return String::new();
    }
    format!(" when started with {}", flags.join(" "))
}

fn saying(said: &str) -> String {
    if said.is_empty() {
        return String::new();
    }
    format!(", saying: {said}")
}

/// Starts providers, each with a log and a port of its own.
#[derive(Debug)]
pub(crate) struct Launcher {
    provider: Provider,
    /// The label on `--provider`.
    label: String,
    /// For state files.
    scratch: PathBuf,
    logs: PathBuf,
    pub(crate) transcript: Arc<Transcript>,
    started: AtomicUsize,
    /// What stands between the checks and the provider, if they are to find something.
    defect: Option<&'static Defect>,
}

impl Launcher {
    pub(crate) fn new(
        provider: Provider,
        label: &str,
        scratch: PathBuf,
        logs: PathBuf,
        defect: Option<&'static Defect>,
    ) -> Self {
        Self {
            provider,
            label: label.to_owned(),
            // A provider may change its folder.
            scratch: std::path::absolute(&scratch).unwrap_or(scratch),
            logs,
            transcript: Arc::default(),
            started: AtomicUsize::new(0),
            defect,
        }
    }

    /// A state file nobody uses.
    pub(crate) fn state_file(&self) -> PathBuf {
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        self.scratch.join(format!("state-{nth}"))
    }

    /// Whether the provider is one that already runs.
    pub(crate) fn is_target(&self) -> bool {
        matches!(self.provider, Provider::Target { .. })
    }

    /// The provider that already runs, once it has shown that it is one.
    pub(crate) async fn attach(&self) -> Result<Running, BootFailed> {
        let Provider::Target { addr, tls } = &self.provider else {
            return Err(BootFailed::NoAnswer {
                addr: String::new(),
                why: "there is no target".to_owned(),
            });
        };
        let no_answer = |why: String| BootFailed::NoAnswer {
            addr: addr.clone(),
            why,
        };
        let running = Running::to(None, addr, tls.clone(), &self.transcript);
        let running = running.map_err(|refused| no_answer(refused.to_string()))?;
        match running.lists(ANSWER_WITHIN).await {
            Ok(()) => Ok(running),
            Err(status) if status.code() == Code::DeadlineExceeded => Err(no_answer(format!(
                "no answer to a List within {ANSWER_WITHIN:?}"
            ))),
            Err(status) => Err(not_a_provider(addr, tls.is_some(), &status).await),
        }
    }

    /// Starts it with the boot contract and these flags, and waits until it lists.
    pub(crate) async fn boot(
        &self,
        seeds: usize,
        state: Option<&Path>,
        flags: &[&str],
    ) -> Result<Running, BootFailed> {
        let Provider::Binary(binary) = &self.provider else {
            return Err(BootFailed::IsTarget);
        };
        let failed = |source| BootFailed::Start {
            program: binary.program.clone(),
            source,
        };
        let reborn = state.is_some_and(Path::exists);
        let mut ports = 0..MOST_PORTS;
        let mut running = loop {
            ports.next();
            let nth = self.started.fetch_add(1, Ordering::Relaxed);
            let addr = free_addr(binary.first_port, nth)?;
            let log = self.logs.join(format!("provider-{nth:03}.log"));
            let mut command = self.command(binary, addr, seeds, state);
            let out = File::create(&log).map_err(failed)?;
            command
                .args(flags)
                .stdout(out.try_clone().map_err(failed)?)
                .stderr(out);
            let process = Process::start(&mut command, log).map_err(failed)?;
            let running = Running::to(Some(process), &addr.to_string(), None, &self.transcript);
            let mut running = running.map_err(|refused| BootFailed::Silent(refused.to_string()))?;
            match running.ready(flags).await {
                Ok(()) => break running,
                // It ended because somebody else was quicker to take its port.
                Err(BootFailed::Ended { .. })
                    if !ports.is_empty() && TcpListener::bind(addr).is_err() => {}
                Err(failed) => return Err(failed),
            }
        };
        if let Some(defect) = self.defect {
            let proxy = Proxy::start(defect, running.channel.clone(), state, reborn).await;
            running.dial_through(proxy.map_err(failed)?)?;
        }
        self.transcript.take();
        Ok(running)
    }

    /// The boot contract, as every provider takes it.
    fn command(
        &self,
        binary: &Binary,
        addr: SocketAddr,
        seeds: usize,
        state: Option<&Path>,
    ) -> Command {
        let mut command = Command::new(&binary.program);
        command
            .args(&binary.args)
            .arg(format!("--addr={addr}"))
            .arg(format!("--provider={}", self.label))
            .arg("--use-fake-backend")
            .arg(format!("--seed-count={seeds}"))
            // What it makes for the time being is gone with the run, however often it is killed.
            .env("TMPDIR", &self.scratch)
            .stdin(Stdio::null());
        if let Some(state) = state {
            let mut flag = OsString::from("--state=");
            flag.push(state);
            command.arg(flag);
        }
        command
    }
}

/// Taken and let go: nobody else on this host is likely to take it before the child does.
fn free_addr(first: Option<u16>, nth: usize) -> Result<SocketAddr, BootFailed> {
    let port = match first {
        Some(first) => first.wrapping_add(u16::try_from(nth).unwrap_or(u16::MAX)),
        None => 0,
    };
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|it| it.local_addr());
    taken.map_err(|source| BootFailed::Port { port, source })
}

/// A provider that answers. Dropping it ends the process, if it is ours.
#[derive(Debug)]
pub(crate) struct Running {
    process: Option<Process>,
    addr: String,
    dial: Dial,
    channel: Channel,
    transcript: Arc<Transcript>,
    proxy: Option<Proxy>,
    /// It has made room for others.
    stopped: bool,
}

impl Running {
    fn to(
        process: Option<Process>,
        addr: &str,
        tls: Option<Arc<Tls>>,
        transcript: &Arc<Transcript>,
    ) -> Result<Self, bigfleet_net::DialRefused> {
        // Not all providers let a connection be pinged as often as the contract allows.
        let dial = Dial::unknown(tls);
        Ok(Self {
            channel: dial.channel(addr)?,
            process,
            addr: addr.to_owned(),
            dial,
            transcript: Arc::clone(transcript),
            proxy: None,
            stopped: false,
        })
    }

    /// Whether it answers a List, within this time.
    async fn lists(&self, within: Duration) -> Result<(), Status> {
        let filter = ListFilter {
            max_results: 1,
            ..ListFilter::default()
        };
        let mut client = self.client();
        let answer = tokio::time::timeout(within, client.list(filter)).await;
        let late = |_| Err(Status::deadline_exceeded("nothing came back"));
        answer.unwrap_or_else(late).map(drop)
    }

    async fn ready(&mut self, flags: &[&str]) -> Result<(), BootFailed> {
        let started = Instant::now();
        loop {
            let left = READY_WITHIN.saturating_sub(started.elapsed());
            let Err(status) = self.lists(left).await else {
                return Ok(());
            };
            if let Some((status, said)) = self.process.as_mut().and_then(Process::ended) {
                let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
                return Err(BootFailed::Ended {
                    flags,
                    status,
                    said,
                });
            }
            if READY_WITHIN <= started.elapsed() {
                return Err(BootFailed::Silent(reason(&status)));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Why nothing more can be learned from it: it ended, or it no longer answers. One that was ended by us is not
    /// missed by those who start their own.
    pub(crate) async fn gone(&mut self) -> Option<String> {
        if self.stopped {
            return self.silence();
        }
        let ended = self.process.as_mut().and_then(Process::ended);
        if let Some((status, said)) = ended {
            return Some(format!("the provider has ended: {status}{}", saying(&said)));
        }
        if let Some(silence) = self.silence() {
            return Some(silence);
        }
        let silent = self.lists(CALL).await.err()?;
        Some(format!(
            "the provider no longer answers a List: {}",
            reason(&silent)
        ))
    }

    fn silence(&self) -> Option<String> {
        let unanswered = self.transcript.unanswered();
        (MOST_UNANSWERED <= unanswered).then(|| {
            format!(
                "{unanswered} calls were not answered within {CALL:?}, so the others were not made"
            )
        })
    }

    /// Ends it, as behaviours come that start processes of their own: a provider may not take a second one of its
    /// kind beside it, for example because both want the same port for metrics.
    pub(crate) fn make_room(&mut self) {
        self.kill();
        self.stopped = true;
    }

    fn dial_through(&mut self, proxy: Proxy) -> Result<(), BootFailed> {
        let silent = |refused: bigfleet_net::DialRefused| BootFailed::Silent(refused.to_string());
        self.addr = proxy.addr().to_string();
        self.channel = self.dial.channel(&self.addr).map_err(silent)?;
        self.proxy = Some(proxy);
        Ok(())
    }

    /// A client on the shared connection.
    pub(crate) fn client(&self) -> Client {
        Client::new(
            self.channel.clone(),
            MOST_BYTES,
            Arc::clone(&self.transcript),
        )
    }

    /// A client on a connection of its own.
    pub(crate) fn another(&self) -> Result<Client, Status> {
        let channel = self.dial.channel(&self.addr);
        let channel = channel.map_err(|refused| Status::unavailable(refused.to_string()))?;
        Ok(Client::new(
            channel,
            MOST_BYTES,
            Arc::clone(&self.transcript),
        ))
    }

    /// Ends it without a warning, as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill();
        }
        // Once: dropping a provider that was killed must not touch the state of its successor.
        if let Some(proxy) = self.proxy.take() {
            proxy.killed();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
