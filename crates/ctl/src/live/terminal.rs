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
use crate::error::CtlError;

/// Whether we have it: a panic elsewhere has nothing to give back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct Terminal(ratatui::Terminal<CrosstermBackend<Stdout>>);

impl Terminal {
    /// Takes it. Says what to do where there is none, or one that is too small to show anything.
    pub(super) fn take() -> Result<Self, CtlError> {
        if !(stdout().is_terminal() && io::stdin().is_terminal()) {
            let what = "the live view needs a terminal; without one, use `bigfleet get`";
            return Err(CtlError::Local(what.to_owned()));
        }
        let (width, height) = size().map_err(lost)?;
        if let Some(problem) = too_small(Rect::new(0, 0, width, height)) {
            return Err(CtlError::Local(problem));
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
    pub(super) fn draw(&mut self, picture: impl FnOnce(Rect, &mut Buffer)) -> Result<(), CtlError> {
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

fn lost(why: io::Error) -> CtlError {
    CtlError::Local(format!("the terminal cannot be used: {why}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
    use std::io::Read;

    const CHILD: &str = "BIGFLEET_TEST_PANICS_IN_A_TERMINAL";

    /// Run by the test below in a terminal of its own; does nothing otherwise.
    #[test]
    fn child_that_panics() {
        if std::env::var_os(CHILD).is_some() {
            let terminal = Terminal::take().unwrap();
            std::mem::forget(terminal); // only the hook is left to give it back
            panic!("out of luck");
        }
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_speaks() {
        let size = PtySize {
            rows: 24,
            cols: 80,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let modes = |master: &dyn MasterPty| format!("{:?}", master.get_termios().unwrap());
        let before = modes(&*pair.master);
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args([
            "live::terminal::tests::child_that_panics",
            "--exact",
            "--nocapture",
        ]);
        command.env(CHILD, "1");
        let mut child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let mut seen = Vec::new();
        // Ends with an error once the other side is closed.
        drop(reader.read_to_end(&mut seen));
        assert!(!child.wait().unwrap().success());
        let seen = String::from_utf8_lossy(&seen);
        let at = |text: &str| {
            seen.find(text)
                .unwrap_or_else(|| panic!("{text:?} in {seen:?}"))
        };
        assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"), "{seen:?}");
        assert!(at("\u{1b}[?1049l") < at("out of luck"), "{seen:?}");
        assert_eq!(modes(&*pair.master), before, "the modes are as before");
    }
}
