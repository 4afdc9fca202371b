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

mod dimensions;
mod settle;
mod topology;

use crate::{
    Mistake,
    index::{
        AmountsIndex, ConditionsIndex, DimensionIndex, Index, KeyIndex, ProfileIndex, ShapeIndex,
        TermsIndex, UnitIndex, UseIndex,
    },
    offers::Offers,
    shape_set::ShapeSet,
    table::Table,
    units::{Credit, Units},
};
use bigfleet_model::{
    Amounts, Bucket, Cost, HashKey, Need, Price, Probability, Profile, Shape, Terms, effective_cost,
};
use dimensions::Dimensions;
use settle::Settled;
use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};
use topology::KeyEntry;

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

impl UseEntry {
    pub(crate) fn serves(&self, shape: ShapeIndex) -> bool {
        self.served_by.contains(shape)
    }
}

/// What a machine was committed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommittedTerms {
    pub(crate) terms: Terms,
    /// The price then (RF-2).
    pub(crate) keep_price: Price,
}

/// All distinct shapes, profiles, uses, topology keys and terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    key: HashKey,
    pub(crate) dimensions: Dimensions,
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
        self.keys.iter().map(KeyEntry::places_searched).sum()
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
        let amounts = self
            .dimensions
            .requested(effective)
            .iter()
            .map(whole)
            .collect();
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
            let amounts = self.dimensions.requested(&min_unit);
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
        let index = self.keys.push(KeyEntry::new(Arc::clone(&key)));
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
}

#[cfg(test)]
mod tests;
