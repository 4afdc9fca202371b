//! Digest: whether a roll-up says what the one in force says.
//!
//! ```text
//! bytes ─▶ same rows, as they were sent? ──▶ a repeat, and no row was read
//!              └─ no ─▶ message ─▶ same rows, as we would write them? ─▶ a repeat all the same
//! ```
//!
//! Most roll-ups repeat the one before, row for row, under a new id and a new time. A peer may write the
//! entries of a map in any order, so what differs as bytes may still be the same demand. The digest is
//! a strong one: a peer that could make two demands look the same could have one of them ignored, and
//! a peer is not to be trusted.

use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use prost::Message;
use prost::bytes::{Buf, Bytes};
use prost::encoding::{WireType, decode_key, decode_varint, encode_varint};
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// Fields of a roll-up.
const CLUSTER: u32 = 1;
const TIMESTAMP: u32 = 2;
const NEEDS: u32 = 3;
const ROLLUP_ID: u32 = 1000;

/// What a roll-up says, apart from its id and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; SHA256_OUTPUT_LEN]);

impl Digest {
    /// Of a roll-up as we would write it.
    pub(crate) fn of(roll_up: &ClusterCapacityNeeds) -> Self {
        let mut digest = Digesting::new();
        digest.field(CLUSTER, roll_up.cluster_id.as_bytes());
        for need in &roll_up.needs {
            digest.field(NEEDS, &need.encode_to_vec());
        }
        digest.end()
    }

    /// Of the name a provider gives to a page of a List.
    pub(crate) fn of_token(token: &[u8]) -> Self {
        let mut digest = Digesting::new();
        digest.field(0, token);
        digest.end()
    }
}

/// A roll-up as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// What it says.
    pub(crate) digest: Digest,
    /// What it is called.
    pub(crate) rollup_id: String,
    /// The operator's clock when it built it.
    pub(crate) built_unix_nanos: i64,
}

impl Sent {
    /// Looks through the bytes of a roll-up without reading its rows. `None` if there is anything in
    /// it that is not expected: then the message has to be read to know what it says.
    pub(crate) fn read(bytes: &Bytes) -> Option<Self> {
        let mut rest = bytes.clone();
        let mut digest = Digesting::new();
        let (mut rollup_id, mut built) = (String::new(), 0);
        while rest.has_remaining() {
            match decode_key(&mut rest).ok()? {
                (TIMESTAMP, WireType::Varint) => built = decode_varint(&mut rest).ok()?,
                (field @ (CLUSTER | NEEDS | ROLLUP_ID), WireType::LengthDelimited) => {
                    let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                    if rest.len() < length {
                        return None;
                    }
                    let value = rest.split_to(length);
                    match field {
                        ROLLUP_ID => rollup_id = String::from_utf8(value.into()).ok()?,
                        _ => digest.field(field, &value),
                    }
                }
                _ => return None,
            }
        }
        let digest = digest.end();
        let usual = rollup_id.len() <= bigfleet_model::MAX_ID_BYTES;
        usual.then_some(Self {
            digest,
            rollup_id,
            built_unix_nanos: built.cast_signed(),
        })
    }
}

/// Fields with their numbers and lengths, so that no two lists of them are the same bytes.
struct Digesting(Context);

impl Digesting {
    fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn field(&mut self, number: u32, value: &[u8]) {
        let mut head = [0_u8; 20];
        let mut free = &mut head[..];
        encode_varint(number.into(), &mut free);
        encode_varint(value.len() as u64, &mut free);
        let left = free.len();
        self.0.update(&head[..head.len() - left]);
        self.0.update(value);
    }

    fn end(self) -> Digest {
        let mut digest = [0; SHA256_OUTPUT_LEN];
        digest.copy_from_slice(self.0.finish().as_ref());
        Digest(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_wire::v1alpha1::CapacityNeed;

    fn roll_up(priorities: &[i32]) -> ClusterCapacityNeeds {
        let need = |priority: &i32| CapacityNeed {
            priority: *priority,
            aggregate_resources: [("cpu", "4"), ("memory", "1Gi")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..CapacityNeed::default()
        };
        ClusterCapacityNeeds {
            cluster_id: "a".to_owned(),
            needs: priorities.iter().map(need).collect(),
            ..ClusterCapacityNeeds::default()
        }
    }

    fn sent(roll_up: &ClusterCapacityNeeds) -> Sent {
        Sent::read(&roll_up.encode_to_vec().into()).unwrap()
    }

    #[test]
    fn the_id_and_the_time_of_a_roll_up_are_not_what_it_says() {
        let (once, again) = (
            roll_up(&[1, 2]),
            ClusterCapacityNeeds {
                rollup_id: "2".to_owned(),
                timestamp_unix_nanos: 7,
                ..roll_up(&[1, 2])
            },
        );
        assert_eq!(Digest::of(&once), Digest::of(&again));
        assert_eq!(sent(&once).digest, sent(&again).digest);
        assert_eq!(sent(&again).rollup_id, "2");
        assert_eq!(sent(&again).built_unix_nanos, 7);
    }

    #[test]
    fn another_demand_is_another_digest() {
        let whose = ClusterCapacityNeeds {
            cluster_id: String::new(),
            ..roll_up(&[1, 2])
        };
        let mut larger = roll_up(&[1, 2]);
        larger.needs[1]
            .aggregate_resources
            .insert("cpu".to_owned(), "8".to_owned());
        let this = roll_up(&[1, 2]);
        for other in [whose, larger, roll_up(&[1]), roll_up(&[2, 1]), roll_up(&[])] {
            assert_ne!(Digest::of(&other), Digest::of(&this));
            assert_ne!(sent(&other).digest, sent(&this).digest);
        }
    }

    /// What an older or a newer peer adds may mean something.
    #[test]
    fn what_is_not_expected_is_not_guessed_at() {
        let bytes = roll_up(&[1]).encode_to_vec();
        let unknown = [bytes.clone(), vec![0x7a, 1, 0]].concat();
        assert_eq!(Sent::read(&unknown.into()), None);
        let cut = Bytes::from(bytes).slice(..9);
        assert_eq!(Sent::read(&cut), None);
        let named = ClusterCapacityNeeds {
            rollup_id: "x".repeat(bigfleet_model::MAX_ID_BYTES + 1),
            ..roll_up(&[1])
        };
        assert_eq!(Sent::read(&named.encode_to_vec().into()), None);
    }
}
