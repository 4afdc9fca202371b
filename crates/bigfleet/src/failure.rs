//! Why a verb could not do its work, and the exit status that says so.

use std::{io, process::ExitCode};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given is wrong; one problem per line.
    Input(String),
    /// It could not be done, and why.
    Undone(String),
    /// The answer says it all: something is not well.
    Unwell,
    /// The answer could not be written.
    Output(io::Error),
}

impl Failure {
    /// Says it on stderr.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Input(problems) => {
                eprintln!("{problems}");
                ExitCode::from(2)
            }
            Self::Undone(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
            Self::Unwell => ExitCode::FAILURE,
            // Whoever reads the answer has seen enough: `bigfleet decide … | head`.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Output(error) => {
                eprintln!("the answer could not be written: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
