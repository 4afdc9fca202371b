//! The audit log: one JSON object per line for everything that was done, suppressed or shown (AU-1), and
//! for everything an admin asked for.
//!
//! ```text
//! core ── Audit ──▶ {"msg":"action", machine, kind, reason, outcome …}
//! admins ─────────▶ {"msg":"admin", verb, by, reason, asked, outcome …}      refusals too
//! rails ──────────▶ {"msg":"rail", rail, cluster, detail …}                  what was held back
//! changes ────────▶ {"msg":"event", kind, severity, cluster, detail}         what `get events` shows (AU-6)
//! repeated ───────▶ {"msg":"summary", kind, outcome, count, since, until}    what was not written one by one
//! ```
//!
//! A thread of its own writes, so a slow disk delays no cycle. Lines reach the system as they come, so a killed
//! process loses none it had written. A line that was cut short, by a full disk or a kill, is ended before the
//! next: one is lost, not two.
//!
//! What would be said again is not (`summary`), no more than so much is written in a second (`pace`), and full
//! files are set aside (`file`): nothing that a shard decides, however often, fills a disk (AU-4).

mod file;
mod pace;
mod summary;

pub use file::Rotation;

use file::Reopening;
use pace::{MOST_BYTES, Pace};
use summary::{Summaries, Summary};

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use bigfleet_model::Time;
use bigfleet_shard_core::AuditRecord;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Lines that wait for the disk: several seconds of the busiest shard.
const WAITING: usize = 65_536;
/// As much is written at once.
const BATCH: usize = 64 << 10;
/// What was not written one by one is summed up so often.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// What was not written as it came.
#[derive(Debug, Default)]
pub(crate) struct AuditCounts {
    /// Lines that could not be written.
    pub(crate) lost: AtomicU64,
    /// Actions that are only in summaries.
    pub(crate) summarised: AtomicU64,
}

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

/// Something that changed around the machines (AU-6): a session, the provider, a certificate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangeRecord {
    pub(crate) time: Time,
    pub(crate) kind: &'static str,
    pub(crate) severity: &'static str,
    /// Empty where it concerns the whole shard.
    pub(crate) cluster: String,
    pub(crate) detail: String,
}

/// A line on its way to the disk.
#[derive(Debug)]
enum Line {
    Action(Box<AuditRecord>),
    Admin(Box<AdminRecord>),
    Rail(Box<RailRecord>),
    Change(Box<ChangeRecord>),
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
    shared: Arc<Shared>,
}

/// What the writer and those who hand lines over share.
#[derive(Debug)]
struct Shared {
    shard: String,
    counts: Arc<AuditCounts>,
    summaries: Summaries,
    /// The end has come: nobody waits for the pace any more.
    is_ending: AtomicBool,
}

impl Shared {
    fn lose(&self, lines: u64) {
        self.counts.lost.fetch_add(lines, Ordering::Relaxed);
    }

    fn sum_up(&self, record: &AuditRecord) {
        self.summaries.add(record);
        self.counts.summarised.fetch_add(1, Ordering::Relaxed);
    }
}

impl AuditLines {
    /// Hands over a line. The log is a record and not a gate: what there is no room for is summed up or lost,
    /// and counted, rather than holding up the shard.
    fn write(&self, line: Line) {
        match self.lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(Line::Action(record))) => self.shared.sum_up(&record),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.shared.lose(1),
        }
    }

    /// Hands over what an admin asked for.
    pub(crate) fn admin(&self, record: AdminRecord) {
        self.write(Line::Admin(Box::new(record)));
    }

    /// Hands over what changed.
    pub(crate) fn change(&self, record: ChangeRecord) {
        self.write(Line::Change(Box::new(record)));
    }
}

