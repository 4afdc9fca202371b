//! Domains: where a gang goes (RF-6).
//!
//! ```text
//! per value of the Same key:   own ⊆ credited    idle         speculative  victims
//!                              its and loose     free hosts   quota        of lower priority
//! ```
//!
//! Sums are exact; ratios are `f64`, added in ascending dimension name, so that equal fleets compare
//! equal everywhere.

use crate::{
    Mistake,
    catalog::victim_score,
    fleet_tables::FleetTables,
    index::{DimensionIndex, DomainIndex, MachineIndex, NeedIndex, ShapeIndex},
    pool::PoolKind,
    requested_amounts::RequestedAmounts,
    table::Table,
};
use bigfleet_model::{DomainCoverage, State};
use std::cmp::{Ordering, Reverse};

/// Which case of RF-6 chose the domain, and so what the gang may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DomainCase {
    /// The domain's free machines complete the gang.
    Complete,
    /// Its free machines and victims complete the gang.
    WithVictims,
    /// Nothing completes the gang, so it buys nothing.
    Partial,
}

/// What a gang finds in each domain.
pub(crate) struct Domains {
    need: NeedIndex,
    wanted: RequestedAmounts,
    sums: Table<DomainIndex, DomainSums>,
}

/// What RF-6 compares of a domain: machines, and how much of the gang they cover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights {
    pub(crate) own: u64,
    pub(crate) credited: u64,
    pub(crate) idle: u64,
    pub(crate) speculative: u64,
    pub(crate) own_coverage: f64,
    pub(crate) credit_coverage: f64,
    pub(crate) coverage_at_hand: f64,
    pub(crate) fill: f64,
    /// Free machines complete the gang.
    pub(crate) is_enough: bool,
}

impl Weights {
    pub(crate) fn is_nothing(&self) -> bool {
        self.credited + self.idle + self.speculative == 0
    }
}

/// What there is in one domain, by how the gang would come by it.
#[derive(Clone, Default)]
struct DomainSums {
    own: MachineSum,
    /// The gang's own, loose ones of its cluster, and drains there that can be taken back.
    credited: MachineSum,
    idle: MachineSum,
    speculative: MachineSum,
}

/// Machines and their amounts, in the dimensions of the gang.
#[derive(Clone, Default)]
struct MachineSum {
    count: u64,
    milli: Vec<i128>,
}

impl MachineSum {
    fn add(&mut self, other: &[i128], count: u64) {
        self.milli.resize(other.len(), 0);
        for (sum, milli) in self.milli.iter_mut().zip(other) {
            *sum += milli * i128::from(count);
        }
        self.count += count;
    }

    fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        if !other.milli.is_empty() {
            sum.add(&other.milli, 1);
            sum.count = self.count + other.count;
        }
        sum
    }

    fn get(&self, at: usize) -> i128 {
        self.milli.get(at).copied().unwrap_or(0)
    }
}

impl DomainSums {
    fn total(&self) -> MachineSum {
        self.credited.plus(&self.idle).plus(&self.speculative)
    }
}

impl Domains {
    pub(crate) fn new(tables: &FleetTables, need: NeedIndex) -> Self {
        let mut sums = Table::default();
        if let Some(key) = tables.profile(need).same_key {
            sums.grow_to(tables.catalog.keys[key].count());
        }
        let wanted = tables.need(need).wanted.clone();
        Self { need, wanted, sums }
    }

    fn at(
        &mut self,
        tables: &FleetTables,
        shape: ShapeIndex,
    ) -> Option<(&mut DomainSums, Vec<i128>)> {
        let domain = tables.domain_of(self.need, shape)?;
        if !tables.is_of_use(self.need, shape) {
            return None;
        }
        let milli = self.amounts_of(tables, shape);
        Some((&mut self.sums[domain], milli))
    }

    /// What a machine of this shape has, in the dimensions of the gang.
    fn amounts_of(&self, tables: &FleetTables, shape: ShapeIndex) -> Vec<i128> {
        let credit = tables.credit(self.need, shape);
        let milli = |(dimension, _): (DimensionIndex, i128)| i128::from(credit.amount(dimension));
        self.wanted.iter().map(milli).collect()
    }

    pub(crate) fn add_own(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        if let Some((sums, milli)) = self.at(tables, shape) {
            sums.own.add(&milli, 1);
            sums.credited.add(&milli, 1);
        }
    }

    fn add_loose(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        if let Some((sums, milli)) = self.at(tables, shape) {
            sums.credited.add(&milli, 1);
        }
    }

