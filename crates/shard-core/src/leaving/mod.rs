//! Leaving: which machines are to leave, by whose word, and how far each has come (SH-20).
//!
//! ```text
//! an admin's mark, durable ────┐
//!                              ├─▶ the stronger word ─▶ supply ─▶ engine (RF-21)
//! a provider's notice, heard ──┘
//! what was decided ─▶ no replacement ─▶ replacement coming ─▶ draining ─▶ out
//! ```
//!
//! Two sources per machine, and one does not lift the other. The part knows words and moments and no machine:
//! whoever asks says what the machine is doing.
//!
//! **Invariant:** a machine's word is a function of its mark, its notice and what the provider's notices add
//! up to in its cluster; nothing else strengthens or weakens it.

mod marks;
mod notices;
mod phase;

pub use marks::DrainMark;
pub use phase::{LeavingPhase, LeavingSource, LeavingView, LeavingWait};

pub(crate) use notices::{Heard, OddNotice};

use bigfleet_model::{ClusterId, Leaving, MachineId, Time};
use notices::Notices;
use std::collections::{BTreeMap, BTreeSet};

/// The machines that are to leave.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeavingMachines {
    marks: BTreeMap<MachineId, DrainMark>,
    notices: Notices,
    /// Where each was when it was last looked at, and since when.
    phases: BTreeMap<MachineId, (LeavingPhase, Time)>,
    /// Those whose reclaim the last cycle decided, whether a rail let it pass or not.
    due: BTreeSet<MachineId>,
}

impl LeavingMachines {
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.notices.is_empty()
    }

    /// Everything that is marked, by id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &MachineId> {
        let unmarked = |id: &&MachineId| !self.marks.contains_key(*id);
        let noticed = self.notices.ids().filter(unmarked);
        let mut all: Vec<&MachineId> = self.marks.keys().chain(noticed).collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// The word that counts for a machine, and whose it is; the admin's of two equal ones.
    pub(crate) fn word(&self, machine: &MachineId) -> Option<(Leaving, LeavingSource)> {
        let marked = self.marks.get(machine).map(DrainMark::word);
        match (marked, self.notices.word(machine)) {
            (Some(marked), Some(noticed)) if marked < noticed => {
                Some((noticed, LeavingSource::Provider))
            }
            (Some(marked), _) => Some((marked, LeavingSource::Admin)),
            (None, noticed) => noticed.map(|word| (word, LeavingSource::Provider)),
        }
    }

    /// When the provider takes a machine away, if it has said so.
    pub(crate) fn taken_at(&self, machine: &MachineId) -> Option<Time> {
        self.notices.at(machine)
    }

    /// Forgets a machine that is gone; says whether an admin had marked it.
    pub(crate) fn forget(&mut self, machine: &MachineId) -> bool {
        self.notices.forget(machine);
        self.phases.remove(machine);
        self.due.remove(machine);
        self.marks.remove(machine).is_some()
    }
}

/// The admin's marks.
impl LeavingMachines {
    pub(crate) fn mark(&mut self, machine: MachineId, mark: DrainMark) {
        self.marks.insert(machine, mark);
    }

    pub(crate) fn mark_of(&self, machine: &MachineId) -> Option<&DrainMark> {
        self.marks.get(machine)
    }

    /// Lifts a mark; returns what it was.
    pub(crate) fn lift(&mut self, machine: &MachineId) -> Option<DrainMark> {
        let mark = self.marks.remove(machine);
        self.forget_phase_if_stays(machine);
        mark
    }

    pub(crate) fn marks(&self) -> impl Iterator<Item = (&MachineId, &DrainMark)> {
        self.marks.iter()
    }

    /// The deadlines of marks that have passed and were not noted: each once, by id.
    pub(crate) fn pass_deadlines(&mut self, now: Time) -> Vec<(MachineId, DrainMark)> {
        let mut passed = Vec::new();
        for (machine, mark) in &mut self.marks {
            if mark.pass(now) {
                passed.push((machine.clone(), mark.clone()));
            }
        }
        passed
    }

    /// The next deadline that has not passed.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.marks.values().filter_map(DrainMark::pending).min()
    }
}

/// The provider's notices.
impl LeavingMachines {
    /// What a provider says of a machine it shows; `bound` is the cluster it is bound to.
    pub(crate) fn hear(
        &mut self,
        machine: &MachineId,
        told: Option<Time>,
        bound: Option<&ClusterId>,
        now: Time,
    ) -> Heard {
        let heard = self.notices.hear(machine, told, bound, now);
        if heard == Heard::Withdrawn {
            self.forget_phase_if_stays(machine);
        }
        heard
    }

    /// Whether a provider has said anything of a machine.
    pub(crate) fn is_noticed(&self, machine: &MachineId) -> bool {
        self.notices.at(machine).is_some()
    }

    /// Takes the words of all notices anew: time passes, and clusters grow and shrink. `bound` counts the
    /// machines of a cluster. Returns the clusters that begin to have more notices than are believed.
    pub(crate) fn review_notices(
        &mut self,
        now: Time,
        bound: impl Fn(&ClusterId) -> usize,
        is_bound: impl Fn(&MachineId, &ClusterId) -> bool,
    ) -> Vec<(ClusterId, usize)> {
        self.notices.review(now, bound, is_bound)
    }

    /// Whether any notice stands.
    pub(crate) fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// The machines with a notice, by id.
    pub(crate) fn noticed(&self) -> impl Iterator<Item = &MachineId> {
        self.notices.ids()
    }

    /// When the next notice comes so near that its machine leaves now.
    pub(crate) fn next_turn(&self, now: Time) -> Option<Time> {
        self.notices.next_turn(now)
    }

