//! Catalog: distinct shapes, profiles and the like, examined once when new, so that a cycle compares integers.
//!
//! | Table | One entry per | Holds |
//! |---|---|---|
//! | shapes | (what a machine is, price, interruption) | its amounts by dimension |
//! | profiles | profile, by structure | its folded form, its topology keys |
//! | conditions | set of requirements | which shapes meet them |
//! | uses | (conditions, smallest unit) | which shapes serve it |
//! | units | smallest unit of rows that ask for whole units | how many a machine of each size holds |
//! | keys | topology key | the domain each shape lies in |
//! | terms | (priority, penalties) | what a machine costs to take away |
//!
//! A fleet of millions has a few thousand shapes and a few hundred uses; all string comparison of the engine
//! happens here and in the last tie-break of a sort. What thousands of uses cost is bounded too, because
//! strangers write them: none looks at shapes it does not name (`offers.rs`), and all share one order of shapes
//! by price and one by cost for each penalty.
//!
//! Shapes and uses come in any order. Which serves which is worked out by [`Catalog::settle`], for all that are
//! new together, before a cycle reads it.

use crate::{
    Mistake,
    index::{
        AmountsIndex, ConditionsIndex, DimensionIndex, DomainIndex, Index, KeyIndex, ProfileIndex,
        ShapeIndex, TermsIndex, UnitIndex, UseIndex,
    },
    names::Names,
    offers::Offers,
    requested_amounts::RequestedAmounts,
    shape_set::ShapeSet,
    table::Table,
    units::{Credit, Units},
};
use bigfleet_model::{
    Amounts, Bucket, Cost, Dimension, HashKey, Need, Price, Probability, Profile, Shape, Terms,
    effective_cost,
};
use std::{cmp::Ordering, collections::BTreeMap, ops::Range, sync::Arc};

/// What machines that match the same and cost the same have in common.
#[derive(Clone, Debug)]
pub(crate) struct ShapeEntry {
    pub(crate) shape: Arc<Shape>,
    pub(crate) price: Price,
    pub(crate) interruption: Probability,
    /// Effective amounts above zero: a handful, so found by looking along.
    amounts: Box<[(DimensionIndex, i64)]>,
    /// Equal for shapes of equal amounts (RF-18).
    pub(crate) size: AmountsIndex,
}

