//! Pace: how soon a cluster's sessions follow each other (SE-4).
//!
//! ```text
//! Hello ─▶ a quarter of a second after the last one began ─▶ still the newest? ──┬─ yes ─▶ begins
//!                                                                                └─ no ──▶ ABORTED
//! ```
//!
//! A session that begins has every machine of its cluster told anew. An operator that connects again and again would
//! have the shard do little else, and everybody wait for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bigfleet_model::ClusterId;
use tokio::time::Instant;
use tonic::Status;

/// Between two sessions of one cluster.
const BETWEEN: Duration = Duration::from_millis(250);

/// When sessions of each cluster began last.
#[derive(Clone, Debug)]
pub(crate) struct SessionPace {
    between: Duration,
    begun: Arc<Mutex<BTreeMap<ClusterId, Begun>>>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    /// When the last one began; `None` if none did.
    at: Option<Instant>,
    /// The newest that wants to.
    newest: u64,
    /// How many wait for their turn.
    waiting: usize,
}

impl Default for SessionPace {
    fn default() -> Self {
        Self::of(BETWEEN)
    }
}

impl SessionPace {
    fn of(between: Duration) -> Self {
        Self {
            between,
            begun: Arc::default(),
        }
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<ClusterId, Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another session of a cluster may begin; an error if a newer one of it came meanwhile.
    pub(crate) async fn turn(&self, cluster: &ClusterId) -> Result<(), Status> {
        let (number, after) = {
            let mut begun = self.begun();
            // Those that are not remembered began long enough ago.
            begun.retain(|_, one| {
                0 < one.waiting || one.at.is_some_and(|at| at.elapsed() < self.between)
            });
            let one = begun.entry(cluster.clone()).or_insert(Begun {
                at: None,
                newest: 0,
                waiting: 0,
            });
            one.newest += 1;
            one.waiting += 1;
            (one.newest, one.at.map(|at| at + self.between))
        };
        let waiting = Waiting(self, cluster);
        if let Some(after) = after {
            tokio::time::sleep_until(after).await;
        }
        let mut begun = self.begun();
        let newest = begun.get_mut(cluster);
        let is_newest = match newest {
            Some(one) if one.newest != number => false,
            Some(one) => {
                one.at = Some(Instant::now());
                true
            }
            None => true,
        };
        drop(begun);
        drop(waiting);
        if is_newest {
            Ok(())
        } else {
            let why = "the cluster's operator has opened a newer session";
            Err(Status::aborted(why))
        }
    }
}

/// One that waits for its turn.
struct Waiting<'a>(&'a SessionPace, &'a ClusterId);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(one) = self.0.begun().get_mut(self.1) {
            one.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::JoinSet;

    fn cluster(name: &str) -> ClusterId {
        ClusterId::new(name).unwrap()
    }

    /// How many of a hundred sessions a second begin, for ten seconds, of an operator that connects all the time.
    async fn begun(between: Duration) -> usize {
        let pace = SessionPace::of(between);
        let mut sessions = JoinSet::new();
        for _ in 0..1000 {
            let pace = pace.clone();
            sessions.spawn(async move { pace.turn(&cluster("a")).await.is_ok() });
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        sessions
            .join_all()
            .await
            .into_iter()
            .filter(|begun| *begun)
            .count()
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_that_connects_all_the_time_begins_few_sessions() {
        let few = begun(BETWEEN).await;
        assert!((1..=41).contains(&few), "{few} in ten seconds");
        assert_eq!(begun(Duration::ZERO).await, 1000, "without a pace");
    }

    /// The newest begins, and nobody else waits for it.
    #[tokio::test(start_paused = true)]
    async fn of_those_that_wait_the_newest_begins() {
        let pace = SessionPace::default();
        let start = Instant::now();
        pace.turn(&cluster("a")).await.unwrap();
        pace.turn(&cluster("b")).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "the first of each at once");
        let (a, a_again) = (cluster("a"), cluster("a"));
        let (older, newer) = tokio::join!(pace.turn(&a), pace.turn(&a_again));
        assert_eq!(older.unwrap_err().code(), tonic::Code::Aborted);
        newer.unwrap();
        assert!(BETWEEN <= start.elapsed());
        tokio::time::sleep(BETWEEN).await;
        pace.turn(&cluster("c")).await.unwrap();
        assert_eq!(pace.begun().len(), 1, "what is long ago is forgotten");
    }
}
