//! The terminal: taken, drawn to, and given back however it ends.
//!
//! Given back means: out of raw mode, off the second screen, the cursor shown. A value does that when
//! it is dropped, which covers every return, every error and a future nobody waits for any more. A
//! panic does it too, before its message is printed, or the message would vanish with the screen.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::draw::too_small;
use crate::trouble::Trouble;

/// Whether we have it: a panic elsewhere has nothing to give back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Terminal(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Terminal {
    /// Takes it. Says what to do where there is none, or one that is too small to show anything.
    pub(super) fn take() -> Result<Self, Trouble> {
        if !(stdout().is_terminal() && io::stdin().is_terminal()) {
            let what = "the live view needs a terminal; without one, use `bigfleet get`";
            return Err(Trouble::Here(what.to_owned()));
        }
        let (width, height) = size().map_err(lost)?;
        if let Some(problem) = too_small(Rect::new(0, 0, width, height)) {
            return Err(Trouble::Here(problem));
        }
        give_back_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen))
            .and_then(|()| ratatui::Terminal::new(CrosstermBackend::new(stdout())));
        taken.map(Self).map_err(|why| {
            give_back();
            lost(why)
        })
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, picture: impl FnOnce(Rect, &mut Buffer)) -> Result<(), Trouble> {
        let drawn = self.0.draw(|frame| {
            let area = frame.area();
            picture(area, frame.buffer_mut());
        });
        drawn.map(|_| ()).map_err(lost)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn lost(why: io::Error) -> Trouble {
    Trouble::Here(format!("the terminal cannot be used: {why}"))
}

/// Gives it back, once.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        drop(disable_raw_mode());
        drop(execute!(stdout(), LeaveAlternateScreen, Show));
    }
}

fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}
