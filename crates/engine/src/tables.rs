//! Tables: what is looked at once, when it is new, so that a cycle does integer work.
//!
//! | Table | One entry per | Holds |
//! |---|---|---|
//! | shapes | (what a machine is, price, interruption) | its amounts by dimension number |
//! | profiles | profile, by structure | its folded form, its topology keys |
//! | uses | (profile, smallest unit) | which shapes serve it, in the orders they are taken |
//! | keys | topology key | the domain each shape lies in |
//! | terms | (priority, penalties) | the victim's share of a score |
//!
//! A fleet of millions has a few thousand shapes and a few hundred uses; all string comparison of
//! the engine happens here and in the last tie-break of a sort.

use crate::{NONE, few::Few, names::Names};
use bigfleet_model::{
    Amounts, Cost, Dimension, Need, Price, Probability, Profile, Shape, Terms, effective_cost,
};
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

/// Number of a shape.
pub(crate) type ShapeIx = u32;
/// Number of a profile.
pub(crate) type ProfileIx = u32;
/// Number of a use.
pub(crate) type UseIx = u32;
/// Number of a domain within its topology key.
pub(crate) type DomainIx = u32;

/// Amounts wanted, by dimension number; ascending by dimension *name*, each above zero.
pub(crate) type Wanted = Few<(u32, i128)>;

/// What machines that match the same and cost the same have in common.
#[derive(Clone, Debug)]
pub(crate) struct ShapeEntry {
    pub(crate) shape: Arc<Shape>,
    pub(crate) price: Price,
    pub(crate) interruption: Probability,
    /// Effective amounts above zero, by dimension number: a handful, so found by looking along.
    amounts: Box<[(u32, i64)]>,
    /// Equal for shapes of equal amounts (RF-18).
    pub(crate) same_amounts_as: ShapeIx,
}

impl ShapeEntry {
    pub(crate) fn amount(&self, dimension: u32) -> i64 {
        self.amounts
            .iter()
            .find(|(held, _)| *held == dimension)
            .map_or(0, |(_, milli)| *milli)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ProfileEntry {
    pub(crate) profile: Arc<Profile>,
    /// Number of the topology key a gang must agree on, or [`NONE`].
    pub(crate) same_key: u32,
    /// (topology key, allowed skew) of each spread in force (RF-9).
    pub(crate) spreads: Box<[(u32, i64)]>,
    /// The profile it folds to, or [`NONE`] for one that is not a gang's.
    pub(crate) folded: ProfileIx,
}

/// A profile with a smallest unit: what decides which machines a Need can use (RM-3).
#[derive(Clone, Debug)]
pub(crate) struct UseEntry {
    pub(crate) profile: ProfileIx,
    pub(crate) min_unit: Amounts,
    /// One bit per shape.
    serves: Vec<u64>,
    /// Shapes that serve, cheapest first.
    pub(crate) by_price: Vec<ShapeIx>,
    /// Shapes that serve, by effective cost, then price.
    pub(crate) by_cost: Vec<(Cost, ShapeIx)>,
    shapes_seen: usize,
}

impl UseEntry {
    pub(crate) fn serves(&self, shape: ShapeIx) -> bool {
        self.serves[shape as usize / 64] >> (shape % 64) & 1 == 1
    }
}

/// The domains of one topology key.
#[derive(Clone, Debug)]
pub(crate) struct KeyEntry {
    key: String,
    pub(crate) values: Names,
    /// Domain of each shape, or [`NONE`].
    domain_of: Vec<DomainIx>,
}

impl KeyEntry {
    pub(crate) fn domain(&self, shape: ShapeIx) -> DomainIx {
        self.domain_of[shape as usize]
    }
}

/// All tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    dimensions: BTreeMap<Dimension, u32>,
    dimension_names: Vec<Dimension>,
    pub(crate) shapes: Vec<ShapeEntry>,
    shape_numbers: BTreeMap<(Arc<Shape>, Price, Probability), ShapeIx>,
    /// The same by the address of an entry's own copy, which lives as long as the entry. Only ever asked
    /// for one, never walked, so that no address reaches a decision.
    shape_addresses: BTreeMap<(usize, Price, Probability), ShapeIx>,
    pub(crate) profiles: Vec<ProfileEntry>,
    profile_numbers: BTreeMap<Arc<Profile>, ProfileIx>,
    pub(crate) uses: Vec<UseEntry>,
    /// By profile, then smallest unit.
    use_numbers: Vec<BTreeMap<Amounts, UseIx>>,
    pub(crate) keys: Vec<KeyEntry>,
    pub(crate) terms: Vec<Terms>,
    term_numbers: BTreeMap<(i32, u64, u64), u32>,
}

impl Tables {
    fn dimension(&mut self, name: &Dimension) -> u32 {
        if let Some(number) = self.dimensions.get(name) {
            return *number;
        }
        let number = self.dimension_names.len() as u32;
        self.dimensions.insert(name.clone(), number);
        self.dimension_names.push(name.clone());
        number
    }

