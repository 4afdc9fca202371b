//! What it means that a List was not answered as a provider answers it: nobody is there, somebody else is, or the two
//! sides do not accept each other's certificates.

use std::error::Error;
use std::io;
use std::time::Duration;

use bigfleet_net::TlsProblem;
use tokio::net::TcpStream;
use tonic::{Code, Status};

use super::BootFailed;

/// How long a connection may take that is made to see whether anybody listens.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// Why a call was not answered as it should be, in a line.
pub(super) fn reason(status: &Status) -> String {
    match status.code() {
        Code::DeadlineExceeded => status.message().to_owned(),
        _ if is_transport(status) => innermost(status),
        code => format!("{code:?} {}", status.message()),
    }
}

/// What a target is that answered a List with this.
pub(super) async fn not_a_provider(addr: &str, with_tls: bool, status: &Status) -> BootFailed {
    let no_answer = |why: String| BootFailed::NoAnswer {
        addr: addr.to_owned(),
        why,
    };
    let no_provider = |why: String| BootFailed::NoProvider {
        addr: addr.to_owned(),
        why,
    };
    // A connection that is closed under a call is told as a call that was cancelled; nobody here cancels any.
    if !is_transport(status) && status.code() != Code::Cancelled {
        let (code, message) = (status.code(), status.message());
        return no_provider(match code {
            Code::Unimplemented => format!("it speaks gRPC, and answers a List with {code:?}"),
            _ => format!("a List was answered with {code:?} {message}"),
        });
    }
    if let Some(problem) = tls_problem(status) {
        return no_answer(about_tls(&problem));
    }
    let connected = tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(addr)).await;
    if !matches!(connected, Ok(Ok(_))) {
        return no_answer(innermost(status));
    }
    no_provider(if with_tls {
        "it takes connections over TLS, and does not speak gRPC".to_owned()
    } else {
        "it takes connections, and does not speak gRPC in plaintext; \
         if it wants certificates, say --tls-cert, --tls-key and --tls-ca"
            .to_owned()
    })
}

fn is_transport(status: &Status) -> bool {
    status.source().is_some()
}

/// What the operating system said, below all that is wrapped around it.
fn innermost(status: &Status) -> String {
    let mut error: &dyn Error = status;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn tls_problem(status: &Status) -> Option<TlsProblem> {
    let mut cause = status.source();
    while let Some(error) = cause {
        let found = error.downcast_ref::<io::Error>().and_then(TlsProblem::of);
        if found.is_some() {
            return found;
        }
        cause = error.source();
    }
    None
}

fn about_tls(problem: &TlsProblem) -> String {
    match problem {
        TlsProblem::PeerExpired => {
            "the time of its certificate is over, or has not begun".to_owned()
        }
        TlsProblem::PeerUnknown => {
            "its certificate is not signed by the authority of --tls-ca".to_owned()
        }
        TlsProblem::PeerName => {
            "its certificate is for another name; dial it by a name in its certificate".to_owned()
        }
        TlsProblem::OwnExpired => "it says that the time of --tls-cert is over".to_owned(),
        TlsProblem::OwnRefused(why) => format!("it does not accept --tls-cert: {why}"),
        TlsProblem::NotTls => "it does not speak TLS; leave out the certificates".to_owned(),
        TlsProblem::Other(why) => {
            format!("TLS: {why}; is its certificate signed by the authority of --tls-ca?")
        }
    }
}
