//! Volumes: the zones a Pod's volumes tie it to (OP-50).
//!
//! ```text
//! Pod ─▶ claims ─▶ volumes they are bound to ─▶ required zones
//! ```

use crate::read::Metadata;
use crate::read::pod::NodeTerms;
use bigfleet_k8s::{Followed, Place};
use bigfleet_model::ZONE_KEY;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Claim {
    spec: ClaimSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSpec {
    volume_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Volume {
    metadata: Metadata,
    spec: VolumeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSpec {
    node_affinity: Affinity,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Affinity {
    required: NodeTerms,
}

impl Volume {
    fn zones(&self) -> BTreeSet<String> {
        let terms = self.spec.node_affinity.required.node_selector_terms.iter();
        let rules = terms.flat_map(|term| &term.match_expressions);
        let zones = rules.filter(|rule| rule.key == ZONE_KEY && rule.operator == "In");
        let zones = zones.flat_map(|rule| rule.values.iter().cloned());
        let labelled = self.metadata.label(ZONE_KEY).map(str::to_owned);
        zones.chain(labelled).collect()
    }
}

/// Claims and the volumes they are bound to.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    volume_of: BTreeMap<Place, String>,
    zones_of: BTreeMap<String, BTreeSet<String>>,
    are_claims_whole: bool,
    are_volumes_whole: bool,
}

impl Volumes {
    pub(super) fn is_whole(&self) -> bool {
        self.are_claims_whole && self.are_volumes_whole
    }

    /// Whether that changes something.
    pub(super) fn claims(&mut self, told: Followed<Claim>) -> bool {
        match told {
            Followed::Seen(seen) => {
                let Ok(claim) = seen.object else { return false };
                let bound = claim.spec.volume_name;
                self.volume_of.insert(seen.place, bound.clone()) != Some(bound)
            }
            Followed::Gone(place, _) => self.volume_of.remove(&place).is_some(),
            Followed::Whole(_) => !std::mem::replace(&mut self.are_claims_whole, true),
            Followed::Began | Followed::Fresh(_) | Followed::Broken(_) => false,
        }
    }

    /// Whether that changes something.
    pub(super) fn volumes(&mut self, told: Followed<Volume>) -> bool {
        match told {
            Followed::Seen(seen) => {
                let Ok(volume) = seen.object else {
                    return false;
                };
                let zones = volume.zones();
                self.zones_of.insert(seen.place.name, zones.clone()) != Some(zones)
            }
            Followed::Gone(place, _) => self.zones_of.remove(&place.name).is_some(),
            Followed::Whole(_) => !std::mem::replace(&mut self.are_volumes_whole, true),
            Followed::Began | Followed::Fresh(_) | Followed::Broken(_) => false,
        }
    }

    /// The zones in which all of these claims can be had; none if they do not say.
    pub(super) fn zones<'a>(
        &self,
        namespace: &str,
        claims: impl Iterator<Item = &'a str>,
    ) -> Vec<String> {
        let mut shared: Option<BTreeSet<String>> = None;
        for claim in claims {
            let place = Place {
                namespace: namespace.to_owned(),
                name: claim.to_owned(),
            };
            let volume = self.volume_of.get(&place);
            let Some(zones) = volume.and_then(|volume| self.zones_of.get(volume)) else {
                continue;
            };
            if zones.is_empty() {
                continue;
            }
            shared = Some(match shared {
                None => zones.clone(),
                Some(before) => before.intersection(zones).cloned().collect(),
            });
        }
        shared.unwrap_or_default().into_iter().collect()
    }
}
