//! `bigfleet up` as a person or a script runs it: the binary, its output, its end.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]

mod process;

mod maintenance;
mod refused;
mod runs;
mod screen;
mod tour;
