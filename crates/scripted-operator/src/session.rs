//! A session with a shard, and a task that answers its frames by a script.

use std::net::SocketAddr;

use bigfleet_net::{Dial, MAX_MESSAGE_BYTES};
use bigfleet_wire::v1alpha1 as wire;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use wire::operator_message::Payload;
use wire::shard_client::ShardClient;
use wire::shard_message::Payload as FromShard;

/// Frames on their way to the shard. One that does not read that many has lost its operator.
const OUTBOX: usize = 1024;

/// What an operator makes of the frames it gets.
pub trait Script: Send + 'static {
    /// A frame came: what is answered, if anything.
    fn hear(&mut self, frame: FromShard) -> Option<Payload>;

    /// The session is over: the shard closed it, or it broke.
    fn ended(&mut self, how: Result<(), Status>);
}

/// An open session.
#[derive(Debug)]
pub struct Session {
    outbox: mpsc::Sender<wire::OperatorMessage>,
    incoming: Streaming<wire::ShardMessage>,
}

impl Session {
    /// Connects and says the first words, Hello among them; answers once the shard has taken the
    /// session on.
    pub async fn open(
        shard: SocketAddr,
        first_words: impl IntoIterator<Item = Payload>,
    ) -> Result<Self, Status> {
        let channel = Dial::unknown(None).channel(&shard.to_string());
        let channel = channel.map_err(|why| Status::internal(why.to_string()))?;
        let mut client = ShardClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (outbox, frames) = mpsc::channel(OUTBOX);
        for payload in first_words {
            let queued = outbox.try_send(payload.into());
            queued.map_err(|_| Status::resource_exhausted("too many first words"))?;
        }
        let answer = client.session(ReceiverStream::new(frames)).await?;
        let incoming = answer.into_inner();
        Ok(Self { outbox, incoming })
    }

    /// Sends without waiting; false if the shard does not read, or the session is over.
    pub fn say(&self, payload: Payload) -> bool {
        self.outbox.try_send(payload.into()).is_ok()
    }

    /// The next frame that says something; `None` when the shard has closed the session.
    pub async fn next(&mut self) -> Result<Option<FromShard>, Status> {
        while let Some(frame) = self.incoming.message().await? {
            // A frame of a newer shard has nothing in it that is known here.
            if let Some(payload) = frame.payload {
                return Ok(Some(payload));
            }
        }
        Ok(None)
    }

    /// Answers every frame by the script, in a task of its own, until the session is over.
    pub fn run(mut self, mut script: impl Script) -> Running {
        let outbox = self.outbox.clone();
        let task = tokio::spawn(async move {
            let how = self.answer_all(&mut script).await;
            script.ended(how);
        });
        Running { outbox, task }
    }

    async fn answer_all(&mut self, script: &mut impl Script) -> Result<(), Status> {
        while let Some(frame) = self.next().await? {
            if let Some(answer) = script.hear(frame) {
                // A session that is over says so at the next frame.
                drop(self.outbox.send(answer.into()).await);
            }
        }
        Ok(())
    }
}

/// A session that is answered by a script. Dropping it drops the connection.
#[derive(Debug)]
pub struct Running {
    outbox: mpsc::Sender<wire::OperatorMessage>,
    task: JoinHandle<()>,
}

impl Running {
    /// Sends, and waits for room if the shard is slow; lost if the session is over.
    pub async fn send(&self, payload: Payload) {
        drop(self.outbox.send(payload.into()).await);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
