//! Replacing: a Need gives back machines that leave soon, for machines that stay and are free (RF-21).
//!
//! ```text
//! gang ── a domain holds it without them ──▶ goes there as a whole
//! gang inside its domain, any other Need ──▶ one by one, each for as much as it gave, or not at all
//! ```
//!
//! It is one more step of the Need's turn in pass B, so it costs what being short costs, and like all that pass B
//! does it is undone before the next cycle. Nobody is preempted or outranked for it.

use crate::{
    Mistake,
    domain::{DomainCase, Domains},
    fleet_tables::FleetTables,
    index::{DomainIndex, MachineIndex, NeedIndex, SlotIndex},
    pass_b::SearchScope,
    pool::PoolKind,
    serving_lines::LineKind,
};
use bigfleet_model::State;

impl FleetTables {
    /// The slot a machine belongs to: of the Need that gave it back for others in this cycle, or else of the one
    /// it is attributed to.
    pub(crate) fn belongs_to(&self, machine: MachineIndex) -> Option<SlotIndex> {
        match self.replaced.get(&machine) {
            Some(need) => Some(self.need(*need).slot),
            None => self.attribution(machine),
        }
    }

    /// Replaces what a Need claims and leaves soon, as far as that can be had. An incomplete gang buys nothing.
    pub(crate) fn replace_leaving(
        &mut self,
        need: NeedIndex,
        weighed: &mut impl FnMut(&Self, NeedIndex, &Domains),
    ) {
        let is_gang = self.is_gang(need);
        let waits = self.mistake != Some(Mistake::IncompleteGangReplaces);
        if is_gang && waits && !self.holding(need).is_covered() {
            return;
        }
        if is_gang {
            let domains = self.weigh_staying(need);
            if let Some(domain) = self.complete(&domains) {
                weighed(self, need, &domains);
                self.trace_choice(need, &domains, DomainCase::Complete);
                return self.move_gang(need, domain);
            }
        }
        let mut leaving = self.leaving_claims(need);
        leaving.sort_by(|one, other| self.keep_order(*other, *one));
        let own = self.own_staying(need);
        let alive = self.domains_alive(need);
        for machine in leaving {
            let place = self.place_of(need, machine, &alive);
            let scope = match self.holding(need).domain {
                Some(domain) if is_gang => SearchScope::Domain(domain),
                _ => SearchScope::InPlace(&place),
            };
            self.replace_one(need, machine, scope, &own);
        }
    }

    fn leaving_claims(&self, need: NeedIndex) -> Vec<MachineIndex> {
        let claims = self.claims(need).iter().copied();
        claims
            .filter(|machine| self.record(*machine).leaves_soon())
            .collect()
    }

    fn own_staying(&mut self, need: NeedIndex) -> Vec<MachineIndex> {
        let mut own = self.own(need);
        own.truncate(self.staying_first(&own).0.len());
        own
    }

    /// A gang goes where machines that stay complete it, and gives back all others.
    fn move_gang(&mut self, need: NeedIndex, domain: DomainIndex) {
        for machine in self.leaving_claims(need) {
            self.unclaim(need, machine);
            self.replaced.insert(machine, need);
        }
        self.leave_other_domains(need, domain);
        let own = self.own_staying(need);
        self.take_spares(need, SearchScope::Domain(domain), &own);
        let new = self.newly_taken(need, 0);
        let holding = self.holding_mut(need);
        (holding.domain, holding.satisfiable) = (Some(domain), true);
        holding.by_victims = false;
        (holding.bootstraps, holding.provisions) = (0, 0);
        self.count_new(need, &new);
        self.prune(need, new);
    }

    /// Gives a machine back if others that stay can be had for as much as it gives; else all stays as it is.
    fn replace_one(
        &mut self,
        need: NeedIndex,
        machine: MachineIndex,
        scope: SearchScope<'_>,
        own: &[MachineIndex],
    ) {
        // Short or not: what was missing before is not looked for.
        let missing: Vec<i128> = self
            .holding(need)
            .left
            .iter()
            .map(|left| (*left).max(0))
            .collect();
        self.expect_less(need, &missing, 1);
        self.unclaim(need, machine);
        let before = self.claims(need).len();
        let acquired_from = self.take_spares(need, scope, own);
        if self.holding(need).is_covered() {
            let new = self.newly_taken(need, acquired_from);
            self.count_new(need, &new);
            self.prune(need, new);
            self.replaced.insert(machine, need);
        } else if self.mistake == Some(Mistake::PartialPurchaseKept) {
            let new = self.newly_taken(need, acquired_from);
            self.count_new(need, &new);
            self.claim(need, machine);
        } else {
            let taken = self.claims(need)[before..].to_vec();
            for other in taken {
                self.unclaim(need, other);
            }
            self.claim(need, machine);
        }
        self.expect_less(need, &missing, -1);
    }

    fn expect_less(&mut self, need: NeedIndex, missing: &[i128], sign: i128) {
        let left = self.holding_mut(need).left.iter_mut();
        for (left, missing) in left.zip(missing) {
            *left -= sign * missing;
        }
    }

    /// B0 to B4 of machines that stay, without B2 to B4 where nothing may be acquired. Returns the place in the
    /// claims from which on they were acquired.
    fn take_spares(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        own: &[MachineIndex],
    ) -> usize {
        self.take_own(need, scope, own);
        self.take_in_cluster(need, scope, LineKind::Loose);
        self.take_in_cluster(need, scope, LineKind::Reversible);
        let acquired_from = self.claims(need).len();
        if !self.is_parked(need) {
            for kind in [PoolKind::Idle, PoolKind::Creating, PoolKind::Speculative] {
                self.take_free(need, scope, kind);
            }
        }
        acquired_from
    }

    /// The claims from a place on that were taken in B2 to B4, in the order taken.
    fn newly_taken(&self, need: NeedIndex, from: usize) -> Vec<MachineIndex> {
        let is_new = |machine: &MachineIndex| {
            let state = self.record(*machine).state;
            let is_free = matches!(
                state,
                Some(State::Idle | State::Creating | State::Speculative)
            );
            is_free && !self.is_own(need, *machine)
        };
        let claims = self.claims(need)[from..].iter().copied();
        claims.filter(is_new).collect()
    }

    fn count_new(&mut self, need: NeedIndex, new: &[MachineIndex]) {
        for machine in new {
            let state = self.record(*machine).state;
            let holding = self.holding_mut(need);
            match state {
                Some(State::Idle) => holding.bootstraps += 1,
                Some(State::Speculative) => holding.provisions += 1,
                _ => {}
            }
        }
    }
}
