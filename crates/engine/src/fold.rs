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
    Mistake,
    fleet_tables::{Class, FleetTables, Fold, Folding, NeedEntry, Record},
    index::{
        ClassIndex, ClusterIndex, DimensionIndex, MachineIndex, NeedIndex, ShapeIndex, SlotIndex,
        SupplyIndex,
    },
    requested_amounts::RequestedAmounts,
};
use bigfleet_model::{State, Time};
use std::collections::BTreeMap;

/// How many machines of each shape serve no row, of the clusters asked for.
type Strays = BTreeMap<ClusterIndex, BTreeMap<ShapeIndex, u64>>;

impl FleetTables {
    pub(crate) fn fold(&mut self) {
        if std::mem::take(&mut self.supply_moved) {
            for supply in self.supplies.indexes() {
                let holds = self.count_supply(supply);
                if self.supplies[supply].holds != holds {
                    self.supplies[supply].holds = holds;
                    for class in self.supplies[supply].classes.clone() {
                        self.mark_class(class);
                    }
                }
            }
        }
        self.work.marked += self.dirty_classes.len() as u64;
        let mut strays = Strays::new();
        for class in std::mem::take(&mut self.dirty_classes) {
            self.classes[class].dirty = false;
            let cluster = self.classes[class].cluster;
            self.clusters[cluster].classes_dirty = false;
            if !self.classes[class].members.is_empty() {
                self.fold_class(class, &mut strays);
            }
        }
    }

    fn fold_class(&mut self, class: ClassIndex, strays: &mut Strays) {
        self.work.classes += 1;
        let entry = &self.classes[class];
        let homeless = (entry.members.len() - entry.homed.len()) as u64;
        let room = self.room(class, homeless, strays);
        let fold = if room == homeless {
            Fold::All
        } else {
            Fold::First(room)
        };
        let entry = &mut self.classes[class];
        let before = std::mem::replace(&mut entry.fold, fold);
        let regroup = std::mem::replace(&mut entry.regroup, false);
        let fresh = std::mem::take(&mut entry.fresh);
        if (before, fold) == (Fold::All, Fold::All) {
            // All other members fold as before.
            for gang in fresh {
                let entry = self.need(gang);
                if entry.class == Some(class) {
                    self.set_live(gang, entry.homed);
                }
            }
        } else if regroup || before != fold {
            self.set_members(class, room);
        }
        let folding = Folding {
            members: room,
            arrival: self.earliest_folded(class, room),
            whole: self.folds_whole(class, room),
        };
        let entry = &mut self.classes[class];
        if std::mem::replace(&mut entry.folding, folding) != folding {
            let (slot, folded) = (entry.slot, entry.folded);
            self.set_folded_row(slot, folded);
        }
    }

    /// Folds the first `room` members without machines; the others stay gangs.
    fn set_members(&mut self, class: ClassIndex, mut room: u64) {
        let entry = &mut self.classes[class];
        let mut members = std::mem::take(&mut entry.members);
        if entry.fold != Fold::All {
            members.sort_by(|one, other| self.member_order(*one, *other));
        }
        for member in &members {
            let folds = 0 < room && !self.need(*member).homed;
            room -= u64::from(folds);
            self.set_live(*member, !folds);
        }
        self.classes[class].members = members;
    }

    /// The total order among gangs of a class: only arrival and group differ (O-1).
    fn member_order(&self, one: NeedIndex, other: NeedIndex) -> std::cmp::Ordering {
        let (one, other) = (self.need(one), self.need(other));
        let group = |member: &NeedEntry| self.slots[member.slot].group;
        let by_group = || self.groups.compare(group(one), group(other));
        one.arrival.cmp(&other.arrival).then_with(by_group)
    }

    /// The first `room` members that fold; all there are if the class folds whole.
    fn folding_members(&self, class: ClassIndex, room: u64) -> impl Iterator<Item = &NeedEntry> {
        let Class {
            members,
            homed,
            fold,
            ..
        } = &self.classes[class];
        // If not all fold, members are sorted, and those that fold come first.
        let most = if *fold == Fold::All {
            members.len()
        } else {
            room as usize
        };
        let folds = |member: &&NeedEntry| homed.is_empty() || !member.homed;
        let members = members.iter().map(|member| self.need(*member));
        members.filter(folds).take(most)
    }

    /// The earliest arrival stated among the members that fold (NT-7).
    fn earliest_folded(&self, class: ClassIndex, room: u64) -> Option<Time> {
        // Stops at the earliest possible, which is nearly always the first.
        let earliest = self.classes[class].earliest;
        let mut found = None;
        for member in self.folding_members(class, room) {
            found = Time::earliest(found, member.arrival);
            if found == earliest {
                break;
            }
        }
        found
    }

    /// Whether all members that fold ask for whole units (RF-19).
    fn folds_whole(&self, class: ClassIndex, room: u64) -> bool {
        let Class {
            members, in_parts, ..
        } = &self.classes[class];
        match *in_parts {
            0 => true,
            all if all == members.len() => false,
            _ => {
                let mut folding = self.folding_members(class, room);
                folding.all(|member| member.whole)
            }
        }
    }

