//! Logs: one line per event on standard error, for people or for machines.
//!
//! ```text
//! text   2026-01-01T00:00:00Z  INFO shard: listening addr=…      colours on a terminal only
//! json   {"timestamp":…,"level":"INFO","fields":{…}}
//! ```
//!
//! `RUST_LOG`, where it is set, wins over the level: it can say more.

use std::io::IsTerminal;
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

/// Starts logging for the whole process. Whoever was first stays in charge.
pub fn start(format: LogFormat, level: &str) -> Result<(), LogsRefused> {
    let refused = || LogsRefused::Level(level.to_owned());
    if !level.split(',').all(says_how_much) {
        return Err(refused());
    }
    let stated = EnvFilter::try_new(level).map_err(|_| refused())?;
    let filter = EnvFilter::try_from_default_env().unwrap_or(stated);
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let logs = tracing_subscriber::fmt()
        .with_ansi(!plain && std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that the embedding program already logs in a way of its own.
    drop(match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().try_init(),
    });
    Ok(())
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
    fn what_is_no_format_or_level_is_refused_by_name() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        let refused = "xml".parse::<LogFormat>().unwrap_err().to_string();
        assert!(refused.contains("xml"), "{refused}");
        for wrong in ["info,=,", "loud", "info,h2"] {
            let refused = start(LogFormat::Text, wrong).unwrap_err().to_string();
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
