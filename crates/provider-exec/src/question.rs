//! The question: what a program is given on its standard input, as one JSON object.

use std::time::Duration;

use bigfleet_provider_kit::{Machine, TextMap};
use serde::Serialize;

use crate::config::ProgramKind;
use crate::config::tier_word;

/// What a program may need to know. Bootstrap data is here and nowhere else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question<'a> {
    pub(crate) operation: &'a str,
    pub(crate) machine: Option<&'a Machine>,
    pub(crate) names: Option<&'a crate::answers::HostNames>,
    /// The name of the offering the machine is of.
    pub(crate) offering: &'a str,
    /// The host a machine is called after, before it has one.
    pub(crate) called: Option<&'a str>,
    pub(crate) grace: Option<Duration>,
    pub(crate) blob: Option<&'a [u8]>,
}

#[derive(Serialize)]
struct Sent<'a> {
    call: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offering: Option<SentOffering<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a TextMap>,
    #[serde(skip_serializing_if = "str::is_empty")]
    cluster: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap_blob: Option<String>,
}

#[derive(Serialize)]
struct SentOffering<'a> {
    name: &'a str,
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'static str,
    price_per_hour: f64,
    interruption_probability: f64,
    resources: &'a TextMap,
    allocatable: &'a TextMap,
}

impl Question<'_> {
    /// What no message may repeat.
    pub(crate) fn secret(&self) -> Option<&[u8]> {
        self.blob
    }

    /// The object, and the end of a line for programs that read by line.
    pub(crate) fn json(&self, kind: ProgramKind) -> Vec<u8> {
        let offering = self.machine.map(|machine| SentOffering {
            name: self.offering,
            instance_type: &machine.offer.instance_type,
            zone: &machine.offer.zone,
            capacity_type: tier_word(machine.offer.capacity_type),
            price_per_hour: machine.offer.price_per_hour,
            interruption_probability: machine.offer.interruption_probability,
            resources: &machine.offer.resources,
            allocatable: &machine.offer.allocatable,
        });
        let names = self.names;
        let sent = Sent {
            call: kind.word(),
            operation: self.operation,
            machine: self.machine.map(|machine| machine.id.as_str()),
            host: names.map(|names| names.host.as_str()).or(self.called),
            node_name: names.and_then(|names| names.node_name.as_deref()),
            provider_id: names.and_then(|names| names.provider_id.as_deref()),
            labels: self.machine.map(|machine| &machine.offer.labels),
            cluster: self.machine.map_or("", |machine| &machine.cluster),
            grace_seconds: self.grace.map(|grace| grace.as_secs()),
            bootstrap_blob: self.blob.map(base64),
            offering,
        };
        // Texts and finite numbers always have a JSON.
        let mut json = serde_json::to_vec(&sent).unwrap_or_default();
        json.push(b'\n');
        json
    }
}

/// The usual alphabet, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_everybody_s() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xfe]), "//4=");
    }
}
