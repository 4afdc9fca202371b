//! Exchanges: what was sent and what came back, kept for whoever has to understand a failure.
//!
//! Every call goes through [`Client`], which writes it down. Polls that see the same thing again are
//! one line with a count, and only the last exchanges of a behaviour are kept, so a transcript is
//! short however long a check ran.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bigfleet_wire::v1alpha1 as wire;
use tonic::transport::Channel;
use tonic::{IntoRequest, Response, Status};
use wire::capacity_provider_client::CapacityProviderClient;

use crate::subject::CALL;

/// The most exchanges that are kept of one behaviour.
const MOST: usize = 40;
/// The most letters of a name or an error that are shown.
const LETTERS: usize = 160;

/// One call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The call, in short.
    pub sent: String,
    /// The answer, in short.
    pub received: String,
    /// How often it came in a row.
    pub times: usize,
}

/// The last exchanges of the behaviour that is being checked.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    kept: Mutex<VecDeque<Exchange>>,
    /// Calls of this lane that ran into their deadline.
    unanswered: AtomicUsize,
}

impl Transcript {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Exchange>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was said before, and hands it out.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        self.kept().drain(..).collect()
    }

    /// How many calls of this lane were not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// The next lane begins, with another process.
    pub(crate) fn begin_lane(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    fn add(&self, sent: String, received: String) {
        let mut kept = self.kept();
        if let Some(last) = kept
            .back_mut()
            .filter(|last| last.sent == sent && last.received == received)
        {
            last.times += 1;
            return;
        }
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(Exchange {
            sent,
            received,
            times: 1,
        });
    }
}

/// A client that writes down what is said.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: CapacityProviderClient<Channel>,
    transcript: Arc<Transcript>,
}

macro_rules! calls {
    ($($call:ident: $request:ident => $answer:ident),+ $(,)?) => {
        $(pub(crate) async fn $call(
            &mut self,
            request: impl IntoRequest<wire::$request>,
        ) -> Result<Response<wire::$answer>, Status> {
            let request = request.into_request();
            let sent = format!("{} {}", stringify!($call), request.get_ref().shown());
            let started = Instant::now();
            let answer = self.inner.$call(request).await;
            if answer.is_err() && CALL <= started.elapsed() {
                self.transcript.unanswered.fetch_add(1, Ordering::Relaxed);
            }
            let received = match &answer {
                Ok(answer) => answer.get_ref().shown(),
                Err(status) => format!("{:?}: {}", status.code(), cut(status.message())),
            };
            self.transcript.add(sent, received);
            answer
        })+
    };
}

impl Client {
    pub(crate) fn new(channel: Channel, most_bytes: usize, transcript: Arc<Transcript>) -> Self {
        let inner = CapacityProviderClient::new(channel).max_decoding_message_size(most_bytes);
        Self { inner, transcript }
    }

    calls! {
        create: CreateRequest => TransitionAck,
        configure: ConfigureRequest => TransitionAck,
        drain: DrainRequest => TransitionAck,
        delete: DeleteRequest => TransitionAck,
        get: MachineRef => Machine,
        list: ListFilter => MachineList,
    }
}

/// A message in a line, whatever its size.
trait Shown {
    fn shown(&self) -> String;
}

fn cut(text: &str) -> String {
    let text = text.escape_debug().to_string();
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn fenced(shard: &str, epoch: i64, sequence: i64) -> String {
    if shard.is_empty() {
        return "no token".to_owned();
    }
    format!("token {} ({epoch}, {sequence})", cut(shard))
}

fn bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(12) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    if 12 < bytes.len() {
        text += "…";
    }
    format!("{text} ({} bytes)", bytes.len())
}

fn entries(map: &std::collections::BTreeMap<String, String>) -> String {
    let few = map.iter().take(3);
    let few: Vec<String> = few
        .map(|(key, value)| format!("\"{}\": \"{}\"", cut(key), cut(value)))
        .collect();
    let more = if 3 < map.len() { ", …" } else { "" };
    format!("{} entries {{{}{more}}}", map.len(), few.join(", "))
}

impl Shown for wire::CreateRequest {
    fn shown(&self) -> String {
        let token = fenced(&self.shard_id, self.shard_epoch, self.sequence_number);
        format!("\"{}\", {token}", cut(&self.machine_id))
    }
}

