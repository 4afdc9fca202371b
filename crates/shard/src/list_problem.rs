//! What is wrong with a provider whose List does not come to its end, in words for everybody who asks.
//!
//! ```text
//! no connection, no answer in time ─▶ does not answer: …
//! a handshake that failed ─────────▶ cannot be reached securely: …
//! a refusal ───────────────────────▶ refuses to list its machines: …
//! an answer that breaks a rule ────▶ answers, and its List cannot be used: …
//! ```
//!
//! Whoever is paged looks elsewhere in each case: at the network, at a certificate, at a permission, at the
//! provider's own log.

use bigfleet_model::shown;
use bigfleet_net::{TlsProblem, answered};
use tonic::{Code, Status};

/// Why a List did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListProblem {
    /// Nobody answers, or not in time.
    Silent(String),
    /// The two sides do not accept each other's certificates.
    Insecure(String),
    /// It does not allow it, or cannot.
    Refused(String),
    /// What it answers is no whole List.
    Unusable(String),
}

impl ListProblem {
    /// What it means that a call for a page ended with this.
    pub(crate) fn of(status: &Status) -> Self {
        let text = answered(status);
        if TlsProblem::of_status(status).is_some() {
            return Self::Insecure(text);
        }
        // Only what breaks on the way has a cause; what a provider says has none. Whoever stands between us and
        // it says for it that it is away.
        let broke = std::error::Error::source(status).is_some();
        if broke || [Code::DeadlineExceeded, Code::Unavailable].contains(&status.code()) {
            Self::Silent(text)
        } else {
            Self::Refused(text)
        }
    }

    /// The end of a sentence that begins with the provider.
    pub(crate) fn words(&self) -> String {
        let (problem, why) = match self {
            Self::Silent(why) => ("does not answer", why),
            Self::Insecure(why) => ("cannot be reached securely", why),
            Self::Refused(why) => ("refuses to list its machines", why),
            Self::Unusable(why) => ("answers, and its List cannot be used", why),
        };
        format!("{problem}: {}", shown(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_problem_has_its_own_words() {
        let refused = Status::permission_denied("List needs bigfleet://shard/s1");
        let late = Status::deadline_exceeded("no answer in time");
        let dial = bigfleet_net::Dial::provider(None);
        let nobody = dial.channel("127.0.0.1:1").unwrap();
        let mut client = tonic_health::pb::health_client::HealthClient::new(nobody);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        let nobody = client.check(asked).await.unwrap_err();
        let away = Status::unavailable("no healthy upstream");
        for (problem, words) in [
            (
                ListProblem::of(&refused),
                "refuses to list its machines: List needs bigfleet://shard/s1",
            ),
            (ListProblem::of(&late), "does not answer: no answer in time"),
            (
                ListProblem::of(&away),
                "does not answer: no healthy upstream",
            ),
            (
                ListProblem::of(&nobody),
                "does not answer: connection refused, nothing listens there",
            ),
            (
                ListProblem::Unusable("the List has 4 of 8 machines".to_owned()),
                "answers, and its List cannot be used: the List has 4 of 8 machines",
            ),
        ] {
            assert_eq!(problem.words(), words);
        }
    }
}