impl ShapeEntry {
    pub(crate) fn amount(&self, dimension: DimensionIndex) -> i64 {
        self.amounts
            .iter()
            .find(|(held, _)| *held == dimension)
            .map_or(0, |(_, milli)| *milli)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ProfileEntry {
    pub(crate) profile: Arc<Profile>,
    conditions: ConditionsIndex,
    /// The topology key whose value all machines of a gang share; only a gang has one.
    pub(crate) same_key: Option<KeyIndex>,
    /// (topology key, allowed skew) of each spread in force (RF-9).
    pub(crate) spreads: Box<[(KeyIndex, i64)]>,
    /// The profile a gang folds to.
    pub(crate) folded: Option<ProfileIndex>,
}

impl ProfileEntry {
    pub(crate) fn is_gang(&self) -> bool {
        self.same_key.is_some()
    }
}

/// What profiles ask of a machine that differ in priority, penalties or spread alone (RM-2).
#[derive(Clone, Debug)]
struct ConditionsEntry {
    /// One of those profiles.
    profile: Arc<Profile>,
    met_by: ShapeSet,
}

/// Compares profiles by their requirements alone.
#[derive(Clone, Debug)]
struct ByRequirements(Arc<Profile>);

impl PartialEq for ByRequirements {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByRequirements {}

impl PartialOrd for ByRequirements {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByRequirements {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.requirements().cmp(other.0.requirements())
    }
}

/// Conditions with a smallest unit: what decides which machines a Need can use (RM-3).
#[derive(Clone, Debug)]
pub(crate) struct UseEntry {
    conditions: ConditionsIndex,
    pub(crate) min_unit: Amounts,
    /// The same as a unit to count in, once a row asks for whole ones.
    unit: Option<UnitIndex>,
    served_by: ShapeSet,
    /// How many serve it.
    count: usize,
    /// Those that serve it by price, if they are few among all.
    few: Option<Box<[ShapeIndex]>>,
}

/// Shapes are few if they are at most one in so many: then the list takes no more room than the set.
const FEW: usize = 32;

impl UseEntry {
    pub(crate) fn serves(&self, shape: ShapeIndex) -> bool {
        self.served_by.contains(shape)
    }
}

/// A topology key.
#[derive(Clone, Debug)]
pub(crate) struct KeyEntry {
    key: Arc<str>,
    /// None if no shape has such an attribute, as with most keys that somebody makes up.
    domains: Option<Box<KeyDomains>>,
}

/// The domains of one topology key.
#[derive(Clone, Debug)]
struct KeyDomains {
    values: Names<DomainIndex>,
    /// Where machines of each shape stand, if the shape says so; no further than the last that does.
    domain_of: Table<ShapeIndex, Option<DomainIndex>>,
}

impl KeyEntry {
    pub(crate) fn domain(&self, shape: ShapeIndex) -> Option<DomainIndex> {
        *self.domains.as_ref()?.domain_of.get(shape)?
    }

    /// How many domains there are.
    pub(crate) fn count(&self) -> usize {
        let domains = self.domains.as_ref();
        domains.map_or(0, |domains| domains.values.count())
    }

    pub(crate) fn value(&self, domain: DomainIndex) -> &str {
        let domains = self.domains.as_ref();
        domains.map_or("", |domains| domains.values.get(domain))
    }
}

/// What a machine was committed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommittedTerms {
    pub(crate) terms: Terms,
    /// The price then (RF-2).
    pub(crate) keep_price: Price,
}

/// How many of each are settled: what came later is not yet compared with the others.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    shapes: usize,
    conditions: usize,
    uses: usize,
    keys: usize,
}

/// All distinct shapes, profiles, uses, topology keys and terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    key: HashKey,
    dimensions: BTreeMap<Dimension, DimensionIndex>,
    dimension_names: Table<DimensionIndex, Dimension>,
    pub(crate) shapes: Table<ShapeIndex, ShapeEntry>,
    shape_indexes: BTreeMap<(Arc<Shape>, Price, Probability), ShapeIndex>,
    /// The same by the address of the shape, which stays valid as long as the entry holds it. It is only
    /// searched, never walked in order, so no address reaches a decision.
    shape_addresses: BTreeMap<(usize, Price, Probability), ShapeIndex>,
    /// The distinct amounts of shapes, each with the first shape that has them.
    sizes: Table<AmountsIndex, ShapeIndex>,
    size_indexes: BTreeMap<Amounts, AmountsIndex>,
    offers: Offers,
    /// All settled shapes, cheapest first.
    by_price: Vec<ShapeIndex>,
    /// All settled shapes by effective cost, then price, for each penalty that a profile has.
    by_cost: BTreeMap<Bucket, Vec<(Cost, ShapeIndex)>>,
    pub(crate) profiles: Table<ProfileIndex, ProfileEntry>,
    profile_indexes: BTreeMap<Arc<Profile>, ProfileIndex>,
    conditions: Table<ConditionsIndex, ConditionsEntry>,
    conditions_indexes: BTreeMap<ByRequirements, ConditionsIndex>,
    pub(crate) uses: Table<UseIndex, UseEntry>,
    /// By conditions, then smallest unit.
    use_indexes: Table<ConditionsIndex, BTreeMap<Amounts, UseIndex>>,
    units: Units,
    pub(crate) keys: Table<KeyIndex, KeyEntry>,
    key_indexes: BTreeMap<Arc<str>, KeyIndex>,
    settled: Settled,
    pub(crate) terms: Table<TermsIndex, CommittedTerms>,
    terms_indexes: BTreeMap<(i32, u64, u64, u64), TermsIndex>,
}

impl Catalog {
    pub(crate) fn new(key: HashKey) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    pub(crate) fn key(&self) -> HashKey {
        self.key
    }

    /// How many places are looked at to find every value of every topology key once.
    pub(crate) fn places_searched(&self) -> usize {
        let domains = self.keys.iter().filter_map(|key| key.domains.as_ref());
        domains
            .map(|domains| domains.values.places_searched())
            .sum()
    }

