//! `bigfleet provider fake` as a process of its own, known by what it logs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);

/// Killed when dropped.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<serde_json::Value>,
    pub(crate) addr: SocketAddr,
    pub(crate) probes: SocketAddr,
}

pub(crate) fn command(flags: &[OsString]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet"));
    command
        .args(["provider", "fake", "--log-format=json"])
        .args(["--addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0"])
        .args(flags)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

impl Process {
    /// Starts it, and returns once it says that it listens.
    pub(crate) fn start(flags: &[OsString]) -> Self {
        let mut child = command(flags).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (line, lines) = channel();
        std::thread::spawn(move || {
            for text in log.lines().map_while(Result::ok) {
                let parsed = serde_json::from_str(&text);
                drop(line.send(parsed.unwrap_or(serde_json::Value::String(text))));
            }
        });
        let nowhere = SocketAddr::from(([0; 4], 0));
        let mut process = Self {
            child,
            lines,
            addr: nowhere,
            probes: nowhere,
        };
        let listening = process.logged("listening");
        let address = |name: &str| listening["fields"][name].as_str().unwrap().parse();
        process.addr = address("addr").unwrap();
        process.probes = address("probes").unwrap();
        process
    }

    /// Waits for the next line that says this.
    pub(crate) fn logged(&self, message: &str) -> serde_json::Value {
        loop {
            let line = self.lines.recv_timeout(WITHIN);
            let line = line.unwrap_or_else(|_| panic!("it never said \"{message}\""));
            if line["fields"]["message"] == message {
                return line;
            }
        }
    }

    /// One of its metrics, by name and labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(self.probes).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        let value = value.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        value.trim().parse().unwrap()
    }

    /// Asks it to end, and answers with its exit code.
    #[allow(
        dead_code,
        reason = "not every test that shares this file ends it in order"
    )]
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
