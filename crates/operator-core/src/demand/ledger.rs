//! Ledger: how many requests ask for which unit in which row, and the roll-up that follows from it.
//!
//! ```text
//! (row, unit) ──▶ count        Σ count × unit, by class ──▶ rows in canonical order        (OP-17)
//! ```
//!
//! A roll-up is built from counts, not from objects, so it costs what there is to say, and equal demand is equal bytes.

use super::{class::UnitClass, gang::Gang, overhead::Overhead, request::RowKey};
use crate::{
    defect::Defect,
    limits::{MOST_FINGERPRINT, MOST_GROUP, MOST_ROWS},
};
use bigfleet_model::{Amounts, Group, Profile, Row};
use std::{collections::BTreeMap, sync::Arc};

/// How rows are shaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shaping {
    /// Plain rows are split by unit class.
    pub(crate) by_class: bool,
    /// The shard keeps units whole: spares and gangs may ask for it (OP-68).
    pub(crate) whole_units: bool,
    /// What DaemonSets take of every machine.
    pub(crate) overhead: Overhead,
    pub(crate) defect: Option<Defect>,
}

impl Shaping {
    /// The group of the row that a request of this gang and unit counts in.
    pub(crate) fn group_of(self, gang: &Gang, unit: &Amounts) -> Group {
        match gang {
            Gang::Domain { group, .. } | Gang::Host(group) => group.clone(),
            Gang::None if self.by_class && self.whole_units => UnitClass::of(unit).group(),
            Gang::None => Group::default(),
        }
    }
}

/// A spare that goes with the demand: a row of its own, or part of its profile's row (OP-62, OP-68).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpareRow {
    pub(crate) profile: Arc<Profile>,
    pub(crate) group: Group,
    pub(crate) bin: Amounts,
    pub(crate) count: u64,
}

type Units = BTreeMap<Amounts, u64>;

/// How many ask for what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    rows: BTreeMap<Arc<RowKey>, Units>,
    requests: u64,
}

impl Ledger {
    /// The same row in the memory it already has.
    pub(crate) fn interned(&self, row: RowKey) -> Arc<RowKey> {
        let row = Arc::new(row);
        let known = self.rows.get_key_value(&row);
        known.map_or(row.clone(), |(known, _)| Arc::clone(known))
    }

    pub(crate) fn add(&mut self, row: &Arc<RowKey>, unit: &Amounts) {
        let units = self.rows.entry(Arc::clone(row)).or_default();
        *units.entry(unit.clone()).or_default() += 1;
        self.requests += 1;
    }

    pub(crate) fn remove(&mut self, row: &Arc<RowKey>, unit: &Amounts) {
        let Some(units) = self.rows.get_mut(row) else {
            return;
        };
        if let Some(count) = units.get_mut(unit) {
            *count -= 1;
            self.requests -= 1;
            if *count == 0 {
                units.remove(unit);
            }
        }
        if units.is_empty() {
            self.rows.remove(row);
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Plain rows: profile, and how many ask for which unit.
    pub(crate) fn plain(&self) -> impl Iterator<Item = (&Arc<Profile>, &Units)> {
        let plain = self.rows.iter().filter(|(row, _)| row.gang == Gang::None);
        plain.map(|(row, units)| (&row.profile, units))
    }

    /// What all requests ask for together.
    pub(crate) fn sum(&self) -> Amounts {
        let units = self.rows.values().flatten();
        units.fold(Amounts::NONE, |sum, (unit, count)| {
            sum.add(&times(unit, *count))
        })
    }

    /// The roll-up, or why there is none (OP-23).
    pub(crate) fn rows(&self, shaping: Shaping, spares: &[SpareRow]) -> Result<Vec<Row>, String> {
        let mut built = BTreeMap::new();
        for (row, units) in &self.rows {
            match &row.gang {
                Gang::None => add_plain(&mut built, &row.profile, units, shaping),
                Gang::Domain { group, .. } => {
                    let whole = shaping.whole_units && units.len() == 1;
                    add(
                        &mut built,
                        &row.profile,
                        group,
                        gathered(units, shaping),
                        whole,
                    );
                }
                Gang::Host(group) => {
                    let sum = gathered(units, shaping).0;
                    add(&mut built, &row.profile, group, (sum.clone(), sum), false);
                }
            }
        }
        for spare in spares.iter().filter(|spare| 0 < spare.count) {
            let sum = times(&spare.bin, spare.count);
            if shaping.whole_units {
                let unit = spare.bin.clone();
                add(&mut built, &spare.profile, &spare.group, (sum, unit), true);
            } else {
                // OP-68: a doubled bin as the smallest unit would make every machine too small.
                let group = Group::default();
                add(
                    &mut built,
                    &spare.profile,
                    &group,
                    (sum, Amounts::NONE),
                    false,
                );
            }
        }
        let rows: Vec<_> = built.into_iter().map(finished).collect();
        check(&rows)?;
        Ok(rows)
    }
}

type Built = BTreeMap<(Arc<Profile>, Group), (Amounts, Amounts, bool)>;

fn add(
    built: &mut Built,
    profile: &Arc<Profile>,
    group: &Group,
    (aggregate, unit): (Amounts, Amounts),
    whole: bool,
) {
    let key = (Arc::clone(profile), group.clone());
    let entry = built.entry(key).or_default();
    entry.0 = entry.0.add(&aggregate);
    entry.1 = entry.1.larger(&unit);
    entry.2 |= whole;
}

fn add_plain(built: &mut Built, profile: &Arc<Profile>, units: &Units, shaping: Shaping) {
    let mut classes: BTreeMap<Group, Units> = BTreeMap::new();
    for (unit, count) in units {
        let group = shaping.group_of(&Gang::None, unit);
        classes
            .entry(group)
            .or_default()
            .insert(unit.clone(), *count);
    }
    for (group, units) in classes {
        let whole = shaping.defect == Some(Defect::EqualUnitsWhole) && units.len() == 1;
        add(built, profile, &group, gathered(&units, shaping), whole);
    }
}

/// The sum with what DaemonSets take on top, and the largest unit.
fn gathered(units: &Units, shaping: Shaping) -> (Amounts, Amounts) {
    let mut sum = Amounts::NONE;
    let mut largest = Amounts::NONE;
    for (unit, count) in units {
        sum = sum.add(&times(unit, *count));
        largest = largest.larger(unit);
    }
    (shaping.overhead.on_top_of(&sum), largest)
}

fn times(unit: &Amounts, count: u64) -> Amounts {
    unit.scale(i64::try_from(count).unwrap_or(i64::MAX))
}

fn finished(
    ((profile, group), (aggregate, min_unit, whole_units)): (
        (Arc<Profile>, Group),
        (Amounts, Amounts, bool),
    ),
) -> Row {
    Row {
        profile,
        aggregate,
        min_unit,
        group,
        whole_units,
    }
}

/// OP-23: what the model and the contract ask of rows. Requests are cut down to it when they are read, so whatever is
/// found here is a defect.
fn check(rows: &[Row]) -> Result<(), String> {
    if MOST_ROWS < rows.len() {
        return Err(format!("{} rows are more than {MOST_ROWS}", rows.len()));
    }
    for row in rows {
        let text = row.profile.fingerprint().as_str();
        if MOST_FINGERPRINT < text.len() || MOST_GROUP < row.group.as_str().len() {
            return Err(format!("a profile of {} bytes cannot be sent", text.len()));
        }
        if row.aggregate.iter().any(|(_, milli)| milli == i128::MAX) {
            return Err(format!("the sum of {text} cannot be counted"));
        }
    }
    Ok(())
}
