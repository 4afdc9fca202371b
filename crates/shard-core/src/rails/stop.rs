//! Fencing, twins and incidents: the ways in which a shard stops itself, for good.
//!
//! ```text
//! the provider has seen a newer token ─▶ fenced        something that cannot happen did ─▶ incident
//! it shows an epoch this one had to come after ─▶ twin
//!                                   └──── nothing leaves any more; deciding and reporting go on ────┘
//! ```
//!
//! Fenced, another process runs this shard (FE-4). So it does, or did, if its marks are found at the start with
//! an epoch that is not below this one's (SH-33): a data directory was lost or is an old copy. After an incident
//! this process does not know what it thought it knew, and whatever it would do next may be wrong. All of that ends
//! with the process: a restart reads records and provider afresh. One thing does not: once the coordinator knows another process as
//! this shard, no later process of this directory acts either (CO-14).

/// Why a shard has stopped itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    is_fenced: bool,
    /// Another process is on record as this shard at the coordinator (CO-14).
    is_superseded: bool,
    /// The highest epoch of this shard that the provider's records show, if it is not below ours.
    twin: Option<u64>,
    incident: Option<String>,
}

impl Stop {
    pub(crate) fn fence(&mut self) {
        self.is_fenced = true;
    }

    pub(crate) fn supersede(&mut self) {
        self.is_superseded = true;
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.is_superseded
    }

    /// Whether another process runs this shard, by the word of the provider or the coordinator.
    pub(crate) fn is_fenced(&self) -> bool {
        self.is_fenced || self.is_superseded
    }

    /// A record shows this epoch of the shard; says whether it is the first.
    pub(crate) fn note_twin(&mut self, epoch: u64) -> bool {
        let before = self.twin.replace(self.twin.unwrap_or(0).max(epoch));
        before.is_none()
    }

    pub(crate) fn twin(&self) -> Option<u64> {
        self.twin
    }

    /// The first incident is the one that is shown: the others may follow from it.
    pub(crate) fn note_incident(&mut self, what: &str) {
        self.incident.get_or_insert_with(|| what.to_owned());
    }

    pub(crate) fn incident(&self) -> Option<&str> {
        self.incident.as_deref()
    }

    /// Whether nothing may leave any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_fenced() || self.twin.is_some() || self.incident.is_some()
    }
}
