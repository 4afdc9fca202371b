//! The spares of one profile, and what each counts for (OP-65, OP-66).

use super::{bins::bin_group, view::Wants};
use crate::demand::class::{Size, UnitClass};
use bigfleet_model::{Amounts, Group, Time};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Spare {
    pub(crate) bin: Amounts,
    pub(crate) count: u64,
    /// The size of what the bin is for, when the count last changed (OP-66).
    pub(crate) raised_at: Size,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileSpare {
    pub(crate) bins: BTreeMap<Group, Spare>,
    /// The sum at the last lowering.
    pub(crate) lowered_at: Option<Size>,
    /// The sum at the raise that bars lowering.
    pub(crate) barred_at: Option<Size>,
    pub(super) barred_came: u64,
    pub(super) last_round: Option<Time>,
}

impl ProfileSpare {
    pub(super) fn put(&mut self, spare: Spare) {
        self.bins.insert(bin_group(&spare.bin), spare);
    }

    /// OP-66: every change starts from what the spare counts for now.
    pub(super) fn change(&mut self, group: &Group, bin: &Amounts, served: Size, by: i64) {
        let spare = self.bins.entry(group.clone()).or_insert_with(|| Spare {
            bin: bin.clone(),
            count: 0,
            raised_at: served,
        });
        spare.count = counts(spare, served).saturating_add_signed(by);
        spare.raised_at = served;
        spare.bin = spare.bin.larger(bin); // bins that are written alike are one, the greater
        if spare.count == 0 {
            self.bins.remove(group);
        }
    }

    /// OP-65: the bar ends when the sum has moved by an eighth, or a quarter of the Pods are new.
    pub(super) fn lift_bar(&mut self, want: &Wants) {
        let Some(then) = self.barred_at else { return };
        let pods: u64 = want.units.values().sum();
        let is_turned = pods <= want.came.saturating_sub(self.barred_came).saturating_mul(4);
        let is_turned = is_turned && 0 < pods;
        if Size::moved_by_an_eighth(want.size(), then) || is_turned {
            self.barred_at = None;
        }
    }
}

/// What a spare counts for while the demand it was raised for is smaller than it was.
pub(super) fn counts(spare: &Spare, served: Size) -> u64 {
    if spare.raised_at.0 == 0 {
        return spare.count;
    }
    let eighths = (served.0.saturating_mul(8) + spare.raised_at.0 - 1) / spare.raised_at.0;
    let eighths = u64::try_from(eighths).unwrap_or(8).min(8);
    (spare.count * eighths * 2 + 8) / 16
}

/// The size of what those Pods ask for that the bin could hold and whose class is the bin's or the one below.
pub(super) fn served_size(want: &Wants, bin: &Amounts) -> Size {
    let class = UnitClass::of(bin);
    let is_served =
        |unit: &Amounts| bin.covers(unit) && UnitClass::of(unit).is_at_or_just_below(&class);
    Size::of(&want.sum_of(is_served))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EX-OP20 in numbers: half of what it was raised for counts half, and a change starts from there.
    #[test]
    fn ex_op20_a_spare_shrinks_with_what_it_was_raised_for() {
        let bin = Amounts::from_entries([(bigfleet_model::Dimension::new("cpu").unwrap(), 3600)]);
        let group = bin_group(&bin);
        let mut known = ProfileSpare::default();
        known.put(Spare {
            bin: bin.clone(),
            count: 8,
            raised_at: Size(100),
        });
        assert_eq!(counts(&known.bins[&group], Size(50)), 4);
        assert_eq!(counts(&known.bins[&group], Size(200)), 8);
        known.change(&group, &bin, Size(50), -1);
        let spare = &known.bins[&group];
        assert_eq!((spare.count, spare.raised_at), (3, Size(50)));
    }
}
