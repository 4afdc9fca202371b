//! Domains: who shall have each, and who has it.
//!
//! ```text
//! admin ──▶ desired          what is wanted
//! reports ─▶ holder          what a shard may act on; nobody else is given it before that shard said it let go
//!            everything      a shard that has all unbound machines of its provider
//! ```
//!
//! Only a row with a desired shard or a holder exists. Two indexes, by desired shard and by holder, follow every change, so
//! that a report costs what its own shard has, not what the fleet has.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Domain, Provider, ShardId};

/// Who shall have a domain, and who has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainRow {
    /// Who shall have it.
    pub desired: Option<ShardId>,
    /// Who has it.
    pub holder: Option<ShardId>,
}

impl DomainRow {
    fn is_empty(&self) -> bool {
        self.desired.is_none() && self.holder.is_none()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    rows: BTreeMap<Domain, DomainRow>,
    desired_by: BTreeMap<ShardId, BTreeSet<Domain>>,
    held_by: BTreeMap<ShardId, BTreeSet<Domain>>,
    everything: BTreeMap<Provider, ShardId>,
}

static NONE: BTreeSet<Domain> = BTreeSet::new();

impl Domains {
    pub(crate) fn row(&self, domain: &Domain) -> Option<&DomainRow> {
        self.rows.get(domain)
    }

    pub(crate) fn desired(&self, domain: &Domain) -> Option<&ShardId> {
        self.rows.get(domain)?.desired.as_ref()
    }

    pub(crate) fn holder(&self, domain: &Domain) -> Option<&ShardId> {
        self.rows.get(domain)?.holder.as_ref()
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (&Domain, &DomainRow)> {
        self.rows.iter()
    }

    /// The domains a shard shall have.
    pub(crate) fn desired_by(&self, shard: &ShardId) -> &BTreeSet<Domain> {
        self.desired_by.get(shard).unwrap_or(&NONE)
    }

    /// The domains a shard has.
    pub(crate) fn held_by(&self, shard: &ShardId) -> &BTreeSet<Domain> {
        self.held_by.get(shard).unwrap_or(&NONE)
    }

    /// Who has everything of a provider.
    pub(crate) fn everything(&self, provider: &Provider) -> Option<&ShardId> {
        self.everything.get(provider)
    }

    pub(crate) fn all_everything(&self) -> impl Iterator<Item = (&Provider, &ShardId)> {
        self.everything.iter()
    }

    /// The first and the last domain in which one of these shards has a part.
    pub(crate) fn ends<'a>(
        &'a self,
        shards: impl Iterator<Item = &'a ShardId>,
    ) -> Option<(&'a Domain, &'a Domain)> {
        let sets = shards.flat_map(|shard| [self.desired_by(shard), self.held_by(shard)]);
        let ends = sets.filter_map(|set| Some((set.first()?, set.last()?)));
        ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// Writes a row; an empty one is deleted.
    pub(crate) fn set(&mut self, domain: &Domain, row: DomainRow) {
        let before = self.rows.remove(domain).unwrap_or_default();
        point(
            &mut self.desired_by,
            domain,
            before.desired,
            row.desired.as_ref(),
        );
        point(
            &mut self.held_by,
            domain,
            before.holder,
            row.holder.as_ref(),
        );
        if !row.is_empty() {
            self.rows.insert(domain.clone(), row);
        }
    }

    pub(crate) fn set_desired(&mut self, domain: &Domain, desired: Option<ShardId>) {
        let holder = self.holder(domain).cloned();
        self.set(domain, DomainRow { desired, holder });
    }

    pub(crate) fn set_everything(&mut self, provider: &Provider, holder: Option<ShardId>) {
        match holder {
            Some(holder) => self.everything.insert(provider.clone(), holder),
            None => self.everything.remove(provider),
        };
    }
}

fn point(
    index: &mut BTreeMap<ShardId, BTreeSet<Domain>>,
    domain: &Domain,
    before: Option<ShardId>,
    after: Option<&ShardId>,
) {
    if before.as_ref() == after {
        return;
    }
    if let Some(shard) = before
        && let Some(domains) = index.get_mut(&shard)
    {
        domains.remove(domain);
        if domains.is_empty() {
            index.remove(&shard);
        }
    }
    if let Some(shard) = after {
        let domains = index.entry(shard.clone()).or_default();
        domains.insert(domain.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_follow_the_rows() {
        let shard = |id| ShardId::new(id).unwrap();
        let domain = |text| Domain::parse(text).unwrap();
        let mut domains = Domains::default();
        domains.set_desired(&domain("z=a"), Some(shard("s1")));
        let row = DomainRow {
            desired: Some(shard("s2")),
            holder: Some(shard("s1")),
        };
        domains.set(&domain("z=a"), row);
        domains.set_desired(&domain("y=b"), Some(shard("s2")));
        assert_eq!(domains.desired_by(&shard("s1")).len(), 0);
        assert_eq!(domains.desired_by(&shard("s2")).len(), 2);
        assert_eq!(domains.held_by(&shard("s1")).len(), 1);
        let both = [shard("s1"), shard("s2")];
        let ends = domains.ends(both.iter()).unwrap();
        assert_eq!(ends, (&domain("y=b"), &domain("z=a")));
        domains.set(&domain("z=a"), DomainRow::default());
        domains.set_desired(&domain("y=b"), None);
        assert_eq!(domains, Domains::default(), "nothing is left behind");
    }
}
