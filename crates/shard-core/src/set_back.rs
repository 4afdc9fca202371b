//! Set back: what an earlier process remembered of a clock that was ahead of this one's (SH-42).
//!
//! ```text
//! host's clock   ── 12:00 breaker waits until 12:10 ── set to 9:00 ── restart ─▶ waits until 9:10, not for 3 h
//! ```
//!
//! Within a process time only goes forward. Between two of them somebody may set the host's clock back, and then
//! whatever was to wait for minutes would wait for as long as the clock was wrong. So nothing lasts longer, counted
//! from the start, than it could have from the moment it was noted. Rail 1 and rail 2 see to their own moments.

use crate::{
    rails::{LONGEST_GIVEN_UP, LONGEST_WAIT},
    record::{KeptOperation, Record},
};
use bigfleet_model::Time;
use std::time::Duration;

impl Record {
    /// As it is to be remembered by a process that starts now.
    pub(crate) fn remembered_at(mut self, now: Time) -> Self {
        match &mut self {
            Self::Machine {
                kept: Some(kept), ..
            } => {
                if let Some((_, until)) = &mut kept.given_up {
                    *until = (*until).min(now + LONGEST_GIVEN_UP);
                }
                if let Some((_, at)) = &mut kept.spent {
                    *at = (*at).min(now);
                }
                if let Some(operation) = kept.operation.as_deref_mut() {
                    set_back(operation, now);
                }
            }
            Self::Breaker {
                kept: Some(kept), ..
            } => {
                kept.since = kept.since.min(now);
                kept.until = kept.until.min(now + LONGEST_WAIT);
            }
            Self::Paused {
                kept: Some(kept), ..
            } => {
                let span = kept.until.map(|until| until.duration_since(kept.since));
                kept.since = kept.since.min(now);
                let longest = span.map(|span| now + span);
                kept.until = kept.until.min(longest);
            }
            Self::Arrival { at: Some(at), .. } => *at = (*at).min(now),
            _ => {}
        }
        self
    }
}

/// What was left of a grace that stands still stays.
fn set_back(operation: &mut KeptOperation, now: Time) {
    let deadline = &mut operation.deadline;
    if let Some(held_since) = operation.held_since.as_mut().filter(|held| now < **held) {
        *deadline = *deadline - held_since.duration_since(now);
        *held_since = now;
    }
    let grace = Duration::from_secs(operation.grace_seconds.into());
    *deadline = (*deadline).min(now + grace);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rails::{BreakerKey, JoinStep, KeptBreaker, KeptPause, PauseNote, Scope},
        record::Kept,
    };
    use bigfleet_model::{ActionKind, Assignment, ClusterId, MachineId, Reason};

    fn at(seconds: i64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    /// Three hours ahead, or not at all: what is kept, and what becomes of it.
    fn kept(base: i64) -> Vec<Record> {
        let cluster = ClusterId::new("a").unwrap();
        let operation = KeptOperation {
            id: crate::OperationId {
                epoch: 1,
                number: 1,
            },
            action: ActionKind::Reclaim,
            reason: Reason::Excess,
            cluster: Some(cluster.clone()),
            need: None,
            decided_cycle: 1,
            grace_seconds: 300,
            preemptor_priority: 0,
            deadline: at(base + 200),
            held_since: Some(at(base)),
            not_ready: false,
        };
        vec![
            Record::Breaker {
                key: BreakerKey::Join(cluster.clone(), JoinStep::Blob),
                kept: Some(KeptBreaker {
                    failures: 9,
                    waits: 9,
                    since: at(base),
                    until: at(base + 600),
                    last_error: String::new(),
                }),
            },
            Record::Machine {
                machine: MachineId::new("m1").unwrap(),
                kept: Some(Box::new(Kept {
                    given_up: Some((9, at(base + LONGEST_GIVEN_UP.as_secs() as i64))),
                    spent: Some((cluster, at(base))),
                    operation: Some(Box::new(operation)),
                    cluster: None,
                    bound_by: None,
                    assignment: Assignment::default(),
                    intent: None,
                    not_ready: false,
                    undeletable: false,
                })),
            },
            Record::Paused {
                scope: Scope::All,
                kept: Some(KeptPause {
                    since: at(base),
                    until: Some(at(base + 60)),
                    note: PauseNote::default(),
                }),
            },
        ]
    }

    #[test]
    fn nothing_lasts_longer_for_a_clock_that_was_set_back() {
        let now = at(1_000_000);
        let set_back = kept(1_010_800).into_iter();
        let set_back: Vec<Record> = set_back.map(|one| one.remembered_at(now)).collect();
        assert_eq!(set_back, kept(1_000_000));
        let as_it_is = kept(1_000_000).into_iter();
        let as_it_is: Vec<Record> = as_it_is.map(|one| one.remembered_at(now)).collect();
        assert_eq!(
            as_it_is,
            kept(1_000_000),
            "a clock that goes on changes nothing"
        );
    }
}
