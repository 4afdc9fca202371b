//! Session: when to dial, what the shard can do, and where its resync is (OP-13, OP-16).
//!
//! ```text
//! Waiting(until) ─▶ Dialing ─▶ Open: Hello ─▶ its answer ─▶ resync begin … end ─▶ roll-ups
//!      ▲                           │
//!      └── backoff, full jitter ◀──┘ over
//! ```

use crate::{event::SessionId, jitter::Jitter};
use bigfleet_model::{MachineId, Time};
use std::{collections::BTreeSet, time::Duration};

const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// A session that lasted so long was a good one.
const GOOD_SESSION: Duration = Duration::from_secs(60);
/// How long the first roll-up waits for the Hello's answer, and then for the end of the resync.
const FIRST_ROLL_UP_WITHIN: Duration = Duration::from_secs(10);
/// Machines of one resync.
const MOST_NAMED: usize = 100_000;

/// What this operator can do, as its Hello lists it.
pub(crate) const FEATURES: &[&str] = &[
    "drain-report.v1",
    "node-report.v1",
    "reclaim-target.v1",
    "resync.v1",
    "whole-units.v1",
    "disruption.v1",
    "need-status.v1",
];

/// What the shard of a session can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardFeatures {
    pub(crate) any: bool,
    pub(crate) drain_report: bool,
    pub(crate) node_report: bool,
    pub(crate) resync: bool,
    pub(crate) whole_units: bool,
    pub(crate) disruption: bool,
    pub(crate) need_status: bool,
}

impl ShardFeatures {
    fn of(listed: &[String]) -> Self {
        let has = |name: &str| listed.iter().any(|listed| listed == name);
        Self {
            any: !listed.is_empty(),
            drain_report: has("drain-report.v1"),
            node_report: has("node-report.v1"),
            resync: has("resync.v1"),
            whole_units: has("whole-units.v1"),
            disruption: has("disruption.v1"),
            need_status: has("need-status.v1"),
        }
    }
}

/// A resync that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resync {
    /// The machines that were named between the markers.
    pub(crate) named: BTreeSet<MachineId>,
    /// Whether they are as many as the shard says it named (OP-42).
    pub(crate) is_counted: bool,
}

#[derive(Clone, Debug)]
struct Open {
    id: SessionId,
    since: Time,
    hello_answered: Option<Time>,
    features: ShardFeatures,
    naming: Option<BTreeSet<MachineId>>,
    is_synced: bool,
    /// Whether its resync was counted.
    is_counted: bool,
}

#[derive(Clone, Debug)]
enum Stage {
    /// This process does not lead.
    Off,
    Waiting(Time),
    Dialing(SessionId),
    Open(Box<Open>),
}

/// The way to the shard.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    stage: Stage,
    dialed: u64,
    backoff: Duration,
    is_refusal_said: bool,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            stage: Stage::Off,
            dialed: 0,
            backoff: FIRST_BACKOFF,
            is_refusal_said: false,
        }
    }
}

impl Session {
    /// This process leads: dial now.
    pub(crate) fn start(&mut self, now: Time) {
        if matches!(self.stage, Stage::Off) {
            self.stage = Stage::Waiting(now);
        }
    }

    /// This process no longer leads; the session to end, if there is one.
    pub(crate) fn stop(&mut self) -> Option<SessionId> {
        let ended = self.id();
        self.stage = Stage::Off;
        ended
    }

    fn id(&self) -> Option<SessionId> {
        match &self.stage {
            Stage::Off | Stage::Waiting(_) => None,
            Stage::Dialing(id) => Some(*id),
            Stage::Open(open) => Some(open.id),
        }
    }

    fn opened_session(&self) -> Option<&Open> {
        match &self.stage {
            Stage::Open(open) => Some(open),
            Stage::Off | Stage::Waiting(_) | Stage::Dialing(_) => None,
        }
    }

    fn open_mut(&mut self, id: SessionId) -> Option<&mut Open> {
        match &mut self.stage {
            Stage::Open(open) if open.id == id => Some(open),
            Stage::Off | Stage::Waiting(_) | Stage::Dialing(_) | Stage::Open(_) => None,
        }
    }

    /// The session to speak on.
    pub(crate) fn speaks(&self) -> Option<SessionId> {
        self.opened_session().map(|open| open.id)
    }

    pub(crate) fn is_current(&self, id: SessionId) -> bool {
        self.speaks() == Some(id)
    }

    /// What its shard can do; nothing while there is none.
    pub(crate) fn features(&self) -> ShardFeatures {
        self.opened_session()
            .map(|open| open.features)
            .unwrap_or_default()
    }

