//! Topology keys: the domain that machines of each shape lie in, by the label a profile names.

use super::ShapeEntry;
use crate::{
    index::{DomainIndex, Index, ShapeIndex},
    names::Names,
    offers::Offers,
    table::Table,
};
use bigfleet_model::HashKey;
use std::sync::Arc;

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
    pub(super) fn new(key: Arc<str>) -> Self {
        Self { key, domains: None }
    }

    /// Finds the domains of shapes from `first_new` on.
    pub(super) fn settle(
        &mut self,
        hash_key: HashKey,
        offers: &Offers,
        shapes: &Table<ShapeIndex, ShapeEntry>,
        first_new: usize,
    ) {
        for shape in offers.with_attribute(&self.key, first_new) {
            let value = shapes[*shape].shape.attribute(&self.key);
            // An empty label value is no domain (RF-6).
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            let domains = self.domains.get_or_insert_with(|| {
                Box::new(KeyDomains {
                    values: Names::new(hash_key),
                    domain_of: Table::default(),
                })
            });
            domains.domain_of.grow_to(shape.position() + 1);
            domains.domain_of[*shape] = Some(domains.values.intern(value));
        }
    }

    /// How many places are looked at to find every value once.
    pub(super) fn places_searched(&self) -> usize {
        let domains = self.domains.as_ref();
        domains.map_or(0, |domains| domains.values.places_searched())
    }

    /// Whether a machine of some shape has such an attribute.
    #[cfg(test)]
    pub(super) fn has_domains(&self) -> bool {
        self.domains.is_some()
    }

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
