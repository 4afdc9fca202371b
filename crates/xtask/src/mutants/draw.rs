//! The draw: the same seed over the same list is the same order, on every machine.

use super::list::Mutant;

/// The list in an order the seed draws.
pub(super) fn shuffled(mut all: Vec<Mutant>, seed: u64) -> Vec<Mutant> {
    // Whatever order they were listed in must not matter.
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let mut random = SplitMix(seed);
    for last in (1..all.len()).rev() {
        let at = usize::try_from(random.next() % (last as u64 + 1)).unwrap_or(last);
        all.swap(at, last);
    }
    all
}

/// SplitMix64: a few lines, and good enough to draw a sample.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Mutant> {
        (0..100)
            .map(|n| Mutant::named(&format!("a.rs:{n:02}:1: replace a with b")))
            .collect()
    }

    fn names(mutants: &[Mutant]) -> Vec<&str> {
        mutants.iter().map(|mutant| mutant.name.as_str()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_whatever_order_they_are_listed_in() {
        let mut turned = all();
        turned.reverse();
        let (one, other) = (shuffled(all(), 7), shuffled(turned, 7));
        assert_eq!(names(&one), names(&other));
        assert_ne!(names(&one), names(&shuffled(all(), 8)));
    }

    #[test]
    fn nothing_is_drawn_twice_and_nothing_is_left_out() {
        let mut drawn = shuffled(all(), 3);
        drawn.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(names(&drawn), names(&all()));
    }

    #[test]
    fn the_draw_is_pinned() {
        let drawn = shuffled(all(), 1);
        let first: Vec<&str> = names(&drawn)
            .into_iter()
            .take(3)
            .map(|name| &name[5..7])
            .collect();
        assert_eq!(first, ["32", "42", "35"]);
    }
}
