//! Pass A: every Need keeps what is its own (RF-4).
//!
//! Own sets are disjoint, so no Need depends on another here: a Need whose row, machines and heirs
//! did not change keeps the claims it has, and costs nothing.

use crate::{
    domain::Domains,
    fleet_tables::FleetTables,
    index::{DomainIndex, MachineIndex, NeedIndex, ShapeIndex},
};

/// What a Need would claim, and what that leaves wanted; nothing is claimed yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    claims: Vec<MachineIndex>,
    left: Vec<i128>,
    /// The shape looked at last, and what it has of the Need's dimensions.
    shape: Option<ShapeIndex>,
    amounts: Vec<i64>,
    /// Every machine looked at had something in every dimension, so none was skipped.
    in_a_row: bool,
}

impl Draft {
    fn begin(&mut self, tables: &FleetTables, need: NeedIndex) {
        self.claims.clear();
        self.left.clear();
        self.left
            .extend(tables.need(need).wanted.iter().map(|(_, milli)| milli));
        self.shape = None;
        self.in_a_row = true;
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }

    /// Whether a machine of this shape has something of what is still wanted (RF-3).
    pub(crate) fn gains_from(
        &mut self,
        tables: &FleetTables,
        need: NeedIndex,
        shape: ShapeIndex,
    ) -> bool {
        if self.shape != Some(shape) {
            let credit = tables.credit(need, shape);
            let wanted = tables.need(need).wanted.iter();
            self.amounts.clear();
            self.amounts
                .extend(wanted.map(|(dimension, _)| credit.amount(dimension)));
            self.shape = Some(shape);
        }
        self.left
            .iter()
            .zip(&self.amounts)
            .any(|(left, amount)| 0 < *left && 0 < *amount)
    }

    /// Takes a machine of the shape just asked about.
    pub(crate) fn add(&mut self, machine: MachineIndex) {
        self.claims.push(machine);
        for (left, amount) in self.left.iter_mut().zip(&self.amounts) {
            *left -= i128::from(*amount);
        }
    }

    /// What it would claim so far.
    pub(crate) fn claims(&self) -> &[MachineIndex] {
        &self.claims
    }

    pub(crate) fn has(&self, machine: MachineIndex) -> bool {
        self.claims.contains(&machine)
    }

    /// Takes machines in the order of the list until nothing is wanted.
    fn take(&mut self, tables: &FleetTables, need: NeedIndex, machines: &[MachineIndex]) {
        for machine in machines {
            if self.is_covered() {
                return;
            }
            if self.gains_from(tables, need, tables.record(*machine).shape) {
                self.add(*machine);
            }
            self.in_a_row &= self.amounts.iter().all(|amount| 0 < *amount);
        }
    }
}

impl FleetTables {
    /// Whether walking its own machines again would end at the same machine. It does for a plain Need of
    /// which only amounts changed, if its last claim is still needed and still enough.
    pub(crate) fn is_settled(&self, need: NeedIndex) -> bool {
        let holding = self.holding(need);
        let profile = &self.catalog.profiles[self.need(need).profile];
        if self.is_whole(need)
            || !holding.in_a_row
            || profile.is_gang()
            || !profile.spreads.is_empty()
        {
            return false;
        }
        match self.claims(need).last() {
            Some(last) => {
                !self.is_redundant(need, *last) && (holding.is_covered() || holding.all_claimed)
            }
            None => false,
        }
    }

    /// Claims a Need's own machines. Changes claims only if the result differs.
    pub(crate) fn keep_own(&mut self, need: NeedIndex, draft: &mut Draft) {
        self.work.needs += 1;
        let own = self.own(need);
        let own_count = own.len();
        draft.begin(self, need);
        let profile = self.profile(need);
        let is_gang = profile.is_gang();
        let mut home = None;
        if is_gang {
            home = self.home(need, &own);
            let at_home = |machine: &MachineIndex| {
                home.is_some() && self.domain_of(need, self.record(*machine).shape) == home
            };
            let inside: Vec<MachineIndex> = own.into_iter().filter(at_home).collect();
            draft.take(self, need, &inside);
        } else {
            let is_spread = !profile.spreads.is_empty();
            let (staying, leaving) = self.staying_first(&own);
            for round in [staying, leaving] {
                if is_spread && !draft.is_covered() {
                    self.draft_spread(need, round, draft);
                }
                if !draft.is_covered() {
                    let rest = round.iter().filter(|machine| !draft.has(**machine));
                    let rest: Vec<MachineIndex> = rest.copied().collect();
                    draft.take(self, need, &rest);
                }
            }
        }
        self.settle(need, &draft.claims, &draft.left);
        let covered = draft.is_covered();
        let holding = self.holding_mut(need);
        (holding.domain, holding.satisfiable) = (home, is_gang && covered);
        holding.in_a_row = draft.in_a_row;
        holding.all_claimed = draft.claims.len() == own_count;
    }

    /// Machines that stay, and after them those that leave: a list has the latter last (RF-21).
    pub(crate) fn staying_first<'m>(
        &self,
        machines: &'m [MachineIndex],
    ) -> (&'m [MachineIndex], &'m [MachineIndex]) {
        let stays = |machine: &MachineIndex| !self.record(*machine).leaves_soon();
        let staying = match self.leave_soon {
            0 => machines.len(),
            _ => machines.partition_point(stays),
        };
        machines.split_at(staying)
    }

    /// Claims machines in the order of the list until the Need is covered.
    pub(crate) fn take(&mut self, need: NeedIndex, machines: &[MachineIndex]) {
        for machine in machines {
            if self.holding(need).is_covered() {
                return;
            }
            let record = self.record(*machine);
            if self.claimant(*machine).is_none() && self.contributes(need, record.shape) {
                self.claim(need, *machine);
            }
        }
    }

    /// As [`Self::take`], from one domain only.
    pub(crate) fn take_in_domain(
        &mut self,
        need: NeedIndex,
        machines: &[MachineIndex],
        domain: DomainIndex,
    ) {
        let inside = |machine: &&MachineIndex| {
            self.domain_of(need, self.record(**machine).shape) == Some(domain)
        };
        let inside: Vec<MachineIndex> = machines.iter().filter(inside).copied().collect();
        self.take(need, &inside);
    }

    /// The domain a gang is at home in: the one its own machines cover most of it in (RF-4).
    fn home(&self, need: NeedIndex, own: &[MachineIndex]) -> Option<DomainIndex> {
        let shapes = own.iter().map(|machine| self.record(*machine).shape);
        let mut places = shapes
            .filter(|shape| self.is_of_use(need, *shape))
            .filter_map(|shape| self.domain_of(need, shape));
        let first = places.next()?;
        if places.all(|domain| domain == first) {
            return Some(first);
        }
        let mut domains = Domains::new(self, need);
        for machine in own {
            domains.add_own(self, self.record(*machine).shape);
        }
        domains.home(self)
    }
}