    /// Notices that are more than half of a cluster, and count for less than they say.
    pub(crate) fn beyond(&self) -> usize {
        self.notices.beyond()
    }
}

/// How far each has come.
impl LeavingMachines {
    /// The reclaims of leaving machines that a cycle decided.
    pub(crate) fn set_due(&mut self, due: BTreeSet<MachineId>) {
        self.due = due;
    }

    /// Whether the last cycle decided to reclaim a machine because it leaves.
    pub(crate) fn is_due(&self, machine: &MachineId) -> bool {
        self.due.contains(machine)
    }

    /// Notes where a machine is now; since when is kept while that does not change.
    pub(crate) fn note_phase(&mut self, machine: &MachineId, phase: LeavingPhase, now: Time) {
        let known = self.phases.get(machine);
        if known.is_none_or(|(known, _)| *known != phase) {
            self.phases.insert(machine.clone(), (phase, now));
        }
    }

    /// Since when a machine is in a phase, as far as that was seen.
    pub(crate) fn phase_since(&self, machine: &MachineId, phase: LeavingPhase) -> Option<Time> {
        let (known, since) = self.phases.get(machine)?;
        (*known == phase).then_some(*since)
    }

    fn forget_phase_if_stays(&mut self, machine: &MachineId) {
        if self.word(machine).is_none() {
            self.phases.remove(machine);
            self.due.remove(machine);
        }
    }

    /// Who marked a machine, why, since when and until when, by the word that counts.
    pub(crate) fn said_of(&self, machine: &MachineId) -> Option<Said<'_>> {
        let (word, source) = self.word(machine)?;
        Some(match source {
            LeavingSource::Admin => {
                let mark = self.marks.get(machine)?;
                Said {
                    word,
                    source,
                    by: &mark.by,
                    reason: &mark.reason,
                    since: mark.at,
                    deadline: mark.deadline,
                }
            }
            LeavingSource::Provider => {
                let (since, at) = self.notices.heard(machine)?;
                Said {
                    word,
                    source,
                    by: "",
                    reason: "",
                    since,
                    deadline: Some(at),
                }
            }
        })
    }
}

/// What was said of a machine, by whoever's word counts.
pub(crate) struct Said<'a> {
    pub(crate) word: Leaving,
    pub(crate) source: LeavingSource,
    pub(crate) by: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) since: Time,
    pub(crate) deadline: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn m1() -> MachineId {
        MachineId::new("m1").unwrap()
    }

    fn mark(deadline: Option<Time>) -> DrainMark {
        DrainMark::new("who", "why", at(0), deadline)
    }

    /// SH-20: the stronger word counts, and one source does not lift the other.
    #[test]
    fn of_two_sources_the_stronger_word_counts() {
        let mut leaving = LeavingMachines::default();
        assert_eq!(leaving.word(&m1()), None);
        leaving.mark(m1(), mark(None));
        let admin = |word| Some((word, LeavingSource::Admin));
        assert_eq!(leaving.word(&m1()), admin(Leaving::Soon));
        let soon_gone = at(100) + Duration::from_secs(60);
        assert_eq!(
            leaving.hear(&m1(), Some(soon_gone), None, at(100)),
            Heard::New(Some(OddNotice::Unbound))
        );
        leaving.review_notices(at(100), |_| 0, |_, _| false);
        let provider = Some((Leaving::Now, LeavingSource::Provider));
        assert_eq!(leaving.word(&m1()), provider);
        assert!(leaving.lift(&m1()).is_some());
        assert_eq!(leaving.word(&m1()), provider, "an admin does not lift it");
        leaving.mark(m1(), mark(None));
        assert_eq!(leaving.hear(&m1(), None, None, at(101)), Heard::Withdrawn);
        assert_eq!(leaving.word(&m1()), admin(Leaving::Soon));
        assert!(leaving.forget(&m1()));
        assert!(leaving.is_empty());
    }

    #[test]
    fn a_deadline_passes_once() {
        let mut leaving = LeavingMachines::default();
        leaving.mark(m1(), mark(Some(at(10))));
        assert_eq!(leaving.next_deadline(), Some(at(10)));
        assert!(leaving.pass_deadlines(at(9)).is_empty());
        assert_eq!(leaving.pass_deadlines(at(10)).len(), 1);
        assert!(leaving.pass_deadlines(at(11)).is_empty());
        assert_eq!(leaving.next_deadline(), None);
        let now = Some((Leaving::Now, LeavingSource::Admin));
        assert_eq!(leaving.word(&m1()), now);
        leaving.mark(m1(), DrainMark::new("who", "why", at(20), Some(at(20))));
        assert_eq!(leaving.word(&m1()), now, "a deadline in the past is now");
        assert!(
            leaving.pass_deadlines(at(21)).is_empty(),
            "it was now at once"
        );
    }

    #[test]
    fn a_phase_has_its_age_while_it_lasts() {
        let mut leaving = LeavingMachines::default();
        leaving.mark(m1(), mark(None));
        let waits = LeavingPhase::NoReplacement;
        leaving.note_phase(&m1(), waits, at(1));
        leaving.note_phase(&m1(), waits, at(2));
        assert_eq!(leaving.phase_since(&m1(), waits), Some(at(1)));
        assert_eq!(leaving.phase_since(&m1(), LeavingPhase::Out), None);
        leaving.note_phase(&m1(), LeavingPhase::Draining, at(3));
        assert_eq!(
            leaving.phase_since(&m1(), LeavingPhase::Draining),
            Some(at(3))
        );
        leaving.lift(&m1());
        assert_eq!(leaving.phase_since(&m1(), LeavingPhase::Draining), None);
    }
}
