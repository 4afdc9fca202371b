//! Place: what a reader is told that the core does not know, and who said what about a pause.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_shard_core::{Decided, Pause, PausedBy, Scope, ShardCore};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::InspectHeader;

use super::stream::count;
use crate::clock::Clock;
use crate::settings::Settings;

/// Which shard this is, and what it stands beside.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) shard: String,
    /// The provider's name, which the core uses.
    pub(crate) provider: String,
    /// Its address, which people use.
    pub(crate) provider_address: String,
    pub(crate) cycle_interval: Duration,
    /// Everything is paused by a flag.
    pub(crate) flag_pauses: bool,
    clock: Clock,
    notes: Mutex<BTreeMap<Scope, Note>>,
}

/// What an admin said when pausing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) requested_by: String,
    pub(crate) reason: String,
}

impl Place {
    pub(crate) fn new(settings: &Settings, clock: Clock) -> Self {
        Self {
            shard: settings.core.shard.clone(),
            provider: settings.core.provider.clone(),
            provider_address: settings.provider_addr.clone(),
            cycle_interval: settings.core.cycle_interval,
            flag_pauses: settings.actuation_paused,
            clock,
            notes: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// How long a reader waits for a cycle: one is due in every interval, and takes its time.
    pub(super) fn patience(&self) -> Duration {
        self.cycle_interval + Duration::from_secs(5)
    }

    /// What an answer of this many entries is taken from. Runs on the core.
    pub(super) fn header(&self, core: &ShardCore, total: usize) -> InspectHeader {
        let decided = core.decided().map(Arc::as_ref);
        self.header_of(core.cycle(), decided, total)
    }

    /// The same, from what the core said.
    pub(super) fn header_of(
        &self,
        cycle: u64,
        decided: Option<&Decided>,
        total: usize,
    ) -> InspectHeader {
        // The core tells when a cycle was only together with its verdicts. Without them it is as good as
        // now: what is shown is read now, and a reader reckons ages from it by the shard's clock, not its own.
        let decided = decided.filter(|decided| decided.cycle == cycle);
        let ran_at = decided.map_or_else(|| self.now(), |decided| decided.at);
        InspectHeader {
            cycle: cycle.try_into().unwrap_or(i64::MAX),
            computed_at_unix_nanos: if cycle == 0 { 0 } else { unix_nanos(ran_at) },
            total: count(total),
            shard_id: self.shard.clone(),
        }
    }

    /// Notes who paused a scope and why, and forgets the notes of pauses that are over.
    pub(crate) fn note(&self, scope: Scope, note: Note, in_force: &[Pause]) {
        let admin = |pause: &&Pause| pause.by == PausedBy::Admin;
        let mut notes = self.notes();
        notes.retain(|noted, _| {
            let mut pauses = in_force.iter().filter(admin);
            pauses.any(|pause| pause.scope == *noted)
        });
        notes.insert(scope, note);
    }

    /// What was said when this was paused; nothing for what configuration pauses.
    pub(crate) fn noted(&self, pause: &Pause) -> Note {
        match pause.by {
            PausedBy::Configuration => Note::default(),
            PausedBy::Admin => self.notes().get(&pause.scope).cloned().unwrap_or_default(),
        }
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<Scope, Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
