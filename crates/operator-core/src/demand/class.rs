//! Class: units of about the same size, and how large a vector is.
//!
//! ```text
//! class n:  cpu ≤ 3.6 · 2ⁿ and memory ≤ 13.6Gi · 2ⁿ, the least such n        its shape: exactly these amounts
//! further dimensions, by name: the least power of two not below
//! ```
//!
//! Rows equal in profile and group merge, the largest unit of all counts, and a smaller machine is then of no use. One
//! Pod of 32 cpus in the row of ten 4-cpu machines would reclaim all ten; in a row of its own it reclaims none (OP-22).
//! A 4-cpu machine leaves about 3.6 cpus and 13.6Gi of 16Gi to Pods, and so do twice and four times as large ones.

use bigfleet_model::{Amounts, Dimension, Group};
use std::fmt::Write as _;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
/// 3.6 cores, in milli-units.
const CPU_OF_SHAPE: i128 = 3_600;
/// 13.6Gi, in milli-units.
const MEMORY_OF_SHAPE: i128 = 14_602_888_806_400;
/// Beyond any machine; and small enough that a shape of it can be counted.
const HIGHEST_CLASS: u32 = 60;

/// A unit class (OP-22). Larger classes sort later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitClass {
    order: u32,
    /// Other dimensions and the least power of two not below, by name.
    others: Vec<(Dimension, u128)>,
}

impl UnitClass {
    /// The class of one unit.
    pub(crate) fn of(unit: &Amounts) -> Self {
        let (cpu, memory) = (unit.get(CPU), unit.get(MEMORY));
        let fits = |n: &u32| cpu <= CPU_OF_SHAPE << n && memory <= MEMORY_OF_SHAPE << n;
        let order = (0..HIGHEST_CLASS).find(fits).unwrap_or(HIGHEST_CLASS);
        let is_other = |(name, _): &(&Dimension, i128)| !matches!(name.as_str(), CPU | MEMORY);
        let whole = |milli: i128| (milli.unsigned_abs().div_ceil(1000)).next_power_of_two();
        let others = unit.iter().filter(is_other);
        let others = others.map(|(name, milli)| (name.clone(), whole(milli)));
        Self {
            order,
            others: others.collect(),
        }
    }

    /// Twice as large means one more.
    pub(crate) fn order(&self) -> u32 {
        self.order
    }

    /// Whether this is the other class or the one below it (OP-66).
    pub(crate) fn is_at_or_just_below(&self, other: &Self) -> bool {
        self.others == other.others && (self.order == other.order || self.order + 1 == other.order)
    }

    /// The amounts of the class: nothing of the class is larger in cpu or memory.
    pub(crate) fn shape(&self) -> Amounts {
        let others = self.others.iter().map(|(name, whole)| {
            let milli = i128::try_from(*whole).unwrap_or(i128::MAX / 1000);
            (name.clone(), milli.saturating_mul(1000))
        });
        let main = [
            (CPU, CPU_OF_SHAPE << self.order),
            (MEMORY, MEMORY_OF_SHAPE << self.order),
        ];
        let main = main.into_iter().filter_map(|(name, milli)| {
            Some((Dimension::new(name).ok()?, milli)) // both names are fine
        });
        Amounts::from_entries(main.chain(others))
    }

    /// The group of the class's row: empty for the smallest class without further dimensions.
    pub(crate) fn group(&self) -> Group {
        if self.order == 0 && self.others.is_empty() {
            return Group::default();
        }
        let mut text = format!("unit:{}", self.order);
        for (name, whole) in &self.others {
            let _ = write!(text, ";{name}={whole}"); // writing to a String cannot fail
        }
        Group::new(&text)
    }
}

/// How large a vector is: the greatest of cpu ÷ 3.6, memory ÷ 13.6Gi and every other dimension, in 2⁻²⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) i128);

impl Size {
    /// The size of class 0's shape.
    pub(crate) const ONE: Self = Self(1 << 20);

    pub(crate) fn of(amounts: &Amounts) -> Self {
        let part = |(name, milli): (&Dimension, i128)| {
            let one = match name.as_str() {
                CPU => CPU_OF_SHAPE,
                MEMORY => MEMORY_OF_SHAPE,
                _ => 1000,
            };
            milli.saturating_mul(Self::ONE.0) / one
        };
        Self(amounts.iter().map(part).max().unwrap_or(0))
    }

    /// Whether now differs from then by an eighth of then or more.
    pub(crate) fn moved_by_an_eighth(now: Self, then: Self) -> bool {
        then.0
            <= now
                .0
                .abs_diff(then.0)
                .saturating_mul(8)
                .min(i128::MAX as u128) as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::quantity::parse_demand;

    fn unit(entries: &[(&str, &str)]) -> Amounts {
        let entry = |(name, text): &(&str, &str)| {
            (Dimension::new(name).unwrap(), parse_demand(text).unwrap())
        };
        Amounts::from_entries(entries.iter().map(entry))
    }

    fn group(entries: &[(&str, &str)]) -> String {
        UnitClass::of(&unit(entries)).group().as_str().to_owned()
    }

    #[test]
    fn a_class_is_the_least_shape_that_covers() {
        assert_eq!(group(&[]), "");
        assert_eq!(group(&[("cpu", "3600m"), ("memory", "13.6Gi")]), "");
        assert_eq!(group(&[("cpu", "3601m")]), "unit:1");
        assert_eq!(group(&[("memory", "13.7Gi")]), "unit:1");
        assert_eq!(group(&[("cpu", "32")]), "unit:4");
        assert_eq!(
            group(&[("cpu", "1"), ("nvidia.com/gpu", "3")]),
            "unit:0;nvidia.com/gpu=4"
        );
        assert_eq!(group(&[("a", "500m"), ("b", "1")]), "unit:0;a=1;b=1");
        assert_eq!(group(&[("cpu", "1E")]), "unit:58");
    }

    #[test]
    fn a_shape_covers_its_class() {
        for entries in [
            &[("cpu", "1")][..],
            &[("cpu", "9"), ("x", "5")],
            &[("memory", "1Ti")],
        ] {
            let unit = unit(entries);
            assert!(UnitClass::of(&unit).shape().covers(&unit));
        }
    }

    #[test]
    fn size_is_the_greatest_part() {
        assert_eq!(
            Size::of(&unit(&[("cpu", "3600m"), ("memory", "1Gi")])),
            Size::ONE
        );
        assert_eq!(Size::of(&unit(&[("gpu", "4")])), Size(4 << 20));
        assert_eq!(Size::of(&Amounts::NONE), Size(0));
        let moved = |now, then| Size::moved_by_an_eighth(Size(now), Size(then));
        assert_eq!(
            [
                moved(93, 100),
                moved(87, 100),
                moved(113, 100),
                moved(112, 100)
            ],
            [false, true, true, false]
        );
        assert!(moved(0, 0), "nothing is an eighth of nothing");
    }
}
