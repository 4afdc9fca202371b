//! Spread: how evenly a Need's machines lie over the values of its topology keys (RF-9).

use crate::{
    Mistake,
    fleet_tables::FleetTables,
    index::{DomainIndex, KeyIndex, MachineIndex, NeedIndex, ShapeIndex},
    pass_a::Draft,
};
use std::collections::{BTreeMap, BTreeSet};

/// Per constraint, the domains that count in one step of pass B and how many machines are in each.
pub(crate) struct Balance {
    /// (topology key, skew).
    constraints: Vec<(KeyIndex, i64)>,
    counts: Vec<BTreeMap<DomainIndex, i64>>,
    /// The lowest count of each.
    lowest: Vec<i64>,
    /// The domains of a machine that is replaced: what lies there is always admitted (RF-21).
    like: Option<Vec<DomainIndex>>,
}

/// The place of a machine that is replaced (RF-21).
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its domains of all topology keys, if it has them.
    domains: Option<Vec<DomainIndex>>,
    /// Per topology key its domain, if a bound machine of the cluster that stays is there.
    alive: Vec<Option<DomainIndex>>,
}

/// Machines that are in the same domains, in keep order.
struct DomainLine {
    shape: ShapeIndex,
    machines: Vec<MachineIndex>,
    next: usize,
}

impl Balance {
    /// The domains of a step: those of its candidates, and those with claims.
    pub(crate) fn new(
        tables: &FleetTables,
        need: NeedIndex,
        candidates: impl IntoIterator<Item = ShapeIndex>,
    ) -> Self {
        let mut balance = Self::empty(tables, need, candidates);
        for machine in tables.claims(need) {
            balance.count(tables, tables.record(*machine).shape);
        }
        balance
    }

    /// As [`Self::new`], for what is to take the place of a machine.
    pub(crate) fn in_place(
        tables: &FleetTables,
        need: NeedIndex,
        candidates: impl IntoIterator<Item = ShapeIndex>,
        place: Option<&Place>,
    ) -> Self {
        let mut balance = Self::new(tables, need, candidates);
        if let Some(place) = place {
            let counts = balance.counts.iter_mut().zip(&mut balance.lowest);
            for (alive, (counts, lowest)) in place.alive.iter().zip(counts) {
                if let Some(domain) = alive {
                    counts.entry(*domain).or_insert(0);
                    *lowest = counts.values().min().copied().unwrap_or(0);
                }
            }
            if tables.mistake != Some(Mistake::LikeRefusedBySpread) {
                balance.like.clone_from(&place.domains);
            }
        }
        balance
    }

    /// The domains of a step of a Need without claims.
    fn empty(
        tables: &FleetTables,
        need: NeedIndex,
        candidates: impl IntoIterator<Item = ShapeIndex>,
    ) -> Self {
        let profile = &tables.catalog.profiles[tables.need(need).profile];
        let constraints = profile.spreads.to_vec();
        let mut counts = vec![BTreeMap::new(); constraints.len()];
        for shape in candidates {
            for ((key, _), counts) in constraints.iter().zip(&mut counts) {
                if let Some(domain) = tables.catalog.keys[*key].domain(shape) {
                    counts.entry(domain).or_insert(0);
                }
            }
        }
        let lowest = vec![0; constraints.len()];
        Self {
            constraints,
            counts,
            lowest,
            like: None,
        }
    }

    /// Whether one more machine of this shape keeps every skew, or lies where the one lay that it replaces.
    pub(crate) fn admits(&self, tables: &FleetTables, shape: ShapeIndex) -> bool {
        let lies_in = |((key, _), domain): (&(KeyIndex, i64), &DomainIndex)| {
            tables.catalog.keys[*key].domain(shape) == Some(*domain)
        };
        let is_like = |like: &Vec<DomainIndex>| self.constraints.iter().zip(like).all(lies_in);
        self.like.as_ref().is_some_and(is_like) || self.keeps_every_skew(tables, shape)
    }

