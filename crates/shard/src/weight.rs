//! Weight: what an operator's frame takes in memory once it is decoded, told from its bytes (SE-9).
//!
//! ```text
//! bytes ─▶ fields, one after another ─▶ each costs what decoding makes of it ─▶ too heavy? refused, undecoded
//! ```
//!
//! An entry without content is two bytes of a frame and a hundred or more in memory: 32 MiB of them, which any
//! operator may send, would be gigabytes before anybody could count them. Looking through the bytes takes no
//! memory, and about as long as a checksum.

use bigfleet_wire::v1alpha1::{
    CapacityNeed, NodeSelectorRequirement, ReportedNode, TopologySpread,
};
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// What a frame may take once it is decoded. A hundred thousand rows, more than a whole shard is sized for, of
/// three resources and three requirements each take some 200 MiB.
pub(crate) const MOST_DECODED: usize = 256 << 20;

/// A field of a message that is more in memory than its bytes.
struct Part {
    field: u32,
    /// What the first entry costs beyond `each`: a map begins with room for eleven.
    first: usize,
    each: usize,
    parts: &'static [Part],
}

const fn list(field: u32, each: usize, parts: &'static [Part]) -> Part {
    Part {
        field,
        first: 0,
        each,
        parts,
    }
}

const fn map(field: u32) -> Part {
    Part {
        field,
        first: 11 * ENTRY,
        each: ENTRY,
        parts: &[],
    }
}

/// A key and a value.
const ENTRY: usize = 2 * size_of::<String>();

const REQUIREMENT: &[Part] = &[list(3, size_of::<String>(), &[])];
const NEED: &[Part] = &[
    list(1, size_of::<NodeSelectorRequirement>(), REQUIREMENT),
    map(2),
    list(5, size_of::<TopologySpread>(), &[]),
    map(8),
];
/// Of a roll-up.
const ROLL_UP: &[Part] = &[list(3, size_of::<CapacityNeed>(), NEED)];
const NODE_REPORT: &[Part] = &[list(2, size_of::<ReportedNode>(), &[])];
const HELLO: &[Part] = &[list(1000, size_of::<String>(), &[])];
/// Of an operator's message.
const FRAME: &[Part] = &[
    list(1, 0, HELLO),
    list(2, 0, ROLL_UP),
    list(1001, 0, NODE_REPORT),
];

/// What a roll-up takes.
pub(crate) fn of_roll_up(bytes: &[u8]) -> usize {
    of(bytes, ROLL_UP)
}

/// What a frame takes, whatever is in it.
pub(crate) fn of_frame(bytes: &[u8]) -> usize {
    of(bytes, FRAME)
}

/// Refuses what is too heavy.
pub(crate) fn check(weight: usize) -> Result<(), String> {
    if weight <= MOST_DECODED {
        return Ok(());
    }
    let (would, most) = (weight >> 20, MOST_DECODED >> 20);
    Err(format!(
        "it would take {would} MiB of memory, and may take {most}: send fewer rows or nodes at once (SE-9)"
    ))
}

