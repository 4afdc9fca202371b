//! Slab: a table in which the index of a thing that is gone is given to the next.

use crate::{index::Index, table::Table};
use std::ops;

#[derive(Clone, Debug)]
pub(crate) struct Slab<I, T> {
    items: Table<I, T>,
    free: Vec<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self {
            items: Table::default(),
            free: Vec::new(),
        }
    }
}

impl<I: Index, T> Slab<I, T> {
    /// Puts a thing in and returns its index; `make` is shown the thing whose place it takes.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Option<&T>) -> T) -> I {
        match self.free.pop() {
            Some(index) => {
                let thing = make(Some(&self[index]));
                self[index] = thing;
                index
            }
            None => self.items.push(make(None)),
        }
    }

    /// Gives an index back. The thing stays readable until the index is used again.
    pub(crate) fn remove(&mut self, index: I) {
        self.free.push(index);
    }

    /// Every index ever given.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = I> + use<I, T> {
        self.items.indexes()
    }
}

impl<I: Index, T> ops::Index<I> for Slab<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        &self.items[index]
    }
}

impl<I: Index, T> ops::IndexMut<I> for Slab<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.items[index]
    }
}
