//! Holdings on disk: scope, domains, exceptions, transfers, shards that are gone; and that another process took over (CO-53).
//!
//! Tables of a later version than the others. A file has format 2 from the first of these on: a version that does not know them
//! would act on machines that are somebody else's.

use bigfleet_shard_core::{Domain, HeldDomain, HeldScope, Record};
use redb::{
    ReadTransaction, ReadableTable, ReadableTableMetadata, Table, TableDefinition, TableHandle,
    WriteTransaction,
};

use super::format::{self, Value};
use super::{DOMAINS, META, each, has, mark, text};

/// The format of a file that has any of this.
pub(super) const FORMAT: u64 = 2;

const DOMAINS_HELD: TableDefinition<'static, (&str, &str), &[u8]> =
    TableDefinition::new("held-domains");
const EXCEPTIONS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("exceptions");
const TRANSFERS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("transfers");
const GONE: TableDefinition<'static, &str, ()> = TableDefinition::new("gone-shards");

const SCOPE_KEY: &str = "scope";
const SUPERSEDED_KEY: &str = "superseded";

/// Numbers of this format; never changed, never used again.
const SCOPES: [(HeldScope, u64); 4] = [
    (HeldScope::Unsaid, 1),
    (HeldScope::Everything, 2),
    (HeldScope::EverythingLeaving, 3),
    (HeldScope::Assigned, 4),
];

/// Whether a record is one of these.
pub(super) fn is_one(record: &Record) -> bool {
    matches!(
        record,
        Record::Scope(_)
            | Record::Domain { .. }
            | Record::Exception { .. }
            | Record::Transfer { .. }
            | Record::GoneShard(_)
            | Record::Superseded
    )
}

/// All that is on disk.
pub(super) fn read(read: &ReadTransaction) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let meta = read.open_table(META).map_err(text)?;
    if let Some(number) = meta.get(SCOPE_KEY).map_err(text)? {
        let number = number.value();
        let scope = SCOPES.iter().find(|(_, known)| *known == number);
        let (scope, _) = scope.ok_or(format!("{number} is the number of no scope"))?;
        records.push(Record::Scope(*scope));
    }
    let superseded = meta.get(SUPERSEDED_KEY).map_err(text)?;
    records.extend(superseded.map(|_| Record::Superseded));
    if has(read, DOMAINS_HELD.name())? {
        each(read, DOMAINS_HELD, &mut records, format::held_domain)?;
    }
    if has(read, EXCEPTIONS.name())? {
        each(read, EXCEPTIONS, &mut records, format::exception)?;
    }
    if has(read, TRANSFERS.name())? {
        each(read, TRANSFERS, &mut records, format::transfer)?;
    }
    if has(read, GONE.name())? {
        each(read, GONE, &mut records, |shard, ()| {
            Ok(Record::GoneShard(shard.to_owned()))
        })?;
    }
    Ok(records)
}

/// Puts one of these records into a commit.
pub(super) fn put(
    write: &WriteTransaction,
    meta: &mut Table<'_, &'static str, u64>,
    record: &Record,
) -> Result<(), redb::Error> {
    match record {
        Record::Scope(scope) => {
            let number = SCOPES.iter().find(|(known, _)| known == scope);
            meta.insert(SCOPE_KEY, number.map_or(0, |(_, number)| *number))?;
        }
        Record::Superseded => drop(meta.insert(SUPERSEDED_KEY, 1)?),
        Record::Domain { domain, held } => {
            let mut table = write.open_table(DOMAINS_HELD)?;
            let key = (domain.key.as_str(), domain.value.as_str());
            match held {
                Some(held) => {
                    let value = Value::of_held_domain(*held).seal();
                    table.insert(key, value.as_slice())?;
                }
                None => drop(table.remove(key)?),
            }
        }
        Record::Exception { machine, exception } => {
            let value = exception.as_deref().map(Value::of_exception);
            replace(&mut write.open_table(EXCEPTIONS)?, machine.as_str(), value)?;
        }
        Record::Transfer { id, transfer } => {
            let value = transfer.as_deref().map(Value::of_transfer);
            replace(&mut write.open_table(TRANSFERS)?, id, value)?;
        }
        Record::GoneShard(shard) => mark(&mut write.open_table(GONE)?, shard, true)?,
        _ => {}
    }
    Ok(())
}

fn replace(
    table: &mut Table<'_, &'static str, &'static [u8]>,
    key: &str,
    value: Option<Value>,
) -> Result<(), redb::Error> {
    match value {
        Some(value) => drop(table.insert(key, value.seal().as_slice())?),
        None => drop(table.remove(key)?),
    }
    Ok(())
}

/// Takes over what an earlier version wrote of domains: one that was ever assigned any held those, and nothing else.
pub(super) fn take_over(
    write: &WriteTransaction,
    meta: &mut Table<'_, &'static str, u64>,
) -> Result<bool, redb::Error> {
    let mut earlier = write.open_table(DOMAINS)?;
    if meta.get(SCOPE_KEY)?.is_some() || earlier.is_empty()? {
        return Ok(false);
    }
    let mut held = Vec::new();
    for entry in earlier.iter()? {
        let (key, assigned) = entry?;
        let (key, value) = key.value();
        let (key, value) = (key.to_owned(), value.to_owned());
        if assigned.value() {
            held.push(Domain { key, value });
        }
    }
    earlier.retain(|_, _| false)?;
    drop(earlier);
    put(write, meta, &Record::Scope(HeldScope::Assigned))?;
    for domain in held {
        let held = Some(HeldDomain::default());
        put(write, meta, &Record::Domain { domain, held })?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
