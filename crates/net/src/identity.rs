//! Identity: what a certificate says its holder is.
//!
//! ```text
//! URI SANs of the leaf ── scheme bigfleet:// ──┬─ exactly one ──▶ Identity
//!                                              └─ none, several, malformed ──▶ refused
//! ```
//!
//! Identities are compared as exact text. Ids hold only letters, digits, `.`, `_` and `-`, so no
//! escaping can make two spellings of one id, or one spelling of two.

use std::fmt;

use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

const SCHEME: &str = "bigfleet://";
const MAX_ID_BYTES: usize = 512;

/// Who a peer is. Strict: an admin is not also a shard, and a shard is not also a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The operator of this cluster.
    Cluster(String),
    /// This shard, as server and as client.
    Shard(String),
    /// The admin command line, and every coordinator replica.
    Admin,
    /// Dashboards and tools that only look.
    ReadOnly,
}

impl Identity {
    /// The identity a URI stands for.
    pub fn parse(uri: &str) -> Result<Self, IdentityRefused> {
        let malformed = || IdentityRefused::Malformed(shown(uri));
        let rest = uri.strip_prefix(SCHEME).ok_or_else(malformed)?;
        match rest.split_once('/') {
            None if rest == "admin" => Ok(Self::Admin),
            None if rest == "readonly" => Ok(Self::ReadOnly),
            Some(("cluster", id)) if is_plain(id) => Ok(Self::Cluster(id.to_owned())),
            Some(("shard", id)) if is_plain(id) => Ok(Self::Shard(id.to_owned())),
            None | Some(_) => Err(malformed()),
        }
    }

    /// The identity a certificate (DER) carries: its one `bigfleet://` URI. Other URIs do not count.
    pub fn of_certificate(der: &[u8]) -> Result<Self, IdentityRefused> {
        let unreadable = |why: &dyn fmt::Display| IdentityRefused::Unreadable(why.to_string());
        let (_, certificate) = X509Certificate::from_der(der).map_err(|why| unreadable(&why))?;
        let mut ours = Vec::new();
        for extension in certificate.extensions() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
                ours.extend(names.general_names.iter().filter_map(|name| match name {
                    GeneralName::URI(uri) if uri.starts_with(SCHEME) => Some(*uri),
                    _ => None,
                }));
            }
        }
        match ours.as_slice() {
            [] => Err(IdentityRefused::None),
            [one] => Self::parse(one),
            many => Err(IdentityRefused::Several(many.len())),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(id) => write!(f, "{SCHEME}cluster/{id}"),
            Self::Shard(id) => write!(f, "{SCHEME}shard/{id}"),
            Self::Admin => write!(f, "{SCHEME}admin"),
            Self::ReadOnly => write!(f, "{SCHEME}readonly"),
        }
    }
}

/// Why a certificate gives no identity. The connection stands; whatever needs an identity does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityRefused {
    /// No URI of ours.
    #[error("the certificate has no bigfleet:// URI")]
    None,
    /// More than one.
    #[error("the certificate has {0} bigfleet:// URIs, not exactly one")]
    Several(usize),
    /// One, but not of a known form.
    #[error(
        "\"{0}\" is not bigfleet://cluster/<id>, bigfleet://shard/<id>, bigfleet://admin or bigfleet://readonly"
    )]
    Malformed(String),
    /// The certificate cannot be read.
    #[error("the certificate is unreadable: {0}")]
    Unreadable(String),
}

fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
}

/// A text somebody else chose, made fit for a log line.
pub(crate) fn shown(text: &str) -> String {
    let escaped = text.escape_debug().collect::<String>();
    match escaped.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", &escaped[..at]),
        None => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn identity(uris: &[&str]) -> Result<Identity, IdentityRefused> {
        let mut params = CertificateParams::new(["host".to_owned()]).unwrap();
        let names = uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names.extend(names);
        let key = KeyPair::generate().unwrap();
        Identity::of_certificate(params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn each_form_reads_back_as_it_is_written() {
        for uri in [
            "bigfleet://cluster/prod-eu.1",
            "bigfleet://shard/shard_0",
            "bigfleet://admin",
            "bigfleet://readonly",
        ] {
            assert_eq!(identity(&[uri]).unwrap().to_string(), uri);
        }
    }

    #[test]
    fn exactly_one_of_our_scheme_counts() {
        let spiffe = "spiffe://example.org/shard/0";
        let shard = identity(&[spiffe, "bigfleet://shard/0"]);
        assert_eq!(shard, Ok(Identity::Shard("0".to_owned())));
        assert_eq!(identity(&[spiffe]), Err(IdentityRefused::None));
        let both = ["bigfleet://shard/0", "bigfleet://admin"];
        assert_eq!(identity(&both), Err(IdentityRefused::Several(2)));
    }

    #[test]
    fn an_id_that_could_be_spelled_twice_is_none() {
        for uri in [
            "bigfleet://shard/",
            "bigfleet://shard/a%2fb",
            "bigfleet://shard/a/b",
            "bigfleet://shard/a?x",
            "bigfleet://Admin",
            "bigfleet://admin/",
            "bigfleet://root",
        ] {
            let refused = identity(&[uri]);
            assert!(
                matches!(refused, Err(IdentityRefused::Malformed(_))),
                "{uri}: {refused:?}"
            );
        }
    }
}