/// Of bytes that cannot be read, what decoding takes until it finds that out.
fn of(mut bytes: &[u8], parts: &[Part]) -> usize {
    let mut weight = 0;
    let mut begun = 0_u64; // a bit for each part that has an entry
    while bytes.has_remaining() {
        let Ok((field, kind)) = decode_key(&mut bytes) else {
            break;
        };
        let length = match kind {
            WireType::Varint => {
                if decode_varint(&mut bytes).is_err() {
                    break;
                }
                continue;
            }
            // What is between them counts as if they were not there: more than it takes, never less.
            WireType::StartGroup | WireType::EndGroup => continue,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => match decode_varint(&mut bytes) {
                Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
                Err(_) => break,
            },
        };
        let Some((value, rest)) = bytes.split_at_checked(length) else {
            break;
        };
        bytes = rest;
        weight += length;
        let part = parts.iter().position(|part| part.field == field);
        if let Some((at, part)) = part.map(|at| (at, &parts[at])) {
            let is_first = begun & (1 << at) == 0;
            begun |= 1 << at;
            weight += part.each + if is_first { part.first } else { 0 };
            // Its texts are counted with its bytes already.
            weight += of(value, part.parts).saturating_sub(value.len());
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_wire::v1alpha1::{
        ClusterCapacityNeeds, NodeReport, OperatorMessage, operator_message::Payload,
    };
    use prost::Message;

    fn requirement(values: usize) -> NodeSelectorRequirement {
        NodeSelectorRequirement {
            key: "zone".to_owned(),
            values: vec!["a".to_owned(); values],
            ..NodeSelectorRequirement::default()
        }
    }

    fn need() -> CapacityNeed {
        let resources = ["cpu", "memory", "example.com/gpu"];
        let resources = resources.map(|name| (name.to_owned(), "4".to_owned()));
        CapacityNeed {
            requirements: vec![requirement(3); 3],
            aggregate_resources: resources.clone().into(),
            min_unit: resources.into(),
            ..CapacityNeed::default()
        }
    }

    fn rolled_up(needs: Vec<CapacityNeed>) -> Vec<u8> {
        let roll_up = ClusterCapacityNeeds {
            needs,
            ..ClusterCapacityNeeds::default()
        };
        roll_up.encode_to_vec()
    }

    /// An empty row is two bytes; a thousand of them are a thousand rows.
    #[test]
    fn what_has_no_content_is_not_weightless() {
        let bytes = rolled_up(vec![CapacityNeed::default(); 1000]);
        assert_eq!(bytes.len(), 2000);
        assert_eq!(of_roll_up(&bytes), 1000 * size_of::<CapacityNeed>());
        let largest = [0x1a, 0].repeat(16 << 20);
        assert!(MOST_DECODED < of_roll_up(&largest));
    }

    /// What each level of a row takes, as decoding it makes it.
    #[test]
    fn every_level_counts() {
        let texts = |need: &CapacityNeed| {
            let requirements = need.requirements.iter();
            let values: usize = requirements.map(|one| one.values.len()).sum();
            let structs = size_of::<CapacityNeed>()
                + need.requirements.len() * size_of::<NodeSelectorRequirement>()
                + values * size_of::<String>();
            let maps = [&need.aggregate_resources, &need.min_unit];
            structs
                + maps
                    .map(|map| (11 + map.len()) * ENTRY)
                    .iter()
                    .sum::<usize>()
        };
        let needs = vec![need(); 10];
        let expected: usize = needs.iter().map(texts).sum();
        let bytes = rolled_up(needs);
        let weight = of_roll_up(&bytes);
        assert!(
            expected < weight && weight <= expected + bytes.len(),
            "{weight}"
        );
        // As many as a roll-up may have, of this kind, are not refused.
        assert!(weight / 10 * bigfleet_wire::limits::MAX_ROWS < MOST_DECODED);
        let frame: OperatorMessage =
            Payload::Rollup(ClusterCapacityNeeds::decode(&bytes[..]).unwrap()).into();
        let framed = of_frame(&frame.encode_to_vec());
        assert!((weight..weight + 100).contains(&framed), "{framed}");
    }

    #[test]
    fn nodes_weigh_and_a_blob_is_its_bytes() {
        let report = NodeReport {
            nodes: vec![ReportedNode::default(); 1000],
            ..NodeReport::default()
        };
        let frame: OperatorMessage = Payload::NodeReport(report).into();
        assert!(1000 * size_of::<ReportedNode>() <= of_frame(&frame.encode_to_vec()));
        let blob = bigfleet_wire::v1alpha1::BootstrapBlobResponse {
            user_data: vec![0x1a; 1 << 20],
            ..Default::default()
        };
        let frame: OperatorMessage = Payload::BootstrapResponse(blob).into();
        let bytes = frame.encode_to_vec();
        assert!(of_frame(&bytes) <= bytes.len());
    }

    /// Groups hide nothing, and what is cut off or garbled ends.
    #[test]
    fn nothing_hides_in_what_cannot_be_read() {
        let rows = [0x1a, 0].repeat(1000);
        let grouped = [&[0x3b], &rows[..], &[0x3c], &rows[..]].concat();
        assert_eq!(of_roll_up(&grouped), 2 * of_roll_up(&rows));
        for cut in [&[0x1a][..], &[0x1a, 0xff], &[0xff; 30], &[0x1a, 5, 1]] {
            assert_eq!(of_roll_up(cut), 0);
        }
    }
}
