//! Booting: a provider as a process of ours, on a port of its own, killed when we are done with it;
//! or one that already runs.

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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

/// How long a provider may take until it answers a List.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How long a target that already runs may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// So many calls without an answer are enough to know.
const MOST_UNANSWERED: usize = 3;
/// A full List of many machines is larger than the usual limit.
const MOST_BYTES: usize = 256 << 20;
/// The most of a log that is looked at for the reason of an early end.
const LOG_TAIL: usize = 4096;

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
            scratch,
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
        let running =
            Running::to(None, addr, tls.clone(), &self.transcript).map_err(|refused| {
                BootFailed::NoAnswer {
                    addr: addr.clone(),
                    why: refused.to_string(),
                }
            })?;
        let addr = addr.clone();
        match running.lists(ANSWER_WITHIN).await {
            Ok(()) => Ok(running),
            Err(status) if status.code() == Code::DeadlineExceeded => Err(BootFailed::NoAnswer {
                addr,
                why: format!("no answer to a List within {ANSWER_WITHIN:?}"),
            }),
            Err(status) => Err(not_a_provider(addr, &status)),
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
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        let addr = free_addr(binary.first_port, nth).map_err(failed)?;
        let log = self.logs.join(format!("provider-{nth:03}.log"));
        let out = File::create(&log).map_err(failed)?;
        let mut command = Command::new(&binary.program);
        command
            .args(&binary.args)
            .arg(format!("--addr={addr}"))
            .arg(format!("--provider={}", self.label))
            .arg("--use-fake-backend")
            .arg(format!("--seed-count={seeds}"));
        if let Some(state) = state {
            let mut flag = OsString::from("--state=");
            flag.push(state);
            command.arg(flag);
        }
        command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(out);
        let reborn = state.is_some_and(Path::exists);
        let child = command.spawn().map_err(failed)?;
        let process = Process { child, log };
        let running = Running::to(Some(process), &addr, None, &self.transcript);
        let mut running = running.map_err(|refused| BootFailed::Silent(refused.to_string()))?;
        running.ready(flags).await?;
        if let Some(defect) = self.defect {
            let proxy = Proxy::start(defect, running.channel.clone(), state, reborn).await;
            running.dial_through(proxy.map_err(failed)?)?;
        }
        self.transcript.take();
        Ok(running)
    }
}

/// Taken and let go: nobody else on this host is likely to take it before the child does.
fn free_addr(first: Option<u16>, nth: usize) -> std::io::Result<String> {
    let port = match first {
        Some(first) => first.wrapping_add(u16::try_from(nth).unwrap_or(u16::MAX)),
        None => 0,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(listener.local_addr()?.to_string())
}

fn not_a_provider(addr: String, status: &Status) -> BootFailed {
    let message = status.message();
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Internal
            if is_transport(status) =>
        {
            BootFailed::NoAnswer {
                addr,
                why: innermost(status),
            }
        }
        code => BootFailed::NoProvider {
            addr,
            why: format!("a List was answered with {code:?} {message}"),
        },
    }
}

fn is_transport(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

/// Why a call was not answered as it should be, in a line.
fn reason(status: &Status) -> String {
    match status.code() {
        Code::DeadlineExceeded => status.message().to_owned(),
        _ if is_transport(status) => innermost(status),
        code => format!("{code:?} {}", status.message()),
    }
}

/// What the operating system said, below all that is wrapped around it.
fn innermost(status: &Status) -> String {
    let mut error: &dyn std::error::Error = status;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// The last line of a log that says something.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let tail = &text[text.len().saturating_sub(LOG_TAIL)..];
    let tail = String::from_utf8_lossy(tail);
    // A refusal of an unknown flag ends in a hint to read the help; the line that matters is above.
    let mut lines = tail.lines().filter(|line| !line.trim().is_empty());
    let named = lines
        .clone()
        .find(|line| line.trim_start().starts_with("error"));
    let said = named.or_else(|| lines.next_back()).unwrap_or_default();
    said.trim().chars().take(300).collect()
}

/// A process of ours, and where it writes.
#[derive(Debug)]
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// How it ended and what it said last, if it has.
    fn ended(&mut self) -> Option<(String, String)> {
        let status = self.child.try_wait().ok().flatten()?;
        Some((status.to_string(), last_words(&self.log)))
    }
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
}

impl Running {
    fn to(
        process: Option<Process>,
        addr: &str,
        tls: Option<Arc<Tls>>,
        transcript: &Arc<Transcript>,
    ) -> Result<Self, bigfleet_net::DialRefused> {
        let dial = Dial::provider(tls);
        Ok(Self {
            channel: dial.channel(addr)?,
            process,
            addr: addr.to_owned(),
            dial,
            transcript: Arc::clone(transcript),
            proxy: None,
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

    /// Why nothing more can be learned from it: it ended, or it no longer answers.
    pub(crate) async fn gone(&mut self) -> Option<String> {
        let ended = self.process.as_mut().and_then(Process::ended);
        if let Some((status, said)) = ended {
            return Some(format!("the provider has ended: {status}{}", saying(&said)));
        }
        let unanswered = self.transcript.unanswered();
        if MOST_UNANSWERED <= unanswered {
            return Some(format!(
                "{unanswered} calls were not answered within {CALL:?}, so the others were not made"
            ));
        }
        let silent = self.lists(CALL).await.err()?;
        Some(format!(
            "the provider no longer answers a List: {}",
            reason(&silent)
        ))
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
        if let Some(Process { child, .. }) = &mut self.process {
            // It may have ended by itself, which is as good.
            drop(child.kill());
            drop(child.wait());
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
