//! The live view: one screen of a running shard, for `bigfleet top` and `bigfleet up`.
//!
//! ```text
//! shard ── poll ──▶ PollUpdate ──▶ ┌────────┐ ──▶ draw: a pure function of the Screen
//! keyboard ───────▶ keys ────────▶ │ Screen │
//!                                  └────────┘ ──▶ KeyRequest: pause, resume, explain ──▶ shard
//! ```
//!
//! Everything on the screen is in one value, so a test can draw it without a terminal or a shard. When
//! the shard stops answering, the last screen stays, with a line that says since when. The terminal is
//! restored however this ends: by a key, a signal, an error, a panic, or a dropped future.

mod draw;
mod keys;
mod overview;
mod panes;
mod poll;
mod screen;
mod terminal;
mod troubles;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyEventKind};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use crate::client::Client;
use crate::error::CtlError;
use crate::when;
use keys::press;
use poll::Poll;
use screen::Screen;
use terminal::Terminal;

/// How the view behaves.
#[derive(Debug)]
pub struct LiveOptions {
    /// How often the shard is asked.
    pub every: Duration,
    /// Whether to use colours.
    pub colour: bool,
    /// How long the pause of the key `p` lasts.
    pub pause_for: Duration,
    /// Lines the caller wants shown as they come, for example what a scenario does next.
    pub notes: Option<mpsc::Receiver<String>>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(1),
            colour: true,
            pause_for: Duration::from_secs(30 * 60),
            notes: None,
        }
    }
}

/// How often the screen is drawn when nothing else happens, so that its clock moves.
const TICK: Duration = Duration::from_secs(1);
/// Updates that may wait to be drawn.
const WAITING: usize = 16;

/// Shows the shard until somebody presses `q` or Ctrl-C. The terminal is restored afterwards, also if
/// the future is dropped half way. Fails if there is no terminal, or one that is too small.
pub async fn run(client: Client, options: LiveOptions) -> Result<(), CtlError> {
    let mut terminal = Terminal::take()?;
    let mut screen = Screen::new(client.target(), options.colour, options.pause_for);
    let (tell, mut update) = mpsc::channel(WAITING);
    let poll = Poll::start(client, options.every, tell);
    let mut notes = options.notes;
    let mut events = EventStream::new();
    let mut tick = tokio::time::interval(TICK);
    loop {
        screen.clock = when::local_now();
        terminal.draw(|area, buffer| draw::draw(&screen, area, buffer))?;
        tokio::select! {
            event = events.next() => {
                let Some(Ok(event)) = event else {
                    // The terminal is gone.
                    return Ok(());
                };
                if !handle(&event, &mut screen, &poll) {
                    return Ok(());
                }
            }
            Some(update) = update.recv() => screen.take(update),
            note = next(&mut notes) => match note {
                Some(note) => screen.note(&note),
                None => notes = None,
            },
            _ = tick.tick() => {}
        }
    }
}

/// Handles a key; false to leave.
fn handle(event: &Event, screen: &mut Screen, poll: &Poll) -> bool {
    let Event::Key(key) = event else {
        return true; // a new size is noticed when the screen is drawn
    };
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match press(screen, *key) {
        Some(keys::KeyRequest::Leave) => false,
        Some(ask) => {
            poll.ask(ask, screen.pause_for);
            true
        }
        None => true,
    }
}

/// The next note; waits for ever if there will be none.
async fn next(notes: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match notes {
        Some(notes) => notes.recv().await,
        None => std::future::pending().await,
    }
}
