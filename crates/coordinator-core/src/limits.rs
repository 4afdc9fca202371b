//! Limits: how much of everything there may be. Whatever a peer can make grow has its bound here.

use std::time::Duration;

/// Shards on record, removed ones included. A fleet of a hundred million machines has about 200.
pub(crate) const MOST_SHARDS: usize = 4_096;
/// Shards that are gone for good; every answer names them.
pub(crate) const MOST_GONE: usize = 4_096;
/// Clusters on record.
pub(crate) const MOST_CLUSTERS: usize = 200_000;
/// Domains on record.
pub(crate) const MOST_DOMAINS: usize = 500_000;
/// Machines on record that do not follow their domain.
pub(crate) const MOST_ROWS: usize = 200_000;
/// Transfers on record.
pub(crate) const MOST_TRANSFERS: usize = 65_536;
/// Machines in one transfer.
pub(crate) const MOST_MOVED: usize = 50;
/// Transfer records a shard may have open.
pub(crate) const MOST_RECORDS: usize = 64;
/// Commands in one entry of the log.
pub(crate) const MOST_COMMANDS: usize = 10_000;

/// Shortfalls in a report.
pub(crate) const MOST_SHORTFALLS: usize = 100;
/// Requirements of one shortfall.
pub(crate) const MOST_REQUIREMENTS: usize = 256;
/// Values of one requirement.
pub(crate) const MOST_VALUES: usize = 1_024;
/// Pools in a report.
pub(crate) const MOST_POOLS: usize = 64;
/// Instance types, and zones, that a report counts.
pub(crate) const MOST_COUNTED: usize = 10_000;
/// Acks in a report: as many as a shard keeps.
pub(crate) const MOST_ACKS: usize = 4_096;
/// Clusters in a report.
pub(crate) const MOST_SERVED: usize = 20_000;
/// Domains in a report.
pub(crate) const MOST_HELD: usize = 200_000;
/// Exceptions in a report.
pub(crate) const MOST_EXCEPTIONS: usize = MOST_ROWS;
/// Capabilities in a report.
pub(crate) const MOST_CAPABILITIES: usize = 64;
/// Bytes of an address, and of any other text that is no id.
pub(crate) const MOST_TEXT_BYTES: usize = 4_096;

/// Instructions in one answer (CO-23).
pub(crate) const MOST_INSTRUCTIONS: usize = 256;
/// Reports for which an instruction that failed is not derived again (CO-23).
pub(crate) const REPORTS_AFTER_FAILURE: u32 = 3;
/// How far above the reign a mark may be and still be believed (CO-12).
pub(crate) const MOST_ABOVE_REIGN: u64 = 1 << 32;
/// The highest reign there is: one more than a mark may be, and still a number of the wire.
pub(crate) const HIGHEST_REIGN: u64 = i64::MAX as u64;
/// How much a restore raises the reign, unless it is told otherwise (CO-46).
pub const TERM_BUMP: u64 = 1 << 20;

/// How long a shard must be silent to be called gone (CO-52).
pub(crate) const SILENT_FOR: Duration = Duration::from_secs(600);
/// When the next report is wanted of a shard that is in the middle of something (CO-22).
pub(crate) const SOON: Duration = Duration::from_secs(1);
