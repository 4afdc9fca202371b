//! Pass B: Needs still short take what is left, one after another in the total order (RF-5).
//!
//! ```text
//! B0 own not yet claimed   B1 loose machines of the cluster          nothing to do
//! B2 Idle                  B3 Creating          B4 Speculative       Bootstrap · intent · Provision
//! B5 claims of strictly lower priority in the cluster                the claim moves
//! ```
//!
//! Free machines are taken along the order of their shapes, which is fixed per use; only shapes of
//! equal key are compared by id. A Need costs what it takes, plus the shapes it can use.

use crate::{
    Mistake, NONE,
    book::{Book, MachineIx, NeedIx},
    domain::{Case, Domains},
    pool::PoolKind,
    spread::Balance,
    tables::{DomainIx, ShapeIx},
};
use bigfleet_model::State;
use std::cmp::Ordering;

/// Needs waiting for their turn, in the total order. One that loses a claim joins.
#[derive(Default)]
pub(crate) struct Turns {
    needs: Vec<NeedIx>,
    next: usize,
}

impl Turns {
    pub(crate) fn new(book: &Book, mut needs: Vec<NeedIx>) -> Self {
        needs.sort_by(|one, other| book.need_order(*one, *other));
        Self { needs, next: 0 }
    }

    fn next(&mut self) -> Option<NeedIx> {
        let need = self.needs.get(self.next).copied();
        self.next += 1;
        need
    }

    fn join(&mut self, book: &Book, need: NeedIx) {
        let waiting = &self.needs[self.next..];
        let before = |held: &NeedIx| book.need_order(*held, need).is_lt();
        let place = waiting.partition_point(before);
        if waiting.get(place) != Some(&need) {
            self.needs.insert(self.next + place, need);
        }
    }

    /// Everyone who had a turn.
    pub(crate) fn into_needs(self) -> Vec<NeedIx> {
        self.needs
    }
}

/// Where a Need may take machines from.
#[derive(Clone, Copy)]
enum Where {
    Anywhere,
    Domain(DomainIx),
}

impl Book {
    /// Serves the Needs that are short; returns everyone who had a turn, in order.
    pub(crate) fn serve_short(
        &mut self,
        short: Vec<NeedIx>,
        mut weighed: impl FnMut(&Self, NeedIx, &Domains),
    ) -> Vec<NeedIx> {
        let mut turns = Turns::new(self, short);
        while let Some(need) = turns.next() {
            if self.holding(need).is_covered() {
                continue;
            }
            let profile = &self.tables.profiles[self.need(need).profile as usize];
            if profile.same_key == NONE {
                self.serve(need, Where::Anywhere, Case::Complete, &mut turns);
                continue;
            }
            let domains = self.weigh(need);
            weighed(self, need, &domains);
            let (domain, case) = self.choose(need, &domains);
            self.trace_choice(need, &domains, case);
            let holding = self.holding_mut(need);
            (holding.domain, holding.satisfiable) = (domain, case != Case::Partial);
            if domain == NONE {
                // Nothing anywhere: what it holds of its own would be a domain.
                continue;
            }
            self.leave_other_domains(need, domain);
            self.serve(need, Where::Domain(domain), case, &mut turns);
        }
        turns.into_needs()
    }

    fn leave_other_domains(&mut self, need: NeedIx, domain: DomainIx) {
        for machine in self.claims(need).to_vec() {
            if self.domain_of(need, self.record(machine).shape) != domain {
                self.unclaim(need, machine);
            }
        }
    }

