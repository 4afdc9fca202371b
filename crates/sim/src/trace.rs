//! The trace: what happened, line by line, and a digest of it that costs next to nothing.
//!
//! ```text
//! 12.345 tell 1 RolledUp a 0-3 [cpu=4 memory=16Gi]
//! 12.345 commit 0000000100000004 Provision spec-0003 a
//! 20.000 sample short=0 pending=2 states=… clusters=a:0/3/1
//! ```
//!
//! Every line is a function of the seed. The digest covers every event and commit whether or not
//! lines are kept, so two runs can be compared without keeping either. What a file of them looks like is
//! the business of `trace_file`.

use crate::{
    clock::Moment,
    descriptions,
    log::{Committed, Sample},
};
use bigfleet_model::MachineId;
use bigfleet_provider_kit::Machine;
use bigfleet_shard_core::{AuditRecord, CallOutcome, Event, Got, Listed, OperationId};
use std::fmt::Write;

/// Lines, if they are wanted, and the digest.
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
    digest: u64,
}

impl Trace {
    /// Keeps lines only if they are wanted.
    pub(crate) fn new(lines: bool) -> Self {
        Self {
            lines: lines.then(Vec::new),
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    /// A line about something that is not in the digest by itself: its consequences are.
    pub(crate) fn line(&mut self, now: Moment, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now} {}", text()));
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A process is told something.
    pub(crate) fn event(&mut self, now: Moment, epoch: u64, event: &Event) {
        self.feed(&now.0.to_le_bytes());
        self.feed(&[epoch as u8, tag(event)]);
        self.line(now, || format!("tell {epoch} {}", told(event)));
    }

    /// An action is committed.
    pub(crate) fn committed(&mut self, now: Moment, id: OperationId, what: &Committed) {
        self.feed(&now.0.to_le_bytes());
        self.feed(&[what.kind as u8]);
        self.feed(what.machine.as_str().as_bytes());
        self.line(now, || {
            let cluster = what.cluster.as_ref().map_or("-", |one| one.as_str());
            format!(
                "commit {id} {} {} {cluster}",
                what.kind.word(),
                what.machine
            )
        });
    }

    /// An object of a cluster changed.
    pub(crate) fn stored(&mut self, now: Moment, cluster: usize, what: &str) {
        self.feed(&now.0.to_le_bytes());
        self.feed(&[cluster as u8]);
        self.feed(what.as_bytes());
        self.line(now, || format!("stored {cluster} {what}"));
    }

    /// A machine is something else at the provider.
    pub(crate) fn machine(&mut self, now: Moment, id: &MachineId, machine: Option<&Machine>) {
        self.line(now, || match machine {
            Some(one) => format!("provider {id} {} {}", one.state, one.cluster),
            None => format!("provider {id} gone"),
        });
    }

    pub(crate) fn audit(&mut self, now: Moment, record: &AuditRecord) {
        self.line(now, || {
            let operation = record.operation.map_or("-".to_owned(), |id| id.to_string());
            let kind = record.kind.map_or("-", |kind| kind.word());
            let (machine, outcome) = (&record.machine, record.outcome.label());
            format!("audit {operation} {kind} {machine} {outcome}")
        });
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let list = |counts: &[u32]| {
            let texts: Vec<String> = counts.iter().map(u32::to_string).collect();
            texts.join(",")
        };
        self.line(sample.at, || {
            let states = list(&sample.states);
            let (short, pending) = (sample.short, sample.pending);
            let clusters: Vec<String> = sample
                .clusters
                .iter()
                .map(|(id, [on_its_way, serves, leaves])| {
                    format!("{id}:{on_its_way}/{serves}/{leaves}")
                })
                .collect();
            let clusters = clusters.join(",");
            format!("sample short={short} pending={pending} states={states} clusters={clusters}")
        });
    }
}

fn tag(event: &Event) -> u8 {
    match event {
        Event::Woken => 0,
        Event::CycleDue => 1,
        Event::Persisted { .. } => 2,
        Event::ListPage { .. } => 3,
        Event::ListEnded { .. } => 4,
        Event::GotMachine { .. } => 5,
        Event::CallEnded { .. } => 6,
        Event::SessionOpened { .. } => 7,
        Event::HelloAgain { .. } => 8,
        Event::SessionClosed { .. } => 9,
        Event::RolledUp { .. } => 10,
        Event::BlobAnswered { .. } => 11,
        Event::DrainReported { .. } => 12,
        Event::NodesReported { .. } => 13,
        // Rare, and set off by the timeline: what follows from them is in the digest.
        _ => 14,
    }
}

/// An event in a few words.
fn told(event: &Event) -> String {
    match event {
        Event::Woken => "Woken".to_owned(),
        Event::CycleDue => "CycleDue".to_owned(),
        Event::Persisted { barrier } => format!("Persisted {}", barrier.0),
        Event::ListPage { machines, .. } => format!("ListPage of {}", machines.len()),
        Event::ListEnded { outcome, .. } => match outcome {
            Listed::Complete { full, removed, .. } => {
                format!("ListEnded full={full} removed={}", removed.len())
            }
            Listed::Failed => "ListEnded failed".to_owned(),
        },
        Event::GotMachine { answer, .. } => match answer {
            Got::Found(one) => format!("Got {} {}", one.machine.id(), one.machine.state()),
            Got::NotFound => "Got nothing".to_owned(),
            Got::Failed => "Got failed".to_owned(),
        },
        Event::CallEnded {
            operation, outcome, ..
        } => match outcome {
            CallOutcome::Acked { seen: one, .. } => {
                format!(
                    "CallEnded {operation} {} {}",
                    one.machine.id(),
                    one.machine.state()
                )
            }
            CallOutcome::NeverSent => format!("CallEnded {operation} never sent"),
            CallOutcome::Refused { code, .. } => format!("CallEnded {operation} {code:?}"),
        },
        Event::SessionOpened { cluster, .. } => format!("SessionOpened {cluster}"),
        Event::HelloAgain { .. } => "HelloAgain".to_owned(),
        Event::SessionClosed { session } => format!("SessionClosed {}", session.0),
        Event::RolledUp {
            cluster,
            rollup_id,
            rows,
            ..
        } => {
            let mut text = format!("RolledUp {cluster} {rollup_id}");
            for row in rows.iter().flatten().take(4) {
                let _ = write!(text, " [{}]", descriptions::amounts(&row.aggregate));
            }
            text
        }
        Event::BlobAnswered { request, .. } => format!("BlobAnswered {request}"),
        Event::DrainReported { machine, phase, .. } => format!("Drain {machine} {phase:?}"),
        Event::NodesReported { nodes, .. } => format!("NodesReported {}", nodes.len()),
        other => {
            let text = format!("{other:?}");
            text.chars().take(80).collect()
        }
    }
}
