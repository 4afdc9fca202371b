//! A shard as a process, between a scripted operator and `bigfleet provider fake` behind a ledger.
//!
//! ```text
//! Operator ══ Session ══▶ bigfleet shard ──▶ Ledger (in the test) ──▶ bigfleet provider fake
//!                             ▲ killed, started again               every mutation written down
//! ```

#![allow(
    dead_code,
    unused_imports,
    reason = "not every test that shares this file uses all of it"
)]

pub(crate) mod ledger;
pub(crate) mod operator;
pub(crate) mod plain;
#[path = "../processes/mod.rs"]
mod processes;
pub(crate) mod scene;

use std::net::SocketAddr;
use std::path::Path;

pub(crate) use processes::{Folder, Process, WITHIN, provider, until};

/// A shard with quick cycles and no rail that would slow a test down.
pub(crate) fn shard_flags(data: &Path, provider: SocketAddr) -> Vec<String> {
    vec![
        "--listen=127.0.0.1:0".to_owned(),
        "--metrics-addr=127.0.0.1:0".to_owned(),
        "--id=s1".to_owned(),
        "--cycle-interval=200ms".to_owned(),
        "--reclaim-cap-fraction=0".to_owned(),
        format!("--data-dir={}", data.display()),
        format!("--provider-addr={provider}"),
        format!("--audit-log={}", data.with_extension("audit").display()),
    ]
}

/// A shard with these flags as well; one that is usual gives way to the same one given here.
pub(crate) fn shard(data: &Path, provider: SocketAddr, more: &[&str]) -> Process {
    let name = |flag: &str| flag.split('=').next().unwrap().to_owned();
    let given: Vec<String> = more.iter().map(|flag| name(flag)).collect();
    let mut flags = shard_flags(data, provider);
    flags.retain(|flag| !given.contains(&name(flag)));
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    Process::start(&["shard"], &flags)
}
