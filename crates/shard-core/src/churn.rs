//! Churn of gangs: which machines they win and lose, and when one moves house (shard.md §8).
//!
//! A gang is placed as a whole, so at static demand nothing of it moves: anything but zero here, once
//! a fleet has settled, is worth an alert. Counted where commitments change, which is one place.

use crate::ShardCore;
use bigfleet_model::{NeedKey, Shape};
use std::collections::BTreeMap;

/// What one gang went through since it was first served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangChurn {
    /// The value of its Same key where its last machine is.
    pub domain: String,
    /// Machines committed to it.
    pub joined: u64,
    /// Machines that left it.
    pub left: u64,
    /// How often a machine joined in another domain than the one before.
    pub flips: u64,
}

/// Gangs that are demanded and have been served.
pub(crate) type Gangs = BTreeMap<NeedKey, GangChurn>;

fn is_gang(need: &NeedKey) -> bool {
    let group = need.group.as_str();
    !group.is_empty() && !group.starts_with("fold:")
}

impl ShardCore {
    /// What each gang went through, by identity.
    pub fn gang_churn(&self) -> &BTreeMap<NeedKey, GangChurn> {
        &self.gangs
    }

    /// The commitment of a machine of this shape went from one Need to another, or to or from none.
    pub(crate) fn count_churn(
        &mut self,
        before: Option<NeedKey>,
        after: Option<NeedKey>,
        shape: &Shape,
    ) {
        if let Some(left) = before.filter(is_gang) {
            self.counters.gang_left += 1;
            // One that is demanded no longer was forgotten with its row.
            if let Some(gang) = self.gangs.get_mut(&left) {
                gang.left += 1;
            }
        }
        let Some(joined) = after.filter(is_gang) else {
            return;
        };
        let key = self.demand.same_key(&joined);
        let domain = key.and_then(|key| shape.attribute(&key));
        let domain = domain.unwrap_or_default().to_owned();
        self.counters.gang_joined += 1;
        let gang = self.gangs.entry(joined).or_default();
        gang.joined += 1;
        if 1 < gang.joined && gang.domain != domain {
            gang.flips += 1;
            self.counters.gang_flips += 1;
        }
        gang.domain = domain;
    }

    /// Rows that are gone take what was counted of them along, so that the table stays as small as
    /// the demand.
    pub(crate) fn forget_gangs(&mut self, gone: &[bigfleet_model::Need]) {
        for need in gone {
            self.gangs.remove(&need.key());
        }
    }
}
