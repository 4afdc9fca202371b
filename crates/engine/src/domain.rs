//! Domains: where a gang goes (RF-6).
//!
//! ```text
//! per value of the Same key:   own ⊆ cred        idle         spec        victims
//!                              its and loose     free hosts   quota       of lower priority
//! ```
//!
//! Sums are exact; ratios are `f64`, added in ascending dimension name, so that equal fleets compare
//! equal everywhere.

use crate::{
    Mistake, NONE,
    book::{Book, MachineIx, NeedIx},
    pool::PoolKind,
    tables::{DomainIx, ShapeIx},
};
use bigfleet_model::{DomainCoverage, State};
use std::cmp::{Ordering, Reverse};

/// Which case of RF-6 chose the domain, and so what the gang may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// The domain's free machines complete the gang.
    Complete,
    /// They do with victims.
    WithVictims,
    /// Nothing completes it: buy nothing.
    Partial,
}

/// What a gang finds in each domain.
pub(crate) struct Domains {
    need: NeedIx,
    dimensions: Vec<(u32, i128)>,
    sums: Vec<Sums>,
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

#[derive(Clone, Default)]
struct Sums {
    own: Amount,
    cred: Amount,
    idle: Amount,
    spec: Amount,
}

/// Machines and their amounts, in the dimensions of the gang.
#[derive(Clone, Default)]
struct Amount {
    count: u64,
    milli: Vec<i128>,
}

impl Amount {
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

impl Sums {
    fn total(&self) -> Amount {
        self.cred.plus(&self.idle).plus(&self.spec)
    }
}

impl Domains {
    pub(crate) fn new(book: &Book, need: NeedIx) -> Self {
        let key = book.tables.profiles[book.need(need).profile as usize].same_key;
        let count = book.tables.keys[key as usize].values.bound();
        let dimensions = book.need(need).wanted.to_vec();
        Self {
            need,
            dimensions,
            sums: vec![Sums::default(); count],
        }
    }

    fn at(&mut self, book: &Book, shape: ShapeIx) -> Option<(&mut Sums, Vec<i128>)> {
        let domain = book.domain_of(self.need, shape);
        if domain == NONE || !book.is_of_use(self.need, shape) {
            return None;
        }
        let shape = &book.tables.shapes[shape as usize];
        let milli = |(dimension, _): &(u32, i128)| i128::from(shape.amount(*dimension));
        let milli = self.dimensions.iter().map(milli).collect();
        Some((&mut self.sums[domain as usize], milli))
    }

    pub(crate) fn add_own(&mut self, book: &Book, shape: ShapeIx) {
        if let Some((sums, milli)) = self.at(book, shape) {
            sums.own.add(&milli, 1);
            sums.cred.add(&milli, 1);
        }
    }

    fn add_loose(&mut self, book: &Book, shape: ShapeIx) {
        if let Some((sums, milli)) = self.at(book, shape) {
            sums.cred.add(&milli, 1);
        }
    }

    fn add_free(&mut self, book: &Book, shape: ShapeIx) {
        let stock = &book.stocks[shape as usize];
        let idle = stock.pool(PoolKind::Idle).free() + stock.pool(PoolKind::Creating).free();
        let spec = stock.pool(PoolKind::Speculative).free();
        if idle + spec == 0 {
            return;
        }
        if let Some((sums, milli)) = self.at(book, shape) {
            if 0 < idle {
                sums.idle.add(&milli, idle.into());
            }
            if 0 < spec {
                sums.spec.add(&milli, spec.into());
            }
        }
    }

    /// `cov` of S-5.
    fn coverage(&self, amount: &Amount) -> f64 {
        self.ratios(amount)
            .fold(0.0, |sum, ratio| sum + ratio.min(1.0))
    }

    /// `over` of S-5.
    fn excess(&self, amount: &Amount) -> f64 {
        self.ratios(amount).fold(0.0, |sum, ratio| sum + ratio)
    }

    fn ratios(&self, amount: &Amount) -> impl Iterator<Item = f64> {
        let ratio =
            |(at, (_, wanted)): (usize, &(u32, i128))| amount.get(at) as f64 / *wanted as f64;
        self.dimensions.iter().enumerate().map(ratio)
    }

    fn covers(&self, amount: &Amount) -> bool {
        let enough = |(at, (_, wanted)): (usize, &(u32, i128))| *wanted <= amount.get(at);
        self.dimensions.iter().enumerate().all(enough)
    }

    pub(crate) fn home(&self, book: &Book) -> DomainIx {
        let with_own = |domain: &DomainIx| 0 < self.sums[*domain as usize].own.count;
        let own = |domain: DomainIx| self.coverage(&self.sums[domain as usize].own);
        self.best(book, with_own, |a, b| own(b).total_cmp(&own(a)))
    }

