//! `-o` on a command line: reads a form, and completes the word for it.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser, ValueParserFactory};
use clap::{Arg, Command, Error};

use crate::output::Form;

/// Reads a form. Some have more after their word, so the words alone cannot be all that is taken.
#[derive(Clone, Debug)]
pub struct FormParser;

impl ValueParserFactory for Form {
    type Parser = FormParser;

    fn value_parser() -> FormParser {
        FormParser
    }
}

impl TypedValueParser for FormParser {
    type Value = Form;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<Form, Error> {
        let read = StringValueParser::new().try_map(|text| text.parse::<Form>());
        read.parse_ref(command, arg, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let begun = |word: &'static str| word.split_inclusive('=').next().unwrap_or(word);
        let words = Form::WORDS.into_iter().map(begun);
        Some(Box::new(words.map(PossibleValue::new)))
    }
}
