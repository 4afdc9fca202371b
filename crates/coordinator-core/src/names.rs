//! Names: shards, domains, transfers and providers, each valid once it exists.
//!
//! ```text
//! shard, cluster, transfer   [A-Za-z0-9][A-Za-z0-9._-]{0,252}     a certificate can carry them unescaped
//! domain                     key=value     no `=` in a key, nothing unprintable: a line of a digest is one domain
//! ```

use std::{fmt, sync::Arc};

use bigfleet_model::{MAX_ID_BYTES, shown};

/// The longest id of a shard, a cluster or a transfer.
const MOST_ID_BYTES: usize = 253;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRefused {
    /// What it was to name.
    what: &'static str,
    text: String,
    why: &'static str,
}

impl fmt::Display for NameRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` {}", self.what, self.text, self.why)
    }
}

impl std::error::Error for NameRefused {}

fn refused(what: &'static str, text: &str, why: &'static str) -> NameRefused {
    let text = shown(text).chars().take(80).collect();
    NameRefused { what, text, why }
}

/// Whether a text can name a shard, a cluster or a transfer.
pub(crate) fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    let is_first = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_next = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    is_first && bytes.all(is_next) && text.len() <= MOST_ID_BYTES
}

fn id(what: &'static str, text: &str) -> Result<Arc<str>, NameRefused> {
    if text.is_empty() {
        return Err(refused(what, text, "is empty"));
    }
    if !is_id(text) {
        let why =
            "is not a letter or digit followed by at most 252 letters, digits, `.`, `_` or `-`";
        return Err(refused(what, text, why));
    }
    Ok(text.into())
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id, if the text can be one.
            pub fn new(text: &str) -> Result<Self, NameRefused> {
                id($what, text).map(Self)
            }

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
                f.write_str(&self.0)
            }
        }
    };
}

id_type! {
    /// A shard.
    ShardId, "shard id"
}
id_type! {
    /// A transfer of machines from one shard to another: `<reign>-<number>` in hex where it was made here.
    TransferId, "transfer id"
}

impl TransferId {
    /// The id of a transfer that the tables themselves begin (CO-20, line 8). Those begun by a leader count from 1, these from
    /// the upper half, so that the two never meet (CO-38).
    pub(crate) fn minted(reign: u64, number: u64) -> Self {
        let number = number | 1 << 63;
        Self(format!("{reign:x}-{number:x}").into())
    }
}

/// A topology domain: the machines whose label has this value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Domain {
    key: Arc<str>,
    value: Arc<str>,
}

impl Domain {
    /// The domain, if the two can be one.
    pub fn new(key: &str, value: &str) -> Result<Self, NameRefused> {
        part("topology key", key)?;
        part("topology value", value)?;
        if key.contains('=') {
            return Err(refused("topology key", key, "contains `=`"));
        }
        let (key, value) = (key.into(), value.into());
        Ok(Self { key, value })
    }

    /// The domain of a text `key=value`.
    pub fn parse(text: &str) -> Result<Self, NameRefused> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(refused("domain", text, "is not of the form key=value"));
        };
        Self::new(key, value)
    }

    /// The label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its value.
    pub fn value(&self) -> &str {
        &self.value
    }
}

fn part(what: &'static str, text: &str) -> Result<(), NameRefused> {
    if text.is_empty() {
        return Err(refused(what, text, "is empty"));
    }
    if MAX_ID_BYTES < text.len() {
        return Err(refused(what, text, "is longer than 512 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(refused(
            what,
            text,
            "has a character that cannot be printed",
        ));
    }
    Ok(())
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A provider, as far as it matters whether two shards have the same one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// The one at this address.
    At(Arc<str>),
    /// The one inside of this shard, which says no address.
    Within(ShardId),
}

impl Provider {
    /// The provider a shard says it dials; an empty address is one of its own.
    pub fn of(shard: &ShardId, address: &str) -> Self {
        if address.is_empty() {
            Self::Within(shard.clone())
        } else {
            Self::At(address.into())
        }
    }

    /// The address, empty for one inside of a shard.
    pub fn address(&self) -> &str {
        match self {
            Self::At(address) => address,
            Self::Within(_) => "",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => f.write_str(address),
            Self::Within(shard) => write!(f, "the provider inside of shard {shard}"),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_fits_into_a_certificate_unescaped() {
        let longest = "a".repeat(253);
        for good in ["s", "shard-0", "A.b_c-9", &longest] {
            assert_eq!(ShardId::new(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(254);
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", "a\n", &too_long] {
            assert!(ShardId::new(bad).is_err(), "{bad:?}");
        }
        let why = ShardId::new("a/b").unwrap_err().to_string();
        assert!(why.starts_with("shard id `a/b` is not a letter"), "{why}");
    }

    #[test]
    fn a_domain_is_one_line_of_a_digest() {
        let zone = Domain::parse("topology.kubernetes.io/zone=eu=1").unwrap();
        assert_eq!(
            (zone.key(), zone.value()),
            ("topology.kubernetes.io/zone", "eu=1")
        );
        assert_eq!(zone.to_string(), "topology.kubernetes.io/zone=eu=1");
        for bad in ["", "zone", "=a", "zone=", "zone=a\nb", "zo\0ne=a"] {
            assert!(Domain::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Domain::new("a=b", "c").is_err());
        assert!(Domain::new("a", &"b".repeat(513)).is_err());
    }

    #[test]
    fn shards_without_an_address_share_no_provider() {
        let (one, two) = (ShardId::new("one").unwrap(), ShardId::new("two").unwrap());
        assert_ne!(Provider::of(&one, ""), Provider::of(&two, ""));
        assert_eq!(Provider::of(&one, "p:1"), Provider::of(&two, "p:1"));
    }
}
