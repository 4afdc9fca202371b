//! Leader: which replica of the coordinator to ask, and in which order to try the others.
//!
//! ```text
//! the one that answered last ─▶ the one the refusal named ─▶ every other address, once each
//! ```
//!
//! A follower answers FAILED_PRECONDITION and names the leader, if it knows it. Names with several addresses are looked up again for every round;
//! with TLS a name is dialled as it was given, since the certificate is for the name.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_net::{Dial, DialRefused, Tls};
use bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient;
use tonic::Status;
use tonic::transport::Channel;

/// Where a follower says the leader is.
const LEADER_ADDRESS: &str = "bigfleet-leader-addr";
/// Addresses tried for one report: three replicas, a few old names, and an end.
const MOST_ADDRESSES: usize = 16;
/// Connections kept; beyond that the one that answered last is enough.
const MOST_CHANNELS: usize = 64;

/// The replicas, as far as they are known.
#[derive(Debug)]
pub(crate) struct Leader {
    /// As they were given.
    addresses: Vec<String>,
    tls: Option<Arc<Tls>>,
    /// The one that answered last.
    last: Option<String>,
    channels: BTreeMap<String, Channel>,
}

impl Leader {
    /// The replicas at these addresses: `host:port`, several with commas.
    pub(crate) fn new(addresses: &str, tls: Option<Arc<Tls>>) -> Result<Self, DialRefused> {
        let given = addresses.split(',').map(str::trim);
        let addresses: Vec<String> = given.map(str::to_owned).collect();
        for address in &addresses {
            Dial::check(address)?;
        }
        Ok(Self {
            addresses,
            tls,
            last: None,
            channels: BTreeMap::new(),
        })
    }

    /// The addresses to try for one report, the likeliest first.
    pub(crate) async fn round(&self) -> Round {
        let mut round = Round::default();
        round.add(self.last.clone());
        for address in &self.addresses {
            if self.tls.is_none()
                && let Ok(found) = tokio::net::lookup_host(address).await
            {
                found.for_each(|one| round.add(Some(one.to_string())));
            }
            round.add(Some(address.clone()));
        }
        round
    }

    /// A client of the replica at an address.
    pub(crate) fn client(
        &mut self,
        address: &str,
    ) -> Result<CoordinatorClient<Channel>, DialRefused> {
        if let Some(channel) = self.channels.get(address) {
            return Ok(CoordinatorClient::new(channel.clone()));
        }
        let channel = Dial::unknown(self.tls.clone()).channel(address)?;
        if self.channels.len() == MOST_CHANNELS {
            self.channels.clear();
        }
        self.channels.insert(address.to_owned(), channel.clone());
        Ok(CoordinatorClient::new(channel))
    }

    /// This one has answered, so it leads.
    pub(crate) fn answered(&mut self, address: String) {
        self.last = Some(address);
    }
}

/// The addresses of one report, each tried once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    tried: usize,
    addresses: Vec<String>,
}

impl Round {
    fn add(&mut self, address: Option<String>) {
        if let Some(address) = address
            && !self.addresses.contains(&address)
            && self.addresses.len() < MOST_ADDRESSES
        {
            self.addresses.push(address);
        }
    }

    /// The next address to try.
    pub(crate) fn next(&mut self) -> Option<String> {
        let address = self.addresses.get(self.tried).cloned();
        self.tried += usize::from(address.is_some());
        address
    }

    /// What is left to try after a refusal: the address it names comes first, if it was not tried.
    pub(crate) fn refused(&mut self, status: &Status) {
        let named = status.metadata().get(LEADER_ADDRESS);
        let named = named.and_then(|value| value.to_str().ok());
        let Some(named) = named.filter(|named| Dial::check(named).is_ok()) else {
            return;
        };
        if self.addresses[..self.tried].iter().any(|one| one == named) {
            return;
        }
        self.addresses.retain(|one| one != named);
        self.addresses.insert(self.tried, named.to_owned());
        self.addresses.truncate(MOST_ADDRESSES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_leader(named: &str) -> Status {
        let mut status = Status::failed_precondition("coordinator: not leader");
        let named = named.parse().unwrap();
        status.metadata_mut().insert(LEADER_ADDRESS, named);
        status
    }

    fn rest(mut round: Round) -> Vec<String> {
        std::iter::from_fn(|| round.next()).collect()
    }

    #[tokio::test]
    async fn every_address_is_tried_once_and_the_named_one_first() {
        let mut leader = Leader::new("127.0.0.1:1, 127.0.0.1:2,127.0.0.1:3", None).unwrap();
        let all = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
        assert_eq!(rest(leader.round().await), all);
        let mut round = leader.round().await;
        assert_eq!(round.next().as_deref(), Some("127.0.0.1:1"));
        round.refused(&not_leader("127.0.0.1:3"));
        assert_eq!(rest(round.clone()), ["127.0.0.1:3", "127.0.0.1:2"]);
        round.refused(&not_leader("127.0.0.1:1"));
        assert_eq!(rest(round.clone()).len(), 2, "it was tried");
        round.refused(&not_leader("nonsense"));
        assert_eq!(rest(round.clone()).len(), 2);
        round.refused(&not_leader("127.0.0.1:9"));
        assert_eq!(rest(round)[0], "127.0.0.1:9", "a replica nobody listed");
        leader.answered("127.0.0.1:9".to_owned());
        assert_eq!(rest(leader.round().await)[0], "127.0.0.1:9");
    }

    #[tokio::test]
    async fn a_round_has_an_end() {
        let leader = Leader::new("127.0.0.1:1", None).unwrap();
        let mut round = leader.round().await;
        for port in 1000..1100 {
            round.next();
            round.refused(&not_leader(&format!("127.0.0.1:{port}")));
        }
        assert!(round.addresses.len() <= MOST_ADDRESSES);
        assert_eq!(round.next(), None);
        assert!(Leader::new("127.0.0.1:1,nonsense", None).is_err());
    }
}
