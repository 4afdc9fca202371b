//! Shard info: what readers and admins are told that the core does not know.

use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_shard_core::ShardCore;
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::InspectHeader;

use super::stream::count;
use crate::clock::Clock;
use crate::settings::Settings;

/// Which shard this is, and what it stands beside.
#[derive(Debug)]
pub(crate) struct ShardInfo {
    pub(crate) shard: String,
    /// The provider's name, which the core uses.
    pub(crate) provider: String,
    /// Its address, which people use.
    pub(crate) provider_address: String,
    pub(crate) cycle_interval: Duration,
    /// Everything is paused by a flag.
    pub(crate) flag_pauses: bool,
    clock: Clock,
}

impl ShardInfo {
    pub(crate) fn new(settings: &Settings, clock: Clock) -> Self {
        Self {
            shard: settings.core.shard.clone(),
            provider: settings.core.provider.clone(),
            provider_address: settings.provider_addr.clone(),
            cycle_interval: settings.core.cycle_interval,
            flag_pauses: settings.actuation_paused,
            clock,
        }
    }

    /// A shard that decides this often.
    #[cfg(test)]
    pub(super) fn of_test(cycle_interval: Duration) -> Self {
        Self {
            shard: "s1".to_owned(),
            provider: "fake".to_owned(),
            provider_address: String::new(),
            cycle_interval,
            flag_pauses: false,
            clock: Clock::start(1.0),
        }
    }

    /// So much of the host's time, by the shard's clock.
    pub(super) fn scaled(&self, lasted: Duration) -> Duration {
        self.clock.scaled(lasted)
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
        InspectHeader {
            cycle: core.cycle().try_into().unwrap_or(i64::MAX),
            computed_at_unix_nanos: core.last_cycle().map_or(0, unix_nanos),
            total: count(total),
            shard_id: self.shard.clone(),
            cycle_took_nanos: i64::try_from(core.last_cycle_took().as_nanos()).unwrap_or(i64::MAX),
        }
    }
}
