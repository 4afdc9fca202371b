//! Domains: where a gang goes (RF-6).
//!
//! ```text
//! per value of the Same key:   own ⊆ credited    idle         speculative  victims
//!                              its and loose     free hosts   quota        of lower priority
//! ```
//!
//! Victims are counted in `rivals.rs`. Sums are exact; ratios are `f64`, added in ascending dimension name, so that equal fleets compare
//! equal everywhere.

use crate::{
    Mistake,
    fleet_tables::FleetTables,
    index::{DomainIndex, Index, MachineIndex, NeedIndex, ShapeIndex},
    pool::PoolKind,
    requested_amounts::RequestedAmounts,
    serving_lines::LineKind,
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
    /// How many machines there are, by [`Source`].
    counts: Table<DomainIndex, [u64; Source::COUNT]>,
    /// What they have, by domain, [`Source`] and dimension of the gang: one piece of memory however many domains.
    milli: Vec<i128>,
}

/// How the gang would come by a machine.
#[derive(Clone, Copy)]
enum Source {
    Own,
    /// The gang's own, loose ones of its cluster, and drains there that can be taken back.
    Credited,
    Idle,
    Speculative,
}

impl Source {
    const COUNT: usize = 4;
    /// What can be had now.
    const AT_HAND: [Self; 2] = [Self::Credited, Self::Idle];
    /// All that can be had.
    const ALL: [Self; 3] = [Self::Credited, Self::Idle, Self::Speculative];
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
    fn count(&self) -> u64 {
        self.credited + self.idle + self.speculative
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.count() == 0
    }
}

impl Domains {
    pub(crate) fn new(tables: &FleetTables, need: NeedIndex) -> Self {
        let wanted = tables.need(need).wanted.clone();
        let mut counts = Table::default();
        if let Some(key) = tables.profile(need).same_key {
            counts.grow_to(tables.catalog.keys[key].count());
        }
        let milli = vec![0; counts.len() * Source::COUNT * wanted.len()];
        Self {
            need,
            wanted,
            counts,
            milli,
        }
    }

    fn place(&self, domain: DomainIndex, source: Source) -> usize {
        (domain.position() * Source::COUNT + source as usize) * self.wanted.len()
    }

    /// Adds so many machines of a shape that has something of what the gang wants.
    fn add(&mut self, tables: &FleetTables, shape: ShapeIndex, count: u64, sources: &[Source]) {
        if count == 0 || !tables.is_of_use(self.need, shape) {
            return;
        }
        let Some(domain) = tables.domain_of(self.need, shape) else {
            return;
        };
        let credit = tables.credit(self.need, shape);
        for source in sources {
            self.counts[domain][*source as usize] += count;
            let place = self.place(domain, *source);
            for ((dimension, _), sum) in self.wanted.iter().zip(&mut self.milli[place..]) {
                *sum += i128::from(credit.amount(dimension)) * i128::from(count);
            }
        }
    }

    pub(crate) fn add_own(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        self.add(tables, shape, 1, &[Source::Own, Source::Credited]);
    }

    fn add_free(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        let stock = &tables.stocks[shape];
        let idle = stock.pool(PoolKind::Idle).free() + stock.pool(PoolKind::Creating).free();
        let speculative = stock.pool(PoolKind::Speculative).free();
        self.add(tables, shape, idle.into(), &[Source::Idle]);
        self.add(tables, shape, speculative.into(), &[Source::Speculative]);
    }

    fn count(&self, domain: DomainIndex, sources: &[Source]) -> u64 {
        let counts = self.counts[domain];
        sources.iter().map(|source| counts[*source as usize]).sum()
    }

    /// What the machines of a domain have of each dimension, beside what is wanted of it.
    fn sums(&self, domain: DomainIndex, sources: &[Source]) -> impl Iterator<Item = (i128, i128)> {
        let wanted = self.wanted.iter().enumerate();
        wanted.map(move |(at, (_, wanted))| {
            let of = |source: &Source| self.milli[self.place(domain, *source) + at];
            (sources.iter().map(of).sum(), wanted)
        })
    }

    /// `cov` of S-5.
    fn coverage(&self, domain: DomainIndex, sources: &[Source]) -> f64 {
        let sums = self.sums(domain, sources);
        let ratios = sums.map(|(sum, wanted)| sum as f64 / wanted as f64);
        ratios.fold(0.0, |sum, ratio| sum + ratio.min(1.0))
    }

