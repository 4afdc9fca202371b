//! Pass B: Needs still short take what is left, one after another in the total order (RF-5).
//!
//! ```text
//! B0 own not yet claimed   B1 loose machines of the cluster          nothing to do
//! B1a machines of the cluster whose drain can be taken back          Restore
//! B2 Idle                  B3 Creating          B4 Speculative       Bootstrap · intent · Provision
//! B5 claims of strictly lower priority in the cluster                the claim moves
//! ```
//!
//! Then what leaves soon is replaced (`replace.rs`), in the same turn.
//!
//! Free machines are taken along the order of their shapes, which is fixed per use; only shapes of
//! equal key are compared by id. A Need costs what it takes, plus the shapes it can use.

use crate::{
    Mistake,
    domain::{DomainCase, Domains},
    fleet_tables::FleetTables,
    index::{DomainIndex, MachineIndex, NeedIndex, ShapeIndex},
    pool::PoolKind,
    serving_lines::LineKind,
    spread::{Balance, Place},
};
use bigfleet_model::{Cost, State};

/// Needs waiting to be served, in the total order. A Need that loses a claim joins the queue.
#[derive(Default)]
pub(crate) struct TurnQueue {
    needs: Vec<NeedIndex>,
    next: usize,
}

impl TurnQueue {
    pub(crate) fn new(tables: &FleetTables, mut needs: Vec<NeedIndex>) -> Self {
        needs.sort_by(|one, other| tables.need_order(*one, *other));
        Self { needs, next: 0 }
    }

    fn next(&mut self) -> Option<NeedIndex> {
        let need = self.needs.get(self.next).copied();
        self.next += 1;
        need
    }

    fn join(&mut self, tables: &FleetTables, need: NeedIndex) {
        let waiting = &self.needs[self.next..];
        let before = |held: &NeedIndex| tables.need_order(*held, need).is_lt();
        let place = waiting.partition_point(before);
        if waiting.get(place) != Some(&need) {
            self.needs.insert(self.next + place, need);
        }
    }

    /// Every Need that was served.
    pub(crate) fn into_needs(self) -> Vec<NeedIndex> {
        self.needs
    }
}

/// Where a Need may take machines from.
#[derive(Clone, Copy)]
pub(crate) enum SearchScope<'p> {
    Anywhere,
    Domain(DomainIndex),
    /// Anywhere, but what lies here may always be taken (RF-21).
    InPlace(&'p Place),
}

impl<'p> SearchScope<'p> {
    pub(crate) fn place(self) -> Option<&'p Place> {
        match self {
            Self::InPlace(place) => Some(place),
            Self::Anywhere | Self::Domain(_) => None,
        }
    }
}

impl FleetTables {
    /// Serves the Needs that are short, and those that are to replace machines; returns every Need that had a
    /// turn, in order.
    pub(crate) fn serve_short(
        &mut self,
        short: Vec<NeedIndex>,
        mut weighed: impl FnMut(&Self, NeedIndex, &Domains),
    ) -> Vec<NeedIndex> {
        self.keep_lines(true);
        let mut turns = TurnQueue::new(self, short);
        while let Some(need) = turns.next() {
            if !self.holding(need).is_covered() {
                if self.is_gang(need) {
                    self.serve_gang(need, &mut turns, &mut weighed);
                } else {
                    let anywhere = SearchScope::Anywhere;
                    self.serve(need, anywhere, DomainCase::Complete, &mut turns);
                }
            }
            if 0 < self.holding(need).leaving && self.mistake != Some(Mistake::ReplacedAfterAll) {
                self.replace_leaving(need, &mut weighed);
            }
        }
        let needs = turns.into_needs();
        if self.mistake == Some(Mistake::ReplacedAfterAll) {
            for need in &needs {
                if 0 < self.holding(*need).leaving {
                    self.replace_leaving(*need, &mut weighed);
                }
            }
        }
        self.keep_lines(false);
        needs
    }

    fn serve_gang(
        &mut self,
        need: NeedIndex,
        turns: &mut TurnQueue,
        weighed: &mut impl FnMut(&Self, NeedIndex, &Domains),
    ) {
        let domains = self.weigh(need);
        weighed(self, need, &domains);
        let (domain, case) = self.choose(need, &domains);
        self.trace_choice(need, &domains, case);
        let holding = self.holding_mut(need);
        (holding.domain, holding.satisfiable) = (domain, case != DomainCase::Partial);
        holding.by_victims = case == DomainCase::WithVictims;
        // Without a domain there is nothing anywhere, so it has no claims either: those would be in one.
        if let Some(domain) = domain {
            self.leave_other_domains(need, domain);
            self.serve(need, SearchScope::Domain(domain), case, turns);
        }
    }

