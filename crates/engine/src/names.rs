//! Names: texts as dense numbers, and back.
//!
//! ```text
//! bytes  m1idle-7spec-12…        spans  [(0,2), (2,6), (8,7) …]       table  open addressing
//! ```
//!
//! One allocation for all texts instead of one each: 2.4 million ids of 14 bytes cost 34 MB of bytes,
//! 19 MB of spans and 17 MB of table. Numbers of removed names are used again, and their bytes are
//! squeezed out once they are the larger part, so a fleet whose ids come and go stays bounded. The
//! hash is fixed: the same names always give the same numbers.

use crate::NONE;
use bigfleet_model::text_hash;

/// A set of texts, each with a number that stays while it is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Numbers by hash; [`NONE`] where empty. Its length is a power of two.
    table: Vec<u32>,
    free: Vec<u32>,
    dead_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    length: u32,
}

impl Names {
    /// The text with this number.
    pub(crate) fn get(&self, number: u32) -> &str {
        let Span { start, length } = self.spans[number as usize];
        let bytes = &self.bytes[start as usize..(start + length) as usize];
        // Only whole texts are ever stored.
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    fn raw(&self, number: u32) -> &[u8] {
        let Span { start, length } = self.spans[number as usize];
        &self.bytes[start as usize..(start + length) as usize]
    }

    /// Bytewise order of two texts.
    pub(crate) fn compare(&self, one: u32, other: u32) -> std::cmp::Ordering {
        self.raw(one).cmp(self.raw(other))
    }

    /// One more than the largest number in use.
    pub(crate) fn bound(&self) -> usize {
        self.spans.len()
    }

    /// The number of a text that is in.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        Some(self.table[self.place(text)]).filter(|number| *number != NONE)
    }

    /// The number of a text, putting it in if it is not.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        if self.table.len() <= self.spans.len() * 2 {
            self.grow();
        }
        let place = self.place(text);
        if self.table[place] != NONE {
            return self.table[place];
        }
        let span = Span {
            start: self.bytes.len() as u32,
            length: text.len() as u32,
        };
        self.bytes.extend_from_slice(text.as_bytes());
        let number = match self.free.pop() {
            Some(number) => {
                self.spans[number as usize] = span;
                number
            }
            None => {
                self.spans.push(span);
                (self.spans.len() - 1) as u32
            }
        };
        self.table[place] = number;
        number
    }

    /// Takes a text out; its number may be given to another.
    pub(crate) fn remove(&mut self, number: u32) {
        let mut hole = self.place(self.get(number));
        let mask = self.table.len() - 1;
        // Close the gap, so that every other text is still found on its walk.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.table[at] == NONE {
                break;
            }
            let home = text_hash(self.raw(self.table[at])) as usize & mask;
            let stays = (at.wrapping_sub(home) & mask) < (at.wrapping_sub(hole) & mask);
            if !stays {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole] = NONE;
        self.dead_bytes += self.spans[number as usize].length as usize;
        self.spans[number as usize] = Span::default();
        self.free.push(number);
        if self.bytes.len() < self.dead_bytes * 2 && 4096 < self.dead_bytes {
            self.squeeze();
        }
    }

    /// Where a text is in the table, or where it would go.
    fn place(&self, text: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut at = text_hash(text.as_bytes()) as usize & mask;
        while self.table[at] != NONE && self.raw(self.table[at]) != text.as_bytes() {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.spans.len() * 4).next_power_of_two().max(64);
        let numbers = std::mem::replace(&mut self.table, vec![NONE; size]);
        for number in numbers.into_iter().filter(|number| *number != NONE) {
            let mut at = text_hash(self.raw(number)) as usize & (size - 1);
            while self.table[at] != NONE {
                at = (at + 1) & (size - 1);
            }
            self.table[at] = number;
        }
    }

    fn squeeze(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.dead_bytes);
        for span in &mut self.spans {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(
                &self.bytes[span.start as usize..(span.start + span.length) as usize],
            );
            span.start = start;
        }
        self.bytes = bytes;
        self.dead_bytes = 0;
    }
}

/// A few bits by which a text is known from others, without a place to look it up in.
pub(crate) fn mark(text: &str) -> u32 {
    text_hash(text.as_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_while_others_come_and_go() {
        let mut names = Names::default();
        let kept: Vec<(u32, String)> = (0..2000)
            .map(|n| format!("kept-{n}"))
            .map(|text| (names.intern(&text), text))
            .collect();
        for round in 0..20 {
            let passing: Vec<u32> = (0..1000)
                .map(|n| names.intern(&format!("round-{round}-{n}")))
                .collect();
            for number in passing {
                names.remove(number);
            }
        }
        for (number, text) in &kept {
            assert_eq!(names.get(*number), text);
            assert_eq!(names.find(text), Some(*number));
        }
        assert_eq!(names.find("round-3-7"), None);
        assert!(names.bound() <= 3000, "numbers are used again");
        assert!(names.bytes.len() < 120_000, "bytes are squeezed out");
    }

    #[test]
    fn an_empty_text_is_a_name_too() {
        let mut names = Names::default();
        let empty = names.intern("");
        let other = names.intern("x");
        assert_eq!(names.intern(""), empty);
        assert_ne!(empty, other);
        assert_eq!(names.compare(empty, other), std::cmp::Ordering::Less);
    }
}
