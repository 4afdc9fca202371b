//! A real terminal with a verb in it, seen as a person would see it.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::shard_scene::WITHIN;

pub(crate) struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    modes: String,
}

impl Terminal {
    /// Starts a verb in a terminal of this size, with these variables besides.
    pub(crate) fn start(args: &[&str], width: u16, height: u16, env: &[(&str, &str)]) -> Self {
        Self::of(env!("CARGO_BIN_EXE_bigfleet"), args, (width, height), env)
    }

    /// Starts any program in one.
    pub(crate) fn of(
        program: &str,
        args: &[&str],
        (width, height): (u16, u16),
        env: &[(&str, &str)],
    ) -> Self {
        let size = PtySize {
            rows: height,
            cols: width,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let modes = modes(&*pair.master);
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(
            height.try_into().unwrap(),
            width.try_into().unwrap(),
            0,
        )));
        let raw: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (shown, bytes) = (Arc::clone(&screen), Arc::clone(&raw));
        let mut reader = pair.master.try_clone_reader().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                shown.lock().unwrap().process(&buffer[..count]);
                bytes.lock().unwrap().extend(&buffer[..count]);
            }
        });
        Self {
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
            screen,
            raw,
            modes,
        }
    }

    /// What is on it now.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Everything that was ever written to it.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Looks until this is on it.
    #[track_caller]
    pub(crate) fn shows(&self, what: &str) {
        self.looks(what, |text| text.contains(what));
    }

    #[track_caller]
    pub(crate) fn looks(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + WITHIN;
        while !holds(&self.text()) {
            assert!(Instant::now() < deadline, "never: {what}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the process to end, as a system that shuts down does.
    pub(crate) fn terminate(&self) {
        let pid = self.child.process_id().unwrap().to_string();
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for the end: the exit status, once the terminal is as it was before.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> u32 {
        let deadline = Instant::now() + WITHIN;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "it does not end:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(modes(&*self.master), self.modes, "the modes are as before");
        // What was written is still on its way through the terminal.
        loop {
            let parser = self.screen.lock().unwrap();
            let screen = parser.screen();
            if !screen.alternate_screen() && !screen.hide_cursor() {
                return status.exit_code();
            }
            drop(parser);
            assert!(Instant::now() < deadline, "the terminal was not given back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Whether it echoes, edits lines and so on.
fn modes(master: &(dyn MasterPty + Send)) -> String {
    format!("{:?}", master.get_termios().unwrap())
}
