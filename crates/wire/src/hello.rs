//! Hello: who opens a session, and what it understands.

use std::collections::BTreeSet;

use bigfleet_model::{ClusterId, IdRefused, shown};

use crate::limits::{MAX_FEATURES, OverLimit, check_count};
use crate::v1alpha1::{Hello, OperatorMessage, operator_message::Payload};

/// The version both sides speak.
pub const PROTOCOL_VERSION: &str = "v1alpha1";

/// An addition to the session a peer may understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// Progress of drains, and their withdrawal.
    DrainReport,
    /// Which nodes the cluster sees.
    NodeReport,
    /// Machines to drain, by every name they have.
    ReclaimTarget,
    /// Markers around a resync.
    Resync,
    /// Rows that ask for whole units.
    WholeUnits,
    /// What draining a node would disturb.
    Disruption,
    /// Where rows of the demand stand.
    NeedStatus,
}

impl Feature {
    /// Every feature, as we list them.
    pub const ALL: [Self; 7] = [
        Self::DrainReport,
        Self::NodeReport,
        Self::ReclaimTarget,
        Self::Resync,
        Self::WholeUnits,
        Self::Disruption,
        Self::NeedStatus,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::DrainReport => "drain-report.v1",
            Self::NodeReport => "node-report.v1",
            Self::ReclaimTarget => "reclaim-target.v1",
            Self::Resync => "resync.v1",
            Self::WholeUnits => "whole-units.v1",
            Self::Disruption => "disruption.v1",
            Self::NeedStatus => "need-status.v1",
        }
    }

    /// The features a peer listed; those of a newer peer are passed over.
    pub fn known(names: &[String]) -> BTreeSet<Self> {
        let listed = |feature: &Self| names.iter().any(|name| name == feature.name());
        Self::ALL.into_iter().filter(listed).collect()
    }
}

/// An accepted Hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Whose session it is; still to be compared with the peer's certificate.
    pub cluster: ClusterId,
    /// What the operator understands.
    pub features: BTreeSet<Feature>,
}

/// Why a session cannot begin. The stream ends with INVALID_ARGUMENT and this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloRefused {
    /// The stream ended before a first frame.
    #[error("the stream ended before a Hello (wire 6.1)")]
    NoFrame,
    /// The first frame is something else.
    #[error("the first frame is not a Hello (wire 6.1)")]
    NotHello,
    /// The cluster is not an id.
    #[error("Hello.cluster_id: {0} (wire 2.2)")]
    Cluster(IdRefused),
    /// The cluster has characters that a certificate's name would escape.
    #[error("Hello.cluster_id \"{0}\" has characters outside [A-Za-z0-9._-] (wire 7.4)")]
    Characters(String),
    /// The peer speaks something else.
    #[error("Hello.protocol_version \"{0}\" is not {PROTOCOL_VERSION} (wire G9)")]
    Version(String),
    /// Too many features.
    #[error(transparent)]
    Limit(#[from] OverLimit),
}

impl Greeting {
    /// Checks the first frame of a stream; `None` is a stream that had none.
    pub fn open(first: Option<OperatorMessage>) -> Result<Self, HelloRefused> {
        let first = first.ok_or(HelloRefused::NoFrame)?;
        match first.payload {
            Some(Payload::Hello(hello)) => Self::read(&hello),
            _ => Err(HelloRefused::NotHello),
        }
    }

    /// Checks a Hello.
    pub fn read(hello: &Hello) -> Result<Self, HelloRefused> {
        let version = hello.protocol_version.as_str();
        if !["", PROTOCOL_VERSION].contains(&version) {
            return Err(HelloRefused::Version(shown(version)));
        }
        check_count("Hello.features", hello.features.len(), MAX_FEATURES)?;
        let cluster = ClusterId::new(&hello.cluster_id).map_err(HelloRefused::Cluster)?;
        if !is_portable_id(cluster.as_str()) {
            return Err(HelloRefused::Characters(shown(cluster.as_str())));
        }
        let features = Feature::known(&hello.features);
        Ok(Self { cluster, features })
    }
}

/// Whether a cluster or shard id reads the same inside a certificate's URI, which escapes other
/// characters (wire 7.4).
pub fn is_portable_id(id: &str) -> bool {
    let portable = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !id.is_empty() && id.bytes().all(portable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        cluster_id: &str,
        protocol_version: &str,
        features: &[&str],
    ) -> Result<Greeting, String> {
        let hello = Hello {
            cluster_id: cluster_id.to_owned(),
            protocol_version: protocol_version.to_owned(),
            features: features.iter().map(|name| (*name).to_owned()).collect(),
        };
        Greeting::open(Some(Payload::Hello(hello).into())).map_err(|refused| refused.to_string())
    }

    #[test]
    fn both_the_version_and_none_are_accepted() {
        for version in ["", "v1alpha1"] {
            let greeting = read("prod-1.eu_west", version, &["resync.v1", "later.v9"]).unwrap();
            assert_eq!(greeting.cluster.as_str(), "prod-1.eu_west");
            assert_eq!(greeting.features, BTreeSet::from([Feature::Resync]));
        }
    }

    #[test]
    fn refusals_name_field_value_and_rule() {
        for (cluster, version, expected) in [
            (
                "",
                "",
                "Hello.cluster_id: an id must not be empty (wire 2.2)",
            ),
            (
                "a/b\n",
                "",
                "Hello.cluster_id \"a/b\\n\" has characters outside [A-Za-z0-9._-] (wire 7.4)",
            ),
            (
                "a",
                "v1",
                "Hello.protocol_version \"v1\" is not v1alpha1 (wire G9)",
            ),
        ] {
            assert_eq!(read(cluster, version, &[]), Err(expected.to_owned()));
        }
        let long = read(&"a".repeat(513), "", &[]).unwrap_err();
        assert!(
            long.starts_with("Hello.cluster_id: an id of 513 bytes"),
            "{long}"
        );
        let many = read("a", "", &["f"; MAX_FEATURES + 1]).unwrap_err();
        assert!(many.starts_with("Hello.features has 257 entries"), "{many}");
    }

    #[test]
    fn the_first_frame_must_be_a_hello() {
        assert_eq!(Greeting::open(None), Err(HelloRefused::NoFrame));
        let empty = OperatorMessage { payload: None };
        assert_eq!(Greeting::open(Some(empty)), Err(HelloRefused::NotHello));
        let rollup = Payload::Rollup(Default::default()).into();
        assert_eq!(Greeting::open(Some(rollup)), Err(HelloRefused::NotHello));
    }
}
