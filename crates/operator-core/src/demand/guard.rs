//! Withdrawal guard: a store that lost its requests must not look like a cluster that wants nothing (OP-24).
//!
//! ```text
//! half gone? ── no ──▶ send
//!     └─ yes ──▶ read owners of withdrawn requests ── they are there, or the CRD is not ──▶ hold, look again
//!                                                  └── they are gone ──▶ send
//! ```
//!
//! The demand that was accepted last stays in force at the shard while nothing is sent. A hold ends by itself after
//! `--max-withdrawal-hold`: a guard may delay a cluster, never stop it for good.

use crate::{
    defect::Defect,
    event::{OwnerState, OwnersFound},
    objects::Owner,
};
use bigfleet_model::{Amounts, Time};
use std::{collections::BTreeMap, time::Duration};

/// Fewer accepted requests than this are believed to be withdrawn.
const LEAST_REQUESTS: u64 = 10;
/// So many owners are read.
const MOST_OWNERS: usize = 20;

/// What to do with a roll-up that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may leave.
    Send,
    /// Read these first.
    Ask(Vec<Owner>),
    /// Not now.
    Hold,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Belief {
    #[default]
    Unasked,
    Asked,
    Withdrawn,
    Lost,
}

#[derive(Clone, Debug)]
pub(crate) struct WithdrawalGuard {
    longest_hold: Duration,
    accepted: Option<(u64, Amounts)>,
    /// Owners of requests that went since, by uid; at most [`MOST_OWNERS`].
    withdrawn: BTreeMap<String, Owner>,
    belief: Belief,
    held_since: Option<Time>,
}

impl WithdrawalGuard {
    pub(crate) fn new(longest_hold: Duration) -> Self {
        Self {
            longest_hold,
            accepted: None,
            withdrawn: BTreeMap::new(),
            belief: Belief::Unasked,
            held_since: None,
        }
    }

    /// The shard accepted a roll-up that asked for so much.
    pub(crate) fn accepted(&mut self, requests: u64, sum: Amounts) {
        self.accepted = Some((requests, sum));
        self.withdrawn.clear();
        self.belief = Belief::Unasked;
        self.held_since = None;
    }

    /// A request is gone.
    pub(crate) fn withdrawn(&mut self, owner: Option<&Owner>) {
        let Some(owner) = owner.filter(|_| self.withdrawn.len() < MOST_OWNERS) else {
            return;
        };
        self.withdrawn.insert(owner.uid.clone(), owner.clone());
    }

    /// A request is there, perhaps again.
    pub(crate) fn present(&mut self, owner: Option<&Owner>) {
        if let Some(owner) = owner {
            self.withdrawn.remove(&owner.uid);
        }
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.held_since.is_some()
    }

    /// What to do about demand of this many requests and this sum.
    pub(crate) fn look(
        &mut self,
        now: Time,
        requests: u64,
        sum: &Amounts,
        defect: Option<Defect>,
    ) -> Verdict {
        let is_over = |since: Time| self.longest_hold <= now.duration_since(since);
        let overruled = self.held_since.is_some_and(is_over);
        if !self.is_half_gone(requests, sum)
            || overruled
            || defect == Some(Defect::NoWithdrawalGuard)
        {
            self.belief = Belief::Unasked;
            self.held_since = self.held_since.filter(|_| overruled);
            return Verdict::Send;
        }
        match std::mem::take(&mut self.belief) {
            Belief::Withdrawn => {
                self.held_since = None;
                Verdict::Send
            }
            Belief::Asked => {
                self.belief = Belief::Asked;
                Verdict::Hold
            }
            Belief::Lost => {
                self.held_since.get_or_insert(now);
                Verdict::Hold
            }
            Belief::Unasked => {
                self.belief = Belief::Asked;
                Verdict::Ask(self.withdrawn.values().cloned().collect())
            }
        }
    }

    /// The owners were read; `None` if they could not be. Whether to look again at once.
    pub(crate) fn answered(&mut self, found: Option<OwnersFound>) -> bool {
        if self.belief != Belief::Asked {
            return false;
        }
        self.belief = match found {
            None => Belief::Unasked,
            Some(found) => {
                let is_live = |state: &OwnerState| matches!(state, OwnerState::Live { .. });
                let live = found
                    .owners
                    .iter()
                    .filter(|(_, state)| is_live(state))
                    .count();
                let half = !found.owners.is_empty() && found.owners.len() <= 2 * live;
                if half || !found.is_crd_there {
                    Belief::Lost
                } else {
                    Belief::Withdrawn
                }
            }
        };
        self.belief != Belief::Unasked
    }

