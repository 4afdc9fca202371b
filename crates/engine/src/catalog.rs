//! Catalog: distinct shapes, profiles and the like, examined once when new, so that a cycle compares integers.
//!
//! | Table | One entry per | Holds |
//! |---|---|---|
//! | shapes | (what a machine is, price, interruption) | its amounts by dimension |
//! | profiles | profile, by structure | its folded form, its topology keys |
//! | uses | (profile, smallest unit) | which shapes serve it, in the orders they are taken |
//! | units | smallest unit of rows that ask for whole units | how many machines of each shape hold |
//! | keys | topology key | the domain each shape lies in |
//! | terms | (priority, penalties) | what a machine costs to take away |
//!
//! A fleet of millions has a few thousand shapes and a few hundred uses; all string comparison of
//! the engine happens here and in the last tie-break of a sort.

use crate::{
    Mistake,
    index::{
        DimensionIndex, DomainIndex, Index, KeyIndex, ProfileIndex, ShapeIndex, TermsIndex,
        UnitIndex, UseIndex,
    },
    names::Names,
    requested_amounts::RequestedAmounts,
    table::Table,
    units::{Credit, Units},
};
use bigfleet_model::{
    Amounts, Cost, Dimension, HashKey, Need, Price, Probability, Profile, Shape, Terms,
    effective_cost,
};
use std::{collections::BTreeMap, sync::Arc};

