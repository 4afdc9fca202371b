//! Trouble on purpose, for tests: the process ends at a named moment, a task panics, the store forgets.
//!
//! Only a build with the feature `test-switches` has it. Every other build has the same calls, and they do
//! nothing.

#[cfg(not(any(test, feature = "test-switches")))]
mod never;
#[cfg(any(test, feature = "test-switches"))]
mod on_request;

#[cfg(not(any(test, feature = "test-switches")))]
use never as built;
#[cfg(any(test, feature = "test-switches"))]
use on_request as built;

pub(crate) use built::Call;
pub use built::Trouble;
