//! Names: texts as dense indexes, and back.
//!
//! ```text
//! texts  m1idle-7spec-12…        spans  [(0,2), (2,6), (8,7) …]       table  open addressing
//! ```
//!
//! One allocation for many texts instead of one each: 2.4 million ids of 14 bytes cost 34 MB of bytes,
//! 19 MB of spans and 17 MB of table. Indexes of removed names are used again, and their bytes are
//! squeezed out once they are the larger part, so a fleet whose ids come and go stays bounded. The
//! hash has a key, since strangers choose most names (D-6); an index depends only on the order in which
//! names come and go, never on the key.

use crate::{
    index::Index,
    table::Table,
    texts::{Span, Texts},
};
use bigfleet_model::HashKey;
use std::fmt;

/// A table grows when three in five of its places are taken: the largest fleet of the catalog then has seven in twelve taken, and
/// a name is found within two looks on average.
const FULL: (usize, usize) = (3, 5);
/// Removed bytes fewer than this are not worth squeezing out.
const WORTH_SQUEEZING: usize = 4096;

/// A set of texts, each with an index that stays while it is in.
#[derive(Clone)]
pub(crate) struct Names<I> {
    key: HashKey,
    texts: Texts,
    spans: Table<I, Span>,
    /// Indexes by hash. Its length is a power of two.
    table: Vec<Option<I>>,
    free: Vec<I>,
    live_bytes: usize,
    dead_bytes: usize,
}

/// Without the table, whose order depends on the key.
impl<I: fmt::Debug> fmt::Debug for Names<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names")
            .field("texts", &self.texts)
            .field("spans", &self.spans)
            .field("free", &self.free)
            .finish_non_exhaustive()
    }
}

impl<I> Default for Names<I> {
    fn default() -> Self {
        Self::new(HashKey::default())
    }
}

impl<I> Names<I> {
    pub(crate) fn new(key: HashKey) -> Self {
        Self {
            key,
            texts: Texts::default(),
            spans: Table::default(),
            table: Vec::new(),
            free: Vec::new(),
            live_bytes: 0,
            dead_bytes: 0,
        }
    }
}

impl<I: Index> Names<I> {
    /// The text with this index.
    pub(crate) fn get(&self, index: I) -> &str {
        self.texts.get(self.spans[index])
    }

    fn bytes(&self, index: I) -> &[u8] {
        self.texts.bytes(self.spans[index])
    }

    /// A few bits by which a text is known from others, whether or not it is in.
    pub(crate) fn digest(&self, text: &str) -> u32 {
        self.key.hash(text.as_bytes()) as u32
    }

    /// How many places are looked at to find every text once.
    pub(crate) fn places_searched(&self) -> usize {
        let mask = self.table.len().wrapping_sub(1);
        let texts = self.table.iter().enumerate();
        let steps = texts.filter_map(|(at, index)| {
            let home = self.home(self.bytes((*index)?), mask);
            Some(1 + (at.wrapping_sub(home) & mask))
        });
        steps.sum()
    }

    /// Bytewise order of two texts.
    pub(crate) fn compare(&self, one: I, other: I) -> std::cmp::Ordering {
        self.bytes(one).cmp(self.bytes(other))
    }

    /// How many indexes were ever given: as long as a table beside this one has to be.
    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// The index of a text that is in.
    pub(crate) fn find(&self, text: &str) -> Option<I> {
        if self.table.is_empty() {
            return None;
        }
        self.table[self.place(text)]
    }

    /// The index of a text, putting it in if it is not.
    pub(crate) fn intern(&mut self, text: &str) -> I {
        if self.table.len() * FULL.0 < (self.spans.len() + 1) * FULL.1 {
            self.grow();
        }
        let place = self.place(text);
        if let Some(index) = self.table[place] {
            return index;
        }
        let span = self.texts.push(text);
        self.live_bytes += text.len();
        let index = match self.free.pop() {
            Some(index) => {
                self.spans[index] = span;
                index
            }
            None => self.spans.push(span),
        };
        self.table[place] = Some(index);
        index
    }

