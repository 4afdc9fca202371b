//! Registry: which shards there are, which process speaks for each, and which are gone for good.
//!
//! ```text
//! report of (epoch, directory, process)      row            answer
//!   nothing on record                        ─              row replaced
//!   same directory, higher epoch             ─              row replaced      it was started again
//!   another directory, higher epoch, empty   ─              row replaced      its disk was lost
//!   another directory, higher epoch          from a backup  row replaced      its disk was lost since
//!   the same three                           ─              as usual
//!   anything else                            ─              refused           a second process, or an old one (CO-13)
//! ```
//!
//! An identity outlives the removal of its shard, as does what it holds: a removed shard may still run.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::Time;

use crate::{
    Defect, Identity, Provider, Refused, ShardId,
    limits::{MOST_GONE, MOST_SHARDS},
};

/// A registered shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// Where it can be reached; may be empty.
    pub address: String,
    /// Its provider.
    pub provider: Provider,
    /// When it was first heard of.
    pub registered_at: Time,
}

/// The process on record for a shard, and the provider it had last: what a removed shard still holds counts for that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRow {
    /// The process.
    pub identity: Identity,
    /// Its provider.
    pub provider: Provider,
}

/// What a report's identity means for the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The process on record.
    Same,
    /// A process that takes its place.
    Replaces,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registry {
    shards: BTreeMap<ShardId, ShardRow>,
    identities: BTreeMap<ShardId, IdentityRow>,
    gone: BTreeSet<ShardId>,
}

