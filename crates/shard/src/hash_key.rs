//! The key that names are found with, drawn anew for every table that strangers write into (D-6).

use bigfleet_model::HashKey;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A key that nobody outside this process can know, from the randomness the system gives every process.
pub(crate) fn draw_hash_key() -> HashKey {
    HashKey::new([(); 3].map(|()| RandomState::new().build_hasher().finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_another_key() {
        assert_ne!(draw_hash_key(), draw_hash_key());
        assert_ne!(draw_hash_key(), HashKey::default());
    }
}
