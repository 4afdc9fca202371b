//! Offers: which shapes have an attribute or an amount, found by what is asked for.
//!
//! ```text
//! zone ─┬─ a ─▶ 0, 3, 7 …        cpu ─▶ (0, 4), (1, 8), (2, 8) …
//!       └─ b ─▶ 1, 2, 4 …        gpu ─▶ (2, 1) …
//! ```
//!
//! A condition costs as much as the shapes that are listed under what it names, so one that names nothing any
//! machine has costs a search. That is a bound on what thousands of different conditions cost, whoever wrote
//! them; and each shape is listed once per attribute and amount it has, however many conditions there are.

use crate::{
    catalog::ShapeEntry,
    index::{Index, ShapeIndex},
    shape_set::ShapeSet,
    table::Table,
};
use bigfleet_model::{Amounts, Dimension, Operator, Requirement, Shape};
use std::{collections::BTreeMap, ops::Range};

#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    attributes: BTreeMap<String, AttributeOffers>,
    amounts: BTreeMap<Dimension, Vec<(ShapeIndex, i128)>>,
}

/// The shapes that have one attribute, ascending.
#[derive(Clone, Debug, Default)]
struct AttributeOffers {
    shapes: Vec<ShapeIndex>,
    by_value: BTreeMap<String, Vec<ShapeIndex>>,
}

impl Offers {
    /// Lists a shape above all that are listed.
    pub(crate) fn add(&mut self, index: ShapeIndex, shape: &Shape) {
        for (key, value) in shape.attributes() {
            let offers = self.attributes.entry(key.to_owned()).or_default();
            offers.shapes.push(index);
            let with_value = offers.by_value.entry(value.to_owned()).or_default();
            with_value.push(index);
        }
        for (dimension, milli) in shape.effective().iter() {
            let offers = self.amounts.entry(dimension.clone()).or_default();
            offers.push((index, milli));
        }
    }

    /// The shapes from a position on that have an attribute, ascending.
    pub(crate) fn with_attribute(&self, key: &str, from: usize) -> &[ShapeIndex] {
        let offers = self.attributes.get(key);
        offers.map_or(&[], |offers| beginning(&offers.shapes, from))
    }

    /// Takes the shapes of a range out of a set that do not meet a requirement (RM-2).
    pub(crate) fn require(
        &self,
        set: &mut ShapeSet,
        range: &Range<usize>,
        requirement: &Requirement,
        shapes: &Table<ShapeIndex, ShapeEntry>,
    ) {
        let (key, values) = (requirement.key(), requirement.values());
        if range.len() < values.len() {
            let meets =
                |shape: &ShapeIndex| requirement.accepts(shapes[*shape].shape.attribute(key));
            let unfit: Vec<_> = set.within(range).filter(|shape| !meets(shape)).collect();
            unfit.into_iter().for_each(|shape| set.remove(shape));
            return;
        }
        let offers = self.attributes.get(key);
        let of_values = values
            .iter()
            .filter_map(|value| offers?.by_value.get(value));
        let of_values = of_values.flat_map(|shapes| beginning(shapes, range.start).iter().copied());
        let of_any = self.with_attribute(key, range.start).iter().copied();
        match requirement.operator() {
            Operator::Exists => set.keep_listed(range, of_any),
            Operator::Same if values.is_empty() => set.keep_listed(range, of_any),
            Operator::In | Operator::Same => set.keep_listed(range, of_values),
            Operator::DoesNotExist => of_any.for_each(|shape| set.remove(shape)),
            Operator::NotIn => of_values.for_each(|shape| set.remove(shape)),
        }
    }

    /// Takes the shapes of a range out of a set that do not have a smallest unit (RM-3).
    pub(crate) fn require_amounts(
        &self,
        set: &mut ShapeSet,
        range: &Range<usize>,
        min_unit: &Amounts,
    ) {
        for (dimension, milli) in min_unit.iter() {
            let offers = self.amounts.get(dimension).map_or(&[][..], |offers| offers);
            let first = offers.partition_point(|(shape, _)| shape.position() < range.start);
            let enough = offers[first..]
                .iter()
                .filter(|(_, offered)| milli <= *offered);
            set.keep_listed(range, enough.map(|(shape, _)| *shape));
            if offers.is_empty() {
                return;
            }
        }
    }
}

fn beginning(shapes: &[ShapeIndex], from: usize) -> &[ShapeIndex] {
    &shapes[shapes.partition_point(|shape| shape.position() < from)..]
}
