//! Verdicts: those of the last cycle, or of the one before, for as many readers as like (RD-2).
//!
//! ```text
//! reader ─▶ at most a cycle old? ──▶ here they are
//!                │ no
//!                └─▶ waits for the next cycle, which the driver announces to all readers at once
//! ```
//!
//! A cycle keeps its verdicts only if somebody asked before it began, so every reader asks: the next
//! reader finds them. Readers never cause a cycle: Needs age and gangs are parked by the count of cycles,
//! and looking must not change that.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_shard_core::{Decided, ShardCore};
use tokio::sync::watch;

use crate::hub::{Hub, Stopping};

/// What readers learn at the end of every cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndedCycle {
    cycle: u64,
    /// The verdicts that were kept last.
    decided: Option<Arc<Decided>>,
    /// Whether cycles decide anything yet: a shard that has not seen its provider does not.
    decides: bool,
}

impl EndedCycle {
    /// The last cycle of this core.
    pub(crate) fn of(core: &ShardCore) -> Self {
        Self {
            cycle: core.cycle(),
            decided: core.decided().cloned(),
            decides: core.awaits().is_none(),
        }
    }

    /// Whether there is nothing to wait for.
    fn is_enough(&self) -> bool {
        let decided = self.decided.as_ref();
        let is_recent = decided.is_some_and(|decided| self.cycle <= decided.cycle + 1);
        is_recent || !self.decides
    }
}

/// The way to the verdicts.
#[derive(Debug)]
pub(super) struct Verdicts {
    patience: Duration,
    cycles: watch::Receiver<EndedCycle>,
}

impl Verdicts {
    pub(super) fn new(patience: Duration, cycles: watch::Receiver<EndedCycle>) -> Self {
        Self { patience, cycles }
    }

    /// The verdicts of a cycle that is at most one behind. A shard that has not seen its provider decides
    /// nothing: then nobody waits, and there are none.
    pub(super) async fn recent(&self, hub: &Hub) -> Result<Option<Arc<Decided>>, Stopping> {
        let mut cycles = self.cycles.clone();
        cycles.mark_unchanged(); // what has ended by now, the core itself tells
        let asked = hub.ask(|core| {
            core.want_verdicts();
            EndedCycle::of(core)
        });
        let now = asked.await?;
        if now.is_enough() {
            return Ok(now.decided);
        }
        let enough = async {
            loop {
                cycles.changed().await.map_err(|_| Stopping)?;
                let ended = cycles.borrow_and_update();
                if ended.is_enough() {
                    return Ok(ended.decided.clone());
                }
            }
        };
        let waited = tokio::time::timeout(self.patience, enough).await;
        // Better old ones than none.
        waited.unwrap_or(Ok(now.decided))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{core, decide};
    use crate::trouble::Trouble;

    /// Time passes by itself here as soon as nobody has anything to do, so a reader that looked again
    /// and again would ask again and again.
    #[tokio::test(start_paused = true)]
    async fn a_reader_asks_the_core_once_and_is_told_when_a_cycle_has_ended() {
        let (hub, mut inbox) = Hub::new(Trouble::default());
        let (announce, cycles) = watch::channel(EndedCycle::default());
        let verdicts = Verdicts::new(Duration::from_secs(15), cycles);
        let reading = tokio::spawn(async move { verdicts.recent(&hub).await });
        let mut core = core("i1 Idle cpu=4 $1\n need a cpu=4");
        assert!(core.awaits().is_none(), "it decides");
        let question = inbox.questions.recv().await.unwrap();
        question(&mut core);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(inbox.questions.try_recv().is_err(), "the core is polled");
        assert!(!reading.is_finished());
        decide(&mut core);
        announce.send_replace(EndedCycle::of(&core));
        let found = reading.await.unwrap().unwrap().unwrap();
        assert_eq!((found.cycle, found.needs.len()), (core.cycle(), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_does_not_wait_for_ever() {
        let (hub, mut inbox) = Hub::new(Trouble::default());
        let (_announce, cycles) = watch::channel(EndedCycle::default());
        let verdicts = Verdicts::new(Duration::from_secs(15), cycles);
        let reading = tokio::spawn(async move { verdicts.recent(&hub).await });
        let mut core = core("i1 Idle cpu=4 $1\n need a cpu=4");
        inbox.questions.recv().await.unwrap()(&mut core);
        assert_eq!(reading.await.unwrap(), Ok(None));
    }
}
