//! Hash: texts as numbers, for tables that strangers write into.
//!
//! Operators and providers choose names. Whoever knows how a name becomes a place in a table can choose names
//! that all go to the same place, and then every search looks at all of them. So the hash has a key: a process draws
//! it when it starts and shows it to nobody. What a table answers does not depend on it, only how
//! many places are looked at.
//!
//! ```text
//! text ── words of eight bytes, as the digits of a number in base `point`, modulo a prime ──▶ sum
//! sum  ── times `multiplier`, the upper half, stirred ──▶ hash
//! ```
//!
//! Both halves have a bound that no choice of names can beat. Two different texts of n words have equal sums at n
//! points at most, of 2^58 that can be drawn: a polynomial has no more roots than its degree. And for two different sums every
//! pair of hashes is equally likely, so any bits of the hash may choose the place. Stirring changes neither; it
//! keeps names that are counted up from lying in step.

use std::fmt;

/// The largest prime below 2^64.
const PRIME: u64 = u64::MAX - 58;
/// 2^64 modulo the prime.
const CARRY: u64 = 59;
/// Points are below this, so that [`CARRY`] times the upper half of a product fits a word.
const POINTS: u64 = 1 << 58;

/// A key that texts are hashed with. Whoever knows it can make names that are slow to find.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    point: u64,
    multiplier: u128,
}

impl HashKey {
    /// The key made of three words, which should be drawn at random.
    pub fn new(words: [u64; 3]) -> Self {
        let [point, low, high] = words;
        Self {
            point: point % POINTS,
            multiplier: (u128::from(high) << 64) + u128::from(low),
        }
    }

    /// The hash of a text: the same for equal texts, and with another key another one.
    pub fn hash(&self, text: &[u8]) -> u64 {
        // The length comes first, so a text that is the beginning of another has another polynomial.
        let mut sum = text.len() as u64;
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            sum = self.append(sum, u64::from_le_bytes(*word));
        }
        if let (false, Some(last)) = (rest.is_empty(), text.last_chunk::<8>()) {
            // Bytes that are in two words are in them twice for every text of this length.
            sum = self.append(sum, u64::from_le_bytes(*last));
        } else if !rest.is_empty() {
            let digits = rest.iter().map(|byte| u64::from(*byte));
            sum = self.append(sum, digits.fold(0, |word, byte| word * 256 + byte));
        }
        let sum = if sum < PRIME { sum } else { sum - PRIME };
        stirred((self.multiplier.wrapping_mul(u128::from(sum)) >> 64) as u64)
    }

    /// The sum with one more digit, modulo the prime but not always below it. No text has a byte 0xff, so every word of
    /// one is below the prime.
    fn append(&self, sum: u64, word: u64) -> u64 {
        let wide = u128::from(sum) * u128::from(self.point) + u128::from(word);
        let (low, carried) = (wide as u64).overflowing_add((wide >> 64) as u64 * CARRY);
        low + u64::from(carried) * CARRY
    }
}

/// Every number becomes another, and no two the same.
fn stirred(number: u64) -> u64 {
    let number = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ number >> 29
}

/// A key that everybody knows: for tools and tests, whose names nobody makes up to slow them down.
impl Default for HashKey {
    fn default() -> Self {
        Self::new([
            0x9e37_79b9_7f4a_7c15,
            0xbf58_476d_1ce4_e5b9,
            0x94d0_49bb_1331_11eb,
        ])
    }
}

/// Without the key, which belongs in no log.
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// As the header says it, in numbers of any size.
    fn by_the_book(key: &HashKey, text: &[u8]) -> u64 {
        let mut digits = vec![BigUint::from(text.len())];
        let whole = text.len() / 8 * 8;
        digits.extend(text[..whole].chunks(8).map(BigUint::from_bytes_le));
        match text.len() % 8 {
            0 => {}
            _ if 8 < text.len() => digits.push(BigUint::from_bytes_le(&text[text.len() - 8..])),
            _ => digits.push(BigUint::from_bytes_be(text)),
        }
        let next = |sum: BigUint, digit| (sum * key.point + digit) % PRIME;
        let sum = digits.into_iter().fold(BigUint::ZERO, next);
        let hash = ((sum * key.multiplier) >> 64_u32) % (BigUint::from(1_u8) << 64_u32);
        stirred(u64::try_from(hash).unwrap())
    }

    proptest! {
        #[test]
        fn the_hash_is_the_polynomial(text in ".{0,40}", words: [u64; 3]) {
            let key = HashKey::new(words);
            prop_assert_eq!(key.hash(text.as_bytes()), by_the_book(&key, text.as_bytes()));
        }

        /// Where sums come close to 2^64, carries are rare unless they are looked for.
        #[test]
        fn no_carry_is_lost(text in prop::collection::vec(0xf0..=0xfe_u8, 8..40), off in 1..4_u64) {
            let key = HashKey::new([POINTS - off, u64::MAX, u64::MAX]);
            prop_assert_eq!(key.hash(&text), by_the_book(&key, &text));
        }
    }

    /// The same on every machine, so that what is measured on one means something on another.
    #[test]
    fn the_hash_with_the_known_key_is_fixed() {
        let texts = ["", "m-1", "m-000001", "m-0000000000000001"];
        let hashes = texts.map(|text| HashKey::default().hash(text.as_bytes()));
        let fixed = [
            0,
            5_139_168_860_520_087_881,
            11_692_319_547_730_054_816,
            1_855_793_677_395_110_346,
        ];
        assert_eq!(hashes, fixed);
    }

    #[test]
    fn texts_that_look_alike_have_different_hashes() {
        let key = HashKey::default();
        let mut hashes = BTreeSet::new();
        let mut texts = 0;
        for length in 0..40 {
            for letter in ["\0", "a", "b"] {
                texts += usize::from(length != 0 || letter == "a");
                hashes.insert(key.hash(letter.repeat(length).as_bytes()));
            }
        }
        assert_eq!(hashes.len(), texts);
    }

    #[test]
    fn another_key_gives_other_hashes() {
        let (known, drawn) = (HashKey::default(), HashKey::new([1, 2, 3]));
        assert_ne!(known.hash(b"m-1"), drawn.hash(b"m-1"));
        assert_eq!(
            format!("{known:?}"),
            format!("{drawn:?}"),
            "no key in a log"
        );
    }
}
