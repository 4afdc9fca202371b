//! Holdings: what each Need of this cycle has claimed, and what that leaves it wanting.
//!
//! ```text
//! 463,000 rows ── 35,000 are live ──▶ holding ─┬─ whole: every machine of its slot, none spelled out
//!                                              └─ claims: machine by machine
//! ```
//!
//! A row that folds away has no holding, so those of a cycle lie together. In a fleet at rest nearly
//! every Need needs all of its own machines: then that is all there is to write down. What own
//! machines come to is kept as facts change, so pass A is one subtraction for such a Need, however
//! many machines it has, and a machine's claimant is read off its slot.

use crate::{
    fleet_tables::FleetTables,
    index::{DomainIndex, HoldingIndex, MachineIndex, NeedIndex},
    small_list::{INLINE, SmallList},
};
use bigfleet_model::State;

/// The sum of a Need's own machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSum {
    amounts: [i128; INLINE],
    /// What the machine has that the Need would give up first.
    first_to_go: [i64; INLINE],
    /// Machines that are not Configured.
    arriving: u32,
    /// The domain that all are in, for a gang.
    domain: Option<DomainIndex>,
}

/// What is known of a Need's own machines, until they change or the Need can use others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum OwnMachines {
    /// Some are not bound, unfit, to leave, in another domain, or lack a dimension, so pass A walks them one by
    /// one.
    #[default]
    Mixed,
    /// Other rows have a right to them too.
    Shared,
    /// Each is bound, fit, and has something of all that is wanted.
    Alike(OwnSum),
}

/// What became of a Need.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    /// Whose it is; none once the Need is no longer of the cycle.
    pub(crate) need: Option<NeedIndex>,
    /// It claims all machines of its slot, and `claims` is empty.
    whole: bool,
    /// Pass A claimed its own machines one after another, skipping none, and each has something in
    /// every dimension wanted.
    pub(crate) in_a_row: bool,
    /// Pass A claimed all there were.
    pub(crate) all_claimed: bool,
    pub(crate) satisfiable: bool,
    /// It chose a domain that only victims complete (RF-6, case 2).
    pub(crate) by_victims: bool,
    /// Claims that are not Configured.
    pub(crate) arriving: u32,
    /// Claims that leave soon (RF-21).
    pub(crate) leaving: u32,
    pub(crate) domain: Option<DomainIndex>,
    pub(crate) bootstraps: u32,
    pub(crate) provisions: u32,
    claims: Vec<MachineIndex>,
    /// Machines preempted for it this cycle.
    pub(crate) victims: Vec<MachineIndex>,
    /// What is wanted minus what is claimed, by dimension in the order of the request; below zero where more
    /// is claimed.
    pub(crate) left: SmallList<i128>,
    own: OwnMachines,
}

impl Holding {
    fn new(need: Option<NeedIndex>) -> Self {
        Self {
            need,
            whole: false,
            in_a_row: false,
            all_claimed: false,
            satisfiable: false,
            by_victims: false,
            arriving: 0,
            leaving: 0,
            domain: None,
            bootstraps: 0,
            provisions: 0,
            claims: Vec::new(),
            victims: Vec::new(),
            left: SmallList::default(),
            own: OwnMachines::Mixed,
        }
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }
}

impl FleetTables {
    pub(crate) fn holding(&self, need: NeedIndex) -> &Holding {
        &self.holdings[self.holding_of(need)]
    }

    pub(crate) fn holding_mut(&mut self, need: NeedIndex) -> &mut Holding {
        let holding = self.holding_of(need);
        &mut self.holdings[holding]
    }

    /// # Panics
    ///
    /// If the Need is not one of this cycle's.
    fn holding_of(&self, need: NeedIndex) -> HoldingIndex {
        match self.need(need).holding {
            Some(holding) => holding,
            None => unreachable!(
                "{} is a Need of this cycle",
                self.slot_key(self.need(need).slot)
            ),
        }
    }

    /// Makes a Need live: one that this cycle decides about.
    pub(crate) fn take_holding(&mut self, need: NeedIndex) {
        let holding = self.holdings.insert_with(|_| Holding::new(Some(need)));
        self.needs[need].holding = Some(holding);
        self.forget(need);
    }

    /// Makes a Need not live, and releases its claims.
    pub(crate) fn drop_holding(&mut self, need: NeedIndex) {
        self.release(need);
        self.lacking.remove(&need);
        if let Some(holding) = self.needs[need].holding.take() {
            self.holdings[holding] = Holding::new(None);
            self.holdings.remove(holding);
        }
    }

    /// The machines a Need claims.
    pub(crate) fn claims(&self, need: NeedIndex) -> &[MachineIndex] {
        let holding = self.holding(need);
        if holding.whole {
            &self.slots[self.need(need).slot].machines
        } else {
            &holding.claims
        }
    }

