//! Fencing and incidents: the two ways in which a shard stops itself, for good.
//!
//! ```text
//! the provider has seen a newer token ─▶ fenced        something that cannot happen did ─▶ incident
//!                                   └──── nothing leaves any more; deciding and reporting go on ────┘
//! ```
//!
//! Fenced, another process runs this shard (FE-4). After an incident this process does not know what it
//! thought it knew, and whatever it would do next may be wrong. Both end with the process: a restart reads
//! records and provider afresh.

/// Why a shard has stopped itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    is_fenced: bool,
    incident: Option<String>,
}

impl Stop {
    pub(crate) fn fence(&mut self) {
        self.is_fenced = true;
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.is_fenced
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
        self.is_fenced || self.incident.is_some()
    }
}