    fn serve(&mut self, need: NeedIx, place: Where, case: Case, turns: &mut Turns) {
        if self.mistake != Some(Mistake::OwnNotFirst) {
            let own = self.own(need);
            self.step(need, place, &own, Self::by_keep_key, true);
        }
        let leftovers = self.leftovers(need);
        self.step(need, place, &leftovers, Self::by_keep_key, false);
        if self.is_parked(need) {
            return;
        }
        let before = self.claims(need).len();
        self.take_free(need, place, PoolKind::Idle);
        self.holding_mut(need).bootstraps = (self.claims(need).len() - before) as u32;
        self.take_free(need, place, PoolKind::Creating);
        if case != Case::Partial {
            let before = self.claims(need).len();
            self.take_free(need, place, PoolKind::Speculative);
            self.holding_mut(need).provisions = (self.claims(need).len() - before) as u32;
        }
        if self.holding(need).is_covered() {
            self.prune(need, before);
        } else if case != Case::Partial {
            self.outrank(need, place, case, turns);
        }
    }

    /// One step over a list of machines in keep order.
    fn step(
        &mut self,
        need: NeedIx,
        place: Where,
        machines: &[MachineIx],
        order: impl Fn(&Self, MachineIx, MachineIx) -> Ordering,
        is_own: bool,
    ) {
        if self.holding(need).is_covered() || machines.is_empty() {
            return;
        }
        let spread = self.is_spread(need);
        match place {
            Where::Domain(domain) => self.take_in_domain(need, machines, domain),
            Where::Anywhere if spread && is_own => {
                // Own is never refused: first evenly, then whatever is still wanted (RF-9).
                self.take_spread(need, machines, order);
                self.take(need, machines);
            }
            Where::Anywhere if spread => self.take_spread(need, machines, order),
            Where::Anywhere => self.take(need, machines),
        }
    }

    pub(crate) fn is_spread(&self, need: NeedIx) -> bool {
        !self.tables.profiles[self.need(need).profile as usize]
            .spreads
            .is_empty()
    }

    /// Bound machines of the Need's cluster that it can use and nobody claims, in keep order.
    pub(crate) fn leftovers(&mut self, need: NeedIx) -> Vec<MachineIx> {
        let is_leftover = |machine: &MachineIx| {
            let record = self.record(*machine);
            !record.is_unfit() && self.serves(need, record.shape)
        };
        let cluster = self.need(need).cluster;
        let unclaimed = self.unclaimed(cluster).filter(is_leftover);
        let mut machines: Vec<MachineIx> = unclaimed.collect();
        if 0 < self.clusters[cluster as usize].loose {
            self.work.machines += self.clusters[cluster as usize].bound.len() as u64;
        }
        machines.sort_by(|one, other| self.keep_order(*one, *other));
        machines
    }

    /// Takes from the pools of one kind, in the order of the step (B2, B3, B4).
    fn take_free(&mut self, need: NeedIx, place: Where, kind: PoolKind) {
        if self.holding(need).is_covered() {
            return;
        }
        let groups = self.shape_groups(need, place, kind);
        if self.is_spread(need) && matches!(place, Where::Anywhere) {
            self.take_groups_spread(need, kind, &groups);
            return;
        }
        for group in groups {
            while !self.holding(need).is_covered() {
                let Some(machine) = self.lowest_free(need, kind, &group) else {
                    break;
                };
                self.claim(need, machine);
            }
        }
    }

    /// Usable shapes with free machines, those of equal order key together.
    fn shape_groups(&mut self, need: NeedIx, place: Where, kind: PoolKind) -> Vec<Vec<ShapeIx>> {
        let usage = self.need(need).usage as usize;
        let count = self.tables.uses[usage].by_price.len();
        let mut groups: Vec<Vec<ShapeIx>> = Vec::new();
        let mut last = None;
        for at in 0..count {
            let entry = &self.tables.uses[usage];
            let (cost, shape) = match kind {
                PoolKind::Speculative => entry.by_cost[at],
                _ => (Default::default(), entry.by_price[at]),
            };
            if self.stocks[shape as usize].pool(kind).free() == 0 || !self.is_in(need, place, shape)
            {
                continue;
            }
            let Self {
                stocks,
                ids,
                records,
                ..
            } = self;
            let pool = stocks[shape as usize].pool_mut(kind);
            pool.sort(ids);
            pool.next = pool.free_from(pool.next, records);
            let key = (cost, self.tables.shapes[shape as usize].price);
            match groups.last_mut() {
                Some(group) if last == Some(key) => group.push(shape),
                _ => groups.push(vec![shape]),
            }
            last = Some(key);
        }
        groups
    }

