//! Sessions: the operators that are connected, one per cluster, and since when the others are not (shard.md §6).
//!
//! **Invariant:** a cluster has at most one session, a session speaks for one cluster, and a session that
//! was replaced or is over is known no longer.

use crate::event::{Features, SessionId};
use bigfleet_model::{ClusterId, Time};
use std::collections::BTreeMap;

/// A connected operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) features: Features,
    pub(crate) opened: Time,
    /// It was told of every machine.
    pub(crate) is_synced: bool,
    /// It has reported nodes: from then on their readiness counts (SH-17).
    pub(crate) reports_nodes: bool,
    /// Roll-ups accepted on it.
    pub(crate) accepted: u64,
}

/// The connected operators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    by_cluster: BTreeMap<ClusterId, Session>,
    clusters: BTreeMap<SessionId, ClusterId>,
    /// Since when a cluster that had or should have a session has none.
    gone_since: BTreeMap<ClusterId, Time>,
}

impl Sessions {
    /// An operator connected; returns the session it takes the place of.
    pub(crate) fn open(
        &mut self,
        id: SessionId,
        cluster: &ClusterId,
        features: Features,
        now: Time,
    ) -> Option<SessionId> {
        let session = Session {
            id,
            features,
            opened: now,
            is_synced: false,
            reports_nodes: false,
            accepted: 0,
        };
        let replaced = self.by_cluster.insert(cluster.clone(), session);
        let replaced = replaced.map(|replaced| replaced.id);
        if let Some(replaced) = replaced {
            self.clusters.remove(&replaced);
        }
        self.clusters.insert(id, cluster.clone());
        self.gone_since.remove(cluster);
        replaced
    }

    /// A session is over; returns its cluster. One that was replaced unregisters nobody.
    pub(crate) fn close(&mut self, session: SessionId) -> Option<ClusterId> {
        let cluster = self.clusters.remove(&session)?;
        self.by_cluster.remove(&cluster);
        Some(cluster)
    }

    /// A cluster has no operator from now on.
    pub(crate) fn note_absence(&mut self, cluster: &ClusterId, now: Time) {
        self.gone_since.insert(cluster.clone(), now);
    }

    /// A cluster without a session is nobody's concern any more.
    pub(crate) fn forget(&mut self, cluster: &ClusterId) {
        self.gone_since.remove(cluster);
    }

    /// Since when a cluster that had or should have a session has none.
    pub(crate) fn gone_since(&self, cluster: &ClusterId) -> Option<Time> {
        self.gone_since.get(cluster).copied()
    }

    /// Clusters that had or should have a session.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &ClusterId> {
        self.gone_since.keys()
    }

    pub(crate) fn of(&self, cluster: &ClusterId) -> Option<&Session> {
        self.by_cluster.get(cluster)
    }

    pub(crate) fn is_connected(&self, cluster: &ClusterId) -> bool {
        self.by_cluster.contains_key(cluster)
    }

    /// The cluster a session speaks for; `None` for one that is over.
    pub(crate) fn cluster(&self, session: SessionId) -> Option<&ClusterId> {
        self.clusters.get(&session)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_cluster.len()
    }

    pub(crate) fn connected(&self) -> impl Iterator<Item = (&ClusterId, &Session)> {
        self.by_cluster.iter()
    }

    /// A cluster's operator is told of every machine, from now on of every change.
    pub(crate) fn sync(&mut self, cluster: &ClusterId) -> Option<Session> {
        let session = self.by_cluster.get_mut(cluster)?;
        session.is_synced = true;
        Some(*session)
    }

    /// A cluster's operator reported nodes.
    pub(crate) fn note_node_report(&mut self, cluster: &ClusterId) {
        if let Some(session) = self.by_cluster.get_mut(cluster) {
            session.reports_nodes = session.features.node_report;
        }
    }

    /// A roll-up that came on a cluster's session was accepted.
    pub(crate) fn note_accepted(&mut self, cluster: &ClusterId) {
        if let Some(session) = self.by_cluster.get_mut(cluster) {
            session.accepted += 1;
        }
    }

    /// How many roll-ups were accepted on a session; zero for one that is over.
    pub(crate) fn accepted(&self, session: SessionId) -> u64 {
        let cluster = self.clusters.get(&session);
        let session = cluster.and_then(|cluster| self.by_cluster.get(cluster));
        session.map_or(0, |session| session.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_session_replaces_the_older_which_then_is_nobody() {
        let a = ClusterId::new("a").unwrap();
        let (first, second) = (SessionId(1), SessionId(2));
        let features = Features {
            node_report: true,
            ..Features::default()
        };
        let mut sessions = Sessions::default();
        sessions.note_absence(&a, Time::from_nanos(3));
        assert_eq!(sessions.gone_since(&a), Some(Time::from_nanos(3)));
        assert_eq!(sessions.absent().count(), 1);
        assert_eq!(sessions.open(first, &a, features, Time::ZERO), None);
        assert_eq!(sessions.gone_since(&a), None);
        sessions.note_accepted(&a);
        assert_eq!(
            (sessions.accepted(first), sessions.accepted(second)),
            (1, 0)
        );
        assert_eq!(sessions.open(second, &a, features, Time::ZERO), Some(first));
        assert_eq!(sessions.cluster(first), None);
        assert_eq!(sessions.close(first), None, "unregisters nobody");
        assert_eq!((sessions.len(), sessions.accepted(second)), (1, 0));
        assert!(!sessions.of(&a).unwrap().reports_nodes);
        sessions.note_node_report(&a);
        assert!(sessions.of(&a).unwrap().reports_nodes);
        assert!(!sessions.of(&a).unwrap().is_synced);
        assert!(sessions.sync(&a).unwrap().is_synced && sessions.of(&a).unwrap().is_synced);
        assert_eq!(sessions.close(second), Some(a.clone()));
        assert!(!sessions.is_connected(&a) && sessions.len() == 0);
    }
}