    /// `over` of S-5.
    fn excess(&self, domain: DomainIndex) -> f64 {
        let sums = self.sums(domain, &Source::ALL);
        let ratios = sums.map(|(sum, wanted)| sum as f64 / wanted as f64);
        ratios.fold(0.0, |sum, ratio| sum + ratio)
    }

    /// Whether all that is in a domain completes the gang.
    fn is_enough(&self, domain: DomainIndex) -> bool {
        let mut sums = self.sums(domain, &Source::ALL);
        0 < self.count(domain, &Source::ALL) && sums.all(|(sum, wanted)| wanted <= sum)
    }

    /// What the gang lacks in a domain, in the order of what it wants.
    pub(crate) fn left(&self, domain: DomainIndex) -> Vec<i128> {
        let sums = self.sums(domain, &Source::ALL);
        sums.map(|(sum, wanted)| wanted - sum).collect()
    }

    /// The domain whose own machines cover most of the gang (RF-4).
    pub(crate) fn home(&self, tables: &FleetTables) -> Option<DomainIndex> {
        let own = |domain: DomainIndex| self.coverage(domain, &[Source::Own]);
        let with_own = self.counts.indexes();
        let with_own = with_own.filter(|domain| 0 < self.count(*domain, &[Source::Own]));
        with_own.min_by(|a, b| {
            let by_value = || tables.domain_order(self.need, *a, *b);
            own(*b).total_cmp(&own(*a)).then_with(by_value)
        })
    }

    /// What the rules compare, domain by domain, for an explanation.
    pub(crate) fn weights(&self) -> impl Iterator<Item = (DomainIndex, Weights)> {
        self.counts
            .indexes()
            .map(|domain| (domain, self.weights_of(domain)))
    }

    fn weights_of(&self, domain: DomainIndex) -> Weights {
        let [own, credited, idle, speculative] = self.counts[domain];
        Weights {
            own,
            credited,
            idle,
            speculative,
            own_coverage: self.coverage(domain, &[Source::Own]),
            credit_coverage: self.coverage(domain, &[Source::Credited]),
            coverage_at_hand: self.coverage(domain, &Source::AT_HAND),
            fill: self.excess(domain),
            is_enough: self.is_enough(domain),
        }
    }

    /// The domains in which there is anything.
    fn found(&self) -> impl Iterator<Item = DomainIndex> {
        let domains = self.counts.indexes();
        domains.filter(|domain| 0 < self.count(*domain, &Source::ALL))
    }

