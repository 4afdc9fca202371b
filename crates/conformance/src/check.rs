//! Checks: how a promise is found broken.

use tonic::{Code, Status};

use crate::behaviour::Capability;

/// Whether a promise was kept.
pub type Check = Result<(), Unmet>;

/// Why a promise was not seen to be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// It was broken, and how.
    #[error("{0}")]
    Broken(String),
    /// It could not be looked at, and why.
    #[error("not tried: {0}")]
    NotTried(String),
    /// The provider does without something that it takes.
    #[error("the provider has no {0}")]
    Lacks(Capability),
}

impl From<Status> for Unmet {
    fn from(status: Status) -> Self {
        Self::Broken(format!(
            "unexpected {:?}: {}",
            status.code(),
            status.message()
        ))
    }
}

/// A provider that does not start as a check wants it was not looked at.
impl From<crate::boot::BootFailed> for Unmet {
    fn from(failed: crate::boot::BootFailed) -> Self {
        Self::NotTried(failed.to_string())
    }
}

/// Ends the check unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err($crate::Unmet::Broken(format!($($why)+)));
        }
    };
}

/// One line of the catalogue.
macro_rules! behaviour {
    ($id:literal, $reference:literal, $lane:ident, $needs:expr, $check:path, $title:literal) => {
        $crate::Behaviour {
            id: $id,
            reference: $reference,
            lane: $crate::Lane::$lane,
            needs: $needs,
            title: $title,
            check: |subject| Box::pin($check(subject)),
        }
    };
}

/// The code of an answer.
pub(crate) fn code<T>(answer: &Result<T, Status>) -> Code {
    answer.as_ref().err().map_or(Code::Ok, Status::code)
}

/// The answer must have exactly this code.
pub(crate) fn expect<T>(what: &str, answer: &Result<T, Status>, expected: Code) -> Check {
    ensure!(
        code(answer) == expected,
        "{what}: {:?}, not {expected:?}",
        code(answer)
    );
    Ok(())
}

/// The answer must be a refusal, and not the one that is reserved for the fence.
pub(crate) fn refused<T>(what: &str, answer: &Result<T, Status>) -> Check {
    let code = code(answer);
    ensure!(code != Code::Ok, "{what} was accepted");
    ensure!(
        code != Code::FailedPrecondition,
        "{what}: FailedPrecondition is reserved for fencing"
    );
    Ok(())
}

/// The answer may be anything but the one that is reserved for the fence.
pub(crate) fn unfenced<T>(what: &str, answer: &Result<T, Status>) -> Check {
    ensure!(
        code(answer) != Code::FailedPrecondition,
        "{what} was fenced"
    );
    Ok(())
}
