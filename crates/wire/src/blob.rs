//! Blob: node user data on its way from an operator to a provider, and what travels beside it.
//!
//! A blob or metadata that no provider could receive is refused here, where the cause is known,
//! rather than there, as a call that can never succeed.

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_model::{MAX_ID_BYTES, shown};

use crate::limits::{MAX_BLOB_BYTES, MAX_ERROR_BYTES, MAX_METADATA_BYTES, OverLimit, check_bytes};
use crate::v1alpha1::BootstrapBlobResponse;

/// An operator's answer to a request for user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobAnswer {
    /// The request it answers. One that is not known is dropped silently.
    pub request: String,
    /// The user data, or why the cluster cannot make any.
    pub blob: Result<Blob, String>,
}

/// Node user data; never parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The bytes, forwarded as they are.
    pub user_data: Vec<u8>,
    /// How long it may be used, from receipt; `None` if not stated.
    pub lifetime: Option<Duration>,
}

/// Why an answer is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobRefused {
    /// It answers no request.
    #[error("request_id is empty (wire 6.4)")]
    NoRequest,
    /// The lifetime is negative.
    #[error("request \"{request}\": ttl_seconds {ttl_seconds} is negative (wire 6.4)")]
    Lifetime {
        /// Which request, made fit to print.
        request: String,
        /// What it says.
        ttl_seconds: i64,
    },
    /// It holds more than it may.
    #[error("request \"{request}\": {over}")]
    Limit {
        /// Which request, made fit to print.
        request: String,
        /// What is too much.
        over: OverLimit,
    },
}

impl BlobAnswer {
    /// Checks an operator's answer. Its `error` counts before its user data.
    pub fn read(message: BootstrapBlobResponse) -> Result<Self, BlobRefused> {
        let request = message.request_id;
        if request.is_empty() {
            return Err(BlobRefused::NoRequest);
        }
        let ttl_seconds = message.ttl_seconds;
        let seconds = u64::try_from(ttl_seconds).map_err(|_| BlobRefused::Lifetime {
            request: shown(&request),
            ttl_seconds,
        })?;
        for (field, bytes, limit) in [
            ("request_id", request.len(), MAX_ID_BYTES),
            ("user_data", message.user_data.len(), MAX_BLOB_BYTES),
            ("error", message.error.len(), MAX_ERROR_BYTES),
        ] {
            check_bytes(field, bytes, limit).map_err(|over| BlobRefused::Limit {
                request: shown(&request),
                over,
            })?;
        }
        let blob = if message.error.is_empty() {
            Ok(Blob {
                user_data: message.user_data,
                lifetime: (0 < seconds).then(|| Duration::from_secs(seconds)),
            })
        } else {
            Err(message.error)
        };
        Ok(Self { request, blob })
    }
}

/// Refuses metadata that would not fit a `ConfigureRequest` beside the largest blob.
pub fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), OverLimit> {
    let sizes = metadata.iter().map(|(key, value)| key.len() + value.len());
    check_bytes("shard_metadata", sizes.sum(), MAX_METADATA_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MAX_CONFIGURE_BYTES, MAX_FINGERPRINT_BYTES, MAX_GROUP_BYTES};
    use crate::v1alpha1::ConfigureRequest;
    use bigfleet_model::{Assignment, Fingerprint, Group};
    use prost::Message as _;

    fn answer(ttl_seconds: i64, user_data: usize, error: &str) -> Result<BlobAnswer, String> {
        let message = BootstrapBlobResponse {
            request_id: "r1".to_owned(),
            user_data: vec![0; user_data],
            ttl_seconds,
            error: error.to_owned(),
        };
        BlobAnswer::read(message).map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_lifetime_of_zero_is_not_stated() {
        let lifetime = |ttl| answer(ttl, 1, "").unwrap().blob.unwrap().lifetime;
        assert_eq!(lifetime(0), None);
        assert_eq!(lifetime(600), Some(Duration::from_secs(600)));
        let text = "request \"r1\": ttl_seconds -1 is negative (wire 6.4)";
        assert_eq!(answer(-1, 1, ""), Err(text.to_owned()));
    }

    #[test]
    fn an_error_counts_before_user_data() {
        assert_eq!(
            answer(0, 5, "no such pool").unwrap().blob,
            Err("no such pool".to_owned())
        );
    }

    #[test]
    fn what_no_provider_receives_is_refused_before_it_is_sent() {
        assert!(answer(0, MAX_BLOB_BYTES, "").is_ok());
        let text = answer(0, MAX_BLOB_BYTES + 1, "").unwrap_err();
        assert!(
            text.starts_with("request \"r1\": user_data has 3145729 bytes"),
            "{text}"
        );
        let long = BTreeMap::from([("k".to_owned(), "v".repeat(MAX_METADATA_BYTES))]);
        assert!(check_metadata(&long).is_err());
    }

    #[test]
    fn the_largest_accepted_row_and_blob_fit_a_configure() {
        let assignment = Assignment {
            fingerprint: Fingerprint::new(&"f".repeat(MAX_FINGERPRINT_BYTES)),
            group: Group::new(&"g".repeat(MAX_GROUP_BYTES)),
            ..Assignment::default()
        };
        let shard_metadata = assignment.to_metadata();
        assert_eq!(check_metadata(&shard_metadata), Ok(()));
        let request = ConfigureRequest {
            machine_id: "m".repeat(MAX_ID_BYTES),
            cluster_id: "c".repeat(MAX_ID_BYTES),
            bootstrap_blob: vec![0; MAX_BLOB_BYTES],
            shard_id: "s".repeat(MAX_ID_BYTES),
            shard_epoch: i64::MAX,
            sequence_number: i64::MAX,
            shard_metadata,
        };
        assert!(request.encoded_len() < MAX_CONFIGURE_BYTES);
    }
}
