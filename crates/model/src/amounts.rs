//! Amounts: a resource vector in exact milli-units.
//!
//! A dimension of zero is not stored, so vectors equal by value are equal, and no sum can overflow:
//! addition and scaling saturate.

use crate::{Dimension, quantity::format_milli};
use std::fmt;

/// A resource vector. Ascending by dimension name, every amount above zero.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amounts(Vec<(Dimension, i128)>);

impl Amounts {
    /// The empty vector.
    pub const NONE: Self = Self(Vec::new());

    /// The sum of the given entries; amounts of zero or less count for nothing.
    pub fn from_entries(entries: impl IntoIterator<Item = (Dimension, i128)>) -> Self {
        let mut entries: Vec<_> = entries
            .into_iter()
            .filter(|(_, milli)| 0 < *milli)
            .collect();
        entries.sort();
        entries.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.saturating_add(later.1);
            }
            same
        });
        Self(entries)
    }

    /// Milli-units of one dimension; a missing one is 0.
    pub fn get(&self, dimension: &str) -> i128 {
        let found = self
            .0
            .binary_search_by(|(name, _)| name.as_str().cmp(dimension));
        found.map_or(0, |at| self.0[at].1)
    }

    /// The dimensions above zero, ascending by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Dimension, i128)> {
        self.0.iter().map(|(name, milli)| (name, *milli))
    }

    /// Whether no dimension is above zero.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every dimension wanted is there in at least the amount wanted.
    pub fn covers(&self, want: &Self) -> bool {
        want.iter()
            .all(|(name, milli)| milli <= self.get(name.as_str()))
    }

    /// Whether some dimension of `want` is above zero here (RF-3).
    pub fn contributes_to(&self, want: &Self) -> bool {
        want.iter().any(|(name, _)| 0 < self.get(name.as_str()))
    }

    /// The sum per dimension.
    pub fn add(&self, other: &Self) -> Self {
        Self::from_entries(self.0.iter().chain(&other.0).cloned())
    }

    /// The sum per dimension; `None` if one is more than an `i128` holds.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let fits = self
            .iter()
            .all(|(name, milli)| milli.checked_add(other.get(name.as_str())).is_some());
        fits.then(|| self.add(other))
    }

    /// Adds in place; false, and nothing is added, if a sum is more than an `i128` holds. Where there is
    /// something of every dimension already, nothing is allocated.
    pub fn try_add(&mut self, other: &Self) -> bool {
        let mut sums = self.0.iter();
        let mut fits = true;
        let within = other.0.iter().all(|(name, milli)| {
            let sum = sums.find(|(known, _)| known == name);
            fits &= sum.is_none_or(|(_, sum)| sum.checked_add(*milli).is_some());
            sum.is_some()
        });
        if !within {
            let sum = self.checked_add(other);
            let fits = sum.is_some();
            *self = sum.unwrap_or_else(|| std::mem::take(self));
            return fits;
        }
        if fits {
            let mut sums = self.0.iter_mut();
            for (name, milli) in &other.0 {
                if let Some((_, sum)) = sums.find(|(known, _)| known == name) {
                    *sum += milli;
                }
            }
        }
        fits
    }

    /// The larger per dimension.
    pub fn larger(&self, other: &Self) -> Self {
        let beyond = |(name, milli): &(Dimension, i128)| {
            (
                name.clone(),
                milli.saturating_sub(self.get(name.as_str())).max(0),
            )
        };
        self.add(&Self::from_entries(other.0.iter().map(beyond)))
    }

    /// What is left per dimension, never below zero.
    pub fn sub(&self, other: &Self) -> Self {
        let left = |(name, milli): &(Dimension, i128)| {
            (name.clone(), milli.saturating_sub(other.get(name.as_str())))
        };
        Self::from_entries(self.0.iter().map(left))
    }

    /// This many of them.
    pub fn scale(&self, count: i64) -> Self {
        let scaled = |(name, milli): &(Dimension, i128)| {
            (name.clone(), milli.saturating_mul(i128::from(count)))
        };
        Self::from_entries(self.0.iter().map(scaled))
    }

    /// In the dimensions of `unit`, as many whole units as hold all of it; the others as they are. `None` if
    /// one is more than an `i128` holds. A unit of nothing changes nothing.
    pub fn checked_round_up(&self, unit: &Self) -> Option<Self> {
        let units = |(name, milli): (&Dimension, i128)| {
            let amount = self.get(name.as_str());
            amount / milli + i128::from(amount % milli != 0)
        };
        let count = unit.iter().map(units).max().unwrap_or(0);
        let mut rounded = self.0.clone();
        rounded.retain(|(name, _)| unit.get(name.as_str()) == 0);
        for (name, milli) in unit.iter() {
            rounded.push((name.clone(), count.checked_mul(milli)?));
        }
        Some(Self::from_entries(rounded))
    }

    /// The aggregate key: `name=milli;` for each dimension, ascending (F-3).
    pub fn key(&self) -> String {
        self.iter()
            .map(|(name, milli)| format!("{name}={milli};"))
            .collect()
    }
}

