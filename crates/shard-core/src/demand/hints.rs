//! Hints: how much of what a cluster asks for is free (AV-1).
//!
//! ```text
//! cluster ─ its first heads ─▶ wanted: profile, kind ─▶ kind: shapes that serve it ─▶ stock ─▶ hint
//! ```
//!
//! Counted per kind of demand, not per cluster, and over shapes, not machines: clusters want much the
//! same. Sent only when they change and not too often. Advisory: never a reservation; so a cluster that asks
//! for more different things than people would read is told of the most urgent ones.

use super::{Demand, cluster::ProfileHead};
use crate::{
    effect::{Confidence, Effect, Frame},
    sessions::Sessions,
    supply::Stock,
};
use bigfleet_model::{Amounts, ClusterId, Fingerprint, Profile, Requirement, Shape, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Of so many profiles a session is told, those of the highest priority (AV-1).
const MOST_HINTS: usize = 256;

/// What was last sent, and what it is counted with.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// The least time between two hints for one fingerprint.
    interval: Duration,
    /// When hints were last counted.
    counted: Option<Time>,
    told: BTreeMap<ClusterId, ToldCluster>,
    kinds: DemandKinds,
}

/// What one cluster was told.
#[derive(Clone, Debug, Default)]
struct ToldCluster {
    /// What it asks for, in the order of fingerprints.
    wanted: Vec<WantedProfile>,
    /// What it asked for and was told of, and asks for no longer.
    gone: Vec<Fingerprint>,
    /// The kinds and the demand `wanted` was drawn up from.
    drawn_up: Option<(u64, u64)>,
    /// The stock and the demand it was counted on; `None` while a change waits for its interval.
    counted: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct WantedProfile {
    /// The number of the profile.
    number: u32,
    profile: Arc<Profile>,
    kind: usize,
    sent: Option<Sent>,
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

/// More kinds than clusters will ask for at a time: past this, what is no longer asked for is dropped
/// with everything else.
const MOST_KINDS: usize = 4096;

/// The kinds of demand there are: requirements, and a unit a machine must hold. Priorities and penalties
/// make no other kind.
#[derive(Clone, Debug, Default)]
struct DemandKinds {
    numbers: BTreeMap<Vec<Requirement>, BTreeMap<Amounts, usize>>,
    kinds: Vec<DemandKind>,
    /// The shapes there had ever been when they were drawn up.
    shapes_seen: u64,
    /// How often they were drawn up anew; a number stands for a kind until that changes.
    generation: u64,
}

#[derive(Clone, Debug)]
struct DemandKind {
    /// The shapes that serve it. A machine that comes or goes does not change that; a new shape does.
    shapes: Vec<u32>,
    /// What is free for it, and the stock that was counted on.
    counted: Option<(u64, Hint)>,
}

impl Hints {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            counted: None,
            told: BTreeMap::new(),
            kinds: DemandKinds::default(),
        }
    }

    /// Whether hints are to be counted: nothing can be due more often than the interval.
    fn is_due(&mut self, now: Time) -> bool {
        let last = self.counted;
        let is_early = last.is_some_and(|last| now.duration_since(last) < self.interval);
        if !is_early {
            self.counted = Some(now);
        }
        !is_early
    }
}

impl ToldCluster {
    /// Takes over what a cluster asks for now; what it was told stands.
    fn draw_up(&mut self, heads: &[ProfileHead], kinds: &mut DemandKinds, stock: &Stock) {
        let before = std::mem::take(&mut self.wanted).into_iter();
        let mut before: BTreeMap<u32, WantedProfile> =
            before.map(|one| (one.number, one)).collect();
        let mut first: Vec<&ProfileHead> = heads.iter().collect();
        first.sort_by_key(|head| (Reverse(head.profile.priority()), head.number));
        // Profiles whose texts collide have one hint: that of the first.
        let mut texts = BTreeSet::new();
        first.retain(|head| texts.len() < MOST_HINTS && texts.insert(head.profile.fingerprint()));
        first.sort_by_key(|head| head.profile.fingerprint());
        for head in first {
            let known = before.remove(&head.number);
            // A number may stand for another profile by now.
            let known = known.filter(|known| Arc::ptr_eq(&known.profile, &head.profile));
            self.wanted.push(WantedProfile {
                number: head.number,
                profile: Arc::clone(&head.profile),
                kind: kinds.number(head, stock),
                sent: known.and_then(|known| known.sent),
            });
        }
        let told = before.into_values().filter(|one| one.sent.is_some());
        let gone = told.map(|one| one.profile.fingerprint().clone());
        self.gone.extend(gone.filter(|text| !texts.contains(text)));
        self.gone.sort();
    }
}