    fn keeps_every_skew(&self, tables: &FleetTables, shape: ShapeIndex) -> bool {
        let counts = self.counts.iter().zip(&self.lowest);
        let mut constraints = self.constraints.iter().zip(counts);
        constraints.all(|((key, skew), (counts, lowest))| {
            let domain = tables.catalog.keys[*key].domain(shape);
            let here = domain.and_then(|domain| counts.get(&domain).copied());
            here.unwrap_or(0) < lowest + (*skew).max(1)
        })
    }

    pub(crate) fn count(&mut self, tables: &FleetTables, shape: ShapeIndex) {
        let counts = self.counts.iter_mut().zip(&mut self.lowest);
        for ((key, _), (counts, lowest)) in self.constraints.iter().zip(counts) {
            if let Some(domain) = tables.catalog.keys[*key].domain(shape) {
                let before = counts.get(&domain).copied();
                counts.insert(domain, before.unwrap_or(0) + 1);
                // Any other count leaves the lowest as it is.
                if before.is_none_or(|before| before == *lowest) {
                    *lowest = counts.values().min().copied().unwrap_or(0);
                }
            }
        }
    }
}

impl FleetTables {
    /// Per key a Need is spread over, the domains where a bound machine of its cluster stays (RF-21).
    pub(crate) fn domains_alive(&self, need: NeedIndex) -> Vec<BTreeSet<DomainIndex>> {
        let profile = self.profile(need);
        let mut alive = vec![BTreeSet::new(); profile.spreads.len()];
        for machine in &self.clusters[self.need(need).cluster].bound {
            let record = self.record(*machine);
            if record.leaving.is_none() || self.mistake == Some(Mistake::DeadDomainCounts) {
                for ((key, _), alive) in profile.spreads.iter().zip(&mut alive) {
                    alive.extend(self.catalog.keys[*key].domain(record.shape));
                }
            }
        }
        alive
    }

    /// The place of a machine that a spread Need replaces.
    pub(crate) fn place_of(
        &self,
        need: NeedIndex,
        machine: MachineIndex,
        alive: &[BTreeSet<DomainIndex>],
    ) -> Place {
        let shape = self.record(machine).shape;
        let spreads = self.profile(need).spreads.iter();
        let domains: Vec<Option<DomainIndex>> = spreads
            .map(|(key, _)| self.catalog.keys[*key].domain(shape))
            .collect();
        let each = domains.iter().zip(alive);
        Place {
            alive: each
                .map(|(domain, alive)| domain.filter(|domain| alive.contains(domain)))
                .collect(),
            domains: domains.into_iter().collect(),
        }
    }

    /// Whether a shape lies in a domain of every key a Need is spread over.
    pub(crate) fn lies_somewhere(&self, need: NeedIndex, shape: ShapeIndex) -> bool {
        let profile = &self.catalog.profiles[self.need(need).profile];
        profile
            .spreads
            .iter()
            .all(|(key, _)| self.catalog.keys[*key].domain(shape).is_some())
    }

    /// The domains a shape lies in, by the keys a Need is spread over.
    pub(crate) fn domains_of(
        &self,
        need: NeedIndex,
        shape: ShapeIndex,
    ) -> Vec<Option<DomainIndex>> {
        let keys = self.profile(need).spreads.iter();
        let domain = |(key, _): &(KeyIndex, i64)| self.catalog.keys[*key].domain(shape);
        keys.map(domain).collect()
    }

    /// Order of two shapes by the values of the Need's topology keys.
    pub(crate) fn by_values(
        &self,
        need: NeedIndex,
        one: ShapeIndex,
        other: ShapeIndex,
    ) -> std::cmp::Ordering {
        let profile = &self.catalog.profiles[self.need(need).profile];
        let values = |shape: ShapeIndex| {
            profile.spreads.iter().map(move |(key, _)| {
                let key = &self.catalog.keys[*key];
                key.domain(shape).map_or("", |domain| key.value(domain))
            })
        };
        values(one).cmp(values(other))
    }

