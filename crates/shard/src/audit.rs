//! The audit log: one JSON object per line for everything that was done, suppressed or shown (AU-1), and
//! for everything an admin asked for.
//!
//! ```text
//! core ── Audit ──▶ {"msg":"action", machine, kind, reason, outcome …}
//! admins ─────────▶ {"msg":"admin", verb, by, reason, asked, outcome …}      refusals too
//! rails ──────────▶ {"msg":"rail", rail, cluster, detail …}                  what was held back
//! ```
//!
//! A thread of its own writes, so a slow disk delays no cycle. Before a batch it looks whether the path
//! still leads to the file it holds: whoever rotates logs renames the file, and the next line goes to a
//! new one. Lines reach the system as they come, so a killed process loses none it had written. A line
//! that was cut short, by a full disk or a kill, is ended before the next: one is lost, not two.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bigfleet_model::Time;
use bigfleet_shard_core::AuditRecord;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Lines that wait for the disk: several seconds of the busiest shard.
const WAITING: usize = 65_536;

/// What an admin asked for, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdminRecord {
    pub(crate) time: Time,
    pub(crate) verb: &'static str,
    /// Who asked, by certificate or by address.
    pub(crate) by: String,
    pub(crate) reason: String,
    pub(crate) dry_run: bool,
    /// The rest of the request.
    pub(crate) asked: Value,
    /// The status code of a refusal, or `done`.
    pub(crate) outcome: String,
    /// What was answered: the answer's fields, or `refused` and why.
    pub(crate) detail: Value,
}

/// A rail that held something back (operations gap 24).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RailRecord {
    pub(crate) time: Time,
    pub(crate) cycle: u64,
    pub(crate) rail: &'static str,
    /// Empty where it is not one cluster's.
    pub(crate) cluster: String,
    pub(crate) detail: Value,
}

/// A line on its way to the disk.
#[derive(Debug)]
enum Line {
    Action(Box<AuditRecord>),
    Admin(Box<AdminRecord>),
    Rail(Box<RailRecord>),
    /// The last one: whoever still holds a way to the log writes no more.
    End,
}

/// The audit log at work.
pub(crate) struct AuditLog {
    lines: AuditLines,
    thread: std::thread::JoinHandle<()>,
}

/// The way to the log.
#[derive(Clone, Debug)]
pub(crate) struct AuditLines {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

impl AuditLines {
    /// Hands over a line. The log is a record and not a gate: a disk that is too slow for it loses
    /// lines, counted, rather than holding up the shard.
    fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Hands over what an admin asked for.
    pub(crate) fn admin(&self, record: AdminRecord) {
        self.write(Line::Admin(Box::new(record)));
    }
}

impl AuditLog {
    /// Opens the file; one that cannot be opened stops the start (AU-2).
    pub(crate) fn start(path: &Path, shard: &str, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let mut file = Reopening::open(path)?;
        let shard = shard.to_owned();
        let (lines, waiting) = sync_channel(WAITING);
        let unwritten = Arc::clone(&lost);
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_all(&mut file, &shard, &waiting, &unwritten))?;
        let lines = AuditLines { lines, lost };
        Ok(Self { lines, thread })
    }

    /// The way to it, for whoever writes beside the driver.
    pub(crate) fn lines(&self) -> AuditLines {
        self.lines.clone()
    }

    /// Hands over what was done.
    pub(crate) fn action(&self, record: AuditRecord) {
        self.lines.write(Line::Action(Box::new(record)));
    }

    /// Hands over what a rail held back.
    pub(crate) fn rail(&self, record: RailRecord) {
        self.lines.write(Line::Rail(Box::new(record)));
    }

    /// Writes what still waits.
    pub(crate) fn close(self) {
        // A thread that is gone has nothing left to write.
        drop(self.lines.lines.send(Line::End));
        drop(self.thread.join());
    }
}

/// The text of a line; `None` after the last.
fn text(line: Line, shard: &str) -> Option<String> {
    let (time, msg, mut fields) = match line {
        Line::Action(record) => (record.time, "action", action(&record)),
        Line::Admin(record) => (record.time, "admin", admin(*record)),
        Line::Rail(record) => (record.time, "rail", rail(*record)),
        Line::End => return None,
    };
    fields["time"] = rfc3339(time).into();
    fields["level"] = "INFO".into();
    fields["msg"] = msg.into();
    fields["shard"] = shard.into();
    Some(format!("{fields}\n"))
}