    pub(crate) fn set_live(&mut self, need: NeedIndex, live: bool) {
        let entry = self.need(need);
        if entry.is_live() != live {
            self.mark_standing(entry.slot);
            if live {
                self.take_holding(need);
            } else {
                self.drop_holding(need);
            }
            self.mark_need(need);
        }
    }

    /// Makes the folded row ask for as many members as fold to it.
    pub(crate) fn set_folded_row(&mut self, slot: SlotIndex, row: NeedIndex) {
        let classes = self.slots[slot].classes.iter();
        let classes = classes.map(|class| &self.classes[*class]);
        let (mut members, mut arrival, mut whole, mut one) = (0, None, true, None);
        for class in classes.filter(|class| class.folded == row) {
            let folding = class.folding;
            members += folding.members;
            if 0 < folding.members {
                arrival = Time::earliest(arrival, folding.arrival);
                whole &= folding.whole;
            }
            one = Some(&self.supplies[class.supply].wanted);
        }
        let scaled = |(dimension, milli): (DimensionIndex, i128)| {
            (dimension, milli.saturating_mul(i128::from(members.max(1))))
        };
        let wanted: RequestedAmounts = one
            .into_iter()
            .flat_map(|one| one.iter())
            .map(scaled)
            .collect();
        self.set_live(row, 0 < members);
        if 0 < members {
            let usage = self.need(row).usage;
            let whole = whole && self.catalog.count_units(usage);
            self.set_usage(row, usage, whole);
        }
        let entry = &mut self.needs[row];
        entry.arrival = arrival;
        if entry.wanted != wanted {
            self.set_wanted(row, wanted);
        }
    }

    /// How many members the witnesses of a class hold, counted no further than `most`.
    fn room(&mut self, class: ClassIndex, most: u64, strays: &mut Strays) -> u64 {
        let index = self.classes[class].supply;
        if self.supplies[index].most < most {
            self.supplies[index].most = most;
            self.supplies[index].holds = self.count_supply(index);
        }
        let supply = &self.supplies[index];
        let mut room = supply.holds.min(most);
        if room == most {
            return room;
        }
        let usage = &self.catalog.uses[supply.usage];
        let cluster = self.classes[class].cluster;
        let strays = strays.entry(cluster);
        let strays = strays.or_insert_with(|| self.strays_of(cluster));
        let strays = strays.iter().map(|(shape, count)| (*shape, *count));
        for (shape, count) in strays.chain(self.witnesses(class)) {
            if usage.serves(shape) {
                let members = self.members_on(shape, &supply.wanted);
                room = room.saturating_add(members.saturating_mul(count));
            }
            if most <= room {
                return most;
            }
        }
        room
    }

    /// Bound machines of a cluster that serve no row, by shape: witnesses of all its classes.
    fn strays_of(&self, cluster: ClusterIndex) -> BTreeMap<ShapeIndex, u64> {
        let serves_none = |machine: &&MachineIndex| {
            let slot = self.attribution(**machine);
            slot.is_none_or(|slot| !self.slots[slot].is_current())
        };
        let mut strays = BTreeMap::new();
        for machine in self.clusters[cluster].bound.iter().filter(serves_none) {
            let record = self.record(*machine);
            if self.may_witness(record) {
                *strays.entry(record.shape).or_default() += 1;
            }
        }
        strays
    }

    fn may_witness(&self, bound: &Record) -> bool {
        let is_overlooked =
            bound.leaves_soon() && self.mistake == Some(Mistake::LeavingIsNoWitness);
        !bound.unfit && !is_overlooked
    }

    /// The witnesses of one class: machines bound for its folded row, or on their way to it.
    fn witnesses(&self, class: ClassIndex) -> impl Iterator<Item = (ShapeIndex, u64)> {
        let Class { slot, cluster, .. } = self.classes[class];
        let is_witness = move |machine: &MachineIndex| {
            let record = self.record(*machine);
            let is_bound = record.cluster == Some(cluster) && self.may_witness(record);
            is_bound || record.state.is_some_and(State::may_hold_intent)
        };
        let machines = self.attributed(slot).into_iter().filter(is_witness);
        machines.map(|machine| (self.record(machine).shape, 1))
    }

    fn count_supply(&self, supply: SupplyIndex) -> u64 {
        let supply = &self.supplies[supply];
        let mut holds = 0_u64;
        for shape in self.catalog.by_price(supply.usage) {
            if supply.most <= holds {
                break;
            }
            let machines = u64::from(self.stocks[shape].unpromised);
            let each = self.members_on(shape, &supply.wanted);
            holds = holds.saturating_add(machines.saturating_mul(each));
        }
        holds.min(supply.most)
    }

    /// How many whole members a machine of this shape holds; any number if a member wants nothing.
    fn members_on(&self, shape: ShapeIndex, wanted: &RequestedAmounts) -> u64 {
        let shape = &self.catalog.shapes[shape];
        let fits = |(dimension, milli): (DimensionIndex, i128)| {
            i128::from(shape.amount(dimension)) / milli
        };
        let members = wanted.iter().map(fits).min();
        members.map_or(u64::MAX, |members| members as u64)
    }
}