    /// Claims the lowest machine that keeps the spread, again and again. Machines are compared by keep key,
    /// then by topology values, then by id.
    pub(crate) fn take_spread(
        &mut self,
        need: NeedIndex,
        machines: &[MachineIndex],
        place: Option<&Place>,
    ) {
        let candidate = |machine: &&MachineIndex| {
            let record = self.record(**machine);
            self.claimant(**machine).is_none()
                && self.lies_somewhere(need, record.shape)
                && self.contributes(need, record.shape)
        };
        let mut candidates: Vec<MachineIndex> =
            machines.iter().filter(candidate).copied().collect();
        candidates.sort_by(|one, other| {
            let shapes = (self.record(*one).shape, self.record(*other).shape);
            self.by_keep_key(*one, *other)
                .then_with(|| self.by_values(need, shapes.0, shapes.1))
                .then_with(|| self.ids.compare(*one, *other))
        });
        let shapes = candidates.iter().map(|machine| self.record(*machine).shape);
        let mut balance = Balance::in_place(self, need, shapes, place);
        self.work.machines += candidates.len() as u64;
        while !self.holding(need).is_covered() {
            let eligible = |machine: &MachineIndex| {
                let shape = self.record(*machine).shape;
                self.contributes(need, shape) && balance.admits(self, shape)
            };
            let Some(place) = candidates.iter().position(eligible) else {
                return;
            };
            let machine = candidates.remove(place);
            self.claim(need, machine);
            balance.count(self, self.record(machine).shape);
        }
    }

    /// Takes own machines as evenly as possible (RF-9): the lowest that keeps the spread, again and again.
    /// Machines are compared by keep key, then by topology values, then by id. `own` is in keep order, so
    /// of each combination of values only the first is compared.
    pub(crate) fn draft_spread(&self, need: NeedIndex, own: &[MachineIndex], draft: &mut Draft) {
        let mut shapes: Vec<ShapeIndex> = Vec::new();
        let mut lines: Vec<DomainLine> = Vec::new();
        for machine in own {
            let shape = self.record(*machine).shape;
            if !self.lies_somewhere(need, shape) || !draft.gains_from(self, need, shape) {
                continue;
            }
            shapes.push(shape);
            let same = |line: &&mut DomainLine| self.by_values(need, line.shape, shape).is_eq();
            match lines.iter_mut().find(same) {
                Some(line) => line.machines.push(*machine),
                None => lines.push(DomainLine {
                    shape,
                    machines: vec![*machine],
                    next: 0,
                }),
            }
        }
        let mut balance = Balance::empty(self, need, shapes);
        for machine in draft.claims() {
            balance.count(self, self.record(*machine).shape);
        }
        while !draft.is_covered() {
            let mut lowest: Option<(usize, usize, MachineIndex)> = None;
            for (at, line) in lines.iter().enumerate() {
                if !balance.admits(self, line.shape) {
                    continue;
                }
                let gains = |machine: &MachineIndex| {
                    draft.gains_from(self, need, self.record(*machine).shape)
                };
                let Some(skipped) = line.machines[line.next..].iter().position(gains) else {
                    continue;
                };
                let place = line.next + skipped;
                let head = line.machines[place];
                let is_lower = |(best, _, held): (usize, usize, MachineIndex)| {
                    self.by_keep_key(head, held)
                        .then_with(|| self.by_values(need, line.shape, lines[best].shape))
                        .then_with(|| self.ids.compare(head, held))
                        .is_lt()
                };
                if lowest.is_none_or(is_lower) {
                    lowest = Some((at, place, head));
                }
            }
            let Some((at, place, machine)) = lowest else {
                return;
            };
            // Machines that were skipped have nothing that is wanted, and what is wanted only shrinks.
            lines[at].next = place + 1;
            let shape = self.record(machine).shape;
            draft.gains_from(self, need, shape);
            draft.add(machine);
            balance.count(self, shape);
        }
    }

    pub(crate) fn by_keep_key(&self, one: MachineIndex, other: MachineIndex) -> std::cmp::Ordering {
        self.keep_key(one).cmp(&self.keep_key(other))
    }
}
