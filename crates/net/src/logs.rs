//! Logs: one line per event on standard error, for people or for machines.
//!
//! ```text
//! text   2026-01-01T00:00:00Z  INFO shard: listening addr=…
//! json   {"timestamp":…,"level":"INFO","fields":{…}}
//! ```
//!
//! An event is one line, whatever is in it: ids and texts of peers reach the log, and one with a line break in it
//! could otherwise pass for an event of ours, or rewrite the terminal of whoever reads it. There are no colours: nobody could
//! tell ours from a peer's.
//!
//! `RUST_LOG`, where it is set, wins over the level: it can say more.

use std::borrow::Cow;
use std::io::{self, Stderr};
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For machines.
    Json,
}

/// A log setting that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogsRefused {
    /// No such format.
    #[error("\"{0}\" is not a log format: text or json")]
    Format(String),
    /// No such level.
    #[error(
        "\"{0}\" is not a log level: error, warn, info, debug, trace, or a filter like info,h2=warn"
    )]
    Level(String),
}

impl FromStr for LogFormat {
    type Err = LogsRefused;

    fn from_str(text: &str) -> Result<Self, LogsRefused> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(LogsRefused::Format(other.to_owned())),
        }
    }
}

/// Starts logging for the whole process, `quieted` libraries from WARN on unless the level names them. Whoever was first
/// stays in charge.
pub fn start(format: LogFormat, level: &str, quieted: &[&str]) -> Result<(), LogsRefused> {
    let refused = || LogsRefused::Level(level.to_owned());
    if !level.split(',').all(says_how_much) {
        return Err(refused());
    }
    let mut stated = EnvFilter::try_new(level).map_err(|_| refused())?;
    for library in quieted.iter().filter(|library| !level.contains(**library)) {
        let directive = format!("{library}=warn").parse();
        stated = stated.add_directive(directive.map_err(|_| refused())?);
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or(stated);
    let logs = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(filter)
        .with_writer(|| OneLine(io::stderr()));
    // An error means that the embedding program already logs in a way of its own.
    drop(match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().try_init(),
    });
    Ok(())
}

/// Writes events, which come whole, as one line each.
struct OneLine(Stderr);

impl io::Write for OneLine {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.write_all(one_line(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The text with everything escaped that is not to be seen in a line, but for its end.
fn one_line(text: &str) -> Cow<'_, str> {
    let (line, end) = match text.strip_suffix('\n') {
        Some(line) => (line, "\n"),
        None => (text, ""),
    };
    let is_odd = |letter: char| letter.is_control() || ['\u{2028}', '\u{2029}'].contains(&letter);
    if !line.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in line.chars() {
        if is_odd(letter) {
            escaped.extend(letter.escape_default());
        } else {
            escaped.push(letter);
        }
    }
    escaped.push_str(end);
    Cow::Owned(escaped)
}

/// Whether a part of a filter names a level, by itself or for a module. A word that is none would be
/// taken for a module, and everything else would be silent.
fn says_how_much(part: &str) -> bool {
    part.contains(['=', '[']) || part.parse::<LevelFilter>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let forged = "WARN x\r\n2026-01-01 ERROR y\u{1b}[2J\u{9b}\u{2028}\u{7}\n";
        let escaped = "WARN x\\r\\n2026-01-01 ERROR y\\u{1b}[2J\\u{9b}\\u{2028}\\u{7}\n";
        assert_eq!(one_line(forged), escaped);
        for whole in ["INFO größe 1\n", "", "\n"] {
            assert_eq!(one_line(whole), whole);
        }
    }

    #[test]
    fn what_is_no_format_or_level_is_refused_by_name() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        let refused = "xml".parse::<LogFormat>().unwrap_err().to_string();
        assert!(refused.contains("xml"), "{refused}");
        for wrong in ["info,=,", "loud", "info,h2"] {
            let refused = start(LogFormat::Text, wrong, &[]).unwrap_err().to_string();
            assert!(refused.contains(wrong), "{refused}");
        }
        let fine = [
            "info",
            "off",
            "info,h2=warn",
            "bigfleet_shard::timing=debug",
        ];
        assert!(fine.iter().all(|level| level.split(',').all(says_how_much)));
    }
}
