//! The binary as a process: what it prints, where, and with which exit status.

mod process;

mod bench;
mod decide;
mod help;
