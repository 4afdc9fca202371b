//! The everyday verbs and the live view: what a running shard says, for people and for scripts.
//!
//! ```text
//!              ┌─▶ get · describe · explain · status ──▶ table, wide, json, yaml, csv, name, paths
//! Client ──────┼─▶ pause · resume · retire · release · drain · export · watch · wait
//!  (ShardRead, └─▶ live view: poll ──▶ Screen ──▶ drawn       keys ──▶ Screen ──▶ requests
//!   ShardAdmin)
//! CoordinatorClient ─▶ the replica that leads ─▶ shards, domains, replicas, reports; assign · move · remove
//! ```
//!
//! Nothing here decides or remembers: what is printed is what a shard answered, and what cannot be
//! done ends in a [`CtlError`] that says what to do next. Text from the wire is escaped before a
//! terminal sees it.

pub mod address;
pub mod audit;
pub mod config;
pub mod live;
pub mod text;
pub mod when;

mod client;
mod coordinator;
mod enum_names;
mod error;
mod own_file;

mod listable;
mod record;
mod select;

#[cfg(feature = "flags")]
mod form_parser;
mod json_path;
mod output;
mod table_text;

mod describe;
mod drain;
mod events;
mod explain;
mod export;
mod get;
mod pause_resume;
mod retire_release;
mod status;
mod steered;
mod watch;
mod why;

pub use client::{Client, USUAL_TIMEOUT};
pub use coordinator::{
    ChangesRefused, CoordinatorClient, DomainChanges, SnapshotPiece, SteeredCoordinator,
    USUAL_COORDINATOR, change_domains, remove_replica, remove_shard, remove_shard_question,
    transfer_leader,
};
pub use describe::{Described, describe};
pub use drain::{DrainDeadline, DrainOrder, drain, drain_question, undrain};
pub use error::CtlError;
pub use explain::{explain, explain_decided};
pub use export::export;
pub use get::{Resource, Selection, SortKey, get};
pub use json_path::{Path, PathRefused, Template};
pub use output::{Answer, Form, FormRefused, Style, answer_of, document};
pub use pause_resume::{PauseTarget, pause, resume};
pub use retire_release::{release, retire};
pub use select::{Selector, SelectorRefused};
pub use status::{ProblemRecord, Status, status, versions};
pub use steered::SteeredShard;
pub use watch::{Awaited, wait, watch};
pub use why::{NeedAnswer, PodAnswer, PodQuestion, why};
