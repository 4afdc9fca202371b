//! How a run ended, and what that means for the machine: exit status to failure, with the program's last words.
//!
//! ```text
//! 0  done     75  try again later     69  no stock     64  refused for good     anything else  failed
//! ```
//!
//! The last words become part of a record that everybody may read. A line of them that repeats bootstrap data
//! is withheld: a script with tracing on must not publish the secrets of a cluster.

use std::collections::{BTreeSet, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use bigfleet_model::shown;
use bigfleet_provider_kit::Failure;

use crate::config::ProgramKind;
use crate::question::base64;

const TRY_AGAIN: i32 = 75;
const NO_STOCK: i32 = 69;
const REFUSED: i32 = 64;

/// How much of its standard error is kept.
const MOST_KEPT: usize = 4 << 10;
/// How many of its last lines are shown, and how long they may be together.
const LINES_SHOWN: usize = 5;
const MOST_SHOWN: usize = 1000;
/// This many bytes in common with bootstrap data are no coincidence.
const TELLING: usize = 12;

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// By itself; the status is known once it is reaped.
    Exited(Option<ExitStatus>),
    /// Its deadline came first.
    OutOfTime(Duration),
    /// Nobody waits for it any more.
    GivenUp,
    /// It printed more than an answer can be.
    TooMuch,
    /// The system does not tell.
    Lost(String),
}

impl Ending {
    /// What it printed, if it is done; else why it is not.
    pub(crate) fn answer(
        self,
        kind: ProgramKind,
        output: Vec<u8>,
        errors: &Tail,
        secret: Option<&[u8]>,
    ) -> Result<Vec<u8>, Failure> {
        let said = errors.last_words(secret);
        let said = if said.is_empty() {
            said
        } else {
            format!(": {said}")
        };
        let status = match self {
            Self::Exited(Some(status)) => status,
            Self::Exited(None) => {
                let text = format!("{kind}: how it ended is not known{said}");
                return Err(Failure::retryable(text));
            }
            Self::Lost(why) => {
                let text = format!("{kind}: how it ended is not known: {why}{said}");
                return Err(Failure::retryable(text));
            }
            Self::OutOfTime(deadline) => {
                let text = format!("{kind}: not done within {deadline:?}, so it was ended{said}");
                return Err(Failure::retryable(text));
            }
            Self::GivenUp => return Err(Failure::retryable(format!("{kind}: given up{said}"))),
            Self::TooMuch => {
                let text = format!("{kind}: printed more than 1 MiB, so it was ended{said}");
                return Err(Failure::new(text));
            }
        };
        let Some(code) = status.code() else {
            let signal = status.signal().unwrap_or_default();
            let text = format!("{kind}: died from signal {signal}{said}");
            return Err(Failure::retryable(text));
        };
        match code {
            0 => Ok(output),
            TRY_AGAIN => Err(Failure::passing(format!(
                "{kind}: asks to try again later{said}"
            ))),
            NO_STOCK => Err(Failure::no_stock(format!("{kind}: no stock{said}"))),
            REFUSED => Err(Failure::permanent(format!(
                "{kind}: refused for good{said}"
            ))),
            code => Err(Failure::new(format!("{kind}: exit status {code}{said}"))),
        }
    }
}

/// The end of what a program wrote to its standard error.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.0.extend(piece);
        let surplus = self.0.len().saturating_sub(MOST_KEPT);
        self.0.drain(..surplus);
    }

    /// Its last lines, fit to print, without what is secret.
    fn last_words(&self, secret: Option<&[u8]>) -> String {
        let kept: Vec<u8> = self.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        let secrets = secret.map(|secret| (secret.to_vec(), base64(secret).into_bytes()));
        let told = |line: &&str| match &secrets {
            Some((plain, encoded)) if repeats(line, plain) || repeats(line, encoded) => {
                "[a line that repeats bootstrap data]".to_owned()
            }
            _ => shown(line),
        };
        let told = last.iter().map(told).collect::<Vec<_>>().join(" | ");
        let from = told.len().saturating_sub(MOST_SHOWN);
        let from = (from..=told.len()).find(|at| told.is_char_boundary(*at));
        told[from.unwrap_or_default()..].to_owned()
    }
}

/// Whether a line has a telling piece of the secret in it.
fn repeats(line: &str, secret: &[u8]) -> bool {
    let telling = TELLING.min(secret.len());
    if telling < 4 {
        return false;
    }
    let pieces: BTreeSet<&[u8]> = line.as_bytes().windows(telling).collect();
    !pieces.is_empty() && secret.windows(telling).any(|piece| pieces.contains(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(said: &str, secret: Option<&[u8]>) -> String {
        let mut tail = Tail::default();
        tail.push(said.as_bytes());
        tail.last_words(secret)
    }

    #[test]
    fn only_the_last_lines_are_told() {
        let many: String = (0..9000).map(|n| format!("line {n}\n")).collect();
        let told = words(&many, None);
        assert!(told.starts_with("line 8995 | "), "{told}");
        assert!(told.ends_with("line 8999"), "{told}");
        assert!(words(&"é".repeat(9000), None).len() <= MOST_SHOWN);
        assert_eq!(words("a\x1b[2Jb\n", None), shown("a\x1b[2Jb"));
    }

    #[test]
    fn bootstrap_data_is_withheld_plain_and_encoded() {
        let secret = b"#cloud-config\ntoken: abcdef.0123456789abcdef\n";
        for line in [
            "+ join --token abcdef.0123456789abcdef".to_owned(),
            format!("got {}", base64(secret)),
        ] {
            let told = words(&format!("starting\n{line}\n"), Some(secret));
            assert_eq!(told, "starting | [a line that repeats bootstrap data]");
        }
        let told = words("no route to host\n", Some(secret));
        assert_eq!(told, "no route to host");
    }

    #[test]
    fn a_status_says_whether_trying_again_helps() {
        use bigfleet_provider_kit::FailureClass::{
            NoStock, Passing, Permanent, Retryable, Unspecified,
        };
        let failure = |raw: i32| {
            let ending = Ending::Exited(Some(ExitStatus::from_raw(raw)));
            let answer = ending.answer(ProgramKind::Create, Vec::new(), &Tail::default(), None);
            answer.unwrap_err()
        };
        for (code, class) in [
            (75, Passing),
            (69, NoStock),
            (64, Permanent),
            (1, Unspecified),
        ] {
            assert_eq!(failure(code << 8).class, class, "{code}");
        }
        let killed = failure(9);
        assert_eq!(killed.class, Retryable);
        assert_eq!(killed.text, "create: died from signal 9");
    }
}