    fn add_free(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        let stock = &tables.stocks[shape];
        let idle = stock.pool(PoolKind::Idle).free() + stock.pool(PoolKind::Creating).free();
        let spec = stock.pool(PoolKind::Speculative).free();
        if idle + spec == 0 {
            return;
        }
        if let Some((sums, milli)) = self.at(tables, shape) {
            sums.idle.add(&milli, idle.into());
            sums.speculative.add(&milli, spec.into());
        }
    }

    /// Adds a machine that is on hand, unbound.
    fn add_idle(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        if let Some((sums, milli)) = self.at(tables, shape) {
            sums.idle.add(&milli, 1);
        }
    }

    /// Adds a machine that is bought.
    fn add_speculative(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        if let Some((sums, milli)) = self.at(tables, shape) {
            sums.speculative.add(&milli, 1);
        }
    }

    /// `cov` of S-5.
    fn coverage(&self, amount: &MachineSum) -> f64 {
        self.ratios(amount)
            .fold(0.0, |sum, ratio| sum + ratio.min(1.0))
    }

    /// As [`Self::coverage`], of what a gang has, if it is known that it has it.
    fn credit(&self, amount: &MachineSum, is_known: bool) -> f64 {
        if is_known { self.coverage(amount) } else { 0.0 }
    }

    /// `over` of S-5.
    fn excess(&self, amount: &MachineSum) -> f64 {
        self.ratios(amount).fold(0.0, |sum, ratio| sum + ratio)
    }

    fn ratios(&self, amount: &MachineSum) -> impl Iterator<Item = f64> {
        let ratio = |(at, (_, wanted)): (usize, (DimensionIndex, i128))| {
            amount.get(at) as f64 / wanted as f64
        };
        self.wanted.iter().enumerate().map(ratio)
    }

    fn covers(&self, amount: &MachineSum) -> bool {
        let enough = |(at, (_, wanted)): (usize, (DimensionIndex, i128))| wanted <= amount.get(at);
        self.wanted.iter().enumerate().all(enough)
    }

    /// The domain whose own machines cover most of the gang (RF-4).
    pub(crate) fn home(&self, tables: &FleetTables) -> Option<DomainIndex> {
        let with_own = |domain: &DomainIndex| 0 < self.sums[*domain].own.count;
        let own = |domain: DomainIndex| self.coverage(&self.sums[domain].own);
        self.best(tables, with_own, |a, b| own(b).total_cmp(&own(a)))
    }

    /// The first of the domains that qualify, in this order and then by value.
    fn best(
        &self,
        tables: &FleetTables,
        qualifies: impl Fn(&DomainIndex) -> bool,
        order: impl Fn(DomainIndex, DomainIndex) -> Ordering,
    ) -> Option<DomainIndex> {
        let domains = self.sums.indexes().filter(qualifies);
        domains.min_by(|a, b| order(*a, *b).then_with(|| tables.domain_order(self.need, *a, *b)))
    }

    /// What the rules compare, domain by domain, for an explanation.
    pub(crate) fn weights(&self) -> impl Iterator<Item = (DomainIndex, Weights)> {
        let weigh = |(domain, sums): (DomainIndex, &DomainSums)| {
            let total = sums.total();
            let weights = Weights {
                own: sums.own.count,
                credited: sums.credited.count,
                idle: sums.idle.count,
                speculative: sums.speculative.count,
                own_coverage: self.coverage(&sums.own),
                credit_coverage: self.coverage(&sums.credited),
                coverage_at_hand: self.coverage(&sums.credited.plus(&sums.idle)),
                fill: self.excess(&total),
                is_enough: 0 < total.count && self.covers(&total),
            };
            (domain, weights)
        };
        self.sums.entries().map(weigh)
    }

    /// The domains worth naming in a verdict: best covered first (VD-1).
    pub(crate) fn candidates(&self, tables: &FleetTables) -> Vec<DomainCoverage> {
        let mut weighed: Vec<(u32, DomainIndex, bool)> = Vec::new();
        for (domain, sums) in self.sums.entries() {
            let total = sums.total();
            let thousandths = |(at, (_, wanted)): (usize, (DimensionIndex, i128))| {
                let have = total.get(at).min(wanted);
                have.checked_mul(1000)
                    .map_or_else(|| have / (wanted / 1000), |have| have / wanted)
                    as u32
            };
            if 0 < total.count {
                let worst = self.wanted.iter().enumerate().map(thousandths).min();
                weighed.push((worst.unwrap_or(1000), domain, self.covers(&total)));
            }
        }
        weighed.sort_by(|a, b| {
            Reverse(a.0)
                .cmp(&Reverse(b.0))
                .then_with(|| tables.domain_order(self.need, a.1, b.1))
        });
        weighed.truncate(DomainCoverage::MOST);
        let named = |(coverage_per_mille, domain, satisfiable)| DomainCoverage {
            domain: tables.domain_name(self.need, domain).to_owned(),
            coverage_per_mille,
            satisfiable,
        };
        weighed.into_iter().map(named).collect()
    }
}

