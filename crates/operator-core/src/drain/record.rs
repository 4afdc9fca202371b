//! Record: what a Node itself keeps of its drain, so that another process can go on with it.
//!
//! ```text
//! instruction=op-7-12 machine=i-0a1 deadline=1763424000000000000 cordoned=1763423400000000000 voluntary cordoned-before
//! ```
//!
//! One annotation, written in the same patch that cordons. Fields are separated by spaces; whatever is not a letter, a
//! digit or one of `-._:/` is written as `%` and two hexadecimal digits. Reading is strict: no Pod is touched
//! because of a record that could not be read.

use bigfleet_model::{MachineId, Time};
use std::fmt::Write as _;

/// The annotation of a Node that holds the record.
pub const DRAIN_ANNOTATION: &str = "bigfleet.lucy.sh/drain";
/// The longest record that is read.
const MOST_BYTES: usize = 16 << 10;

/// A drain as its Node remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRecord {
    /// The instruction it is carried out for.
    pub instruction: String,
    /// The machine.
    pub machine: MachineId,
    /// When its grace ends, on the clock of whoever wrote it.
    pub deadline: Time,
    /// When the Node was cordoned for it.
    pub cordoned: Time,
    /// Whether it can wait.
    pub voluntary: bool,
    /// Whether somebody else had cordoned the Node before.
    pub cordoned_before: bool,
}

impl DrainRecord {
    /// The annotation's text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "instruction={} machine={} deadline={} cordoned={}",
            escaped(&self.instruction),
            escaped(self.machine.as_str()),
            self.deadline.nanos(),
            self.cordoned.nanos()
        );
        let words = [
            (self.voluntary, " voluntary"),
            (self.cordoned_before, " cordoned-before"),
        ];
        text.extend(
            words
                .into_iter()
                .filter(|(is_so, _)| *is_so)
                .map(|(_, word)| word),
        );
        text
    }

    /// Reads what [`Self::text`] wrote; `None` is no record.
    pub fn parse(text: &str) -> Option<Self> {
        if MOST_BYTES < text.len() {
            return None;
        }
        let mut fields = text.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let instruction = unescaped(field("instruction")?)?;
        let machine = MachineId::new(&unescaped(field("machine")?)?).ok()?;
        let deadline = Time::from_nanos(field("deadline")?.parse().ok()?);
        let cordoned = Time::from_nanos(field("cordoned")?.parse().ok()?);
        let words: Vec<&str> = fields.collect();
        let (voluntary, cordoned_before) = match words.as_slice() {
            [] => (false, false),
            ["voluntary"] => (true, false),
            ["cordoned-before"] => (false, true),
            ["voluntary", "cordoned-before"] => (true, true),
            _ => return None,
        };
        Some(Self {
            instruction,
            machine,
            deadline,
            cordoned,
            voluntary,
            cordoned_before,
        })
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte)
}

pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            escaped.push(byte as char);
        } else {
            let _ = write!(escaped, "%{byte:02x}"); // writing to a String cannot fail
        }
    }
    escaped
}

/// What was escaped; `None` if this is not how we write it.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(Some(byte).filter(|byte| is_plain(*byte))?);
            continue;
        }
        let mut digit = || (rest.next()? as char).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_readable_by_people() {
        let record = DrainRecord {
            instruction: "op 7".to_owned(),
            machine: MachineId::new("i-0a1").unwrap(),
            deadline: Time::from_nanos(9),
            cordoned: Time::from_nanos(-1),
            voluntary: true,
            cordoned_before: false,
        };
        let text = "instruction=op%207 machine=i-0a1 deadline=9 cordoned=-1 voluntary";
        assert_eq!(record.text(), text);
    }

    #[test]
    fn what_is_not_a_record_is_none() {
        for text in [
            "",
            "yes",
            "instruction=a machine= deadline=1 cordoned=1",
            "instruction=a machine=m deadline=soon cordoned=1",
            "instruction=a machine=m deadline=1",
            "instruction=a machine=m deadline=1 cordoned=1 perhaps",
            "instruction=a machine=m deadline=1 cordoned=1 cordoned-before voluntary",
            "machine=m instruction=a deadline=1 cordoned=1",
            "instruction=%zz machine=m deadline=1 cordoned=1",
            "instruction=a=b machine=m deadline=1 cordoned=1",
        ] {
            assert_eq!(DrainRecord::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_record_round_trips(
            instruction in ".{0,30}",
            machine in ".{1,30}",
            deadline: i64,
            cordoned: i64,
            voluntary: bool,
            cordoned_before: bool,
        ) {
            let record = DrainRecord {
                instruction,
                machine: MachineId::new(&machine).unwrap(),
                deadline: Time::from_nanos(deadline),
                cordoned: Time::from_nanos(cordoned),
                voluntary,
                cordoned_before,
            };
            prop_assert_eq!(DrainRecord::parse(&record.text()), Some(record));
        }

        #[test]
        fn hostile_text_never_panics(text in any::<String>()) {
            let _ = DrainRecord::parse(&text);
        }
    }
}
