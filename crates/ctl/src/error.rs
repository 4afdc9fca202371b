//! Errors: what was asked for, what is in the way, and what to type next.
//!
//! A person reads these without knowing the protocol, so no text here names a call of it.

use std::error::Error;
use std::io;
use std::time::Duration;

use bigfleet_net::{TlsProblem, connection_error};
use tonic::{Code, Status};

use crate::text::{printable, without_rule_ids};
use crate::when::span;

/// Why a verb could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CtlError {
    /// Nothing listens at the address.
    #[error(
        "nothing answers at {target}: is a shard running there? start one with `bigfleet up`, \
         or name one with --shard"
    )]
    NotListening {
        /// The address, as it was asked for.
        target: String,
    },
    /// The name of the host means nothing to the resolver.
    #[error(
        "the host of {target} is not known ({why}): check the spelling and the DNS of this host, or \
         name another shard with --shard"
    )]
    UnknownHost {
        /// The address, as it was asked for.
        target: String,
        /// What the resolver says.
        why: String,
    },
    /// The host cannot be reached at all: no route, no connection in time.
    #[error("{target} cannot be reached: {why}; name another shard with --shard")]
    Unreachable {
        /// The address, as it was asked for.
        target: String,
        /// What the connection ended with.
        why: String,
    },
    /// The two sides do not accept each other's certificates.
    #[error("{target} cannot be reached securely: {why}")]
    Certificates {
        /// The address, as it was asked for.
        target: String,
        /// What the handshake ended with, and what to do about it.
        why: String,
    },
    /// Something listens, but it does not speak our protocol, or not without certificates.
    #[error(
        "{target} is not a BigFleet shard (the metrics port? try 7780); if it is one that asks for \
         certificates, name them with --tls-cert, --tls-key and --tls-ca"
    )]
    NotAShard {
        /// The address, as it was asked for.
        target: String,
    },
    /// No answer in time.
    #[error(
        "no answer from {target} within {}: its first cycle may not be over; wait longer with \
         --timeout", span(*.within)
    )]
    NoAnswer {
        /// The address, as it was asked for.
        target: String,
        /// How long was waited.
        within: Duration,
    },
    /// The answer stopped in the middle, so none of it is used.
    #[error("the answer of {target} stopped half way: {why}; ask again")]
    Interrupted {
        /// The address, as it was asked for.
        target: String,
        /// What it stopped with.
        why: String,
    },
    /// The server does not know what it was asked.
    #[error(
        "{target} does not know how to {doing}: it is an older shard, or another server (a \
         provider?); a shard usually listens on port 7780, name it with --shard"
    )]
    TooOld {
        /// The address, as it was asked for.
        target: String,
        /// What was asked for, as in "list machines".
        doing: &'static str,
    },
    /// The shard knows who asks, and does not allow it.
    #[error(
        "{target} does not let you {doing}: {why}; name another certificate with --tls-cert and \
         --tls-key"
    )]
    Denied {
        /// The address, as it was asked for.
        target: String,
        /// What was asked for, as in "list machines".
        doing: &'static str,
        /// The shard's reason.
        why: String,
    },
    /// There is nothing of that name.
    #[error("{kind} \"{}\" not found{hint}", printable(.name))]
    NotFound {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Where to look, from `;` on; empty if there is nothing to say.
        hint: String,
    },
    /// The shard says why it will not.
    #[error("cannot {doing}: {why}")]
    Refused {
        /// What was asked for, as in "list machines".
        doing: &'static str,
        /// The shard's reason.
        why: String,
    },
    /// The answer breaks the protocol: somebody else answers, or a version newer than ours.
    #[error("cannot {doing}: the answer of {target} makes no sense to this version: {what}")]
    Malformed {
        /// The address, as it was asked for.
        target: String,
        /// What was asked for, as in "list machines".
        doing: &'static str,
        /// What is wrong with the answer.
        what: String,
    },
    /// No replica of the coordinator answers as the one that leads.
    #[error(
        "{}: {tried}; start one with `bigfleet coordinator`, or name its replicas with --coordinator",
        if *.is_electing { "no replica of the coordinator leads" } else { "no replica of the coordinator answers" }
    )]
    NoCoordinator {
        /// Each address, and what was wrong there.
        tried: String,
        /// Some answer, so a majority is missing or about to be there.
        is_electing: bool,
    },
    /// The server is no coordinator, or of an earlier version.
    #[error(
        "{target} does not know how to {doing}: it is an older coordinator, or another server (a shard?); a coordinator usually \
         listens on port 7790, name its replicas with --coordinator"
    )]
    NotACoordinator {
        /// The address, as it was asked for.
        target: String,
        /// What was asked for, as in "list shards".
        doing: &'static str,
    },
    /// A change was sent, and whether it was made is not known.
    #[error(
        "{target} was told, and it is not known whether it was done: {why}; look before you try again"
    )]
    Unknown {
        /// The address.
        target: String,
        /// What was in the way of an answer.
        why: String,
    },
    /// The command line asks for something that cannot be asked.
    #[error("{0}")]
    Usage(String),
    /// Something on this side is in the way, such as the terminal.
    #[error("{0}")]
    Local(String),
}

