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

/// What a peer answered, or why it did not, in one line that is fit to be shown to people: the words of a
/// [`tonic::Status`] itself are meant for whoever debugs it.
pub fn answered(status: &tonic::Status) -> String {
    let code = status.code().description();
    let mut text = match identity::shown(status.message()) {
        message if message.is_empty() => code.to_owned(),
        message => message,
    };
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let next = identity::shown(&error.to_string());
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown has no words that only a debugger needs, and a peer's own are on one line.
    #[tokio::test]
    async fn what_a_peer_answered_is_said_in_words() {
        let answer = tonic::Status::unavailable("no\nstock");
        assert_eq!(answered(&answer), "no\\nstock");
        let silent = tonic::Status::new(tonic::Code::Unavailable, "");
        assert_eq!(answered(&silent), "The service is currently unavailable");
        let channel = Dial::unknown(None).channel("127.0.0.1:1").unwrap();
        let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        let text = answered(&client.check(asked).await.unwrap_err());
        assert!(text.contains("refused"), "{text}");
        for debug in ["Error", "{", "Some(", "kind:"] {
            assert!(!text.contains(debug), "{text}");
        }
    }
}