impl WantedProfile {
    /// Whether to send this now, and whether it waits; only what is sent is recorded (AV-3).
    fn is_due(&mut self, hint: Hint, now: Time, interval: Duration) -> (bool, bool) {
        let same = self.sent.is_some_and(|last| last.hint == hint);
        let early = self
            .sent
            .is_some_and(|last| now.duration_since(last.at) < interval);
        let due = !same && !early;
        if due {
            self.sent = Some(Sent { hint, at: now });
        }
        (due, early && !same)
    }
}

impl DemandKinds {
    /// Starts anew when there are shapes it does not know, or too much it need not know.
    fn refresh(&mut self, shapes_seen: u64) {
        if self.shapes_seen != shapes_seen || MOST_KINDS < self.kinds.len() {
            self.shapes_seen = shapes_seen;
            self.generation += 1;
            self.numbers.clear();
            self.kinds.clear();
        }
    }

    fn number(&mut self, head: &ProfileHead, stock: &Stock) -> usize {
        let ProfileHead { profile, unit, .. } = head;
        let known = self.numbers.get(profile.requirements());
        if let Some(number) = known.and_then(|units| units.get(unit)) {
            return *number;
        }
        let serves = |(number, shape, _): (u32, &Arc<Shape>, _)| {
            shape.serves(profile, unit).then_some(number)
        };
        self.kinds.push(DemandKind {
            shapes: stock.iter().filter_map(serves).collect(),
            counted: None,
        });
        let number = self.kinds.len() - 1;
        let units = self.numbers.entry(profile.requirements().to_vec());
        units.or_default().insert(unit.clone(), number);
        number
    }

    /// What is free for a kind, counted once for all who ask for it.
    fn hint(&mut self, number: usize, stock: &Stock) -> Hint {
        let kind = &mut self.kinds[number];
        match kind.counted {
            Some((moves, hint)) if moves == stock.moves() => hint,
            _ => {
                let hint = hint(stock, &kind.shapes);
                kind.counted = Some((stock.moves(), hint));
                hint
            }
        }
    }
}