    fn is_in(&self, need: NeedIx, place: Where, shape: ShapeIx) -> bool {
        match place {
            Where::Anywhere => self.lies_somewhere(need, shape),
            Where::Domain(domain) => self.domain_of(need, shape) == domain,
        }
    }

    /// The free machine with the lowest id among shapes that contribute.
    fn lowest_free(
        &mut self,
        need: NeedIx,
        kind: PoolKind,
        group: &[ShapeIx],
    ) -> Option<MachineIx> {
        let mut lowest: Option<MachineIx> = None;
        for shape in group {
            self.work.machines += 1;
            if !self.contributes(need, *shape) {
                continue;
            }
            let Self {
                stocks,
                ids,
                records,
                ..
            } = self;
            let pool = stocks[*shape as usize].pool_mut(kind);
            pool.next = pool.free_from(pool.next, records);
            if let Some(head) = pool.machines.get(pool.next)
                && lowest.is_none_or(|lowest| ids.compare(*head, lowest).is_lt())
            {
                lowest = Some(*head);
            }
        }
        lowest
    }

    fn take_groups_spread(&mut self, need: NeedIx, kind: PoolKind, groups: &[Vec<ShapeIx>]) {
        let useful = |shape: &ShapeIx| self.contributes(need, *shape);
        let candidates: Vec<ShapeIx> = groups.iter().flatten().copied().filter(useful).collect();
        let mut balance = Balance::new(self, need, candidates);
        let mut sorted: Vec<Vec<Vec<ShapeIx>>> = Vec::new();
        for group in groups {
            let mut group = group.clone();
            group.sort_by(|one, other| self.by_values(need, *one, *other));
            let same = |one: &ShapeIx, other: &ShapeIx| self.by_values(need, *one, *other).is_eq();
            sorted.push(group.chunk_by(same).map(<[ShapeIx]>::to_vec).collect());
        }
        while !self.holding(need).is_covered() {
            let mut taken = None;
            for shapes in sorted.iter().flatten() {
                if balance.admits(self, shapes[0]) {
                    taken = self.lowest_free(need, kind, shapes);
                }
                if taken.is_some() {
                    break;
                }
            }
            let Some(machine) = taken else { return };
            self.claim(need, machine);
            balance.count(self, self.record(machine).shape);
        }
    }

    /// Gives back each machine newly taken without which the Need is still covered (RF-8).
    fn prune(&mut self, need: NeedIx, from: usize) {
        if self.is_spread(need) {
            return;
        }
        let taken: Vec<MachineIx> = self.claims(need)[from..].to_vec();
        for machine in taken {
            if !self.is_redundant(need, machine) {
                continue;
            }
            self.trace_pruned(need, machine);
            self.unclaim(need, machine);
            let state = self.record(machine).state;
            let holding = self.holding_mut(need);
            match state {
                Some(State::Idle) => holding.bootstraps -= 1,
                Some(State::Speculative) => holding.provisions -= 1,
                _ => {}
            }
        }
    }

    /// Whether the Need is covered without this machine.
    pub(crate) fn is_redundant(&self, need: NeedIx, machine: MachineIx) -> bool {
        let shape = &self.tables.shapes[self.record(machine).shape as usize];
        let wanted = self.need(need).wanted.iter();
        let mut left = wanted.zip(&*self.holding(need).left);
        left.all(|((dimension, _), left)| left + i128::from(shape.amount(*dimension)) <= 0)
    }

