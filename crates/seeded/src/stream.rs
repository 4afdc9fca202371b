//! Stream: one of many independent sources of draws of a seed, the same bytes on every machine.
//!
//! ```text
//! (seed, stream) ── splitmix64 ──▶ xoshiro256** ──▶ integers ──▶ bands, weights, Poisson counts
//! ```
//!
//! Integers come first and floats only through `+ − × ÷`, which IEEE 754 fixes to the bit. The
//! platform's `ln` and `exp` are not fixed, so the one logarithm needed is written out here.

use crate::Prng;

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// One of many independent streams of a seed: drawing more from one never moves another.
    pub fn new(seed: u64, number: u64) -> Self {
        let first = |seed| Prng::new(seed).next_u64();
        let mixed = first(seed) ^ first(number ^ 0x5bf0_3635_dcf5_2d8a);
        let mut prng = Prng::new(mixed);
        prng.next_u64(); // the published workloads begin at the second
        let state = [(); 4].map(|()| prng.next_u64());
        Self { state }
    }

    /// Sixty-four fair bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// A whole number below `bound`, every one equally likely; 0 for a bound of 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        loop {
            // The low half says how far into its slot a draw fell. A slot that is cut off at the
            // end of the range is refused, or small numbers would come up more often.
            let wide = (self.bits() >> 32) * u64::from(bound);
            let (high, low) = ((wide >> 32) as u32, wide as u32);
            if bound == 0 || bound.wrapping_neg() % bound <= low {
                return high;
            }
        }
    }

    /// A whole number from `least` to `most`, both included.
    pub fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// The position of a weight, as likely as the weight is large; 0 where there is none.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        0
    }

    /// A number from 0 up to, but not, 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number whose mean is `mean` and whose whole part is right as often as it should be:
    /// 83⅓ is 83 two times out of three.
    pub fn rounded(&mut self, mean: f64) -> u32 {
        let whole = mean as u32;
        whole + u32::from(self.chance(mean - f64::from(whole)))
    }

    /// The time to the next event where one is due per unit of time on average.
    pub fn exponential(&mut self) -> f64 {
        -logarithm(1.0 - self.unit())
    }

    /// How many events fall in a time in which `mean` are due. Walks event by event, so its cost is
    /// the answer; the means here are machines lost in ten seconds.
    pub fn poisson(&mut self, mean: f64) -> u32 {
        let mut count = 0;
        let mut time = self.exponential();
        while time < mean {
            count += 1;
            time += self.exponential();
        }
        count
    }
}

/// The natural logarithm of a normal number above zero: `x = m·2^e` with `m` between √½ and √2, then
/// `ln m = 2·(s + s³/3 + s⁵/5 + …)` with `s = (m−1)/(m+1)`. There |s| < 0.172, so the eleventh term
/// is below the last bit.
fn logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    if std::f64::consts::SQRT_2 < mantissa {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let terms = (0..12).rev().map(|n| 1.0 / f64::from(2 * n + 1));
    let series = terms.fold(0.0, |sum, term| sum * s * s + term);
    2.0 * s * series + f64::from(exponent) * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs of the generator from state 1, 2, 3, 4.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut random = Stream {
            state: [1, 2, 3, 4],
        };
        let drawn = [(); 4].map(|()| random.bits());
        assert_eq!(drawn, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn streams_of_a_seed_differ_and_repeat() {
        let first = |seed, stream| Stream::new(seed, stream).bits();
        assert_eq!(first(1, 7), first(1, 7));
        assert_ne!(first(1, 7), first(1, 8));
        assert_ne!(first(1, 7), first(7, 1));
    }

    #[test]
    fn the_logarithm_agrees_with_the_platform_to_the_last_places() {
        let mut random = Stream::new(3, 0);
        for _ in 0..20_000 {
            let x = (1.0 - random.unit()) * f64::from(1 + random.below(1000));
            let (ours, theirs) = (logarithm(x), x.ln());
            assert!(
                (ours - theirs).abs() <= 4e-16 * (1.0 + theirs.abs()),
                "{x}: {ours} {theirs}"
            );
        }
        assert_eq!(logarithm(1.0), 0.0);
    }

    #[test]
    fn draws_have_the_mean_they_claim() {
        let mut random = Stream::new(4, 0);
        let mut mean = |draw: fn(&mut Stream) -> f64| {
            (0..200_000).map(|_| draw(&mut random)).sum::<f64>() / 200_000.0
        };
        assert!((mean(|r| r.below(7).into()) - 3.0).abs() < 0.02);
        assert!((mean(|r| r.between(3, 5).into()) - 4.0).abs() < 0.01);
        assert!((mean(|r| r.weighted(&[1, 0, 3]) as f64) - 1.5).abs() < 0.01);
        assert!((mean(Stream::exponential) - 1.0).abs() < 0.01);
        assert!((mean(|r| r.poisson(0.58).into()) - 0.58).abs() < 0.01);
        assert!((mean(|r| r.poisson(12.0).into()) - 12.0).abs() < 0.04);
        assert!((mean(|r| r.rounded(83.0 + 1.0 / 3.0).into()) - 83.333).abs() < 0.01);
    }

    /// A Poisson count varies as much as its mean.
    #[test]
    fn poisson_counts_spread_as_they_should() {
        let mut random = Stream::new(5, 0);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.poisson(4.0).into()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let squares = drawn.iter().map(|x| (x - mean) * (x - mean));
        let variance = squares.sum::<f64>() / drawn.len() as f64;
        assert!((variance - 4.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn a_bound_of_nothing_draws_nothing() {
        let mut random = Stream::new(6, 0);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.weighted(&[]), 0);
        assert_eq!(random.between(5, 5), 5);
    }
}
