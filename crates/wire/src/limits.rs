//! Limits: how much one message may hold, so that a hostile peer can neither fill memory nor make
//! something that no provider accepts later.
//!
//! Each is far above what a real fleet sends. What is over a limit is refused, never cut, with one
//! exception: the text of a failure, since refusing it would hide the failure.

/// Bytes a server or client of ours accepts in one message; most libraries stop at 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// Bytes of a whole `ConfigureRequest`: what deployed providers receive.
pub const MAX_CONFIGURE_BYTES: usize = 4 << 20;
/// Bytes of node user data. With the metadata it leaves 512 KiB of a `ConfigureRequest` free.
pub const MAX_BLOB_BYTES: usize = 3 << 20;
/// Bytes of all keys and values of the metadata a shard writes.
pub const MAX_METADATA_BYTES: usize = 512 << 10;

/// Rows of a roll-up. A whole shard is sized for half as many.
pub const MAX_ROWS: usize = 100_000;
/// Requirements of a row.
pub const MAX_REQUIREMENTS: usize = 256;
/// Values of a requirement; the longest real list is every instance type of a cloud.
pub const MAX_VALUES: usize = 4096;
/// Spread constraints of a row.
pub const MAX_SPREADS: usize = 64;
/// Dimensions of a resource vector.
pub const MAX_RESOURCES: usize = 256;
/// Bytes of a row's group: a label selector in full.
pub const MAX_GROUP_BYTES: usize = 64 << 10;
/// Bytes of a row's fingerprint. With the group it fits the metadata, where both are persisted.
pub const MAX_FINGERPRINT_BYTES: usize = 256 << 10;

/// Labels of a machine.
pub const MAX_LABELS: usize = 1024;
/// Bytes of a label, a requirement's key or value, a type, a zone, a host.
pub const MAX_TEXT_BYTES: usize = 4096;
/// Bytes kept of a failure's text; the rest is cut.
pub const MAX_ERROR_BYTES: usize = 16 << 10;
/// Nodes of a node report.
pub const MAX_NODES: usize = 100_000;
/// Features a peer may list.
pub const MAX_FEATURES: usize = 256;

/// Problems named in one refusal; the others are counted.
pub const MAX_PROBLEMS: usize = 16;

/// A field holds more than it may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {found} {unit}, more than the {limit} allowed (wire 8.1)")]
pub struct OverLimit {
    /// Which field.
    pub field: &'static str,
    /// How many it has.
    pub found: usize,
    /// Of what.
    pub unit: &'static str,
    /// How many it may have.
    pub limit: usize,
}

/// Refuses more than `limit` entries.
pub(crate) fn check_count(
    field: &'static str,
    found: usize,
    limit: usize,
) -> Result<(), OverLimit> {
    check(field, found, "entries", limit)
}

/// Refuses more than `limit` bytes.
pub(crate) fn check_bytes(
    field: &'static str,
    found: usize,
    limit: usize,
) -> Result<(), OverLimit> {
    check(field, found, "bytes", limit)
}

/// Refuses a text of more than [`MAX_TEXT_BYTES`].
pub(crate) fn check_text(field: &'static str, text: &str) -> Result<(), OverLimit> {
    check_bytes(field, text.len(), MAX_TEXT_BYTES)
}

fn check(
    field: &'static str,
    found: usize,
    unit: &'static str,
    limit: usize,
) -> Result<(), OverLimit> {
    if found <= limit {
        return Ok(());
    }
    Err(OverLimit {
        field,
        found,
        unit,
        limit,
    })
}

const _: () = assert!(MAX_BLOB_BYTES + MAX_METADATA_BYTES < MAX_CONFIGURE_BYTES);
const _: () = assert!(MAX_FINGERPRINT_BYTES + MAX_GROUP_BYTES < MAX_METADATA_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(check_text("zone", &"z".repeat(MAX_TEXT_BYTES)), Ok(()));
        let refused = check_text("zone", &"z".repeat(MAX_TEXT_BYTES + 1)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "zone has 4097 bytes, more than the 4096 allowed (wire 8.1)"
        );
    }
}