impl fmt::Debug for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self
            .iter()
            .map(|(name, milli)| (name.as_str(), format_milli(milli)));
        f.debug_map().entries(texts).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amounts(entries: &[(&str, i128)]) -> Amounts {
        Amounts::from_entries(
            entries
                .iter()
                .map(|(name, n)| (Dimension::new(name).unwrap(), *n)),
        )
    }

    proptest! {
        #[test]
        fn adding_in_place_is_adding(
            one in prop::collection::vec((0..4usize, 0..3i128, any::<bool>()), 0..5),
            other in prop::collection::vec((0..4usize, 0..3i128, any::<bool>()), 0..5),
        ) {
            let make = |entries: &[(usize, i128, bool)]| {
                let entry = |(name, n, huge): &(usize, i128, bool)| {
                    let name = ["cpu", "gpu", "memory", "pods"][*name];
                    let huge = if *huge { i128::MAX - 2 } else { 0 };
                    (Dimension::new(name).unwrap(), n + huge)
                };
                Amounts::from_entries(entries.iter().map(entry))
            };
            let (one, other) = (make(&one), make(&other));
            let mut sum = one.clone();
            let fits = sum.try_add(&other);
            prop_assert_eq!(fits.then(|| sum.clone()), one.checked_add(&other));
            prop_assert!(fits || sum == one);
        }
    }

    /// EX-Q: the vector half.
    #[test]
    fn ex_q_vectors_compare_by_value() {
        let four = amounts(&[("cpu", 4)]);
        assert_eq!(
            four.sub(&amounts(&[("cpu", 6), ("gpu", 1)])),
            amounts(&[("cpu", 0), ("gpu", 0)])
        );
        assert!(four.covers(&amounts(&[("cpu", 4), ("gpu", 0)])));
        assert!(!four.covers(&amounts(&[("cpu", 4), ("gpu", 1)])));
        assert_eq!(four.scale(0), Amounts::NONE);
        assert_eq!(four.scale(-2), Amounts::NONE);
        assert_eq!(
            amounts(&[("memory", 3), ("cpu", 2), ("gpu", 0)]).key(),
            "cpu=2;memory=3;"
        );
    }

    #[test]
    fn sums_saturate_or_say_so() {
        let huge = amounts(&[("cpu", i128::MAX)]);
        assert_eq!(huge.add(&huge), huge);
        assert_eq!(huge.scale(2), huge);
        assert_eq!(huge.checked_add(&amounts(&[("cpu", 1)])), None);
        assert_eq!(
            huge.checked_add(&amounts(&[("gpu", 1)]))
                .unwrap()
                .get("gpu"),
            1
        );
    }

    fn any_amounts() -> impl Strategy<Value = Amounts> {
        prop::collection::vec(
            (prop::sample::select(vec!["cpu", "gpu", "mem"]), 0..9_i128),
            0..5,
        )
        .prop_map(|entries| amounts(&entries))
    }

    proptest! {
        #[test]
        fn operations_hold_in_every_dimension(a in any_amounts(), b in any_amounts(), n in -2..5_i64) {
            for name in ["cpu", "gpu", "mem", "none"] {
                let (x, y) = (a.get(name), b.get(name));
                prop_assert_eq!(a.add(&b).get(name), x + y);
                prop_assert_eq!(a.larger(&b).get(name), x.max(y));
                prop_assert_eq!(a.sub(&b).get(name), (x - y).max(0));
                prop_assert_eq!(a.scale(n).get(name), x * i128::from(n.max(0)));
            }
            let both = ["cpu", "gpu", "mem"].iter().any(|name| 0 < a.get(name) && 0 < b.get(name));
            prop_assert_eq!(a.contributes_to(&b), both);
            prop_assert_eq!(a.iter().len(), a.iter().filter(|(_, milli)| 0 < *milli).count());
            prop_assert_eq!(a.covers(&b), b.sub(&a).is_zero());
            prop_assert_eq!(a.checked_add(&b), Some(a.add(&b)));
        }
    }
}
