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
    NONE,
    book::{Book, MachineIx, NeedIx},
    few::{Few, INLINE},
    tables::DomainIx,
};
use bigfleet_model::State;

/// What the own machines of a Need come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    amounts: [i128; INLINE],
    /// What the one has that would go first.
    first_to_go: [i64; INLINE],
    /// Machines that are not Configured.
    arriving: u32,
    /// Where they all are, for a gang.
    domain: DomainIx,
}

/// What is known of a Need's own machines, until they or its use of them change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Own {
    /// Some are not bound, unfit, elsewhere or lack a dimension: they are walked one by one.
    #[default]
    Mixed,
    /// Other rows have a right to them too.
    Shared,
    /// Each is bound, fit, and has something of all that is wanted.
    Alike(Sum),
}

/// What became of a Need.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub(crate) need: NeedIx,
    /// It claims all machines of its slot, and `claims` is empty.
    whole: bool,
    /// Pass A claimed its own machines one after another, skipping none, and each has something in
    /// every dimension wanted.
    pub(crate) in_a_row: bool,
    /// Pass A claimed all there were.
    pub(crate) all_claimed: bool,
    pub(crate) satisfiable: bool,
    /// Claims that are not Configured.
    pub(crate) arriving: u32,
    pub(crate) domain: DomainIx,
    pub(crate) bootstraps: u32,
    pub(crate) provisions: u32,
    claims: Vec<MachineIx>,
    /// Machines preempted for it this cycle.
    pub(crate) victims: Vec<MachineIx>,
    /// Wanted less claimed, in the order of what is wanted; below zero where more is claimed.
    pub(crate) left: Few<i128>,
    own: Own,
}

impl Holding {
    pub(crate) fn new(need: NeedIx) -> Self {
        Self {
            need,
            whole: false,
            in_a_row: false,
            all_claimed: false,
            satisfiable: false,
            arriving: 0,
            domain: NONE,
            bootstraps: 0,
            provisions: 0,
            claims: Vec::new(),
            victims: Vec::new(),
            left: Few::default(),
            own: Own::Mixed,
        }
    }

    pub(crate) fn is_covered(&self) -> bool {
        self.left.iter().all(|left| *left <= 0)
    }
}

impl Book {
    pub(crate) fn holding(&self, need: NeedIx) -> &Holding {
        &self.holdings[self.need(need).holding]
    }

    pub(crate) fn holding_mut(&mut self, need: NeedIx) -> &mut Holding {
        &mut self.holdings[self.needs[need].holding]
    }

    /// Makes a Need one of this cycle's.
    pub(crate) fn take_holding(&mut self, need: NeedIx) {
        self.needs[need].holding = self.holdings.insert_with(|_| Holding::new(need));
        self.forget(need);
    }

    /// Takes a Need out of this cycle's, and its claims back.
    pub(crate) fn drop_holding(&mut self, need: NeedIx) {
        self.release(need);
        let holding = std::mem::replace(&mut self.needs[need].holding, NONE);
        if holding != NONE {
            self.holdings[holding] = Holding::new(NONE);
            self.holdings.remove(holding);
        }
    }

    /// The machines a Need claims.
    pub(crate) fn claims(&self, need: NeedIx) -> &[MachineIx] {
        let holding = self.holding(need);
        match holding.whole {
            true => &self.slots[self.need(need).slot].machines,
            false => &holding.claims,
        }
    }

    /// The Need that claims a machine, or [`NONE`].
    pub(crate) fn claimant(&self, machine: MachineIx) -> NeedIx {
        let record = self.record(machine);
        match record.slot {
            slot if slot != NONE && record.claimant == NONE => self.slots[slot].whole,
            _ => record.claimant,
        }
    }

    pub(crate) fn is_whole(&self, need: NeedIx) -> bool {
        self.holding(need).whole
    }

    /// Looks at a Need's own machines once, for as long as they stay.
    pub(crate) fn sum_up(&mut self, need: NeedIx) {
        let own = self.look_at_own(need);
        self.holding_mut(need).own = own;
    }

    pub(crate) fn is_shared(&self, need: NeedIx) -> bool {
        matches!(self.holding(need).own, Own::Shared)
    }

