//! Follow: the cache of one kind, and when it may be believed.
//!
//! ```text
//! Began ──▶ filling ── Seen, Gone ──▶ Whole: swap, and say what differs
//!             └── the stream ends ──▶ thrown away; the cache before it stays in force
//! ```
//!
//! Nothing is decided from a cache that was never whole (OP-2). Whole hands out differences, so everything that
//! counts objects sees one kind of change, however it came about.

use crate::objects::ObjectKey;
use bigfleet_model::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// A kind is fresh for so long after an event or a bookmark (OP-4).
const FRESH_FOR: Duration = Duration::from_secs(150);

/// An object that came, changed or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change<T> {
    pub(crate) key: ObjectKey,
    pub(crate) before: Option<T>,
    pub(crate) after: Option<T>,
}

/// The objects of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Followed<T> {
    current: BTreeMap<ObjectKey, T>,
    filling: Option<BTreeMap<ObjectKey, T>>,
    /// Objects that could not be read and never were before (OP-6).
    unread: BTreeSet<ObjectKey>,
    is_whole: bool,
    last_heard: Option<Time>,
    /// The highest version the store has shown.
    version: u64,
}

impl<T> Default for Followed<T> {
    fn default() -> Self {
        Self {
            current: BTreeMap::new(),
            filling: None,
            unread: BTreeSet::new(),
            is_whole: false,
            last_heard: None,
            version: 0,
        }
    }
}

impl<T: Clone + PartialEq> Followed<T> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&T> {
        self.current.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        self.current.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.current.len()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// OP-4: whole, and heard of lately.
    pub(crate) fn is_fresh(&self, now: Time) -> bool {
        let heard = |at: Time| now.duration_since(at) <= FRESH_FOR;
        self.is_whole && self.last_heard.is_some_and(heard)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Objects nobody could ever read.
    pub(crate) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// A complete list begins. The version is forgotten: a store that was restored begins lower.
    pub(crate) fn began(&mut self, now: Time) {
        self.filling = Some(BTreeMap::new());
        self.unread.clear();
        self.version = 0;
        self.last_heard = Some(now);
    }

    /// The stream ended before the list was complete, or the watch broke.
    pub(crate) fn broken(&mut self) {
        self.filling = None;
    }

    pub(crate) fn heard(&mut self, now: Time, version: u64) {
        self.last_heard = Some(now);
        self.version = self.version.max(version);
    }

    /// An object as it is now; what that changes, unless a list is being filled.
    pub(crate) fn seen(&mut self, key: ObjectKey, object: T) -> Option<Change<T>> {
        self.unread.remove(&key);
        if let Some(filling) = &mut self.filling {
            filling.insert(key, object);
            return None;
        }
        let before = self.current.insert(key.clone(), object.clone());
        (before.as_ref() != Some(&object)).then_some(Change {
            key,
            before,
            after: Some(object),
        })
    }

    /// OP-6: an object that cannot be read keeps its last record.
    pub(crate) fn unreadable(&mut self, key: ObjectKey) {
        let last = self.current.get(&key).cloned();
        match (last, &mut self.filling) {
            (Some(last), Some(filling)) => {
                filling.insert(key, last);
            }
            (Some(_), None) => {}
            (None, _) => {
                self.unread.insert(key);
            }
        }
    }

    /// An object is no longer there.
    pub(crate) fn gone(&mut self, key: &ObjectKey) -> Option<Change<T>> {
        self.unread.remove(key);
        if let Some(filling) = &mut self.filling {
            filling.remove(key);
            return None;
        }
        let before = self.current.remove(key)?;
        Some(Change {
            key: key.clone(),
            before: Some(before),
            after: None,
        })
    }

    /// The list is complete: it is in force from now on. What differs from before, by key.
    pub(crate) fn whole(&mut self) -> Vec<Change<T>> {
        let Some(filled) = self.filling.take() else {
            return Vec::new();
        };
        self.is_whole = true;
        let mut old = std::mem::replace(&mut self.current, filled);
        let mut changes = Vec::new();
        for (key, after) in &self.current {
            let before = old.remove(key);
            if before.as_ref() != Some(after) {
                changes.push(Change {
                    key: key.clone(),
                    before,
                    after: Some(after.clone()),
                });
            }
        }
        changes.extend(old.into_iter().map(|(key, before)| Change {
            key,
            before: Some(before),
            after: None,
        }));
        changes.sort_by(|one, other| one.key.cmp(&other.key));
        changes
    }
}

/// What counting the requests found (OP-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The store's version at the count.
    pub version: u64,
    /// How many there are.
    pub items: u64,
}

/// OP-5: compares the cache of requests with the store every five minutes and after each new watch. A watch from a
/// version the store does not have yet is answered with silence, so a restored store is found only like this.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountCheck {
    /// When to count next.
    due: Option<Time>,
    in_flight: bool,
    /// When the count first differed from the cache.
    differs_since: Option<Time>,
}

