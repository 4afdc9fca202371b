//! Queue: everything that is to be written, and the one token bucket it waits for (OP-10).
//!
//! ```text
//! push(class, slot) ─▶ waiting, newest per slot ─▶ a token ─▶ in flight, one per slot ─▶ ended
//!                                                                                  └─▶ later, after a rest
//! ```
//!
//! Classes go in order: evictions and Nodes, UpcomingNodes, acknowledgements, hints. Each gets at least a tenth, so a flood of one
//! cannot starve another. A slot is one thing about one object: a newer write of it replaces one that has not left, so
//! the queue is never longer than there are objects. A `Throttled` answer rests all of it.

use crate::{
    effect::{Effect, Eviction, Write},
    event::EffectId,
};
use bigfleet_model::{MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// One in so many tokens goes round the classes in turn.
const SHARE: u64 = 10;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WriteClass {
    /// Evictions and Nodes.
    Nodes,
    /// UpcomingNodes.
    Upcoming,
    /// Acknowledgements and conditions of requests.
    Requests,
    /// AvailableCapacities.
    Hints,
}

impl WriteClass {
    const ALL: [Self; 4] = [Self::Nodes, Self::Upcoming, Self::Requests, Self::Hints];

    fn index(self) -> usize {
        self as usize
    }
}

/// Something to send to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Write(Write),
    Evict {
        machine: MachineId,
        eviction: Eviction,
    },
}

/// One thing about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(&'static str, String);

impl Item {
    pub(crate) fn slot(&self) -> Slot {
        match self {
            Self::Evict { eviction, .. } => Slot("evict", eviction.uid.clone()),
            Self::Write(write) => match write {
                Write::Acknowledge { request, .. } => Slot("acknowledge", request.to_string()),
                Write::Serve { request, .. } => Slot("serve", request.to_string()),
                Write::CordonNode { node, .. } | Write::ReleaseNode { node, .. } => {
                    Slot("drain", node.clone())
                }
                Write::LabelNode { node, .. } => Slot("label", node.clone()),
                Write::DeleteNode { node, .. } => Slot("delete", node.clone()),
                Write::ApplyUpcoming { name, .. } | Write::DeleteUpcoming { name } => {
                    Slot("upcoming", name.clone())
                }
                Write::ApplyAvailable { name, .. } | Write::DeleteAvailable { name } => {
                    Slot("available", name.clone())
                }
                Write::SpareRecord { .. } => Slot("spare", String::new()),
            },
        }
    }

    fn class(&self) -> WriteClass {
        match self {
            Self::Evict { .. } => WriteClass::Nodes,
            Self::Write(write) => match write {
                Write::CordonNode { .. }
                | Write::ReleaseNode { .. }
                | Write::LabelNode { .. }
                | Write::DeleteNode { .. }
                | Write::SpareRecord { .. } => WriteClass::Nodes,
                Write::ApplyUpcoming { .. } | Write::DeleteUpcoming { .. } => WriteClass::Upcoming,
                Write::Acknowledge { .. } | Write::Serve { .. } => WriteClass::Requests,
                Write::ApplyAvailable { .. } | Write::DeleteAvailable { .. } => WriteClass::Hints,
            },
        }
    }
}

/// What is to be written.
#[derive(Clone, Debug)]
pub(crate) struct WriteQueue {
    qps: u64,
    burst: u64,
    /// In flight at once, by class.
    widths: [usize; 4],
    /// Tokens, in nano-tokens, as of `refilled`.
    tokens: u128,
    refilled: Time,
    waiting: [VecDeque<Slot>; 4],
    items: BTreeMap<Slot, Item>,
    in_flight: BTreeMap<EffectId, Item>,
    busy: BTreeSet<Slot>,
    flying: [usize; 4],
    spent: u64,
    rest: Duration,
    resting_until: Option<Time>,
    /// Items that failed, and when each is tried again.
    later: BTreeMap<Slot, (Time, Item)>,
    failures: BTreeMap<Slot, u32>,
}

const TOKEN: u128 = 1_000_000_000;

