//! Sizes: what a Pod asks for and what a node offers, in three whole numbers.

use bigfleet_model::{Amounts, Dimension, Shape};
use bigfleet_provider_kit::TextMap;

/// Names of the three dimensions, as Kubernetes spells them.
const NAMES: [&str; 3] = ["cpu", "memory", "nvidia.com/gpu"];

/// Milli-cpu, memory in MiB, GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Thousandths of a CPU.
    pub(crate) cpu_milli: i64,
    /// Memory in MiB.
    pub(crate) memory_mib: i64,
    /// GPUs.
    pub(crate) gpus: i64,
}

impl Size {
    /// A machine or Pod without GPUs: CPUs and GiB.
    pub(crate) const fn plain(cpus: i64, gib: i64) -> Self {
        Self {
            cpu_milli: cpus * 1000,
            memory_mib: gib * 1024,
            gpus: 0,
        }
    }

    /// With GPUs: CPUs, GiB, GPUs.
    pub(crate) const fn gpu(cpus: i64, gib: i64, gpus: i64) -> Self {
        Self {
            cpu_milli: cpus * 1000,
            memory_mib: gib * 1024,
            gpus,
        }
    }

    /// So many of them.
    pub(crate) fn times(self, count: i64) -> Self {
        Self {
            cpu_milli: self.cpu_milli * count,
            memory_mib: self.memory_mib * count,
            gpus: self.gpus * count,
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli - other.cpu_milli,
            memory_mib: self.memory_mib - other.memory_mib,
            gpus: self.gpus - other.gpus,
        }
    }

    /// How many units of this size fit.
    pub(crate) fn holds(self, unit: Self) -> u32 {
        let fits = |have: i64, want: i64| match want {
            0 => i64::MAX,
            want => (have.max(0)) / want,
        };
        let cpu = fits(self.cpu_milli, unit.cpu_milli);
        let memory = fits(self.memory_mib, unit.memory_mib);
        let least = cpu.min(memory).min(fits(self.gpus, unit.gpus));
        u32::try_from(least).unwrap_or(u32::MAX)
    }

    /// As the model counts it: exact milli-units.
    pub(crate) fn amounts(self) -> Amounts {
        let milli = [
            i128::from(self.cpu_milli),
            i128::from(self.memory_mib) * (1 << 20) * 1000,
            i128::from(self.gpus) * 1000,
        ];
        let named = NAMES.iter().zip(milli);
        let entry = |(name, milli): (&&str, i128)| Dimension::new(name).ok().map(|it| (it, milli));
        Amounts::from_entries(named.filter_map(entry))
    }

    /// As a provider writes it.
    pub(crate) fn texts(self) -> TextMap {
        let texts = [
            (self.cpu_milli, format!("{}m", self.cpu_milli)),
            (self.memory_mib, format!("{}Mi", self.memory_mib)),
            (self.gpus, self.gpus.to_string()),
        ];
        let named = NAMES.iter().zip(texts);
        named
            .filter(|(_, (count, _))| *count != 0)
            .map(|(name, (_, text))| ((*name).to_owned(), text))
            .collect()
    }

    /// So many thousandths of it.
    pub(crate) fn part(self, per_mille: i64) -> Self {
        Self {
            cpu_milli: self.cpu_milli * per_mille / 1000,
            memory_mib: self.memory_mib * per_mille / 1000,
            gpus: self.gpus,
        }
    }

    /// What a shape offers.
    pub(crate) fn of(shape: &Shape) -> Self {
        Self::offered(shape.effective())
    }

    /// What is offered, in these dimensions.
    pub(crate) fn offered(offers: &Amounts) -> Self {
        let whole = |milli: i128| i64::try_from(milli).unwrap_or(i64::MAX);
        Self {
            cpu_milli: whole(offers.get(NAMES[0])),
            memory_mib: whole(offers.get(NAMES[1]) / ((1 << 20) * 1000)),
            gpus: whole(offers.get(NAMES[2]) / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_what_the_scarcest_dimension_allows() {
        let node = Size::gpu(64, 256, 8);
        assert_eq!(node.holds(Size::gpu(8, 32, 1)), 8);
        assert_eq!(node.holds(Size::plain(2, 128)), 2);
        assert_eq!(node.minus(node).holds(Size::plain(1, 1)), 0);
    }

    #[test]
    fn sizes_read_the_same_from_every_side() {
        let size = Size::gpu(2, 8, 1);
        let shape = Shape {
            resources: size.amounts(),
            ..Shape::default()
        };
        assert_eq!(Size::of(&shape), size);
        assert_eq!(size.texts()["memory"], "8192Mi");
    }
}
