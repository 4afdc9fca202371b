//! What the processes inside of a cluster share: how they reach it, who of several acts, which Nodes are none of ours.

use bigfleet_k8s::Cluster;
use bigfleet_model::{Operator, Requirement};
use bigfleet_operator::Leading;
use clap::{ArgAction, Args as ClapArgs};
use std::path::PathBuf;

/// How to reach the cluster, and whether others like this one may be there.
#[derive(Debug, ClapArgs)]
pub(crate) struct ClusterFlags {
    /// How to reach the cluster's API server: a kubeconfig [default: $KUBECONFIG, ~/.kube/config, the Pod's own account]
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The namespace of its lease and records [default: the Pod's own, or the kubeconfig's]
    #[arg(long)]
    namespace: Option<String>,
    /// Act only while holding the lease, so that two of this kind do no harm
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", action = ArgAction::Set)]
    leader_elect: bool,
}

impl ClusterFlags {
    /// The cluster, and who leads.
    pub(crate) async fn connect(&self, lease: &str) -> Result<(Cluster, Leading), String> {
        let cluster = Cluster::connect(self.kubeconfig.as_deref(), None);
        let cluster = cluster.map_err(|why| why.to_string())?;
        let named = self.namespace.clone().filter(|name| !name.is_empty());
        let leading = Leading {
            elect: self.leader_elect,
            namespace: named.unwrap_or_else(|| cluster.namespace().to_owned()),
            lease: lease.to_owned(),
            holder: holder(),
        };
        Ok((cluster, leading))
    }
}

/// A name that no other process has: the host, this process, and when it began.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let began = since.map_or(0, |since| since.as_nanos());
    format!("{}_{}_{began:x}", host.trim(), std::process::id())
}

/// A label selector as kubectl takes it: `key`, `!key`, `key=value` and `key!=value`, separated by commas; all hold.
pub(crate) fn selector(text: &str) -> Result<Vec<Requirement>, String> {
    let mut rules = Vec::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
            (key, Operator::NotIn, vec![value.to_owned()])
        } else if let Some((key, value)) = part.split_once('=') {
            (
                key,
                Operator::In,
                vec![value.trim_start_matches('=').to_owned()],
            )
        } else if let Some(key) = part.strip_prefix('!') {
            (key, Operator::DoesNotExist, Vec::new())
        } else {
            (part, Operator::Exists, Vec::new())
        };
        let rule = Requirement::new(key.trim().to_owned(), operator, values);
        rules.push(rule.ok_or_else(|| format!("\"{part}\" is no label selector like key=value"))?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_does() {
        let read = selector("a, !b,c=d,e!=f").unwrap();
        let words: Vec<_> = read
            .iter()
            .map(|rule| (rule.key(), rule.operator().word()))
            .collect();
        assert_eq!(
            words,
            [
                ("a", "Exists"),
                ("b", "DoesNotExist"),
                ("c", "In"),
                ("e", "NotIn")
            ]
        );
        assert_eq!(selector("").unwrap(), []);
        assert!(selector("=x").is_err());
    }
}
