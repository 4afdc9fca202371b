//! `bigfleet up` as a person or a script runs it: the binary, its output, its end.

mod process;

mod refused;
mod runs;
mod tour;
