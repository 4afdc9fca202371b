//! Session: one stream to the shard (OP-13 to OP-15).
//!
//! ```text
//! Dial ─▶ Opened ─▶ frames both ways ─▶ Closed, and why
//! ```
//!
//! The first frame goes out with the call: a shard answers nothing before it. Reading never waits for work: a frame goes
//! to the core, which queues what follows from it. A shard that does not read is hung up on.

use crate::frames::{heard, said};
use crate::process::Feed;
use bigfleet_net::{Dial, MAX_MESSAGE_BYTES, Tls};
use bigfleet_operator_core::{ClosedBy, Event, Frame, SessionId};
use bigfleet_wire::v1alpha1 as wire;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};
use wire::shard_client::ShardClient;

/// Frames on their way to the shard.
const OUTBOX: usize = 4096;

/// How to reach the shard.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) cluster: String,
    pub(crate) addr: String,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// An open stream, or one that is being opened. Dropping it ends it.
pub(crate) struct Stream {
    pub(crate) id: SessionId,
    cluster: String,
    outbox: mpsc::Sender<wire::OperatorMessage>,
    task: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream {
    /// Begins; what becomes of it arrives as events.
    pub(crate) fn open(shard: &Shard, id: SessionId, feed: Feed) -> Self {
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let of_task = shard.clone();
        let task = tokio::spawn(async move {
            feed.send(Event::Opened(id)).await;
            let ended = run(&of_task, id, frames, &feed).await;
            feed.send(Event::Closed(id, ended)).await;
        });
        Self {
            id,
            cluster: shard.cluster.clone(),
            outbox,
            task,
        }
    }

    /// Sends without waiting; false if the shard does not read.
    pub(crate) fn say(&self, frame: Frame) -> bool {
        self.outbox
            .try_send(said(&self.cluster, frame).into())
            .is_ok()
    }
}

async fn run(
    shard: &Shard,
    id: SessionId,
    frames: mpsc::Receiver<wire::OperatorMessage>,
    feed: &Feed,
) -> ClosedBy {
    let channel = match Dial::unknown(shard.tls.clone()).channel(&shard.addr) {
        Ok(channel) => channel,
        Err(why) => return ClosedBy::Refused(why.to_string()),
    };
    let mut client = ShardClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let answer = client.session(ReceiverStream::new(frames)).await;
    let mut incoming = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return closed_by(&status),
    };
    loop {
        match incoming.message().await {
            Ok(Some(frame)) => {
                feed.send(Event::Heard(id, heard(frame))).await;
            }
            Ok(None) => return ClosedBy::Transport("the shard closed the session".to_owned()),
            Err(status) => return closed_by(&status),
        }
    }
}

fn closed_by(status: &Status) -> ClosedBy {
    let text = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented => {
            ClosedBy::Refused(text)
        }
        _ => ClosedBy::Transport(text),
    }
}
