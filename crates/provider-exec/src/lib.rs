//! A provider whose hands are programs: what a platform team can script, it can offer as machines.
//!
//! ```text
//! shard ══ gRPC ══▶ the kit ── create, configure, drain, delete ──▶ one run of a program each
//!                                   JSON on standard input ──▶ │ program │ ──▶ JSON on standard output
//! ```
//!
//! The kit keeps the contract; [`ExecBackend`] finds the right program, and `run` is one run
//! of it: bounded in time, in number and in what it may print, and ended with everything it started in
//! its process group. Bootstrap data goes over standard input only.

mod answers;
mod backend;
mod check;
mod config;
mod ending;
mod hands;
mod process;
mod question;
mod slots;

pub use answers::{Described, HostNames, Priced};
pub use backend::ExecBackend;
pub use check::{CheckFailed, ExecCheckArgs, check};
pub use config::{Config, ConfigRefused, Offering, Program, ProgramKind, Supply};
pub use hands::Hands;
pub use process::{ExecInstead, ExecRefused, ProviderExecArgs, run};
pub use slots::Slots;