impl FleetTables {
    /// The domain of a shape under the key a gang must agree on.
    pub(crate) fn domain_of(&self, need: NeedIndex, shape: ShapeIndex) -> Option<DomainIndex> {
        let key = self.profile(need).same_key?;
        self.catalog.keys[key].domain(shape)
    }

    /// The value of the key a gang must agree on.
    pub(crate) fn domain_name(&self, need: NeedIndex, domain: DomainIndex) -> &str {
        let key = self.profile(need).same_key;
        key.map_or("", |key| self.catalog.keys[key].value(domain))
    }

    fn domain_order(&self, need: NeedIndex, one: DomainIndex, other: DomainIndex) -> Ordering {
        self.domain_name(need, one)
            .cmp(self.domain_name(need, other))
    }

    /// Whether a gang neither buys nor preempts this cycle.
    pub(crate) fn is_parked(&self, need: NeedIndex) -> bool {
        let entry = self.need(need);
        (entry.parked && self.is_gang(need)) || !self.clusters[entry.cluster].acquire
    }

    /// What a gang that its own machines do not cover finds in each domain.
    pub(crate) fn weigh(&mut self, need: NeedIndex) -> Domains {
        let mut domains = Domains::new(self, need);
        for machine in self.own(need) {
            domains.add_own(self, self.record(machine).shape);
        }
        for machine in self.leftovers(need) {
            if !self.is_own(need, machine) {
                domains.add_loose(self, self.record(machine).shape);
            }
        }
        self.weigh_free(need, &mut domains);
        domains
    }

    /// Adds the drains that can be taken back, and what is free.
    fn weigh_free(&mut self, need: NeedIndex, domains: &mut Domains) {
        for machine in self.restorable(need) {
            domains.add_loose(self, self.record(machine).shape);
        }
        if !self.is_parked(need) {
            let usage = self.need(need).usage;
            for shape in self.catalog.by_price(usage) {
                domains.add_free(self, shape);
            }
        }
    }

    /// What a gang finds in each domain that stays, with all it claims as if it did not yet (RF-21).
    pub(crate) fn weigh_staying(&mut self, need: NeedIndex) -> Domains {
        let mut domains = Domains::new(self, need);
        let (own, leftovers) = (self.own(need), self.leftovers(need));
        let (own, leftovers) = (self.staying_first(&own).0, self.staying_first(&leftovers).0);
        for machine in own {
            domains.add_own(self, self.record(*machine).shape);
        }
        let claims = self.claims(need).iter();
        let claims = claims.filter(|machine| !self.record(**machine).leaves_soon());
        for machine in leftovers.iter().chain(claims) {
            let record = self.record(*machine);
            match record.state {
                _ if self.is_own(need, *machine) => {}
                Some(State::Idle | State::Creating) => domains.add_idle(self, record.shape),
                Some(State::Speculative) => domains.add_speculative(self, record.shape),
                _ => domains.add_loose(self, record.shape),
            }
        }
        self.weigh_free(need, &mut domains);
        domains
    }

    /// Chooses the domain, and by which case (RF-6).
    pub(crate) fn choose(
        &mut self,
        need: NeedIndex,
        domains: &Domains,
    ) -> (Option<DomainIndex>, DomainCase) {
        let parked = self.is_parked(need);
        let sums = |domain: DomainIndex| &domains.sums[domain];
        let is_known = self.knows_incumbents();
        let own = |domain: DomainIndex| domains.credit(&sums(domain).own, is_known);
        let cred = |domain: DomainIndex| domains.credit(&sums(domain).credited, is_known);
        let complete = self.complete(domains);
        if complete.is_some() {
            return (complete, DomainCase::Complete);
        }
        if !parked {
            let needed = self.victims_needed(need, domains);
            let with_victims = domains.best(
                self,
                |domain| needed[*domain].is_some(),
                |a, b| {
                    let fewest = needed[a].cmp(&needed[b]);
                    own(b).total_cmp(&own(a)).then(fewest)
                },
            );
            if with_victims.is_some() {
                return (with_victims, DomainCase::WithVictims);
            }
        }
        let at_hand = |domain: DomainIndex| sums(domain).credited.plus(&sums(domain).idle);
        let near = |domain: DomainIndex| domains.coverage(&at_hand(domain));
        let partial = domains.best(
            self,
            |domain| 0 < at_hand(*domain).count,
            |a, b| {
                near(b)
                    .total_cmp(&near(a))
                    .then_with(|| own(b).total_cmp(&own(a)))
                    .then_with(|| cred(b).total_cmp(&cred(a)))
                    .then_with(|| at_hand(b).count.cmp(&at_hand(a).count))
            },
        );
        (partial, DomainCase::Partial)
    }