const COUNT_EVERY: Duration = Duration::from_secs(300);
const COUNT_AGAIN: Duration = Duration::from_secs(30);

impl CountCheck {
    /// A watch begins: count now.
    pub(crate) fn watching(&mut self, now: Time) {
        self.due = Some(now);
        self.differs_since = None;
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Option<Time> {
        self.due.filter(|_| !self.in_flight)
    }

    /// Whether to count now.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.next().is_some_and(|due| due <= now);
        if is_due {
            self.in_flight = true;
            self.due = Some(now + COUNT_EVERY);
        }
        is_due
    }

    /// The answer, `None` if there was none; whether to begin anew.
    pub(crate) fn counted(
        &mut self,
        now: Time,
        count: Option<Count>,
        cached: u64,
        seen_version: u64,
    ) -> bool {
        self.in_flight = false;
        let Some(count) = count else {
            self.due = Some(now + COUNT_AGAIN);
            return false;
        };
        if count.version < seen_version {
            self.differs_since = None;
            return true;
        }
        if count.items == cached {
            self.differs_since = None;
            return false;
        }
        let since = *self.differs_since.get_or_insert(now);
        let is_twice = COUNT_AGAIN <= now.duration_since(since);
        if is_twice {
            self.differs_since = None;
        } else {
            self.due = Some(now + COUNT_AGAIN);
        }
        is_twice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::cluster(name)
    }

    fn whole(names: &[&str]) -> Followed<u8> {
        let mut followed = Followed::default();
        followed.began(Time::ZERO);
        for name in names {
            assert_eq!(followed.seen(key(name), 1), None);
        }
        assert_eq!(followed.whole().len(), names.len());
        followed
    }

    /// EX-OP1 on the cache: a list that ends early changes nothing; a complete one replaces.
    #[test]
    fn ex_op1_a_list_counts_only_when_it_is_whole() {
        let mut followed = whole(&["a", "b", "c"]);
        followed.began(Time::ZERO);
        followed.seen(key("a"), 1);
        followed.seen(key("d"), 1);
        followed.broken();
        assert_eq!(followed.len(), 3);
        followed.began(Time::ZERO);
        followed.seen(key("a"), 2);
        followed.seen(key("d"), 1);
        let changed: Vec<_> = followed
            .whole()
            .into_iter()
            .map(|c| (c.key.name, c.before, c.after))
            .collect();
        let expected = [
            ("a".to_owned(), Some(1), Some(2)),
            ("b".to_owned(), Some(1), None),
            ("c".to_owned(), Some(1), None),
            ("d".to_owned(), None, Some(1)),
        ];
        assert_eq!(changed, expected);
        assert_eq!(followed.len(), 2);
    }

    /// OP-6.
    #[test]
    fn what_cannot_be_read_keeps_its_last_record() {
        let mut followed = whole(&["a"]);
        followed.began(Time::ZERO);
        followed.unreadable(key("a"));
        followed.unreadable(key("b"));
        assert_eq!(followed.whole(), []);
        assert_eq!((followed.len(), followed.unread()), (1, 1));
        followed.seen(key("b"), 1);
        assert_eq!((followed.len(), followed.unread()), (2, 0));
    }

    /// OP-4.
    #[test]
    fn freshness_ends_after_two_and_a_half_minutes() {
        let mut followed = whole(&[]);
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        followed.heard(at(10), 5);
        assert!(followed.is_fresh(at(160)));
        assert!(!followed.is_fresh(at(161)));
        assert!(!Followed::<u8>::default().is_fresh(Time::ZERO));
    }

    /// EX-OP2 on the check: a version that went back is noticed at the next count, at most five minutes later; a
    /// number that differs only when it does so twice, half a minute apart.
    #[test]
    fn ex_op2_a_restored_store_and_a_lost_event_are_noticed() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let count = |version, items| Some(Count { version, items });
        let mut check = CountCheck::default();
        check.watching(at(0));
        assert!(check.is_due(at(0)));
        assert!(!check.is_due(at(0)), "one at a time");
        assert!(!check.counted(at(1), count(9, 3), 3, 9));
        assert!(!check.is_due(at(299)));
        assert!(check.is_due(at(300)));
        assert!(check.counted(at(300), count(8, 3), 3, 9));
        assert!(check.is_due(at(600)));
        assert!(
            !check.counted(at(600), count(9, 4), 3, 9),
            "once proves nothing"
        );
        assert!(check.is_due(at(630)));
        assert!(check.counted(at(630), count(9, 4), 3, 9));
        check.watching(at(700));
        assert!(check.is_due(at(700)));
        assert!(!check.counted(at(700), None, 3, 9));
        assert_eq!(check.next(), Some(at(730)));
    }
}
