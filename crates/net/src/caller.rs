//! The caller: who is on the other end of a connection, for every handler to ask.
//!
//! Each request carries its [`Caller`] as an extension. Without TLS there is nobody to check and every
//! check passes: plaintext is for networks that are trusted as a whole. With TLS a caller is what its
//! certificate says, and nothing more.

use std::fmt;
use std::net::SocketAddr;

use tonic::Status;

use crate::identity::{Identity, IdentityRefused};

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    addr: Option<SocketAddr>,
    /// `None` without TLS.
    verified: Option<Result<Identity, IdentityRefused>>,
}

impl Caller {
    /// Somebody on a network that is trusted as a whole.
    pub fn plaintext(addr: Option<SocketAddr>) -> Self {
        let verified = None;
        Self { addr, verified }
    }

    /// Somebody whose certificate was verified.
    pub fn verified(addr: Option<SocketAddr>, identity: Result<Identity, IdentityRefused>) -> Self {
        let verified = Some(identity);
        Self { addr, verified }
    }

    /// The caller of a request that came in through [`crate::serve`].
    pub fn of<T>(request: &tonic::Request<T>) -> Self {
        let found = request.extensions().get::<Self>();
        // A handler mounted without our listener must not take everyone for trusted.
        found.cloned().unwrap_or_else(|| {
            Self::verified(
                None,
                Err(IdentityRefused::Unreadable(
                    "the connection is unknown".to_owned(),
                )),
            )
        })
    }

    /// Where it calls from.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.addr
    }

    /// What its certificate says, if there is one that says something.
    pub fn identity(&self) -> Option<&Identity> {
        self.verified.as_ref()?.as_ref().ok()
    }

    /// What its certificate says, or why that is nothing; `None` for a connection without certificates.
    pub fn certified(&self) -> Option<Result<&Identity, &IdentityRefused>> {
        self.verified.as_ref().map(Result::as_ref)
    }

    /// Passes this identity only, `what` being what it is needed for.
    pub fn must_be(&self, wanted: &Identity, what: &str) -> Result<(), Status> {
        self.must(what, wanted, |is| is == wanted)
    }

    /// Passes those who may look: readers and admins.
    pub fn may_read(&self, what: &str) -> Result<(), Status> {
        let wanted = format_args!("{} or {}", Identity::ReadOnly, Identity::Admin);
        let reads = |is: &Identity| matches!(is, Identity::ReadOnly | Identity::Admin);
        self.must(what, wanted, reads)
    }

    fn must(
        &self,
        what: &str,
        wanted: impl fmt::Display,
        passes: impl FnOnce(&Identity) -> bool,
    ) -> Result<(), Status> {
        let problem = match &self.verified {
            None => return Ok(()),
            Some(Ok(identity)) if passes(identity) => return Ok(()),
            Some(Ok(identity)) => format!("the caller is {identity}"),
            Some(Err(refused)) => refused.to_string(),
        };
        Err(Status::permission_denied(format!(
            "{what} needs {wanted}: {problem}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    fn shard(id: &str) -> Identity {
        Identity::Shard(id.to_owned())
    }

    #[test]
    fn a_refusal_names_both_sides() {
        let caller = Caller::verified(None, Ok(shard("a")));
        assert!(caller.must_be(&shard("a"), "Create").is_ok());
        let refused = caller.must_be(&shard("b"), "Create").unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        for part in ["Create", "bigfleet://shard/a", "bigfleet://shard/b"] {
            assert!(refused.message().contains(part), "{}", refused.message());
        }
    }

    #[test]
    fn an_admin_may_read_and_is_nothing_else_besides() {
        let admin = Caller::verified(None, Ok(Identity::Admin));
        assert!(admin.may_read("ListShards").is_ok());
        assert!(admin.must_be(&shard("a"), "Create").is_err());
        let reader = Caller::verified(None, Ok(Identity::ReadOnly));
        assert!(reader.may_read("ListShards").is_ok());
        assert!(reader.must_be(&Identity::Admin, "RemoveShard").is_err());
        let nobody = Caller::verified(None, Err(IdentityRefused::None));
        assert!(nobody.may_read("ListShards").is_err());
    }

    #[test]
    fn plaintext_is_not_checked_and_the_unknown_is_not_trusted() {
        assert!(Caller::plaintext(None).must_be(&shard("a"), "x").is_ok());
        let unknown = Caller::of(&tonic::Request::new(()));
        assert!(unknown.must_be(&shard("a"), "x").is_err());
    }
}
