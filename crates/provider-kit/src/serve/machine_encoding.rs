//! Machines encoded straight to the bytes of their messages, without building the messages.
//!
//! ```text
//! id, state, host │ offer, from the last few │ error │ offer │ cluster, metadata, class
//! ```
//!
//! A message owns a copy of every text, and making these copies was most of the work of a List. Here each
//! text is written from the record into the answer directly, and an offer, which thousands of machines
//! share, is encoded once. The bytes are those of the message, field by field in the order of their numbers.

use std::sync::Arc;

use bigfleet_model::Time;
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;
use prost::bytes::BufMut;
use prost::encoding::{
    WireType, encode_key, encode_varint, encoded_len_varint, int32, int64, key_len,
};

use super::convert;
use crate::machine::{Machine, Offer, TextMap};

/// Encoded offers that are kept: a listing alternates between a few types and zones.
const KEPT: usize = 16;

/// Writes machines, one after the other.
#[derive(Default)]
pub(super) struct MachineWriter {
    offers: Vec<EncodedOffer>,
    body: Vec<u8>,
}

/// The encoded fields of an offer: those that come before the machine's error, and those after it.
struct EncodedOffer {
    offer: Arc<Offer>,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl MachineWriter {
    /// The machine as an entry of the repeated field of this number.
    pub(super) fn put(&mut self, number: u32, machine: &Machine, into: &mut impl BufMut) {
        let at = self.place(&machine.offer);
        let (offer, body) = (&self.offers[at], &mut self.body);
        body.clear();
        text(1, machine.id.as_str(), body);
        int32::encode(2, &machine.state.number(), body); // never zero
        if let Some(host) = &machine.host {
            let (provider, reference) = (host.provider.as_str(), host.reference.as_str());
            prefix(3, text_len(1, provider) + text_len(2, reference), body);
            text(1, provider, body);
            text(2, reference, body);
        }
        body.put_slice(&offer.head);
        text(12, &machine.last_error, body);
        body.put_slice(&offer.tail);
        text(14, &machine.cluster, body);
        texts(15, &machine.metadata, body);
        text(1000, &machine.owner, body);
        let class = convert::failure_class(machine.failure).into();
        if class != 0 {
            int32::encode(1001, &class, body);
        }
        if let Some(at) = machine.leaving.map(Time::nanos).filter(|at| *at != 0) {
            int64::encode(1002, &at, body);
        }
        prefix(number, body.len(), into);
        into.put_slice(body);
    }

    fn place(&mut self, offer: &Arc<Offer>) -> usize {
        let known = |one: &EncodedOffer| Arc::ptr_eq(&one.offer, offer);
        if let Some(at) = self.offers.iter().rposition(known) {
            return at;
        }
        if self.offers.len() == KEPT {
            self.offers.remove(0);
        }
        let whole = convert::offered(offer);
        let tail = wire::Machine {
            allocatable: whole.allocatable,
            ..wire::Machine::default()
        };
        let head = wire::Machine {
            allocatable: None,
            ..whole
        };
        self.offers.push(EncodedOffer {
            offer: Arc::clone(offer),
            head: head.encode_to_vec(),
            tail: tail.encode_to_vec(),
        });
        self.offers.len() - 1
    }
}

fn prefix(number: u32, length: usize, into: &mut impl BufMut) {
    encode_key(number, WireType::LengthDelimited, into);
    encode_varint(length as u64, into);
}

/// A text; an empty one is not written.
fn text(number: u32, text: &str, into: &mut impl BufMut) {
    if !text.is_empty() {
        prefix(number, text.len(), into);
        into.put_slice(text.as_bytes());
    }
}

fn text_len(number: u32, text: &str) -> usize {
    match text.len() {
        0 => 0,
        length => key_len(number) + encoded_len_varint(length as u64) + length,
    }
}

fn texts(number: u32, texts: &TextMap, into: &mut impl BufMut) {
    for (key, value) in texts {
        prefix(number, text_len(1, key) + text_len(2, value), into);
        text(1, key, into);
        text(2, value, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::FailureClass;
    use bigfleet_model::{Host, MachineId, State};

    fn map(entries: &[(&str, &str)]) -> TextMap {
        let entry = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        entries.iter().map(entry).collect()
    }

    fn machine(id: &str, offer: &Arc<Offer>) -> Machine {
        Machine {
            id: MachineId::new(id).unwrap(),
            state: State::Speculative,
            host: None,
            offer: Arc::clone(offer),
            refined: false,
            cluster: String::new(),
            metadata: Arc::default(),
            last_error: String::new(),
            failure: FailureClass::Unspecified,
            owner: Arc::default(),
            leaving: None,
        }
    }

    fn offer(zone: &str) -> Arc<Offer> {
        Arc::new(Offer {
            instance_type: "t".repeat(200),
            zone: zone.to_owned(),
            price_per_hour: 0.5,
            interruption_probability: 0.25,
            resources: map(&[("cpu", "4"), ("memory", "16Gi")]),
            allocatable: map(&[("cpu", "3900m")]),
            labels: map(&[("", "empty key"), ("empty value", "")]),
            ..Offer::default()
        })
    }

    /// Everything set, nothing set, and offers that come back after others have taken their place.
    #[test]
    fn the_bytes_are_those_of_the_message() {
        let offers: Vec<_> = (0..2 * KEPT).map(|n| offer(&n.to_string())).collect();
        let mut machines = vec![machine("bare", &Arc::default())];
        for offer in offers.iter().chain(&offers) {
            machines.push(Machine {
                state: State::Failed,
                host: Some(Host {
                    provider: "p".repeat(130),
                    reference: String::new(),
                }),
                cluster: "a".to_owned(),
                metadata: Arc::new(map(&[("k", ""), ("", "v"), ("group", "g\0h")])),
                last_error: "gone".repeat(100),
                failure: FailureClass::Permanent,
                owner: "s1".into(),
                leaving: Some(Time::from_nanos(-7)),
                ..machine("full", offer)
            });
        }
        let (mut writer, mut bytes) = (MachineWriter::default(), Vec::new());
        for machine in &machines {
            writer.put(1, machine, &mut bytes);
        }
        let messages = machines.iter().map(convert::machine).collect();
        let list = wire::MachineList {
            machines: messages,
            ..wire::MachineList::default()
        };
        assert_eq!(bytes, list.encode_to_vec());
        assert_eq!(writer.offers.len(), KEPT);
    }
}
