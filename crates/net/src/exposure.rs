//! Exposure: who can reach an address, and what it takes to let them.
//!
//! ```text
//! :7780, localhost:7780, 127.0.0.1:7780 ──▶ this host only
//! any other host ──┬─ certificates ───────▶ callers show who they are
//!                  ├─ --insecure ─────────▶ whoever reaches it is believed
//!                  └─ neither ────────────▶ refused
//! ```
//!
//! Without certificates nobody is checked, so one forgotten flag would let a whole network pause a fleet.
//! Opening an address to others therefore takes a host in it and a word for how callers are told apart.

use std::net::IpAddr;

/// An address that others could reach without showing who they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{flag} {addr} can be reached from other hosts, by anyone: give --tls-cert, --tls-key and --tls-ca \
     (`bigfleet certs` makes them), or --insecure if everyone on that network may do anything"
)]
pub struct Exposed {
    /// The flag that asks for the address.
    pub flag: &'static str,
    /// The address.
    pub addr: String,
}

/// Whether only this host reaches an address: it names no host, `localhost` or a loopback address. Any other
/// name counts as reachable, whatever it means to the resolver today.
pub fn is_loopback(addr: &str) -> bool {
    let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<IpAddr>();
    host.is_empty() || host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Passes an address that may be listened on: it is this host's alone, or callers show certificates, or
/// somebody said that the network is trusted.
pub fn check_exposure(
    flag: &'static str,
    addr: &str,
    has_certificates: bool,
    insecure: bool,
) -> Result<(), Exposed> {
    // What is no address at all is refused by whoever listens, with better words.
    let is_address = addr.contains(':');
    if has_certificates || insecure || !is_address || is_loopback(addr) {
        return Ok(());
    }
    Err(Exposed {
        flag,
        addr: crate::identity::shown(addr),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_reaches_an_address_without_a_host() {
        for addr in [
            ":7780",
            "localhost:7780",
            "127.0.0.1:7780",
            "127.8.8.8:0",
            "[::1]:7780",
            "[::ffff:127.0.0.1]:7780",
        ] {
            assert!(is_loopback(addr), "{addr}");
            assert_eq!(check_exposure("--listen", addr, false, false), Ok(()));
        }
        for addr in [
            "0.0.0.0:7780",
            "[::]:7780",
            "10.0.0.1:7780",
            "shard-0.example:7780",
            "localhost.example:7780",
        ] {
            assert!(!is_loopback(addr), "{addr}");
            assert_eq!(check_exposure("--listen", addr, true, false), Ok(()));
            assert_eq!(check_exposure("--listen", addr, false, true), Ok(()));
            let refused = check_exposure("--listen", addr, false, false).unwrap_err();
            let text = refused.to_string();
            for part in ["--listen", addr, "--tls-cert", "--insecure"] {
                assert!(text.contains(part), "{text}");
            }
            assert_eq!(text.lines().count(), 1);
        }
    }
}
