//! Pass A: every Need keeps what is its own (RF-4).
//!
//! Own sets are disjoint, so no Need depends on another here: a Need whose row, machines and heirs
//! did not change keeps the claims it has, and costs nothing.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx},
    domain::Domains,
    tables::DomainIx,
};

impl Book {
    pub(crate) fn keep_own(&mut self, need: NeedIx) {
        self.work.needs += 1;
        let own = self.own(need);
        let profile = &self.tables.profiles[self.need(need).profile as usize];
        if profile.same_key != NONE {
            let home = self.home(need, &own);
            self.take_in_domain(need, &own, home);
            let covered = self.need(need).is_covered();
            let entry = &mut self.needs[need as usize];
            (entry.domain, entry.satisfiable) = (home, covered);
        } else if profile.spreads.is_empty() {
            self.take(need, &own);
        } else {
            self.take_own_spread(need, &own);
        }
    }

    /// Claims along the list until the Need is covered.
    pub(crate) fn take(&mut self, need: NeedIx, machines: &[MachineIx]) {
        for machine in machines {
            if self.need(need).is_covered() {
                return;
            }
            let record = self.record(*machine);
            if record.claimant == NONE && self.contributes(need, record.shape) {
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
        let mut domains = Domains::new(self, need);
        for machine in own {
            domains.add_own(self, self.record(*machine).shape);
        }
        domains.home(self)
    }
}
