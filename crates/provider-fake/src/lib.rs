//! A cloud in memory: the kit on a simulated substrate.
//!
//! ```text
//! Knobs ─▶ Substrate (what would a cloud do?) ─▶ FakeBackend ─▶ the kit ─▶ gRPC
//! ```
//!
//! Everything is drawn from one seed. The cloud is slow, reorders, fails, runs out of stock, loses
//! hosts, and lies when listed, each only as far as its [`Knobs`] say.

mod backend;
mod catalogue;
mod knobs;
mod lies;
mod process;
#[cfg(test)]
mod schema;
mod selectors;
mod substrate;

pub use backend::FakeBackend;
pub use catalogue::conventional;
pub use knobs::{Knobs, KnobsRefused, Latency, PerTransition, Stock, duration};
pub use lies::Lies;
pub use process::{FakeRefused, ProviderFakeArgs, Timepiece, run};
pub use substrate::Substrate;
