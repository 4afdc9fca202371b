//! Seen: what the scheduler and the Nodes show, as words the operator reads (OP-60).
//!
//! ```text
//! PodScheduled False for 30 s, nobody nominated ─▶ Stuck: Insufficient, Alone or Other
//! Pods of a Node that count ─▶ disruption 0 to 15, empty-since
//! ```

use super::{brief::PodBrief, request::PodFacts};
use crate::objects::{Stuck, StuckReason};
use bigfleet_model::Time;
use std::time::Duration;

const STUCK_AFTER: Duration = Duration::from_secs(30);
/// What the scheduler says of Pods that an empty Node would do for.
const ALONE: [&str; 5] = [
    "Too many pods",
    "free ports",
    "pod anti-affinity rules",
    "topology spread constraints",
    "max volume count",
];
/// A Pod that must not be disturbed is on the Node.
const MOST_DISRUPTION: u8 = 15;

/// The condition `Stuck` of a Pod's request, while it is True; and from which moment on it may be.
pub fn stuck_of(pod: &PodFacts, now: Time) -> Result<Stuck, Option<Time>> {
    let Some((since, message)) = pod
        .unschedulable
        .as_ref()
        .filter(|_| !pod.is_nominated && !pod.is_gated)
    else {
        return Err(None);
    };
    let due = *since + STUCK_AFTER;
    if now < due {
        return Err(Some(due));
    }
    let reason = if message.contains("Insufficient") {
        StuckReason::Insufficient
    } else if ALONE.iter().any(|words| message.contains(words)) {
        StuckReason::Alone
    } else {
        StuckReason::Other
    };
    Ok(Stuck { since: due, reason })
}

/// What a drain of a Node with these Pods would disturb: 0 for nobody, 15 for one that must not be.
pub fn disruption_of<'a>(pods: impl Iterator<Item = &'a PodBrief>) -> u8 {
    let mut counting = 0_u32;
    for pod in pods.filter(|pod| pod.counts(false)) {
        if pod.must_not_be_disturbed() {
            return MOST_DISRUPTION;
        }
        counting += 1;
    }
    match counting {
        0 => 0,
        pods => (1 + pods.ilog2()).min(u32::from(MOST_DISRUPTION) - 1) as u8,
    }
}