fn write_all(file: &mut Reopening, shard: &str, waiting: &Receiver<Line>, lost: &AtomicU64) {
    let (mut failing, mut ended) = (false, false);
    while !ended && let Ok(first) = waiting.recv() {
        let (mut batch, mut count) = (String::new(), 0);
        let rest = std::iter::from_fn(|| waiting.try_recv().ok());
        for line in std::iter::once(first).chain(rest) {
            let Some(text) = text(line, shard) else {
                ended = true;
                break;
            };
            batch.push_str(&text);
            count += 1;
        }
        match file.write(&batch) {
            Ok(()) => failing = false,
            Err(why) => {
                lost.fetch_add(count, Ordering::Relaxed);
                if !failing {
                    let path = file.path.display();
                    tracing::error!(%path, err = %why, "the audit log cannot be written");
                }
                failing = true;
            }
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o644)
        .open(path)
}

/// A file that is opened again once its path leads elsewhere.
struct Reopening {
    path: PathBuf,
    file: File,
    /// It ends in the middle of a line.
    torn: bool,
}

impl Reopening {
    fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        let torn = is_torn(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            torn,
        })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let held = self.file.metadata()?;
        let there = std::fs::metadata(&self.path);
        let same = there.is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino()));
        if !same {
            *self = Self::open(&self.path)?;
        }
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        let written = self.file.write_all(text.as_bytes());
        self.torn = written.is_err();
        written
    }
}

