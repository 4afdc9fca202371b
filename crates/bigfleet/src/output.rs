//! What goes to stdout, and in which form.

use crate::failure::Failure;
use bigfleet_ctl::Form;
use std::io::Write;

/// The form of one answer.
#[derive(Debug, clap::Args)]
pub(crate) struct FormArgs {
    /// The form of the answer: table, json, yaml, jsonpath={.path}
    #[arg(
        short,
        long,
        value_name = "FORM",
        default_value = "table",
        hide_possible_values = true
    )]
    pub(crate) output: Form,
}

/// The form of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct ListFormArgs {
    /// The form of the answer: table, wide, json, yaml, name, csv, custom-columns=NAME:.path,… or
    /// jsonpath={.path}
    #[arg(
        short,
        long,
        value_name = "FORM",
        default_value = "table",
        hide_possible_values = true
    )]
    pub(crate) output: Form,
}

/// Says it, whole.
pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
