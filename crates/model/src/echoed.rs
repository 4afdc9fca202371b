//! Echoed: the metadata a provider gives back with a machine, as it was given (wire 6.13).
//!
//! ```text
//! text  "…assigned-group" "g1" "…assigned-priority" "7" …     cuts  where each ends
//! ```
//!
//! A List brings one for every machine, and nearly all of them are looked at once and dropped, so each
//! is one piece of text instead of a tree of pieces.

use std::{collections::BTreeMap, fmt};

/// Texts by key, in key order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Echoed {
    text: Box<str>,
    /// Where each key and each value ends, in turn.
    cuts: Box<[usize]>,
}

impl Echoed {
    /// Texts whose keys are in ascending order, each once.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub fn new<'a>(entries: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        let keys = entries.clone().map(|(key, _)| key);
        assert!(keys.is_sorted_by(|one, next| one < next), "keys in order");
        let parts = || entries.clone().flat_map(|(key, value)| [key, value]);
        let mut text = String::with_capacity(parts().map(str::len).sum());
        let cut = |part: &str| {
            text.push_str(part);
            text.len()
        };
        let cuts = parts().map(cut).collect();
        let text = text.into_boxed_str();
        Self { text, cuts }
    }

    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let (mut low, mut high) = (0, self.cuts.len() / 2);
        while low < high {
            let middle = (low + high) / 2;
            let (found, value) = self.entry(middle);
            match found.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Keys and values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.cuts.len() / 2).map(|number| self.entry(number))
    }

    fn entry(&self, number: usize) -> (&str, &str) {
        let at = number * 2;
        let start = at.checked_sub(1).map_or(0, |before| self.cuts[before]);
        let (middle, end) = (self.cuts[at], self.cuts[at + 1]);
        (&self.text[start..middle], &self.text[middle..end])
    }
}

impl From<&BTreeMap<String, String>> for Echoed {
    fn from(texts: &BTreeMap<String, String>) -> Self {
        Self::new(
            texts
                .iter()
                .map(|(key, text)| (key.as_str(), text.as_str())),
        )
    }
}

impl fmt::Debug for Echoed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As a map, whatever is in it.
        #[test]
        fn what_was_given_is_echoed(
            texts in proptest::collection::btree_map(".{0,3}", ".{0,3}", 0..8),
            other in ".{0,3}",
        ) {
            let echoed = Echoed::from(&texts);
            let pairs: Vec<_> = texts.iter().map(|(key, text)| (&**key, &**text)).collect();
            prop_assert_eq!(echoed.iter().collect::<Vec<_>>(), pairs);
            for key in texts.keys().chain([&other]) {
                prop_assert_eq!(echoed.get(key), texts.get(key).map(String::as_str));
            }
        }
    }
}
