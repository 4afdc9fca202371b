//! Trouble: why a verb could not be done, in a line that says what to do next.

use std::io;
use std::time::Duration;

use tonic::{Code, Status};

use crate::text::printable;
use crate::when::span;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nobody listens there.
    #[error(
        "nothing answers at {target}: is a shard running there? start one with `bigfleet up`, \
         or name one with --shard"
    )]
    Nobody {
        /// Where.
        target: String,
    },
    /// Somebody may listen there, but not to us.
    #[error(
        "{target} cannot be spoken with: {why}; if it asks for certificates, name them with \
         --tls-cert, --tls-key and --tls-ca"
    )]
    Deaf {
        /// Where.
        target: String,
        /// What the connection ended with.
        why: String,
    },
    /// It takes too long.
    #[error(
        "no answer from {target} within {}: the first cycle may not be over; wait longer with \
         --timeout", span(*.within)
    )]
    Silent {
        /// Where.
        target: String,
        /// How long was waited.
        within: Duration,
    },
    /// The answer stopped in the middle.
    #[error("the answer of {target} stopped half way: {why}; ask again")]
    Cut {
        /// Where.
        target: String,
        /// What it stopped with.
        why: String,
    },
    /// It speaks an older contract than ours.
    #[error("that shard is too old for this verb: {target} does not know {call}")]
    TooOld {
        /// Where.
        target: String,
        /// What was asked.
        call: &'static str,
    },
    /// It knows us, and will not.
    #[error(
        "{target} refuses {call}: {why}; reading needs a certificate of bigfleet://readonly or \
         bigfleet://admin, steering one of bigfleet://admin"
    )]
    Denied {
        /// Where.
        target: String,
        /// What was asked.
        call: &'static str,
        /// Its reason.
        why: String,
    },
    /// There is no such thing.
    #[error("{kind} \"{}\" not found{hint}", printable(.name))]
    NotFound {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Where to look, from `;` on; empty if there is nothing to say.
        hint: String,
    },
    /// The shard's own words about what it will not do.
    #[error("{call}: {why}")]
    Refused {
        /// What was asked.
        call: &'static str,
        /// Its reason.
        why: String,
    },
    /// It answered something that is not an answer.
    #[error("{target} answered {call} in a way this version does not understand: {what}")]
    Garbled {
        /// Where.
        target: String,
        /// What was asked.
        call: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// What was asked for cannot be asked.
    #[error("{0}")]
    Usage(String),
    /// Something on this side.
    #[error("{0}")]
    Here(String),
}

impl Trouble {
    /// Whether the command line is at fault, and not the world.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_))
    }

    /// What a status means that came instead of an answer.
    pub(crate) fn of(status: &Status, target: &str, call: &'static str, within: Duration) -> Self {
        let target = target.to_owned();
        let why = printable(status.message());
        match status.code() {
            Code::Unimplemented => Self::TooOld { target, call },
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied { target, call, why },
            Code::DeadlineExceeded => Self::Silent { target, within },
            // Only what breaks on the way has a cause; what a shard says has none.
            _ if std::error::Error::source(status).is_some() => Self::on_the_way(status, target),
            Code::Unavailable => Self::Cut { target, why },
            _ => Self::Refused { call, why },
        }
    }

    fn on_the_way(status: &Status, target: String) -> Self {
        if is_refused_connection(status) {
            Self::Nobody { target }
        } else {
            Self::Deaf {
                target,
                why: printable(&bigfleet_net::chain(status)),
            }
        }
    }
}

fn is_refused_connection(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}