/// What is free on these shapes.
fn hint(stock: &Stock, shapes: &[u32]) -> Hint {
    let mut hint = NOTHING;
    let (mut idle, mut speculative): (Option<f64>, Option<f64>) = (None, None);
    for held in shapes.iter().filter_map(|number| stock.of_shape(*number)) {
        let sum: u32 = held.idle.values().chain(held.speculative.values()).sum();
        hint.count = hint.count.saturating_add(sum);
        let lower = |known: Option<f64>, cost: f64| Some(known.map_or(cost, |one| one.min(cost)));
        if let Some(price) = held.idle.keys().next() {
            idle = lower(idle, price.dollars_per_hour());
        }
        if let Some(price) = held.speculative.keys().next() {
            // Without what an interruption would cost: a hint errs on the cheap side.
            speculative = lower(speculative, price.dollars_per_hour());
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

impl Demand {
    /// A cluster's session came or went: what it was told before does not count.
    pub(crate) fn forget_hints(&mut self, cluster: &ClusterId) {
        self.hints.told.remove(cluster);
    }

    /// Sends what changed, and one NONE for what is no longer demanded.
    pub(crate) fn send_hints(
        &mut self,
        now: Time,
        stock: &Stock,
        sessions: &Sessions,
        effects: &mut Vec<Effect>,
    ) {
        if !self.hints.is_due(now) {
            return;
        }
        let interval = self.hints.interval;
        let Hints { told, kinds, .. } = &mut self.hints;
        kinds.refresh(stock.shapes_seen());
        for (cluster, session) in sessions.connected() {
            let Some(demand) = self.clusters.get(cluster) else {
                continue;
            };
            let (heads, heads_moved) = demand.heads();
            if !told.contains_key(cluster) {
                told.insert(cluster.clone(), ToldCluster::default());
            }
            let Some(told) = told.get_mut(cluster) else {
                continue;
            };
            let drawn_up = Some((kinds.generation, heads_moved));
            if std::mem::replace(&mut told.drawn_up, drawn_up) != drawn_up {
                told.draw_up(heads, kinds, stock);
                told.counted = None;
            }
            // Cost follows churn: what was counted on the same stock and demand still holds.
            let basis = Some((stock.moves(), heads_moved));
            if std::mem::replace(&mut told.counted, basis) == basis {
                continue;
            }
            let mut send = |fingerprint: Fingerprint, profile: Option<&Profile>, hint: Hint| {
                let requirements = profile.map(|profile| profile.requirements().to_vec());
                effects.push(Effect::Send {
                    session: session.id,
                    frame: Frame::Available {
                        fingerprint,
                        requirements: requirements.unwrap_or_default(),
                        count: hint.count,
                        confidence: hint.confidence,
                        cost_per_hour: hint.cost,
                    },
                });
            };
            for wanted in &mut told.wanted {
                let hint = kinds.hint(wanted.kind, stock);
                let (due, waits) = wanted.is_due(hint, now, interval);
                if due {
                    let profile = &wanted.profile;
                    send(profile.fingerprint().clone(), Some(profile), hint);
                }
                if waits {
                    told.counted = None;
                }
            }
            for fingerprint in told.gone.drain(..) {
                send(fingerprint, None, NOTHING);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;

    /// EX-AV.
    #[test]
    fn ex_av_a_suppressed_change_is_sent_after_the_window() {
        let demand = fleet("need a cpu=4");
        let mut needs = demand.clusters.values().flat_map(|cluster| cluster.needs());
        let mut wanted = WantedProfile {
            number: 0,
            profile: Arc::clone(&needs.next().unwrap().row.profile),
            kind: 0,
            sent: None,
        };
        let mut due = |now: f64, count| {
            let hint = Hint {
                count,
                confidence: Confidence::High,
                cost: 1.0,
            };
            wanted.is_due(
                hint,
                Time::from_seconds(now).unwrap(),
                Duration::from_secs(5),
            )
        };
        let sent = [(0.0, 3), (2.0, 3), (3.0, 2), (5.0, 2)].map(|(now, count)| due(now, count));
        let waits = [(true, false), (false, false), (false, true), (true, false)];
        assert_eq!(sent, waits);
    }

    /// AV-1: a session has a bound, whatever its operator makes up, and the most urgent rows are within it.
    #[test]
    fn a_cluster_is_told_of_the_most_urgent_profiles_and_no_more() {
        let heads = |priorities: std::ops::Range<usize>| -> Vec<ProfileHead> {
            let rows = priorities.map(|priority| format!("need a cpu=4 prio={priority}\n"));
            let demand = fleet(&rows.collect::<String>());
            let needs = demand.clusters.values().flat_map(|cluster| cluster.needs());
            let head = |need: &bigfleet_model::Need| ProfileHead {
                number: need.row.profile.priority() as u32,
                profile: Arc::clone(&need.row.profile),
                unit: need.row.min_unit.clone(),
            };
            needs.map(head).collect()
        };
        let (mut told, mut kinds) = (ToldCluster::default(), DemandKinds::default());
        let stock = Stock::default();
        let mut draw_up = |heads: &[ProfileHead]| {
            told.draw_up(heads, &mut kinds, &stock);
            let moment = Time::from_seconds(1.0).unwrap();
            for one in &mut told.wanted {
                one.is_due(NOTHING, moment, Duration::ZERO);
            }
            let numbers: BTreeSet<u32> = told.wanted.iter().map(|one| one.number).collect();
            (
                numbers.first().copied().unwrap_or(0),
                numbers.len(),
                told.gone.drain(..).count(),
                kinds.kinds.len(),
            )
        };
        let (low, all) = (heads(0..300), heads(0..1000));
        assert_eq!(
            draw_up(&low),
            (44, 256, 0, 1),
            "one kind for all priorities"
        );
        assert_eq!(draw_up(&low), (44, 256, 0, 1), "the same again");
        assert_eq!(draw_up(&all), (744, 256, 256, 1), "others are more urgent");
        assert_eq!(draw_up(&[]), (0, 0, 256, 1));
    }
}
