//! Notes: Kubernetes Events, for whoever looks at an object.
//!
//! The same words about the same object are said once in ten minutes, and never more than a few at once: an Event is a help,
//! and nobody waits for it.

use bigfleet_k8s::{Call, Cluster, OBJECT_VERSION, ResourceKind, seconds_text};
use bigfleet_operator_core::{Kind, Note};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Between two Events.
const SPACING: Duration = Duration::from_millis(100);
const WAITING: usize = 256;
const REMEMBERED: usize = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Notes(mpsc::Sender<Note>);

impl Notes {
    pub(crate) fn start(cluster: Cluster, source: &'static str) -> Self {
        let (notes, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(cluster, source, waiting));
        Self(notes)
    }

    /// Says it if there is room.
    pub(crate) fn tell(&self, note: Note) {
        tracing::info!(about = %note.about, reason = note.reason, message = %note.message, "note");
        drop(self.0.try_send(note));
    }
}

async fn write(cluster: Cluster, source: &'static str, mut waiting: mpsc::Receiver<Note>) {
    let mut said: BTreeMap<Note, Instant> = BTreeMap::new();
    let mut nth = 0_u32;
    while let Some(note) = waiting.recv().await {
        if REMEMBERED <= said.len() {
            said.retain(|_, at| at.elapsed() < AGAIN_AFTER);
        }
        if said.get(&note).is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
            continue;
        }
        nth = nth.wrapping_add(1);
        // An Event that is lost is no loss: what it says is in the log and in the metrics.
        drop(cluster.done(event(&note, source, nth)).await);
        if said.len() < REMEMBERED {
            said.insert(note, Instant::now());
        }
        tokio::time::sleep(SPACING).await;
    }
}

fn event(note: &Note, source: &str, nth: u32) -> Call {
    let nanos = wall_clock_nanos();
    let (version, kind) = match note.kind {
        Kind::Request => (OBJECT_VERSION, ResourceKind::CapacityRequest.name()),
        Kind::Upcoming => (OBJECT_VERSION, ResourceKind::UpcomingNode.name()),
        Kind::Available => (OBJECT_VERSION, ResourceKind::AvailableCapacity.name()),
        Kind::Node => ("v1", "Node"),
    };
    let namespace = match note.about.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let mut about = json!({ "apiVersion": version, "kind": kind, "name": note.about.name });
    if note.about.namespace.is_empty() {
        about["uid"] = json!(note.about.name); // what `kubectl describe node` looks for
    } else {
        about["namespace"] = json!(note.about.namespace);
    }
    let name = format!("{}.{nanos:x}{nth:x}", note.about.name);
    let words = (note.reason, note.message.as_str());
    create(namespace, &name, &about, words, source, nanos)
}

/// An Event about an object, with a reason of one word and a sentence.
pub(crate) fn create(
    namespace: &str,
    name: &str,
    about: &Value,
    (reason, message): (&str, &str),
    source: &str,
    nanos: i64,
) -> Call {
    let at = seconds_text(nanos);
    let message: String = message.chars().take(1000).collect();
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": about,
        "reason": reason, "message": message, "type": "Normal",
        "source": { "component": source },
        "firstTimestamp": at, "lastTimestamp": at, "count": 1,
    });
    Call::create(&format!("/api/v1/namespaces/{namespace}/events"), &body)
}

/// Now, for what people read.
pub(crate) fn wall_clock_nanos() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or_default()
}
