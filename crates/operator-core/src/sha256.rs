//! SHA-256 (FIPS 180-4), for names that must be derived from texts that are no names.
//!
//! Not for secrets: what is hashed here is public. Written out because a core takes nothing from outside that could
//! also read a clock or a random number.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND: [u32; 64] = cube_roots();
/// The same of the square roots of the first 8.
const START: [u32; 8] = square_roots();

/// The digest of a text as 64 hexadecimal digits.
pub(crate) fn sha256_hex(text: &[u8]) -> String {
    sha256(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub(crate) fn sha256(text: &[u8]) -> [u8; 32] {
    let mut padded = text.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((text.len() as u64 * 8).to_be_bytes());
    let (blocks, _) = padded.as_chunks::<64>();
    let state = blocks.iter().fold(START, compress);
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    let (given, _) = block.as_chunks::<4>();
    for (word, bytes) in words.iter_mut().zip(given) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        let sum = words[at - 16].wrapping_add(words[at - 7]);
        words[at] = sum.wrapping_add(small).wrapping_add(large);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for (word, round) in words.iter().zip(ROUND) {
        let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let one = h.wrapping_add(mixed).wrapping_add(chosen);
        let one = one.wrapping_add(round).wrapping_add(*word);
        let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = mixed.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    let mut sum = state;
    for (word, more) in sum.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(more);
    }
    sum
}

const fn primes() -> [u128; 64] {
    let (mut primes, mut found, mut number) = ([0; 64], 0, 2);
    while found < 64 {
        let mut divisor = 2;
        while divisor * divisor <= number && number % divisor != 0 {
            divisor += 1;
        }
        if number < divisor * divisor {
            primes[found] = number;
            found += 1;
        }
        number += 1;
    }
    primes
}

/// The greatest root, in 2⁻³², whose power is not above the prime; only its fraction is kept.
const fn root(prime: u128, is_cube: bool) -> u32 {
    let (mut low, mut high) = (0_u128, 1 << 37);
    while low + 1 < high {
        let middle = u128::midpoint(low, high);
        let is_within = if is_cube {
            middle * middle * middle <= prime << 96
        } else {
            middle * middle <= prime << 64
        };
        if is_within {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

const fn cube_roots() -> [u32; 64] {
    let (primes, mut roots, mut at) = (primes(), [0; 64], 0);
    while at < 64 {
        roots[at] = root(primes[at], true);
        at += 1;
    }
    roots
}

const fn square_roots() -> [u32; 8] {
    let (primes, mut roots, mut at) = (primes(), [0; 8], 0);
    while at < 8 {
        roots[at] = root(primes[at], false);
        at += 1;
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the standard, and a text that ends on the edge of a block.
    #[test]
    fn known_texts_have_their_known_digests() {
        for (text, digest) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(sha256_hex(text.as_bytes()), digest, "{text:?}");
        }
        let million = sha256_hex(&vec![b'a'; 1_000_000]);
        assert_eq!(
            million,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
