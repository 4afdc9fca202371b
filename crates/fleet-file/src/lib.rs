//! The fleet file: the engine's input and output as text (`docs/spec/fleet-file.md`).
//!
//! ```
//! use bigfleet_fleet_file::{Format, read, write};
//!
//! let text = r#"{"machines": [{"id": "m1", "state": "Speculative", "price_per_hour": 1}]}"#;
//! let fleet = read(text.as_bytes(), Format::Json).unwrap().fleet;
//! assert_eq!(read(write(&fleet).as_bytes(), Format::Json).unwrap().fleet, fleet);
//!
//! let text = r#"{"machines": [{"id": "m1", "state": "Idle", "price_per_hour": -1, "prize": 2}]}"#;
//! assert_eq!(
//!     read(text.as_bytes(), Format::Json).unwrap_err().to_string(),
//!     "machines[0]: machine \"m1\": prize: is not a known key\n\
//!      machines[0]: machine \"m1\": state Idle needs a host (ST-5)\n\
//!      machines[0]: machine \"m1\": price_per_hour -1 is not a finite non-negative number (ST-5)"
//! );
//! ```
//!
//! A file is read whole or not at all. Nothing here opens one: bytes come in, text goes out.

mod moment;
mod node;
mod patch;
mod problem;

mod cluster;
mod fields;
mod machine;
mod read;

mod decision;
mod lines;
mod write;

/// For other files of ours: a document as it was written, taken apart key by key, with all problems noted.
pub mod document {
    pub use crate::fields::Fields;
    pub use crate::node::{Node, node};
}

pub use decision::{decision_json, decision_yaml};
pub use fields::MAX_TEXT_BYTES;
pub use patch::patch;
pub use problem::{FilePart, MAX_PROBLEMS, Problem, Refused};
pub use read::{Format, Loaded, MAX_FILE_BYTES, read};
pub use write::write;
