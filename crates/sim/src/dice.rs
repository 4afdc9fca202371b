//! Dice: every draw of a run, from streams of one seed.
//!
//! Distributions are tables of whole numbers with straight lines between them. No platform's `ln`
//! or `exp` is asked, so the same seed gives the same bytes on every machine.

use bigfleet_seeded::Prng;

/// Quantiles of the exponential distribution with mean 1000, at the middle of each sixty-fourth.
const EXPONENTIAL: [u64; 64] = [
    8, 24, 40, 56, 73, 90, 107, 125, 143, 161, 179, 198, 217, 237, 257, 277, 298, 319, 341, 363,
    386, 409, 433, 458, 483, 508, 535, 562, 589, 618, 647, 678, 709, 741, 774, 809, 845, 882, 920,
    960, 1002, 1045, 1091, 1138, 1188, 1241, 1297, 1356, 1418, 1485, 1556, 1633, 1717, 1808, 1908,
    2019, 2144, 2287, 2454, 2655, 2906, 3243, 3753, 4852,
];

/// Quantiles of the log-normal distribution with median 1000 and sigma 0.8, likewise.
const LOG_NORMAL: [u64; 64] = [
    145, 204, 244, 278, 308, 335, 361, 386, 410, 434, 457, 480, 503, 526, 549, 572, 594, 618, 641,
    664, 688, 713, 737, 762, 788, 814, 841, 868, 896, 925, 954, 984, 1016, 1048, 1082, 1116, 1152,
    1190, 1229, 1269, 1312, 1356, 1403, 1453, 1505, 1560, 1619, 1682, 1750, 1822, 1901, 1987, 2082,
    2187, 2304, 2436, 2589, 2768, 2983, 3250, 3600, 4093, 4903, 6917,
];

/// How long something takes, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latency {
    /// Always the same.
    Fixed(u64),
    /// Anything between the two.
    Between(u64, u64),
    /// Log-normal around a median, sigma 0.8: mostly near it, sometimes seven times as long.
    LongTail(u64),
    /// Between the first two, but so many in a thousand between the last two.
    Stragglers((u64, u64), u64, (u64, u64)),
}

impl Latency {
    /// No time at all.
    pub(crate) const NONE: Self = Self::Fixed(0);

    /// No draw takes longer than this.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Fixed(millis) => millis,
            Self::Between(_, most) | Self::Stragglers(_, 0, (_, most)) => most,
            Self::LongTail(median) => median * LOG_NORMAL[63] / 1000,
            Self::Stragglers((_, usual), _, (_, slow)) => usual.max(slow),
        }
    }
}

/// A stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    draws: Prng,
    seed: u64,
}

impl Dice {
    /// The stream of this number and this seed; streams do not disturb each other.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mixed = Prng::new(seed).next_u64() ^ number.wrapping_mul(0xd134_2543_de82_ef95);
        let draws = Prng::new(mixed);
        Self { draws, seed }
    }

    /// The generator itself.
    pub(crate) fn fork(&mut self) -> Prng {
        self.draws.fork()
    }

    /// Below a bound; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.draws.below(bound)
    }

    /// From the first to the last, both included.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.draws.below((last.saturating_sub(first) + 1) as usize) as u64
    }

    /// True so often in a thousand. Never draws for zero, so that a fault that is off leaves every
    /// other draw as it was.
    pub(crate) fn per_mille(&mut self, chance: u64) -> bool {
        0 < chance && (self.draws.below(1000) as u64) < chance
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.draws.pick(from)
    }

    /// Whose turn it is among so many: not drawn, so that as many seeds in a row are one of each.
    pub(crate) fn turn(&self, among: usize) -> usize {
        (self.seed % among.max(1) as u64) as usize
    }

    /// Any order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.draws.shuffle(items);
    }

    /// How long this time, in milliseconds.
    pub(crate) fn latency(&mut self, latency: Latency) -> u64 {
        match latency {
            Latency::Fixed(millis) => millis,
            Latency::Between(least, most) => self.between(least, most),
            Latency::LongTail(median) => self.quantile(&LOG_NORMAL, median),
            Latency::Stragglers(usual, chance, slow) => {
                let (least, most) = if self.per_mille(chance) { slow } else { usual };
                self.between(least, most)
            }
        }
    }

    /// The time until the next of events that come so far apart on average.
    pub(crate) fn interval(&mut self, mean: u64) -> u64 {
        self.quantile(&EXPONENTIAL, mean).max(1)
    }

    fn quantile(&mut self, table: &[u64; 64], scale: u64) -> u64 {
        let at = self.draws.below(63 << 10);
        let (row, part) = (at >> 10, (at & 1023) as u64);
        let between = table[row] * (1024 - part) + table[row + 1] * part;
        (u128::from(between) * u128::from(scale) / (1024 * 1000)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl FnMut(usize) -> u64) -> u64 {
        (0..20_000).map(draw).sum::<u64>() / 20_000
    }

    /// An injector that fires a thousand times too rarely goes unnoticed, unless it is measured.
    #[test]
    fn draws_come_as_often_as_they_say() {
        let mut dice = Dice::stream(1, 1);
        let (exponential, tail) = (
            mean(|_| dice.interval(60_000)),
            mean(|_| dice.latency(Latency::LongTail(10_000))),
        );
        assert!((56_000..62_000).contains(&exponential), "{exponential}");
        assert!((12_500..14_500).contains(&tail), "{tail}");
        let happened = (0..20_000).filter(|_| dice.per_mille(25)).count();
        assert!((430..570).contains(&happened), "{happened}");
        let slow = Latency::Stragglers((1, 2), 10, (100, 200));
        let stragglers = (0..20_000).filter(|_| 2 < dice.latency(slow));
        assert!((140..260).contains(&stragglers.count()));
    }

    #[test]
    fn streams_are_apart_and_the_same_everywhere() {
        let draw = |seed, stream| Dice::stream(seed, stream).between(0, u64::from(u32::MAX));
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_eq!(draw(7, 1), 1_788_463_608, "pinned");
    }
}
