//! Names: texts as dense indexes, and back.
//!
//! ```text
//! texts  m1idle-7spec-12…        spans  [(0,2), (2,6), (8,7) …]       table  open addressing
//! ```
//!
//! One allocation for many texts instead of one each: 2.4 million ids of 14 bytes cost 34 MB of bytes,
//! 19 MB of spans and 34 MB of table. Indexes of removed names are used again, and their bytes are
//! squeezed out once they are the larger part, so a fleet whose ids come and go stays bounded. The
//! hash is fixed: the same names always give the same indexes.

use crate::{
    index::Index,
    table::Table,
    texts::{Span, Texts},
};
use bigfleet_model::text_hash;

/// Removed bytes fewer than this are not worth squeezing out.
const WORTH_SQUEEZING: usize = 4096;

/// A set of texts, each with an index that stays while it is in.
#[derive(Clone, Debug)]
pub(crate) struct Names<I> {
    texts: Texts,
    spans: Table<I, Span>,
    /// Indexes by hash. Its length is a power of two.
    table: Vec<Option<I>>,
    free: Vec<I>,
    live_bytes: usize,
    dead_bytes: usize,
}

impl<I> Default for Names<I> {
    fn default() -> Self {
        Self {
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
        // Only whole texts are ever stored.
        std::str::from_utf8(self.bytes(index)).unwrap_or_default()
    }

    fn bytes(&self, index: I) -> &[u8] {
        self.texts.get(self.spans[index])
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
        if self.table.len() <= self.spans.len() * 2 {
            self.grow();
        }
        let place = self.place(text);
        if let Some(index) = self.table[place] {
            return index;
        }
        let span = self.texts.push(text.as_bytes());
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
            let home = text_hash(self.bytes(next)) as usize & mask;
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

    /// Where a text is in the table, or where it would go.
    fn place(&self, text: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = text_hash(text.as_bytes()) as usize & mask;
        while self.table[at].is_some_and(|index| self.bytes(index) != text.as_bytes()) {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.spans.len() * 4).next_power_of_two().max(64);
        let before = std::mem::replace(&mut self.table, vec![None; size]);
        for index in before.into_iter().flatten() {
            let mut at = text_hash(self.bytes(index)) as usize & (size - 1);
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

/// A few bits by which a text is known from others, without a place to look it up in.
pub(crate) fn text_digest(text: &str) -> u32 {
    text_hash(text.as_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MachineIndex;

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
    fn the_table_is_never_more_than_half_full_and_rarely_grows() {
        let mut names: Names<MachineIndex> = Names::default();
        let mut growths = 0;
        for count in 1..=10_000 {
            let before = names.table.len();
            names.intern(&format!("name-{count}"));
            growths += usize::from(before < names.table.len());
            assert!(names.count() * 2 <= names.table.len(), "{count} names");
        }
        assert!(growths <= 10, "grew {growths} times");
        assert!(names.table.len() <= 65_536, "{} places", names.table.len());
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
