//! Probes: `/metrics`, `/healthz` and `/readyz`, in as much HTTP as a scraper needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

const MOST_AT_ONCE: usize = 16;
const MOST_HEAD_BYTES: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// An answer: its status line and its text.
pub(super) type Answer = (&'static str, String);

/// Answers until dropped.
pub(super) async fn serve<F, A>(listener: TcpListener, answer: F)
where
    F: Fn(String) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let answer = Arc::new(answer);
    let places = Arc::new(Semaphore::new(MOST_AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        // A failed accept is the peer's trouble, or a shortage that the next one will show again.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            drop(tokio::time::timeout(PATIENCE, converse(stream, &*answer)).await);
            drop(place);
        });
    }
}

async fn converse<F, A>(mut stream: TcpStream, answer: &F) -> std::io::Result<()>
where
    F: Fn(String) -> A,
    A: Future<Output = Answer>,
{
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await?;
        head.extend(&chunk[..read]);
        if read == 0 || MOST_HEAD_BYTES < head.len() {
            break;
        }
    }
    let text = String::from_utf8_lossy(&head);
    let path = text
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let (status, body) = answer(path).await;
    let length = body.len();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}
