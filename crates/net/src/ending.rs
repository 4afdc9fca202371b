//! The end: how a process learns that it should stop.

use std::future::Future;

use tokio::signal::unix::{SignalKind, signal};

/// Ends when the process is asked to: an interrupt or a termination. Listens from the moment it is
/// called, so that a request during start is not lost.
pub fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "stopping");
    })
}