impl WriteQueue {
    pub(crate) fn new(qps: u32, burst: u32, ack_concurrency: usize) -> Self {
        let burst = u64::from(burst.max(1));
        Self {
            qps: u64::from(qps.max(1)),
            burst,
            widths: [1024, 32, ack_concurrency.max(1), 8],
            tokens: u128::from(burst) * TOKEN,
            refilled: Time::ZERO,
            waiting: Default::default(),
            items: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            busy: BTreeSet::new(),
            flying: [0; 4],
            spent: 0,
            rest: Duration::ZERO,
            resting_until: None,
            later: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Adds an item; it replaces one of its slot that has not left.
    pub(crate) fn push(&mut self, item: Item) {
        let slot = item.slot();
        self.later.remove(&slot);
        let class = item.class().index();
        if self.items.insert(slot.clone(), item).is_none() {
            self.waiting[class].push_back(slot);
        }
    }

    /// Takes an item of this slot back, if it has not left.
    pub(crate) fn withdraw(&mut self, slot: &Slot) {
        self.later.remove(slot);
        if self.items.remove(slot).is_some() {
            for waiting in &mut self.waiting {
                waiting.retain(|other| other != slot);
            }
        }
    }

    /// How many more of requests' writes may wait before they only make the queue longer.
    pub(crate) fn room_for_requests(&self) -> usize {
        let class = WriteClass::Requests.index();
        self.widths[class].saturating_sub(self.waiting[class].len() + self.flying[class])
    }

    pub(crate) fn is_pending(&self, slot: &Slot) -> bool {
        self.items.contains_key(slot) || self.busy.contains(slot) || self.later.contains_key(slot)
    }

    /// Sends what there are tokens for.
    pub(crate) fn release(
        &mut self,
        now: Time,
        next_id: &mut impl FnMut() -> EffectId,
        effects: &mut Vec<Effect>,
    ) {
        self.refill(now);
        let is_due = |(_, (at, _)): &(&Slot, &(Time, Item))| *at <= now;
        let due: Vec<Slot> = self
            .later
            .iter()
            .filter(is_due)
            .map(|(slot, _)| slot.clone())
            .collect();
        for slot in due {
            if let Some((_, item)) = self.later.remove(&slot) {
                self.push(item);
            }
        }
        if self.resting_until.is_some_and(|until| now < until) {
            return;
        }
        self.resting_until = None;
        while TOKEN <= self.tokens {
            let Some(item) = self.take() else { break };
            self.tokens -= TOKEN;
            let id = next_id();
            self.busy.insert(item.slot());
            self.flying[item.class().index()] += 1;
            self.in_flight.insert(id, item.clone());
            effects.push(match item {
                Item::Write(write) => Effect::Write(id, write),
                Item::Evict { eviction, .. } => Effect::Evict(id, eviction),
            });
        }
    }

    /// The first of the first class; every tenth token asks another class first.
    fn take(&mut self) -> Option<Item> {
        let turn = (self.spent / SHARE) as usize % WriteClass::ALL.len();
        let favoured = (self.spent % SHARE == SHARE - 1).then_some(turn);
        let order = favoured.into_iter().chain(0..WriteClass::ALL.len());
        for class in order {
            if self.widths[class] <= self.flying[class] {
                continue;
            }
            let is_free = |slot: &Slot| !self.busy.contains(slot);
            let Some(at) = self.waiting[class].iter().position(is_free) else {
                continue;
            };
            let slot = self.waiting[class].remove(at)?;
            self.spent += 1;
            return self.items.remove(&slot);
        }
        None
    }

    fn refill(&mut self, now: Time) {
        let nanos = now.duration_since(self.refilled).as_nanos();
        self.refilled = self.refilled.max(now);
        let full = u128::from(self.burst) * TOKEN;
        self.tokens = (self.tokens + nanos.saturating_mul(self.qps.into())).min(full);
    }

    /// When more may leave; `None` if nothing waits for the clock.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        let later = self.later.values().map(|(at, _)| *at).min();
        Time::earliest(later, self.next_token(now))
    }

    fn next_token(&self, now: Time) -> Option<Time> {
        if self.items.is_empty() {
            return None;
        }
        if let Some(until) = self.resting_until.filter(|until| now < *until) {
            return Some(until);
        }
        let missing = TOKEN.saturating_sub(self.tokens);
        let nanos = missing.div_ceil(self.qps.into());
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        (0 < nanos).then(|| now + Duration::from_nanos(nanos))
    }

    /// An effect ended: what it was.
    pub(crate) fn ended(&mut self, id: EffectId) -> Option<Item> {
        let item = self.in_flight.remove(&id)?;
        self.busy.remove(&item.slot());
        self.flying[item.class().index()] -= 1;
        Some(item)
    }

    /// The API server answered something else than "later".
    pub(crate) fn is_well(&mut self) {
        self.rest = Duration::ZERO;
    }

    /// The item came to its end.
    pub(crate) fn settled(&mut self, item: &Item) {
        self.failures.remove(&item.slot());
    }

    /// The item failed for a reason of its own: it is tried again after a pause that grows, unless a newer one is there.
    pub(crate) fn failed(&mut self, now: Time, item: Item) {
        let slot = item.slot();
        let failures = self.failures.entry(slot.clone()).or_default();
        let pause = FIRST_REST * 2_u32.saturating_pow((*failures).min(8));
        *failures += 1;
        if !self.items.contains_key(&slot) {
            self.later
                .insert(slot, (now + pause.min(LONGEST_REST), item));
        }
    }

    /// OP-9: the API server asks for a pause; nothing leaves for as long as it says, and longer each time.
    pub(crate) fn throttled(&mut self, now: Time, retry_after: Option<Duration>) {
        let next = (self.rest * 2).clamp(FIRST_REST, LONGEST_REST);
        self.rest = next;
        let until = now + next.max(retry_after.unwrap_or_default());
        self.resting_until = self.resting_until.max(Some(until));
    }

    /// Puts an item that was refused for now back in its place, unless a newer one is there.
    pub(crate) fn put_back(&mut self, item: Item) {
        let slot = item.slot();
        if !self.items.contains_key(&slot) {
            let class = item.class().index();
            self.items.insert(slot.clone(), item);
            self.waiting[class].push_front(slot);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.items.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(class: WriteClass, name: usize) -> Item {
        let name = name.to_string();
        Item::Write(match class {
            WriteClass::Nodes => Write::DeleteNode {
                node: name,
                uid: String::new(),
            },
            WriteClass::Upcoming => Write::DeleteUpcoming { name },
            WriteClass::Requests => Write::Acknowledge {
                request: crate::objects::ObjectKey::cluster(&name),
                uid: String::new(),
                at: Time::ZERO,
                has_status: false,
            },
            WriteClass::Hints => Write::DeleteAvailable { name },
        })
    }

    fn released(queue: &mut WriteQueue, now: Time) -> Vec<(EffectId, Write)> {
        let mut effects = Vec::new();
        let mut id = queue.spent;
        let mut next_id = || {
            id += 1;
            EffectId(id)
        };
        queue.release(now, &mut next_id, &mut effects);
        let write = |effect| match effect {
            Effect::Write(id, write) => (id, write),
            other => unreachable!("{other:?}"),
        };
        effects.into_iter().map(write).collect()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// OP-10: in order, and yet nobody starves.
    #[test]
    fn classes_go_in_order_and_each_gets_its_share() {
        let mut queue = WriteQueue::new(1, 100, 1000);
        queue.widths = [1000; 4];
        for class in WriteClass::ALL {
            (0..200).for_each(|name| queue.push(delete(class, name)));
        }
        let sent = released(&mut queue, at(0));
        assert_eq!(sent.len(), 100);
        let of = |class: WriteClass| {
            let is_of = |write: &Write| Item::Write(write.clone()).class() == class;
            sent.iter().filter(|(_, write)| is_of(write)).count()
        };
        assert_eq!(WriteClass::ALL.map(of), [93, 3, 2, 2]);
    }

    #[test]
    fn tokens_come_back_with_time_and_no_more_than_the_burst() {
        let mut queue = WriteQueue::new(10, 2, 16);
        (0..9).for_each(|name| queue.push(delete(WriteClass::Nodes, name)));
        assert_eq!(released(&mut queue, at(0)).len(), 2);
        assert_eq!(queue.next(at(0)), Some(at(100)));
        assert_eq!(released(&mut queue, at(99)).len(), 0);
        assert_eq!(released(&mut queue, at(100)).len(), 1);
        assert_eq!(released(&mut queue, at(60_000)).len(), 2);
    }

    #[test]
    fn a_newer_write_replaces_one_that_waits_and_follows_one_in_flight() {
        let mut queue = WriteQueue::new(1, 10, 16);
        let apply = delete(WriteClass::Upcoming, 1);
        queue.push(apply.clone());
        queue.push(apply.clone());
        let sent = released(&mut queue, at(0));
        assert_eq!(sent.len(), 1);
        queue.push(apply.clone());
        assert_eq!(released(&mut queue, at(0)).len(), 0, "one at a time");
        assert_eq!(queue.ended(sent[0].0), Some(apply.clone()));
        assert_eq!(queue.ended(sent[0].0), None);
        assert_eq!(released(&mut queue, at(0)).len(), 1);
        queue.push(apply.clone());
        queue.withdraw(&apply.slot());
        assert_eq!(queue.waiting(), 0);
    }

    /// OP-9.
    #[test]
    fn a_pause_is_kept_and_grows_until_the_server_is_well() {
        let mut queue = WriteQueue::new(100, 100, 16);
        queue.push(delete(WriteClass::Nodes, 1));
        queue.throttled(at(0), Some(Duration::from_secs(3)));
        assert_eq!(queue.next(at(0)), Some(at(3_000)));
        assert_eq!(released(&mut queue, at(2_999)).len(), 0);
        let sent = released(&mut queue, at(3_000));
        let item = queue.ended(sent[0].0).unwrap();
        queue.put_back(item);
        queue.throttled(at(3_000), None);
        assert_eq!(queue.next(at(3_000)), Some(at(5_000)), "twice as long");
        queue.is_well();
        queue.throttled(at(9_000), None);
        assert_eq!(queue.next(at(9_000)), Some(at(10_000)));
    }
}
