//! Rivals: how many victims complete a gang in each domain (RF-6, case 2).
//!
//! ```text
//! lines of a domain ─┬─ all of them together are not enough ──▶ none
//!                    ├─ all have the same amounts ──▶ a division
//!                    └─ otherwise ──▶ counted along their order, no further than the fewest found so far
//! ```

use crate::{
    domain::Domains,
    fleet_tables::FleetTables,
    index::{DomainIndex, MachineIndex, NeedIndex, ShapeIndex},
    lines::Line,
    picking::{Deficit, Merged},
    preempt::{Score, victim_score},
    serving_lines::RivalClass,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// A line of rivals that begins below a gang's priority.
#[derive(Clone, Copy)]
struct RivalPlace {
    shape: ShapeIndex,
    class: RivalClass,
}

impl FleetTables {
    /// The domain that the fewest victims complete, among those whose own machines cover most of the gang. `own`
    /// says how much they cover, where it is anything.
    pub(crate) fn with_fewest_victims(
        &mut self,
        need: NeedIndex,
        domains: &Domains,
        own: &[(DomainIndex, f64)],
    ) -> Option<DomainIndex> {
        let rivals = self.rivals_by_domain(need, domains);
        let own: BTreeMap<DomainIndex, f64> = own.iter().copied().collect();
        let own = |domain: DomainIndex| own.get(&domain).copied().unwrap_or(0.0);
        let mut order: Vec<DomainIndex> = rivals.keys().copied().collect();
        order.sort_by(|a, b| {
            let by_value = || self.domain_order(need, *a, *b);
            own(*b).total_cmp(&own(*a)).then_with(by_value)
        });
        let mut best: Option<(DomainIndex, usize)> = None;
        let mut looks = 0;
        for domain in order {
            if best.is_some_and(|(best, _)| own(domain) < own(best)) {
                break;
            }
            let fewer_than = best.map_or(usize::MAX, |(_, needed)| needed);
            let lines = &rivals[&domain];
            let needed = self.victims_needed_in(need, domains.left(domain), lines, fewer_than);
            looks += lines.len() + needed.unwrap_or(0);
            if let Some(needed) = needed {
                best = Some((domain, needed));
            }
        }
        self.work.machines += looks as u64;
        best.map(|(domain, _)| domain)
    }

    /// How many victims complete the gang in each domain where some number does.
    pub(crate) fn victims_needed(
        &mut self,
        need: NeedIndex,
        domains: &Domains,
    ) -> BTreeMap<DomainIndex, usize> {
        let rivals = self.rivals_by_domain(need, domains);
        let needed = rivals.iter().filter_map(|(domain, lines)| {
            let left = domains.left(*domain);
            let needed = self.victims_needed_in(need, left, lines, usize::MAX)?;
            Some((*domain, needed))
        });
        needed.collect()
    }

    /// The lines of rivals that begin below the gang's priority and are of use to it, sorted; none of a domain that
    /// all of its Configured machines together would not complete.
    fn rivals_by_domain(
        &mut self,
        need: NeedIndex,
        found: &Domains,
    ) -> BTreeMap<DomainIndex, Vec<RivalPlace>> {
        let (priority, cluster) = (self.priority(need), self.need(need).cluster);
        let mut domains: BTreeMap<DomainIndex, Vec<RivalPlace>> = BTreeMap::new();
        let mut looks = 0;
        let shapes = self.catalog.by_price(self.need(need).usage);
        let shapes: Vec<ShapeIndex> = shapes
            .inspect(|_| looks += 1)
            .filter(|shape| {
                !self.stocks[*shape].configured.is_empty()
                    && self.serving.may_have_rivals(*shape, priority)
            })
            .collect();
        let mut left: BTreeMap<DomainIndex, Deficit> = BTreeMap::new();
        let mut useful: Vec<(DomainIndex, ShapeIndex)> = Vec::new();
        for shape in shapes {
            let domain = self.domain_of(need, shape);
            let Some(domain) = domain.filter(|_| self.is_of_use(need, shape)) else {
                continue;
            };
            let configured = self.stocks[shape].configured.len();
            let left = left.entry(domain).or_insert_with(|| {
                let mut left = Deficit::of(self, need);
                left.left = found.left(domain);
                left
            });
            left.change_by(self, shape, configured as i128);
            useful.push((domain, shape));
        }
        useful.retain(|(domain, _)| left[domain].is_covered());
        for (domain, shape) in useful {
            self.line_up_rivals(shape);
            self.sort_rivals(shape, priority);
            let lines = self.serving.rivals(shape).into_iter().flatten();
            let below = |(class, line): &(&RivalClass, &Line<i32>)| {
                class.loose_of != Some(cluster) && line.may_begin(|standing| *standing < priority)
            };
            for (class, _) in lines.filter(below) {
                looks += 1;
                let place = RivalPlace {
                    shape,
                    class: *class,
                };
                domains.entry(domain).or_default().push(place);
            }
        }
        self.work.machines += looks;
        domains
    }

    /// How many victims from these lines complete a gang that lacks so much, if they are fewer than that.
    fn victims_needed_in(
        &self,
        need: NeedIndex,
        left: Vec<i128>,
        places: &[RivalPlace],
        fewer_than: usize,
    ) -> Option<usize> {
        let priority = self.priority(need);
        let mut deficit = Deficit::of(self, need);
        deficit.left = left;
        let lines = places.iter().filter_map(|place| {
            let line = self.serving.rivals(place.shape)?.get(&place.class)?;
            Some((*place, line))
        });
        let lines: Vec<(RivalPlace, &Line<i32>)> = lines.collect();
        let mut all = deficit.clone();
        for (place, line) in &lines {
            let count = line.count(|standing| *standing < priority);
            all.change_by(self, place.shape, count as i128);
        }
        if !all.is_covered() {
            return None;
        }
        let least = deficit.least(self, places.iter().map(|place| place.shape));
        if fewer_than <= least {
            return None;
        }
        let size = |place: &RivalPlace| self.catalog.shapes[place.shape].size;
        let are_alike = places.windows(2).all(|two| size(&two[0]) == size(&two[1]));
        if are_alike && !self.has_own_elsewhere(need) {
            return Some(least);
        }
        let lines = lines.into_iter().map(|(place, line)| {
            let terms = place.class.terms();
            let outranked = line.iter();
            let outranked = outranked.take_while(move |(standing, _)| *standing < priority);
            let ranked = outranked.map(move |(standing, machine)| {
                let gap = i64::from(priority) - i64::from(standing);
                (Reverse(Score(victim_score(gap, &terms))), machine)
            });
            (place.shape, ranked)
        });
        let mut taken = 0;
        for machine in Merged::new(self, None, lines.collect(), |_| true) {
            if self.is_credit(need, machine) {
                continue;
            }
            taken += 1;
            if fewer_than <= taken {
                return None;
            }
            deficit.change(self, machine, 1);
            if deficit.is_covered() {
                return Some(taken);
            }
        }
        None
    }

    /// Whether a bound machine counts for a gang already, so that it cannot be a victim too.
    fn is_credit(&self, need: NeedIndex, machine: MachineIndex) -> bool {
        let record = self.record(machine);
        let claimant = self.claimant(machine);
        let is_free = claimant.is_none_or(|claimant| claimant == need);
        let is_leftover = claimant.is_none() && record.cluster == Some(self.need(need).cluster);
        is_leftover || (is_free && self.is_own(need, machine))
    }

    /// Whether a machine that nobody claims is the Need's own, but bound to another cluster: the one case of a
    /// credit that stands among the gang's rivals.
    fn has_own_elsewhere(&self, need: NeedIndex) -> bool {
        let entry = self.need(need);
        let is_elsewhere = |machine: &MachineIndex| {
            self.record(*machine).cluster != Some(entry.cluster)
                && self.claimant(*machine).is_none()
        };
        self.attributed(entry.slot).iter().any(is_elsewhere)
    }

    /// The priority a Configured machine stands at, unless it is held (V-3).
    pub(crate) fn stands_at(&self, machine: MachineIndex) -> i32 {
        let stamped = self.catalog.terms[self.record(machine).terms]
            .terms
            .priority;
        let claimant = self.claimant(machine);
        claimant.map_or(stamped, |claimant| stamped.max(self.priority(claimant)))
    }
}
