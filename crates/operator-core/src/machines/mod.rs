//! Machines and Nodes: which is which, and what the shard is told of them.
//!
//! | File | Idea |
//! |---|---|
//! | `registry` | which Node is which machine (OP-29 to OP-31) |
//! | `report` | what changed, what is complete, and when too much changed at once (OP-32, OP-33) |
//! | `upcoming` | the UpcomingNode of each machine (operator.md §8) |
//! | `resync` | what was not named any more (OP-42) |

pub(crate) mod registry;
pub(crate) mod report;
pub(crate) mod resync;
pub(crate) mod upcoming;
