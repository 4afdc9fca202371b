//! Streams: lists and watches between the API server and whoever follows, and how they break (OP-1, OP-3).
//!
//! ```text
//! open ─▶ Began ─▶ one object after another ─▶ Whole ─▶ changes, bookmarks ─▶ cut ─▶ open again
//!           └── cut before Whole: begins anew                                  └─ 410: begins anew
//! ```
//!
//! What is on its way when a stream is cut is lost; it goes on from the last version that arrived.

use super::store::{Resource, Store, StoreChange, Stored};
use crate::{
    clock::{Moment, seconds},
    dice::Dice,
};
use bigfleet_operator_core::{EffectId, Kind};
use std::{collections::BTreeMap, sync::Arc};

/// Bookmarks are so far apart.
const BOOKMARK_EVERY: u64 = seconds(60);

/// What a stream brings.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Began,
    /// An object of a list, as of a version.
    Listed(Box<Stored>, u64),
    Changed(Arc<StoreChange>),
    Whole(u64),
    Fresh(u64),
    Broken,
}

/// Who follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Follower {
    /// An operator's process follows a kind.
    Operator(u64, Kind),
    /// An operator's process follows the Pods of a Node.
    NodePods(u64, EffectId, String),
    /// The pod controller follows a kind.
    Controller(u64, Resource),
}

impl Follower {
    fn resource(&self) -> Resource {
        match self {
            Self::Operator(_, Kind::Request) => Resource::Requests,
            Self::Operator(_, Kind::Upcoming) => Resource::Upcoming,
            Self::Operator(_, Kind::Available) => Resource::Available,
            Self::Operator(_, Kind::Node) => Resource::Nodes,
            Self::NodePods(..) => Resource::Pods,
            Self::Controller(_, resource) => *resource,
        }
    }

    fn sees(&self, object: &Stored) -> bool {
        match (self, object) {
            (Self::NodePods(_, _, node), Stored::Pod(pod)) => pod.node == *node,
            _ => true,
        }
    }
}

#[derive(Clone, Debug)]
struct Stream {
    follower: Follower,
    /// Whatever was sent in an earlier life does not arrive.
    life: u64,
    is_open: bool,
    /// The version that has arrived; `None` until a list is whole.
    arrived: Option<u64>,
    /// When the last message arrives.
    last: Moment,
    failures: u32,
}

/// Something a stream does later.
#[derive(Clone, Debug)]
pub(crate) enum StreamEvent {
    Opens,
    Brings(Box<News>),
    Bookmark,
    /// It breaks by itself.
    Breaks,
}

/// When a stream does it; in order among its own.
pub(crate) type Planned = (Moment, u64, u64, StreamEvent);

/// What goes wrong with streams: chances in a thousand, and how far breaks are apart on average in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamWeather {
    pub(crate) breaks_every: u64,
    /// A stream that goes on is told that its version is gone.
    pub(crate) gone: u64,
    /// A list does not come to its end.
    pub(crate) list_cut: u64,
}

/// Every stream of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    streams: BTreeMap<u64, Stream>,
    count: u64,
    /// Until when nothing arrives.
    pub(crate) held_until: Moment,
}

impl Streams {
    /// Begins to follow.
    pub(crate) fn follow(&mut self, now: Moment, follower: Follower, later: &mut Vec<Planned>) {
        let same = self
            .streams
            .iter()
            .find(|(_, one)| one.follower == follower);
        let same = same.map(|(id, _)| *id);
        same.into_iter().for_each(|id| self.forget(id));
        self.count += 1;
        let stream = Stream {
            follower,
            life: 1,
            is_open: false,
            arrived: None,
            last: now,
            failures: 0,
        };
        self.streams.insert(self.count, stream);
        later.push((now.after(1), self.count, 1, StreamEvent::Opens));
    }

    fn forget(&mut self, id: u64) {
        self.streams.remove(&id);
    }

    /// Whoever is meant follows no more.
    pub(crate) fn end(&mut self, is_meant: impl Fn(&Follower) -> bool) {
        self.streams.retain(|_, stream| !is_meant(&stream.follower));
    }

    pub(crate) fn follower(&self, id: u64, life: u64) -> Option<&Follower> {
        let stream = self.streams.get(&id).filter(|stream| stream.life == life)?;
        Some(&stream.follower)
    }