    fn dimension(&mut self, name: &Dimension) -> DimensionIndex {
        if let Some(index) = self.dimensions.get(name) {
            return *index;
        }
        let index = self.dimension_names.push(name.clone());
        self.dimensions.insert(name.clone(), index);
        index
    }

    /// Amounts by index, in the order of names.
    pub(crate) fn requested(&mut self, amounts: &Amounts) -> RequestedAmounts {
        amounts
            .iter()
            .map(|(name, milli)| (self.dimension(name), milli))
            .collect()
    }

    /// The same for amounts that are likely to be of the same dimensions as others.
    pub(crate) fn requested_like(
        &mut self,
        others: &RequestedAmounts,
        amounts: &Amounts,
    ) -> RequestedAmounts {
        let mut others = others.iter();
        let indexed = amounts.iter().map(|(name, milli)| match others.next() {
            Some((likely, _)) if self.dimension_names[likely] == *name => (likely, milli),
            _ => (self.dimension(name), milli),
        });
        indexed.collect()
    }

    /// Amounts by name.
    pub(crate) fn amounts(
        &self,
        requested: impl IntoIterator<Item = (DimensionIndex, i128)>,
    ) -> Amounts {
        let named = |(index, milli)| (self.dimension_names[index].clone(), milli);
        Amounts::from_entries(requested.into_iter().map(named))
    }

    /// How many dimensions have been named.
    pub(crate) fn dimension_count(&self) -> usize {
        self.dimension_names.len()
    }

    /// The index of a shape at a price.
    pub(crate) fn shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> ShapeIndex {
        let address = (Arc::as_ptr(shape).addr(), price, interruption);
        if let Some(index) = self.shape_addresses.get(&address) {
            return *index;
        }
        let identity = (Arc::clone(shape), price, interruption);
        if let Some(index) = self.shape_indexes.get(&identity) {
            return *index;
        }
        let effective = shape.effective();
        let whole = |(dimension, milli): (DimensionIndex, i128)| {
            (dimension, i64::try_from(milli).unwrap_or(i64::MAX))
        };
        let amounts = self.requested(effective).iter().map(whole).collect();
        let index = ShapeIndex::at(self.shapes.len());
        let sizes = &mut self.sizes;
        let equal = self.size_indexes.entry(effective.clone());
        let size = *equal.or_insert_with(|| sizes.push(index));
        self.offers.add(index, shape);
        self.shapes.push(ShapeEntry {
            shape: Arc::clone(shape),
            price,
            interruption,
            amounts,
            size,
        });
        self.shape_indexes.insert(identity, index);
        self.shape_addresses.insert(address, index);
        if self.sizes[size] == index {
            self.units.learn((&self.sizes, &self.shapes));
        }
        index
    }

    /// The index of a profile; a gang's brings the one it folds to along.
    pub(crate) fn profile(&mut self, profile: &Arc<Profile>) -> ProfileIndex {
        if let Some(index) = self.profile_indexes.get(profile) {
            return *index;
        }
        let same_key = profile.same_key().map(|key| self.topology_key(key));
        let spreads: Vec<_> = profile
            .hard_spreads()
            .map(|spread| {
                (
                    self.topology_key(spread.topology_key()),
                    i64::from(spread.max_skew()),
                )
            })
            .collect();
        let folded = same_key.map(|_| self.profile(&Arc::new(profile.folded())));
        let conditions = self.conditions(profile);
        self.by_cost.entry(profile.interruption()).or_default();
        let index = self.profiles.push(ProfileEntry {
            profile: profile.clone(),
            conditions,
            same_key,
            spreads: spreads.into(),
            folded,
        });
        self.profile_indexes.insert(profile.clone(), index);
        index
    }

    fn conditions(&mut self, profile: &Arc<Profile>) -> ConditionsIndex {
        let identity = ByRequirements(Arc::clone(profile));
        if let Some(index) = self.conditions_indexes.get(&identity) {
            return *index;
        }
        let index = self.conditions.push(ConditionsEntry {
            profile: Arc::clone(profile),
            met_by: ShapeSet::default(),
        });
        self.conditions_indexes.insert(identity, index);
        index
    }