    /// Takes a text out; its index may be given to another.
    pub(crate) fn remove(&mut self, index: I) {
        let mut hole = self.place(self.get(index));
        let mask = self.table.len() - 1;
        // Close the gap, so that every other text is still found on its walk.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(next) = self.table[at] else { break };
            let home = self.home(self.bytes(next), mask);
            let stays = (at.wrapping_sub(home) & mask) < (at.wrapping_sub(hole) & mask);
            if !stays {
                self.table[hole] = Some(next);
                hole = at;
            }
        }
        self.table[hole] = None;
        let length = self.spans[index].length();
        self.live_bytes -= length;
        self.dead_bytes += length;
        self.spans[index] = Span::default();
        self.free.push(index);
        if self.live_bytes < self.dead_bytes && WORTH_SQUEEZING < self.dead_bytes {
            self.squeeze();
        }
    }

    /// Where in a table a search for a text begins.
    fn home(&self, text: &[u8], mask: usize) -> usize {
        self.key.hash(text) as usize & mask
    }

    /// Where a text is in the table, or where it would go.
    fn place(&self, text: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = self.home(text.as_bytes(), mask);
        while self.table[at].is_some_and(|index| self.bytes(index) != text.as_bytes()) {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(64);
        let before = std::mem::replace(&mut self.table, vec![None; size]);
        for index in before.into_iter().flatten() {
            let mut at = self.home(self.bytes(index), size - 1);
            while self.table[at].is_some() {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = Some(index);
        }
    }

    fn squeeze(&mut self) {
        let before = std::mem::take(&mut self.texts);
        for span in self.spans.iter_mut() {
            *span = self.texts.push(before.get(*span));
        }
        self.dead_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MachineIndex;
    use bigfleet_seeded::Prng;

    #[test]
    fn names_keep_their_indexes_while_others_come_and_go() {
        let mut names: Names<MachineIndex> = Names::default();
        let kept: Vec<(MachineIndex, String)> = (0..2000)
            .map(|n| format!("kept-{n}"))
            .map(|text| (names.intern(&text), text))
            .collect();
        for round in 0..20 {
            let passing: Vec<MachineIndex> = (0..1000)
                .map(|n| names.intern(&format!("round-{round}-{n}")))
                .collect();
            for index in passing {
                names.remove(index);
            }
        }
        for (index, text) in &kept {
            assert_eq!(names.get(*index), text);
            assert_eq!(names.find(text), Some(*index));
        }
        assert_eq!(names.find("round-3-7"), None);
        assert!(names.count() <= 3000, "indexes are used again");
        let bytes = names.live_bytes + names.dead_bytes;
        assert!(
            bytes < 120_000,
            "{bytes} bytes: those of the dead are squeezed out"
        );
    }

    #[test]
    fn the_table_is_never_more_than_three_fifths_full_and_rarely_grows() {
        let mut names: Names<MachineIndex> = Names::default();
        let mut growths = 0;
        for count in 1..=10_000 {
            let before = names.table.len();
            names.intern(&format!("name-{count}"));
            growths += usize::from(before < names.table.len());
            assert!(names.count() * 5 <= names.table.len() * 3, "{count} names");
        }
        assert!(growths <= 10, "grew {growths} times");
        assert!(names.table.len() <= 32_768, "{} places", names.table.len());
    }

    /// Names made up by somebody who knows the key are all in one place, and with any other key they are not (D-6).
    #[test]
    fn names_made_to_collide_are_found_at_once_with_another_key() {
        let known = HashKey::default();
        let texts: Vec<String> = (0_u64..)
            .map(|number| format!("name-{number}"))
            .filter(|text| known.hash(text.as_bytes()) % 4096 == 0)
            .take(2000)
            .collect();
        let searched = |key| {
            let mut names: Names<MachineIndex> = Names::new(key);
            for text in &texts {
                names.intern(text);
            }
            assert_eq!(names.table.len(), 4096);
            names.places_searched()
        };
        assert_eq!(searched(known), 2000 * 2001 / 2, "each after all before it");
        let mut random = Prng::new(1);
        for drawn in 0..20 {
            let key = HashKey::new([(); 3].map(|()| random.next_u64()));
            let searched = searched(key);
            assert!(searched < 2 * texts.len(), "{searched} with key {drawn}");
        }
    }

    #[test]
    fn places_are_counted_from_where_a_search_begins() {
        let mut names: Names<MachineIndex> = Names::default();
        assert_eq!(names.places_searched(), 0);
        names.intern("one");
        assert_eq!(names.places_searched(), 1);
    }

    #[test]
    fn an_empty_text_is_a_name_too() {
        let mut names: Names<MachineIndex> = Names::default();
        let empty = names.intern("");
        let other = names.intern("x");
        assert_eq!(names.intern(""), empty);
        assert_ne!(empty, other);
        assert_eq!(names.compare(empty, other), std::cmp::Ordering::Less);
    }
}
