//! Ages: since when Needs have not been served in full, beside the records (SV-3).
//!
//! An age decides nothing, so it waits for no write of its own: it is in the commit of whatever is written next.

use bigfleet_model::{ClusterId, Fingerprint, Group, NeedKey, Time};
use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, TableHandle, WriteTransaction};

use super::{format, has, text};

/// Cluster, fingerprint, group; unix seconds.
const LACKING: TableDefinition<'static, (&str, &str, &str), f64> = TableDefinition::new("lacking");

/// Since when a Need lacks something; `None` once it does not.
pub(crate) type Age = (NeedKey, Option<Time>);

/// All that are on disk. The table came later than the others, under the same number.
pub(super) fn read(read: &ReadTransaction) -> Result<Vec<(NeedKey, Time)>, String> {
    if !has(read, LACKING.name())? {
        return Ok(Vec::new());
    }
    let table = read.open_table(LACKING).map_err(text)?;
    let entries = table.iter().map_err(text)?;
    let ages = entries.map(|entry| {
        let (key, since) = entry.map_err(text)?;
        let (cluster, fingerprint, group) = key.value();
        let need = NeedKey {
            cluster: ClusterId::new(cluster).map_err(text)?,
            fingerprint: Fingerprint::new(fingerprint),
            group: Group::new(group),
        };
        Ok((need, format::moment(since.value())?))
    });
    ages.collect()
}

/// Puts them into a commit.
pub(super) fn put(write: &WriteTransaction, ages: &[Age]) -> Result<(), redb::Error> {
    if ages.is_empty() {
        return Ok(());
    }
    let mut table: Table<'_, (&str, &str, &str), f64> = write.open_table(LACKING)?;
    for (need, since) in ages {
        let print = need.fingerprint.as_str();
        let key = (need.cluster.as_str(), print, need.group.as_str());
        match since {
            Some(since) => drop(table.insert(key, format::seconds(*since))?),
            None => drop(table.remove(key)?),
        }
    }
    Ok(())
}
