//! The operator of a demonstration cluster: a [`Cluster`] on a real session.
//!
//! ```text
//! orders ─▶ ┌──────────────────┐ ══ Session ══▶ shard
//! timer ──▶ │ Cluster (a value)│ ◀═ frames ════
//!           └──────────────────┘  lost? back off, doubling, and dial again
//! ```
//!
//! Nothing is decided here: what is said is the cluster's. It ends when nobody can give it orders any more.

use std::net::SocketAddr;
use std::time::Duration;

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES};
use bigfleet_wire::v1alpha1::OperatorMessage;
use bigfleet_wire::v1alpha1::shard_client::ShardClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::cluster::{Cluster, Order};
use crate::pace::Pace;

/// First and longest wait before it dials again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// Frames on their way to the shard; an operator whose shard does not read has lost its session.
const OUTBOX: usize = 256;
/// Orders that wait to be taken.
pub(crate) const ORDERS: usize = 64;

/// How a session ended.
enum Over {
    /// Nobody gives orders any more.
    Stop,
    /// The cluster was told to be silent.
    Silent,
    /// The connection is gone, and whether it had stood.
    Lost { stood: bool },
}

/// Speaks for a cluster until nobody gives it orders any more.
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
            Over::Stop => return,
            Over::Silent => pause = BACKOFF.0,
            Over::Lost { stood } => {
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

/// Waits, taking orders; false if there will be no more.
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
) -> Over {
    let lost = |stood: bool| Over::Lost { stood };
    let Ok(channel) = Dial::unknown(None).channel(&shard.to_string()) else {
        return lost(false);
    };
    let mut client = ShardClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (send, frames) = mpsc::channel::<OperatorMessage>(OUTBOX);
    let say = |payloads: Vec<_>| {
        let mut messages = payloads.into_iter().map(OperatorMessage::from);
        messages.all(|message| send.try_send(message).is_ok())
    };
    if !say(cluster.opened(pace.fleet())) {
        return lost(false);
    }
    let answer = client.session(ReceiverStream::new(frames)).await;
    let mut incoming = match answer {
        Ok(answer) => answer.into_inner(),
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
                    return Over::Stop;
                };
                cluster.order(order);
                if !cluster.wants_session() {
                    return Over::Silent;
                }
                Vec::new()
            }
            frame = incoming.message() => match frame {
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
        if !say(said) {
            return lost(stood);
        }
    }
}
