//! Units: what machines count with for rows that ask for whole units (RF-19).
//!
//! ```text
//! (smallest unit, shape) ── once, as either is new ──▶ how many whole units such a machine holds
//! ```
//!
//! The number does not depend on the profile, so rows of one unit share an entry; nor on the price, so
//! shapes that differ in nothing else share a count.

use crate::{
    Mistake,
    catalog::ShapeEntry,
    index::{DimensionIndex, ShapeIndex, UnitIndex},
    table::Table,
};
use bigfleet_model::Amounts;
use std::collections::BTreeMap;

/// One size of unit.
#[derive(Clone, Debug)]
pub(crate) struct UnitEntry {
    /// Its dimensions; none if a machine counts with all it has.
    amounts: Box<[(DimensionIndex, i64)]>,
    /// How many of them machines of each shape hold. Only read at the first of shapes with equal amounts.
    held: Table<ShapeIndex, i64>,
}

/// What a machine counts with for a Need.
#[derive(Clone, Copy)]
pub(crate) struct Credit<'a> {
    shape: &'a ShapeEntry,
    unit: &'a [(DimensionIndex, i64)],
    units: i64,
}

impl<'a> Credit<'a> {
    /// All that the machine has.
    pub(crate) fn in_full(shape: &'a ShapeEntry) -> Self {
        let (unit, units) = (&[][..], 0);
        Self { shape, unit, units }
    }

    pub(crate) fn amount(&self, dimension: DimensionIndex) -> i64 {
        let mut unit = self.unit.iter();
        match unit.find(|(wanted, _)| *wanted == dimension) {
            // No more than the machine has, so it fits.
            Some((_, milli)) => milli * self.units,
            None => self.shape.amount(dimension),
        }
    }
}

/// All sizes of units.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    entries: Table<UnitIndex, UnitEntry>,
    indexes: BTreeMap<Amounts, UnitIndex>,
    mistake: Option<Mistake>,
}

impl Units {
    /// Switches an old mistake on.
    pub(crate) fn make(&mut self, mistake: Mistake) {
        self.mistake = Some(mistake);
    }

    pub(crate) fn find(&self, unit: &Amounts) -> Option<UnitIndex> {
        self.indexes.get(unit).copied()
    }

    /// Adds a size of unit, which is not empty; looks at every shape once.
    pub(crate) fn add(
        &mut self,
        unit: &Amounts,
        amounts: impl Iterator<Item = (DimensionIndex, i128)>,
        shapes: &Table<ShapeIndex, ShapeEntry>,
    ) -> UnitIndex {
        // No machine holds a unit that is larger than machines can be.
        let cut = |(dimension, milli)| (dimension, i64::try_from(milli).unwrap_or(i64::MAX));
        let mut entry = UnitEntry {
            amounts: amounts.map(cut).collect(),
            held: Table::default(),
        };
        entry.learn(shapes, self.mistake);
        let index = self.entries.push(entry);
        self.indexes.insert(unit.clone(), index);
        index
    }

    /// Looks at the shapes that are new.
    pub(crate) fn learn(&mut self, shapes: &Table<ShapeIndex, ShapeEntry>) {
        for entry in self.entries.iter_mut() {
            entry.learn(shapes, self.mistake);
        }
    }

    pub(crate) fn credit<'a>(&'a self, unit: UnitIndex, shape: &'a ShapeEntry) -> Credit<'a> {
        let entry = &self.entries[unit];
        Credit {
            shape,
            unit: &entry.amounts,
            units: entry.held[shape.same_amounts_as],
        }
    }
}

impl UnitEntry {
    fn learn(&mut self, shapes: &Table<ShapeIndex, ShapeEntry>, mistake: Option<Mistake>) {
        for (index, shape) in shapes.entries_from(self.held.len()) {
            let is_first = shape.same_amounts_as == index;
            self.held.push(if is_first {
                self.held_by(shape, mistake)
            } else {
                0
            });
        }
    }

    fn held_by(&self, shape: &ShapeEntry, mistake: Option<Mistake>) -> i64 {
        let extra = |milli: i64| match mistake {
            Some(Mistake::CreditRoundedUp) => milli - 1,
            _ => 0,
        };
        let fit = |(dimension, milli): &(DimensionIndex, i64)| {
            (shape.amount(*dimension) + extra(*milli)) / milli
        };
        let dimensions = match mistake {
            Some(Mistake::CreditByFirstDimension) => 1,
            _ => usize::MAX,
        };
        let fits = self.amounts.iter().take(dimensions).map(fit);
        fits.min().unwrap_or(0)
    }
}
