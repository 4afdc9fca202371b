//! The operator of a demonstration cluster: a [`Cluster`] on a real session.
//!
//! ```text
//! orders ─▶ ┌──────────────────┐ ══ Session ══▶ shard
//! timer ──▶ │ Cluster (a value)│ ◀═ frames ════
//!           └──────────────────┘  lost? back off, doubling, and dial again
//! ```
//!
//! The `Cluster` decides what to say; this only sends it. It ends when the channel of orders is closed.

use std::net::SocketAddr;
use std::time::Duration;

use bigfleet_scripted_operator::Session;
use tokio::sync::mpsc;

use crate::cluster::{Cluster, Order};
use crate::pace::Pace;

/// First and longest wait before it dials again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Orders that may wait.
pub(crate) const ORDERS: usize = 64;

/// How a session ended.
enum SessionEnd {
    /// The channel of orders was closed.
    Stop,
    /// The cluster was told to be silent.
    Silent,
    /// The connection was lost, and whether anything had been received on it.
    Lost { stood: bool },
}

/// Connects for a cluster again and again, until the channel of orders is closed.
pub(crate) async fn run(
    mut cluster: Cluster,
    pace: Pace,
    shard: SocketAddr,
    mut orders: mpsc::Receiver<Order>,
) {
    let mut pause = BACKOFF.0;
    loop {
        while !cluster.wants_session() {
            match orders.recv().await {
                Some(order) => cluster.order(order),
                None => return,
            }
        }
        let over = session(&mut cluster, pace, shard, &mut orders).await;
        cluster.closed();
        match over {
            SessionEnd::Stop => return,
            SessionEnd::Silent => pause = BACKOFF.0,
            SessionEnd::Lost { stood } => {
                if stood {
                    pause = BACKOFF.0;
                }
                let again = tokio::time::Instant::now() + pace.shrink(pause);
                pause = (pause * 2).min(BACKOFF.1);
                if !wait(&mut cluster, again, &mut orders).await {
                    return;
                }
            }
        }
    }
}

/// Waits until then, taking orders; false if the channel was closed.
async fn wait(
    cluster: &mut Cluster,
    until: tokio::time::Instant,
    orders: &mut mpsc::Receiver<Order>,
) -> bool {
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => cluster.order(order),
                None => return false,
            },
            () = tokio::time::sleep_until(until) => return true,
        }
    }
}

async fn session(
    cluster: &mut Cluster,
    pace: Pace,
    shard: SocketAddr,
    orders: &mut mpsc::Receiver<Order>,
) -> SessionEnd {
    let lost = |stood: bool| SessionEnd::Lost { stood };
    let first_words = cluster.opened(pace.fleet());
    let mut session = match Session::open(shard, first_words).await {
        Ok(session) => session,
        Err(status) => {
            tracing::debug!(cluster = %cluster.id(), %status, "no session");
            return lost(false);
        }
    };
    let mut stood = false;
    loop {
        let due = pace.instant(cluster.due());
        let said = tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else {
                    return SessionEnd::Stop;
                };
                cluster.order(order);
                if !cluster.wants_session() {
                    return SessionEnd::Silent;
                }
                Vec::new()
            }
            frame = session.next() => match frame {
                Ok(Some(frame)) => {
                    stood = true;
                    cluster.heard(pace.fleet(), frame)
                }
                Ok(None) => return lost(stood),
                Err(status) => {
                    tracing::debug!(cluster = %cluster.id(), %status, "session lost");
                    return lost(stood);
                }
            },
            () = tokio::time::sleep_until(due) => cluster.woken(pace.fleet()),
        };
        // A shard that does not read has lost its operator.
        if !said.into_iter().all(|payload| session.say(payload)) {
            return lost(stood);
        }
    }
}
