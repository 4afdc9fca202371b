//! Caller: who asks, by certificate, and what each may do.
//!
//! ```text
//! report                bigfleet://shard/<the shard of the report>, and nobody else, not even an admin
//! read                  bigfleet://readonly or bigfleet://admin
//! change                bigfleet://admin
//! ```

use crate::{Refused, ShardId};

const ADMIN: &str = "bigfleet://admin";
const READONLY: &str = "bigfleet://readonly";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The connection has no certificates, so nothing is checked.
    Unverified,
    /// The one name of ours in its certificate.
    Named(String),
    /// A certificate with no name of ours, or with several; this is what it says.
    Unnamed(String),
}

impl Caller {
    pub(crate) fn check_shard(&self, shard: &ShardId) -> Result<(), Refused> {
        let required = format!("bigfleet://shard/{shard}");
        self.check(|name| name == required, &required)
    }

    pub(crate) fn check_admin(&self) -> Result<(), Refused> {
        self.check(|name| name == ADMIN, ADMIN)
    }

    pub(crate) fn check_reader(&self) -> Result<(), Refused> {
        let may = |name: &str| name == READONLY || name == ADMIN;
        self.check(may, "bigfleet://readonly or bigfleet://admin")
    }

    fn check(&self, may: impl Fn(&str) -> bool, required: &str) -> Result<(), Refused> {
        let presented = match self {
            Self::Unverified => return Ok(()),
            Self::Named(name) if may(name) => return Ok(()),
            Self::Named(name) | Self::Unnamed(name) => name.clone(),
        };
        let required = required.to_owned();
        Err(Refused::Caller {
            presented,
            required,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_may_what_is_theirs() {
        let shard = ShardId::new("s1").unwrap();
        let may = |caller: Caller| {
            let report = caller.check_shard(&shard).is_ok();
            let (read, change) = (caller.check_reader().is_ok(), caller.check_admin().is_ok());
            (report, read, change)
        };
        let named = |name: &str| may(Caller::Named(name.to_owned()));
        assert_eq!(named("bigfleet://shard/s1"), (true, false, false));
        assert_eq!(named("bigfleet://shard/s2"), (false, false, false));
        assert_eq!(named("bigfleet://cluster/s1"), (false, false, false));
        assert_eq!(named("bigfleet://readonly"), (false, true, false));
        assert_eq!(named("bigfleet://admin"), (false, true, true));
        assert_eq!(may(Caller::Unverified), (true, true, true));
        let several = Caller::Unnamed("bigfleet://admin, bigfleet://readonly".to_owned());
        assert_eq!(may(several), (false, false, false));
    }
}