    /// The domains worth naming in a verdict: best covered first (VD-1).
    pub(crate) fn candidates(&self, tables: &FleetTables) -> Vec<DomainCoverage> {
        let weigh = |domain: DomainIndex| {
            let thousandths = |(sum, wanted): (i128, i128)| {
                let have = sum.min(wanted);
                have.checked_mul(1000)
                    .map_or_else(|| have / (wanted / 1000), |have| have / wanted)
                    as u32
            };
            let worst = self.sums(domain, &Source::ALL).map(thousandths).min();
            (Reverse(worst.unwrap_or(1000)), domain)
        };
        let mut weighed: Vec<(Reverse<u32>, DomainIndex)> = self.found().map(weigh).collect();
        let order = |a: &(Reverse<u32>, DomainIndex), b: &(Reverse<u32>, DomainIndex)| {
            let by_value = || tables.domain_order(self.need, a.1, b.1);
            a.0.cmp(&b.0).then_with(by_value)
        };
        if DomainCoverage::MOST < weighed.len() {
            weighed.select_nth_unstable_by(DomainCoverage::MOST, order);
            weighed.truncate(DomainCoverage::MOST);
        }
        weighed.sort_by(order);
        let named = |(Reverse(coverage_per_mille), domain)| DomainCoverage {
            domain: tables.domain_name(self.need, domain).to_owned(),
            coverage_per_mille,
            satisfiable: self.is_enough(domain),
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

    pub(crate) fn domain_order(
        &self,
        need: NeedIndex,
        one: DomainIndex,
        other: DomainIndex,
    ) -> Ordering {
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
        let own = self.own(need);
        self.weigh_bound(need, &own, &mut domains);
        for (shape, count) in self.count_in_cluster(need, LineKind::LooseForNow) {
            domains.add(self, shape, count, &[Source::Credited]);
        }
        self.weigh_free(need, &mut domains);
        domains
    }

    /// Adds own machines, and loose ones that stay and are not among the own.
    fn weigh_bound(&mut self, need: NeedIndex, own: &[MachineIndex], domains: &mut Domains) {
        let mut loose = self.count_in_cluster(need, LineKind::Loose);
        let cluster = self.need(need).cluster;
        for machine in own {
            let record = self.record(*machine);
            domains.add_own(self, record.shape);
            let is_loose = record.cluster == Some(cluster)
                && !record.leaves_soon()
                && self.claimant(*machine).is_none();
            if is_loose && let Some(count) = loose.get_mut(&record.shape) {
                *count -= 1;
            }
        }
        for (shape, count) in loose {
            domains.add(self, shape, count, &[Source::Credited]);
        }
    }

    /// Adds the drains that can be taken back, and what is free.
    fn weigh_free(&mut self, need: NeedIndex, domains: &mut Domains) {
        for (shape, count) in self.count_in_cluster(need, LineKind::Reversible) {
            domains.add(self, shape, count, &[Source::Credited]);
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
        let own = self.own(need);
        let own = self.staying_first(&own).0;
        self.weigh_bound(need, own, &mut domains);
        for machine in self.claims(need) {
            let record = self.record(*machine);
            if record.leaves_soon() || self.is_own(need, *machine) {
                continue;
            }
            let source = match record.state {
                Some(State::Idle | State::Creating) => Source::Idle,
                Some(State::Speculative) => Source::Speculative,
                _ => Source::Credited,
            };
            domains.add(self, record.shape, 1, &[source]);
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
        let found = self.found(domains);
        if let Some(complete) = self.first_complete(need, &found) {
            return (Some(complete), DomainCase::Complete);
        }
        let by_value = |a: &(DomainIndex, Weights), b: &(DomainIndex, Weights)| {
            self.domain_order(need, a.0, b.0)
        };
        let at_hand = |weights: &Weights| weights.credited + weights.idle;
        let partial = found.iter().filter(|(_, weights)| 0 < at_hand(weights));
        let partial = partial.min_by(|one, other| {
            let (a, b) = (&one.1, &other.1);
            b.coverage_at_hand
                .total_cmp(&a.coverage_at_hand)
                .then_with(|| b.own_coverage.total_cmp(&a.own_coverage))
                .then_with(|| b.credit_coverage.total_cmp(&a.credit_coverage))
                .then_with(|| at_hand(b).cmp(&at_hand(a)))
                .then_with(|| by_value(one, other))
        });
        let partial = partial.map(|(domain, _)| *domain);
        if !self.is_parked(need) {
            let mut own: Vec<(DomainIndex, f64)> = found
                .iter()
                .map(|(domain, weights)| (*domain, weights.own_coverage))
                .collect();
            own.retain(|(_, coverage)| 0.0 < *coverage);
            let with_victims = self.with_fewest_victims(need, domains, &own);
            if with_victims.is_some() {
                return (with_victims, DomainCase::WithVictims);
            }
        }
        (partial, DomainCase::Partial)
    }

    /// The domain whose free machines complete the gang (RF-6, case 1).
    pub(crate) fn complete(&self, domains: &Domains) -> Option<DomainIndex> {
        self.first_complete(domains.need, &self.found(domains))
    }

    /// The domains in which there is anything, weighed once each.
    fn found(&self, domains: &Domains) -> Vec<(DomainIndex, Weights)> {
        let remembers = self.mistake != Some(Mistake::NoIncumbent);
        let weigh = |domain: DomainIndex| {
            let mut weights = domains.weights_of(domain);
            if !remembers {
                (weights.own_coverage, weights.credit_coverage) = (0.0, 0.0);
            }
            (domain, weights)
        };
        domains.found().map(weigh).collect()
    }

    fn first_complete(
        &self,
        need: NeedIndex,
        found: &[(DomainIndex, Weights)],
    ) -> Option<DomainIndex> {
        let complete = found.iter().filter(|(_, weights)| weights.is_enough);
        let complete = complete.min_by(|one, other| {
            let (a, b) = (&one.1, &other.1);
            b.own_coverage
                .total_cmp(&a.own_coverage)
                .then_with(|| b.credit_coverage.total_cmp(&a.credit_coverage))
                .then_with(|| a.fill.total_cmp(&b.fill))
                .then_with(|| b.count().cmp(&a.count()))
                .then_with(|| self.domain_order(need, one.0, other.0))
        });
        complete.map(|(domain, _)| *domain)
    }
}
