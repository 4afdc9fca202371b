//! Answered: what a peer answered, or why it did not, in words for people.
//!
//! ```text
//! a status that the peer sent ───▶ its words
//! a connection that failed ──────▶ what is in the way: nobody listens, no such host, which certificate
//! ```
//!
//! The words of a [`tonic::Status`] and of the errors below it are meant for whoever debugs a library.

use std::error::Error;
use std::io;
use std::sync::Arc;

use tonic::{Code, Status};

use crate::identity::shown;
use crate::tls_problem::TlsProblem;

/// What a peer answered, or why it did not, in one line that is fit to be shown to people.
pub fn answered(status: &Status) -> String {
    if let Some(problem) = TlsProblem::of_status(status) {
        return problem.to_string();
    }
    if let Some(broken) = connection_error(status) {
        return connection_words(broken);
    }
    let code = status.code().description();
    let mut text = match shown(status.message()) {
        message if message.is_empty() => code.to_owned(),
        message => message,
    };
    let mut cause = Error::source(status);
    while let Some(error) = cause {
        let next = shown(&error.to_string());
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// A call that could not begin, with what was in its way.
pub fn unready(why: impl Error + Send + Sync + 'static) -> Status {
    let mut status = Status::new(Code::Unavailable, crate::chain(&why));
    status.set_source(Arc::new(why));
    status
}

/// What broke on the way; `None` if the peer answered.
pub fn connection_error(status: &Status) -> Option<&io::Error> {
    let mut cause = Error::source(status);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// Why there is no connection.
fn connection_words(error: &io::Error) -> String {
    let text = shown(&error.to_string());
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused, nothing listens there".to_owned(),
        // The resolver has no kind of its own; this is how the standard library words it.
        _ if text.contains("failed to lookup address") => {
            "the name of its host is not known to this one (DNS)".to_owned()
        }
        io::ErrorKind::TimedOut => "no connection in time".to_owned(),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => "it hung up".to_owned(),
        // Its number is for whoever reads a manual of the system.
        _ => match text.rsplit_once(" (os error ") {
            Some((words, _)) => words.to_owned(),
            None => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dial;

    async fn asked(addr: &str) -> String {
        let channel = Dial::unknown(None).channel(addr).unwrap();
        let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
        let asked = tonic_health::pb::HealthCheckRequest::default();
        answered(&client.check(asked).await.unwrap_err())
    }

    /// What is shown has no words that only a debugger needs, and a peer's own are on one line.
    #[tokio::test]
    async fn what_a_peer_answered_is_said_in_words() {
        let answer = Status::unavailable("no\nstock");
        assert_eq!(answered(&answer), "no\\nstock");
        let silent = Status::new(Code::Unavailable, "");
        assert_eq!(answered(&silent), "The service is currently unavailable");
        assert_eq!(
            asked("127.0.0.1:1").await,
            "connection refused, nothing listens there"
        );
    }

    #[tokio::test]
    async fn a_call_that_could_not_begin_says_why_and_has_a_cause() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let status = unready(refused);
        assert!(Error::source(&status).is_some());
        assert_eq!(
            answered(&status),
            "connection refused, nothing listens there"
        );
        let reset = io::Error::from_raw_os_error(113);
        assert_eq!(answered(&unready(reset)), "No route to host");
    }

    #[test]
    fn a_handshake_that_failed_names_the_certificate() {
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let broken = io::Error::new(io::ErrorKind::InvalidData, expired);
        assert_eq!(answered(&unready(broken)), "its certificate has expired");
        // HTTP/2 keeps the words of an alert that came after the handshake, and nothing else of it.
        let alert = io::Error::other("received fatal alert: CertificateExpired");
        assert_eq!(
            answered(&unready(alert)),
            "it says that our certificate has expired"
        );
    }
}