    /// The domain whose free machines complete the gang (RF-6, case 1).
    pub(crate) fn complete(&self, domains: &Domains) -> Option<DomainIndex> {
        let sums = |domain: DomainIndex| &domains.sums[domain];
        let is_known = self.knows_incumbents();
        let own = |domain: DomainIndex| domains.credit(&sums(domain).own, is_known);
        let cred = |domain: DomainIndex| domains.credit(&sums(domain).credited, is_known);
        let over = |domain: DomainIndex| domains.excess(&sums(domain).total());
        let count = |domain: DomainIndex| sums(domain).total().count;
        domains.best(
            self,
            |domain| 0 < count(*domain) && domains.covers(&sums(*domain).total()),
            |a, b| {
                own(b)
                    .total_cmp(&own(a))
                    .then_with(|| cred(b).total_cmp(&cred(a)))
                    .then_with(|| over(a).total_cmp(&over(b)))
                    .then_with(|| count(b).cmp(&count(a)))
            },
        )
    }

    /// Whether a gang prefers where it is: [`Mistake::NoIncumbent`] does not.
    fn knows_incumbents(&self) -> bool {
        self.mistake != Some(Mistake::NoIncumbent)
    }

    /// How many victims complete the gang in each domain; none where no number does.
    pub(crate) fn victims_needed(
        &mut self,
        need: NeedIndex,
        domains: &Domains,
    ) -> Table<DomainIndex, Option<usize>> {
        let priority = self.priority(need);
        let mut victims: Table<DomainIndex, Vec<(f64, MachineIndex)>> = Table::default();
        victims.grow_to(domains.sums.len());
        let mut looked_at = 0;
        for shape in self.catalog.by_price(self.need(need).usage) {
            let domain = self.domain_of(need, shape);
            let Some(domain) = domain.filter(|_| self.is_of_use(need, shape)) else {
                continue;
            };
            let configured = &self.stocks[shape].configured;
            looked_at += configured.len();
            for machine in configured {
                if let Some(victim) = self.victim_priority(*machine, priority)
                    && !self.record(*machine).unfit
                    && !self.is_credit(need, *machine)
                {
                    let terms = &self.catalog.terms[self.record(*machine).terms].terms;
                    let gap = i64::from(priority) - i64::from(victim);
                    victims[domain].push((victim_score(gap, terms), *machine));
                }
            }
        }
        self.work.machines += looked_at as u64;
        let needed = |(sums, victims): (&DomainSums, &mut Vec<(f64, MachineIndex)>)| {
            victims.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| self.ids.compare(a.1, b.1)));
            let mut total = sums.total();
            for (taken, (_, machine)) in victims.iter().enumerate() {
                total.add(&domains.amounts_of(self, self.record(*machine).shape), 1);
                if domains.covers(&total) {
                    return Some(taken + 1);
                }
            }
            None
        };
        domains
            .sums
            .iter()
            .zip(victims.iter_mut())
            .map(needed)
            .collect()
    }

    /// Whether a bound machine counts for a gang already, so that it cannot be a victim too.
    fn is_credit(&self, need: NeedIndex, machine: MachineIndex) -> bool {
        let record = self.record(machine);
        let claimant = self.claimant(machine);
        let is_free = claimant.is_none_or(|claimant| claimant == need);
        let is_leftover = claimant.is_none() && record.cluster == Some(self.need(need).cluster);
        is_leftover || (is_free && self.is_own(need, machine))
    }

    /// The priority a machine stands at: its stamp or its claimant's, whichever is higher.
    pub(crate) fn stands_at(&self, machine: MachineIndex) -> i32 {
        let stamped = self.catalog.terms[self.record(machine).terms]
            .terms
            .priority;
        self.claimant(machine)
            .map_or(stamped, |claimant| stamped.max(self.priority(claimant)))
    }

    /// The priority a Configured machine stands at, if it is below the preemptor's (V-3). One that leaves is
    /// nobody's victim (RF-21).
    pub(crate) fn victim_priority(&self, machine: MachineIndex, preemptor: i32) -> Option<i32> {
        let record = self.record(machine);
        let priority = self.stands_at(machine);
        let may_be_taken = record.state == Some(State::Configured) && record.leaving.is_none();
        (may_be_taken && priority < preemptor).then_some(priority)
    }
}
