//! Facts: what a shard says it may act on, and what it has open.
//!
//! ```text
//! Facts ┬─ holdings   none: nothing is on its disk
//!       │             everything?, domains, exceptions (machines that do not follow their domain)
//!       └─ records    transfers it has open, donor or recipient
//! ```
//!
//! Holdings are told apart by a digest (CO-31), so that a shard names them only when asked. The digest of no holdings is no
//! bytes, which no set has: "nothing on disk" and "given nothing" must not look alike.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::{MachineId, Time};

use crate::{Domain, ShardId, TransferId};

/// What made a record or an exception: the instruction's reign and number. Later is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The reign it was given in.
    pub reign: u64,
    /// Its number within the reign.
    pub sequence: u64,
}

/// Why a machine does not follow its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExceptionKind {
    /// The shard's by domain, and somebody else's.
    Away,
    /// The shard's, whatever its domain.
    Guest,
}

/// A machine that does not follow its domain, as a shard has it on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Which way.
    pub kind: ExceptionKind,
    /// The transfer that made it so; `None` if an answer only named the machine as foreign.
    pub transfer: Option<TransferId>,
    /// The other side of it.
    pub peer: Option<ShardId>,
    /// The machine's domain.
    pub domain: Option<Domain>,
    /// What made it so; zero if an answer only named the machine as foreign.
    pub stamp: Stamp,
}

/// What a shard may act on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Every unbound machine of its provider.
    pub everything: bool,
    /// The domains it holds.
    pub domains: BTreeSet<Domain>,
    /// Machines that do not follow their domain.
    pub exceptions: BTreeMap<MachineId, Exception>,
}

impl Holdings {
    /// The bytes whose SHA-256 is the digest: `*` for everything, then the domains, then exceptions, a sorted line each (CO-31).
    pub fn lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        if self.everything {
            lines.extend(b"*\n");
        }
        let mut texts: Vec<String> = self.domains.iter().map(ToString::to_string).collect();
        // As texts: a key may go on where another ends, and then pairs are in another order.
        texts.sort_unstable();
        let of_kind = |wanted: ExceptionKind, word: &str| {
            let all = self.exceptions.iter();
            let some = all.filter(|(_, exception)| exception.kind == wanted);
            let line = |(id, one): (&MachineId, &Exception)| {
                let transfer = one.transfer.as_ref().map_or("", TransferId::as_str);
                format!("{word} {id} {transfer}")
            };
            some.map(line).collect::<Vec<_>>()
        };
        texts.extend(of_kind(ExceptionKind::Away, "away"));
        texts.extend(of_kind(ExceptionKind::Guest, "guest"));
        for text in texts {
            lines.extend(text.as_bytes());
            lines.push(b'\n');
        }
        lines
    }
}

/// How far a transfer is on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordState {
    /// The donor keeps the machines aside.
    Reserved,
    /// The donor gave them up.
    Released,
    /// The recipient has them.
    Claimed,
    /// The recipient will never claim them.
    Refused,
}

/// A transfer as one side has it on disk. Which side follows from the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferRecord {
    /// How far it is.
    pub state: RecordState,
    /// The machines it moves: at most 50.
    pub machines: Vec<MachineId>,
    /// The other side; absent where the tables began it themselves.
    pub peer: Option<ShardId>,
    /// Their domain.
    pub domain: Option<Domain>,
    /// What made it so.
    pub stamp: Stamp,
    /// When a reservation ends.
    pub expires: Option<Time>,
}

/// What a shard says it may act on, and what it has open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What it may act on; `None` if nothing is on its disk.
    pub holdings: Option<Holdings>,
    /// What it has open.
    pub records: BTreeMap<TransferId, TransferRecord>,
}

impl Facts {
    /// Whether the shard may act on every unbound machine.
    pub(crate) fn holds_everything(&self) -> bool {
        self.holdings.as_ref().is_some_and(|held| held.everything)
    }

    pub(crate) fn holds(&self, domain: &Domain) -> bool {
        let held = self.holdings.as_ref();
        held.is_some_and(|held| held.domains.contains(domain))
    }

    pub(crate) fn domains(&self) -> impl Iterator<Item = &Domain> {
        let held = self.holdings.iter();
        held.flat_map(|held| held.domains.iter())
    }

    pub(crate) fn exception(&self, machine: &MachineId) -> Option<&Exception> {
        self.holdings.as_ref()?.exceptions.get(machine)
    }

    /// The exceptions of one kind.
    pub(crate) fn exceptions(
        &self,
        kind: ExceptionKind,
    ) -> impl Iterator<Item = (&MachineId, &Exception)> {
        let held = self.holdings.iter();
        let all = held.flat_map(|held| held.exceptions.iter());
        all.filter(move |(_, exception)| exception.kind == kind)
    }

    /// The machines of open records.
    pub(crate) fn open_machines(&self) -> BTreeSet<&MachineId> {
        let records = self.records.values();
        records.flat_map(|record| &record.machines).collect()
    }

    /// The state of the record of a transfer, if there is one.
    pub(crate) fn state(&self, transfer: &TransferId) -> Option<RecordState> {
        self.records.get(transfer).map(|record| record.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CO-31: sorted as texts, everything first, exceptions last.
    #[test]
    fn the_lines_of_a_digest() {
        let domain = |text| Domain::parse(text).unwrap();
        let exception = |kind| Exception {
            kind,
            transfer: TransferId::new("7-1").ok(),
            peer: None,
            domain: None,
            stamp: Stamp::default(),
        };
        let machine = |id| MachineId::new(id).unwrap();
        let mut held = Holdings::default();
        assert_eq!(held.lines(), b"", "given nothing");
        held.domains = BTreeSet::from([domain("a=1"), domain("a.b=2")]);
        assert_eq!(held.lines(), b"a.b=2\na=1\n");
        held.everything = true;
        held.exceptions = BTreeMap::from([
            (machine("m1"), exception(ExceptionKind::Guest)),
            (machine("m2"), exception(ExceptionKind::Away)),
        ]);
        let expected = b"*\na.b=2\na=1\naway m2 7-1\nguest m1 7-1\n";
        assert_eq!(held.lines(), expected);
    }
}
