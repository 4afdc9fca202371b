//! Served: what the shard knows of each row, told to whoever waits (OP-53).
//!
//! ```text
//! need_status ─▶ row's word ─▶ requests of the row that have waited ─▶ condition Served, oldest first, ≤ 10/s
//! ```
//!
//! A request of a Pod waits while its condition `Stuck` is True: the Pods of its row that run are none of the row's
//! shortfall. One that no Pod owns waits from 30 s after it was made, while its row is short.

use crate::{
    demand::KeptRequest,
    effect::Write,
    event::RowStatus,
    objects::{ObjectKey, Served},
};
use bigfleet_model::{Row, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const SPACING: Duration = Duration::from_millis(100);
/// What a request without a Pod is given before it is told that it waits.
const PATIENCE: Duration = Duration::from_secs(30);
/// Rows at most: as many as a roll-up may have.
const MOST_ROWS: usize = crate::limits::MOST_ROWS;

/// A row: the text of its profile, and its group.
pub(crate) type RowName = (String, String);

#[derive(Clone, Debug)]
struct Waiting {
    row: RowName,
    uid: String,
    created: Time,
    has_status: bool,
    served: Option<Served>,
    waits: Waits,
    /// A word of the operator's own, which goes over the row's.
    own: Option<Served>,
}

/// How it is known whether a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Its Pod is stuck.
    Stuck,
    /// It was told that it is not served, and its Pod is stuck no longer.
    NoLonger,
    /// It has no Pod: it waits while its row is short.
    WithItsRow,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ServedWords {
    rows: BTreeMap<RowName, RowStatus>,
    /// Requests that are stuck, were told that they are not served, or have no Pod.
    waiting: BTreeMap<ObjectKey, Waiting>,
    by_row: BTreeMap<RowName, BTreeSet<ObjectKey>>,
    /// Requests to look at, oldest first.
    to_tell: BTreeSet<(Time, ObjectKey)>,
    /// Requests without a Pod that are too young to be told, and until when.
    young: BTreeSet<(Time, ObjectKey)>,
    next_write: Option<Time>,
}

impl ServedWords {
    /// What the shard says of a row; `None` if it has not said anything.
    pub(crate) fn row(&self, row: &RowName) -> Option<&RowStatus> {
        self.rows.get(row)
    }

    pub(crate) fn session_begins(&mut self) {
        self.rows.clear();
    }

    /// Makes room, when there is none, by forgetting rows that are asked for no longer.
    pub(crate) fn asked_for(&mut self, rows: &[Row]) {
        if MOST_ROWS <= self.rows.len() {
            let name = |row: &Row| {
                let text = row.profile.fingerprint().as_str().to_owned();
                (text, row.group.as_str().to_owned())
            };
            let asked: BTreeSet<RowName> = rows.iter().map(name).collect();
            self.rows.retain(|row, _| asked.contains(row));
        }
    }

    pub(crate) fn heard(&mut self, rows: Vec<RowStatus>, is_complete: bool) {
        if is_complete {
            self.rows.clear();
        }
        for status in rows {
            let row = (status.fingerprint.clone(), status.group.clone());
            if MOST_ROWS <= self.rows.len() && !self.rows.contains_key(&row) {
                continue;
            }
            for key in self.by_row.get(&row).into_iter().flatten() {
                let created = self.waiting.get(key).map(|waiting| waiting.created);
                self.to_tell
                    .extend(created.map(|created| (created, key.clone())));
            }
            self.rows.insert(row, status);
        }
    }

    /// The requests it may have a word for.
    pub(crate) fn requests(&self) -> Vec<ObjectKey> {
        self.waiting.keys().cloned().collect()
    }

    /// A request changed; `tells_all` is [`crate::Defect::RunningPodsTold`].
    pub(crate) fn changed(
        &mut self,
        key: &ObjectKey,
        after: Option<&KeptRequest>,
        row: RowName,
        tells_all: bool,
    ) {
        let own = self
            .waiting
            .get(key)
            .and_then(|waiting| waiting.own.clone());
        self.forget(key);
        let Some(after) = after else { return };
        let status = after.status.as_ref();
        let is_stuck = status.is_some_and(|status| status.stuck.is_some());
        let served = status.and_then(|status| status.served.clone());
        let is_told = served.as_ref().is_some_and(|served| !served.is_served);
        let waits = match (is_stuck, &after.owner) {
            (true, _) => Waits::Stuck,
            (false, _) if tells_all => Waits::WithItsRow,
            (false, None) => Waits::WithItsRow,
            (false, Some(_)) if is_told => Waits::NoLonger,
            (false, Some(_)) => return,
        };
        self.by_row
            .entry(row.clone())
            .or_default()
            .insert(key.clone());
        let waiting = Waiting {
            row,
            uid: after.uid.clone(),
            created: after.created,
            has_status: after.status.is_some(),
            served,
            waits,
            own,
        };
        self.waiting.insert(key.clone(), waiting);
        self.to_tell.insert((after.created, key.clone()));
    }

    fn forget(&mut self, key: &ObjectKey) {
        let Some(known) = self.waiting.remove(key) else {
            return;
        };
        self.to_tell.remove(&(known.created, key.clone()));
        self.young.remove(&(known.created + PATIENCE, key.clone()));
        if let Some(keys) = self.by_row.get_mut(&known.row) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_row.remove(&known.row);
            }
        }
    }

    /// A word of the operator's own about a request, or none any more.
    pub(crate) fn own_word(&mut self, key: &ObjectKey, word: Option<Served>) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.own = word;
            self.to_tell.insert((waiting.created, key.clone()));
        }
    }

    /// The next condition to write, if one differs and its time has come.
    pub(crate) fn next(&mut self, now: Time) -> Option<Write> {
        while let Some((until, key)) = self.young.pop_first() {
            if now < until {
                self.young.insert((until, key));
                break;
            }
            let created = self.waiting.get(&key).map(|waiting| waiting.created);
            self.to_tell.extend(created.map(|created| (created, key)));
        }
        if self.next_write.is_some_and(|at| now < at) {
            return None;
        }
        while let Some((_, key)) = self.to_tell.pop_first() {
            let Some(waiting) = self.waiting.get(&key) else {
                continue;
            };
            let until = waiting.created + PATIENCE;
            if waiting.waits == Waits::WithItsRow && now < until {
                self.young.insert((until, key));
                continue;
            }
            let Some(served) = self.word(waiting) else {
                continue;
            };
            self.next_write = Some(now + SPACING);
            return Some(Write::Serve {
                request: key,
                uid: waiting.uid.clone(),
                served,
                has_status: waiting.has_status,
            });
        }
        None
    }

    pub(crate) fn next_write(&self) -> Option<Time> {
        let next = self.next_write.filter(|_| !self.to_tell.is_empty());
        Time::earliest(next, self.young.first().map(|(until, _)| *until))
    }

    /// What a request should say, if that is not what it says.
    fn word(&self, waiting: &Waiting) -> Option<Served> {
        let is_told = waiting.served.as_ref().is_some_and(|last| !last.is_served);
        let wanted = match (waiting.waits, &waiting.own) {
            (Waits::NoLonger, _) => served(),
            (_, Some(own)) => own.clone(),
            (waits, None) => match (self.rows.get(&waiting.row)?, waits) {
                (row, Waits::WithItsRow) if is_told && !is_short(row) => served(),
                (row, _) => Served {
                    is_served: false,
                    reason: Some(&row.reason).filter(|reason| is_word(reason))?.clone(),
                    message: Some(&row.sentence).filter(|_| is_short(row))?.clone(),
                },
            },
        };
        (waiting.served.as_ref() != Some(&wanted)).then_some(wanted)
    }
}

fn served() -> Served {
    Served {
        is_served: true,
        reason: "Served".to_owned(),
        message: String::new(),
    }
}

fn is_short(row: &RowStatus) -> bool {
    let short = [&row.missing, &row.coming, &row.stuck];
    short.iter().any(|amounts| !amounts.is_zero())
}

/// Whether the API server takes it for the reason of a condition: letters and digits, beginning with a letter.
fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 1024
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(fits)
}
