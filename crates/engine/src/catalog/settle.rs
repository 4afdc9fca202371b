//! Settling: which shapes serve which uses, worked out for all that are new together.

use super::Catalog;
use crate::index::{ConditionsIndex, Index, KeyIndex, UseIndex};
use bigfleet_model::effective_cost;
use std::ops::Range;

/// Shapes are few if they are at most one in so many: then the list takes no more room than the set.
const FEW: usize = 32;

/// How many of each are settled: what came later is not yet compared with the others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    shapes: usize,
    conditions: usize,
    uses: usize,
    keys: usize,
}

impl Catalog {
    /// Compares all shapes and uses that came since the last time with all others.
    pub(crate) fn settle(&mut self) {
        self.settle_orders();
        let (before, shapes) = (self.settled, self.shapes.len());
        let unsettled = |count: usize, settled: usize| {
            let first = if before.shapes < shapes { 0 } else { settled };
            (first..count).map(move |position| {
                let seen = if position < settled { before.shapes } else { 0 };
                (position, seen..shapes)
            })
        };
        for (position, new) in unsettled(self.conditions.len(), before.conditions) {
            self.settle_conditions(ConditionsIndex::at(position), &new);
        }
        for (position, new) in unsettled(self.uses.len(), before.uses) {
            self.settle_use(UseIndex::at(position), &new);
        }
        for (position, new) in unsettled(self.keys.len(), before.keys) {
            let entry = &mut self.keys[KeyIndex::at(position)];
            entry.settle(self.key, &self.offers, &self.shapes, new.start);
        }
        self.settled = Settled {
            shapes,
            conditions: self.conditions.len(),
            uses: self.uses.len(),
            keys: self.keys.len(),
        };
    }

    fn settle_orders(&mut self) {
        let Self {
            shapes,
            by_price,
            by_cost,
            ..
        } = self;
        if by_price.len() < shapes.len() {
            by_price.extend(shapes.indexes().skip(by_price.len()));
            by_price.sort_by_key(|shape| shapes[*shape].price);
        }
        for (penalty, order) in by_cost {
            if order.len() == shapes.len() {
                continue;
            }
            let new = shapes.entries_from(order.len()).map(|(shape, entry)| {
                let cost = effective_cost(entry.price, entry.interruption, *penalty);
                (cost, shape)
            });
            order.extend(new.collect::<Vec<_>>());
            order.sort_by_key(|(cost, shape)| (*cost, shapes[*shape].price));
        }
    }

    fn settle_conditions(&mut self, index: ConditionsIndex, new: &Range<usize>) {
        let entry = &mut self.conditions[index];
        entry.met_by.grow(new.clone());
        for requirement in entry.profile.requirements() {
            self.offers
                .require(&mut entry.met_by, new, requirement, &self.shapes);
        }
    }

    fn settle_use(&mut self, index: UseIndex, new: &Range<usize>) {
        let entry = &mut self.uses[index];
        let serving = &mut entry.served_by;
        serving.grow(new.clone());
        serving.keep(new, &self.conditions[entry.conditions].met_by);
        self.offers.require_amounts(serving, new, &entry.min_unit);
        let more = serving.within(new).count();
        entry.count += more;
        if self.shapes.len() < entry.count * FEW {
            entry.few = None;
        } else if 0 < more || entry.few.is_none() {
            let mut few: Vec<_> = serving.within(&(0..new.end)).collect();
            few.sort_by_key(|shape| self.shapes[*shape].price);
            entry.few = Some(few.into());
        }
    }
}