    /// The first of the domains that qualify, in this order and then by value.
    fn best(
        &self,
        book: &Book,
        qualifies: impl Fn(&DomainIx) -> bool,
        order: impl Fn(DomainIx, DomainIx) -> Ordering,
    ) -> DomainIx {
        let domains = (0..self.sums.len() as DomainIx).filter(qualifies);
        let best =
            domains.min_by(|a, b| order(*a, *b).then_with(|| book.domain_order(self.need, *a, *b)));
        best.unwrap_or(NONE)
    }

    /// What the rules compare, domain by domain: for whoever asks why.
    pub(crate) fn weights(&self) -> impl Iterator<Item = (DomainIx, Weights)> {
        let weigh = |(domain, sums): (usize, &Sums)| {
            let total = sums.total();
            let weights = Weights {
                own: sums.own.count,
                credited: sums.cred.count,
                idle: sums.idle.count,
                speculative: sums.spec.count,
                own_coverage: self.coverage(&sums.own),
                credit_coverage: self.coverage(&sums.cred),
                coverage_at_hand: self.coverage(&sums.cred.plus(&sums.idle)),
                fill: self.excess(&total),
                is_enough: 0 < total.count && self.covers(&total),
            };
            (domain as DomainIx, weights)
        };
        self.sums.iter().enumerate().map(weigh)
    }

    /// The domains worth naming in a verdict: best covered first (VD-1).
    pub(crate) fn candidates(&self, book: &Book) -> Vec<DomainCoverage> {
        let mut weighed: Vec<(u32, DomainIx, bool)> = Vec::new();
        for (domain, sums) in self.sums.iter().enumerate() {
            let total = sums.total();
            let thousandths = |(at, (_, wanted)): (usize, &(u32, i128))| {
                let have = total.get(at).min(*wanted);
                have.checked_mul(1000)
                    .map_or_else(|| have / (wanted / 1000), |have| have / wanted)
                    as u32
            };
            if 0 < total.count {
                let worst = self.dimensions.iter().enumerate().map(thousandths).min();
                weighed.push((
                    worst.unwrap_or(1000),
                    domain as DomainIx,
                    self.covers(&total),
                ));
            }
        }
        weighed.sort_by(|a, b| {
            Reverse(a.0)
                .cmp(&Reverse(b.0))
                .then_with(|| book.domain_order(self.need, a.1, b.1))
        });
        weighed.truncate(DomainCoverage::MOST);
        let named = |(coverage_per_mille, domain, satisfiable)| DomainCoverage {
            domain: book.domain_name(self.need, domain).to_owned(),
            coverage_per_mille,
            satisfiable,
        };
        weighed.into_iter().map(named).collect()
    }
}

impl Book {
    /// The domain of a shape under the key a gang must agree on.
    pub(crate) fn domain_of(&self, need: NeedIx, shape: ShapeIx) -> DomainIx {
        let key = self.tables.profiles[self.need(need).profile as usize].same_key;
        self.tables.keys[key as usize].domain(shape)
    }

    pub(crate) fn domain_name(&self, need: NeedIx, domain: DomainIx) -> &str {
        let key = self.tables.profiles[self.need(need).profile as usize].same_key;
        match domain {
            NONE => "",
            domain => self.tables.keys[key as usize].values.get(domain),
        }
    }

    fn domain_order(&self, need: NeedIx, one: DomainIx, other: DomainIx) -> Ordering {
        self.domain_name(need, one)
            .cmp(self.domain_name(need, other))
    }

    /// Whether a gang neither buys nor preempts this cycle.
    pub(crate) fn is_parked(&self, need: NeedIx) -> bool {
        let entry = self.need(need);
        let is_gang = self.tables.profiles[entry.profile as usize].same_key != NONE;
        (entry.parked && is_gang) || !self.clusters[entry.cluster as usize].acquire
    }

    /// What a gang that is short after its own finds in each domain.
    pub(crate) fn weigh(&mut self, need: NeedIx) -> Domains {
        let mut domains = Domains::new(self, need);
        for machine in self.own(need) {
            domains.add_own(self, self.record(machine).shape);
        }
        for machine in self.leftovers(need) {
            if !self.is_own(need, machine) {
                domains.add_loose(self, self.record(machine).shape);
            }
        }
        if !self.is_parked(need) {
            let usage = self.need(need).usage as usize;
            for shape in &self.tables.uses[usage].by_price {
                domains.add_free(self, *shape);
            }
        }
        domains
    }

