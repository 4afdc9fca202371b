//! What of the holdings is on disk, as plain values (CO-53).

use crate::uplink::Domain;
use bigfleet_model::{MachineId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Which unbound machines a shard may act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldScope {
    /// There is a coordinator, and it has not said anything yet.
    Unsaid,
    /// Every one of its provider.
    Everything,
    /// Every one, but all outside of its domains are let go, and no new one of them is taken in.
    EverythingLeaving,
    /// Those of its domains; none, if it has none.
    Assigned,
}

/// What an answer says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToldScope {
    /// Nothing: a coordinator that does not know of scopes.
    #[default]
    Unsaid,
    /// Nothing is decided yet; everything stays as it is.
    Wait,
    /// Every one of its provider.
    Everything,
    /// Those of its domains.
    Assigned,
}

/// A domain that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldDomain {
    /// It is let go of: no new operation on an unbound machine of it.
    pub leaving: bool,
    /// Another shard may still be at work in it (CO-27).
    pub shared: bool,
}

/// What made a record or an exception: the instruction's term and number. Later is greater; zero if an answer only named a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The term it was given in.
    pub term: u64,
    /// Its number within the term.
    pub sequence: u64,
}

/// Why a machine does not follow its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExceptionKind {
    /// Ours by domain, and somebody else's.
    Away,
    /// Ours, whatever its domain.
    Guest,
}

/// A machine that does not follow its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Which way.
    pub kind: ExceptionKind,
    /// The transfer that made it so; empty if an answer only named the machine as foreign.
    pub transfer: String,
    /// The other side of it; may be empty.
    pub peer: String,
    /// The machine's domain, if it is known.
    pub domain: Option<Domain>,
    /// What made it so.
    pub stamp: Stamp,
}

/// Which side of a transfer a shard is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferRole {
    /// It gives machines.
    Donor,
    /// It takes machines.
    Recipient,
}

/// How far a transfer is on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferState {
    /// The donor keeps the machines aside.
    Reserved,
    /// The donor gave them up.
    Released,
    /// The recipient has them.
    Claimed,
    /// The recipient will never have them.
    Refused,
}

/// A transfer that is open here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRecord {
    /// Which side this shard is on.
    pub role: TransferRole,
    /// How far it is.
    pub state: TransferState,
    /// The machines it moves.
    pub machines: Vec<MachineId>,
    /// The other side; may be empty.
    pub peer: String,
    /// The machines' domain, if it is known.
    pub domain: Option<Domain>,
    /// What made it.
    pub stamp: Stamp,
    /// When a reservation ends.
    pub expires: Option<Time>,
}

/// What a shard may act on, as a report says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Every unbound machine of its provider.
    pub everything: bool,
    /// Its domains, those it is letting go of included.
    pub domains: BTreeSet<Domain>,
    /// Machines that do not follow their domain.
    pub exceptions: BTreeMap<MachineId, Exception>,
}

impl Held {
    /// The domains as texts, in the order of the texts: a key may go on where another ends, and then pairs are in another order.
    pub fn domain_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.domains.iter().map(ToString::to_string).collect();
        texts.sort_unstable();
        texts
    }

    /// The text whose SHA-256 is the digest (CO-31): `*` for everything, the domains, machines away, guests, a line each.
    pub fn lines(&self) -> String {
        let mut lines = String::from(if self.everything { "*\n" } else { "" });
        for text in self.domain_texts() {
            lines += &text;
            lines.push('\n');
        }
        for (kind, word) in [
            (ExceptionKind::Away, "away"),
            (ExceptionKind::Guest, "guest"),
        ] {
            let of_kind = self.exceptions.iter().filter(|(_, one)| one.kind == kind);
            for (machine, one) in of_kind {
                lines += &format!("{word} {machine} {}\n", one.transfer);
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CO-31, the same lines as the coordinator's own test has.
    #[test]
    fn the_lines_of_a_digest() {
        let domain = |key: &str, value: &str| Domain {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let exception = |kind| Exception {
            kind,
            transfer: "7-1".to_owned(),
            peer: String::new(),
            domain: None,
            stamp: Stamp::default(),
        };
        let machine = |id| MachineId::new(id).unwrap();
        let mut held = Held::default();
        assert_eq!(held.lines(), "", "given nothing");
        held.domains = BTreeSet::from([domain("a", "1"), domain("a.b", "2")]);
        assert_eq!(held.lines(), "a.b=2\na=1\n");
        held.everything = true;
        held.exceptions = BTreeMap::from([
            (machine("m1"), exception(ExceptionKind::Guest)),
            (machine("m2"), exception(ExceptionKind::Away)),
        ]);
        assert_eq!(held.lines(), "*\na.b=2\na=1\naway m2 7-1\nguest m1 7-1\n");
    }
}
