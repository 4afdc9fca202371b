//! Verdicts: those of the last cycle, or of the one before, for as many readers as like (RD-2).
//!
//! ```text
//! reader ─▶ at most a cycle old? ──▶ here they are, and the next cycle takes down newer ones
//!                │ no
//!                └─▶ the next cycle takes them down ─▶ one reader looks for them, on behalf of all
//! ```
//!
//! A cycle takes its verdicts down only if somebody asked before it began. Readers never cause a cycle:
//! Needs age and gangs are parked by the count of cycles, and looking must not change that.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_shard_core::{Decided, ShardCore};
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior};

use crate::hub::{Hub, Stopping};

/// How often to look whether the cycle has been. Looking takes the core microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The way to the verdicts.
#[derive(Debug)]
pub(super) struct Verdicts {
    patience: Duration,
    turn: Mutex<()>,
}

/// What the core has of them now.
struct Found {
    cycle: u64,
    decided: Option<Arc<Decided>>,
    /// Cycles decide: there is something to wait for.
    decides: bool,
}

impl Found {
    fn is_recent(&self) -> bool {
        let decided = self.decided.as_ref();
        decided.is_some_and(|decided| self.cycle <= decided.cycle + 1)
    }
}

fn look(core: &mut ShardCore) -> Found {
    core.want_verdicts();
    Found {
        cycle: core.cycle(),
        decided: core.decided().cloned(),
        decides: core.awaits().is_none(),
    }
}

impl Verdicts {
    pub(super) fn new(patience: Duration) -> Self {
        let turn = Mutex::default();
        Self { patience, turn }
    }

    /// The verdicts of a cycle that is at most one behind. A shard that has not seen its provider decides
    /// nothing: then nobody waits, and there are none.
    pub(super) async fn recent(&self, hub: &Hub) -> Result<Option<Arc<Decided>>, Stopping> {
        let _turn = self.turn.lock().await;
        let deadline = Instant::now() + self.patience;
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let found = hub.ask(look).await?;
            if found.is_recent() || !found.decides || deadline <= Instant::now() {
                return Ok(found.decided);
            }
        }
    }
}