    /// A call reaches the API server: a list, or a watch from the version that has arrived.
    pub(crate) fn opens(
        &mut self,
        now: Moment,
        id: u64,
        store: &Store,
        weather: StreamWeather,
        dice: &mut Dice,
        later: &mut Vec<Planned>,
    ) -> Option<&'static str> {
        let held_until = self.held_until;
        let stream = self.streams.get_mut(&id)?;
        stream.is_open = true;
        stream.last = stream.last.max(now).max(held_until);
        let life = stream.life;
        if 0 < weather.breaks_every {
            let at = now.after(dice.interval(weather.breaks_every));
            later.push((at, id, life, StreamEvent::Breaks));
        }
        let phase = dice.between(0, BOOKMARK_EVERY);
        later.push((now.after(phase), id, life, StreamEvent::Bookmark));
        let is_gone = dice.per_mille(weather.gone);
        let changed = stream.arrived.filter(|_| !is_gone);
        if let Some(changes) = changed.and_then(|version| store.since(version)) {
            stream.failures = 0;
            let resource = stream.follower.resource();
            for change in changes.into_iter().filter(|one| one.resource == resource) {
                send_change(stream, id, now, change, dice, later);
            }
            return None;
        }
        let had = stream.arrived.take().is_some();
        let struck = list(stream, id, now, store, weather, dice, later);
        struck.or(had.then_some("watch gone"))
    }

    /// Objects changed: every stream that shows them will.
    pub(crate) fn changed(
        &mut self,
        now: Moment,
        change: &Arc<StoreChange>,
        dice: &mut Dice,
        later: &mut Vec<Planned>,
    ) {
        let held_until = self.held_until;
        for (id, stream) in &mut self.streams {
            if stream.is_open && stream.follower.resource() == change.resource {
                stream.last = stream.last.max(held_until);
                send_change(stream, *id, now, Arc::clone(change), dice, later);
            }
        }
    }

    /// A bookmark leaves.
    pub(crate) fn bookmark(
        &mut self,
        now: Moment,
        id: u64,
        version: u64,
        dice: &mut Dice,
        later: &mut Vec<Planned>,
    ) {
        let held_until = self.held_until;
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.is_open) else {
            return;
        };
        stream.last = stream.last.max(held_until);
        if stream.arrived.is_some() {
            send(stream, id, now, News::Fresh(version), dice, later);
        }
        let next = now.after(BOOKMARK_EVERY);
        later.push((next, id, stream.life, StreamEvent::Bookmark));
    }

    /// Something arrived.
    pub(crate) fn arrived(&mut self, id: u64, news: &News) {
        if let Some(stream) = self.streams.get_mut(&id) {
            match news {
                News::Whole(version) => stream.arrived = Some(*version),
                News::Changed(change) => {
                    // During a list nothing counts until it is whole.
                    stream.arrived = stream.arrived.map(|_| change.version);
                }
                News::Fresh(version) => stream.arrived = stream.arrived.map(|_| *version),
                News::Began | News::Listed(..) | News::Broken => {}
            }
        }
    }

    /// A stream is cut, and opened again a little later.
    pub(crate) fn cut(
        &mut self,
        now: Moment,
        id: u64,
        dice: &mut Dice,
        later: &mut Vec<Planned>,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(&id) else {
            return false;
        };
        let was_open = std::mem::replace(&mut stream.is_open, false);
        stream.life += 1;
        stream.last = now;
        let longest = 200_u64 << stream.failures.min(7);
        stream.failures += 1;
        let again = now.after(dice.between(1, longest.min(seconds(30))));
        later.push((again, id, stream.life, StreamEvent::Opens));
        was_open
    }

    /// The streams there are.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.streams.keys().copied().collect()
    }

    pub(crate) fn life(&self, id: u64) -> u64 {
        self.streams.get(&id).map_or(0, |stream| stream.life)
    }
}

/// Sends all objects there are; a list that is cut ends before its mark. What struck, if something did.
fn list(
    stream: &mut Stream,
    id: u64,
    now: Moment,
    store: &Store,
    weather: StreamWeather,
    dice: &mut Dice,
    later: &mut Vec<Planned>,
) -> Option<&'static str> {
    let mut objects = store.list(stream.follower.resource());
    objects.retain(|object| stream.follower.sees(object));
    let is_cut = dice.per_mille(weather.list_cut);
    if is_cut {
        objects.truncate(dice.below(objects.len() + 1));
    }
    let version = store.version();
    send(stream, id, now, News::Began, dice, later);
    for object in objects {
        let news = News::Listed(Box::new(object), version);
        stream.last = stream.last.after(1);
        let planned = StreamEvent::Brings(Box::new(news));
        later.push((stream.last, id, stream.life, planned));
    }
    if is_cut {
        let at = stream.last.after(1);
        later.push((at, id, stream.life, StreamEvent::Breaks));
        return Some("list cut");
    }
    send(stream, id, now, News::Whole(version), dice, later);
    None
}

fn send_change(
    stream: &mut Stream,
    id: u64,
    now: Moment,
    change: Arc<StoreChange>,
    dice: &mut Dice,
    later: &mut Vec<Planned>,
) {
    if stream.follower.sees(&change.object) {
        send(stream, id, now, News::Changed(change), dice, later);
    }
}

/// Messages of one stream arrive in the order they were sent.
fn send(
    stream: &mut Stream,
    id: u64,
    now: Moment,
    news: News,
    dice: &mut Dice,
    later: &mut Vec<Planned>,
) {
    let drawn = now.after(dice.between(1, 80));
    stream.last = stream.last.after(1).max(drawn);
    let planned = StreamEvent::Brings(Box::new(news));
    later.push((stream.last, id, stream.life, planned));
}
