//! Pass A: every Need keeps what is its own (RF-4).
//!
//! Own sets are disjoint, so no Need depends on another here: a Need whose row, machines and heirs
//! did not change keeps the claims it has, and costs nothing.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    domain::Domains,
    tables::{DomainIx, ShapeIx},
};

/// What a Need would claim and what that leaves, worked out beside the books.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    claims: Vec<MachineIx>,
    left: Vec<i128>,
    /// The shape looked at last, and what it has of the Need's dimensions.
    shape: Option<ShapeIx>,
    amounts: Vec<i64>,
    /// Every machine looked at had something in every dimension, so none was skipped.
    in_a_row: bool,
}

impl Draft {
    fn begin(&mut self, book: &Book, need: NeedIx) {
        self.claims.clear();
        self.left.clear();
        self.left
            .extend(book.need(need).wanted.iter().map(|(_, milli)| *milli));
        self.shape = None;
        self.in_a_row = true;
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }

    /// Whether a machine of this shape has something of what is still wanted (RF-3).
    pub(crate) fn gains_from(&mut self, book: &Book, need: NeedIx, shape: ShapeIx) -> bool {
        if self.shape != Some(shape) {
            let entry = &book.tables.shapes[shape as usize];
            let wanted = book.need(need).wanted.iter();
            self.amounts.clear();
            self.amounts
                .extend(wanted.map(|(dimension, _)| entry.amount(*dimension)));
            self.shape = Some(shape);
        }
        self.left
            .iter()
            .zip(&self.amounts)
            .any(|(left, amount)| 0 < *left && 0 < *amount)
    }

    /// Takes a machine of the shape just asked about.
    pub(crate) fn add(&mut self, machine: MachineIx) {
        self.claims.push(machine);
        for (left, amount) in self.left.iter_mut().zip(&self.amounts) {
            *left -= i128::from(*amount);
        }
    }

    pub(crate) fn has(&self, machine: MachineIx) -> bool {
        self.claims.contains(&machine)
    }

    /// Takes along the list until nothing is wanted.
    fn take(&mut self, book: &Book, need: NeedIx, machines: &[MachineIx]) {
        for machine in machines {
            if self.is_covered() {
                return;
            }
            if self.gains_from(book, need, book.record(*machine).shape) {
                self.add(*machine);
            }
            self.in_a_row &= self.amounts.iter().all(|amount| 0 < *amount);
        }
    }
}

impl Book {
    /// Whether a walk over its own machines would end where the last one did. True for a plain Need
    /// whose amounts alone changed, as long as its last claim is still needed and enough.
    pub(crate) fn is_settled(&self, need: NeedIx) -> bool {
        let holding = self.holding(need);
        let profile = &self.tables.profiles[self.need(need).profile as usize];
        if self.is_whole(need)
            || !holding.in_a_row
            || profile.same_key != NONE
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

    /// Claims what is a Need's own. Worked out anew each time; written down only where it differs.
    pub(crate) fn keep_own(&mut self, need: NeedIx, draft: &mut Draft) {
        self.work.needs += 1;
        let own = self.own(need);
        let own_count = own.len();
        draft.begin(self, need);
        let profile = &self.tables.profiles[self.need(need).profile as usize];
        let is_gang = profile.same_key != NONE;
        let mut home = NONE;
        if is_gang {
            home = self.home(need, &own);
            let at_home = |machine: &MachineIx| {
                home != NONE && self.domain_of(need, self.record(*machine).shape) == home
            };
            let inside: Vec<MachineIx> = own.into_iter().filter(at_home).collect();
            draft.take(self, need, &inside);
        } else {
            if !profile.spreads.is_empty() {
                self.draft_spread(need, &own, draft);
            }
            if !draft.is_covered() {
                let rest = own.into_iter().filter(|machine| !draft.has(*machine));
                let rest: Vec<MachineIx> = rest.collect();
                draft.take(self, need, &rest);
            }
        }
        self.settle(need, &draft.claims, &draft.left);
        let covered = draft.is_covered();
        let holding = self.holding_mut(need);
        (holding.domain, holding.satisfiable) = (home, is_gang && covered);
        holding.in_a_row = draft.in_a_row;
        holding.all_claimed = draft.claims.len() == own_count;
    }

    /// Claims along the list until the Need is covered.
    pub(crate) fn take(&mut self, need: NeedIx, machines: &[MachineIx]) {
        for machine in machines {
            if self.holding(need).is_covered() {
                return;
            }
            let record = self.record(*machine);
            if self.claimant(*machine) == NONE && self.contributes(need, record.shape) {
                self.claim(need, *machine);
            }
        }
    }

    /// As [`Self::take`], from one domain only.
    pub(crate) fn take_in_domain(
        &mut self,
        need: NeedIx,
        machines: &[MachineIx],
        domain: DomainIx,
    ) {
        let inside = |machine: &&MachineIx| {
            domain != NONE && self.domain_of(need, self.record(**machine).shape) == domain
        };
        let inside: Vec<MachineIx> = machines.iter().filter(inside).copied().collect();
        self.take(need, &inside);
    }

    /// The domain a gang is at home in: the one its own machines cover most of it in (RF-4).
    fn home(&self, need: NeedIx, own: &[MachineIx]) -> DomainIx {
        let shapes = own.iter().map(|machine| self.record(*machine).shape);
        let mut places = shapes
            .filter(|shape| self.is_of_use(need, *shape))
            .map(|shape| self.domain_of(need, shape))
            .filter(|domain| *domain != NONE);
        let Some(first) = places.next() else {
            return NONE;
        };
        if places.all(|domain| domain == first) {
            return first;
        }
        let mut domains = Domains::new(self, need);
        for machine in own {
            domains.add_own(self, self.record(*machine).shape);
        }
        domains.home(self)
    }
}
