//! Units: what machines count with for rows that ask for whole units (RF-19).
//!
//! ```text
//! (smallest unit, size of a machine) ── once, as either is new ──▶ how many whole units it holds
//! ```
//!
//! The number does not depend on the profile, so rows of one unit share an entry; nor on the price or the
//! labels of a shape, of which there are thousands where there are a few sizes.

use crate::{
    Mistake,
    catalog::ShapeEntry,
    index::{AmountsIndex, DimensionIndex, ShapeIndex, UnitIndex},
    table::Table,
};
use bigfleet_model::Amounts;
use std::collections::BTreeMap;

/// One size of unit.
#[derive(Clone, Debug)]
pub(crate) struct UnitEntry {
    /// Its dimensions; none if a machine counts with all it has.
    amounts: Box<[(DimensionIndex, i64)]>,
    /// How many of them machines of each size hold.
    held: Table<AmountsIndex, i64>,
}

/// The sizes of machines, each with the first shape that has it, and the shapes.
type Machines<'a> = (
    &'a Table<AmountsIndex, ShapeIndex>,
    &'a Table<ShapeIndex, ShapeEntry>,
);

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

    /// Adds a size of unit, which is not empty, and counts it for every size of machine.
    pub(crate) fn add(
        &mut self,
        unit: &Amounts,
        amounts: impl Iterator<Item = (DimensionIndex, i128)>,
        machines: Machines<'_>,
    ) -> UnitIndex {
        // No machine holds a unit that is larger than machines can be.
        let cut = |(dimension, milli)| (dimension, i64::try_from(milli).unwrap_or(i64::MAX));
        let mut entry = UnitEntry {
            amounts: amounts.map(cut).collect(),
            held: Table::default(),
        };
        entry.learn(machines, self.mistake);
        let index = self.entries.push(entry);
        self.indexes.insert(unit.clone(), index);
        index
    }

    /// Counts sizes of machines that are new, for every unit.
    pub(crate) fn learn(&mut self, machines: Machines<'_>) {
        for entry in self.entries.iter_mut() {
            entry.learn(machines, self.mistake);
        }
    }

    pub(crate) fn credit<'a>(&'a self, unit: UnitIndex, shape: &'a ShapeEntry) -> Credit<'a> {
        let entry = &self.entries[unit];
        Credit {
            shape,
            unit: &entry.amounts,
            units: entry.held[shape.size],
        }
    }
}

impl UnitEntry {
    fn learn(&mut self, (sizes, shapes): Machines<'_>, mistake: Option<Mistake>) {
        for (_, first) in sizes.entries_from(self.held.len()) {
            self.held.push(self.held_by(&shapes[*first], mistake));
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
