//! The answers: what programs print, read strictly.
//!
//! A key that is not known is refused: a misspelt `allocatable` would otherwise be an offer that is never
//! corrected. What cannot be read is named by position, never quoted: it could be bootstrap data.

use bigfleet_model::Time;
use bigfleet_provider_kit::{Failure, TextMap};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::config::ProgramKind;

/// What a host is called: here, in its cluster, and to Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames {
    /// What programs are given to find it by; without a slash.
    pub host: String,
    /// Its node's `spec.providerID`, if that is more than the host: it ends in a slash and the host.
    pub provider_id: Option<String>,
    /// Its node's name, where it is known.
    pub node_name: Option<String>,
}

impl HostNames {
    /// The one reference a record has: the provider id where there is one.
    pub(crate) fn reference(&self) -> &str {
        self.provider_id.as_deref().unwrap_or(&self.host)
    }

    /// The names behind a reference.
    pub(crate) fn of(reference: &str) -> Self {
        let host = reference.rsplit('/').next().unwrap_or(reference);
        Self {
            host: host.to_owned(),
            provider_id: (host != reference).then(|| reference.to_owned()),
            node_name: None,
        }
    }

    fn checked(
        host: String,
        node_name: Option<String>,
        provider_id: Option<String>,
    ) -> Result<Self, String> {
        if host.is_empty() || host.contains('/') {
            return Err("host must be a name without a slash".to_owned());
        }
        let fits = |id: &String| *id == host || id.ends_with(&format!("/{host}"));
        if !provider_id.as_ref().is_none_or(fits) {
            return Err(format!("provider_id must end in \"/{host}\", the host"));
        }
        Ok(Self {
            provider_id: provider_id.filter(|id| *id != host),
            node_name: node_name.filter(|name| !name.is_empty()),
            host,
        })
    }
}

/// What create, configure and the like print.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Done {
    host: Option<String>,
    node_name: Option<String>,
    provider_id: Option<String>,
    pub(crate) allocatable: Option<TextMap>,
}

impl Done {
    /// The host a create made.
    pub(crate) fn names(self) -> Result<(HostNames, Option<TextMap>), Failure> {
        let host = self
            .host
            .ok_or_else(|| Failure::new("create: printed no host"))?;
        let names = HostNames::checked(host, self.node_name, self.provider_id)
            .map_err(|why| Failure::new(format!("create: {why}")))?;
        Ok((names, self.allocatable))
    }

    pub(crate) fn node_name(self) -> Option<String> {
        self.node_name.filter(|name| !name.is_empty())
    }
}

/// What describe prints: the hosts that exist.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    hosts: Vec<DescribedHost>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedHost {
    machine: String,
    host: String,
    #[serde(default)]
    node_name: Option<String>,
    #[serde(default)]
    provider_id: Option<String>,
    /// When it will be gone, RFC 3339; absent if nothing is announced.
    #[serde(default)]
    leaving_at: Option<String>,
}

/// A host that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExistingHost {
    pub(crate) machine: String,
    pub(crate) names: HostNames,
    /// When it will be gone, if that is announced.
    pub(crate) leaving: Option<Time>,
}

impl Described {
    /// The hosts by machine, each checked.
    pub(crate) fn hosts(self) -> Result<Vec<ExistingHost>, Failure> {
        let checked = |host: DescribedHost| {
            let names = HostNames::checked(host.host, host.node_name, host.provider_id);
            let refused = |why| Failure::new(format!("describe: machine {}: {why}", host.machine));
            let names = names.map_err(refused)?;
            let leaving = host.leaving_at.as_deref().map(moment).transpose();
            let leaving = leaving.map_err(refused)?;
            Ok(ExistingHost {
                machine: host.machine,
                names,
                leaving,
            })
        };
        self.hosts.into_iter().map(checked).collect()
    }
}

/// A moment as programs print it.
fn moment(text: &str) -> Result<Time, String> {
    let refused = || "leaving_at is not a moment such as 2026-01-02T15:04:05Z".to_owned();
    let at: jiff::Timestamp = text.parse().map_err(|_| refused())?;
    let nanos = i64::try_from(at.as_nanosecond()).map_err(|_| refused())?;
    Ok(Time::from_nanos(nanos))
}

/// What prices prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priced {
    pub(crate) prices: Vec<Price>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    pub(crate) offering: String,
    pub(crate) price_per_hour: f64,
    pub(crate) interruption_probability: Option<f64>,
}

/// Reads what a program printed.
pub(crate) fn read<T: DeserializeOwned>(kind: ProgramKind, printed: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(printed).map_err(|why| {
        let text = why.to_string();
        // These two name keys of ours and of theirs; anything else may quote a value.
        let about_keys = ["unknown field", "missing field"]
            .iter()
            .any(|start| text.starts_with(start));
        let (line, column) = (why.line(), why.column());
        let what = if about_keys {
            text
        } else {
            format!(
                "what it printed is not the JSON object expected (line {line}, column {column})"
            )
        };
        Failure::new(format!("{kind}: {what}"))
    })
}

/// The same for programs that need not print anything.
pub(crate) fn read_done(kind: ProgramKind, printed: &[u8]) -> Result<Done, Failure> {
    if printed.iter().all(u8::is_ascii_whitespace) {
        return Ok(Done::default());
    }
    read(kind, printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(printed: &str) -> String {
        let done = read_done(ProgramKind::Create, printed.as_bytes());
        done.and_then(Done::names).unwrap_err().text
    }

    #[test]
    fn a_host_s_names_survive_the_one_reference_a_record_has() {
        for (host, id) in [
            ("vm-7", None),
            ("vm-7", Some("rack://a/vm-7")),
            ("x", Some("x")),
        ] {
            let names = HostNames::checked(host.into(), None, id.map(str::to_owned)).unwrap();
            assert_eq!(HostNames::of(names.reference()), names);
        }
    }

    /// SH-20: a host may say when it will be gone.
    #[test]
    fn a_host_may_say_when_it_will_be_gone() {
        let hosts = |leaving_at: &str| {
            let printed =
                format!(r#"{{"hosts": [{{"machine": "m1", "host": "h1"{leaving_at}}}]}}"#);
            let read: Described = read(ProgramKind::Describe, printed.as_bytes())?;
            read.hosts().map(|hosts| hosts[0].leaving)
        };
        assert_eq!(hosts(""), Ok(None));
        let at = Time::from_nanos(1_500_000_000);
        let stated = r#", "leaving_at": "1970-01-01T02:00:01.5+02:00""#;
        assert_eq!(hosts(stated), Ok(Some(at)));
        let refused = hosts(r#", "leaving_at": "in two minutes""#).unwrap_err();
        assert_eq!(
            refused.text,
            "describe: machine m1: leaving_at is not a moment such as 2026-01-02T15:04:05Z"
        );
    }

    #[test]
    fn what_cannot_be_an_answer_is_refused_in_one_line() {
        assert_eq!(refused(""), "create: printed no host");
        assert_eq!(refused("{}"), "create: printed no host");
        assert!(refused("garbage").contains("not the JSON object expected (line 1, column 1)"));
        assert!(refused(r#"{"host": 7}"#).contains("line 1, column 10"));
        assert!(
            refused(r#"{"host": "a", "allocatible": {}}"#).contains("unknown field `allocatible`")
        );
        assert!(refused(r#"{"host": "a/b"}"#).contains("without a slash"));
        assert!(refused(r#"{"host": "a", "provider_id": "x://b"}"#).contains("must end in \"/a\""));
        assert!(!refused(r#"{"host": ["token abcdef"]}"#).contains("abcdef"));
    }
}
