//! Cursors: opaque bytes that say what a caller has already seen.
//!
//! ```text
//! version │ incarnation │ revision │ tag │ start, after │ crc32
//! ```
//!
//! A cursor names its store, so one from a lost or another store is known to be foreign, and carries
//! a checksum, so a damaged one is known to be damaged. Both mean "seen nothing", never an error.

use bigfleet_model::MachineId;

const VERSION: u8 = 1;
const AT: u8 = 0;
const SCAN: u8 = 1;

/// What a caller has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// Everything up to this revision.
    At(u64),
    /// A listing that began at `revision` and with machine `start` has come to `after`; it wraps
    /// around at the last id.
    Scan {
        revision: u64,
        start: MachineId,
        after: MachineId,
    },
}

impl Cursor {
    pub(crate) fn encode(&self, incarnation: u64) -> Vec<u8> {
        let (revision, tag) = match self {
            Self::At(revision) => (revision, AT),
            Self::Scan { revision, .. } => (revision, SCAN),
        };
        let mut bytes = vec![VERSION];
        bytes.extend(incarnation.to_be_bytes());
        bytes.extend(revision.to_be_bytes());
        bytes.push(tag);
        if let Self::Scan { start, after, .. } = self {
            for id in [start, after] {
                // An id has at most 512 bytes, so its length always fits.
                bytes.extend((id.as_str().len() as u16).to_be_bytes());
                bytes.extend(id.as_str().as_bytes());
            }
        }
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    /// `None` for anything this store did not hand out.
    pub(crate) fn decode(bytes: &[u8], incarnation: u64) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return None;
        }
        let ([version], rest) = body.split_first_chunk::<1>()?;
        let (store, rest) = rest.split_first_chunk::<8>()?;
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let ([tag], rest) = rest.split_first_chunk::<1>()?;
        if *version != VERSION || u64::from_be_bytes(*store) != incarnation {
            return None;
        }
        let revision = u64::from_be_bytes(*revision);
        match (*tag, rest) {
            (AT, []) => Some(Self::At(revision)),
            (SCAN, rest) => {
                let (start, rest) = id(rest)?;
                let (after, rest) = id(rest)?;
                rest.is_empty().then_some(Self::Scan {
                    revision,
                    start,
                    after,
                })
            }
            _ => None,
        }
    }
}

fn id(bytes: &[u8]) -> Option<(MachineId, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let id = MachineId::new(std::str::from_utf8(text).ok()?).ok()?;
    Some((id, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> impl Strategy<Value = Cursor> {
        let ids = ("[a-z]{1,20}", "[a-z]{1,20}");
        let scan = (any::<u64>(), ids).prop_map(|(revision, (start, after))| Cursor::Scan {
            revision,
            start: MachineId::new(&start).unwrap(),
            after: MachineId::new(&after).unwrap(),
        });
        prop_oneof![any::<u64>().prop_map(Cursor::At), scan]
    }

    proptest! {
        #[test]
        fn a_cursor_comes_back_and_nothing_else_does(
            cursor in some(), at in any::<prop::sample::Index>(), extra in any::<u8>(),
        ) {
            let bytes = cursor.encode(7);
            prop_assert_eq!(Cursor::decode(&bytes, 7), Some(cursor));
            prop_assert_eq!(Cursor::decode(&bytes, 8), None);
            let longer = [&bytes[..], &[extra]].concat();
            prop_assert_eq!(Cursor::decode(&longer, 7), None);
            let mut flipped = bytes;
            let at = at.index(flipped.len());
            flipped[at] ^= 1 << (extra % 8);
            prop_assert_eq!(Cursor::decode(&flipped, 7), None);
        }

        #[test]
        fn junk_is_no_cursor(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(Cursor::decode(&bytes, 7), None);
        }
    }
}