/// Whether the last byte of a file ends no line. What cannot be read back, as a pipe, is taken for whole.
fn is_torn(path: &Path) -> io::Result<bool> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(io::SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The fields of an action's line, beside those every line has.
fn action(record: &AuditRecord) -> Value {
    let text = |of: Option<String>| of.unwrap_or_default();
    json!({
        "cycle": record.cycle,
        "decided_cycle": record.decided_cycle,
        "kind": record.kind.map_or("", |kind| kind.word()),
        "machine": record.machine.as_str(),
        "cluster": text(record.cluster.as_ref().map(ToString::to_string)),
        "reason": record.reason.map_or("", |reason| reason.text()),
        "grace_seconds": record.grace_seconds,
        "outcome": record.outcome.label(),
        "error": record.error,
        "operation": text(record.operation.map(|id| id.to_string())),
        "need": text(record.need.as_ref().map(ToString::to_string)),
        "priority": record.priority,
        "provider_operation": record.provider_operation,
        "duration_seconds": record.took_seconds,
        "price_per_hour": record.price,
        "epoch": record.epoch,
        "event": record.event,
    })
}

fn rail(record: RailRecord) -> Value {
    json!({
        "cycle": record.cycle,
        "rail": record.rail,
        "cluster": record.cluster,
        "detail": record.detail,
    })
}

fn admin(record: AdminRecord) -> Value {
    json!({
        "verb": record.verb,
        "by": record.by,
        "reason": record.reason,
        "dry_run": record.dry_run,
        "asked": record.asked,
        "outcome": record.outcome,
        "detail": record.detail,
    })
}

/// A moment in UTC, to the microsecond.
fn rfc3339(moment: Time) -> String {
    let timestamp = Timestamp::from_nanosecond(moment.nanos().into());
    let timestamp = timestamp.unwrap_or_default(); // 292 years either side of 1970 always fit
    format!("{timestamp:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{ActionKind, MachineId, Reason};
    use bigfleet_shard_core::Outcome;

    fn record(machine: &str) -> AuditRecord {
        AuditRecord {
            time: Time::from_seconds(951_827_696.25).unwrap(),
            cycle: 4,
            decided_cycle: 3,
            kind: Some(ActionKind::Delete),
            operation: None,
            machine: MachineId::new(machine).unwrap(),
            cluster: None,
            need: None,
            priority: None,
            reason: Some(Reason::Release),
            grace_seconds: 0,
            outcome: Outcome::Success,
            error: String::new(),
            provider_operation: "create-7".to_owned(),
            took_seconds: Some(1.5),
            price: Some(0.25),
            epoch: 2,
            event: 9,
        }
    }

    fn line(machine: &str) -> String {
        text(Line::Action(Box::new(record(machine))), "s1").unwrap()
    }

    /// A full disk or a kill cuts a line anywhere; what is written next is read all the same.
    #[test]
    fn a_line_that_was_cut_short_does_not_take_the_next_with_it() {
        let name = format!("bigfleet-audit-torn-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let whole = line("m1");
        std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
        let mut file = Reopening::open(&path).unwrap();
        file.write(&line("m2")).unwrap();
        file.torn = true; // as after a write that failed half way
        file.write(&line("m3")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
        let machines = text.lines().filter_map(read);
        let machines: Vec<String> = machines.map(|line| line["machine"].to_string()).collect();
        assert_eq!(machines, ["\"m1\"", "\"m2\"", "\"m3\""], "{text}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_has_the_fields_people_know() {
        let text = line("m1");
        assert!(text.ends_with('\n'));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (key, value) in [
            ("time", "2000-02-29T12:34:56.250000Z"),
            ("level", "INFO"),
            ("msg", "action"),
            ("kind", "Delete"),
            ("machine", "m1"),
            ("cluster", ""),
            ("reason", "phase3.release"),
            ("outcome", "success"),
            ("shard", "s1"),
            ("provider_operation", "create-7"),
        ] {
            assert_eq!(read[key], value, "{key}");
        }
        assert_eq!(
            (&read["duration_seconds"], &read["price_per_hour"]),
            (&1.5.into(), &0.25.into())
        );
        assert_eq!(
            (read["cycle"].as_u64(), read["decided_cycle"].as_u64()),
            (Some(4), Some(3))
        );
    }

    /// Somebody else still holds a way to it, and the log ends all the same.
    #[test]
    fn a_closed_log_has_every_line_that_was_handed_over_before() {
        let name = format!("bigfleet-audit-end-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_file(&path));
        let lost = Arc::new(AtomicU64::new(0));
        let log = AuditLog::start(&path, "s1", Arc::clone(&lost)).unwrap();
        let lines = log.lines();
        let asked = |verb| AdminRecord {
            time: Time::from_nanos(0),
            verb,
            by: "bigfleet://admin at 10.0.0.1:5".to_owned(),
            reason: "a flood".to_owned(),
            dry_run: false,
            asked: serde_json::json!({ "scope": "all" }),
            outcome: "done".to_owned(),
            detail: serde_json::json!({ "work_paused": 3 }),
        };
        log.action(record("m1"));
        lines.admin(asked("Pause"));
        log.close();
        lines.admin(asked("Resume"));
        let text = std::fs::read_to_string(&path).unwrap();
        let read = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let read: Vec<serde_json::Value> = read.collect();
        assert_eq!(read.len(), 2, "{text}");
        assert_eq!(
            (&read[1]["msg"], &read[1]["verb"]),
            (&"admin".into(), &"Pause".into())
        );
        assert_eq!(read[1]["asked"]["scope"], "all");
        assert_eq!(read[1]["detail"]["work_paused"], 3);
        assert_eq!(
            lost.load(Ordering::Relaxed),
            1,
            "what came too late is counted"
        );
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn moments_at_the_edges_of_years() {
        let text = |millis: i64| rfc3339(Time::from_nanos(millis * 1_000_000));
        assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(text(1_735_689_599_001), "2024-12-31T23:59:59.001000Z");
        assert_eq!(text(1_735_689_600_000), "2025-01-01T00:00:00.000000Z");
        assert_eq!(text(-1_000), "1969-12-31T23:59:59.000000Z");
        let just_before = Time::from_nanos(1_735_689_599_999_999_999);
        assert_eq!(rfc3339(just_before), "2024-12-31T23:59:59.999999Z");
    }

    #[test]
    fn a_renamed_log_is_followed_by_a_new_one_and_no_line_is_lost() {
        let folder = std::env::temp_dir().join(format!("bigfleet-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (path, aside) = (folder.join("audit.jsonl"), folder.join("audit.jsonl.1"));
        let mut file = Reopening::open(&path).unwrap();
        file.write(&line("m1")).unwrap();
        std::fs::rename(&path, &aside).unwrap();
        file.write(&line("m2")).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write(&line("m3")).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&aside).contains("m1") && !read(&aside).contains("m2"));
        assert!(read(&path).contains("m3"));
        std::fs::remove_dir_all(&folder).unwrap();
        let lost = Arc::new(AtomicU64::new(0));
        assert!(
            AuditLog::start(&path, "s1", lost).is_err(),
            "its folder is gone"
        );
    }
}
