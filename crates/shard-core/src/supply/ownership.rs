//! Ownership: which of the machines a provider shows are this shard's (SH-13).
//!
//! Two shards on one provider must not adopt each other's machines. A bound machine says whose it is;
//! an unbound one is ours by the owned set or by a domain of the settings. This is the whole of it for a shard that has no
//! coordinator; what one was told is in `holdings`. With neither configured everything is ours,
//! until another shard's mark is seen: in two Lists, and confirmed by a Get. One List may err, and from then
//! on nothing new would be taken in.

use crate::{event::Sighting, record::Record};
use bigfleet_model::{ClusterId, Machine, MachineId, State};
use std::collections::BTreeSet;

/// Metadata that names the shard a machine is bound by.
pub(crate) const ASSIGNED_SHARD: &str = "bigfleet.lucy.sh/assigned-shard";

/// Whose a machine is that was never seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This shard's.
    Us,
    /// This shard's, and not taken in before another shard's last call can have arrived (CO-27).
    NotYet,
    /// Not this shard's.
    SomebodyElse,
    /// It carries another shard's mark, as it did before, and no other was seen to: to be read by name.
    ForeignAgain,
}

/// What this shard owns.
#[derive(Clone, Debug, Default)]
pub(super) struct Ownership {
    shard: String,
    /// Labels (key, value) of machines that are ours; empty for no such limit.
    own_domains: Vec<(String, String)>,
    owned: BTreeSet<MachineId>,
    /// Clusters an earlier process has served.
    served: BTreeSet<ClusterId>,
    /// Another shard's mark was seen on a machine.
    is_foreign_seen: bool,
    /// A machine that was shown with another shard's mark, which is not confirmed; and whether the List under
    /// way has shown it so. While there is one nothing new is taken in, as if it were.
    suspect: Option<(MachineId, bool)>,
    /// Failed machines an admin has forgotten: not taken in again while they are Failed.
    retired: BTreeSet<MachineId>,
}

impl Ownership {
    pub(super) fn new(shard: &str, own_domains: &[(String, String)]) -> Self {
        Self {
            shard: shard.to_owned(),
            own_domains: own_domains.to_vec(),
            ..Self::default()
        }
    }

    /// Whether a machine carries another shard's mark.
    pub(super) fn is_foreign(&self, sighting: &Sighting) -> bool {
        mark(sighting).is_some_and(|shard| shard != self.shard)
    }

    /// Whether a machine carries this shard's mark.
    pub(super) fn is_marked(&self, sighting: &Sighting) -> bool {
        mark(sighting).is_some_and(|shard| shard == self.shard)
    }