    /// B5: claims of Needs of strictly lower priority move over.
    fn outrank(&mut self, need: NeedIx, place: Where, case: Case, turns: &mut Turns) {
        let mut machines = self.outranked(need);
        machines.retain(|machine| self.is_in(need, place, self.record(*machine).shape));
        if case == Case::WithVictims && !self.would_cover(need, &machines) {
            return;
        }
        // Owners lose a claim only when it is taken, so each is offered free and then put back.
        let owners: Vec<NeedIx> = machines.iter().map(|at| self.claimant(*at)).collect();
        if self.is_spread(need) {
            self.outrank_spread(need, machines, turns);
            return;
        }
        for (machine, owner) in machines.into_iter().zip(owners) {
            if self.holding(need).is_covered() {
                return;
            }
            if self.contributes(need, self.record(machine).shape) {
                self.move_claim(machine, owner, need, turns);
            }
        }
    }

    fn move_claim(&mut self, machine: MachineIx, from: NeedIx, to: NeedIx, turns: &mut Turns) {
        self.unclaim(from, machine);
        self.claim(to, machine);
        turns.join(self, from);
    }

    /// Bound machines claimed as own by Needs of the cluster of lower priority, those first that
    /// are easiest to outrank.
    fn outranked(&mut self, need: NeedIx) -> Vec<MachineIx> {
        let priority = self.priority(need);
        let cluster = &self.clusters[self.need(need).cluster as usize];
        self.work.machines += cluster.bound.len() as u64;
        let is_outranked = |machine: &&MachineIx| {
            let record = self.record(**machine);
            let claimant = self.claimant(**machine);
            claimant != NONE
                && self.priority(claimant) < priority
                && self.serves(need, record.shape)
                && self.is_own(claimant, **machine)
        };
        let mut machines: Vec<MachineIx> =
            cluster.bound.iter().filter(is_outranked).copied().collect();
        machines.sort_by(|one, other| {
            self.by_owner(*one, *other)
                .then_with(|| self.keep_order(*one, *other))
        });
        machines
    }

    fn by_owner(&self, one: MachineIx, other: MachineIx) -> Ordering {
        let owner = |machine: MachineIx| self.priority(self.claimant(machine));
        owner(one).cmp(&owner(other))
    }

    fn outrank_spread(&mut self, need: NeedIx, mut machines: Vec<MachineIx>, turns: &mut Turns) {
        machines.retain(|machine| self.contributes(need, self.record(*machine).shape));
        machines.sort_by(|one, other| {
            let shapes = (self.record(*one).shape, self.record(*other).shape);
            self.by_owner(*one, *other)
                .then_with(|| self.by_keep_key(*one, *other))
                .then_with(|| self.by_values(need, shapes.0, shapes.1))
                .then_with(|| self.ids.compare(*one, *other))
        });
        let shapes = machines.iter().map(|machine| self.record(*machine).shape);
        let mut balance = Balance::new(self, need, shapes);
        while !self.holding(need).is_covered() {
            let eligible = |machine: &MachineIx| {
                let shape = self.record(*machine).shape;
                self.contributes(need, shape) && balance.admits(self, shape)
            };
            let Some(place) = machines.iter().position(eligible) else {
                return;
            };
            let machine = machines.remove(place);
            let owner = self.claimant(machine);
            self.move_claim(machine, owner, need, turns);
            balance.count(self, self.record(machine).shape);
        }
    }

    /// Whether what is left would be covered by all of these together.
    fn would_cover(&self, need: NeedIx, machines: &[MachineIx]) -> bool {
        let entry = self.need(need);
        entry
            .wanted
            .iter()
            .zip(&*self.holding(need).left)
            .all(|((dimension, _), left)| {
                let amount = |machine: &MachineIx| {
                    let shape = self.record(*machine).shape;
                    i128::from(self.tables.shapes[shape as usize].amount(*dimension))
                };
                *left <= machines.iter().map(amount).sum()
            })
    }
}
