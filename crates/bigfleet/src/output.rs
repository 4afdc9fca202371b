//! What goes to stdout.

use crate::failure::Failure;
use std::io::Write;

/// Says it, whole.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
