//! Dimensions: a small number for the name of each resource, so that amounts are compared by number.

use crate::{index::DimensionIndex, requested_amounts::RequestedAmounts, table::Table};
use bigfleet_model::{Amounts, Dimension};
use std::collections::BTreeMap;

/// The names of all resources that a machine has or a row asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dimensions {
    indexes: BTreeMap<Dimension, DimensionIndex>,
    names: Table<DimensionIndex, Dimension>,
}

impl Dimensions {
    fn index(&mut self, name: &Dimension) -> DimensionIndex {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let index = self.names.push(name.clone());
        self.indexes.insert(name.clone(), index);
        index
    }

    /// Amounts by index, in the order of names.
    pub(crate) fn requested(&mut self, amounts: &Amounts) -> RequestedAmounts {
        amounts
            .iter()
            .map(|(name, milli)| (self.index(name), milli))
            .collect()
    }

    /// The same for amounts that are likely to be of the same dimensions as others.
    pub(crate) fn requested_like(
        &mut self,
        others: &RequestedAmounts,
        amounts: &Amounts,
    ) -> RequestedAmounts {
        let mut others = others.iter();
        let indexed = amounts.iter().map(|(name, milli)| match others.next() {
            Some((likely, _)) if self.names[likely] == *name => (likely, milli),
            _ => (self.index(name), milli),
        });
        indexed.collect()
    }

    /// Amounts by name.
    pub(crate) fn amounts(
        &self,
        requested: impl IntoIterator<Item = (DimensionIndex, i128)>,
    ) -> Amounts {
        let named = |(index, milli)| (self.names[index].clone(), milli);
        Amounts::from_entries(requested.into_iter().map(named))
    }

    /// How many have been named.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }
}
