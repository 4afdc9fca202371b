//! Leaving: why a machine that leaves soon has no replacement (RF-21).
//!
//! Read off the tables after the cycle, so what is free is what nobody took in it.

use crate::{
    explain::fate::NotReplaced,
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex, ShapeIndex},
    pool::PoolKind,
};

impl FleetTables {
    /// Why a Need that claims a machine which leaves soon has nothing in its place.
    pub(super) fn why_not_replaced(&self, need: NeedIndex, machine: MachineIndex) -> NotReplaced {
        let is_gang = self.is_gang(need);
        let may_acquire = self.clusters[self.need(need).cluster].acquire;
        let mut free = self.free_by_shape(need);
        let is_anything_free = !free.is_empty();
        free.retain(|(shape, _)| self.is_within_reach(need, *shape));
        if is_gang && !self.holding(need).is_covered() {
            NotReplaced::IncompleteGang
        } else if !may_acquire {
            NotReplaced::MayNotAcquire
        } else if self.is_parked(need) {
            NotReplaced::Parked
        } else if !is_anything_free {
            NotReplaced::NothingFree
        } else if is_gang && free.is_empty() {
            NotReplaced::OutsideDomain
        } else if !self.gives_as_much(need, machine, &free) {
            NotReplaced::NotEnough
        } else if self.is_spread(need) {
            NotReplaced::Spread
        } else {
            NotReplaced::FreedLater
        }
    }

    /// Shapes the Need can use, with how many machines of each are free to acquire.
    fn free_by_shape(&self, need: NeedIndex) -> Vec<(ShapeIndex, u32)> {
        let free = |shape: ShapeIndex| {
            let kinds = [PoolKind::Idle, PoolKind::Creating, PoolKind::Speculative];
            let pools = kinds.map(|kind| self.stocks[shape].pool(kind).free());
            pools.iter().sum()
        };
        let shapes = self.catalog.by_price(self.need(need).usage);
        let counted = shapes.map(|shape| (shape, free(shape)));
        counted.filter(|(_, count)| 0 < *count).collect()
    }

    /// Whether all of these together give a Need what a machine gives it that it would lack without.
    fn gives_as_much(
        &self,
        need: NeedIndex,
        machine: MachineIndex,
        free: &[(ShapeIndex, u32)],
    ) -> bool {
        let given = self.credit(need, self.record(machine).shape);
        let wanted = self.need(need).wanted.iter();
        let mut each = wanted.zip(&*self.holding(need).left);
        each.all(|((dimension, _), left)| {
            let lacks = (left + i128::from(given.amount(dimension))).max(0) - (*left).max(0);
            let has = |(shape, count): &(ShapeIndex, u32)| {
                i128::from(self.credit(need, *shape).amount(dimension)) * i128::from(*count)
            };
            lacks <= free.iter().map(has).sum()
        })
    }
}
