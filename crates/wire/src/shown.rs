//! Shown: one machine's record as its provider sent it, unchecked and not copied.
//!
//! ```text
//! a message ─────────┐
//! its bytes, in place ┴─▶ Shown ── screened ──▶ Record
//! ```
//!
//! One place to fill per List: its maps keep their room from record to record.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::fields::{Fields, Unreadable};
use crate::v1alpha1::{Machine, Resources};

/// A machine's record.
#[derive(Debug, Default)]
pub(crate) struct Shown<'a> {
    pub(crate) id: &'a str,
    pub(crate) state: i32,
    pub(crate) host_provider: &'a str,
    pub(crate) host_reference: &'a str,
    pub(crate) instance_type: &'a str,
    pub(crate) zone: &'a str,
    pub(crate) capacity_type: i32,
    pub(crate) price_per_hour: f64,
    pub(crate) interruption_probability: f64,
    pub(crate) resources: Texts<'a>,
    pub(crate) allocatable: Texts<'a>,
    pub(crate) labels: Texts<'a>,
    pub(crate) last_error: &'a str,
    pub(crate) cluster: &'a str,
    pub(crate) shard_metadata: Texts<'a>,
    pub(crate) owner_shard_id: &'a str,
    pub(crate) failure_class: i32,
    pub(crate) leaving_unix_nanos: i64,
}

/// Texts by name, sorted, each name once, when all of them have been added.
#[derive(Debug, Default)]
pub(crate) struct Texts<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Texts<'a> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + Clone {
        self.0.iter().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether these are the same texts.
    pub(crate) fn are(&self, texts: &BTreeMap<String, String>) -> bool {
        let texts = texts
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        self.0.len() == texts.len() && self.iter().eq(texts)
    }

    pub(crate) fn owned(&self) -> BTreeMap<String, String> {
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        self.iter().map(owned).collect()
    }

    fn add(&mut self, entry: &'a [u8]) -> Result<(), Unreadable> {
        let (mut name, mut text) = ("", "");
        let mut fields = Fields(entry);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => name = field.text()?,
                2 => text = field.text()?,
                _ => {}
            }
        }
        self.0.push((name, text));
        Ok(())
    }

    /// Sorts what has been added, which nearly always is already; of a name that comes twice the later
    /// text counts.
    fn settle(&mut self) {
        if self.0.is_sorted_by(|(one, _), (next, _)| one < next) {
            return;
        }
        self.0.sort_by_key(|(name, _)| *name); // stable, so the later text is the second
        self.0.dedup_by(|later, one| {
            let same = later.0 == one.0;
            if same {
                one.1 = later.1;
            }
            same
        });
    }

    /// The texts of a message that holds nothing else.
    fn add_all(&mut self, message: &'a [u8]) -> Result<(), Unreadable> {
        let mut fields = Fields(message);
        while let Some(field) = fields.next()? {
            if field.number == 1 {
                self.add(field.bytes()?)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, texts: &'a BTreeMap<String, String>) {
        let texts = texts
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()));
        self.0.extend(texts);
    }

    fn set_all(&mut self, texts: Option<&'a Resources>) {
        if let Some(texts) = texts {
            self.set(&texts.resources);
        }
    }
}

impl<'a> Shown<'a> {
    /// Takes the place of the record before.
    fn clear(&mut self) {
        let [resources, allocatable, labels, shard_metadata] = self.maps().map(|map| {
            map.0.clear();
            std::mem::take(map)
        });
        *self = Self {
            resources,
            allocatable,
            labels,
            shard_metadata,
            ..Self::default()
        };
    }

    fn maps(&mut self) -> [&mut Texts<'a>; 4] {
        [
            &mut self.resources,
            &mut self.allocatable,
            &mut self.labels,
            &mut self.shard_metadata,
        ]
    }

    /// The record in a message's bytes.
    pub(crate) fn read(&mut self, message: &'a [u8]) -> Result<(), Unreadable> {
        self.clear();
        let mut fields = Fields(message);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => self.id = field.text()?,
                2 => self.state = field.int32()?,
                3 => self.read_host(field.bytes()?)?,
                4 => self.instance_type = field.text()?,
                5 => self.zone = field.text()?,
                6 => self.capacity_type = field.int32()?,
                7 => self.price_per_hour = field.double()?,
                8 => self.interruption_probability = field.double()?,
                9 => self.resources.add_all(field.bytes()?)?,
                10 => self.labels.add(field.bytes()?)?,
                12 => self.last_error = field.text()?,
                13 => self.allocatable.add_all(field.bytes()?)?,
                14 => self.cluster = field.text()?,
                15 => self.shard_metadata.add(field.bytes()?)?,
                1000 => self.owner_shard_id = field.text()?,
                1001 => self.failure_class = field.int32()?,
                1002 => self.leaving_unix_nanos = field.int64()?,
                _ => {}
            }
        }
        self.maps().into_iter().for_each(Texts::settle);
        Ok(())
    }

    fn read_host(&mut self, message: &'a [u8]) -> Result<(), Unreadable> {
        let mut fields = Fields(message);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => self.host_provider = field.text()?,
                2 => self.host_reference = field.text()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The record in a message.
    pub(crate) fn set(&mut self, message: &'a Machine) -> Result<(), Infallible> {
        self.clear();
        self.id = &message.id;
        self.state = message.state;
        if let Some(host) = &message.host {
            (self.host_provider, self.host_reference) = (&host.provider, &host.r#ref);
        }
        self.instance_type = &message.instance_type;
        self.zone = &message.zone;
        self.capacity_type = message.capacity_type;
        self.price_per_hour = message.price_per_hour;
        self.interruption_probability = message.interruption_probability;
        self.resources.set_all(message.resources.as_ref());
        self.allocatable.set_all(message.allocatable.as_ref());
        self.labels.set(&message.labels);
        self.last_error = &message.last_error;
        self.cluster = &message.cluster;
        self.shard_metadata.set(&message.shard_metadata);
        self.owner_shard_id = &message.owner_shard_id;
        self.failure_class = message.failure_class;
        self.leaving_unix_nanos = message.leaving_unix_nanos;
        Ok(())
    }
}