    /// The index of a use.
    pub(crate) fn usage(&mut self, profile: ProfileIndex, min_unit: &Amounts) -> UseIndex {
        let conditions = self.profiles[profile].conditions;
        self.use_indexes.grow_to(self.conditions.len());
        if let Some(index) = self.use_indexes[conditions].get(min_unit) {
            return *index;
        }
        let index = self.uses.push(UseEntry {
            conditions,
            min_unit: min_unit.clone(),
            unit: None,
            served_by: ShapeSet::default(),
            count: 0,
            few: None,
        });
        self.use_indexes[conditions].insert(min_unit.clone(), index);
        index
    }

    /// Has machines counted in the units of a use; false if its unit is empty, which says nothing (RF-19).
    pub(crate) fn count_units(&mut self, usage: UseIndex) -> bool {
        let UseEntry { min_unit, unit, .. } = &self.uses[usage];
        if unit.is_some() || min_unit.is_zero() {
            return unit.is_some();
        }
        let min_unit = min_unit.clone();
        let unit = self.units.find(&min_unit).unwrap_or_else(|| {
            let amounts = self.requested(&min_unit);
            let machines = (&self.sizes, &self.shapes);
            self.units.add(&min_unit, amounts.iter(), machines)
        });
        self.uses[usage].unit = Some(unit);
        true
    }

    /// Switches an old mistake on.
    pub(crate) fn make(&mut self, mistake: Mistake) {
        self.units.make(mistake);
    }

