//! Pause: what must not leave, by whose word, until when (SH-16).
//!
//! Two layers. What configuration pauses only configuration lifts; an admin's pause may expire and
//! an admin may lift it. A scope is paused if either layer says so.

use crate::event::PausedBy;
use bigfleet_model::{ClusterId, Time};
use std::collections::BTreeMap;

/// What a pause covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything.
    All,
    /// What concerns one cluster's machines.
    Cluster(ClusterId),
    /// Every call to this provider, and what leads to one.
    Provider(String),
}

/// One pause in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// What it covers.
    pub scope: Scope,
    /// Who paused.
    pub by: PausedBy,
    /// Since when.
    pub since: Time,
    /// Until when; `None` until it is lifted.
    pub until: Option<Time>,
}

/// The pauses in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses(BTreeMap<(Scope, PausedBy), Pause>);

impl Pauses {
    /// Pauses, or changes until when; the pause is as old as it was.
    pub(crate) fn pause(&mut self, by: PausedBy, scope: Scope, now: Time, until: Option<Time>) {
        let pause = Pause {
            scope: scope.clone(),
            by,
            since: now,
            until,
        };
        self.0.entry((scope, by)).or_insert(pause).until = until;
    }

    /// Oldest first.
    pub(crate) fn in_force(&self) -> Vec<Pause> {
        let mut pauses: Vec<Pause> = self.0.values().cloned().collect();
        pauses.sort_by(|one, other| one.since.seconds().total_cmp(&other.since.seconds()));
        pauses
    }

    pub(crate) fn resume(&mut self, by: PausedBy, scope: Scope) {
        self.0.remove(&(scope, by));
    }

    /// Drops what has run out.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let before = self.0.len();
        self.0
            .retain(|_, pause| pause.until.is_none_or(|until| now < until));
        self.0.len() < before
    }

    /// The next moment one runs out.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.0.values().filter_map(|pause| pause.until).min()
    }

    /// Whether everything through this provider is paused.
    pub(crate) fn all(&self, provider: &str) -> bool {
        // Asked for every action and every call, and mostly nothing is paused.
        !self.is_empty()
            && (self.has(&Scope::All) || self.has(&Scope::Provider(provider.to_owned())))
    }

    /// Whether one cluster is paused by name.
    pub(crate) fn cluster(&self, cluster: &ClusterId) -> bool {
        !self.is_empty() && self.has(&Scope::Cluster(cluster.clone()))
    }

    fn has(&self, scope: &Scope) -> bool {
        [PausedBy::Configuration, PausedBy::Admin]
            .into_iter()
            .any(|by| self.0.contains_key(&(scope.clone(), by)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_lifts_only_what_an_admin_paused() {
        let mut pauses = Pauses::default();
        pauses.pause(PausedBy::Configuration, Scope::All, Time::ZERO, None);
        let until = Time::from_seconds(9.0);
        pauses.pause(PausedBy::Admin, Scope::All, Time::ZERO, until);
        pauses.resume(PausedBy::Admin, Scope::All);
        assert!(pauses.all("p"));
        pauses.resume(PausedBy::Configuration, Scope::All);
        assert!(pauses.is_empty());
    }

    #[test]
    fn an_expiry_lifts_by_itself() {
        let mut pauses = Pauses::default();
        let until = Time::from_seconds(9.0);
        let scope = Scope::Provider("p".to_owned());
        pauses.pause(PausedBy::Admin, scope, Time::ZERO, until);
        assert_eq!(pauses.next_expiry(), until);
        assert!(pauses.all("p") && !pauses.all("q"));
        assert!(!pauses.expire(Time::from_seconds(8.9).unwrap()));
        assert!(pauses.expire(Time::from_seconds(9.0).unwrap()));
        assert!(!pauses.all("p"));
    }
}
