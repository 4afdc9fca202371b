//! Money: prices, probabilities, penalties and the one cost formula (model.md §5).
//!
//! Each type admits only numbers that make sense in it, so sorting by cost is total and no NaN can
//! reach a decision.

use std::{cmp::Ordering, fmt};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $unit:ident, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name(f64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0.0);

            /// The value, if it is one.
            pub fn new($unit: f64) -> Option<Self> {
                let valid: fn(f64) -> bool = $valid;
                // Adding zero turns -0.0 into 0.0, so that equal values have equal bits.
                valid($unit).then_some(Self($unit + 0.0))
            }

            /// The number itself.
            pub fn $unit(self) -> f64 {
                self.0
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other) == Ordering::Equal
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.to_bits().hash(state);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number! {
    /// What a machine costs per hour, in dollars: finite and not negative.
    Price, dollars_per_hour, |price| price.is_finite() && 0.0 <= price
}
number! {
    /// The chance per hour that a machine is taken away, from 0 to 1.
    Probability, per_hour, |chance| (0.0..=1.0).contains(&chance)
}
number! {
    /// A penalty in dollars: not negative; infinity is *pinned*.
    Dollars, dollars, |dollars| 0.0 <= dollars
}

impl Dollars {
    /// More than any amount.
    pub const PINNED: Self = Self(f64::INFINITY);
}

/// What a machine costs a Need per hour, interruptions included. Infinity for a machine that may be
/// interrupted under a pinned workload.
pub type Cost = Dollars;

/// A penalty as the wire carries it: 28 steps from unspecified to pinned (B-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u8);

impl Bucket {
    /// Not declared; costs nothing.
    pub const UNSPECIFIED: Self = Self(0);
    /// Declared to cost nothing.
    pub const ZERO: Self = Self(1);
    /// Above every finite bucket.
    pub const PINNED: Self = Self(27);

    /// The bucket with this wire number, if there is one.
    pub fn from_number(number: i64) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|n| *n <= Self::PINNED.0)
            .map(Self)
    }

    /// The bucket an amount of dollars falls in (B-2).
    pub fn of(dollars: f64) -> Self {
        if dollars <= 0.0 || dollars.is_nan() {
            return Self::ZERO;
        }
        let holds = |bucket: &Self| dollars <= bucket.dollars().dollars();
        (2..Self::PINNED.0)
            .map(Self)
            .find(holds)
            .unwrap_or(Self::PINNED)
    }

    /// The wire number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The upper bound: a deliberate over-estimate (B-3).
    pub fn dollars(self) -> Dollars {
        match self.0 {
            0 | 1 => Dollars::ZERO,
            2 => Dollars(0.5),
            27 => Dollars::PINNED,
            n => Dollars((1_u32 << (n - 3)).into()),
        }
    }

    /// The metric label value (B-1).
    pub fn label(self) -> String {
        match self.0 {
            0 => "unspecified".to_owned(),
            27 => "pinned".to_owned(),
            _ => self.dollars().to_string(),
        }
    }
}

/// `price + probability × penalty` (B-4). A pinned penalty times no probability is nothing, not NaN
/// (B-5). The formula is fixed.
pub fn effective_cost(price: Price, interruption: Probability, penalty: Bucket) -> Cost {
    match (interruption == Probability::ZERO, penalty == Bucket::PINNED) {
        (true, _) => Dollars(price.0),
        (false, true) => Dollars::PINNED,
        (false, false) => Dollars(price.0 + interruption.0 * penalty.dollars().0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(price: f64, chance: f64, penalty: f64) -> f64 {
        let (price, chance) = (
            Price::new(price).unwrap(),
            Probability::new(chance).unwrap(),
        );
        effective_cost(price, chance, Bucket::of(penalty)).dollars()
    }

    /// EX-B: buckets.
    #[test]
    fn ex_b_dollars_fall_into_buckets() {
        for (dollars, bucket) in [
            (0.0, 1),
            (-1.0, 1),
            (0.3, 2),
            (0.5, 2),
            (0.51, 3),
            (1.0, 3),
            (1.01, 4),
            (3.0, 5),
            (8000.0, 16),
            (8_388_608.0, 26),
            (8_388_608.01, 27),
            (f64::INFINITY, 27),
        ] {
            assert_eq!(Bucket::of(dollars).number(), bucket, "${dollars}");
        }
        assert_eq!(Bucket::of(8000.0).dollars().dollars(), 8192.0);
    }

    /// EX-B: spot against on-demand.
    #[test]
    fn ex_b_the_penalty_decides_between_spot_and_on_demand() {
        assert_eq!((cost(1.0, 0.05, 16.0), cost(3.0, 0.0, 16.0)), (1.8, 3.0));
        assert_eq!((cost(1.0, 0.05, 64.0), cost(3.0, 0.0, 64.0)), (4.2, 3.0));
        assert_eq!(
            (cost(1.0, 0.05, 1e9), cost(3.0, 0.0, 1e9)),
            (f64::INFINITY, 3.0)
        );
    }

    #[test]
    fn labels_are_plain_numbers() {
        let label = |number| Bucket::from_number(number).unwrap().label();
        assert_eq!(label(0), "unspecified");
        assert_eq!(label(1), "0");
        assert_eq!(label(2), "0.5");
        assert_eq!(label(26), "8388608");
        assert_eq!(label(27), "pinned");
        assert_eq!(Bucket::from_number(28), None);
        assert_eq!(Bucket::from_number(-1), None);
    }

    #[test]
    fn every_bucket_doubles_up_to_pinned() {
        let dollars = |number| Bucket::from_number(number).unwrap().dollars().dollars();
        assert_eq!((dollars(0), dollars(1), dollars(2)), (0.0, 0.0, 0.5));
        for number in 3..27 {
            assert_eq!(dollars(number), dollars(number - 1) * 2.0, "{number}");
        }
        assert_eq!(dollars(27), f64::INFINITY);
        assert_eq!(Bucket::of(f64::NAN), Bucket::ZERO);
    }

    /// B-5, and what is free.
    #[test]
    fn what_is_never_interrupted_costs_its_price_alone() {
        assert_eq!(cost(3.0, 0.0, f64::INFINITY), 3.0);
        assert_eq!(cost(3.0, 1.0, 0.0), 3.0);
        assert_eq!(cost(0.0, 0.5, 8.0), 4.0);
        assert_eq!(Price::new(1.5).unwrap().to_string(), "1.5");
        assert!(Price::new(1.0) < Price::new(2.0));
        assert_eq!(Probability::new(1.0).unwrap().per_hour(), 1.0);
    }

    #[test]
    fn nonsense_numbers_cannot_be_held() {
        assert_eq!(Price::new(f64::NAN), None);
        assert_eq!(Price::new(f64::INFINITY), None);
        assert_eq!(Price::new(-0.01), None);
        assert_eq!(Probability::new(1.000_000_1), None);
        assert_eq!(Probability::new(f64::NAN), None);
        assert_eq!(Dollars::new(-1.0), None);
        assert_eq!(Dollars::new(f64::NAN), None);
        assert_eq!(Dollars::new(f64::INFINITY), Some(Dollars::PINNED));
        assert_eq!(Price::new(-0.0), Some(Price::ZERO));
    }
}
