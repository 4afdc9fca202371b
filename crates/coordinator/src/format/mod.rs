//! Format: entries of the log and snapshots as bytes, and back.
//!
//! ```text
//! version 1 byte │ CRC-32 4 bytes │ message, fields numbered
//! ```
//!
//! Equal values are equal bytes. Numbers of fields only ever grow, and a command's field is its kind, so 6 and 7 stay retired; what an earlier
//! version does not know it refuses, since tables that lack a command are other tables. Anything that does not read is damage,
//! and is said.

mod entry;
mod parts;
mod snapshot;

pub use entry::{read_entry, write_entry};
pub(crate) use parts::needed;
pub use snapshot::{read_snapshot, write_snapshot};

use bigfleet_coordinator_core::{NameRefused, RowRefused};
use bigfleet_model::IdRefused;
use prost::Message;

const VERSION: u8 = 1;
const HEAD: usize = 5;

/// Why bytes are not what they should be.
#[derive(Debug, thiserror::Error)]
pub enum FormatRefused {
    /// Too short to have a version and a checksum.
    #[error("{0} bytes are too few to hold anything")]
    Short(usize),
    /// Written by a later version.
    #[error("written in version {0} of the format; this program reads version {VERSION}")]
    Version(u8),
    /// The checksum does not fit.
    #[error("damaged: the checksum is {found:08x}, not {written:08x}")]
    Checksum {
        /// The one in the bytes.
        written: u32,
        /// The one they have.
        found: u32,
    },
    /// The message does not decode.
    #[error("damaged: it does not decode")]
    Message(#[from] prost::DecodeError),
    /// Something is missing that must be there.
    #[error("{0} is missing, or of a kind this program does not know")]
    Missing(&'static str),
    /// A number stands for nothing.
    #[error("{what} {value} stands for nothing")]
    Number {
        /// The field it was read from.
        what: &'static str,
        /// Its value.
        value: u32,
    },
    /// A text is no name.
    #[error(transparent)]
    Name(#[from] NameRefused),
    /// A text is no id.
    #[error(transparent)]
    Id(#[from] IdRefused),
    /// A row of a snapshot does not fit.
    #[error(transparent)]
    Row(#[from] RowRefused),
}

pub(crate) fn seal(message: &impl Message) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    bytes.extend(message.encode_to_vec());
    bytes[0] = VERSION;
    let sum = checksum(&bytes[HEAD..]);
    bytes[1..HEAD].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Of the version and the message, so that no bit of either can flip unnoticed.
fn checksum(message: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[VERSION]);
    sum.update(message);
    sum.finalize()
}

pub(crate) fn open<M: Message + Default>(bytes: &[u8]) -> Result<M, FormatRefused> {
    let (head, message) = bytes
        .split_first_chunk::<HEAD>()
        .ok_or(FormatRefused::Short(bytes.len()))?;
    let [version, sum @ ..] = *head;
    if version != VERSION {
        return Err(FormatRefused::Version(version));
    }
    let (written, found) = (u32::from_le_bytes(sum), checksum(message));
    if written != found {
        return Err(FormatRefused::Checksum { written, found });
    }
    Ok(M::decode(message)?)
}
