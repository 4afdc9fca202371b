//! Seeded numbers: everything here that is drawn is drawn from a seed, and can be drawn again.
//!
//! ```text
//! seed ──────────────▶ Prng    SplitMix64: runs, histories, faults, tests
//! (seed, number) ────▶ Stream  xoshiro256**: the published workloads
//! ```
//!
//! There are two because the bytes of both are pinned: the simulator's digests to the first, the
//! workloads that every measurement names to the second. New code takes [`Prng`].

mod prng;
mod stream;

pub use prng::Prng;
pub use stream::Stream;