    /// Gives back the claims of a gang outside a domain.
    pub(crate) fn leave_other_domains(&mut self, need: NeedIndex, domain: DomainIndex) {
        for machine in self.claims(need).to_vec() {
            if self.domain_of(need, self.record(machine).shape) != Some(domain) {
                self.unclaim(need, machine);
            }
        }
    }

    fn serve(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        case: DomainCase,
        turns: &mut TurnQueue,
    ) {
        if self.mistake != Some(Mistake::OwnNotFirst) {
            let own = self.own(need);
            self.take_own(need, scope, &own);
        }
        if self.mistake == Some(Mistake::RestoredFirst) {
            self.take_in_cluster(need, scope, LineKind::Reversible);
        }
        self.take_in_cluster(need, scope, LineKind::Loose);
        self.take_in_cluster(need, scope, LineKind::LooseForNow);
        if self.mistake != Some(Mistake::RestoredLast) {
            self.take_in_cluster(need, scope, LineKind::Reversible);
        }
        if self.is_parked(need) {
            return;
        }
        let before = self.claims(need).len();
        self.take_free(need, scope, PoolKind::Idle);
        self.holding_mut(need).bootstraps = (self.claims(need).len() - before) as u32;
        if self.mistake == Some(Mistake::RestoredLast) {
            self.take_in_cluster(need, scope, LineKind::Reversible);
        }
        self.take_free(need, scope, PoolKind::Creating);
        if case != DomainCase::Partial {
            let before = self.claims(need).len();
            self.take_free(need, scope, PoolKind::Speculative);
            self.holding_mut(need).provisions = (self.claims(need).len() - before) as u32;
        }
        if self.holding(need).is_covered() {
            let taken = self.claims(need)[before..].to_vec();
            self.prune(need, taken);
        } else if case != DomainCase::Partial {
            self.outrank(need, scope, case, turns);
        }
    }

    /// Takes own machines in keep order (B0), first all it can from those that stay.
    pub(crate) fn take_own(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        machines: &[MachineIndex],
    ) {
        if machines.is_empty() || self.holding(need).is_covered() {
            return;
        }
        let spread = self.is_spread(need);
        let (staying, leaving) = self.staying_first(machines);
        for round in [staying, leaving] {
            if self.holding(need).is_covered() || round.is_empty() {
                continue;
            }
            match scope {
                SearchScope::Domain(domain) => self.take_in_domain(need, round, domain),
                _ => {
                    if spread {
                        // Own machines are never refused: first evenly, then whatever is still wanted (RF-9).
                        self.take_spread(need, round, scope.place());
                    }
                    self.take(need, round);
                }
            }
        }
    }

    /// Takes loose machines of the Need's cluster, or takes drains back (B1, B1a).
    pub(crate) fn take_in_cluster(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        kind: LineKind,
    ) {
        for machine in self.pick_in_cluster(need, scope, kind, false) {
            self.claim(need, machine);
        }
    }

    pub(crate) fn is_spread(&self, need: NeedIndex) -> bool {
        !self.catalog.profiles[self.need(need).profile]
            .spreads
            .is_empty()
    }

