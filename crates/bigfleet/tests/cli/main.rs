//! The binary as a process: what it prints, where, and with which exit status.

mod process;

mod bench;
mod bench_coordinator;
mod bench_operator;
mod bench_shard;
mod decide;
mod help;
mod usage;
