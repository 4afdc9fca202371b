//! Clusters: which shard serves which, as far as shards have said. A view: the operator's address decides, not this table.

use std::collections::BTreeMap;

use bigfleet_model::ClusterId;

use crate::{Refused, ShardId, limits::MOST_CLUSTERS};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clusters(BTreeMap<ClusterId, ShardId>);

impl Clusters {
    pub(crate) fn shard(&self, cluster: &ClusterId) -> Option<&ShardId> {
        self.0.get(cluster)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&ClusterId, &ShardId)> {
        self.0.iter()
    }

    /// First contact wins; says whether this was it.
    pub(crate) fn bind(&mut self, cluster: &ClusterId, shard: &ShardId) -> Result<bool, Refused> {
        if let Some(bound) = self.0.get(cluster) {
            if bound == shard {
                return Ok(false);
            }
            return Err(Refused::ClusterBound {
                cluster: cluster.clone(),
                bound: bound.clone(),
                requested: shard.clone(),
            });
        }
        if MOST_CLUSTERS <= self.0.len() {
            let (table, most) = ("clusters", MOST_CLUSTERS);
            return Err(Refused::Full { table, most });
        }
        self.0.insert(cluster.clone(), shard.clone());
        Ok(true)
    }

    /// Forgets what points at a shard.
    pub(crate) fn forget(&mut self, shard: &ShardId) {
        self.0.retain(|_, bound| bound != shard);
    }
}
