//! What an ordinary build has in place of trouble: nothing can be asked for, and nothing happens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bigfleet_shard_core::{ProviderCall, Record};

/// What goes wrong on purpose: nothing.
#[derive(Clone, Debug, Default)]
pub struct Trouble(());

impl Trouble {
    /// Whether this build takes requests for trouble.
    pub const CAN_BE_REQUESTED: bool = false;

    /// Refuses.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        Err(format!("{text}: this build has no test switches"))
    }

    /// Unix time by the host's clock.
    pub(crate) fn host_clock(&self) -> Duration {
        // A host whose clock is before 1970 has other troubles; a shard still runs on it.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
    }

    pub(crate) fn store_forgets(&self) -> bool {
        false
    }

    pub(crate) fn lets_calls_go(&self) -> bool {
        false
    }

    pub(crate) fn queues_calls(&self) -> bool {
        false
    }

    pub(crate) fn panics_unheard(&self) -> bool {
        false
    }

    pub(crate) fn works(&self, _part: &'static str) {}

    pub(crate) fn writes(&self, _moment: &'static str, _records: &[Record]) {}

    pub(crate) fn leaves(&self, _call: Call) {}

    pub(crate) fn answered(&self, _call: Call) {}
}

/// The two moments of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call(());

impl From<&ProviderCall> for Call {
    fn from(_call: &ProviderCall) -> Self {
        Self(())
    }
}