    /// The session is over, and with it what was asked.
    pub(crate) fn forget_question(&mut self) {
        if self.belief == Belief::Asked {
            self.belief = Belief::Unasked;
        }
    }

    fn is_half_gone(&self, requests: u64, sum: &Amounts) -> bool {
        let Some((accepted, wanted)) = &self.accepted else {
            return false;
        };
        let less = |now: i128, then: i128| now.saturating_mul(2) <= then;
        let is_less = wanted
            .iter()
            .any(|(name, then)| less(sum.get(name.as_str()), then));
        LEAST_REQUESTS <= *accepted && (requests * 2 <= *accepted || is_less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ObjectKey;
    use bigfleet_model::Dimension;

    fn cpu(milli: i128) -> Amounts {
        Amounts::from_entries([(Dimension::new("cpu").unwrap(), milli)])
    }

    fn owner(number: usize) -> Owner {
        Owner {
            key: ObjectKey::namespaced("ns", &format!("p{number}")),
            uid: format!("u{number:02}"),
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn guard() -> WithdrawalGuard {
        let mut guard = WithdrawalGuard::new(Duration::from_secs(1800));
        guard.accepted(20, cpu(20));
        guard
    }

    fn found(owners: Vec<Owner>, live: usize, is_crd_there: bool) -> Option<OwnersFound> {
        let state = |at| {
            if at < live {
                OwnerState::Live { is_bound: true }
            } else {
                OwnerState::Over
            }
        };
        let owners = owners.into_iter().enumerate();
        Some(OwnersFound {
            owners: owners.map(|(at, owner)| (owner, state(at))).collect(),
            is_crd_there,
        })
    }

    #[test]
    fn half_gone_with_half_of_the_owners_there_is_held_until_the_hold_ends() {
        let mut guard = guard();
        assert_eq!(guard.look(at(0), 11, &cpu(11), None), Verdict::Send);
        for number in 0..30 {
            guard.withdrawn(Some(&owner(number)));
        }
        let Verdict::Ask(owners) = guard.look(at(0), 10, &cpu(11), None) else {
            unreachable!("half of the requests are gone");
        };
        assert_eq!(owners.len(), 20);
        assert_eq!(
            guard.look(at(1), 10, &cpu(11), None),
            Verdict::Hold,
            "no answer yet"
        );
        assert!(guard.answered(found(owners, 10, true)));
        assert_eq!(guard.look(at(2), 10, &cpu(11), None), Verdict::Hold);
        assert!(guard.is_holding());
        assert!(
            matches!(guard.look(at(12), 10, &cpu(11), None), Verdict::Ask(_)),
            "it looks again"
        );
        guard.answered(None);
        assert_eq!(guard.look(at(1802), 10, &cpu(11), None), Verdict::Send);
        assert_eq!(
            guard.look(at(1812), 9, &cpu(11), None),
            Verdict::Send,
            "overruled until accepted"
        );
    }

    #[test]
    fn owners_that_are_gone_withdraw_and_a_missing_crd_does_not() {
        let ask = |live, is_crd_there| {
            let mut guard = guard();
            (0..4).for_each(|number| guard.withdrawn(Some(&owner(number))));
            guard.present(Some(&owner(3)));
            let Verdict::Ask(owners) = guard.look(at(0), 20, &cpu(10), None) else {
                unreachable!("half of the cpu is gone");
            };
            assert_eq!(owners.len(), 3);
            guard.answered(found(owners, live, is_crd_there));
            guard.look(at(0), 20, &cpu(10), None)
        };
        assert_eq!(ask(1, true), Verdict::Send);
        assert_eq!(ask(2, true), Verdict::Hold);
        assert_eq!(ask(0, false), Verdict::Hold);
    }

    #[test]
    fn few_requests_and_what_nobody_owns_are_believed() {
        let mut few = WithdrawalGuard::new(Duration::from_secs(1));
        few.accepted(9, cpu(9));
        assert_eq!(few.look(at(0), 0, &Amounts::NONE, None), Verdict::Send);
        let mut orphans = guard();
        orphans.withdrawn(None);
        assert_eq!(
            orphans.look(at(0), 0, &Amounts::NONE, None),
            Verdict::Ask(vec![])
        );
        orphans.answered(found(vec![], 0, true));
        assert_eq!(orphans.look(at(0), 0, &Amounts::NONE, None), Verdict::Send);
    }
}