    /// The shard a machine says it is bound by.
    pub(super) fn mark<'s>(&self, sighting: &'s Sighting) -> Option<&'s str> {
        mark(sighting)
    }

    /// Whether an earlier process has served a cluster.
    pub(super) fn is_served(&self, cluster: &ClusterId) -> bool {
        self.served.contains(cluster)
    }

    pub(super) fn is_owned(&self, machine: &MachineId) -> bool {
        self.owned.contains(machine)
    }

    /// Whether this shard did not have every unbound machine of its provider so far.
    pub(super) fn is_limited(&self) -> bool {
        self.is_foreign_seen || !self.owned.is_empty() || !self.own_domains.is_empty()
    }

    /// SH-13. `is_ready` says whether a cluster has been heard.
    pub(super) fn owner(
        &mut self,
        sighting: &Sighting,
        is_ready: impl Fn(&ClusterId) -> bool,
    ) -> Owner {
        if let Some(shard) = mark(sighting) {
            if shard == self.shard {
                return Owner::Us;
            }
            return self.suspect(sighting.machine.id());
        }
        if self.is_ours_unmarked(&sighting.machine, is_ready) {
            Owner::Us
        } else {
            Owner::SomebodyElse
        }
    }

    /// A List shows a machine with another shard's mark.
    fn suspect(&mut self, id: &MachineId) -> Owner {
        if self.is_foreign_seen {
            return Owner::SomebodyElse;
        }
        match &mut self.suspect {
            None => {
                self.suspect = Some((id.clone(), true));
                Owner::SomebodyElse
            }
            Some((known, is_shown)) if known == id => {
                *is_shown = true;
                Owner::ForeignAgain
            }
            Some(_) => Owner::SomebodyElse,
        }
    }

    pub(super) fn is_suspect(&self, id: &MachineId) -> bool {
        self.suspect.as_ref().is_some_and(|(known, _)| known == id)
    }

    /// What a Get says of the suspect; says whether another shard's mark is seen for the first time.
    pub(super) fn judge_suspect(&mut self, is_foreign: bool) -> bool {
        self.suspect = None;
        is_foreign && !std::mem::replace(&mut self.is_foreign_seen, true)
    }

    /// A full List is over: a suspect it did not show is none.
    pub(super) fn forget_suspect_not_shown(&mut self) {
        let shown = self.suspect.take().filter(|(_, is_shown)| *is_shown);
        self.suspect = shown.map(|(id, _)| (id, false));
    }

    fn is_ours_unmarked(&self, machine: &Machine, is_ready: impl Fn(&ClusterId) -> bool) -> bool {
        let is_alone = !self.is_foreign_seen && self.suspect.is_none();
        if let Some(cluster) = machine.cluster() {
            return self.served.contains(cluster) || is_ready(cluster) || is_alone;
        }
        if self.own_domains.is_empty() && self.owned.is_empty() {
            return is_alone;
        }
        let is_inside = |key: &str, value: &str| machine.shape().attribute(key) == Some(value);
        let mut own = self.own_domains.iter();
        self.owned.contains(machine.id()) || own.any(|(key, value)| is_inside(key, value))
    }

    /// A machine came into the owned set, or left it.
    pub(super) fn set_owned(&mut self, machine: MachineId, is_owned: bool) {
        if is_owned {
            self.owned.insert(machine);
        } else {
            self.owned.remove(&machine);
        }
    }

    /// An admin forgets a machine, or it is something else again; says whether that changed anything.
    pub(super) fn set_retired(&mut self, machine: &MachineId, is_retired: bool) -> bool {
        if is_retired {
            self.retired.insert(machine.clone())
        } else {
            self.retired.remove(machine)
        }
    }

    /// Whether a machine was retired and is as it was then. One that is something else again is new, and
    /// no longer retired: the second value says that it was.
    pub(super) fn judge_retired(&mut self, machine: &Machine) -> (bool, bool) {
        if machine.state() == State::Failed {
            return (self.retired.contains(machine.id()), false);
        }
        (false, self.set_retired(machine.id(), false))
    }

    /// An earlier process has served this cluster.
    pub(super) fn note_served(&mut self, cluster: ClusterId) {
        self.served.insert(cluster);
    }

    pub(super) fn forget_served(&mut self, cluster: &ClusterId) {
        self.served.remove(cluster);
    }

    /// An earlier process has seen another shard's mark.
    pub(super) fn note_foreign(&mut self) {
        self.is_foreign_seen = true;
    }

    /// What of this outlives the process: the mark that was seen and the owned set.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let foreign = self.is_foreign_seen.then_some(Record::ForeignSeen);
        let owned = self.owned.iter().map(|machine| Record::Owned {
            machine: machine.clone(),
            owned: true,
        });
        foreign.into_iter().chain(owned)
    }

    /// The records of retired machines.
    pub(super) fn retired_records(&self) -> impl Iterator<Item = Record> {
        self.retired.iter().map(|machine| Record::Retired {
            machine: machine.clone(),
            retired: true,
        })
    }
}

