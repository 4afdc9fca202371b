//! The network side of every process: who is calling, over what, and how it all ends.
//!
//! ```text
//! listen ─▶ accept ─▶ TLS 1.3, or plaintext ─▶ Caller ─▶ gRPC handlers      Tls: three files,
//! dial   ─▶ connect ─▶ TLS 1.3, or plaintext ─▶ Channel                     reread as they change
//! probes ─▶ /healthz /readyz /metrics
//! ```
//!
//! The shard, the coordinator, the operator and every provider use this code, so a certificate that
//! works at one edge works at all of them. Nothing here knows what is being said.

mod identity;

mod answered;
mod caller;
#[cfg(any(test, feature = "certs"))]
pub mod certs;
mod dial;
mod ending;
mod exposure;
mod grpc;
mod listen;
mod log_budget;
mod logs;
mod probes;
mod tls;
mod tls_problem;
mod turns;

#[cfg(feature = "flags")]
mod flags;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use answered::{answered, connection_error, unready};
pub use caller::Caller;
pub use dial::{Dial, DialRefused};
pub use ending::asked_to_end;
pub use exposure::{Exposed, check_exposure, is_loopback};
#[cfg(feature = "flags")]
pub use flags::{LogFlags, ServingFlags, TlsFlags};
pub use grpc::{Limits, MAX_MESSAGE_BYTES, Serving, serve};
pub use identity::{Identity, IdentityRefused};
pub use listen::{ListenRefused, listen};
pub use log_budget::LogBudget;
pub use logs::{LogFormat, LogsRefused, start as start_logs};
pub use probes::{Answer, Probes};
pub use tls::{Tls, TlsCounts, TlsFiles, TlsRefused};
pub use tls_problem::TlsProblem;
pub use turns::TurnChannel;

/// An error and everything that led to it, in one line: for the edge, which prints it once.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some libraries repeat their source in their own text.
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
