//! A home of its own for a run of `bigfleet up`, and the run, known by the objects it prints.
//!
//! Whoever waits here waits for a line, with a deadline; nothing sleeps for luck.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for.
pub(crate) const WITHIN: Duration = Duration::from_secs(120);

/// Where a run may leave things, and must not: temporary files and the address of its shard.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let path = format!("bigfleet-home-{name}-{}", std::process::id());
        let home = Self(std::env::temp_dir().join(path));
        drop(std::fs::remove_dir_all(&home.0));
        std::fs::create_dir_all(home.left()).unwrap();
        home
    }

    /// Temporary files go here, and the address.
    pub(crate) fn left(&self) -> PathBuf {
        self.0.join("left")
    }

    /// A file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Nothing is left behind.
    #[track_caller]
    pub(crate) fn is_empty(&self) {
        let left = std::fs::read_dir(self.left()).unwrap();
        let left: Vec<PathBuf> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// This binary with this verb, at home here.
    pub(crate) fn bigfleet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
        self.settle(&mut command);
        command.args(args);
        command
    }

    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .env("TMPDIR", self.left())
            .env("XDG_RUNTIME_DIR", self.left())
            .env("BIGFLEET_CONFIG", self.0.join("config.yaml"))
            .env_remove("BIGFLEET_SHARD")
            .env_remove("BIGFLEET_CONTEXT")
            .env_remove("RUST_LOG")
            .current_dir(&self.0)
            .stdin(Stdio::null());
    }

    /// Runs a command to its end.
    pub(crate) fn ends(&self, args: &[&str]) -> Output {
        self.bigfleet(args).output().unwrap()
    }

    /// Starts `bigfleet up -o json` with these flags; answers once everything runs.
    pub(crate) fn up(&self, flags: &[&str]) -> Running {
        let mut command = self.bigfleet(&["up", "-o", "json"]);
        command.args(flags).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                drop(say.send(line));
            }
        });
        let mut running = Running {
            child,
            lines,
            seen: Vec::new(),
        };
        let first = running.until("it is up", |line| line["type"] == "started");
        assert_eq!(running.seen.len(), 1, "the first line says that it is up");
        running.seen = vec![first];
        running
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A run of `up`; killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    pub(crate) seen: Vec<Value>,
}

impl Running {
    /// The first line from here on that is so.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WITHIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let last: Vec<String> = self
                    .seen
                    .iter()
                    .rev()
                    .take(5)
                    .map(Value::to_string)
                    .collect();
                panic!(
                    "never: {what}; the last lines, newest first:\n{}",
                    last.join("\n")
                );
            };
            let line: Value = serde_json::from_str(&line).expect(&line);
            self.seen.push(line.clone());
            if is(&line) {
                return line;
            }
        }
    }

    /// The step that says this.
    #[track_caller]
    pub(crate) fn step(&mut self, text: &str) -> Value {
        self.until(text, |line| {
            says(line).is_some_and(|says| says.contains(text))
        })
    }

    /// Where something listens, as the first line said.
    pub(crate) fn addr(&self, what: &str) -> String {
        self.seen[0][what].as_str().unwrap().to_owned()
    }

    /// Asks it to end: its exit code, and the last line.
    #[track_caller]
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, Value) {
        let pid = self.child.id().to_string();
        Command::new("kill").args([signal, &pid]).status().unwrap();
        let last = self.until("a summary", |line| line["type"] == "summary");
        let code = self.child.wait().unwrap().code();
        assert!(self.lines.recv().is_err(), "the summary is the last line");
        for what in ["shard", "metrics", "provider"] {
            let addr = self.addr(what);
            assert!(
                TcpStream::connect(&addr).is_err(),
                "{what} still answers at {addr}"
            );
        }
        (code, last)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a step says.
pub(crate) fn says(line: &Value) -> Option<&str> {
    line["says"].as_str()
}

/// A count of a cycle's or summary's object.
pub(crate) fn count(line: &Value, of: &str, name: &str) -> u64 {
    line[of][name].as_u64().unwrap_or(0)
}

/// The workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
