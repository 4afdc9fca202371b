//! Shape sets: which shapes something holds for, one bit each.

use crate::index::{Index, ShapeIndex};
use std::ops::Range;

const BITS: usize = u64::BITS as usize;

#[derive(Clone, Debug, Default)]
pub(crate) struct ShapeSet {
    words: Box<[u64]>,
}

impl ShapeSet {
    pub(crate) fn contains(&self, shape: ShapeIndex) -> bool {
        let position = shape.position();
        let word = self.words.get(position / BITS);
        word.is_some_and(|word| word >> (position % BITS) & 1 == 1)
    }

    /// Adds all shapes of another set.
    pub(crate) fn add_all(&mut self, others: &Self) {
        if self.words.len() < others.words.len() {
            let mut words = std::mem::take(&mut self.words).into_vec();
            words.resize(others.words.len(), 0);
            self.words = words.into();
        }
        for (word, other) in self.words.iter_mut().zip(&others.words) {
            *word |= other;
        }
    }

    /// Those that are in both sets, ascending.
    pub(crate) fn common<'s>(&'s self, others: &'s Self) -> impl Iterator<Item = ShapeIndex> {
        let words = self.words.iter().zip(&others.words).enumerate();
        words.flat_map(|(at, (word, other))| shapes_of(at, word & other))
    }

    /// Adds all shapes of a range that begins where the set ended before.
    pub(crate) fn grow(&mut self, new: Range<usize>) {
        let mut words = std::mem::take(&mut self.words).into_vec();
        words.reserve_exact(new.end.div_ceil(BITS) - words.len());
        words.resize(new.end.div_ceil(BITS), 0);
        self.words = words.into();
        for (word, bits) in self.words_of(&new) {
            *word |= bits;
        }
    }

    pub(crate) fn remove(&mut self, shape: ShapeIndex) {
        let position = shape.position();
        self.words[position / BITS] &= !(1 << (position % BITS));
    }

    /// Takes out the shapes of a range that another set does not have.
    pub(crate) fn keep(&mut self, range: &Range<usize>, others: &Self) {
        let first = range.start / BITS;
        for ((word, bits), other) in self.words_of(range).zip(&others.words[first..]) {
            *word &= other | !bits;
        }
    }

    /// Takes out the shapes of a range that are not among those listed.
    pub(crate) fn keep_listed(
        &mut self,
        range: &Range<usize>,
        listed: impl Iterator<Item = ShapeIndex>,
    ) {
        let first = range.start / BITS;
        let mut kept = vec![0_u64; range.end.div_ceil(BITS) - first];
        for position in listed.map(Index::position) {
            kept[position / BITS - first] |= 1 << (position % BITS);
        }
        for ((word, bits), kept) in self.words_of(range).zip(kept) {
            *word &= kept | !bits;
        }
    }

    /// Those of a range, ascending.
    pub(crate) fn within(&self, range: &Range<usize>) -> impl Iterator<Item = ShapeIndex> {
        let first = range.start / BITS;
        let words = self.words[first..].iter().zip(masks(range)).enumerate();
        words.flat_map(move |(at, (word, bits))| shapes_of(first + at, word & bits))
    }

    fn words_of(&mut self, range: &Range<usize>) -> impl Iterator<Item = (&mut u64, u64)> {
        self.words[range.start / BITS..]
            .iter_mut()
            .zip(masks(range))
    }
}

impl FromIterator<ShapeIndex> for ShapeSet {
    fn from_iter<S: IntoIterator<Item = ShapeIndex>>(shapes: S) -> Self {
        let mut words: Vec<u64> = Vec::new();
        for position in shapes.into_iter().map(Index::position) {
            words.resize(words.len().max(position / BITS + 1), 0);
            words[position / BITS] |= 1 << (position % BITS);
        }
        Self {
            words: words.into(),
        }
    }
}

/// The shapes of the bits of a word.
fn shapes_of(word: usize, mut left: u64) -> impl Iterator<Item = ShapeIndex> {
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(ShapeIndex::at(word * BITS + bit))
    })
}

/// For each word that a range reaches into, the bits of it that are in the range.
fn masks(range: &Range<usize>) -> impl Iterator<Item = u64> + use<> {
    let Range { start, end } = *range;
    (start / BITS..end.div_ceil(BITS)).map(move |word| {
        let from = start.saturating_sub(word * BITS);
        let to = (end - word * BITS).min(BITS);
        (u64::MAX << from) & (u64::MAX >> (BITS - to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_seeded::Prng;

    fn positions(set: &ShapeSet, range: Range<usize>) -> Vec<usize> {
        set.within(&range).map(Index::position).collect()
    }

    #[test]
    fn an_empty_set_has_nothing() {
        let mut set = ShapeSet::default();
        assert!(!set.contains(ShapeIndex::at(0)));
        set.grow(0..0);
        assert_eq!(positions(&set, 0..0), [0; 0]);
    }

    /// Whatever a range is cut down to, the shapes before it stay as they were.
    #[test]
    fn a_range_changes_alone() {
        for seed in 0..500 {
            let mut random = Prng::new(seed);
            let (start, more) = (random.below(200), random.below(200));
            let end = start + more;
            let range = start..end;
            let mut some = |among: Range<usize>| -> Vec<usize> {
                among.filter(|_| random.chance(0.3)).collect()
            };
            let (before, listed) = (some(0..start), some(range.clone()));
            let shapes = || listed.iter().copied().map(ShapeIndex::at);

            let mut set = ShapeSet::default();
            set.grow(0..start);
            let gone = (0..start).filter(|position| !before.contains(position));
            gone.for_each(|position| set.remove(ShapeIndex::at(position)));
            set.grow(range.clone());
            let all: Vec<usize> = range.clone().collect();
            assert_eq!(positions(&set, range.clone()), all, "seed {seed}");

            let mut others = ShapeSet::default();
            others.grow(0..end);
            others.keep_listed(&(0..end), shapes());
            let mut same = set.clone();
            same.keep(&range, &others);
            set.keep_listed(&range, shapes());
            let expected = [before, listed.clone()].concat();
            assert_eq!(positions(&set, 0..end), expected, "seed {seed}");
            assert_eq!(positions(&same, 0..end), expected, "seed {seed}");
            let held = (0..500).filter(|position| set.contains(ShapeIndex::at(*position)));
            assert_eq!(held.collect::<Vec<_>>(), expected, "seed {seed}");

            let few: ShapeSet = shapes().take(5).collect();
            let common: Vec<usize> = set.common(&few).map(Index::position).collect();
            assert_eq!(common, listed[..listed.len().min(5)], "seed {seed}");
            let mut both = few;
            both.add_all(&set);
            assert_eq!(positions(&both, 0..end), expected, "seed {seed}");
        }
    }
}
