//! Fold: gangs that fit one machine each become one plain row (RF-12).
//!
//! ```text
//! class (cluster, profile, aggregate) ── as many members as machines can hold whole ──▶ folded row
//!    └─ a gang that has machines of its own, or comes too late in the order ──▶ stays a gang
//! ```
//!
//! What the free machines of the shard hold is counted once per (profile, aggregate), and only as
//! far as the largest class could use: with supply in plenty that is the first shape looked at.

use crate::{
    NONE,
    book::{Book, ClassIx, Fold, MachineIx},
    tables::{ShapeIx, Wanted},
};
use bigfleet_model::{State, Time};

impl Book {
    pub(crate) fn fold(&mut self) {
        if std::mem::take(&mut self.supply_moved) {
            for supply in 0..self.supplies.len() as u32 {
                let holds = self.count_supply(supply);
                if self.supplies[supply as usize].holds != holds {
                    self.supplies[supply as usize].holds = holds;
                    for class in self.supplies[supply as usize].classes.clone() {
                        self.mark_class(class);
                    }
                }
            }
        }
        for class in std::mem::take(&mut self.dirty_classes) {
            self.classes[class as usize].dirty = false;
            if !self.classes[class as usize].members.is_empty() {
                self.fold_class(class);
            }
        }
    }

    fn fold_class(&mut self, class: ClassIx) {
        self.work.classes += 1;
        let entry = &self.classes[class as usize];
        let homeless = (entry.members.len() - entry.homed.len()) as u64;
        let room = self.room(class, homeless);
        let fold = if room == homeless { Fold::All } else { Fold::First(room) };
        let entry = &mut self.classes[class as usize];
        let before = std::mem::replace(&mut entry.fold, fold);
        let regroup = std::mem::replace(&mut entry.regroup, false);
        let members = std::mem::take(&mut entry.members);
        if regroup || before != fold {
            let mut left = room;
            for gang in &members {
                let folds = 0 < left && !self.need(*gang).homed;
                left -= u64::from(folds);
                self.set_live(*gang, !folds);
            }
        }
        // By arrival, so the first that states one is the earliest (NT-7).
        let homeless = members.iter().map(|gang| self.need(*gang)).filter(|gang| !gang.homed);
        let mut arrivals = homeless.take(room as usize).map(|gang| gang.arrival);
        let arrival = arrivals.find(|arrival| *arrival != Time::ZERO);
        let arrival = arrival.unwrap_or(Time::ZERO);
        self.classes[class as usize].members = members;
        self.set_folded_row(class, room as i64, arrival);
    }

    fn set_live(&mut self, need: u32, live: bool) {
        let entry = &mut self.needs[need as usize];
        if std::mem::replace(&mut entry.live, live) != live {
            let slot = entry.slot;
            self.release(need);
            self.mark_need(need);
            self.dirty_slots.push(slot);
        }
    }

    fn set_folded_row(&mut self, class: ClassIx, members: i64, arrival: Time) {
        let row = self.classes[class as usize].folded;
        let supply = &self.supplies[self.classes[class as usize].supply as usize];
        let scaled = |(dimension, milli): &(u32, i128)| {
            (*dimension, milli.saturating_mul(i128::from(members.max(1))))
        };
        let wanted: Wanted = supply.wanted.iter().map(scaled).collect();
        self.set_live(row, 0 < members);
        let entry = &mut self.needs[row as usize];
        if entry.wanted != wanted || entry.arrival != arrival {
            (entry.wanted, entry.arrival) = (wanted, arrival);
            self.mark_need(row);
        }
    }

    /// How many members the witnesses of a class hold, counted no further than `most`.
    fn room(&mut self, class: ClassIx, most: u64) -> u64 {
        let number = self.classes[class as usize].supply;
        if self.supplies[number as usize].most < most {
            self.supplies[number as usize].most = most;
            self.supplies[number as usize].holds = self.count_supply(number);
        }
        let supply = &self.supplies[number as usize];
        let mut room = supply.holds.min(most);
        if room == most {
            return room;
        }
        let usage = &self.tables.uses[supply.usage as usize];
        for machine in self.witnesses(class) {
            let shape = self.record(machine).shape;
            if usage.serves(shape) {
                room = room.saturating_add(self.members_on(shape, &supply.wanted));
            }
            if most <= room {
                return most;
            }
        }
        room
    }

    /// The cluster's own witnesses: bound machines that serve no other row, and machines on their
    /// way to the class's folded row.
    fn witnesses(&self, class: ClassIx) -> Vec<MachineIx> {
        let class = &self.classes[class as usize];
        let serves_no_other = |machine: &MachineIx| {
            let slot = self.attribution(*machine);
            slot == NONE || slot == class.slot || !self.slots[slot as usize].is_current()
        };
        let bound = self.clusters[class.cluster as usize].bound.iter().copied();
        let bound = bound.filter(|machine| !self.record(*machine).not_ready);
        let promised = self.attributed(class.slot).into_iter();
        let promised = promised.filter(|machine| {
            self.record(*machine).state.is_some_and(State::may_hold_intent)
        });
        bound.filter(serves_no_other).chain(promised).collect()
    }

    fn count_supply(&self, supply: u32) -> u64 {
        let supply = &self.supplies[supply as usize];
        let mut holds = 0_u64;
        for shape in &self.tables.uses[supply.usage as usize].by_price {
            if supply.most <= holds {
                break;
            }
            let machines = u64::from(self.stocks[*shape as usize].unpromised);
            let each = self.members_on(*shape, &supply.wanted);
            holds = holds.saturating_add(machines.saturating_mul(each));
        }
        holds.min(supply.most)
    }

    /// How many whole members a machine of this shape holds; of an empty one, any number.
    fn members_on(&self, shape: ShapeIx, wanted: &Wanted) -> u64 {
        let shape = &self.tables.shapes[shape as usize];
        let fits = |(dimension, milli): &(u32, i128)| i128::from(shape.amount(*dimension)) / milli;
        let members = wanted.iter().map(fits).min();
        members.map_or(u64::MAX, |members| members as u64)
    }
}
