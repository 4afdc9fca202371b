//! On a terminal: the live view, and a terminal too small for it.
//!
//! `script` gives the binary a terminal of its own, as a person has one.

use crate::process::{Home, WITHIN};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A terminal of this size with `bigfleet up` in it.
struct Screen {
    child: Child,
    bytes: Receiver<Vec<u8>>,
    /// Everything it wrote.
    text: String,
    /// What a person sees of it: the view draws only what changed.
    drawn: vt100::Parser,
}

impl Screen {
    fn open(home: &Home, (width, height): (u16, u16), flags: &str) -> Self {
        let binary = env!("CARGO_BIN_EXE_bigfleet");
        let run = format!("stty cols {width} rows {height}; exec {binary} up {flags}");
        let mut command = Command::new("script");
        home.settle(&mut command);
        command
            .args(["-qec", &run, "/dev/null"])
            .env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("util-linux's script is there");
        let mut stdout = child.stdout.take().unwrap();
        let (say, bytes) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut chunk) {
                drop(say.send(chunk[..count].to_vec()));
            }
        });
        Self {
            child,
            bytes,
            text: String::new(),
            drawn: vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.text.push_str(&String::from_utf8_lossy(bytes));
        self.drawn.process(bytes);
    }

    /// Waits until this is on the screen.
    #[track_caller]
    fn shows(&mut self, text: &str) {
        let deadline = Instant::now() + WITHIN;
        while !self.drawn.screen().contents().contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.bytes.recv_timeout(left) else {
                let shown = self.drawn.screen().contents();
                panic!("it never showed \"{text}\" but:\n{shown}");
            };
            self.take(&bytes);
        }
    }

    fn press(&mut self, keys: &str) {
        let keyboard = self.child.stdin.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// How it ended, and everything it wrote.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.bytes.recv() {
            self.take(&bytes);
        }
        (code, self.text)
    }
}

#[test]
fn a_terminal_gets_the_live_view_until_somebody_leaves_it() {
    let home = Home::new("screen");
    let mut screen = Screen::open(&home, (120, 40), "--scenario steady --speed 120");
    screen.shows("edge-eu");
    screen.shows("web-eu asks for 36 service Pods");
    screen.press("p");
    screen.shows("Stop all changes to machines");
    screen.press("y");
    screen.shows("bigfleet  PAUSED");
    let shown = screen.drawn.screen().contents();
    let second = shown.lines().nth(1).unwrap_or_default();
    assert!(second.starts_with("PAUSED for "), "{shown}");
    screen.press("q");
    let (code, text) = screen.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.trim_end().ends_with("left running: nothing"), "{text}");
    home.is_empty();
}

#[test]
fn a_terminal_too_small_is_said_in_one_line_and_nothing_stays() {
    let home = Home::new("small");
    let (code, text) = Screen::open(&home, (30, 8), "").end();
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in ["30x8", "enlarge it", "-o text"] {
        assert!(text.contains(part), "{text}");
    }
    home.is_empty();
}
