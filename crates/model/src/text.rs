//! Names: the texts that identify machines, clusters, gangs, Needs and resource dimensions.
//!
//! Each is its own type, so a cluster can never be passed where a machine is meant, and cheap to
//! clone, so a decision can name a machine without copying its id. Order is bytewise.

use std::{fmt, sync::Arc};

/// The longest id accepted from outside, in bytes. Longer than any id a cloud hands out, and short
/// enough that a hostile peer cannot fill memory with names.
pub const MAX_ID_BYTES: usize = 512;

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRefused {
    /// The text is empty.
    Empty,
    /// The text has this many bytes, more than [`MAX_ID_BYTES`].
    TooLong(usize),
}

impl fmt::Display for IdRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an id must not be empty"),
            Self::TooLong(bytes) => {
                write!(
                    f,
                    "an id of {bytes} bytes is longer than the {MAX_ID_BYTES} allowed"
                )
            }
        }
    }
}

impl std::error::Error for IdRefused {}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name }

        impl $name {
            /// The id, if the text can be one.
            pub fn new(text: &str) -> Result<Self, IdRefused> {
                match text.len() {
                    0 => Err(IdRefused::Empty),
                    1..=MAX_ID_BYTES => Ok(Self(text.into())),
                    bytes => Err(IdRefused::TooLong(bytes)),
                }
            }
        }
    };
}

macro_rules! free_text {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name }

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: &str) -> Self {
                match text {
                    "" => Self::default(),
                    text => Self(text.into()),
                }
            }

            /// Whether the text is empty.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl Default for $name {
            /// Empty, as most are: that takes no memory.
            fn default() -> Self {
                Self(Arc::default())
            }
        }
    };
}

id! {
    /// A machine, for its whole life, Speculative to Speculative.
    MachineId
}
id! {
    /// A cluster, as its operator calls it.
    ClusterId
}
id! {
    /// A resource dimension: `cpu`, `memory`, `nvidia.com/gpu`.
    Dimension
}
free_text! {
    /// A gang: opaque, compared for equality only, empty for a plain Need. May contain NUL.
    Group
}
free_text! {
    /// The canonical text of a profile (P-4). Persisted by providers, so it may also be a text that
    /// no current profile has; empty means "no Need".
    Fingerprint
}

/// The identity of a Need, and so the attribution of a machine (RF-1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NeedKey {
    /// Whose Need.
    pub cluster: ClusterId,
    /// The text of its profile.
    pub fingerprint: Fingerprint,
    /// Its gang, or empty.
    pub group: Group,
}

impl NeedKey {
    /// A name that a person can type: see [`need_name`].
    pub fn name(&self) -> String {
        need_name(self.fingerprint.as_str(), self.group.as_str())
    }
}

/// A name that a person can type: eight digits of a hash over what tells a Need from the others of its
/// cluster. The same Need has the same name for ever.
pub fn need_name(fingerprint: &str, group: &str) -> String {
    // FNV-1a: if two Needs share a name, a person has to use the fingerprint, and nothing worse happens.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in fingerprint.bytes().chain([0]).chain(group.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{:08x}", hash >> 32)
}

impl fmt::Display for NeedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.fingerprint)?;
        match self.group.as_str() {
            "" => Ok(()),
            group => write!(f, "/{}", group.escape_debug()),
        }
    }
}

/// A hostile text made fit to print: control characters escaped, and no more than 80 characters.
pub fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// So many of something, as people say it: `1 machine`, `2 machines`; `1 machine is`, `2 machines are`.
pub fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

/// `1st`, `2nd`, `3rd`, `4th`, as people count.
pub fn ordinal(position: usize) -> String {
    let ending = match (position % 100, position % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{position}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_something_is_not_several() {
        let machines = [0, 1, 2, 11].map(|count| counted(count, "machine", "machines"));
        assert_eq!(
            machines,
            ["0 machines", "1 machine", "2 machines", "11 machines"]
        );
        assert_eq!(counted(1_u64, "Need is", "Needs are"), "1 Need is");
    }

    #[test]
    fn positions_are_counted_as_people_do() {
        let counted = [1, 2, 3, 4, 11, 12, 13, 21, 102, 113].map(ordinal);
        let expected = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "113th",
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn an_id_is_never_empty_and_never_over_long() {
        assert_eq!(MachineId::new(""), Err(IdRefused::Empty));
        assert_eq!(
            ClusterId::new(&"c".repeat(513)),
            Err(IdRefused::TooLong(513))
        );
        assert_eq!(
            MachineId::new("m1").map(|id| id.to_string()),
            Ok("m1".to_owned())
        );
    }

    #[test]
    fn hostile_text_is_shown_escaped_and_cut() {
        assert_eq!(shown("a\0b\n"), "a\\0b\\n");
        assert_eq!(shown(&"x".repeat(200)).chars().count(), 81);
    }
}