    fn look_at_own(&mut self, need: NeedIx) -> Own {
        let entry = self.need(need);
        let slot = &self.slots[entry.slot];
        if 1 < slot.rows.len() + slot.classes.len() {
            return Own::Shared;
        }
        let passed_on = slot.heir != NONE || !slot.bequests.is_empty();
        if slot.machines.is_empty() || passed_on || INLINE < entry.wanted.len() {
            return Own::Mixed;
        }
        let usage = &self.tables.uses[entry.usage as usize];
        let profile = &self.tables.profiles[entry.profile as usize];
        let mut sum = Sum {
            amounts: [0; INLINE],
            first_to_go: [i64::MAX; INLINE],
            arriving: 0,
            domain: NONE,
        };
        let (mut shape, mut amounts) = (NONE, [0; INLINE]);
        for machine in &slot.machines {
            let record = self.record(*machine);
            if record.cluster != entry.cluster || record.not_ready {
                return Own::Mixed;
            }
            if record.shape != shape {
                shape = record.shape;
                let held = &self.tables.shapes[shape as usize];
                for ((dimension, _), amount) in entry.wanted.iter().zip(&mut amounts) {
                    *amount = held.amount(*dimension);
                }
                let lacks = |amount: &i64| *amount <= 0;
                if !usage.serves(shape) || amounts[..entry.wanted.len()].iter().any(lacks) {
                    return Own::Mixed;
                }
                if profile.same_key != NONE {
                    let domain = self.domain_of(need, shape);
                    if domain == NONE || (sum.domain != NONE && sum.domain != domain) {
                        return Own::Mixed;
                    }
                    sum.domain = domain;
                }
            }
            for (sum, amount) in sum.amounts.iter_mut().zip(amounts) {
                *sum += i128::from(amount);
            }
            // Own is kept in order, but a spread Need takes its own evenly: any may be the last.
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
        Own::Alike(sum)
    }

    /// Claims all of a Need's own machines, if it needs them all (RF-4).
    pub(crate) fn keep_whole(&mut self, need: NeedIx) -> bool {
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        let Own::Alike(sum) = holding.own else {
            return false;
        };
        let each = entry
            .wanted
            .iter()
            .zip(sum.amounts.iter().zip(sum.first_to_go));
        let mut each = each.map(|((_, wanted), (sum, first))| sum - i128::from(first) < *wanted);
        if !each.any(|needed| needed) {
            return false;
        }
        if !holding.whole {
            let (slot, cluster) = (entry.slot, entry.cluster);
            self.release(need);
            self.slots[slot].whole = need;
            self.remove_loose(cluster, self.slots[slot].machines.len() as u32);
        }
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        holding.whole = true;
        let each = entry.wanted.iter().zip(sum.amounts);
        holding.left = each.map(|((_, wanted), sum)| wanted - sum).collect();
        holding.arriving = sum.arriving;
        holding.domain = sum.domain;
        holding.satisfiable = sum.domain != NONE && holding.is_covered();
        true
    }

    /// Writes claims down machine by machine, so that they can change one by one.
    pub(crate) fn spell_out(&mut self, need: NeedIx) {
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        if !std::mem::replace(&mut holding.whole, false) {
            return;
        }
        let slot = &mut self.slots[entry.slot];
        slot.whole = NONE;
        holding.claims.clone_from(&slot.machines);
        holding.in_a_row = false;
        for machine in &slot.machines {
            self.records[*machine as usize].claimant = need;
        }
    }

    /// Counts a free machine for a Need.
    pub(crate) fn claim(&mut self, need: NeedIx, machine: MachineIx) {
        self.bind(need, machine);
        let entry = &self.needs[need];
        let shape = &self.tables.shapes[self.records[machine as usize].shape as usize];
        let left = self.holdings[entry.holding].left.iter_mut();
        for ((dimension, _), left) in entry.wanted.iter().zip(left) {
            *left -= i128::from(shape.amount(*dimension));
        }
    }

    /// As [`Self::claim`], where what is left was counted already.
    fn bind(&mut self, need: NeedIx, machine: MachineIx) {
        assert_eq!(
            self.claimant(machine),
            NONE,
            "{} is claimed once",
            self.ids.get(machine)
        );
        self.spell_out(need);
        let record = &mut self.records[machine as usize];
        record.claimant = need;
        let record = *record;
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        holding.claims.push(machine);
        holding.arriving += u32::from(record.state != Some(State::Configured));
        if record.slot != entry.slot {
            self.mismatched.insert(machine);
        }
        if record.cluster != NONE {
            self.remove_loose(record.cluster, 1);
        } else {
            self.count_free(machine, 1);
        }
    }

    /// Takes a claim back.
    pub(crate) fn unclaim(&mut self, need: NeedIx, machine: MachineIx) {
        self.spell_out(need);
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        let place = holding.claims.iter().rposition(|held| *held == machine);
        assert!(
            place.is_some(),
            "{} is claimed by its claimant",
            self.ids.get(machine)
        );
        holding.claims.remove(place.unwrap_or_default());
        let shape = &self.tables.shapes[self.records[machine as usize].shape as usize];
        for ((dimension, _), left) in entry.wanted.iter().zip(holding.left.iter_mut()) {
            *left += i128::from(shape.amount(*dimension));
        }
        self.unbind(need, machine);
    }

    /// Takes all claims of a Need back, and what was decided about it.
    pub(crate) fn release(&mut self, need: NeedIx) {
        let entry = &self.needs[need];
        let Some(holding) = self.holdings.get_mut(entry.holding) else {
            return;
        };
        if std::mem::replace(&mut holding.whole, false) {
            let (slot, cluster) = (entry.slot, entry.cluster);
            self.slots[slot].whole = NONE;
            self.add_loose(cluster, self.slots[slot].machines.len() as u32);
        } else {
            let mut claims = std::mem::take(&mut holding.claims);
            for machine in claims.drain(..) {
                self.unbind(need, machine);
            }
            // The room is used again next time.
            self.holding_mut(need).claims = claims;
        }
        self.forget(need);
    }

    fn unbind(&mut self, need: NeedIx, machine: MachineIx) {
        let record = self.records[machine as usize];
        self.records[machine as usize].claimant = NONE;
        let entry = &self.needs[need];
        self.holdings[entry.holding].arriving -= u32::from(record.state != Some(State::Configured));
        if record.slot != entry.slot {
            self.mismatched.remove(&machine);
        }
        if record.cluster != NONE {
            self.add_loose(record.cluster, 1);
        } else {
            self.count_free(machine, -1);
        }
    }

    /// Makes these the claims of a Need, in this order, with this much left.
    pub(crate) fn settle(&mut self, need: NeedIx, claims: &[MachineIx], left: &[i128]) {
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
    fn forget(&mut self, need: NeedIx) {
        let entry = &self.needs[need];
        let holding = &mut self.holdings[entry.holding];
        holding.left = entry.wanted.iter().map(|(_, milli)| *milli).collect();
        holding.arriving = 0;
        (holding.domain, holding.satisfiable) = (NONE, false);
        (holding.bootstraps, holding.provisions) = (0, 0);
        holding.victims.clear();
    }
}
