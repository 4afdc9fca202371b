//! Catalog: things in the order they came in, found by an index of their own type.
//!
//! A [`Table`] is one piece of memory, and the quicker to read. A [`LongTable`] is many pieces of a fixed
//! size: millions of records grow without being copied, so the old copy and the new never lie in memory
//! together.

use crate::index::Index;
use std::{marker::PhantomData, ops};

/// A table that may be copied as it grows.
#[derive(Clone, Debug)]
pub(crate) struct Table<I, T> {
    items: Vec<T>,
    index: PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            index: PhantomData,
        }
    }
}

impl<I: Index, T> Table<I, T> {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::at(self.items.len() - 1)
    }

    pub(crate) fn get(&self, index: I) -> Option<&T> {
        self.items.get(index.position())
    }

    pub(crate) fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.items.get_mut(index.position())
    }

    /// Adds what [`Default`] makes until there are so many.
    pub(crate) fn grow_to(&mut self, length: usize)
    where
        T: Default,
    {
        let length = length.max(self.items.len());
        self.items.resize_with(length, T::default);
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (I, &T)> {
        self.entries_from(0)
    }

    /// Those from a position on; what is before it is not walked.
    pub(crate) fn entries_from(&self, position: usize) -> impl Iterator<Item = (I, &T)> {
        let indexed = (position..).zip(&self.items[position..]);
        indexed.map(|(position, item)| (I::at(position), item))
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::at)
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self {
            items: items.into_iter().collect(),
            index: PhantomData,
        }
    }
}

impl<I: Index, T> ops::Index<I> for Table<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        &self.items[index.position()]
    }
}

impl<I: Index, T> ops::IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.items[index.position()]
    }
}

/// As many as lie together in a [`LongTable`]: few enough that a small fleet does not take room for a large one.
const CHUNK: usize = 1 << 10;

/// A table too large to be copied as it grows.
#[derive(Clone, Debug)]
pub(crate) struct LongTable<I, T> {
    /// All in use but for the end of the last. Arrays, so that a place in one needs no check.
    chunks: Vec<Box<[T; CHUNK]>>,
    length: usize,
    index: PhantomData<I>,
}

impl<I, T> Default for LongTable<I, T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            length: 0,
            index: PhantomData,
        }
    }
}

impl<I: Index, T: Copy> LongTable<I, T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, item: T) -> I {
        if self.length == self.chunks.len() * CHUNK {
            self.chunks.push(Box::new([item; CHUNK]));
        }
        let index = I::at(self.length);
        self.length += 1;
        self[index] = item;
        index
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks
            .iter()
            .flat_map(|chunk| &**chunk)
            .take(self.length)
    }

    pub(crate) fn indexes(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.length).map(I::at)
    }
}

impl<I: Index, T> ops::Index<I> for LongTable<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        let position = index.position();
        &self.chunks[position / CHUNK][position % CHUNK]
    }
}

impl<I: Index, T> ops::IndexMut<I> for LongTable<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        let position = index.position();
        &mut self.chunks[position / CHUNK][position % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MachineIndex;

    #[test]
    fn a_long_table_never_moves_or_loses_what_is_in_it() {
        let mut table: LongTable<MachineIndex, usize> = LongTable::default();
        assert_eq!(table.len(), 0);
        for position in 0..2 * CHUNK + 3 {
            let index = table.push(position);
            assert_eq!(index, MachineIndex::at(position));
            assert_eq!(table.len(), position + 1);
        }
        assert_eq!(table.chunks.len(), 3, "no room beyond what is used");
        for index in table.indexes() {
            assert_eq!(table[index], index.position());
            table[index] += 1;
        }
        assert!(table.iter().copied().eq(1..2 * CHUNK + 4));
    }
}