    /// The Need that claims a machine, by name or with all others of its slot.
    pub(crate) fn claimant(&self, machine: MachineIndex) -> Option<NeedIndex> {
        let record = self.record(machine);
        let whole = || self.slots[record.slot?].claimed_whole_by;
        record.claimant.or_else(whole)
    }

    pub(crate) fn is_whole(&self, need: NeedIndex) -> bool {
        self.holding(need).whole
    }

    /// Sums up a Need's own machines.
    pub(crate) fn sum_up(&mut self, need: NeedIndex) {
        let own = self.look_at_own(need);
        self.holding_mut(need).own = own;
    }

    pub(crate) fn is_shared(&self, need: NeedIndex) -> bool {
        matches!(self.holding(need).own, OwnMachines::Shared)
    }

    fn look_at_own(&mut self, need: NeedIndex) -> OwnMachines {
        let entry = self.need(need);
        let slot = &self.slots[entry.slot];
        if 1 < slot.rows.len() + slot.classes.len() {
            return OwnMachines::Shared;
        }
        let passed_on = slot.heir.is_some() || !slot.bequests.is_empty();
        if slot.machines.is_empty() || passed_on || INLINE < entry.wanted.len() {
            return OwnMachines::Mixed;
        }
        let usage = &self.catalog.uses[entry.usage];
        let profile = &self.catalog.profiles[entry.profile];
        let mut sum = OwnSum {
            amounts: [0; INLINE],
            first_to_go: [i64::MAX; INLINE],
            arriving: 0,
            domain: None,
        };
        let (mut shape, mut amounts) = (None, [0; INLINE]);
        for machine in &slot.machines {
            let record = self.record(*machine);
            if record.cluster != Some(entry.cluster) || record.unfit || record.leaving.is_some() {
                return OwnMachines::Mixed;
            }
            if shape != Some(record.shape) {
                shape = Some(record.shape);
                let held = self.catalog.credit(entry.usage, entry.whole, record.shape);
                for ((dimension, _), amount) in entry.wanted.iter().zip(&mut amounts) {
                    *amount = held.amount(dimension);
                }
                let lacks = |amount: &i64| *amount <= 0;
                if !usage.serves(record.shape) || amounts[..entry.wanted.len()].iter().any(lacks) {
                    return OwnMachines::Mixed;
                }
                if profile.is_gang() {
                    let domain = self.domain_of(need, record.shape);
                    if domain.is_none() || (sum.domain.is_some() && sum.domain != domain) {
                        return OwnMachines::Mixed;
                    }
                    sum.domain = domain;
                }
            }
            for (sum, amount) in sum.amounts.iter_mut().zip(amounts) {
                *sum += i128::from(amount);
            }
            // The last in keep order goes first; but a spread Need takes evenly, so any may be the last.
            for (first, amount) in sum.first_to_go.iter_mut().zip(amounts) {
                let is_spread = !profile.spreads.is_empty();
                *first = if is_spread {
                    amount.min(*first)
                } else {
                    amount
                };
            }
            sum.arriving += u32::from(record.state != Some(State::Configured));
        }
        self.work.machines += slot.machines.len() as u64;
        OwnMachines::Alike(sum)
    }

    /// Claims all of a Need's own machines, if it needs them all (RF-4).
    pub(crate) fn keep_whole(&mut self, need: NeedIndex) -> bool {
        let index = self.holding_of(need);
        let entry = &self.needs[need];
        let holding = &mut self.holdings[index];
        let OwnMachines::Alike(sum) = holding.own else {
            return false;
        };
        let sums = sum.amounts.iter().zip(sum.first_to_go);
        let needs_the_last = entry
            .wanted
            .iter()
            .zip(sums)
            .any(|((_, wanted), (sum, first))| sum - i128::from(first) < wanted);
        if !needs_the_last {
            return false;
        }
        if !holding.whole {
            let (slot, cluster) = (entry.slot, entry.cluster);
            self.release(need);
            self.slots[slot].claimed_whole_by = Some(need);
            self.remove_loose(cluster, self.slots[slot].machines.len() as u32);
        }
        let entry = &self.needs[need];
        let holding = &mut self.holdings[index];
        holding.whole = true;
        let each = entry.wanted.iter().zip(sum.amounts);
        holding.left = each.map(|((_, wanted), sum)| wanted - sum).collect();
        holding.arriving = sum.arriving;
        holding.domain = sum.domain;
        holding.satisfiable = sum.domain.is_some() && holding.is_covered();
        true
    }

    /// Lists the claims machine by machine, so that they can change one by one.
    pub(crate) fn spell_out(&mut self, need: NeedIndex) {
        let index = self.holding_of(need);
        let holding = &mut self.holdings[index];
        if !std::mem::replace(&mut holding.whole, false) {
            return;
        }
        let slot = &mut self.slots[self.needs[need].slot];
        slot.claimed_whole_by = None;
        holding.claims.clone_from(&slot.machines);
        holding.in_a_row = false;
        for machine in &slot.machines {
            self.records[*machine].claimant = Some(need);
        }
    }

