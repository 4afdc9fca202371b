//! Victims: the machines Phase 2 considered preempting for a Need that is short (V-3..V-5).

use crate::{
    explain::trace::{VictimTrace, WeighedVictim},
    fleet_tables::{FleetTables, Record},
    index::{MachineIndex, NeedIndex, ShapeIndex},
};
use bigfleet_model::MachineId;
use std::{cmp::Reverse, collections::BTreeSet};

/// What became of a machine that was weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VictimFate {
    /// It is preempted.
    Picked,
    /// It was picked, but the others suffice without it (RF-8).
    Pruned,
    /// It was picked, but the gang cannot be completed, so it gets nothing (RF-10).
    GivenBack,
    /// Others that come first suffice.
    NotReached,
    /// The spread does not allow it (RF-9).
    Spread,
    /// It has nothing of what is still missing (RF-3).
    OffersNothing,
    /// Not eligible: it stands at a priority that is not below the Need's (V-3).
    NotOutranked,
    /// Not eligible: it is to leave (RF-21).
    Leaves,
    /// Not eligible: it was picked for another Need before (V-3).
    AlreadyTaken,
    /// Not eligible: outside the gang's domain, or in none that the spread knows.
    OutsideDomain,
}

impl VictimFate {
    /// Whether it could have been picked at all.
    pub fn is_eligible(self) -> bool {
        match self {
            Self::Picked
            | Self::Pruned
            | Self::GivenBack
            | Self::NotReached
            | Self::Spread
            | Self::OffersNothing => true,
            Self::NotOutranked | Self::Leaves | Self::AlreadyTaken | Self::OutsideDomain => false,
        }
    }
}

/// A machine that was weighed.
#[derive(Clone, Debug, PartialEq)]
pub struct Victim {
    /// The machine.
    pub machine: MachineId,
    /// The priority it stands at: the highest of its stamp, its claimant's and its hold's.
    pub standing: i32,
    /// What ranks it, if it is eligible: more is picked first.
    pub score: Option<f64>,
    /// Whether it would go anyway and so comes before all that would not (V-5).
    pub has_head_start: bool,
    /// What became of it.
    pub fate: VictimFate,
}

/// What Phase 2 weighed for a Need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preemption {
    /// The machines picked, then the others in the order they are picked, then those not eligible.
    pub victims: Vec<Victim>,
    /// How many are not listed.
    pub left_out: usize,
}

impl Preemption {
    /// How many victims are listed.
    pub const MOST: usize = 50;
}

impl FleetTables {
    pub(super) fn explain_victims(&self, need: NeedIndex, traced: VictimTrace) -> Preemption {
        let picked: BTreeSet<MachineIndex> = traced.picked.iter().copied().collect();
        let kept: BTreeSet<MachineIndex> = self.holding(need).victims.iter().copied().collect();
        let covered = traced.left.iter().all(|left| *left <= 0);
        let fate = |weighed: &WeighedVictim| {
            let shape = self.record(weighed.machine).shape;
            if weighed.rank.is_none() {
                return self.why_not_eligible(need, weighed);
            }
            match (picked.contains(&weighed.machine), covered) {
                (true, _) if kept.contains(&weighed.machine) => VictimFate::Picked,
                (true, true) => VictimFate::Pruned,
                (true, false) => VictimFate::GivenBack,
                (false, true) => VictimFate::NotReached,
                (false, false) if self.has_some(need, shape, &traced.left) => VictimFate::Spread,
                (false, false) => VictimFate::OffersNothing,
            }
        };
        let mut judged: Vec<(VictimFate, WeighedVictim)> = traced
            .weighed
            .iter()
            .map(|weighed| (fate(weighed), *weighed))
            .collect();
        judged.sort_by(|(one_fate, one), (other_fate, other)| {
            let class = |fate: VictimFate| (fate != VictimFate::Picked, !fate.is_eligible());
            let (score, first) = one.rank.unwrap_or_default();
            let (other_score, other_first) = other.rank.unwrap_or_default();
            class(*one_fate)
                .cmp(&class(*other_fate))
                .then_with(|| Reverse(first).cmp(&Reverse(other_first)))
                .then_with(|| other_score.total_cmp(&score))
                .then_with(|| self.ids.compare(one.machine, other.machine))
        });
        let left_out = judged.len().saturating_sub(Preemption::MOST);
        judged.truncate(Preemption::MOST);
        let victim = |(fate, weighed): (VictimFate, WeighedVictim)| Victim {
            machine: self.machine_id(weighed.machine),
            standing: weighed.standing,
            score: weighed.rank.map(|(score, _)| score),
            has_head_start: weighed.rank.is_some_and(|(_, first)| first),
            fate,
        };
        Preemption {
            victims: judged.into_iter().map(victim).collect(),
            left_out,
        }
    }

    fn why_not_eligible(&self, need: NeedIndex, weighed: &WeighedVictim) -> VictimFate {
        let Record { shape, leaving, .. } = *self.record(weighed.machine);
        if !self.is_within_reach(need, shape) {
            VictimFate::OutsideDomain
        } else if leaving.is_some() {
            VictimFate::Leaves
        } else if weighed.is_taken {
            VictimFate::AlreadyTaken
        } else {
            VictimFate::NotOutranked
        }
    }

    /// Whether a machine of this shape has something of what is left.
    pub(super) fn has_some(&self, need: NeedIndex, shape: ShapeIndex, left: &[i128]) -> bool {
        let credit = self.credit(need, shape);
        let mut wanted = self.need(need).wanted.iter().zip(left);
        wanted.any(|((dimension, _), left)| 0 < *left && 0 < credit.amount(dimension))
    }
}
