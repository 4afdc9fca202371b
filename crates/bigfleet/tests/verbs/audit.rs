//! `bigfleet audit`: what an audit log says, read whole or as it is written.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::called::call;
use crate::shard_scene::{Folder, WITHIN};

#[test]
fn an_audit_log_says_what_happened_to_a_cluster_and_why() {
    let folder = Folder::new("habits-audit");
    let line = |at: &str, cluster: &str, outcome: &str, error: &str| {
        format!(
            "{{\"time\":\"2026-11-18T{at}Z\",\"msg\":\"action\",\"kind\":\"Provision\",\"machine\":\"m-{at}\",\
             \"cluster\":\"{cluster}\",\"outcome\":\"{outcome}\",\"reason\":\"phase1.speculative\",\"error\":\"{error}\"}}\n"
        )
    };
    let older = line("14:01:00", "x", "success", "") + &line("14:03:00", "x", "success", "");
    let newer = line("14:05:00", "x", "provider_error", "sold out")
        + &line("14:06:00", "y", "success", "")
        + "torn";
    std::fs::write(folder.file("audit.jsonl.1"), older).unwrap();
    std::fs::write(folder.file("audit.jsonl"), newer + "\n").unwrap();
    let file = folder.file("audit.jsonl").display().to_string();
    let between = [
        "--cluster=x",
        "--since=2026-11-18T14:02:00Z",
        "--until=2026-11-18T14:09:00Z",
    ];
    let lines = call(&[&["audit", &file][..], &between].concat());
    assert_eq!(lines.err, "1 line could not be read\n");
    let lines = lines.done();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains("error: sold out"), "{lines}");
    let summary = call(&[&["audit", &file, "--summary"][..], &between].concat()).done();
    assert_eq!(
        summary,
        "cluster x: 2 lines from 2026-11-18T14:03:00Z to 2026-11-18T14:05:00Z\n       \
         1 Provision provider_error of 1 machine: 1 bought for a Need that was short; last error: sold out\n       \
         1 Provision success of 1 machine: 1 bought for a Need that was short\n"
    );
    let wrong = call(&["audit", &file, "--since=soon"]).refused();
    assert!(wrong.contains("--since"), "{wrong}");
}

fn action_line(machine: &str, cluster: &str) -> String {
    format!(
        "{{\"time\":\"2026-11-18T14:01:00Z\",\"msg\":\"action\",\"kind\":\"Provision\",\
         \"machine\":\"{machine}\",\"cluster\":\"{cluster}\",\"outcome\":\"success\"}}\n"
    )
}

/// `audit --follow` as a process, and the lines it prints.
struct Followed {
    child: Child,
    lines: Receiver<String>,
}

impl Followed {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bigfleet"))
            .args(["audit", "--follow"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                drop(tell.send(line));
            }
        });
        Self { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(WITHIN).unwrap()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_log_is_followed_line_by_line() {
    let folder = Folder::new("audit-follow");
    let path = folder.file("audit.jsonl");
    let write = |text: &str| {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let line = action_line;
    write(&line("m1", "x"));
    let file = path.display().to_string();
    let followed = Followed::start(&[&file, "--cluster=x"]);
    assert!(followed.next().contains("m1"));
    // Half a line is none, and what another cluster did is not asked for.
    write(&line("m2", "y"));
    let whole = line("m3", "x");
    let (half, rest) = whole.split_at(20);
    write(half);
    write(rest);
    assert!(followed.next().contains("m3"));
}

/// The log of a busy shard is set aside many times between two looks at it, and its numbers move on meanwhile.
#[test]
fn a_log_that_is_set_aside_again_and_again_is_followed_without_a_gap() {
    let folder = Folder::new("audit-rotations");
    let path = folder.file("audit.jsonl");
    let numbered = |number: u32| folder.file(&format!("audit.jsonl.{number}"));
    std::fs::write(&path, action_line("m0", "x")).unwrap();
    let file = path.display().to_string();
    let followed = Followed::start(&[&file]);
    assert!(followed.next().contains(" m0 "));
    const FILES: u32 = 20;
    let mut written = 0;
    // As a shard does it: what is kept moves on by one number, and the next line begins a new file.
    for number in 0..FILES {
        for kept in (1..=number).rev() {
            std::fs::rename(numbered(kept), numbered(kept + 1)).unwrap();
        }
        std::fs::rename(&path, numbered(1)).unwrap();
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        for _ in 0..3 {
            written += 1;
            let line = action_line(&format!("m{written}"), "x");
            file.write_all(line.as_bytes()).unwrap();
        }
        // Some rotations fall between two looks, some do not.
        if number % 5 == 4 {
            for machine in written - 14..=written {
                let said = followed.next();
                assert!(said.contains(&format!(" m{machine} ")), "{machine}: {said}");
            }
        }
    }
    assert_eq!(written, 3 * FILES);
}
