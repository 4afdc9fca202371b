//! History: what clients asked and were answered, and whether one copy of the tables could have answered so.
//!
//! ```text
//! client 1   ├─ assign r1 a ─┤ done            ├─ read ─┤ a
//! client 2        ├─ move r1 b ──────┤ nobody knows
//!                 └─ each takes effect at one moment within its bar, or, if nobody knows, at any later one or never
//! ```
//!
//! Domains and shards are registers that do not touch one another here, so each is judged by itself: all orders that respect what was
//! over before something else began, with what was seen before remembered (Wing and Gong, with Lowe's memory).

use std::collections::{BTreeMap, HashSet};

/// What a register holds.
pub(crate) type Value = Option<String>;

/// What was asked of one register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// From nothing to this; of this itself nothing is changed.
    Put(String),
    /// From something to this.
    Replace(String),
    /// To nothing.
    Clear,
    /// From something to nothing.
    Remove,
    /// What is there?
    Read,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// It was there already, with another value.
    Exists,
    /// Nothing is there.
    Missing,
    /// What a read saw.
    Saw(Value),
    /// No answer, or one that says that nobody knows.
    Unknown,
}

/// One call. `began` and `over` are of one count for all clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) asked: Asked,
    pub(crate) ended: Ended,
    pub(crate) began: u64,
    pub(crate) over: u64,
}

/// All calls, by register.
pub(crate) type History = BTreeMap<String, Vec<Call>>;

/// What the register is after this call, if it can have ended like that from here.
fn after(call: &Call, value: &Value) -> Option<Value> {
    let change: Option<Value> = match (&call.asked, value) {
        (Asked::Put(new), None) => Some(Some(new.clone())),
        (Asked::Put(new), Some(old)) if new == old => Some(value.clone()),
        (Asked::Replace(new), Some(_)) => Some(Some(new.clone())),
        (Asked::Remove, Some(_)) | (Asked::Clear, _) => Some(None),
        (Asked::Put(_), Some(_)) | (Asked::Replace(_) | Asked::Remove, None) => None,
        (Asked::Read, _) => Some(value.clone()),
    };
    match (&call.ended, change) {
        (Ended::Done, Some(new)) => Some(new),
        // One that changes nothing may as well never have happened.
        (Ended::Unknown, Some(new)) if new != *value => Some(new),
        (Ended::Exists, None) if value.is_some() => Some(value.clone()),
        (Ended::Missing, None) if value.is_none() => Some(value.clone()),
        (Ended::Saw(seen), _) if seen == value => Some(value.clone()),
        _ => None,
    }
}

/// Which calls took effect, as bits.
type Taken = Vec<u64>;

fn is_taken(taken: &Taken, nth: usize) -> bool {
    taken[nth / 64] & 1 << (nth % 64) != 0
}

fn with(taken: &Taken, nth: usize) -> Taken {
    let mut taken = taken.clone();
    taken[nth / 64] |= 1 << (nth % 64);
    taken
}

/// Whether one register that starts empty could have answered like this.
pub(crate) fn is_linearizable(calls: &[Call]) -> bool {
    let mut seen: HashSet<(Taken, Value)> = HashSet::new();
    let mut open = vec![(vec![0; calls.len().div_ceil(64).max(1)], None)];
    while let Some((taken, value)) = open.pop() {
        if !seen.insert((taken.clone(), value.clone())) {
            continue;
        }
        let left = || {
            let all = calls.iter().enumerate();
            all.filter(|(nth, _)| !is_taken(&taken, *nth))
        };
        let owed = left().filter(|(_, call)| call.ended != Ended::Unknown);
        // Nothing that is left may begin after something that is left was over.
        let Some(horizon) = owed.map(|(_, call)| call.over).min() else {
            return true;
        };
        // Of calls whose end nobody knows and that ask the same, the first may stand for all: it can take effect
        // wherever another one can.
        let mut lost: Vec<&Asked> = Vec::new();
        let mut next: Vec<(usize, &Call)> =
            left().filter(|(_, call)| call.began < horizon).collect();
        next.sort_by_key(|(_, call)| call.began);
        for (nth, call) in next {
            if call.ended == Ended::Unknown {
                if lost.contains(&&call.asked) {
                    continue;
                }
                lost.push(&call.asked);
            }
            if let Some(value) = after(call, &value) {
                open.push((with(&taken, nth), value));
            }
        }
    }
    false
}

/// The registers whose answers no single copy can have given.
pub(crate) fn broken(history: &History) -> Vec<&str> {
    let broken = history.iter().filter(|(_, calls)| !is_linearizable(calls));
    broken.map(|(register, _)| register.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(asked: Asked, ended: Ended, began: u64, over: u64) -> Call {
        Call {
            asked,
            ended,
            began,
            over,
        }
    }

    fn put(value: &str, ended: Ended, began: u64, over: u64) -> Call {
        call(Asked::Put(value.to_owned()), ended, began, over)
    }

    fn read(value: Option<&str>, began: u64, over: u64) -> Call {
        let saw = Ended::Saw(value.map(str::to_owned));
        call(Asked::Read, saw, began, over)
    }

    #[test]
    fn what_one_copy_can_answer_is_told_from_what_it_cannot() {
        let good: [&[Call]; 6] = [
            &[
                read(None, 1, 2),
                put("a", Ended::Done, 3, 4),
                read(Some("a"), 5, 6),
            ],
            // Both at once: either order.
            &[
                put("a", Ended::Done, 1, 4),
                read(None, 2, 3),
                read(Some("a"), 5, 6),
            ],
            &[put("a", Ended::Done, 1, 4), read(Some("a"), 2, 3)],
            // Nobody knows: later, or never.
            &[
                put("a", Ended::Unknown, 1, 2),
                read(None, 3, 4),
                read(Some("a"), 5, 6),
            ],
            &[
                put("a", Ended::Unknown, 1, 2),
                put("b", Ended::Done, 3, 4),
                read(Some("b"), 5, 6),
            ],
            &[
                put("a", Ended::Done, 1, 2),
                put("b", Ended::Exists, 3, 4),
                call(Asked::Clear, Ended::Done, 5, 6),
                call(Asked::Remove, Ended::Missing, 7, 8),
            ],
        ];
        for calls in good {
            assert!(is_linearizable(calls), "{calls:?}");
        }
        let bad: [&[Call]; 6] = [
            // A read of before a change that was over.
            &[put("a", Ended::Done, 1, 2), read(None, 3, 4)],
            // A value nobody put there.
            &[read(Some("a"), 1, 2)],
            // Two that both found nothing.
            &[put("a", Ended::Done, 1, 4), put("b", Ended::Done, 2, 3)],
            // A value that comes and goes.
            &[
                put("a", Ended::Unknown, 1, 2),
                read(Some("a"), 3, 4),
                read(None, 5, 6),
            ],
            &[
                put("a", Ended::Done, 1, 2),
                call(Asked::Replace("b".to_owned()), Ended::Missing, 3, 4),
            ],
            // Its effect before it began.
            &[read(Some("a"), 1, 2), put("a", Ended::Unknown, 3, 4)],
        ];
        for calls in bad {
            assert!(!is_linearizable(calls), "{calls:?}");
        }
    }
}
