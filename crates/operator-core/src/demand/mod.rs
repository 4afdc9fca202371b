//! Demand: what a cluster asks for, from its CapacityRequests to the rows of a roll-up.
//!
//! | File | Idea |
//! |---|---|
//! | `request` | what one request adds, whatever somebody wrote into it |
//! | `gang` | which requests belong together |
//! | `class` | units of about the same size, and how large a vector is |
//! | `ledger` | counts per row and unit; the roll-up |
//! | `overhead` | what DaemonSets take of every machine |
//! | `guard` | a store that lost its requests |
//! | `pace` | when a roll-up is due |
//! | `answers` | which roll-up the shard has answered, and when it is taken for dead |

pub(crate) mod answers;
pub(crate) mod class;
pub(crate) mod gang;
pub(crate) mod guard;
pub(crate) mod ledger;
pub(crate) mod overhead;
pub(crate) mod pace;
pub(crate) mod request;

pub use request::Degraded;

use crate::objects::{Owner, RequestFacts, RequestStatus};
use bigfleet_model::{Amounts, Time};
use request::RowKey;
use std::sync::Arc;

/// What is kept of a request (OP-7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptRequest {
    pub(crate) row: Arc<RowKey>,
    pub(crate) unit: Amounts,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) created: Time,
    pub(crate) owner: Option<Owner>,
    pub(crate) status: Option<RequestStatus>,
}

impl KeptRequest {
    pub(crate) fn new(facts: RequestFacts, row: Arc<RowKey>, unit: Amounts) -> Self {
        Self {
            row,
            unit,
            uid: facts.uid,
            generation: facts.generation,
            created: facts.created,
            owner: facts.owner,
            status: facts.status,
        }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.acknowledged_at.is_some())
    }

    /// Whether it asks for the same as the other, and is the same.
    pub(crate) fn asks_as(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation
    }
}