    /// What a machine of this shape counts with for a row that asks for whole units of a use, or for any part.
    pub(crate) fn credit(&self, usage: UseIndex, whole: bool, shape: ShapeIndex) -> Credit<'_> {
        let shape = &self.shapes[shape];
        let unit = whole.then(|| self.uses[usage].unit);
        match unit.flatten() {
            Some(unit) => self.units.credit(unit, shape),
            None => Credit::in_full(shape),
        }
    }

    /// The indexes of a Need's profile and use.
    pub(crate) fn of_need(&mut self, need: &Need) -> (ProfileIndex, UseIndex) {
        let profile = self.profile(&need.row.profile);
        (profile, self.usage(profile, &need.row.min_unit))
    }

    fn topology_key(&mut self, key: &str) -> KeyIndex {
        if let Some(index) = self.key_indexes.get(key) {
            return *index;
        }
        let key: Arc<str> = key.into();
        let index = self.keys.push(KeyEntry {
            key: Arc::clone(&key),
            domains: None,
        });
        self.key_indexes.insert(key, index);
        index
    }

    /// The index of these terms.
    pub(crate) fn terms(&mut self, terms: Terms, keep_price: Price) -> TermsIndex {
        let identity = (
            terms.priority,
            terms.interruption.dollars().to_bits(),
            terms.reclamation.dollars().to_bits(),
            keep_price.dollars_per_hour().to_bits(),
        );
        let known = &mut self.terms;
        *self
            .terms_indexes
            .entry(identity)
            .or_insert_with(|| known.push(CommittedTerms { terms, keep_price }))
    }

    /// The shapes that serve a use, cheapest first.
    pub(crate) fn by_price(&self, usage: UseIndex) -> impl Iterator<Item = ShapeIndex> {
        let usage = &self.uses[usage];
        let shapes = usage.few.as_deref().unwrap_or(&self.by_price).iter();
        shapes.copied().filter(|shape| usage.serves(*shape))
    }

    /// Those of a set that serve a use.
    pub(crate) fn serving<'s>(
        &'s self,
        usage: UseIndex,
        among: &'s ShapeSet,
    ) -> impl Iterator<Item = ShapeIndex> {
        self.uses[usage].served_by.common(among)
    }

    /// Adds the shapes that serve a use to a set.
    pub(crate) fn add_serving(&self, usage: UseIndex, shapes: &mut ShapeSet) {
        shapes.add_all(&self.uses[usage].served_by);
    }

    /// The shapes that serve a use by effective cost, then price; only those that `keep` lets through.
    pub(crate) fn by_cost(
        &self,
        usage: UseIndex,
        penalty: Bucket,
        keep: impl Fn(ShapeIndex) -> bool,
    ) -> Vec<(Cost, ShapeIndex)> {
        let usage = &self.uses[usage];
        let Some(few) = &usage.few else {
            let all = self.by_cost[&penalty].iter().copied();
            let serving = all.filter(|(_, shape)| usage.serves(*shape) && keep(*shape));
            return serving.collect();
        };
        let few = few.iter().copied().filter(|shape| keep(*shape));
        let mut few: Vec<_> = few
            .map(|shape| (self.cost(shape, penalty), shape))
            .collect();
        few.sort_by_key(|(cost, _)| *cost);
        few
    }

    fn cost(&self, shape: ShapeIndex, penalty: Bucket) -> Cost {
        let ShapeEntry {
            price,
            interruption,
            ..
        } = self.shapes[shape];
        effective_cost(price, interruption, penalty)
    }

    /// Compares all shapes and uses that came since the last time with all others.
    pub(crate) fn settle(&mut self) {
        self.settle_orders();
        let (before, shapes) = (self.settled, self.shapes.len());
        let unsettled = |count: usize, settled: usize| {
            let first = if before.shapes < shapes { 0 } else { settled };
            (first..count).map(move |position| {
                let seen = if position < settled { before.shapes } else { 0 };
                (position, seen..shapes)
            })
        };
        for (position, new) in unsettled(self.conditions.len(), before.conditions) {
            self.settle_conditions(ConditionsIndex::at(position), &new);
        }
        for (position, new) in unsettled(self.uses.len(), before.uses) {
            self.settle_use(UseIndex::at(position), &new);
        }
        for (position, new) in unsettled(self.keys.len(), before.keys) {
            self.settle_key(KeyIndex::at(position), new.start);
        }
        self.settled = Settled {
            shapes,
            conditions: self.conditions.len(),
            uses: self.uses.len(),
            keys: self.keys.len(),
        };
    }

    fn settle_orders(&mut self) {
        let Self {
            shapes,
            by_price,
            by_cost,
            ..
        } = self;
        if by_price.len() < shapes.len() {
            by_price.extend(shapes.indexes().skip(by_price.len()));
            by_price.sort_by_key(|shape| shapes[*shape].price);
        }
        for (penalty, order) in by_cost {
            if order.len() == shapes.len() {
                continue;
            }
            let new = shapes.entries_from(order.len()).map(|(shape, entry)| {
                let cost = effective_cost(entry.price, entry.interruption, *penalty);
                (cost, shape)
            });
            order.extend(new.collect::<Vec<_>>());
            order.sort_by_key(|(cost, shape)| (*cost, shapes[*shape].price));
        }
    }

    fn settle_conditions(&mut self, index: ConditionsIndex, new: &Range<usize>) {
        let entry = &mut self.conditions[index];
        entry.met_by.grow(new.clone());
        for requirement in entry.profile.requirements() {
            self.offers
                .require(&mut entry.met_by, new, requirement, &self.shapes);
        }
    }

    fn settle_use(&mut self, index: UseIndex, new: &Range<usize>) {
        let entry = &mut self.uses[index];
        let serving = &mut entry.served_by;
        serving.grow(new.clone());
        serving.keep(new, &self.conditions[entry.conditions].met_by);
        self.offers.require_amounts(serving, new, &entry.min_unit);
        let more = serving.within(new).count();
        entry.count += more;
        if self.shapes.len() < entry.count * FEW {
            entry.few = None;
        } else if 0 < more || entry.few.is_none() {
            let mut few: Vec<_> = serving.within(&(0..new.end)).collect();
            few.sort_by_key(|shape| self.shapes[*shape].price);
            entry.few = Some(few.into());
        }
    }

    fn settle_key(&mut self, index: KeyIndex, first_new: usize) {
        let KeyEntry { key, domains } = &mut self.keys[index];
        for shape in self.offers.with_attribute(key, first_new) {
            let value = self.shapes[*shape].shape.attribute(key);
            // An empty label value is no domain (RF-6).
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let domains = domains.get_or_insert_with(|| {
                Box::new(KeyDomains {
                    values: Names::new(self.key),
                    domain_of: Table::default(),
                })
            });
            domains.domain_of.grow_to(shape.position() + 1);
            domains.domain_of[*shape] = Some(domains.values.intern(value));
        }
    }
}