impl CtlError {
    /// Whether the command line is at fault, and not the world.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }

    /// The other side hung up after it saw our certificate.
    pub(crate) fn refused_certificate(target: String, is_over: bool) -> Self {
        let why = if is_over {
            advice(&TlsProblem::OwnExpired)
        } else {
            advice(&TlsProblem::OwnRefused("it hung up".to_owned()))
        };
        Self::Certificates { target, why }
    }

    /// What a status means that came instead of an answer.
    pub(crate) fn of(status: &Status, target: &str, doing: &'static str, within: Duration) -> Self {
        let target = target.to_owned();
        let why = printable(&without_rule_ids(status.message()));
        match status.code() {
            Code::Unimplemented => Self::TooOld { target, doing },
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied {
                target,
                doing,
                why: without_call(why),
            },
            Code::DeadlineExceeded => Self::NoAnswer { target, within },
            // Only what breaks on the way has a cause; what a shard says has none.
            _ if status.source().is_some() => Self::on_the_way(status, target),
            Code::Unavailable => Self::Interrupted { target, why },
            _ => Self::Refused { doing, why },
        }
    }

    /// What it means that the connection failed. Whatever is neither the network's nor a certificate's
    /// fault is a server that speaks another protocol.
    fn on_the_way(status: &Status, target: String) -> Self {
        if let Some(problem) = TlsProblem::of_status(status) {
            let why = advice(&problem);
            return Self::Certificates { target, why };
        }
        let Some(error) = connection_error(status) else {
            return Self::NotAShard { target };
        };
        let why = printable(&error.to_string());
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::NotListening { target },
            // The resolver has no kind of its own; this is how the standard library words it.
            _ if why.contains("failed to lookup address") => Self::UnknownHost { target, why },
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Self::NotAShard { target },
            _ => Self::Unreachable { target, why },
        }
    }
}

/// What is in the way of a handshake, and what to do about it.
fn advice(problem: &TlsProblem) -> String {
    match problem {
        TlsProblem::PeerExpired => {
            "its certificate has expired; issue it a new one with `bigfleet certs \
             issue shard ID`, it takes it without a restart"
                .to_owned()
        }
        TlsProblem::PeerUnknown => {
            "its certificate is not signed by the authority you trust; check \
             --tls-ca, or whether this is the shard you meant"
                .to_owned()
        }
        TlsProblem::PeerName => "its certificate is for another name; dial it by a name in its \
             certificate, or issue one with `bigfleet certs issue shard ID --host NAME`"
            .to_owned(),
        TlsProblem::OwnExpired => {
            "your certificate has expired; issue a new one with `bigfleet certs \
             issue admin NAME`, or name another with --tls-cert and --tls-key"
                .to_owned()
        }
        TlsProblem::OwnRefused(why) => format!(
            "it refuses your certificate ({}); it has to be signed by the shard's authority, name \
             another with --tls-cert and --tls-key",
            printable(why)
        ),
        TlsProblem::NotTls => {
            "it speaks without TLS (or is not a shard: the metrics port? try 7780); \
             leave out --tls-cert, --tls-key and --tls-ca"
                .to_owned()
        }
        TlsProblem::Other(why) => format!(
            "{}; check --tls-cert, --tls-key and --tls-ca",
            printable(why)
        ),
    }
}

/// A shard says "Pause needs bigfleet://admin: …", by the name of the call. Who asked called it
/// something else, and the line has said that already.
fn without_call(why: String) -> String {
    match why.split_once(" needs ") {
        Some((_, needed)) => format!("that needs {needed}"),
        None => why,
    }
}
