//! A process of ours, known by what it logs, shows and uses. Killed when dropped.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::report::{NotMeasured, Timings};
use crate::percentiles::Percentiles;

/// How long a process may take to say that it listens.
const UP_WITHIN: Duration = Duration::from_secs(120);
/// Lines kept, to be shown when something goes wrong.
const LAST_LINES: usize = 20;
/// How often to look at a process that says nothing by itself.
const LOOK: Duration = Duration::from_millis(5);

/// What a process logged.
#[derive(Debug, Default)]
struct Heard {
    listening: Option<serde_json::Value>,
    cycles: Vec<f64>,
    commits: Vec<f64>,
    lists: Vec<f64>,
    roll_ups: Vec<f64>,
    last: VecDeque<String>,
}

impl Heard {
    fn take(&mut self, text: String) {
        let line: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let fields = &line["fields"];
        let samples = match fields["message"].as_str() {
            Some("cycle took") => &mut self.cycles,
            Some("commit took") => &mut self.commits,
            Some("list took") => &mut self.lists,
            Some("roll-up took") => &mut self.roll_ups,
            Some("listening") => {
                self.listening = Some(fields.clone());
                return;
            }
            _ => {
                self.last.push_back(text);
                if LAST_LINES < self.last.len() {
                    self.last.pop_front();
                }
                return;
            }
        };
        samples.extend(fields["ms"].as_f64());
    }
}

/// A running process.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    heard: Arc<Mutex<Heard>>,
    /// Where it answers.
    pub(crate) addr: SocketAddr,
    probes: SocketAddr,
    started: Instant,
    /// How long it took to listen.
    pub(crate) up_after: Duration,
}

impl Process {
    /// Starts `program` with a verb and flags, and returns once it listens.
    pub(crate) async fn start(
        program: &Path,
        name: &'static str,
        verb: &[&str],
        flags: Vec<String>,
    ) -> Result<Self, NotMeasured> {
        let started = Instant::now();
        let mut child = Command::new(program)
            .args(verb)
            .args(flags)
            .args([
                "--log-format=json",
                "--log-level=info,bigfleet_shard::timing=debug,bigfleet_operator::timing=debug",
            ])
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(NotMeasured::system(format!("cannot start the {name}")))?;
        let heard: Arc<Mutex<Heard>> = Arc::default();
        if let Some(stderr) = child.stderr.take() {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || {
                for text in BufReader::new(stderr).lines().map_while(Result::ok) {
                    lock(&heard).take(text);
                }
            });
        }
        let nowhere = SocketAddr::from(([0; 4], 0));
        let mut process = Self {
            name,
            child,
            heard,
            addr: nowhere,
            probes: nowhere,
            started,
            up_after: Duration::ZERO,
        };
        let listening = process.listening().await?;
        process.up_after = started.elapsed();
        let address = |field: &str| {
            let text = listening[field].as_str().unwrap_or_default();
            let refused = |_| process.failed(&format!("\"{text}\" is not an address"));
            text.parse().map_err(refused)
        };
        (process.addr, process.probes) = (address("addr")?, address("probes")?);
        Ok(process)
    }

    async fn listening(&mut self) -> Result<serde_json::Value, NotMeasured> {
        loop {
            let said = lock(&self.heard).listening.take();
            if let Some(said) = said {
                return Ok(said);
            }
            self.is_alive()?;
            if UP_WITHIN < self.started.elapsed() {
                return Err(self.failed("it does not listen"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// An error that says how it ended, if it did.
    pub(crate) fn is_alive(&mut self) -> Result<(), NotMeasured> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failed(&format!("it ended with {status}"))),
            Err(why) => Err(self.failed(&why.to_string())),
        }
    }

    /// What it did wrong, and what it said last.
    pub(crate) fn failed(&self, problem: &str) -> NotMeasured {
        let last: Vec<String> = lock(&self.heard).last.iter().cloned().collect();
        let problem = format!("{problem}\n{}", last.join("\n"));
        let process = self.name;
        NotMeasured::Process { process, problem }
    }

    /// Looks until the process calls itself ready; how long that took since it was started.
    pub(crate) async fn ready(&mut self) -> Result<Duration, NotMeasured> {
        loop {
            self.is_alive()?;
            let status = self
                .http("/readyz")?
                .split_whitespace()
                .nth(1)
                .map(str::to_owned);
            if status.as_deref() == Some("200") {
                return Ok(self.started.elapsed());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// All series of a metric, added up.
    pub(crate) fn metric(&self, name: &str) -> Result<f64, NotMeasured> {
        let text = self.http("/metrics")?;
        let values = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            (labels.is_empty() || labels.starts_with('{')).then(|| value.parse::<f64>().ok())?
        });
        Ok(values.sum())
    }

    fn http(&self, path: &str) -> Result<String, NotMeasured> {
        let system = || NotMeasured::system(format!("{}: {path}", self.name));
        let mut stream = TcpStream::connect(self.probes).map_err(system())?;
        let request = format!("GET {path} HTTP/1.0\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(system())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(system())?;
        Ok(text)
    }

    /// What it has logged of its work so far; forgotten then.
    pub(crate) fn timings(&self) -> Timings {
        let mut heard = lock(&self.heard);
        Timings {
            cycle_ms: Percentiles::of_numbers(std::mem::take(&mut heard.cycles)),
            commit_ms: Percentiles::of_numbers(std::mem::take(&mut heard.commits)),
            list_ms: Percentiles::of_numbers(std::mem::take(&mut heard.lists)),
        }
    }

    /// How long the roll-ups it has logged so far took to build, in milliseconds; forgotten then.
    pub(crate) fn roll_ups_ms(&self) -> Percentiles {
        Percentiles::of_numbers(std::mem::take(&mut lock(&self.heard).roll_ups))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
