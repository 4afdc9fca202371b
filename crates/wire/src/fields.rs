//! Fields: a message walked where it lies, without making one.
//!
//! ```text
//! bytes ─▶ (number, value) (number, value) …      a value borrows from the bytes
//! ```
//!
//! The generated messages copy every text they hold. Of a List that is most of its cost, since a fleet
//! that is as it was says nothing new. What is refused here and what is passed over is what the generated
//! messages refuse and pass over; a property of `tests/in_place.rs` holds the two together.

use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They are not even fields.
    #[error(transparent)]
    Bytes(#[from] DecodeError),
    /// A field goes on where the message ends.
    #[error("field {0} is cut off")]
    Cut(u32),
    /// A field is of another kind.
    #[error("field {0} has the wire type of another kind of field")]
    Kind(u32),
    /// A text is none.
    #[error("field {0} is not UTF-8")]
    Text(u32),
}

/// The fields of a message, in the order they come.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

/// A field.
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    value: Value<'a>,
}

enum Value<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
    /// Of a kind no field of ours has.
    Other,
}

impl<'a> Fields<'a> {
    /// The next field, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, Unreadable> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = decode_key(&mut self.0)?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(decode_varint(&mut self.0)?),
            WireType::SixtyFourBit => {
                let (bytes, rest) = self.0.split_first_chunk().ok_or(Unreadable::Cut(number))?;
                self.0 = rest;
                Value::Double(f64::from_le_bytes(*bytes))
            }
            WireType::LengthDelimited => {
                let length = decode_varint(&mut self.0)?;
                let length = usize::try_from(length).map_err(|_| Unreadable::Cut(number))?;
                let split = self.0.split_at_checked(length);
                let (bytes, rest) = split.ok_or(Unreadable::Cut(number))?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            WireType::ThirtyTwoBit | WireType::StartGroup | WireType::EndGroup => {
                skip_field(wire_type, number, &mut self.0, DecodeContext::default())?;
                Value::Other
            }
        };
        Ok(Some(Field { number, value }))
    }
}

impl<'a> Field<'a> {
    pub(crate) fn bytes(&self) -> Result<&'a [u8], Unreadable> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            Value::Varint(_) | Value::Double(_) | Value::Other => {
                Err(Unreadable::Kind(self.number))
            }
        }
    }

    pub(crate) fn text(&self) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Unreadable::Text(self.number))
    }

    /// A number or the number of an enum's value; more than it can hold is cut, as everywhere.
    pub(crate) fn int32(&self) -> Result<i32, Unreadable> {
        self.varint().map(|number| number as i32)
    }

    pub(crate) fn int64(&self) -> Result<i64, Unreadable> {
        self.varint().map(|number| number as i64)
    }

    pub(crate) fn bool(&self) -> Result<bool, Unreadable> {
        self.varint().map(|number| number != 0)
    }

    pub(crate) fn double(&self) -> Result<f64, Unreadable> {
        match self.value {
            Value::Double(number) => Ok(number),
            Value::Varint(_) | Value::Bytes(_) | Value::Other => Err(Unreadable::Kind(self.number)),
        }
    }

    fn varint(&self) -> Result<u64, Unreadable> {
        match self.value {
            Value::Varint(number) => Ok(number),
            Value::Double(_) | Value::Bytes(_) | Value::Other => Err(Unreadable::Kind(self.number)),
        }
    }
}
