//! Names that many records have in common: one copy of each, however many machines there are.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use bigfleet_model::{ClusterId, Fingerprint, Group};

use super::cluster_id;

/// Texts that many records name, as one copy each.
#[derive(Debug, Default)]
pub(in super::super) struct Names {
    clusters: BTreeSet<ClusterId>,
    fingerprints: BTreeSet<Fingerprint>,
    groups: BTreeSet<Group>,
}

impl Names {
    pub(super) fn cluster(&mut self, text: &str) -> Result<ClusterId, String> {
        if let Some(known) = self.clusters.get(text) {
            return Ok(known.clone());
        }
        let cluster = cluster_id(text)?;
        self.clusters.insert(cluster.clone());
        Ok(cluster)
    }

    pub(super) fn of_option(&mut self, text: &Option<String>) -> Result<Option<ClusterId>, String> {
        text.as_deref().map(|text| self.cluster(text)).transpose()
    }

    pub(super) fn fingerprint(&mut self, text: &str) -> Fingerprint {
        shared(&mut self.fingerprints, text, Fingerprint::new)
    }

    pub(super) fn group(&mut self, text: &str) -> Group {
        shared(&mut self.groups, text, Group::new)
    }
}

fn shared<T: Ord + Clone + Borrow<str>>(
    known: &mut BTreeSet<T>,
    text: &str,
    new: impl FnOnce(&str) -> T,
) -> T {
    if let Some(known) = known.get(text) {
        return known.clone();
    }
    let one = new(text);
    known.insert(one.clone());
    one
}
