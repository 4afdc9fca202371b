//! Hints: how much of what a cluster asks for is free (§14).
//!
//! Counted per shape, not per machine, and sent only when they change and not too often. Advisory:
//! never a reservation.

use crate::{
    ShardCore,
    effect::{Confidence, Effect, Frame},
    ledger::Ledger,
};
use bigfleet_model::{ClusterId, Fingerprint, Need, Time, effective_cost};
use std::collections::BTreeMap;

/// What was last sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(BTreeMap<ClusterId, Told>);

/// What one cluster was told.
#[derive(Clone, Debug, Default)]
struct Told {
    sent: BTreeMap<Fingerprint, Sent>,
    /// The stock and the demand it was counted on; `None` while a change waits for its interval.
    counted: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    hint: Hint,
    at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Hint {
    count: u32,
    confidence: Confidence,
    cost: f64,
}

const NOTHING: Hint = Hint {
    count: 0,
    confidence: Confidence::None,
    cost: 0.0,
};

impl Hints {
    pub(crate) fn forget(&mut self, cluster: &ClusterId) {
        self.0.remove(cluster);
    }

    /// Whether to send this now; only what is sent is recorded (AV-3).
    fn is_due(
        &mut self,
        cluster: &ClusterId,
        fingerprint: &Fingerprint,
        hint: Hint,
        now: Time,
        interval: f64,
    ) -> bool {
        let told = self.0.entry(cluster.clone()).or_default();
        let last = told.sent.get(fingerprint);
        let same = last.is_some_and(|last| last.hint == hint);
        let early = last.is_some_and(|last| now.since(last.at) < interval);
        if early && !same {
            told.counted = None;
        }
        if same || early {
            return false;
        }
        let at = now;
        told.sent.insert(fingerprint.clone(), Sent { hint, at });
        true
    }
}

/// What is free for a Need.
fn hint(ledger: &Ledger, need: &Need) -> Hint {
    let mut hint = NOTHING;
    let (mut idle, mut speculative): (Option<f64>, Option<f64>) = (None, None);
    let profile = &need.row.profile;
    for (shape, stock) in &ledger.stock {
        if !shape.serves(profile, &need.row.min_unit) {
            continue;
        }
        let sum: u32 = stock.idle.values().chain(stock.speculative.values()).sum();
        hint.count = hint.count.saturating_add(sum);
        let lower = |known: Option<f64>, cost: f64| Some(known.map_or(cost, |one| one.min(cost)));
        if let Some(price) = stock.idle.keys().next() {
            idle = lower(idle, price.dollars_per_hour());
        }
        if let Some(price) = stock.speculative.keys().next() {
            // Without the machine's own probability: a hint errs on the cheap side.
            let probability = bigfleet_model::Probability::ZERO;
            let cost = effective_cost(*price, probability, profile.interruption());
            speculative = lower(speculative, cost.dollars());
        }
    }
    hint.confidence = match (idle, speculative) {
        (Some(_), _) => Confidence::High,
        (None, Some(_)) => Confidence::Medium,
        (None, None) => Confidence::None,
    };
    hint.cost = idle.or(speculative).unwrap_or(0.0);
    hint
}

impl ShardCore {
    /// Sends what changed, and one NONE for what is no longer demanded.
    pub(crate) fn send_hints(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let interval = self.config.hint_interval.as_secs_f64();
        // Nothing can be due more often than the interval, so nothing is counted more often.
        if self.hinted.is_some_and(|last| now.since(last) < interval) {
            return;
        }
        self.hinted = Some(now);
        for cluster in self.sessions.connected() {
            let Some(session) = self.sessions.of(&cluster).map(|session| session.id) else {
                continue;
            };
            let Some(demand) = self.demand.clusters.get(&cluster) else {
                continue;
            };
            // Cost follows churn: what was counted on the same stock and demand still holds.
            let basis = Some((self.ledger.stock_moves, demand.moves));
            let told = self.hints.0.entry(cluster.clone()).or_default();
            if std::mem::replace(&mut told.counted, basis) == basis {
                continue;
            }
            let mut wanted: BTreeMap<&Fingerprint, &Need> = BTreeMap::new();
            for need in demand.rows() {
                wanted.entry(need.row.profile.fingerprint()).or_insert(need);
            }
            let mut send = |fingerprint: &Fingerprint, need: Option<&Need>, hint: Hint| {
                effects.push(Effect::Send {
                    session,
                    frame: Frame::Available {
                        fingerprint: fingerprint.clone(),
                        requirements: need
                            .map(|need| need.row.profile.requirements().to_vec())
                            .unwrap_or_default(),
                        count: hint.count,
                        confidence: hint.confidence,
                        cost_per_hour: hint.cost,
                    },
                });
            };
            for (fingerprint, need) in &wanted {
                let hint = hint(&self.ledger, need);
                if self
                    .hints
                    .is_due(&cluster, fingerprint, hint, now, interval)
                {
                    send(fingerprint, Some(need), hint);
                }
            }
            if let Some(told) = self.hints.0.get_mut(&cluster) {
                told.sent.retain(|fingerprint, _| {
                    let stays = wanted.contains_key(fingerprint);
                    if !stays {
                        send(fingerprint, None, NOTHING);
                    }
                    stays
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EX-AV.
    #[test]
    fn ex_av_a_suppressed_change_is_sent_after_the_window() {
        let mut hints = Hints::default();
        let cluster = ClusterId::new("a").unwrap();
        let fingerprint = Fingerprint::new("f");
        let due = |hints: &mut Hints, now: f64, count| {
            let hint = Hint {
                count,
                confidence: Confidence::High,
                cost: 1.0,
            };
            let now = Time::from_seconds(now).unwrap();
            hints.is_due(&cluster, &fingerprint, hint, now, 5.0)
        };
        let sent = [(0.0, 3), (2.0, 3), (3.0, 2), (5.0, 2)]
            .map(|(now, count)| due(&mut hints, now, count));
        assert_eq!(sent, [true, false, false, true]);
        hints.forget(&ClusterId::new("a").unwrap());
        assert!(due(&mut hints, 6.0, 2), "a reconnect is told again");
    }
}
