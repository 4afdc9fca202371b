//! Available: the shard's hints as AvailableCapacities (OP-44).
//!
//! ```text
//! hint ─▶ newest per key ─▶ differs, and 5 s since the last write ─▶ apply        none of it, count 0 ─▶ delete
//! ```
//!
//! Hints come only when they change, so age deletes nothing. Ten minutes after a session's first accepted roll-up,
//! objects that were not named in it go.

use crate::{
    event::Hint,
    objects::{Availability, AvailableCapacity},
    sha256::sha256_hex,
};
use bigfleet_model::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const SPACING: Duration = Duration::from_secs(5);
const UNNAMED_AFTER: Duration = Duration::from_secs(600);
/// Objects at most; further keys are dropped.
const MOST_HINTS: usize = 10_000;

/// What to do with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Availed {
    Apply(String, Box<AvailableCapacity>),
    Delete(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    shown: BTreeMap<String, AvailableCapacity>,
    /// Hints that may have to be written; `None` deletes.
    wanted: BTreeMap<String, Option<AvailableCapacity>>,
    written: BTreeMap<String, Time>,
    named: BTreeSet<String>,
    sweep_at: Option<Time>,
    dropped: u64,
}

impl Hints {
    pub(crate) fn shown(&mut self, name: &str, content: Option<&AvailableCapacity>) {
        match content {
            Some(content) => self.shown.insert(name.to_owned(), content.clone()),
            None => self.shown.remove(name),
        };
    }

    pub(crate) fn session_begins(&mut self) {
        self.named.clear();
        self.sweep_at = None;
    }

    /// A roll-up of this session was accepted.
    pub(crate) fn roll_up_accepted(&mut self, now: Time) {
        self.sweep_at.get_or_insert(now + UNNAMED_AFTER);
    }

    pub(crate) fn heard(&mut self, hint: Hint) {
        if hint.key.is_empty() {
            return;
        }
        let name = hint_name(&hint.key);
        if MOST_HINTS <= self.named.len() && !self.named.contains(&name) {
            self.dropped += 1;
            return;
        }
        let is_nothing = hint.availability == Availability::None && hint.count == 0;
        let content = AvailableCapacity {
            requirements: hint.requirements,
            resources: hint.resources,
            count: hint.count,
            availability: hint.availability,
            cost: decimal(hint.cost_per_hour),
        };
        self.named.insert(name.clone());
        self.wanted.insert(name, (!is_nothing).then_some(content));
    }

    /// What to write now.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Availed> {
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep_at = Some(Time::from_nanos(i64::MAX)); // once per session
            let unnamed = self.shown.keys().filter(|name| !self.named.contains(*name));
            let unnamed: Vec<_> = unnamed.cloned().collect();
            self.wanted
                .extend(unnamed.into_iter().map(|name| (name, None)));
        }
        let is_spaced =
            |name: &String| self.written.get(name).is_none_or(|at| *at + SPACING <= now);
        let due: Vec<String> = self
            .wanted
            .keys()
            .filter(|name| is_spaced(name))
            .cloned()
            .collect();
        let mut steps = Vec::new();
        for name in due {
            let wanted = self.wanted.remove(&name).flatten();
            if wanted.as_ref() == self.shown.get(&name) {
                continue;
            }
            self.written.insert(name.clone(), now);
            steps.push(match wanted {
                Some(content) => Availed::Apply(name, Box::new(content)),
                None => Availed::Delete(name),
            });
        }
        self.written.retain(|_, at| now < *at + SPACING);
        steps
    }

    pub(crate) fn next(&self) -> Option<Time> {
        let waiting = self.wanted.keys().filter_map(|name| self.written.get(name));
        let waiting = waiting.map(|at| *at + SPACING).min();
        Time::earliest(waiting, self.sweep_at.filter(|at| at.nanos() != i64::MAX))
    }
}

fn hint_name(key: &str) -> String {
    let hash = sha256_hex(key.as_bytes());
    format!("ac-{}", &hash[..32])
}

/// Dollars with at most six decimals; `0` for what is no price.
fn decimal(dollars: f64) -> String {
    if !(0.0..=1e12).contains(&dollars) {
        return "0".to_owned();
    }
    let text = format!("{dollars:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::Amounts;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn hint(count: u32, availability: Availability) -> Hint {
        Hint {
            key: "available:p=0".to_owned(),
            requirements: vec![],
            resources: Amounts::NONE,
            count,
            availability,
            cost_per_hour: 0.25,
        }
    }

    /// OP-44.
    #[test]
    fn the_newest_hint_is_written_when_it_differs_and_not_too_often() {
        let mut hints = Hints::default();
        hints.heard(hint(3, Availability::High));
        let steps = hints.due(at(0));
        let [Availed::Apply(name, content)] = steps.as_slice() else {
            unreachable!("{steps:?}");
        };
        assert_eq!((name.len(), content.cost.as_str()), (35, "0.25"));
        hints.shown(name, Some(content));
        hints.heard(hint(4, Availability::High));
        hints.heard(hint(3, Availability::High));
        assert_eq!(hints.due(at(1)), []);
        assert_eq!(hints.next(), Some(at(5)));
        assert_eq!(hints.due(at(5)), [], "it says that already");
        hints.heard(hint(0, Availability::None));
        assert_eq!(hints.due(at(6)), [Availed::Delete(name.clone())]);
        hints.heard(Hint {
            key: String::new(),
            ..hint(1, Availability::Low)
        });
        assert_eq!(hints.due(at(60)), []);
    }

    #[test]
    fn what_a_session_did_not_name_goes_ten_minutes_after_its_first_roll_up() {
        let mut hints = Hints::default();
        let old = AvailableCapacity {
            requirements: vec![],
            resources: Amounts::NONE,
            count: 1,
            availability: Availability::High,
            cost: "0".to_owned(),
        };
        hints.shown("ac-old", Some(&old));
        hints.session_begins();
        hints.heard(hint(3, Availability::High));
        hints.roll_up_accepted(at(10));
        hints.roll_up_accepted(at(20));
        hints.due(at(20));
        assert_eq!(hints.due(at(609)), []);
        assert_eq!(hints.due(at(610)), [Availed::Delete("ac-old".to_owned())]);
    }

    #[test]
    fn a_cost_is_a_decimal_or_nothing() {
        let texts = [1.5, 0.1234567, f64::NAN, -1.0, 3.0, 0.0].map(decimal);
        assert_eq!(texts, ["1.5", "0.123457", "0", "0", "3", "0"]);
    }
}
