//! Shard info: what readers and admins are told that the core does not know.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::Time;
use bigfleet_shard_core::{ShardCore, Trouble};
use bigfleet_wire::unix_nanos;
use bigfleet_wire::v1alpha1::InspectHeader;

use super::stream::count;
use super::troubles;
use crate::clock::Clock;
use crate::provider::ListTimes;
use crate::publish::why_not_ready;
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
    /// How Lists went: what the last failure was, in the provider's words.
    lists: Arc<ListTimes>,
    clock: Clock,
}

impl ShardInfo {
    pub(crate) fn new(settings: &Settings, clock: Clock, lists: Arc<ListTimes>) -> Self {
        Self {
            shard: settings.core.shard.clone(),
            provider: settings.core.provider.clone(),
            provider_address: settings.provider_addr.clone(),
            cycle_interval: settings.core.cycle_interval,
            flag_pauses: settings.actuation_paused,
            lists,
            clock,
        }
    }

    /// Waits for so long, by the shard's clock.
    pub(crate) async fn sleep(&self, span: Duration) {
        tokio::time::sleep_until(self.clock.instant(self.clock.now() + span)).await;
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
            lists: Arc::default(),
            clock: Clock::start(1.0, Duration::ZERO),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// What concerns the whole shard, in words, worst first. Runs on the core.
    pub(super) fn troubles(&self, core: &ShardCore) -> Vec<String> {
        let (now, said) = (self.now(), self.lists.problem_words());
        let troubles = core.troubles();
        let words = |one: &Trouble| troubles::words(one, &self.provider_address, &said, now);
        troubles.iter().map(words).collect()
    }

    /// What is wrong with a provider that is lost, as the end of a sentence that begins with it.
    pub(super) fn provider_problem(&self) -> String {
        self.lists.problem_words()
    }

    /// What an answer of this many entries is taken from. Runs on the core.
    pub(super) fn header(&self, core: &ShardCore, total: usize) -> InspectHeader {
        InspectHeader {
            cycle: core.cycle().try_into().unwrap_or(i64::MAX),
            computed_at_unix_nanos: core.last_cycle().map_or(0, unix_nanos),
            total: count(total),
            shard_id: self.shard.clone(),
            cycle_took_nanos: i64::try_from(core.last_cycle_took().as_nanos()).unwrap_or(i64::MAX),
            troubles: self.troubles(core),
            not_ready: why_not_ready(core).unwrap_or_default(),
            answered_at_unix_nanos: unix_nanos(self.now()),
        }
    }
}