/// The shard a machine says it is bound by.
fn mark(sighting: &Sighting) -> Option<&str> {
    let shard = sighting.echoed.get(ASSIGNED_SHARD)?;
    Some(shard).filter(|shard| !shard.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;
    use std::collections::BTreeMap;

    /// A machine as this fleet line has it, with the mark of a shard if it is given one.
    fn seen(line: &str, mark: Option<&str>) -> Sighting {
        let mut machines = fleet(line).machines.into_values();
        let mut sighting = Sighting::from(machines.next().unwrap().machine);
        let mark = mark.map(|mark| (ASSIGNED_SHARD.to_owned(), mark.to_owned()));
        sighting.echoed = (&BTreeMap::from_iter(mark)).into();
        sighting
    }

    /// SH-13, the whole table: until another shard's mark is seen, and after.
    #[test]
    fn whose_a_machine_is() {
        let a = ClusterId::new("a").unwrap();
        let heard = |cluster: &ClusterId| cluster.as_str() == "heard";
        let us = seen("m1 Configured a cpu=4 $1", Some("s"));
        let empty = seen("m1 Configured a cpu=4 $1", Some(""));
        let them = seen("m1 Configured a cpu=4 $1", Some("t"));
        let bound = seen("m1 Configured a cpu=4 $1", None);
        let bound_heard = seen("m1 Configured heard cpu=4 $1", None);
        let idle = seen("m1 Idle cpu=4 $1 zone=z", None);
        let mut own = Ownership::new("s", &[]);
        let owner = |own: &mut Ownership, one: &Sighting| own.owner(one, heard);
        for one in [&us, &empty, &bound, &bound_heard, &idle] {
            assert_eq!(owner(&mut own, one), Owner::Us);
            assert!(!own.is_foreign(one));
        }
        assert_eq!(own.records().count(), 0);
        assert!(own.is_foreign(&them));
        assert_eq!(owner(&mut own, &them), Owner::SomebodyElse);
        assert!(own.is_suspect(them.machine.id()));
        assert_eq!(
            owner(&mut own, &idle),
            Owner::SomebodyElse,
            "while in doubt"
        );
        own.forget_suspect_not_shown();
        own.forget_suspect_not_shown();
        assert_eq!(owner(&mut own, &idle), Owner::Us, "one List erred");
        assert_eq!(owner(&mut own, &them), Owner::SomebodyElse);
        own.forget_suspect_not_shown();
        assert_eq!(owner(&mut own, &them), Owner::ForeignAgain);
        assert!(!own.judge_suspect(false), "a Get knows better");
        assert_eq!(own.records().count(), 0);
        assert_eq!(owner(&mut own, &them), Owner::SomebodyElse);
        assert!(own.judge_suspect(true) && !own.judge_suspect(true));
        assert_eq!(owner(&mut own, &them), Owner::SomebodyElse);
        assert_eq!(own.records().collect::<Vec<_>>(), [Record::ForeignSeen]);
        assert_eq!(owner(&mut own, &us), Owner::Us);
        assert_eq!(owner(&mut own, &bound_heard), Owner::Us);
        assert_eq!(owner(&mut own, &bound), Owner::SomebodyElse);
        assert_eq!(owner(&mut own, &idle), Owner::SomebodyElse);
        own.note_served(a);
        assert_eq!(owner(&mut own, &bound), Owner::Us, "served before");
        own.set_owned(idle.machine.id().clone(), true);
        assert_eq!(owner(&mut own, &idle), Owner::Us, "in the owned set");
        own.set_owned(idle.machine.id().clone(), false);
        assert_eq!(owner(&mut own, &idle), Owner::SomebodyElse);
    }

    #[test]
    fn a_retired_machine_is_new_once_it_is_something_else() {
        let failed = seen("m1 Failed cpu=4 $1", None).machine;
        let idle = seen("m1 Idle cpu=4 $1", None).machine;
        let mut own = Ownership::new("s", &[]);
        assert_eq!(own.judge_retired(&failed), (false, false));
        assert!(own.set_retired(failed.id(), true));
        assert_eq!(own.judge_retired(&failed), (true, false));
        assert_eq!(own.retired_records().count(), 1);
        assert_eq!(own.judge_retired(&idle), (false, true));
        assert_eq!(own.judge_retired(&failed), (false, false));
    }
}
