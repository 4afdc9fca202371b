//! Size: what one Pod asks for or one machine offers, in the three dimensions the catalogs use.
//!
//! Integers in natural units, so that a generator can add up fifty million Pods without allocating;
//! they become [`Amounts`] only where a row or a shape is written out.

use crate::valid;
use bigfleet_model::{Amounts, Dimension};

/// A resource vector of a catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Thousandths of a CPU.
    pub cpu_milli: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Whole GPUs.
    pub gpus: i64,
}

impl Size {
    /// So many CPUs and GiB.
    pub const fn cores(cpus: i64, memory_gib: i64) -> Self {
        Self::milli(cpus * 1000, memory_gib * 1024)
    }

    /// So many thousandths of a CPU and MiB.
    pub const fn milli(cpu_milli: i64, memory_mib: i64) -> Self {
        Self {
            cpu_milli,
            memory_mib,
            gpus: 0,
        }
    }

    /// The same with so many GPUs.
    pub const fn with_gpus(self, gpus: i64) -> Self {
        Self { gpus, ..self }
    }

    /// This many of them.
    pub fn times(self, count: u32) -> Self {
        self.each(Self::default(), |own, _| own * i64::from(count))
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        self.each(other, |own, other| own + other)
    }

    /// What is left, never below zero.
    pub fn minus(self, other: Self) -> Self {
        self.each(other, |own, other| (own - other).max(0))
    }

    /// The larger in every dimension.
    pub fn larger(self, other: Self) -> Self {
        self.each(other, i64::max)
    }

    /// Whether there is as much of everything as wanted.
    pub fn covers(self, want: Self) -> bool {
        want.minus(self) == Self::default()
    }

    fn each(self, other: Self, of: impl Fn(i64, i64) -> i64) -> Self {
        Self {
            cpu_milli: of(self.cpu_milli, other.cpu_milli),
            memory_mib: of(self.memory_mib, other.memory_mib),
            gpus: of(self.gpus, other.gpus),
        }
    }
}

/// The names of the three dimensions, made once and shared by every vector written out.
#[derive(Clone, Debug)]
pub(crate) struct Dimensions([Dimension; 3]);

impl Default for Dimensions {
    fn default() -> Self {
        Self(["cpu", "memory", "nvidia.com/gpu"].map(|name| valid(Dimension::new(name))))
    }
}

impl Dimensions {
    /// The exact vector.
    pub(crate) fn amounts(&self, size: Size) -> Amounts {
        const MILLI_PER_MIB: i128 = 1000 << 20;
        let milli = [
            i128::from(size.cpu_milli),
            i128::from(size.memory_mib) * MILLI_PER_MIB,
            i128::from(size.gpus) * 1000,
        ];
        Amounts::from_entries(self.0.iter().cloned().zip(milli))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_out_exactly() {
        let amounts = Dimensions::default().amounts(Size::cores(8, 32).with_gpus(1));
        assert_eq!(
            amounts.key(),
            "cpu=8000;memory=34359738368000;nvidia.com/gpu=1000;"
        );
        let half = Dimensions::default().amounts(Size::milli(400, 500).times(2));
        assert_eq!(half.key(), "cpu=800;memory=1048576000000;");
    }

    #[test]
    fn a_size_covers_what_is_no_larger_in_any_dimension() {
        let host = Size::cores(4, 8);
        assert!(host.covers(Size::cores(4, 8)));
        assert!(!host.covers(Size::cores(1, 9)));
        assert!(!host.covers(Size::cores(1, 1).with_gpus(1)));
        assert_eq!(host.minus(Size::cores(5, 2)), Size::cores(0, 6));
    }
}
