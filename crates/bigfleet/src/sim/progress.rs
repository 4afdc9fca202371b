//! Progress: a bar for people, and a line now and then for logs. Both on stderr.

use indicatif::{ProgressBar, ProgressStyle};
use std::{
    io::IsTerminal,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Without a terminal, so far apart.
const EVERY: Duration = Duration::from_secs(30);

/// How far something is that takes a while.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines(Mutex<Lines>),
}

/// What was done, and when that was last said.
pub(crate) struct Lines {
    began: Instant,
    said: Instant,
    done: u64,
    of: u64,
}

impl Progress {
    pub(crate) fn new(of: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines(Mutex::new(Lines::new(Instant::now(), of)));
        }
        let bar = ProgressBar::new(of);
        let style =
            ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {elapsed} eta {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// One more is done, of this name.
    pub(crate) fn did(&self, name: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(name.to_owned());
                bar.inc(1);
            }
            Self::Lines(lines) => {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(line) = lines.did(Instant::now(), name) {
                    eprintln!("{line}");
                }
            }
        }
    }

    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Lines {
    fn new(began: Instant, of: u64) -> Self {
        Self {
            began,
            said: began,
            done: 0,
            of,
        }
    }

    fn did(&mut self, now: Instant, name: &str) -> Option<String> {
        self.done += 1;
        if now.duration_since(self.said) < EVERY {
            return None;
        }
        self.said = now;
        let Self { done, of, .. } = self;
        let seconds = now.duration_since(self.began).as_secs();
        Some(format!("{done} of {of} after {seconds} s, last {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_said_every_thirty_seconds_and_not_before() {
        let began = Instant::now();
        let mut lines = Lines::new(began, 9);
        let mut at = |seconds| lines.did(began + Duration::from_secs(seconds), "twins");
        assert_eq!(at(1), None);
        assert_eq!(at(29), None);
        let said = at(31);
        assert_eq!(said.as_deref(), Some("3 of 9 after 31 s, last twins"));
        assert_eq!(at(60), None);
        assert!(at(61).is_some());
    }
}
