//! Certificates for tests, made on the spot: an authority, and leaves it signs with any names and any end.

use std::time::Duration;

use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};

use crate::certs::{self, Validity};
pub use crate::certs::{CertsRefused, Leaf};

const LONG_AGO: Duration = Duration::from_secs(946_684_800);
const IN_A_LONG_TIME: Duration = Duration::from_secs(4_102_444_800);

/// Signs certificates.
#[derive(Debug)]
pub struct Authority {
    signs: certs::Authority,
    /// Its own certificate.
    pub pem: String,
}

impl Authority {
    /// A new one; two of the same name do not trust each other's leaves.
    pub fn new(name: &str) -> Result<Self, CertsRefused> {
        let signs = certs::Authority::new(name, until(IN_A_LONG_TIME))?;
        let pem = signs.pem.clone();
        Ok(Self { signs, pem })
    }

    /// A leaf for this host that carries these URIs.
    pub fn leaf(&self, uris: &[&str]) -> Result<Leaf, CertsRefused> {
        self.ending(uris, IN_A_LONG_TIME)
    }

    /// The same, but its time is over.
    pub fn expired(&self, uris: &[&str]) -> Result<Leaf, CertsRefused> {
        self.ending(uris, LONG_AGO + Duration::from_secs(60))
    }

    /// The same with another end, in unix time.
    pub fn ending(&self, uris: &[&str], end: Duration) -> Result<Leaf, CertsRefused> {
        let hosts = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
        let uris: Vec<String> = uris.iter().map(|uri| (*uri).to_owned()).collect();
        let uses = vec![ServerAuth, ClientAuth];
        self.signs.sign("test", hosts, &uris, uses, until(end))
    }
}

fn until(end: Duration) -> Validity {
    Validity {
        from: LONG_AGO,
        until: end,
    }
}
