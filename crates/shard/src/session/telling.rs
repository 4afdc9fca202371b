//! Telling: what an operator says, on its way to the core, so much at a time (SE-9).
//!
//! ```text
//! frame ─▶ a place, of sixteen, or several if it is large ─▶ the driver's queue ─▶ taken in: place and bytes are free
//! ```
//!
//! The queue to the core is shared. Without a bound for each, an operator that sends faster than the core takes
//! in fills it: everybody's word waits behind thousands of its own, and they lie there decoded, paid for by
//! nobody.

use std::sync::Arc;

use bigfleet_shard_core::Event;
use tokio::sync::Semaphore;

use crate::hub::{Hub, Stopping, Told};
use crate::incoming::LARGE_BYTES;
use crate::intake::Charge;

/// Words of one session that wait to be taken in; one of 256 KiB or more waits alone.
const MOST_WAITING: u32 = 16;

/// The way of one session's words to the core.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    hub: Hub,
    places: Arc<Semaphore>,
}

impl Telling {
    pub(super) fn new(hub: Hub) -> Self {
        Self::of(hub, MOST_WAITING)
    }

    fn of(hub: Hub, most: u32) -> Self {
        let places = Arc::new(Semaphore::new(most as usize));
        Self { hub, places }
    }

    /// Tells the core, once enough of what this session said before was taken in. The bytes are paid for until
    /// this is, too.
    pub(super) async fn tell(&self, event: Event, charge: Charge) -> Result<(), Stopping> {
        let more = u32::try_from(charge.bytes() / LARGE_BYTES).unwrap_or(u32::MAX);
        let places = more.saturating_add(1).min(MOST_WAITING);
        let place = Arc::clone(&self.places).acquire_many_owned(places);
        let place = place.await.map_err(|_| Stopping)?;
        let taken_in = move |_: &mut _| drop((place, charge));
        let told = Told::Event(event, Some(Box::new(taken_in)));
        let sent = self.hub.events.send(told).await;
        sent.map_err(|_| Stopping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Inbox;
    use crate::intake::Budget;
    use bigfleet_net::Caller;
    use bigfleet_shard_core::SessionId;

    const BUDGET: usize = 1 << 20;

    struct Scene {
        telling: Telling,
        inbox: Inbox,
        budget: Budget,
    }

    impl Scene {
        fn new(most: u32) -> Self {
            let (hub, inbox) = Hub::new(crate::trouble::Trouble::default());
            Self {
                telling: Telling::of(hub, most),
                inbox,
                budget: Budget::new(BUDGET),
            }
        }

        fn charge(&self, bytes: usize) -> Charge {
            let intake = self.budget.intake(&Caller::default());
            let mut charge = intake.decoded();
            charge.add(bytes).unwrap();
            charge
        }

        /// Whether there is room for one more word of so many bytes.
        async fn says(&self, bytes: usize) -> bool {
            let session = SessionId(1);
            let event = Event::HelloAgain { session };
            let told = self.telling.tell(event, self.charge(bytes));
            let soon = std::time::Duration::from_millis(20);
            tokio::time::timeout(soon, told).await.is_ok()
        }

        async fn taken_in(&mut self) {
            assert!(self.inbox.events.recv().await.is_some());
        }
    }

    /// Sixteen wait, and the next is heard once one of them was; with a bound for nobody, as it was, all of them
    /// wait.
    #[tokio::test(start_paused = true)]
    async fn a_session_has_so_many_words_waiting() {
        let mut waiting = [0, 0];
        for (most, waiting) in [MOST_WAITING, 1_000].into_iter().zip(&mut waiting) {
            let scene = Scene::new(most);
            while *waiting < 100 && scene.says(10).await {
                *waiting += 1;
            }
        }
        assert_eq!(waiting, [16, 100]);
        let mut scene = Scene::new(MOST_WAITING);
        while scene.says(10).await {}
        scene.taken_in().await;
        assert!(scene.says(10).await);
        assert!(!scene.says(10).await);
    }

    /// A large one is alone, and its bytes are paid for until it was taken in.
    #[tokio::test(start_paused = true)]
    async fn a_large_word_is_alone_and_paid_for() {
        let mut scene = Scene::new(MOST_WAITING);
        let large = MOST_WAITING as usize * LARGE_BYTES;
        assert!(scene.says(large).await);
        assert_eq!(scene.budget.in_all(), large);
        assert!(!scene.says(10).await && !scene.says(large).await);
        scene.taken_in().await;
        assert_eq!(scene.budget.in_all(), 0);
        assert!(scene.says(10).await);
        assert!(!scene.says(large).await, "not before the small one");
    }
}