    /// Chooses the domain, and by which case (RF-6).
    pub(crate) fn choose(&mut self, need: NeedIx, domains: &Domains) -> (DomainIx, Case) {
        let parked = self.is_parked(need);
        let sums = |domain: DomainIx| &domains.sums[domain as usize];
        let remembers = self.mistake != Some(Mistake::NoIncumbent);
        let credit = |amount: &Amount| match remembers {
            true => domains.coverage(amount),
            false => 0.0,
        };
        let own = |domain: DomainIx| credit(&sums(domain).own);
        let cred = |domain: DomainIx| credit(&sums(domain).cred);
        let over = |domain: DomainIx| domains.excess(&sums(domain).total());
        let count = |domain: DomainIx| sums(domain).total().count;

        let complete = domains.best(
            self,
            |domain| 0 < count(*domain) && domains.covers(&sums(*domain).total()),
            |a, b| {
                own(b)
                    .total_cmp(&own(a))
                    .then_with(|| cred(b).total_cmp(&cred(a)))
                    .then_with(|| over(a).total_cmp(&over(b)))
                    .then_with(|| count(b).cmp(&count(a)))
            },
        );
        if complete != NONE {
            return (complete, Case::Complete);
        }
        if !parked {
            let needed: Vec<Option<usize>> = self.victims_needed(need, domains);
            let with_victims = domains.best(
                self,
                |domain| needed[*domain as usize].is_some(),
                |a, b| {
                    let fewest = needed[a as usize].cmp(&needed[b as usize]);
                    own(b).total_cmp(&own(a)).then(fewest)
                },
            );
            if with_victims != NONE {
                return (with_victims, Case::WithVictims);
            }
        }
        let at_hand = |domain: DomainIx| sums(domain).cred.plus(&sums(domain).idle);
        let near = |domain: DomainIx| domains.coverage(&at_hand(domain));
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
        (partial, Case::Partial)
    }

    /// Per domain, how many victims complete the gang there, if any number does.
    pub(crate) fn victims_needed(&mut self, need: NeedIx, domains: &Domains) -> Vec<Option<usize>> {
        let priority = self.priority(need);
        let mut victims: Vec<Vec<(f64, MachineIx)>> = vec![Vec::new(); domains.sums.len()];
        let mut looked_at = 0;
        for shape in &self.tables.uses[self.need(need).usage as usize].by_price {
            let domain = self.domain_of(need, *shape);
            if domain == NONE || !self.is_of_use(need, *shape) {
                continue;
            }
            let configured = &self.stocks[*shape as usize].configured;
            looked_at += configured.len();
            for machine in configured {
                if let Some(victim) = self.victim_priority(*machine, priority)
                    && !self.record(*machine).not_ready
                    && !self.is_credit(need, *machine)
                {
                    let terms = &self.tables.terms[self.record(*machine).terms as usize];
                    let gap = i64::from(priority) - i64::from(victim);
                    victims[domain as usize].push((crate::tables::score(gap, terms), *machine));
                }
            }
        }
        self.work.machines += looked_at as u64;
        let needed = |(sums, victims): (&Sums, &mut Vec<(f64, MachineIx)>)| {
            victims.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| self.ids.compare(a.1, b.1)));
            let mut total = sums.total();
            for (taken, (_, machine)) in victims.iter().enumerate() {
                let shape = &self.tables.shapes[self.record(*machine).shape as usize];
                let milli = |(dimension, _): &(u32, i128)| i128::from(shape.amount(*dimension));
                total.add(&domains.dimensions.iter().map(milli).collect::<Vec<_>>(), 1);
                if domains.covers(&total) {
                    return Some(taken + 1);
                }
            }
            None
        };
        domains.sums.iter().zip(&mut victims).map(needed).collect()
    }

    /// Whether a bound machine counts towards a gang without taking anything from anyone.
    fn is_credit(&self, need: NeedIx, machine: MachineIx) -> bool {
        let record = self.record(machine);
        let claimant = self.claimant(machine);
        let is_free = claimant == NONE || claimant == need;
        let is_leftover = claimant == NONE && record.cluster == self.need(need).cluster;
        is_leftover || (is_free && self.is_own(need, machine))
    }

    /// The priority a Configured machine stands at, if it is below the preemptor's (V-3).
    pub(crate) fn victim_priority(&self, machine: MachineIx, preemptor: i32) -> Option<i32> {
        let record = self.record(machine);
        let stamped = self.tables.terms[record.terms as usize].priority;
        let priority = match self.claimant(machine) {
            NONE => stamped,
            claimant => stamped.max(self.priority(claimant)),
        };
        (record.state == Some(State::Configured) && priority < preemptor).then_some(priority)
    }
}
