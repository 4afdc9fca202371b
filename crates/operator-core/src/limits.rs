//! Limits: what a message may hold (wire.md has the table), and what the operator keeps at most.
//!
//! A request beyond them is said more loosely before it becomes a row (OP-19); a row beyond them never leaves (OP-23).

/// Rows of a roll-up.
pub(crate) const MOST_ROWS: usize = 100_000;
/// Requirements of a row.
pub(crate) const MOST_REQUIREMENTS: usize = 256;
/// Resources of a request.
pub(crate) const MOST_RESOURCES: usize = 64;
/// Values of a requirement.
pub(crate) const MOST_VALUES: usize = 4_096;
/// Spread constraints of a row.
pub(crate) const MOST_SPREADS: usize = 64;
/// Bytes of a text.
pub(crate) const MOST_TEXT: usize = 4 << 10;
/// Bytes of a group.
pub(crate) const MOST_GROUP: usize = 64 << 10;
/// Bytes of a fingerprint.
pub(crate) const MOST_FINGERPRINT: usize = 256 << 10;
/// Bytes of all values of a request's requirements, so that its fingerprint fits.
pub(crate) const MOST_REQUIREMENT_BYTES: usize = 160 << 10;
