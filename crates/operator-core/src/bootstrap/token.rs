//! Token: which join token is in force, and when the next one is made (OP-46).
//!
//! ```text
//! half of its life ─▶ MakeToken(id of this period) ─▶ in force        a failure is tried again, and said
//! ```
//!
//! The id is made from the cluster and the period, so two processes of one cluster make the same one and nothing has to
//! be listed to find it again.

use crate::{event::JoinToken, sha256::sha256};
use bigfleet_model::Time;
use std::time::Duration;

const TRY_AGAIN: Duration = Duration::from_secs(30);
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    cluster: String,
    /// `None`: tokens are off.
    ttl: Option<Duration>,
    in_force: Option<JoinToken>,
    is_making: bool,
    not_before: Option<Time>,
}

impl Tokens {
    pub(crate) fn new(cluster: &str, ttl: Option<Duration>) -> Self {
        Self {
            cluster: cluster.to_owned(),
            ttl,
            in_force: None,
            is_making: false,
            not_before: None,
        }
    }

    /// `None` if tokens are off, else the one in force.
    pub(crate) fn in_force(&self) -> Option<Option<&JoinToken>> {
        self.ttl.map(|_| self.in_force.as_ref())
    }

    /// When the next one is to be made.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let ttl = self.ttl.filter(|_| !self.is_making)?;
        let half = self
            .in_force
            .as_ref()
            .map_or(now, |token| token.expires - ttl / 2);
        Some(self.not_before.map_or(half, |at| at.max(half)))
    }

    /// The id and the end of the token to make now, if one is due.
    pub(crate) fn make(&mut self, now: Time) -> Option<(String, Time)> {
        let ttl = self.ttl?;
        if self.next(now).is_none_or(|next| now < next) {
            return None;
        }
        self.is_making = true;
        let period = now.nanos().div_euclid(
            i64::try_from((ttl / 2).as_nanos())
                .unwrap_or(i64::MAX)
                .max(1),
        );
        let digest = sha256(format!("{}\0{period}", self.cluster).as_bytes());
        let letter = |byte: &u8| ALPHABET[usize::from(*byte) % ALPHABET.len()] as char;
        Some((digest.iter().take(6).map(letter).collect(), now + ttl))
    }

    /// The token was made, or not; why not, to be said.
    pub(crate) fn made(&mut self, now: Time, made: Result<JoinToken, String>) -> Option<String> {
        self.is_making = false;
        match made {
            Ok(token) => {
                self.in_force = Some(token);
                self.not_before = None;
                None
            }
            Err(why) => {
                self.not_before = Some(now + TRY_AGAIN);
                Some(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Time {
        Time::ZERO + Duration::from_secs(60 * minutes)
    }

    #[test]
    fn a_token_is_renewed_at_half_its_life_and_a_failure_is_tried_again() {
        let mut tokens = Tokens::new("c1", Some(Duration::from_secs(7200)));
        let (id, expires) = tokens.make(at(0)).unwrap();
        assert_eq!((id.len(), expires), (6, at(120)));
        assert_eq!(tokens.make(at(0)), None, "one at a time");
        let text = "abc".to_owned();
        assert_eq!(tokens.made(at(0), Ok(JoinToken { text, expires })), None);
        assert_eq!(tokens.make(at(59)), None);
        let (next, _) = tokens.make(at(60)).unwrap();
        assert_ne!(id, next);
        assert!(tokens.made(at(60), Err("forbidden".to_owned())).is_some());
        assert_eq!(tokens.make(at(60)), None);
        let again = tokens.make(at(61)).unwrap();
        assert_eq!(again.0, next, "the same period is the same token");
        assert_eq!(Tokens::new("c1", None).make(at(0)), None);
    }
}
