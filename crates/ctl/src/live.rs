//! The live view: one screen of a running shard, for `bigfleet top` and `bigfleet up`.
//!
//! ```text
//! shard ── poll ──▶ News ──▶ ┌────────┐ ──▶ draw ──▶ picture, a pure function of the Screen
//! keyboard ───────▶ keys ──▶ │ Screen │
//!                            └────────┘ ──▶ Ask: pause, resume, explain ──▶ shard ──▶ News
//! ```
//!
//! Everything that is shown is in one value, so a test can draw it without a terminal or a shard. A
//! shard that is lost leaves its last picture standing, with a line that says since when. The terminal
//! is given back however this ends: by a key, a signal, an error, a panic, or a dropped future.

mod draw;
mod keys;
mod panes;
mod picture;
mod poll;
mod screen;
mod terminal;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyEventKind};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use crate::client::Client;
use crate::trouble::Trouble;
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
    /// Whether there are colours.
    pub colour: bool,
    /// How long a pause lasts that is asked for with `p`.
    pub pause_for: Duration,
    /// Lines the caller wants shown as they come, for example what a scenario does next. Whoever
    /// sends more than is taken waits.
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

/// How often the clock on the screen moves when nothing else does.
const TICK: Duration = Duration::from_secs(1);
/// News that wait to be drawn.
const WAITING: usize = 16;

/// Shows the shard until somebody leaves with `q` or Ctrl-C. The terminal is as before afterwards,
/// also if the future is dropped half way. An error if there is no terminal, or one too small.
pub async fn run(client: Client, options: LiveOptions) -> Result<(), Trouble> {
    let mut terminal = Terminal::take()?;
    let mut screen = Screen::new(client.target(), options.colour, options.pause_for);
    let (tell, mut news) = mpsc::channel(WAITING);
    let poll = Poll::start(client, options.every, tell);
    let mut notes = options.notes;
    let mut events = EventStream::new();
    let mut tick = tokio::time::interval(TICK);
    loop {
        screen.clock = when::here();
        terminal.draw(|area, buffer| draw::draw(&screen, area, buffer))?;
        tokio::select! {
            event = events.next() => {
                let Some(Ok(event)) = event else {
                    // The terminal is gone; nobody is left to show anything to.
                    return Ok(());
                };
                if !taken(&event, &mut screen, &poll) {
                    return Ok(());
                }
            }
            Some(news) = news.recv() => screen.take(news),
            note = next(&mut notes) => match note {
                Some(note) => screen.note(&note),
                None => notes = None,
            },
            _ = tick.tick() => {}
        }
    }
}

/// What a key does; false to leave.
fn taken(event: &Event, screen: &mut Screen, poll: &Poll) -> bool {
    let Event::Key(key) = event else {
        return true; // a new size is seen when it is drawn
    };
    if key.kind == KeyEventKind::Release {
        return true;
    }
    match press(screen, *key) {
        Some(keys::Ask::Leave) => false,
        Some(ask) => {
            poll.ask(ask, screen.pause_for);
            true
        }
        None => true,
    }
}

/// The next note; never, if none will come.
async fn next(notes: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match notes {
        Some(notes) => notes.recv().await,
        None => std::future::pending().await,
    }
}
