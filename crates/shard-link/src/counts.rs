//! What became of reports, and of what the coordinator asked for, as numbers beside the shard's own.
//!
//! ```text
//! report ─▶ acknowledged · not_acknowledged · refused · superseded · not_leader · unreachable · panicked     reports, by outcome
//! ack delivered ─▶ accepted · rejected_stale · rejected_invalid · failed           instructions, by answer
//! ```
//!
//! Both sets are closed, so no coordinator can make the page longer; the words of the last refusal are in
//! the log. An instruction is counted when its answer has arrived, so one that is given twice is counted
//! twice, as it was answered twice.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bigfleet_shard_core::{Disposition, InstructionAck, Number, Value};
use tonic::Code;

/// How a report ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    Acknowledged,
    /// It was answered, and the answer does not say that it was taken.
    NotAcknowledged,
    /// Somebody was there and said no.
    Refused,
    /// Another process is on record as this shard (CO-13).
    Superseded,
    /// Somebody was there, and nobody who leads.
    NotLeader,
    /// Nobody answered in time.
    Unreachable,
    /// It was given up here.
    Panicked,
}

impl Ended {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Acknowledged, "acknowledged"),
        (Self::NotAcknowledged, "not_acknowledged"),
        (Self::Refused, "refused"),
        (Self::Superseded, "superseded"),
        (Self::NotLeader, "not_leader"),
        (Self::Unreachable, "unreachable"),
        (Self::Panicked, "panicked"),
    ];

    /// A code says whether somebody was there to give it.
    pub(crate) fn by_code(code: Code) -> Self {
        match code {
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                Self::Unreachable
            }
            Code::AlreadyExists => Self::Superseded,
            Code::FailedPrecondition => Self::NotLeader,
            Code::Ok
            | Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => Self::Refused,
        }
    }
}

/// How instructions are answered.
const ANSWERS: [(Disposition, &str); 4] = [
    (Disposition::Accepted, "accepted"),
    (Disposition::RejectedStale, "rejected_stale"),
    (Disposition::RejectedInvalid, "rejected_invalid"),
    (Disposition::Failed, "failed"),
];

/// What there is to say of the coordinator.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    reports: BTreeMap<&'static str, u64>,
    answers: BTreeMap<&'static str, u64>,
    connected: bool,
    last_success: f64,
}

impl Counts {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A report ended, at this moment by everybody's clock.
    pub(crate) fn reported(&self, ended: Ended, unix_seconds: f64) {
        let mut counted = self.counted();
        let word = Ended::ALL.iter().find(|(one, _)| *one == ended);
        if let Some((_, word)) = word {
            *counted.reports.entry(word).or_default() += 1;
        }
        counted.connected = ended == Ended::Acknowledged;
        if counted.connected {
            counted.last_success = unix_seconds;
        }
    }

    /// These answers have arrived.
    pub(crate) fn answered(&self, acks: &[InstructionAck]) {
        let mut counted = self.counted();
        for ack in acks {
            let word = ANSWERS.iter().find(|(one, _)| *one == ack.disposition);
            if let Some((_, word)) = word {
                *counted.answers.entry(word).or_default() += 1;
            }
        }
    }

    /// The series, those of one name together and all of them from the start.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let counted = self.counted();
        let gauge = |name, value| Number {
            name,
            labels: Vec::new(),
            value: Value::Gauge(value),
        };
        let count = |name, word: &'static str, of: &BTreeMap<&'static str, u64>| Number {
            name,
            labels: vec![("outcome", word.to_owned())],
            value: Value::Counter(of.get(word).copied().unwrap_or_default()),
        };
        let mut numbers = vec![
            gauge(
                "bigfleet_shard_coordinator_connected",
                f64::from(u8::from(counted.connected)),
            ),
            gauge(
                "bigfleet_shard_coordinator_last_success_timestamp_seconds",
                counted.last_success,
            ),
        ];
        let reports = Ended::ALL.map(|(_, word)| word);
        let answers = ANSWERS.map(|(_, word)| word);
        let name = "bigfleet_shard_coordinator_reports_total";
        numbers.extend(reports.map(|word| count(name, word, &counted.reports)));
        let name = "bigfleet_shard_coordinator_instructions_total";
        numbers.extend(answers.map(|word| count(name, word, &counted.answers)));
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(counts: &Counts) -> Vec<String> {
        let line = |number: &Number| {
            let name = number
                .name
                .trim_start_matches("bigfleet_shard_coordinator_");
            let labels: Vec<&str> = number.labels.iter().map(|(_, of)| of.as_str()).collect();
            let value = match &number.value {
                Value::Counter(count) => count.to_string(),
                Value::Gauge(value) => value.to_string(),
                Value::Histogram(_) => "a histogram".to_owned(),
            };
            format!("{name} {} {value}", labels.join(" "))
        };
        let all = counts.numbers();
        let shown = all.iter().map(line);
        shown.filter(|line| !line.ends_with(" 0")).collect()
    }

    #[test]
    fn one_that_refuses_is_told_from_one_that_is_away() {
        let counts = Counts::default();
        assert_eq!(counts.numbers().len(), 13, "from the start");
        counts.reported(Ended::by_code(Code::Unavailable), 1.0);
        counts.reported(Ended::Acknowledged, 2.0);
        assert!(shown(&counts).contains(&"connected  1".to_owned()));
        counts.reported(Ended::by_code(Code::PermissionDenied), 3.0);
        counts.reported(Ended::by_code(Code::AlreadyExists), 4.0);
        counts.reported(Ended::by_code(Code::FailedPrecondition), 5.0);
        let ack = |disposition| InstructionAck {
            id: "i".to_owned(),
            disposition,
            reason: String::new(),
        };
        counts.answered(&[ack(Disposition::Accepted), ack(Disposition::Failed)]);
        assert_eq!(
            shown(&counts),
            [
                "last_success_timestamp_seconds  2",
                "reports_total acknowledged 1",
                "reports_total refused 1",
                "reports_total superseded 1",
                "reports_total not_leader 1",
                "reports_total unreachable 1",
                "instructions_total accepted 1",
                "instructions_total failed 1",
            ]
        );
    }
}
