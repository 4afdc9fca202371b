//! Pause: what must not leave, by whose word, until when (SH-16).
//!
//! Two layers. What configuration pauses only configuration lifts; an admin's pause may expire and
//! an admin may lift it. A scope is paused if either layer says so. Configuration is read again at every
//! start; what an admin paused is on record, and is as long as it was asked for, restarts or not.

use crate::{event::PausedBy, record::Record};
use bigfleet_model::{ClusterId, Time, shown};
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

/// Who asked for a pause and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseNote {
    /// The person or the tool that asked.
    pub requested_by: String,
    /// Their words; for people.
    pub reason: String,
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
    /// Who asked for it and why.
    pub note: PauseNote,
    /// Decisions of this process it held back.
    pub withheld: u64,
}

impl Pause {
    /// What is paused, by whom and why.
    pub fn words(&self) -> String {
        let what = match &self.scope {
            Scope::All => "everything is paused".to_owned(),
            Scope::Cluster(cluster) => format!("cluster {cluster} is paused"),
            Scope::Provider(provider) => format!("provider {} is paused", shown(provider)),
        };
        let by = match (self.by, self.note.requested_by.as_str()) {
            (PausedBy::Configuration, _) => " by configuration".to_owned(),
            (PausedBy::Admin, "") => " by an admin".to_owned(),
            (PausedBy::Admin, who) => format!(" by {}", shown(who)),
        };
        match self.note.reason.as_str() {
            "" => what + &by,
            reason => format!("{what}{by}: {}", shown(reason)),
        }
    }
}

/// An admin's pause, as it is remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptPause {
    /// Since when.
    pub since: Time,
    /// Until when; `None` until it is lifted.
    pub until: Option<Time>,
    /// Who asked for it and why.
    pub note: PauseNote,
}

/// The pauses in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses(BTreeMap<(Scope, PausedBy), Pause>);

impl Pauses {
    /// Pauses, or changes until when and why; the pause is as old as it was.
    pub(crate) fn pause(&mut self, by: PausedBy, scope: Scope, kept: KeptPause) {
        let KeptPause { since, until, note } = kept;
        let key = (scope.clone(), by);
        let pause = self.0.entry(key).or_insert_with(|| Pause {
            scope,
            by,
            since,
            until,
            note: PauseNote::default(),
            withheld: 0,
        });
        pause.until = until;
        pause.note = note;
    }

    /// Everything to remember of an admin's pause of this scope, or that there is none.
    pub(crate) fn record(&self, scope: &Scope) -> Record {
        let pause = self.0.get(&(scope.clone(), PausedBy::Admin));
        let kept = pause.map(|pause| KeptPause {
            since: pause.since,
            until: pause.until,
            note: pause.note.clone(),
        });
        Record::Paused {
            scope: scope.clone(),
            kept,
        }
    }

    /// The records of all pauses of admins.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let scopes = self.0.keys().filter(|(_, by)| *by == PausedBy::Admin);
        scopes.map(|(scope, _)| self.record(scope))
    }

    /// Counts a decision that these pauses held back.
    pub(crate) fn withhold<'c>(
        &mut self,
        provider: &str,
        clusters: impl Iterator<Item = &'c ClusterId> + Clone,
    ) {
        for pause in self.0.values_mut() {
            let covers = match &pause.scope {
                Scope::All => true,
                Scope::Provider(name) => name == provider,
                Scope::Cluster(paused) => clusters.clone().any(|cluster| cluster == paused),
            };
            pause.withheld += u64::from(covers);
        }
    }

    /// Oldest first.
    pub(crate) fn in_force(&self) -> Vec<Pause> {
        let mut pauses: Vec<Pause> = self.0.values().cloned().collect();
        pauses.sort_by_key(|pause| pause.since);
        pauses
    }

    pub(crate) fn resume(&mut self, by: PausedBy, scope: Scope) {
        self.0.remove(&(scope, by));
    }

    /// Drops what has run out; returns which.
    pub(crate) fn expire(&mut self, now: Time) -> Vec<(Scope, PausedBy)> {
        let over = |pause: &Pause| pause.until.is_some_and(|until| until <= now);
        let over = self.0.iter().filter(|(_, pause)| over(pause));
        let over: Vec<_> = over.map(|(key, _)| key.clone()).collect();
        self.0.retain(|key, _| !over.contains(key));
        over
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

    fn from_the_start(until: Option<Time>) -> KeptPause {
        KeptPause {
            since: Time::ZERO,
            until,
            note: PauseNote::default(),
        }
    }

    #[test]
    fn an_admin_lifts_only_what_an_admin_paused() {
        let mut pauses = Pauses::default();
        pauses.pause(PausedBy::Configuration, Scope::All, from_the_start(None));
        let until = Time::from_seconds(9.0);
        pauses.pause(PausedBy::Admin, Scope::All, from_the_start(until));
        pauses.resume(PausedBy::Admin, Scope::All);
        assert!(pauses.all("p"));
        pauses.resume(PausedBy::Configuration, Scope::All);
        assert!(pauses.is_empty());
    }

    #[test]
    fn what_admins_paused_is_on_record_and_what_configuration_did_is_not() {
        let mut pauses = Pauses::default();
        let provider = Scope::Provider("p".to_owned());
        pauses.pause(PausedBy::Configuration, provider, from_the_start(None));
        let kept = from_the_start(Time::from_seconds(9.0));
        pauses.pause(PausedBy::Admin, Scope::All, kept.clone());
        let record = Record::Paused {
            scope: Scope::All,
            kept: Some(kept),
        };
        assert_eq!(pauses.records().collect::<Vec<_>>(), [record]);
    }

    #[test]
    fn an_expiry_lifts_by_itself() {
        let mut pauses = Pauses::default();
        let until = Time::from_seconds(9.0);
        let scope = Scope::Provider("p".to_owned());
        pauses.pause(PausedBy::Admin, scope.clone(), from_the_start(until));
        assert_eq!(pauses.next_expiry(), until);
        assert!(pauses.all("p") && !pauses.all("q"));
        assert_eq!(pauses.expire(Time::from_seconds(8.9).unwrap()), []);
        let over = pauses.expire(Time::from_seconds(9.0).unwrap());
        assert_eq!(over, [(scope, PausedBy::Admin)]);
        assert!(!pauses.all("p"));
    }

    #[test]
    fn what_is_held_back_counts_for_every_pause_that_covers_it() {
        let cluster = |id| ClusterId::new(id).unwrap();
        let (a, b) = (cluster("a"), cluster("b"));
        let mut pauses = Pauses::default();
        for scope in [
            Scope::All,
            Scope::Cluster(a.clone()),
            Scope::Cluster(b.clone()),
            Scope::Provider("q".to_owned()),
        ] {
            pauses.pause(PausedBy::Admin, scope, from_the_start(None));
        }
        pauses.withhold("p", [&a].into_iter());
        pauses.withhold("q", [&a, &b].into_iter());
        let counted: Vec<u64> = pauses.0.values().map(|pause| pause.withheld).collect();
        assert_eq!(counted, [2, 2, 1, 1]);
    }
}