impl Registry {
    pub(crate) fn shard(&self, shard: &ShardId) -> Option<&ShardRow> {
        self.shards.get(shard)
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = (&ShardId, &ShardRow)> {
        self.shards.iter()
    }

    pub(crate) fn identity(&self, shard: &ShardId) -> Option<Identity> {
        self.identities.get(shard).map(|row| row.identity)
    }

    pub(crate) fn identities(&self) -> impl Iterator<Item = (&ShardId, &IdentityRow)> {
        self.identities.iter()
    }

    pub(crate) fn gone(&self) -> &BTreeSet<ShardId> {
        &self.gone
    }

    pub(crate) fn is_gone(&self, shard: &ShardId) -> bool {
        self.gone.contains(shard)
    }

    /// The provider of a shard, registered or not.
    pub(crate) fn provider(&self, shard: &ShardId) -> Option<&Provider> {
        let registered = self.shards.get(shard).map(|row| &row.provider);
        registered.or_else(|| self.identities.get(shard).map(|row| &row.provider))
    }

    /// The provider of a shard that has reported: no other can hold anything.
    pub(crate) fn reporting(&self, shard: &ShardId) -> Option<&Provider> {
        self.identities.get(shard).map(|row| &row.provider)
    }

    /// Shards of which anything was ever heard and that are not gone, removed ones included.
    pub(crate) fn known(&self) -> BTreeSet<&ShardId> {
        self.shards.keys().chain(self.identities.keys()).collect()
    }

    /// Those of them that have this provider.
    pub(crate) fn on<'a>(&'a self, provider: &'a Provider) -> impl Iterator<Item = &'a ShardId> {
        let here = |shard: &&ShardId| self.provider(shard) == Some(provider);
        self.known().into_iter().filter(here)
    }

    /// CO-13.
    pub(crate) fn judge(
        &self,
        shard: &ShardId,
        said: Identity,
        has_records: bool,
        is_restored: bool,
        defect: Option<Defect>,
    ) -> Result<Standing, Refused> {
        if self.is_gone(shard) {
            return Err(Refused::ShardGone(shard.clone()));
        }
        let Some(IdentityRow { identity: row, .. }) = self.identities.get(shard) else {
            return Ok(Standing::Replaces);
        };
        let other = |why| {
            let (shard, epoch) = (shard.clone(), row.epoch);
            Err(Refused::OtherProcess { shard, epoch, why })
        };
        if *row == said {
            return Ok(Standing::Same);
        }
        if said.epoch < row.epoch && defect != Some(Defect::EpochUnchecked) {
            return other("an earlier start of it");
        }
        if said.epoch == row.epoch && defect != Some(Defect::ProcessUnchecked) {
            return other("both are at work");
        }
        // A row of an earlier version has no directory that could differ, and one from a backup may be older than a disk that
        // was lost since: the later start is the right one.
        let is_certain = row.directory.is_some() && !is_restored;
        if is_certain && row.directory != said.directory {
            if said.directory.is_none() {
                return other("this one does not say which data directory it has");
            }
            if has_records && defect != Some(Defect::DirectoryUnchecked) {
                return other("they have different data directories, and neither is empty");
            }
        }
        Ok(Standing::Replaces)
    }

    /// Registers a shard by name alone.
    pub(crate) fn add(
        &mut self,
        shard: &ShardId,
        address: &str,
        registered_at: Time,
    ) -> Result<(), Refused> {
        if self.shards.contains_key(shard) {
            return Err(Refused::ShardExists(shard.clone()));
        }
        self.check_room(shard)?;
        let row = ShardRow {
            address: address.to_owned(),
            provider: Provider::of(shard, ""),
            registered_at,
        };
        self.shards.insert(shard.clone(), row);
        Ok(())
    }

    /// A process that was judged speaks for a shard from now on; the shard is registered if it is not.
    pub(crate) fn set_identity(
        &mut self,
        shard: &ShardId,
        identity: Identity,
        address: &str,
        provider: &Provider,
        registered_at: Time,
    ) -> Result<bool, Refused> {
        self.check_room(shard)?;
        let known = self.shards.get(shard);
        let address = match known {
            Some(row) if address.is_empty() => row.address.clone(),
            Some(_) | None => address.to_owned(),
        };
        let row = ShardRow {
            address,
            provider: provider.clone(),
            registered_at: known.map_or(registered_at, |row| row.registered_at),
        };
        let said = IdentityRow {
            identity,
            provider: provider.clone(),
        };
        let is_new = known != Some(&row) || self.identities.get(shard) != Some(&said);
        self.shards.insert(shard.clone(), row);
        self.identities.insert(shard.clone(), said);
        Ok(is_new)
    }

    fn check_room(&self, shard: &ShardId) -> Result<(), Refused> {
        if self.is_gone(shard) {
            return Err(Refused::ShardGone(shard.clone()));
        }
        let is_known = self.shards.contains_key(shard) || self.identities.contains_key(shard);
        let known = self.shards.len().max(self.identities.len());
        if !is_known && MOST_SHARDS <= known {
            let (table, most) = ("shards", MOST_SHARDS);
            return Err(Refused::Full { table, most });
        }
        Ok(())
    }

    /// Forgets the row, and nothing else; says whether there was one.
    pub(crate) fn remove(&mut self, shard: &ShardId) -> bool {
        self.shards.remove(shard).is_some()
    }

    /// Whether anything was ever heard of a shard.
    pub(crate) fn is_known(&self, shard: &ShardId) -> bool {
        self.shards.contains_key(shard) || self.identities.contains_key(shard)
    }

    /// No process of it will run again.
    pub(crate) fn set_gone(&mut self, shard: &ShardId) -> Result<(), Refused> {
        if MOST_GONE <= self.gone.len() {
            let (table, most) = ("shards gone for good", MOST_GONE);
            return Err(Refused::Full { table, most });
        }
        self.shards.remove(shard);
        self.identities.remove(shard);
        self.gone.insert(shard.clone());
        Ok(())
    }

    /// Puts back a row of a snapshot.
    pub(crate) fn put(&mut self, shard: ShardId, row: ShardRow) -> bool {
        self.shards.insert(shard, row).is_none()
    }

    /// Puts back a row of a snapshot.
    pub(crate) fn put_identity(&mut self, shard: ShardId, row: IdentityRow) -> bool {
        self.identities.insert(shard, row).is_none()
    }

    /// Puts back a row of a snapshot.
    pub(crate) fn put_gone(&mut self, shard: ShardId) -> bool {
        self.gone.insert(shard)
    }
}
