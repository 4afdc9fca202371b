//! Processes of ours, known by what they log, and what it takes to wait for them.
//!
//! ```text
//! start ─▶ "listening", and where ─▶ asked, looked at ─▶ killed, asked to end, or ended by itself
//! ```
//!
//! Whoever waits here waits for something that can be seen, with a deadline; nothing sleeps for luck.

#![allow(
    dead_code,
    reason = "not every test that shares this file uses all of it"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for: a loaded machine is no reason to fail.
pub(crate) const WITHIN: Duration = Duration::from_secs(120);

/// A folder that is gone afterwards.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        // Tests of one binary run side by side, and two of them may choose one name.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = format!("bigfleet-{name}-{}-{nth}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What the audit log of the shard here says, a line each, once it has begun; a line that is still
    /// being written is not there yet.
    pub(crate) fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.file("data.audit")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A process of ours, known by what it logs. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<Vec<serde_json::Value>>>,
    /// Reads the log; ends with the process.
    reader: Option<std::thread::JoinHandle<()>>,
    pub(crate) addr: SocketAddr,
    pub(crate) probes: SocketAddr,
}

impl Process {
    pub(crate) fn start(verb: &[&str], flags: &[String]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        command.args(verb).args(flags).arg("--log-format=json");
        Self::spawn(command)
    }

    /// Starts it, and returns once it says that it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let log: Arc<Mutex<Vec<serde_json::Value>>> = Arc::default();
        let lines = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for text in stderr.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&text);
                let line = line.unwrap_or(serde_json::Value::String(text));
                lines.lock().unwrap().push(line);
            }
        });
        let nowhere = SocketAddr::from(([0; 4], 0));
        let mut process = Self {
            child,
            log,
            reader: Some(reader),
            addr: nowhere,
            probes: nowhere,
        };
        let listening = process.logged("listening");
        let address = |name: &str| listening["fields"][name].as_str().unwrap().parse();
        process.addr = address("addr").unwrap();
        // Empty for a shard that was told to have none.
        process.probes = address("probes").unwrap_or(nowhere);
        process
    }

    /// The first line that says this, waited for.
    pub(crate) fn logged(&mut self, message: &str) -> serde_json::Value {
        self.logged_time(1, message)
    }

    /// The line that says this for the n-th time, waited for.
    pub(crate) fn logged_time(&mut self, n: usize, message: &str) -> serde_json::Value {
        let deadline = Instant::now() + WITHIN;
        loop {
            let ended = self.child.try_wait().unwrap();
            // What it said before its end may still be on its way to us.
            if let Some(reader) = self.reader.take_if(|_| ended.is_some()) {
                reader.join().unwrap();
            }
            if let Some(line) = self.all_logged(message).into_iter().nth(n - 1) {
                return line;
            }
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "it never said \"{message}\" ({ended:?}):\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn text(&self) -> String {
        let log = self.log.lock().unwrap();
        let lines: Vec<String> = log.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// One of its metrics, by name and labels. A series appears when it is first counted, and nothing is
    /// shown before the first picture hangs: zero. A name without labels that is not there is a mistake.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.http("/metrics");
        let value = text.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(' ').then(|| rest.trim().parse().unwrap())
        });
        let is_shard = text.contains("\nbigfleet_shard_");
        let hangs = !is_shard || text.contains("\nbigfleet_shard_cycle ");
        let missing = value.is_none() && hangs && !name.contains('{');
        assert!(!missing, "no {name} in\n{text}");
        value.unwrap_or_default()
    }

    /// Waits for a metric to stand at this. What the core counts is shown with its next cycle, so whoever looks
    /// once looks too early.
    pub(crate) async fn shows(&self, metric: &str, value: f64) {
        until(metric, async || {
            let shown = self.metric(metric);
            (shown == value, shown)
        })
        .await;
    }

    /// Every line so far that says this.
    pub(crate) fn all_logged(&self, message: &str) -> Vec<serde_json::Value> {
        let log = self.log.lock().unwrap();
        let says = |line: &&serde_json::Value| line["fields"]["message"] == message;
        log.iter().filter(says).cloned().collect()
    }

    /// What an HTTP path answers.
    pub(crate) fn http(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.probes).unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The same without the lines before the page.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.http(path);
        let (_, page) = answer.split_once("\r\n\r\n").unwrap();
        page.to_owned()
    }

    /// What it has in memory, in MB.
    pub(crate) fn memory_mb(&self) -> f64 {
        let status = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(status).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.unwrap().parse::<f64>().unwrap() * 1.024 / 1000.0
    }

    /// Ends it without a word.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// The same for one that is held by others.
    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&self) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    }

    /// Stops it where it is, or lets it go on: to others it is there and says nothing.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let pid = self.child.id().to_string();
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        Command::new("kill").args([signal, &pid]).status().unwrap();
    }

    /// Asks it to end, and answers with its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.ask_to_end();
        self.child.wait().unwrap().code()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for it to end, for whatever reason.
    pub(crate) async fn over(&mut self) -> ExitStatus {
        let status = until("the end of the process", async || {
            let status = self.child.try_wait().unwrap();
            (status.is_some(), status)
        });
        status.await.unwrap()
    }

    /// Waits for it to end in the middle of something, on its own.
    pub(crate) async fn aborted(mut self) {
        use std::os::unix::process::ExitStatusExt;
        let status = self.over().await;
        assert_eq!(status.signal(), Some(6), "{status:?}:\n{}", self.text());
    }

    /// Waits for it to end by itself: the exit code, and what it wrote up to the line that says why.
    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let status = self.over().await;
        let text = until("a last line that says why", async || {
            (self.text().contains("bigfleet shard:"), self.text())
        })
        .await;
        (status.code(), text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A fake cloud with these flags.
pub(crate) fn provider(flags: &[&str]) -> Process {
    let mut all: Vec<String> = vec![
        "--addr=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
    ];
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Process::start(&["provider", "fake"], &all)
}

/// Looks until it holds, or fails saying what it was waiting for and what was there instead.
pub(crate) async fn until<T: std::fmt::Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> (bool, T),
) -> T {
    let deadline = Instant::now() + WITHIN;
    loop {
        let (holds, seen) = look().await;
        if holds {
            return seen;
        }
        assert!(
            Instant::now() < deadline,
            "never: {what}; there is {seen:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
