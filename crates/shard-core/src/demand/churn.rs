//! Churn of gangs: which machines they win and lose, and when one moves house (shard.md §8).
//!
//! A gang is placed as a whole, so at static demand nothing of it moves: anything but zero here, once
//! a fleet has settled, is worth an alert. Counted where commitments change, which is one place.

use super::Demand;
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
#[derive(Clone, Debug, Default)]
pub(super) struct Gangs(BTreeMap<NeedKey, GangChurn>);

/// What a change of one machine's commitment means for gangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Churn {
    /// A machine left a gang.
    pub(crate) left: bool,
    /// A machine joined one.
    pub(crate) joined: bool,
    /// It joined in another domain than the machine before it.
    pub(crate) flipped: bool,
}

fn is_gang(need: &NeedKey) -> bool {
    let group = need.group.as_str();
    !group.is_empty() && !group.starts_with("fold:")
}

impl Gangs {
    /// Rows that are gone take what was counted of them along, so that the table stays as small as the
    /// demand.
    pub(super) fn forget(&mut self, gang: &NeedKey) {
        self.0.remove(gang);
    }

    fn leave(&mut self, gang: &NeedKey) {
        // One that is demanded no longer was forgotten with its row.
        if let Some(gang) = self.0.get_mut(gang) {
            gang.left += 1;
        }
    }

    /// Says whether it joins in another domain than the machine before it.
    fn join(&mut self, gang: NeedKey, domain: String) -> bool {
        let gang = self.0.entry(gang).or_default();
        gang.joined += 1;
        let is_flip = 1 < gang.joined && gang.domain != domain;
        gang.flips += u64::from(is_flip);
        gang.domain = domain;
        is_flip
    }
}

impl Demand {
    /// What each gang went through, by identity.
    pub(crate) fn gang_churn(&self) -> &BTreeMap<NeedKey, GangChurn> {
        &self.gangs.0
    }

    /// The commitment of a machine of this shape went from one Need to another, or to or from none.
    pub(crate) fn count_churn(
        &mut self,
        before: Option<NeedKey>,
        after: Option<NeedKey>,
        shape: &Shape,
    ) -> Churn {
        let left = before.filter(is_gang);
        let joined = after.filter(is_gang);
        let mut churn = Churn {
            left: left.is_some(),
            joined: joined.is_some(),
            flipped: false,
        };
        if let Some(left) = left {
            self.gangs.leave(&left);
        }
        if let Some(joined) = joined {
            let key = self.same_key(&joined);
            let domain = key.and_then(|key| shape.attribute(&key));
            churn.flipped = self
                .gangs
                .join(joined, domain.unwrap_or_default().to_owned());
        }
        churn
    }
}