impl Shown for wire::ConfigureRequest {
    fn shown(&self) -> String {
        let token = fenced(&self.shard_id, self.shard_epoch, self.sequence_number);
        format!(
            "\"{}\" for cluster \"{}\", {token}, blob of {} bytes, metadata {}",
            cut(&self.machine_id),
            cut(&self.cluster_id),
            self.bootstrap_blob.len(),
            entries(&self.shard_metadata)
        )
    }
}

impl Shown for wire::DrainRequest {
    fn shown(&self) -> String {
        let token = fenced(&self.shard_id, self.shard_epoch, self.sequence_number);
        let grace = self.grace_period_seconds;
        format!("\"{}\" within {grace} s, {token}", cut(&self.machine_id))
    }
}

impl Shown for wire::DeleteRequest {
    fn shown(&self) -> String {
        let token = fenced(&self.shard_id, self.shard_epoch, self.sequence_number);
        format!("\"{}\", {token}", cut(&self.machine_id))
    }
}

impl Shown for wire::MachineRef {
    fn shown(&self) -> String {
        format!("\"{}\"", cut(&self.id))
    }
}

impl Shown for wire::ListFilter {
    fn shown(&self) -> String {
        let mut text = "all".to_owned();
        if !self.states.is_empty() {
            let states: Vec<String> = self.states.iter().map(|state| name(*state)).collect();
            text = states.join(" or ");
        }
        if self.max_results != 0 {
            text += &format!(", at most {}", self.max_results);
        }
        if !self.since_revision.is_empty() {
            text += &format!(", since {}", bytes(&self.since_revision));
        }
        text
    }
}

fn name(state: i32) -> String {
    let known = wire::MachineState::try_from(state);
    let known = known.map(|state| state.as_str_name().trim_start_matches("MACHINE_STATE_"));
    known.map_or_else(|_| format!("state {state}"), str::to_owned)
}

impl Shown for wire::TransitionAck {
    fn shown(&self) -> String {
        let machine = self.machine.as_ref();
        let machine = machine.map_or_else(|| "no machine".to_owned(), Shown::shown);
        format!("operation \"{}\": {machine}", cut(&self.operation_id))
    }
}

impl Shown for wire::Machine {
    fn shown(&self) -> String {
        let mut text = format!("\"{}\" {}", cut(&self.id), name(self.state));
        if let Some(host) = &self.host {
            text += &format!(
                ", host \"{}\" of \"{}\"",
                cut(&host.r#ref),
                cut(&host.provider)
            );
        }
        if !self.cluster.is_empty() {
            text += &format!(", cluster \"{}\"", cut(&self.cluster));
        }
        if !self.shard_metadata.is_empty() {
            text += &format!(", metadata {}", entries(&self.shard_metadata));
        }
        if !self.last_error.is_empty() {
            text += &format!(", error \"{}\"", cut(&self.last_error));
        }
        text
    }
}

impl Shown for wire::MachineList {
    fn shown(&self) -> String {
        let few: Vec<String> = self.machines.iter().take(3).map(Shown::shown).collect();
        let more = if 3 < self.machines.len() { "; …" } else { "" };
        format!(
            "{} machines, revision {}: {}{more}",
            self.machines.len(),
            bytes(&self.revision),
            few.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_keeps_the_last_exchanges_and_counts_repetitions() {
        let transcript = Transcript::default();
        for at in 0..100 {
            transcript.add(format!("call {at}"), "ok".to_owned());
        }
        for _ in 0..5 {
            transcript.add("poll".to_owned(), "same".to_owned());
        }
        let kept = transcript.take();
        assert_eq!(kept.len(), MOST);
        assert_eq!(
            (kept[0].sent.as_str(), kept[MOST - 1].times),
            ("call 61", 5)
        );
        assert!(transcript.take().is_empty());
    }

    #[test]
    fn a_large_message_is_a_short_line() {
        let request = wire::ConfigureRequest {
            machine_id: "m".repeat(10_000),
            bootstrap_blob: vec![7; 3 << 20],
            shard_metadata: (0..500)
                .map(|at| (format!("k{at}"), "v".repeat(4096)))
                .collect(),
            ..Default::default()
        };
        let line = request.shown();
        assert!(line.len() < 2_000, "{} letters", line.len());
        assert!(line.contains("blob of 3145728 bytes, metadata 500 entries"));
    }
}
