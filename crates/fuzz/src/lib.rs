//! Three engines, one answer: on every step of histories that nobody would think of.

mod wander;

pub use wander::wander;
