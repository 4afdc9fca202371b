//! Hints: how much of what a cluster asks for is free (§14).
//!
//! Counted per shape, not per machine, and sent only when they change and not too often. Advisory:
//! never a reservation.

use crate::{
    ShardCore,
    effect::{Confidence, Effect, Frame},
    stock::Stock,
};
use bigfleet_model::{Amounts, ClusterId, Fingerprint, Need, Shape, Time, effective_cost};
use std::{collections::BTreeMap, sync::Arc};

/// What was last sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    told: BTreeMap<ClusterId, Told>,
    matching: Matching,
}

/// Which shapes serve a profile and cover a unit. A machine that comes or goes does not change that;
/// a new shape does.
#[derive(Clone, Debug, Default)]
struct Matching {
    /// The shapes and profiles there had ever been when it was drawn up.
    basis: (u64, u64),
    shapes: BTreeMap<(u32, Amounts), Vec<u32>>,
}

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
        self.told.remove(cluster);
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
        let told = self.told.entry(cluster.clone()).or_default();
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

impl Matching {
    /// The shapes of a ledger that are of use to a Need of this profile.
    fn of(&mut self, stock: &Stock, profile: u32, need: &Need) -> &[u32] {
        let key = (profile, need.row.min_unit.clone());
        self.shapes.entry(key).or_insert_with(|| {
            let serves = |(number, shape, _): (u32, &Arc<Shape>, _)| {
                let serves = shape.serves(&need.row.profile, &need.row.min_unit);
                serves.then_some(number)
            };
            stock.iter().filter_map(serves).collect()
        })
    }

    /// Starts anew when there are shapes or profiles it does not know.
    fn refresh(&mut self, basis: (u64, u64)) {
        if self.basis != basis {
            self.basis = basis;
            self.shapes.clear();
        }
    }
}

/// What is free for a Need.
fn hint(stock: &Stock, shapes: &[u32], need: &Need) -> Hint {
    let mut hint = NOTHING;
    let (mut idle, mut speculative): (Option<f64>, Option<f64>) = (None, None);
    let profile = &need.row.profile;
    for held in shapes.iter().filter_map(|number| stock.held(*number)) {
        let sum: u32 = held.idle.values().chain(held.speculative.values()).sum();
        hint.count = hint.count.saturating_add(sum);
        let lower = |known: Option<f64>, cost: f64| Some(known.map_or(cost, |one| one.min(cost)));
        if let Some(price) = held.idle.keys().next() {
            idle = lower(idle, price.dollars_per_hour());
        }
        if let Some(price) = held.speculative.keys().next() {
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
        let stock = &self.ledger.stock;
        let mut counted: BTreeMap<(u32, &Amounts), Hint> = BTreeMap::new();
        let basis = (stock.shapes.arrivals, self.demand.profiles_seen());
        self.hints.matching.refresh(basis);
        for cluster in self.sessions.connected() {
            let Some(session) = self.sessions.of(&cluster).map(|session| session.id) else {
                continue;
            };
            let Some(demand) = self.demand.clusters.get(&cluster) else {
                continue;
            };
            // Cost follows churn: what was counted on the same stock and demand still holds.
            let basis = Some((stock.moves, demand.moves));
            let told = self.hints.told.entry(cluster.clone()).or_default();
            if std::mem::replace(&mut told.counted, basis) == basis {
                continue;
            }
            let mut wanted: BTreeMap<&Fingerprint, (u32, &Need)> = BTreeMap::new();
            for (profile, need) in demand.profiles() {
                let fingerprint = need.row.profile.fingerprint();
                wanted.entry(fingerprint).or_insert((profile, need));
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
            for (fingerprint, (profile, need)) in &wanted {
                // Clusters want much the same: what was counted for one holds for the next.
                let key = (*profile, &need.row.min_unit);
                let hint = *counted.entry(key).or_insert_with(|| {
                    let shapes = self.hints.matching.of(stock, *profile, need);
                    hint(stock, shapes, need)
                });
                if self
                    .hints
                    .is_due(&cluster, fingerprint, hint, now, interval)
                {
                    send(fingerprint, Some(need), hint);
                }
            }
            if let Some(told) = self.hints.told.get_mut(&cluster) {
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