impl AuditLog {
    /// Opens the file; one that cannot be opened stops the start (AU-2).
    pub(crate) fn start(
        path: &Path,
        rotation: Rotation,
        shard: &str,
        counts: Arc<AuditCounts>,
    ) -> io::Result<Self> {
        let file = Reopening::open(path, rotation)?;
        let (lines, waiting) = sync_channel(WAITING);
        let shared = Arc::new(Shared {
            shard: shard.to_owned(),
            counts,
            summaries: Summaries::default(),
            is_ending: AtomicBool::new(false),
        });
        let most = usize::try_from(rotation.max_bytes).unwrap_or(BATCH);
        let writer = Writer {
            file,
            shared: Arc::clone(&shared),
            pace: Pace::new(MOST_BYTES, Instant::now()),
            batch: if most == 0 { BATCH } else { most.min(BATCH) },
            is_failing: false,
        };
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.write_all(&waiting))?;
        Ok(Self {
            lines: AuditLines { lines, shared },
            thread,
        })
    }

    /// The way to it, for whoever writes beside the driver.
    pub(crate) fn lines(&self) -> AuditLines {
        self.lines.clone()
    }

    /// Hands over what was done, or what would be.
    pub(crate) fn action(&self, record: AuditRecord) {
        self.lines.write(Line::Action(Box::new(record)));
    }

    /// Counts what was handed over already and is decided again.
    pub(crate) fn again(&self, record: &AuditRecord) {
        self.lines.shared.sum_up(record);
    }

    /// Hands over what a rail held back.
    pub(crate) fn rail(&self, record: RailRecord) {
        self.lines.write(Line::Rail(Box::new(record)));
    }

    /// Writes what still waits.
    pub(crate) fn close(self) {
        self.lines.shared.is_ending.store(true, Ordering::Relaxed);
        // A thread that is gone has nothing left to write.
        drop(self.lines.lines.send(Line::End));
        drop(self.thread.join());
    }
}

/// The text of a line; `None` after the last.
fn text(line: Line, shard: &str) -> Option<String> {
    let (time, msg, fields) = match line {
        Line::Action(record) => (record.time, "action", action(&record)),
        Line::Admin(record) => (record.time, "admin", admin(*record)),
        Line::Rail(record) => (record.time, "rail", rail(*record)),
        Line::Change(record) => (record.time, "event", change(*record)),
        Line::End => return None,
    };
    Some(completed(fields, time, msg, shard))
}

/// A line with what every line has.
fn completed(mut fields: Value, time: Time, msg: &str, shard: &str) -> String {
    fields["time"] = rfc3339(time).into();
    fields["level"] = "INFO".into();
    fields["msg"] = msg.into();
    fields["shard"] = shard.into();
    format!("{fields}\n")
}

/// Whoever writes, in a thread of its own.
struct Writer {
    file: Reopening,
    shared: Arc<Shared>,
    pace: Pace,
    /// Bytes that are written at once.
    batch: usize,
    /// The last write did not succeed, and that was said.
    is_failing: bool,
}

impl Writer {
    fn write_all(mut self, waiting: &Receiver<Line>) {
        let mut summed_up = Instant::now();
        let mut is_over = false;
        while !is_over {
            let left = SUMMARY_EVERY.saturating_sub(summed_up.elapsed());
            match waiting.recv_timeout(left) {
                Ok(first) => is_over = self.write_batch(first, waiting),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_over = true,
            }
            if is_over || SUMMARY_EVERY <= summed_up.elapsed() {
                summed_up = Instant::now();
                self.sum_up();
            }
        }
    }

    /// Writes a line and what waits behind it, as far as that is written at once; says whether it was the
    /// last.
    fn write_batch(&mut self, first: Line, waiting: &Receiver<Line>) -> bool {
        let (mut batch, mut count) = (String::new(), 0);
        let mut next = Some(first);
        let mut is_over = false;
        while let Some(line) = next.take() {
            let Some(text) = text(line, &self.shared.shard) else {
                is_over = true;
                break;
            };
            if !batch.is_empty() && self.batch < batch.len() + text.len() {
                self.write(&batch, count);
                batch.clear();
                count = 0;
            }
            batch.push_str(&text);
            count += 1;
            if batch.len() < self.batch {
                next = waiting.try_recv().ok();
            }
        }
        self.write(&batch, count);
        is_over
    }

