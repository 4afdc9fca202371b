//! An operator from a script: a real session over gRPC, with somebody else's idea of what to answer.
//!
//! ```text
//! Session ══ frames ══▶ shard      connects, says the first words, sends and receives
//!    └─ run(Script) ─▶ Running     a task: every frame goes to the script, which may answer
//! Operator = Session + Recorder    what tests use: answers in a Manner, remembers what it heard
//! ```
//!
//! The operator of a cluster is `bigfleet-operator`, and needs one. Whatever needs somebody at the other end of a
//! session without a cluster takes it from here, so that a change of the session is made in one place.

mod manner;
mod operator;
mod session;

pub use manner::{Manner, NO_BLOB, blob, hello};
pub use operator::{Heard, NotHeard, Operator};
pub use session::{Running, Script, Session};
