//! Bins: how much a Pod that fits nowhere asks for, and what that is called (OP-62).

use crate::demand::class::UnitClass;
use bigfleet_model::{Amounts, Dimension, Group};
use std::fmt::Write as _;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
/// A thousandth of a gibibyte, in milli-units, times 1000: amounts are written in thousandths.
const GI_MILLI: i128 = (1 << 30) * 1000;

/// The bin of a Pod: its unit, raised to the smallest shape, but in no dimension above what every Node has that could
/// hold the Pod. A bin that is larger than every machine would be asked for in vain.
pub(crate) fn bin_of(unit: &Amounts, hosts: &[&Amounts], rounds_up: bool) -> Amounts {
    let shape = if rounds_up {
        let doubled = unit.scale(2); // the old mistake: the next class, whatever machines there are
        UnitClass::of(&doubled).shape()
    } else {
        UnitClass::of(&Amounts::NONE).shape()
    };
    let least = |name: &str| hosts.iter().map(|host| host.get(name)).min();
    let raised = shape.iter().map(|(name, milli)| {
        let cap = least(name.as_str())
            .filter(|_| !rounds_up)
            .unwrap_or(i128::MAX);
        (name.clone(), milli.min(cap))
    });
    unit.larger(&Amounts::from_entries(raised))
}

/// `spare:<cpu>-<memory>[;name=…]`: cores and Gi, at most three decimals, rounded up.
pub(crate) fn bin_group(bin: &Amounts) -> Group {
    let memory = (bin.get(MEMORY).saturating_mul(1000) + GI_MILLI - 1) / GI_MILLI;
    let mut text = format!(
        "spare:{}-{}Gi",
        thousandths(bin.get(CPU)),
        thousandths(memory)
    );
    let is_other = |(name, _): &(&Dimension, i128)| !matches!(name.as_str(), CPU | MEMORY);
    for (name, milli) in bin.iter().filter(is_other) {
        let _ = write!(text, ";{name}={}", thousandths(milli)); // writing to a String cannot fail
    }
    Group::new(&text)
}

fn thousandths(milli: i128) -> String {
    let (whole, rest) = (milli / 1000, milli % 1000);
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::quantity::parse_demand;

    fn amounts(entries: &[(&str, &str)]) -> Amounts {
        let entry = |(name, text): &(&str, &str)| {
            (Dimension::new(name).unwrap(), parse_demand(text).unwrap())
        };
        Amounts::from_entries(entries.iter().map(entry))
    }

    /// EX-OP21: never a power of two above every machine.
    #[test]
    fn ex_op21_a_bin_is_never_larger_than_the_machines_that_hold_its_pod() {
        let large = amounts(&[("cpu", "32"), ("memory", "230Gi")]);
        let pod = amounts(&[("cpu", "1"), ("memory", "220Gi")]);
        let bin = bin_of(&pod, &[&large], false);
        assert_eq!(bin.get("memory"), parse_demand("220Gi").unwrap());
        assert_eq!(bin_group(&bin).as_str(), "spare:3.6-220Gi");
        let rounded = bin_of(&pod, &[&large], true);
        assert!(!large.covers(&rounded), "the failing arm");
    }

    #[test]
    fn a_bin_is_written_in_cores_and_gibibytes_rounded_up() {
        let small = amounts(&[("cpu", "3.8"), ("memory", "15Gi")]);
        let bin = bin_of(&amounts(&[("cpu", "3")]), &[&small], false);
        assert_eq!(bin_group(&bin).as_str(), "spare:3.6-13.6Gi");
        let tiny = amounts(&[("cpu", "2"), ("memory", "7Gi"), ("gpu", "1")]);
        let bin = bin_of(&amounts(&[("cpu", "100m"), ("gpu", "1")]), &[&tiny], false);
        assert_eq!(bin_group(&bin).as_str(), "spare:2-7Gi;gpu=1");
        let odd = amounts(&[("cpu", "1"), ("memory", "1")]);
        assert_eq!(bin_group(&odd).as_str(), "spare:1-0.001Gi");
    }
}
