//! The wire: generated messages of `bigfleet.v1alpha1`, and the checked conversions to and from the
//! model.
//!
//! ```text
//! bytes ── prost ──▶ message ── check ──▶ model value        one bad row refuses a whole roll-up;
//!                                  └────▶ typed refusal      one bad machine refuses itself alone
//! ```
//!
//! A conversion takes a message and returns a value or a refusal; it changes nothing else, so
//! whatever was accepted before stays in force. A refusal names the field, the value (cut and
//! escaped, since a peer chose it) and the rule. Unknown fields are never a reason to refuse.
//!
//! Writing cannot fail: every model value has a message.

/// The generated messages, clients and servers; `proto/` is their documentation.
pub mod v1alpha1 {
    #![expect(
        clippy::large_enum_variant,
        reason = "a frame is built, encoded and dropped"
    )]
    tonic::include_proto!("bigfleet.v1alpha1");
}

/// The encoded descriptors of all five files, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

pub mod limits;

mod frame;
mod hello;

mod amounts;
mod need;
mod rollup;
mod shapes;

mod fields;
mod listing;
mod machine;
mod names;
mod record;
mod shown;

mod blob;
mod report;

mod verdict;

pub use blob::{Blob, BlobAnswer, BlobRefused, check_metadata};
pub use fields::Unreadable;
pub use frame::{EmptyFrame, Frame};
pub use hello::{Feature, Greeting, HelloRefused, PROTOCOL_VERSION, is_portable_id};
pub use limits::OverLimit;
pub use listing::{Ack, AckRefused, Listing, RefusedRecord};
pub use record::{Alike, Record, RecordProblem, Warning};
pub use report::{DrainProgress, NodeSighting, NodeSightings, ReportRefused};
pub use rollup::{RefusedRow, Rollup, RollupRefused, RowProblem};
pub use verdict::{reason_for, unix_nanos};
