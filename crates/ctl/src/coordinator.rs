//! Coordinator: which shard has which part of the fleet, asked of whichever replica leads.
//!
//! ```text
//! addresses ─▶ one that leads answers
//!           └▶ one that does not names who does ─▶ that one next ─▶ the others, each once ─▶ again while they elect
//! ```
//!
//! A change is sent again only if it surely was not taken: the connection was never made, or the replica said that it does
//! not lead.

mod client;
mod describe;
mod lists;
mod replicas;
mod steer;

pub use client::{CoordinatorClient, SnapshotPiece, USUAL_COORDINATOR};
pub(crate) use describe::describe_shard;
pub(crate) use lists::{CoordinatorSource, ownership};
pub use replicas::{remove_replica, transfer_leader};
pub use steer::{
    ChangesRefused, DomainChanges, SteeredCoordinator, change_domains, remove_shard,
    remove_shard_question,
};