    /// Takes from the pools of one kind, in the order of the step (B2, B3, B4).
    pub(crate) fn take_free(&mut self, need: NeedIndex, scope: SearchScope<'_>, kind: PoolKind) {
        if self.holding(need).is_covered() {
            return;
        }
        let groups = self.shape_groups(need, scope, kind);
        if self.is_spread(need) && !matches!(scope, SearchScope::Domain(_)) {
            self.take_groups_spread(need, kind, &groups, scope.place());
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
    fn shape_groups(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        kind: PoolKind,
    ) -> Vec<Vec<ShapeIndex>> {
        let mut groups: Vec<Vec<ShapeIndex>> = Vec::new();
        let mut last = None;
        for (cost, shape) in self.free_shapes(need, scope, kind) {
            let Self {
                stocks,
                ids,
                records,
                ..
            } = self;
            let pool = stocks[shape].pool_mut(kind);
            pool.sort(ids);
            pool.next = pool.free_from(pool.next, records);
            let key = (cost, self.catalog.shapes[shape].price);
            match groups.last_mut() {
                Some(group) if last == Some(key) => group.push(shape),
                _ => groups.push(vec![shape]),
            }
            last = Some(key);
        }
        groups
    }

    /// Usable shapes with free machines in the order of the step, each with the cost that puts it there.
    fn free_shapes(
        &self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        kind: PoolKind,
    ) -> Vec<(Cost, ShapeIndex)> {
        let usage = self.need(need).usage;
        let is_free = |shape: ShapeIndex| {
            0 < self.stocks[shape].pool(kind).free() && self.is_in(need, scope, shape)
        };
        match kind {
            PoolKind::Speculative => {
                let penalty = self.profile(need).profile.interruption();
                self.catalog.by_cost(usage, penalty, is_free)
            }
            PoolKind::Idle | PoolKind::Creating | PoolKind::Draining => {
                let shapes = self.catalog.by_price(usage);
                let free = shapes.filter(|shape| is_free(*shape));
                free.map(|shape| (Cost::default(), shape)).collect()
            }
        }
    }

    pub(crate) fn is_in(&self, need: NeedIndex, scope: SearchScope<'_>, shape: ShapeIndex) -> bool {
        match scope {
            SearchScope::Anywhere | SearchScope::InPlace(_) => self.lies_somewhere(need, shape),
            SearchScope::Domain(domain) => self.domain_of(need, shape) == Some(domain),
        }
    }

    /// The free machine with the lowest id among shapes that contribute.
    fn lowest_free(
        &mut self,
        need: NeedIndex,
        kind: PoolKind,
        group: &[ShapeIndex],
    ) -> Option<MachineIndex> {
        let mut lowest: Option<MachineIndex> = None;
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
            let pool = stocks[*shape].pool_mut(kind);
            pool.next = pool.free_from(pool.next, records);
            if let Some(head) = pool.machines.get(pool.next)
                && lowest.is_none_or(|lowest| ids.compare(*head, lowest).is_lt())
            {
                lowest = Some(*head);
            }
        }
        lowest
    }

    fn take_groups_spread(
        &mut self,
        need: NeedIndex,
        kind: PoolKind,
        groups: &[Vec<ShapeIndex>],
        place: Option<&Place>,
    ) {
        let useful = |shape: &ShapeIndex| self.contributes(need, *shape);
        let candidates: Vec<ShapeIndex> = groups.iter().flatten().copied().filter(useful).collect();
        let mut balance = Balance::in_place(self, need, candidates, place);
        let mut sorted: Vec<Vec<Vec<ShapeIndex>>> = Vec::new();
        for group in groups {
            let mut group = group.clone();
            group.sort_by(|one, other| self.by_values(need, *one, *other));
            let same =
                |one: &ShapeIndex, other: &ShapeIndex| self.by_values(need, *one, *other).is_eq();
            sorted.push(group.chunk_by(same).map(<[ShapeIndex]>::to_vec).collect());
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

    /// Gives back each newly taken machine that the Need is covered without (RF-8).
    pub(crate) fn prune(&mut self, need: NeedIndex, taken: Vec<MachineIndex>) {
        if self.is_spread(need) {
            return;
        }
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
    pub(crate) fn is_redundant(&self, need: NeedIndex, machine: MachineIndex) -> bool {
        let credit = self.credit(need, self.record(machine).shape);
        let wanted = self.need(need).wanted.iter();
        let mut left = wanted.zip(&*self.holding(need).left);
        left.all(|((dimension, _), left)| left + i128::from(credit.amount(dimension)) <= 0)
    }

    /// B5: claims of Needs of strictly lower priority move over.
    fn outrank(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        case: DomainCase,
        turns: &mut TurnQueue,
    ) {
        let all_or_nothing = case == DomainCase::WithVictims;
        for machine in self.pick_in_cluster(need, scope, LineKind::Outrankable, all_or_nothing) {
            self.move_claim(machine, need, turns);
        }
    }

    /// Moves a machine from the Need that claims it to another; the loser gets a turn.
    fn move_claim(&mut self, machine: MachineIndex, to: NeedIndex, turns: &mut TurnQueue) {
        let from = self.claimant(machine);
        if let Some(from) = from {
            self.unclaim(from, machine);
        }
        self.claim(to, machine);
        if let Some(from) = from {
            turns.join(self, from);
        }
    }
}