    /// Whether its resync was counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.opened_session().is_some_and(|open| open.is_counted)
    }

    /// When to dial.
    pub(crate) fn next(&self) -> Option<Time> {
        match &self.stage {
            Stage::Waiting(until) => Some(*until),
            Stage::Open(open) if !open.is_synced => Some(open.first_roll_up_by()),
            Stage::Off | Stage::Dialing(_) | Stage::Open(_) => None,
        }
    }

    /// The session to dial now, if one is due.
    pub(crate) fn dial(&mut self, now: Time) -> Option<SessionId> {
        match self.stage {
            Stage::Waiting(until) if until <= now => {
                self.dialed += 1;
                let id = SessionId(self.dialed);
                self.stage = Stage::Dialing(id);
                Some(id)
            }
            Stage::Off | Stage::Waiting(_) | Stage::Dialing(_) | Stage::Open(_) => None,
        }
    }

    /// The stream is open; whether it is the one that was dialled.
    pub(crate) fn opened(&mut self, now: Time, id: SessionId) -> bool {
        let is_dialled = matches!(self.stage, Stage::Dialing(dialled) if dialled == id);
        if is_dialled {
            self.stage = Stage::Open(Box::new(Open {
                id,
                since: now,
                hello_answered: None,
                features: ShardFeatures::default(),
                naming: None,
                is_synced: false,
                is_counted: false,
            }));
        }
        is_dialled
    }

    /// The Hello is answered.
    pub(crate) fn hello_answered(&mut self, now: Time, id: SessionId, features: &[String]) {
        if let Some(open) = self.open_mut(id)
            && open.hello_answered.is_none()
        {
            open.hello_answered = Some(now);
            open.features = ShardFeatures::of(features);
            open.is_synced = !open.features.resync;
            self.is_refusal_said = false;
        }
    }

    pub(crate) fn resync_begins(&mut self, id: SessionId) {
        if let Some(open) = self.open_mut(id) {
            open.naming = Some(BTreeSet::new());
        }
    }

    /// A frame names a machine.
    pub(crate) fn named(&mut self, id: SessionId, machine: &MachineId) {
        if let Some(naming) = self.open_mut(id).and_then(|open| open.naming.as_mut())
            && naming.len() < MOST_NAMED
        {
            naming.insert(machine.clone());
        }
    }

    /// The end marker; `None` if no begin came before it.
    pub(crate) fn resync_ends(&mut self, id: SessionId, count: Option<u64>) -> Option<Resync> {
        let open = self.open_mut(id)?;
        open.is_synced = true;
        let named = open.naming.take()?;
        let is_counted = count == Some(named.len() as u64);
        open.is_counted |= is_counted;
        Some(Resync { named, is_counted })
    }

    /// OP-16: whether the first roll-up may leave.
    pub(crate) fn may_roll_up(&self, now: Time) -> bool {
        self.opened_session()
            .is_some_and(|open| open.is_synced || open.first_roll_up_by() <= now)
    }

    /// The session is over, by its peer or by us. Whether that must be said aloud.
    pub(crate) fn closed(
        &mut self,
        now: Time,
        id: SessionId,
        is_refused: bool,
        jitter: &mut Jitter,
    ) -> bool {
        if self.id() != Some(id) {
            return false;
        }
        let lasted = self
            .opened_session()
            .map(|open| now.duration_since(open.since));
        if lasted.is_some_and(|lasted| GOOD_SESSION <= lasted) {
            self.backoff = FIRST_BACKOFF;
        }
        if is_refused {
            self.backoff = LONGEST_BACKOFF;
        }
        self.stage = Stage::Waiting(now + jitter.up_to(self.backoff));
        self.backoff = (self.backoff * 2).min(LONGEST_BACKOFF);
        let say = is_refused && !self.is_refusal_said;
        self.is_refusal_said |= is_refused;
        say
    }
}

impl Open {
    fn first_roll_up_by(&self) -> Time {
        self.hello_answered.unwrap_or(self.since) + FIRST_ROLL_UP_WITHIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn opened(features: &[&str]) -> (Session, SessionId) {
        let mut session = Session::default();
        session.start(at(0));
        let id = session.dial(at(0)).unwrap();
        assert!(session.opened(at(0), id));
        let features: Vec<_> = features.iter().map(|name| (*name).to_owned()).collect();
        session.hello_answered(at(0), id, &features);
        (session, id)
    }

    /// OP-16.
    #[test]
    fn the_first_roll_up_follows_the_resync_but_not_for_ever() {
        let (mut session, id) = opened(&["resync.v1"]);
        assert!(!session.may_roll_up(at(9)));
        assert!(session.may_roll_up(at(10)));
        session.resync_begins(id);
        let machine = MachineId::new("m1").unwrap();
        session.named(id, &machine);
        session.named(id, &machine);
        let resync = session.resync_ends(id, Some(1)).unwrap();
        assert!(resync.is_counted && session.is_counted());
        assert!(session.may_roll_up(at(1)));
        assert_eq!(
            session.resync_ends(id, Some(1)),
            None,
            "no begin came before it"
        );
        let (old, _) = opened(&[]);
        assert!(old.may_roll_up(at(0)));
    }

    /// OP-13.
    #[test]
    fn pauses_grow_up_to_half_a_minute_and_a_good_session_resets_them() {
        let mut jitter = Jitter::new(3);
        let (mut session, mut id) = opened(&[]);
        for _ in 0..10 {
            assert!(!session.closed(at(1), id, false, &mut jitter));
            let until = session.next().unwrap();
            assert!(until <= at(31));
            id = session.dial(until).unwrap();
        }
        assert_eq!(session.backoff, LONGEST_BACKOFF);
        assert!(session.opened(at(100), id));
        session.closed(at(160), id, false, &mut jitter);
        assert!(session.next().unwrap() <= at(160) + FIRST_BACKOFF);
        assert!(
            !session.closed(at(160), id, false, &mut jitter),
            "it is over already"
        );
    }

    #[test]
    fn a_refusal_is_said_once() {
        let mut jitter = Jitter::new(3);
        let (mut session, id) = opened(&[]);
        assert!(session.closed(at(0), id, true, &mut jitter));
        let id = session.dial(at(60)).unwrap();
        assert!(!session.closed(at(60), id, true, &mut jitter));
    }
}