    fn write(&mut self, batch: &str, lines: u64) {
        if batch.is_empty() {
            return;
        }
        match self.file.write(batch) {
            Ok(()) => self.is_failing = false,
            Err(why) => {
                self.shared.lose(lines);
                if !self.is_failing {
                    let path = self.file.path.display();
                    tracing::error!(%path, err = %why, "the audit log cannot be written");
                }
                self.is_failing = true;
            }
        }
        let wait = self.pace.written(batch.len(), Instant::now());
        if !wait.is_zero() && !self.shared.is_ending.load(Ordering::Relaxed) {
            std::thread::sleep(wait); // at most as long as this batch is worth
        }
    }

    /// Says how much was not written one by one.
    fn sum_up(&mut self) {
        for summary in self.shared.summaries.take() {
            let fields = summed_up(&summary);
            let line = completed(fields, summary.until, "summary", &self.shared.shard);
            self.write(&line, 1);
        }
    }
}

fn summed_up(summary: &Summary) -> Value {
    json!({
        "kind": summary.kind,
        "outcome": summary.outcome,
        "count": summary.count,
        "since": rfc3339(summary.since),
        "until": rfc3339(summary.until),
    })
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
        "said": record.said,
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

fn change(record: ChangeRecord) -> Value {
    json!({
        "kind": record.kind,
        "severity": record.severity,
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
            said: String::new(),
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
        let mut file = Reopening::open(&path, Rotation::default()).unwrap();
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
        let counts = Arc::new(AuditCounts::default());
        let rotation = Rotation::default();
        let log = AuditLog::start(&path, rotation, "s1", Arc::clone(&counts)).unwrap();
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
            counts.lost.load(Ordering::Relaxed),
            1,
            "what came too late is counted"
        );
        std::fs::remove_file(&path).unwrap();
    }

    /// AU-4: a pause of a thousand cycles is a line per machine and what it would have been, and a sum.
    #[test]
    fn what_is_intended_is_said_once_and_then_summed_up() {
        let name = format!("bigfleet-audit-intentions-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_file(&path));
        let counts = Arc::new(AuditCounts::default());
        let rotation = Rotation::default();
        let log = AuditLog::start(&path, rotation, "s1", Arc::clone(&counts)).unwrap();
        let mut intentions = crate::intentions::Intentions::default();
        let mut decide = |record: AuditRecord| {
            if intentions.is_news(&record) {
                log.action(record);
            } else {
                log.again(&record);
            }
        };
        for cycle in 0..1000 {
            for machine in ["m1", "m2"] {
                let kind = if machine == "m2" && 500 <= cycle {
                    ActionKind::Reclaim
                } else {
                    ActionKind::Delete
                };
                decide(AuditRecord {
                    cycle,
                    kind: Some(kind),
                    outcome: Outcome::Suppressed,
                    ..record(machine)
                });
            }
        }
        decide(record("m1"));
        decide(AuditRecord {
            outcome: Outcome::Suppressed,
            ..record("m1")
        });
        log.close();
        let text = std::fs::read_to_string(&path).unwrap();
        let read = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let read: Vec<serde_json::Value> = read.collect();
        let said = |line: &serde_json::Value| {
            let of = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let count = line["count"].as_u64().unwrap_or(1);
            format!("{} {} {} {count}", of("machine"), of("kind"), of("outcome"))
        };
        let said: Vec<String> = read.iter().map(said).collect();
        assert_eq!(
            said,
            [
                "m1 Delete suppressed 1",
                "m2 Delete suppressed 1",
                "m2 Reclaim suppressed 1",
                "m1 Delete success 1",
                "m1 Delete suppressed 1",
                " Delete suppressed 1498",
                " Reclaim suppressed 499",
            ]
        );
        assert_eq!(counts.summarised.load(Ordering::Relaxed), 1997);
        assert_eq!(counts.lost.load(Ordering::Relaxed), 0);
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
        let mut file = Reopening::open(&path, Rotation::default()).unwrap();
        file.write(&line("m1")).unwrap();
        std::fs::rename(&path, &aside).unwrap();
        file.write(&line("m2")).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write(&line("m3")).unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&aside).contains("m1") && !read(&aside).contains("m2"));
        assert!(read(&path).contains("m3"));
        std::fs::remove_dir_all(&folder).unwrap();
        let counts = Arc::new(AuditCounts::default());
        assert!(
            AuditLog::start(&path, Rotation::default(), "s1", counts).is_err(),
            "its folder is gone"
        );
    }
}