/// How suitable a victim is (V-4): by the priority gap, then by how little it costs to interrupt it.
pub(crate) fn victim_score(gap: i64, terms: &Terms) -> f64 {
    const WEIGHT: f64 = 0.1;
    const DRAIN_SECONDS: f64 = 30.0;
    let gap = gap.max(0) as f64;
    gap * 1.0
        + WEIGHT / DRAIN_SECONDS.max(1.0)
        + WEIGHT / terms.interruption.dollars().max(0.01)
        + WEIGHT / terms.reclamation.dollars().max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::{CapacityType, Operator, Requirement, Spread, WhenUnsatisfiable};
    use bigfleet_seeded::Prng;

    fn amounts(random: &mut Prng, most: usize) -> Amounts {
        let names = ["cpu", "memory", "gpu", "unheard-of"];
        let entries = names.map(|name| {
            let milli = if random.chance(0.4) {
                random.below(most)
            } else {
                0
            };
            (Dimension::new(name).unwrap(), milli as i128)
        });
        Amounts::from_entries(entries)
    }

    fn value(random: &mut Prng) -> String {
        ["", "a", "b", "c"][random.below(4)].to_owned()
    }

    const KEYS: [&str; 5] = [
        bigfleet_model::ZONE_KEY,
        bigfleet_model::CAPACITY_TYPE_KEY,
        "rack",
        "row",
        "unheard-of",
    ];

    fn shape(random: &mut Prng) -> (Arc<Shape>, Price, Probability) {
        let labels = KEYS[..4].iter().filter(|_| random.chance(0.5));
        let labels: Vec<&str> = labels.copied().collect();
        let labels = labels
            .into_iter()
            .map(|key| (key.to_owned(), value(random)));
        let shape = Shape {
            labels: labels.collect(),
            zone: value(random),
            capacity_type: CapacityType::ALL[random.below(5)],
            resources: amounts(random, 4),
            ..Shape::default()
        };
        let price = Price::new(random.below(4) as f64).unwrap();
        let interruption = Probability::new(random.below(3) as f64 / 4.0).unwrap();
        (Arc::new(shape), price, interruption)
    }

    fn profile(random: &mut Prng) -> Arc<Profile> {
        let mut requirement = || {
            let key = KEYS[random.below(5)].to_owned();
            let operator = Operator::ALL[random.below(5)];
            let values = (0..random.below(4)).map(|_| value(random)).collect();
            Requirement::new(key, operator, values).unwrap()
        };
        let requirements = [requirement(), requirement()];
        let requirements = requirements.into_iter().take(random.below(3));
        let penalty = Bucket::from_number(random.below(5) as i64 * 5).unwrap();
        let (priority, none) = (random.below(3) as i32, Bucket::ZERO);
        let profile = Profile::new(requirements.collect(), vec![], priority, penalty, none);
        Arc::new(profile)
    }

    /// RM-2, RM-3, A-2 and B-3: whatever comes first, and however often it is settled in between.
    #[test]
    fn a_use_knows_the_shapes_that_serve_it_in_both_orders() {
        for seed in 0..300 {
            let mut random = Prng::new(seed);
            let mut catalog = Catalog::default();
            let mut uses: Vec<(Arc<Profile>, Amounts, UseIndex)> = Vec::new();
            for _ in 0..random.below(200) {
                match random.below(8) {
                    0 => catalog.settle(),
                    1 | 2 => {
                        let (profile, unit) = (profile(&mut random), amounts(&mut random, 4));
                        let index = catalog.profile(&profile);
                        uses.push((profile, unit.clone(), catalog.usage(index, &unit)));
                    }
                    _ => {
                        let (shape, price, interruption) = shape(&mut random);
                        catalog.shape(&shape, price, interruption);
                    }
                }
            }
            catalog.settle();
            for (profile, unit, usage) in uses {
                let serving = catalog.shapes.entries();
                let serving = serving.filter(|(_, entry)| entry.shape.serves(&profile, &unit));
                let mut by_price: Vec<_> = serving.map(|(shape, _)| shape).collect();
                by_price.sort_by_key(|shape| catalog.shapes[*shape].price);
                let found: Vec<_> = catalog.by_price(usage).collect();
                assert_eq!(found, by_price, "seed {seed}: {profile:?} {unit:?}");
                for shape in catalog.shapes.indexes() {
                    let serves = catalog.uses[usage].serves(shape);
                    assert_eq!(serves, by_price.contains(&shape), "seed {seed}");
                }
                let penalty = profile.interruption();
                let keep = |shape: ShapeIndex| !shape.position().is_multiple_of(3);
                let kept = by_price.into_iter().filter(|shape| keep(*shape));
                let mut by_cost: Vec<_> = kept
                    .map(|shape| (catalog.cost(shape, penalty), shape))
                    .collect();
                by_cost.sort_by_key(|(cost, shape)| (*cost, catalog.shapes[*shape].price));
                assert_eq!(
                    catalog.by_cost(usage, penalty, keep),
                    by_cost,
                    "seed {seed}"
                );
            }
        }
    }

    fn of_zones(zones: u32) -> Catalog {
        let mut catalog = Catalog::default();
        for zone in 0..zones {
            let shape = Shape {
                zone: format!("z{zone}"),
                ..Shape::default()
            };
            catalog.shape(&Arc::new(shape), Price::ZERO, Probability::ZERO);
        }
        catalog
    }

    #[test]
    fn priorities_and_penalties_make_no_use_of_their_own() {
        let mut catalog = of_zones(3);
        for number in 0..1000 {
            let penalty = Bucket::from_number(i64::from(number % 28)).unwrap();
            let profile = Profile::new(vec![], vec![], number, penalty, Bucket::ZERO);
            let index = catalog.profile(&Arc::new(profile));
            catalog.usage(index, &Amounts::NONE);
        }
        catalog.settle();
        assert_eq!((catalog.profiles.len(), catalog.uses.len()), (1000, 1));
        assert_eq!(catalog.by_cost.len(), 28, "orders are shared");
    }

    #[test]
    fn a_topology_key_that_no_machine_has_takes_no_room_for_machines() {
        let mut catalog = of_zones(1000);
        let mut key = |name: String| {
            let spread = Spread::new(name, 1, WhenUnsatisfiable::DoNotSchedule).unwrap();
            let profile = Profile::new(vec![], vec![spread], 0, Bucket::ZERO, Bucket::ZERO);
            let index = catalog.profile(&Arc::new(profile));
            catalog.profiles[index].spreads[0].0
        };
        let made_up: Vec<KeyIndex> = (0..1000)
            .map(|number| key(format!("key-{number}")))
            .collect();
        let zone = key(bigfleet_model::ZONE_KEY.to_owned());
        assert_eq!(key("key-7".to_owned()), made_up[7]);
        catalog.settle();
        assert!(
            made_up
                .iter()
                .all(|key| catalog.keys[*key].domains.is_none())
        );
        assert_eq!(catalog.keys[made_up[0]].domain(ShapeIndex::FIRST), None);
        assert_eq!(catalog.keys[zone].count(), 1000);
        let last = ShapeIndex::at(999);
        let domain = catalog.keys[zone].domain(last).unwrap();
        assert_eq!(catalog.keys[zone].value(domain), "z999");
        assert_eq!(catalog.keys[zone].domain(ShapeIndex::at(1000)), None);
    }

    /// What is listed for a use never takes more room than the set of all shapes does.
    #[test]
    fn only_few_shapes_are_listed_for_a_use() {
        let mut catalog = of_zones(640);
        let mut usage = |zones: u32| {
            let values = (0..zones).map(|zone| format!("z{zone}")).collect();
            let key = bigfleet_model::ZONE_KEY.to_owned();
            let requirement = Requirement::new(key, Operator::In, values).unwrap();
            let profile = Profile::new(vec![requirement], vec![], 0, Bucket::ZERO, Bucket::ZERO);
            let index = catalog.profile(&Arc::new(profile));
            catalog.usage(index, &Amounts::NONE)
        };
        let (few, many) = (usage(20), usage(21));
        catalog.settle();
        let listed = |usage: UseIndex| catalog.uses[usage].few.as_ref().map(|few| few.len());
        assert_eq!((listed(few), listed(many)), (Some(20), None));
        assert_eq!(catalog.by_price(few).count(), 20);
        assert_eq!(catalog.by_price(many).count(), 21);
    }
}
