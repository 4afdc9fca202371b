//! A cloud in memory: the kit on a simulated substrate.
//!
//! ```text
//! Knobs ─▶ Substrate (what would a cloud do?) ──┬─▶ FakeCloud: a value under a virtual clock
//!                                               └─▶ FakeBackend: real time, behind gRPC
//! ```
//!
//! Everything is drawn from one seed, so a run under the virtual clock is the same run every time.
//! It is slow, reorders, fails, runs out of stock, loses hosts, and lies when listed, each only as
//! far as its [`Knobs`] say.

mod catalogue;
mod cloud;
mod knobs;
mod lies;
mod random;
mod selectors;
mod substrate;

#[cfg(feature = "serve")]
mod backend;
#[cfg(feature = "serve")]
mod process;

#[cfg(feature = "serve")]
pub use backend::FakeBackend;
#[cfg(feature = "serve")]
pub use catalogue::{Offering, OfferingsRefused, offerings};
pub use catalogue::{bare_metal, conventional, create_faults};
pub use cloud::{CallFailed, FakeCloud};
pub use knobs::{ByKind, Knobs, KnobsRefused, Latency, Stock, duration};
pub use lies::Lies;
#[cfg(feature = "serve")]
pub use process::{FakeRefused, ProviderFakeArgs, Timepiece, backend, run, settings};
pub use random::Random;
pub use selectors::{CREATE_FAULT_LABEL, Selector};
pub use substrate::{End, Plan, Substrate};
