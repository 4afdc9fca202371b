//! Kinds on the command line, as kubectl takes them: `machines`, `machines,needs`, `machine/m-1`.

use bigfleet_ctl::{Described, Resource};
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error, ValueEnum};
use std::ffi::OsStr;

/// What the first word names: kinds, each with or without a name.
#[derive(Clone, Debug)]
pub(crate) struct Kinds(Vec<(Resource, Option<String>)>);

/// Reads that word.
#[derive(Clone, Debug)]
pub(crate) struct KindsParser;

impl TypedValueParser for KindsParser {
    type Value = Kinds;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Kinds, Error> {
        let text = value.to_string_lossy();
        // A name may hold commas, so only kinds before the first slash are apart by them.
        let parts: Vec<&str> = if text.contains('/') {
            vec![&text]
        } else {
            text.split(',').collect()
        };
        let part = |part: &str| {
            let (kind, name) = match part.split_once('/') {
                Some((kind, name)) => (kind, Some(name.to_owned())),
                None => (part, None),
            };
            let kind = EnumValueParser::<Resource>::new().parse_ref(command, arg, kind.as_ref())?;
            Ok((kind, name))
        };
        parts
            .into_iter()
            .map(part)
            .collect::<Result<_, _>>()
            .map(Kinds)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = Resource::value_variants().iter();
        Some(Box::new(all.filter_map(ValueEnum::to_possible_value)))
    }
}

/// What to list, by kind, from that word and those after it.
pub(crate) fn listings(
    kinds: &Kinds,
    words: &[String],
) -> Result<Vec<(Resource, Vec<String>)>, String> {
    let mut listings: Vec<(Resource, Vec<String>)> = Vec::new();
    let mut add = |kind: Resource, name: Option<String>| {
        let known = listings.iter_mut().find(|(other, _)| *other == kind);
        match known {
            Some((_, names)) => names.extend(name),
            None => listings.push((kind, Vec::from_iter(name))),
        }
    };
    let is_slashed = kinds.0.iter().any(|(_, name)| name.is_some());
    for (kind, name) in &kinds.0 {
        add(*kind, name.clone());
    }
    for word in words {
        if is_slashed {
            let (kind, name) = word
                .split_once('/')
                .ok_or_else(|| format!("\"{word}\" is not kind/name, and the first one is"))?;
            add(Resource::from_str(kind, true)?, Some(name.to_owned()));
            continue;
        }
        // A fingerprint may hold commas; a name does not.
        let names: Vec<&str> = if word.contains('|') {
            vec![word]
        } else {
            word.split(',').collect()
        };
        for (kind, _) in &kinds.0 {
            for name in &names {
                add(*kind, Some((*name).to_owned()));
            }
        }
    }
    Ok(listings)
}

/// What is described, with or without its name.
#[derive(Clone, Debug)]
pub(crate) struct DescribedKind(Described, Option<String>);

#[derive(Clone, Debug)]
pub(crate) struct DescribedParser;

impl DescribedKind {
    pub(crate) fn parser() -> DescribedParser {
        DescribedParser
    }

    /// The kind and the name, which is in one place or the other.
    pub(crate) fn named(&self, name: Option<&str>) -> Result<(Described, String), String> {
        match (&self.1, name) {
            (Some(name), None) => Ok((self.0, name.clone())),
            (None, Some(name)) => Ok((self.0, name.to_owned())),
            (None, None) => Err("describe: name one, as in `bigfleet describe machine/m-1`".into()),
            (Some(one), Some(other)) => Err(format!(
                "describe: one at a time, not both \"{one}\" and \"{other}\""
            )),
        }
    }
}

impl TypedValueParser for DescribedParser {
    type Value = DescribedKind;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<DescribedKind, Error> {
        let text = value.to_string_lossy();
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (kind, Some(name.to_owned())),
            None => (&*text, None),
        };
        let kind = EnumValueParser::<Described>::new().parse_ref(command, arg, kind.as_ref())?;
        Ok(DescribedKind(kind, name))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = Described::value_variants().iter();
        Some(Box::new(all.filter_map(ValueEnum::to_possible_value)))
    }
}
