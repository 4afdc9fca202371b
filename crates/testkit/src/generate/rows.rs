//! Rows: plain ones, spread ones and gangs, in sizes that the machines of the palette fill.

use super::Generator;
use bigfleet_model::{
    Amounts, CAPACITY_TYPE_KEY, Group, INSTANCE_TYPE_KEY, Operator, Profile, Requirement, Row,
    Spread, Time, WhenUnsatisfiable, ZONE_KEY,
};
use std::time::Duration;

impl Generator {
    /// A row with its arrival and whether it is parked.
    pub(super) fn row(&mut self, now: Time) -> (Row, Option<Time>, bool) {
        let gang = self.prng.percent(45);
        let mut requirements = self.conditions();
        if gang {
            requirements.push(self.same());
        }
        let spread = if self.prng.percent(if gang { 10 } else { 30 }) {
            self.spreads()
        } else {
            vec![]
        };
        let priority = *self.prng.pick(&self.palette.priorities);
        let interruption = *self.prng.pick(&self.palette.buckets);
        let reclamation = *self.prng.pick(&self.palette.buckets);
        let profile = Profile::new(requirements, spread, priority, interruption, reclamation);
        let (aggregate, min_unit) = self.amounts();
        let row = Row {
            profile: profile.into(),
            aggregate,
            min_unit,
            group: self.group(gang),
            whole_units: self.whole_units(),
        };
        let parked = self.prng.percent(if gang { 20 } else { 3 });
        (row, self.arrival(now), parked)
    }

    fn same(&mut self) -> Requirement {
        let zone = self.prng.percent(15);
        let (key, all) = if zone {
            (ZONE_KEY, &self.palette.zones)
        } else {
            ("rack", &self.palette.racks)
        };
        let values = if self.prng.percent(12) {
            vec![self.prng.pick(all).to_string()]
        } else {
            vec![]
        };
        requirement(key, Operator::Same, values)
    }

    fn conditions(&mut self) -> Vec<Requirement> {
        let mut conditions = Vec::new();
        if self.prng.percent(20) {
            let kind = self.prng.pick(&self.palette.types).to_string();
            let operator = *self
                .prng
                .pick(&[Operator::In, Operator::In, Operator::NotIn]);
            conditions.push(requirement(INSTANCE_TYPE_KEY, operator, vec![kind]));
        }
        if self.prng.percent(12) {
            let zone = self.prng.pick(&self.palette.zones).to_string();
            conditions.push(requirement(ZONE_KEY, Operator::In, vec![zone]));
        }
        if self.prng.percent(10) {
            let operator = *self.prng.pick(&[Operator::Exists, Operator::DoesNotExist]);
            conditions.push(requirement("tier", operator, vec![]));
        }
        if self.prng.percent(5) {
            let tier = self.prng.pick(&self.palette.tiers).word().to_owned();
            conditions.push(requirement(CAPACITY_TYPE_KEY, Operator::In, vec![tier]));
        }
        conditions
    }

    fn spreads(&mut self) -> Vec<Spread> {
        let keys: &[&[&str]] = &[&[ZONE_KEY], &[ZONE_KEY], &["rack"], &[ZONE_KEY, "rack"]];
        let mut spreads = Vec::new();
        for key in *self.prng.pick(keys) {
            let skew = *self.prng.pick(&[1, 1, 2]);
            let when = if self.prng.percent(80) {
                WhenUnsatisfiable::DoNotSchedule
            } else {
                WhenUnsatisfiable::ScheduleAnyway
            };
            spreads.push(Spread::new((*key).to_owned(), skew, when).expect("a spread"));
        }
        spreads
    }

    /// (aggregate, smallest unit): a few units of a machine's size, or of half of it.
    pub(super) fn amounts(&mut self) -> (Amounts, Amounts) {
        let size = self.prng.pick(&self.palette.sizes).clone();
        let unit = match self.prng.below(10) {
            0 => size.scale(2),
            1..=3 => halved(&size),
            4 => size.sub(&halved(&halved(&size))),
            _ => size,
        };
        let count = *self.prng.pick(&[1, 1, 2, 2, 3, 4, 6]);
        let min_unit = match self.prng.below(10) {
            0..=2 => Amounts::NONE,
            3 => halved(&unit),
            _ => unit.clone(),
        };
        let aggregate = match self.prng.below(100) {
            0..2 => Amounts::NONE,
            2..10 => unit.scale(count).sub(&halved(&unit)),
            _ => unit.scale(count),
        };
        (aggregate, min_unit)
    }

    pub(super) fn whole_units(&mut self) -> bool {
        self.prng.percent(self.palette.whole)
    }

    fn group(&mut self, gang: bool) -> Group {
        let named = self.prng.percent(if gang { 90 } else { 5 });
        if named {
            Group::new(["g1", "g2", "g3", "g4"][self.prng.below(4)])
        } else {
            Group::default()
        }
    }

    fn arrival(&mut self, now: Time) -> Option<Time> {
        let ago = Duration::from_secs(*self.prng.pick(&[0, 0, 10, 10, 500]));
        let stated = !self.prng.percent(20);
        // A file cannot state the origin: there, 0 is "not stated".
        let origin = Time::default();
        stated
            .then(|| now - ago)
            .filter(|arrival| *arrival != origin)
    }
}

pub(super) fn halved(amounts: &Amounts) -> Amounts {
    let half = |(name, milli): (&bigfleet_model::Dimension, i128)| (name.clone(), milli / 2);
    Amounts::from_entries(amounts.iter().map(half))
}

fn requirement(key: &str, operator: Operator, values: Vec<String>) -> Requirement {
    Requirement::new(key.to_owned(), operator, values).expect("a key")
}