    /// Amounts by number, in the order of names.
    pub(crate) fn wanted(&mut self, amounts: &Amounts) -> Wanted {
        amounts
            .iter()
            .map(|(name, milli)| (self.dimension(name), milli))
            .collect()
    }

    /// Amounts by name.
    pub(crate) fn amounts(&self, wanted: impl IntoIterator<Item = (u32, i128)>) -> Amounts {
        let named = |(number, milli)| (self.dimension_names[number as usize].clone(), milli);
        Amounts::from_entries(wanted.into_iter().map(named))
    }

    /// The number of a shape at a price; everything that depends on shapes learns of a new one.
    pub(crate) fn shape(
        &mut self,
        shape: &Arc<Shape>,
        price: Price,
        interruption: Probability,
    ) -> ShapeIx {
        let address = (Arc::as_ptr(shape).addr(), price, interruption);
        if let Some(number) = self.shape_addresses.get(&address) {
            return *number;
        }
        let identity = (Arc::clone(shape), price, interruption);
        if let Some(number) = self.shape_numbers.get(&identity) {
            return *number;
        }
        let effective = shape.effective();
        let whole = |(dimension, milli): &(u32, i128)| {
            (*dimension, i64::try_from(*milli).unwrap_or(i64::MAX))
        };
        let amounts = self.wanted(effective).iter().map(whole).collect();
        let number = self.shapes.len() as ShapeIx;
        let equal = self
            .shapes
            .iter()
            .find(|entry| entry.shape.effective() == effective);
        let same_amounts_as = equal.map_or(number, |entry| entry.same_amounts_as);
        self.shapes.push(ShapeEntry {
            shape: Arc::clone(shape),
            price,
            interruption,
            amounts,
            same_amounts_as,
        });
        self.shape_numbers.insert(identity, number);
        self.shape_addresses.insert(address, number);
        for key in &mut self.keys {
            key.learn(&self.shapes);
        }
        for entry in &mut self.uses {
            entry.learn(&self.shapes, &self.profiles);
        }
        number
    }

    /// The number of a profile, and of the one it folds to.
    pub(crate) fn profile(&mut self, profile: &Arc<Profile>) -> ProfileIx {
        if let Some(number) = self.profile_numbers.get(profile) {
            return *number;
        }
        let same_key = profile.same_key().map_or(NONE, |key| self.key(key));
        let spreads: Vec<_> = profile
            .hard_spreads()
            .map(|spread| {
                (
                    self.key(spread.topology_key()),
                    i64::from(spread.max_skew()),
                )
            })
            .collect();
        let folded = match same_key {
            NONE => NONE,
            _ => self.profile(&Arc::new(profile.folded())),
        };
        let number = self.profiles.len() as ProfileIx;
        let spreads = spreads.into();
        self.profiles.push(ProfileEntry {
            profile: profile.clone(),
            same_key,
            spreads,
            folded,
        });
        self.profile_numbers.insert(profile.clone(), number);
        number
    }