/// What machines that match the same and cost the same have in common.
#[derive(Clone, Debug)]
pub(crate) struct ShapeEntry {
    pub(crate) shape: Arc<Shape>,
    pub(crate) price: Price,
    pub(crate) interruption: Probability,
    /// Effective amounts above zero: a handful, so found by looking along.
    amounts: Box<[(DimensionIndex, i64)]>,
    /// Equal for shapes of equal amounts (RF-18).
    pub(crate) same_amounts_as: ShapeIndex,
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

/// A profile with a smallest unit: what decides which machines a Need can use (RM-3).
#[derive(Clone, Debug)]
pub(crate) struct UseEntry {
    pub(crate) profile: ProfileIndex,
    pub(crate) min_unit: Amounts,
    /// One bit per shape.
    serves: Vec<u64>,
    /// Shapes that serve, cheapest first.
    pub(crate) by_price: Vec<ShapeIndex>,
    /// Shapes that serve, by effective cost, then price.
    pub(crate) by_cost: Vec<(Cost, ShapeIndex)>,
    shapes_seen: usize,
}

impl UseEntry {
    pub(crate) fn serves(&self, shape: ShapeIndex) -> bool {
        let position = shape.position();
        self.serves[position / 64] >> (position % 64) & 1 == 1
    }
}

/// The domains of one topology key.
#[derive(Clone, Debug)]
pub(crate) struct KeyEntry {
    key: String,
    pub(crate) values: Names<DomainIndex>,
    /// Where machines of each shape stand, if the shape says so.
    domain_of: Table<ShapeIndex, Option<DomainIndex>>,
}

impl KeyEntry {
    pub(crate) fn domain(&self, shape: ShapeIndex) -> Option<DomainIndex> {
        self.domain_of[shape]
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
    dimensions: BTreeMap<Dimension, DimensionIndex>,
    dimension_names: Table<DimensionIndex, Dimension>,
    pub(crate) shapes: Table<ShapeIndex, ShapeEntry>,
    shape_indexes: BTreeMap<(Arc<Shape>, Price, Probability), ShapeIndex>,
    /// The same by the address of the shape, which stays valid as long as the entry holds it. It is only
    /// searched, never walked in order, so no address reaches a decision.
    shape_addresses: BTreeMap<(usize, Price, Probability), ShapeIndex>,
    pub(crate) profiles: Table<ProfileIndex, ProfileEntry>,
    profile_indexes: BTreeMap<Arc<Profile>, ProfileIndex>,
    pub(crate) uses: Table<UseIndex, UseEntry>,
    /// By profile, then smallest unit.
    use_indexes: Table<ProfileIndex, BTreeMap<Amounts, UseIndex>>,
    units: Units,
    pub(crate) keys: Table<KeyIndex, KeyEntry>,
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
        let values = self.keys.iter().map(|key| key.values.places_searched());
        values.sum()
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

    /// The index of a shape at a price; everything that depends on shapes learns of a new one.
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
        let equal = self
            .shapes
            .iter()
            .find(|entry| entry.shape.effective() == effective);
        let same_amounts_as = equal.map_or(index, |entry| entry.same_amounts_as);
        self.shapes.push(ShapeEntry {
            shape: Arc::clone(shape),
            price,
            interruption,
            amounts,
            same_amounts_as,
        });
        self.shape_indexes.insert(identity, index);
        self.shape_addresses.insert(address, index);
        for key in self.keys.iter_mut() {
            key.learn(&self.shapes);
        }
        self.units.learn(&self.shapes);
        for entry in self.uses.iter_mut() {
            entry.learn(&self.shapes, &self.profiles);
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
        let index = self.profiles.push(ProfileEntry {
            profile: profile.clone(),
            same_key,
            spreads: spreads.into(),
            folded,
        });
        self.profile_indexes.insert(profile.clone(), index);
        index
    }

    /// The index of a use; looks at every shape once.
    pub(crate) fn usage(&mut self, profile: ProfileIndex, min_unit: &Amounts) -> UseIndex {
        self.use_indexes.grow_to(self.profiles.len());
        if let Some(index) = self.use_indexes[profile].get(min_unit) {
            return *index;
        }
        let mut entry = UseEntry {
            profile,
            min_unit: min_unit.clone(),
            serves: Vec::new(),
            by_price: Vec::new(),
            by_cost: Vec::new(),
            shapes_seen: 0,
        };
        entry.learn(&self.shapes, &self.profiles);
        let index = self.uses.push(entry);
        self.use_indexes[profile].insert(min_unit.clone(), index);
        index
    }

    /// The index of a unit that a row asks for whole; none for an empty one, which says nothing (RF-19).
    pub(crate) fn unit(&mut self, unit: &Amounts) -> Option<UnitIndex> {
        if unit.is_zero() || self.units.find(unit).is_some() {
            return self.units.find(unit);
        }
        let amounts = self.requested(unit);
        Some(self.units.add(unit, amounts.iter(), &self.shapes))
    }

    /// What a machine of this shape counts with for rows of this unit, or of none.
    /// Switches an old mistake on.
    pub(crate) fn make(&mut self, mistake: Mistake) {
        self.units.make(mistake);
    }

    pub(crate) fn credit(&self, unit: Option<UnitIndex>, shape: ShapeIndex) -> Credit<'_> {
        let shape = &self.shapes[shape];
        match unit {
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
        if let Some((index, _)) = self.keys.entries().find(|(_, entry)| entry.key == key) {
            return index;
        }
        let mut entry = KeyEntry {
            key: key.to_owned(),
            values: Names::new(self.key),
            domain_of: Table::default(),
        };
        entry.learn(&self.shapes);
        self.keys.push(entry)
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
}

impl KeyEntry {
    fn learn(&mut self, shapes: &Table<ShapeIndex, ShapeEntry>) {
        for (_, entry) in shapes.entries_from(self.domain_of.len()) {
            // An empty label value is no domain (RF-6).
            let value = entry
                .shape
                .attribute(&self.key)
                .filter(|value| !value.is_empty());
            self.domain_of
                .push(value.map(|value| self.values.intern(value)));
        }
    }
}

impl UseEntry {
    fn learn(
        &mut self,
        shapes: &Table<ShapeIndex, ShapeEntry>,
        profiles: &Table<ProfileIndex, ProfileEntry>,
    ) {
        let profile = &profiles[self.profile].profile;
        self.serves.resize(shapes.len().div_ceil(64), 0);
        for (shape, entry) in shapes.entries_from(self.shapes_seen) {
            if !entry.shape.serves(profile, &self.min_unit) {
                continue;
            }
            let position = shape.position();
            self.serves[position / 64] |= 1 << (position % 64);
            let at = self
                .by_price
                .partition_point(|held| shapes[*held].price <= entry.price);
            self.by_price.insert(at, shape);
            let cost = effective_cost(entry.price, entry.interruption, profile.interruption());
            let key = (cost, entry.price);
            let at = self
                .by_cost
                .partition_point(|(cost, held)| (*cost, shapes[*held].price) <= key);
            self.by_cost.insert(at, (cost, shape));
        }
        self.shapes_seen = shapes.len();
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