    /// Claims a free machine for a Need.
    pub(crate) fn claim(&mut self, need: NeedIndex, machine: MachineIndex) {
        self.bind(need, machine);
        let index = self.holding_of(need);
        let entry = &self.needs[need];
        let shape = self.records[machine].shape;
        let credit = self.catalog.credit(entry.usage, entry.whole, shape);
        let left = self.holdings[index].left.iter_mut();
        for ((dimension, _), left) in entry.wanted.iter().zip(left) {
            *left -= i128::from(credit.amount(dimension));
        }
    }

    /// As [`Self::claim`], for callers that set what is left themselves.
    fn bind(&mut self, need: NeedIndex, machine: MachineIndex) {
        assert_eq!(
            self.claimant(machine),
            None,
            "{} is claimed once",
            self.ids.get(machine)
        );
        self.spell_out(need);
        self.leave_lines(machine);
        let record = &mut self.records[machine];
        record.claimant = Some(need);
        let record = *record;
        self.join_lines(machine);
        let slot = self.needs[need].slot;
        let holding = self.holding_mut(need);
        holding.claims.push(machine);
        holding.arriving += u32::from(record.state != Some(State::Configured));
        holding.leaving += u32::from(record.leaves_soon());
        if record.slot != Some(slot) {
            self.mismatched.insert(machine);
        }
        if let Some(cluster) = record.cluster {
            self.remove_loose(cluster, 1);
        } else {
            self.count_free(machine, 1);
        }
    }

    /// Releases one machine.
    pub(crate) fn unclaim(&mut self, need: NeedIndex, machine: MachineIndex) {
        self.spell_out(need);
        let index = self.holding_of(need);
        let entry = &self.needs[need];
        let holding = &mut self.holdings[index];
        let place = holding.claims.iter().rposition(|held| *held == machine);
        assert!(
            place.is_some(),
            "{} is claimed by its claimant",
            self.ids.get(machine)
        );
        holding.claims.remove(place.unwrap_or_default());
        let shape = self.records[machine].shape;
        let credit = self.catalog.credit(entry.usage, entry.whole, shape);
        for ((dimension, _), left) in entry.wanted.iter().zip(holding.left.iter_mut()) {
            *left += i128::from(credit.amount(dimension));
        }
        self.unbind(need, machine);
    }

    /// Releases all machines of a Need, and forgets what was decided about it.
    pub(crate) fn release(&mut self, need: NeedIndex) {
        let entry = &self.needs[need];
        let Some(index) = entry.holding else {
            return;
        };
        let holding = &mut self.holdings[index];
        if std::mem::replace(&mut holding.whole, false) {
            let (slot, cluster) = (entry.slot, entry.cluster);
            self.slots[slot].claimed_whole_by = None;
            self.add_loose(cluster, self.slots[slot].machines.len() as u32);
        } else {
            let mut claims = std::mem::take(&mut holding.claims);
            for machine in claims.drain(..) {
                self.unbind(need, machine);
            }
            // Keeps the allocation for the next claims.
            self.holdings[index].claims = claims;
        }
        self.forget(need);
    }

    fn unbind(&mut self, need: NeedIndex, machine: MachineIndex) {
        self.leave_lines(machine);
        let record = self.records[machine];
        self.records[machine].claimant = None;
        self.join_lines(machine);
        let holding = self.holding_mut(need);
        holding.arriving -= u32::from(record.state != Some(State::Configured));
        holding.leaving -= u32::from(record.leaves_soon());
        if record.slot != Some(self.needs[need].slot) {
            self.mismatched.remove(&machine);
        }
        if let Some(cluster) = record.cluster {
            self.add_loose(cluster, 1);
        } else {
            self.count_free(machine, -1);
        }
    }

    /// Makes these the claims of a Need, in this order, with this much left.
    pub(crate) fn settle(&mut self, need: NeedIndex, claims: &[MachineIndex], left: &[i128]) {
        let holding = self.holding(need);
        if holding.whole || holding.claims != claims {
            self.release(need);
            for machine in claims {
                self.bind(need, *machine);
            }
        }
        self.holding_mut(need).left = left.iter().copied().collect();
    }

    /// Forgets what became of a Need; its claims must be gone.
    fn forget(&mut self, need: NeedIndex) {
        let index = self.holding_of(need);
        let entry = &self.needs[need];
        let holding = &mut self.holdings[index];
        holding.left = entry.wanted.iter().map(|(_, milli)| milli).collect();
        (holding.arriving, holding.leaving) = (0, 0);
        (holding.domain, holding.satisfiable) = (None, false);
        holding.by_victims = false;
        (holding.bootstraps, holding.provisions) = (0, 0);
        holding.victims.clear();
    }
}
