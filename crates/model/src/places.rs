//! Places: where the record of an id is kept, found without walking a tree.
//!
//! ```text
//! id ── hash ──▶ table [(hash, place) …] open addressing ── equal hash, equal id ──▶ place
//! ```
//!
//! In a fleet of hundreds of thousands a search tree compares some thirty ids to find one, each
//! somewhere else in memory; this looks at one or two. It is only ever asked for an id, never walked,
//! so its order can reach nothing. The hash has a key, since a provider chooses the ids (D-6).

use crate::HashKey;
use std::fmt;

/// Where ids are kept, by their hash.
#[derive(Clone, Default)]
pub(crate) struct Places {
    key: HashKey,
    /// Its length is a power of two, and at least half of it is empty.
    table: Vec<Option<Entry>>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    place: u32,
}

/// Without the table, whose order depends on the key.
impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Places {
    pub(crate) fn new(key: HashKey) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    fn hash(&self, text: &str) -> u32 {
        self.key.hash(text.as_bytes()) as u32
    }

    /// The place of a text, where `is` tells whether a place is that of the text.
    pub(crate) fn find(&self, text: &str, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        let at = self.walk(self.hash(text), is);
        self.table[at].map(|entry| entry.place)
    }

    /// Notes the place of a text that has none.
    pub(crate) fn insert(&mut self, text: &str, place: u32) {
        if self.table.len() <= self.len * 2 {
            self.grow();
        }
        let hash = self.hash(text);
        let at = self.walk(hash, |_| false);
        self.table[at] = Some(Entry { hash, place });
        self.len += 1;
    }

    /// Forgets the place of a text.
    pub(crate) fn remove(&mut self, text: &str, place: u32) {
        if self.table.is_empty() {
            return;
        }
        let mut hole = self.walk(self.hash(text), |one| one == place);
        if self.table[hole].take().is_none() {
            return;
        }
        self.len -= 1;
        // Close the gap, so that every other text is still found on its walk.
        let mask = self.table.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(entry) = self.table[at] else { break };
            let home = entry.hash as usize & mask;
            let stays = (at.wrapping_sub(home) & mask) < (at.wrapping_sub(hole) & mask);
            if !stays {
                self.table.swap(hole, at);
                hole = at;
            }
        }
    }

    /// Where in the table a hash is for which `is` holds, or would go.
    fn walk(&self, hash: u32, is: impl Fn(u32) -> bool) -> usize {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(entry) = self.table[at] {
            if entry.hash == hash && is(entry.place) {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let size = (self.len * 4).next_power_of_two().max(16);
        let entries = std::mem::replace(&mut self.table, vec![None; size]);
        for entry in entries.into_iter().flatten() {
            let at = self.walk(entry.hash, |_| false);
            self.table[at] = Some(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// As a map, through any coming and going.
    #[test]
    fn a_text_is_found_at_its_place_while_others_come_and_go() {
        let mut places = Places::default();
        let mut model: BTreeMap<String, u32> = BTreeMap::new();
        let mut texts: Vec<String> = Vec::new();
        let mut draw = 1u64;
        for step in 0..20_000u32 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let text = format!("m-{}", (draw >> 33) % 700);
            match model.remove(&text) {
                Some(place) => places.remove(&text, place),
                None => {
                    texts.push(text.clone());
                    places.insert(&text, step);
                    model.insert(text.clone(), step);
                }
            }
            let is = |place: u32| model.get(&text) == Some(&place);
            assert_eq!(places.find(&text, is), model.get(&text).copied());
            assert_eq!(places.len, model.len());
            assert!(places.len * 2 <= places.table.len(), "half of it is empty");
        }
        for text in &texts {
            let is = |place: u32| model.get(text) == Some(&place);
            assert_eq!(places.find(text, is), model.get(text).copied());
        }
        assert_eq!(places.len, model.len());
        assert_eq!(
            places.table.len(),
            1024,
            "as large as 350 to 400 texts need"
        );
    }

    /// As many ids as a hostile provider makes up to be in one place of a table whose key it knows (D-6).
    #[test]
    fn ids_made_to_collide_are_apart_with_another_key() {
        let known = HashKey::default();
        let texts: Vec<String> = (0_u64..)
            .map(|number| format!("m-{number}"))
            .filter(|text| known.hash(text.as_bytes()) % 2048 == 0)
            .take(500)
            .collect();
        let longest_run = |key| {
            let mut places = Places::new(key);
            for (place, text) in (0..).zip(&texts) {
                places.insert(text, place);
            }
            let runs = places.table.split(Option::is_none).map(<[_]>::len);
            runs.max()
        };
        assert_eq!(longest_run(known), Some(500));
        let drawn = longest_run(HashKey::new([
            known.hash(b"a"),
            known.hash(b"b"),
            known.hash(b"c"),
        ]));
        assert!(drawn < Some(50), "{drawn:?}");
    }

    #[test]
    fn an_empty_table_has_nothing_to_find_or_forget() {
        let mut places = Places::default();
        assert_eq!(places.find("m", |_| true), None);
        places.remove("m", 0);
        assert_eq!((places.len, places.table.len()), (0, 0));
        places.insert("m", 7);
        assert_eq!(places.table.len(), 16);
        places.remove("n", 7);
        places.remove("m", 8);
        assert_eq!(places.len, 1, "neither was there");
        assert_eq!(places.find("m", |place| place == 7), Some(7));
    }
}
