//! The steps that take (RF-5, B0 to B4), whoever takes and why.
//!
//! ```text
//! B0 own ─▶ B1 leftovers ─▶ B1a drains taken back ─▶ B2 Idle ─▶ B3 Creating ─▶ B4 Speculative
//! ```

use crate::{
    ledger::{How, Ledger},
    order::{keep_order, restore_order},
    pass_a::own,
    pick::{Candidates, InPlace, pick, pick_own},
    world::{Unit, World, can_use, is_parked, lies_in, may_acquire},
};
use bigfleet_model::{Amounts, Need, State, effective_cost};

/// What a Need looks for.
#[derive(Clone, Debug)]
pub(crate) struct Search<'w> {
    pub(crate) world: &'w World<'w>,
    pub(crate) rank: usize,
    /// Where a gang looks.
    pub(crate) domain: String,
    /// How much may stay uncovered.
    pub(crate) short_by: Amounts,
    /// Whether machines that leave will do where those that stay do not suffice (RF-21).
    pub(crate) last_resort: bool,
    /// The place of the machine that is replaced (RF-21).
    pub(crate) in_place: Option<InPlace<'w>>,
}

impl<'w> Search<'w> {
    /// For all that the Need asks for.
    pub(crate) fn new(world: &'w World<'w>, rank: usize, domain: &str) -> Self {
        Self {
            world,
            rank,
            domain: domain.to_owned(),
            short_by: Amounts::NONE,
            last_resort: true,
            in_place: None,
        }
    }

    fn need(&self) -> &'w Need {
        &self.world.needs[self.rank]
    }

    pub(crate) fn wanted(&self, ledger: &Ledger<'w>) -> Amounts {
        ledger.wanted(self.rank).sub(&self.short_by)
    }

    /// RF-21: first machines that stay, to the end, then those that leave.
    fn rounds(&self) -> &'static [bool] {
        if self.last_resort {
            &[false, true]
        } else {
            &[false]
        }
    }

    /// RF-5, parked: B0 to B1a. RF-16, `acquire: false`: the same.
    pub(crate) fn may_acquire(&self) -> bool {
        !is_parked(self.need()) && may_acquire(self.world.fleet, &self.need().cluster)
    }

    /// Picks from the candidates of a step, without claiming.
    pub(crate) fn pick<K: Ord>(
        &self,
        ledger: &Ledger<'w>,
        candidates: Candidates<'w, K>,
    ) -> Vec<&'w Unit<'w>> {
        let (wanted, so_far) = (self.wanted(ledger), ledger.units(self.rank));
        let in_place = self.in_place.as_ref();
        pick(self.need(), &wanted, &so_far, candidates, in_place)
    }

    /// RF-4 and B0: own not yet claimed, in keep order; a gang's only inside its domain.
    pub(crate) fn take_own(&self, ledger: &mut Ledger<'w>) {
        for leaves in self.rounds() {
            let free = own(self.world, self.need()).into_iter().filter(|unit| {
                unit.leaves_soon() == *leaves
                    && ledger.is_offered(unit)
                    && lies_in(self.need(), unit, &self.domain)
            });
            let candidates = free.map(|unit| (keep_order(unit), unit)).collect();
            let (wanted, so_far) = (self.wanted(ledger), ledger.units(self.rank));
            let in_place = self.in_place.as_ref();
            let picked = pick_own(self.need(), &wanted, &so_far, candidates, in_place);
            ledger.claim_all(self.rank, picked, How::Own);
        }
    }

    /// B1: leftovers of its cluster in keep order (RF-1).
    pub(crate) fn take_leftovers(&self, ledger: &mut Ledger<'w>) {
        for leaves in self.rounds() {
            let leftover = |unit: &&Unit<'_>| {
                unit.leaves_soon() == *leaves
                    && self.world.may_be_leftover(self.need(), unit)
                    && ledger.is_offered(unit)
                    && self.is_of_use(unit)
            };
            let leftovers = self.world.units.iter().filter(leftover);
            let candidates = leftovers.map(|unit| (keep_order(unit), unit)).collect();
            let picked = self.pick(ledger, candidates);
            ledger.claim_all(self.rank, picked, How::Leftover);
        }
    }

    /// B1a: machines of its cluster whose drain can be taken back, in keep order (RF-20).
    pub(crate) fn take_back(&self, ledger: &mut Ledger<'w>) {
        let reversible = |unit: &&Unit<'_>| {
            may_take_back(self.need(), unit)
                && ledger.is_free(unit)
                && lies_in(self.need(), unit, &self.domain)
        };
        let reversible = self.world.units.iter().filter(reversible);
        let candidates = reversible.map(|unit| (restore_order(unit), unit)).collect();
        let picked = self.pick(ledger, candidates);
        ledger.claim_all(self.rank, picked, How::Restored);
    }

    /// B2 and B3: Idle, then Creating, without intent, by (price, id).
    pub(crate) fn acquire(&self, ledger: &mut Ledger<'w>, state: State) {
        let free = self.free(ledger, state).into_iter();
        let candidates = free.map(|unit| (unit.machine().price(), unit)).collect();
        let picked = self.pick(ledger, candidates);
        ledger.claim_all(self.rank, picked, How::New);
    }

    /// B4: Speculative, by (effective cost, price, id).
    pub(crate) fn provision(&self, ledger: &mut Ledger<'w>) {
        let penalty = self.need().row.profile.interruption();
        let cost = |unit: &Unit<'_>| {
            let (price, interruption) = (unit.machine().price(), unit.machine().interruption());
            (effective_cost(price, interruption, penalty), price)
        };
        let free = self.free(ledger, State::Speculative).into_iter();
        let candidates = free.map(|unit| (cost(unit), unit)).collect();
        let picked = self.pick(ledger, candidates);
        ledger.claim_all(self.rank, picked, How::New);
    }

    /// Machines without intent in a state that the Need may take; `unavailable` ones are not (RF-17), nor are
    /// those that leave (RF-21).
    fn free(&self, ledger: &Ledger<'w>, state: State) -> Vec<&'w Unit<'w>> {
        let free = |unit: &&Unit<'_>| {
            unit.state() == state
                && unit.without_intent()
                && !unit.fleet.is_out_of_reach()
                && ledger.is_free(unit)
                && self.is_of_use(unit)
        };
        self.world.units.iter().filter(free).collect()
    }

    pub(crate) fn is_of_use(&self, unit: &Unit<'_>) -> bool {
        can_use(self.need(), unit) && lies_in(self.need(), unit, &self.domain)
    }
}

/// RF-20: offered to the Needs of its own cluster that can use it.
pub(crate) fn may_take_back(need: &Need, unit: &Unit<'_>) -> bool {
    unit.can_be_restored() && unit.machine().cluster() == Some(&need.cluster) && can_use(need, unit)
}
