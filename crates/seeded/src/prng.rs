//! Prng: numbers that look random and are the same everywhere for the same seed (SplitMix64).

/// A stream of numbers made from a seed.
#[derive(Clone, Debug)]
pub struct Prng(u64);

impl Prng {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next_u64()) * bound as u128;
        (wide >> 64) as usize
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True this often in a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Puts them in any order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// A number from 0 up to, but not, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens. Does not draw for zero, so that a fault that
    /// is off leaves every other draw as it was.
    pub fn chance(&mut self, probability: f64) -> bool {
        0.0 < probability && self.unit() < probability
    }

    /// A stream of its own, so that drawing more from one leaves the other alone.
    pub fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_everywhere() {
        let mut prng = Prng::new(0);
        assert_eq!(prng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(prng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn every_number_below_the_bound_comes_up() {
        let mut prng = Prng::new(1);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[prng.below(5)] += 1);
        assert!(seen.iter().all(|count| 100 < *count), "{seen:?}");
        assert_eq!(prng.below(0), 0);
        assert!((0..100).all(|_| (3..=4).contains(&prng.between(3, 4))));
        let mut items: Vec<_> = (0..9).collect();
        prng.shuffle(&mut items);
        items.sort_unstable();
        assert_eq!(items, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn what_never_happens_does_not_draw() {
        let (mut asked, mut untouched) = (Prng::new(2), Prng::new(2));
        assert!(!asked.chance(0.0));
        assert_eq!(asked.next_u64(), untouched.next_u64());
        let happened = (0..10_000).filter(|_| asked.chance(0.25)).count();
        assert!((2300..2700).contains(&happened), "{happened}");
    }
}