    /// The number of a use; looks at every shape once.
    pub(crate) fn usage(&mut self, profile: ProfileIx, min_unit: &Amounts) -> UseIx {
        self.use_numbers
            .resize_with(self.profiles.len(), BTreeMap::new);
        if let Some(number) = self.use_numbers[profile as usize].get(min_unit) {
            return *number;
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
        let number = self.uses.len() as UseIx;
        self.uses.push(entry);
        self.use_numbers[profile as usize].insert(min_unit.clone(), number);
        number
    }

    /// The number of a Need's use and profile.
    pub(crate) fn of_need(&mut self, need: &Need) -> (ProfileIx, UseIx) {
        let profile = self.profile(&need.row.profile);
        (profile, self.usage(profile, &need.row.min_unit))
    }

    fn key(&mut self, key: &str) -> u32 {
        if let Some(number) = self.keys.iter().position(|entry| entry.key == key) {
            return number as u32;
        }
        let mut entry = KeyEntry {
            key: key.to_owned(),
            values: Names::default(),
            domain_of: Vec::new(),
        };
        entry.learn(&self.shapes);
        self.keys.push(entry);
        (self.keys.len() - 1) as u32
    }

    /// The number of these terms.
    pub(crate) fn term(&mut self, terms: Terms) -> u32 {
        let identity = (
            terms.priority,
            terms.interruption.dollars().to_bits(),
            terms.reclamation.dollars().to_bits(),
        );
        let terms_held = &mut self.terms;
        *self.term_numbers.entry(identity).or_insert_with(|| {
            terms_held.push(terms);
            (terms_held.len() - 1) as u32
        })
    }
}

impl KeyEntry {
    fn learn(&mut self, shapes: &[ShapeEntry]) {
        for entry in &shapes[self.domain_of.len()..] {
            // An empty label value is no domain (RF-6).
            let value = entry
                .shape
                .attribute(&self.key)
                .filter(|value| !value.is_empty());
            self.domain_of
                .push(value.map_or(NONE, |value| self.values.intern(value)));
        }
    }
}

impl UseEntry {
    fn learn(&mut self, shapes: &[ShapeEntry], profiles: &[ProfileEntry]) {
        let profile = &profiles[self.profile as usize].profile;
        self.serves.resize(shapes.len().div_ceil(64), 0);
        for number in self.shapes_seen..shapes.len() {
            let entry = &shapes[number];
            if !entry.shape.serves(profile, &self.min_unit) {
                continue;
            }
            self.serves[number / 64] |= 1 << (number % 64);
            let number = number as ShapeIx;
            let at = self
                .by_price
                .partition_point(|held| shapes[*held as usize].price <= entry.price);
            self.by_price.insert(at, number);
            let cost = effective_cost(entry.price, entry.interruption, profile.interruption());
            let key = (cost, entry.price);
            let at = self
                .by_cost
                .partition_point(|(cost, held)| (*cost, shapes[*held as usize].price) <= key);
            self.by_cost.insert(at, (cost, number));
        }
        self.shapes_seen = shapes.len();
    }
}

/// The part of a victim's score that does not depend on who preempts it (V-4), added after the gap.
pub(crate) fn score(gap: i64, terms: &Terms) -> f64 {
    const WEIGHT: f64 = 0.1;
    const DRAIN_SECONDS: f64 = 30.0;
    let gap = gap.max(0) as f64;
    gap * 1.0
        + WEIGHT / DRAIN_SECONDS.max(1.0)
        + WEIGHT / terms.interruption.dollars().max(0.01)
        + WEIGHT / terms.reclamation.dollars().max(0.01)
}

/// Order of two machines to keep: price, then what is dearest to lose (RF-2). Ties end at the id.
pub(crate) fn keep_key(price: f64, terms: &Terms) -> (Price, Reverse<bigfleet_model::Dollars>) {
    (
        Price::new(price).unwrap_or_default(),
        Reverse(terms.reclamation),
    )
}
