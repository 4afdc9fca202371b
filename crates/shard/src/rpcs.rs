//! How the provider answers: what each kind of call took and ended in, when a List last came to its end,
//! and what in the records had to be read as less than it says.
//!
//! Plain counts under one lock, taken once per call and once per page: a scrape reads them out, and no
//! series can appear but by a method of the contract and a code of gRPC.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bigfleet_shard_core::{Histogram, Number, Value};
use bigfleet_wire::Record;
use tonic::Code;

/// From a millisecond to two minutes, which is what the longest call gets.
const FIRST: f64 = 0.001;
const BUCKETS: usize = 18;
/// Different things that are said to be wrong with records; beyond that they are only counted.
const MOST_SAID: usize = 256;

/// What there is to say of the provider.
#[derive(Debug, Default)]
pub(crate) struct Rpcs(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    took: BTreeMap<(&'static str, i32), Histogram>,
    reached: bool,
    last_complete: f64,
    failed_in_a_row: u64,
    doubts: u64,
    said: BTreeSet<String>,
    /// The last thing that could not be read, of which machine, and when.
    last_doubt: Option<(Instant, String)>,
}

impl Rpcs {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has ended.
    pub(crate) fn ended(&self, method: &'static str, code: Code, took: Duration) {
        let mut counted = self.counted();
        let histogram = counted.took.entry((method, code as i32));
        histogram
            .or_insert_with(|| Histogram::new(FIRST, BUCKETS))
            .observe(took.as_secs_f64());
        counted.reached = is_answer(code);
    }

    /// A List has come to its end, or has not.
    pub(crate) fn listed(&self, complete: bool) {
        let mut counted = self.counted();
        if complete {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            counted.last_complete = now.map_or(0.0, |since| since.as_secs_f64());
            counted.failed_in_a_row = 0;
        } else {
            counted.failed_in_a_row += 1
        }
    }

    /// Heeds what could not be read in these records: all of it is counted, and each thing said
    /// once, with the first machine that has it. A fleet is of few shapes, so these are few.
    pub(crate) fn heed<'r>(&self, records: impl IntoIterator<Item = &'r Record>) {
        for record in records {
            for doubt in &record.warnings {
                let (text, mut counted) = (doubt.to_string(), self.counted());
                counted.doubts += 1;
                let doubted = format!("machine {}: {text}", record.machine.id());
                counted.last_doubt = Some((Instant::now(), doubted));
                if counted.said.len() < MOST_SAID && counted.said.insert(text.clone()) {
                    drop(counted);
                    let machine = record.machine.id();
                    tracing::warn!(%machine, err = text, "provider record read as less than it says");
                }
            }
        }
    }

    /// What could not be read last, if that was within this span: every machine is shown again now and then.
    pub(crate) fn doubted_within(&self, span: Duration) -> Option<String> {
        let counted = self.counted();
        let (at, doubted) = counted.last_doubt.as_ref()?;
        (at.elapsed() < span).then(|| doubted.clone())
    }

    /// The series, those of one name together.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let counted = self.counted();
        let plain = |name, value| Number {
            name,
            labels: Vec::new(),
            value,
        };
        let took = counted.took.iter().map(|((method, code), took)| Number {
            name: "bigfleet_shard_provider_rpc_duration_seconds",
            labels: vec![("method", (*method).to_owned()), ("code", word(*code))],
            value: Value::Histogram(took.clone()),
        });
        let mut numbers: Vec<Number> = took.collect();
        numbers.extend([
            plain(
                "bigfleet_shard_provider_reachable",
                Value::Gauge(f64::from(u8::from(counted.reached))),
            ),
            plain(
                "bigfleet_shard_last_reconcile_success_timestamp_seconds",
                Value::Gauge(counted.last_complete),
            ),
            plain(
                "bigfleet_shard_consecutive_reconcile_failures",
                Value::Gauge(counted.failed_in_a_row as f64),
            ),
            plain(
                "bigfleet_shard_record_warnings_total",
                Value::Counter(counted.doubts),
            ),
        ]);
        numbers
    }
}

/// Whether somebody was there to say this. A refusal is an answer.
fn is_answer(code: Code) -> bool {
    ![
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Cancelled,
        Code::Unknown,
    ]
    .contains(&code)
}

/// As gRPC's own counters write it.
fn word(code: i32) -> String {
    match Code::from(code) {
        Code::Ok => "OK".to_owned(),
        code => format!("{code:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rpcs: &Rpcs) -> Vec<String> {
        let line = |number: &Number| {
            let labels: Vec<&str> = number.labels.iter().map(|(_, of)| of.as_str()).collect();
            let value = match &number.value {
                Value::Counter(count) => count.to_string(),
                Value::Gauge(value) => value.to_string(),
                Value::Histogram(histogram) => format!("{} seen", histogram.count()),
            };
            let name = number.name.strip_prefix("bigfleet_shard_").unwrap();
            format!("{name} {} {value}", labels.join(" "))
        };
        rpcs.numbers().iter().map(line).collect()
    }

    #[test]
    fn a_provider_that_refuses_is_there_and_one_that_does_not_answer_is_not() {
        let rpcs = Rpcs::default();
        let second = Duration::from_secs(1);
        rpcs.ended("Create", Code::ResourceExhausted, second);
        rpcs.ended("List", Code::Ok, second);
        assert!(shown(&rpcs).contains(&"provider_reachable  1".to_owned()));
        for _ in 0..2 {
            rpcs.ended("List", Code::Unavailable, second);
            rpcs.listed(false);
        }
        assert_eq!(
            shown(&rpcs),
            [
                "provider_rpc_duration_seconds Create ResourceExhausted 1 seen",
                "provider_rpc_duration_seconds List OK 1 seen",
                "provider_rpc_duration_seconds List Unavailable 2 seen",
                "provider_reachable  0",
                "last_reconcile_success_timestamp_seconds  0",
                "consecutive_reconcile_failures  2",
                "record_warnings_total  0",
            ]
        );
        rpcs.listed(true);
        let after = shown(&rpcs);
        assert!(after.contains(&"consecutive_reconcile_failures  0".to_owned()));
        assert!(!after.contains(&"last_reconcile_success_timestamp_seconds  0".to_owned()));
    }
}
