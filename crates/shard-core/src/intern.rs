//! Interning: one copy and one number for values that are equal and compared often.
//!
//! ```text
//! an Arc of the table, or the last other ─ by its address ─▶ number     any other ─ by its value ─▶ number
//! ```
//!
//! Profiles and shapes are long texts; comparing them row by row was most of what a roll-up cost. The
//! address is only ever looked up, never ordered by, so it cannot reach a decision. A value nobody
//! uses any more is forgotten and its number given out again.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// The values in use.
#[derive(Clone)]
pub(crate) struct Interned<T> {
    by_value: BTreeMap<Arc<T>, u32>,
    by_address: BTreeMap<usize, u32>,
    slots: Vec<Option<(Arc<T>, u32)>>,
    /// The last value that was found equal to one of the table: who reads many has few copies.
    last: Option<(Arc<T>, u32)>,
    free: Vec<u32>,
    /// How often a value came in that was not there.
    arrivals: u64,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            by_value: BTreeMap::new(),
            by_address: BTreeMap::new(),
            slots: Vec::new(),
            last: None,
            free: Vec::new(),
            arrivals: 0,
        }
    }
}

/// Without the last one found, and without addresses: who holds the same values under the same numbers is
/// the same, however it was asked.
impl<T: fmt::Debug> fmt::Debug for Interned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interned")
            .field("slots", &self.slots)
            .field("free", &self.free)
            .field("arrivals", &self.arrivals)
            .finish_non_exhaustive()
    }
}

fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value).addr()
}

impl<T: Ord> Interned<T> {
    /// The number of a value that is there, or of one that was found equal to it last.
    fn find(&self, value: &Arc<T>) -> Option<u32> {
        let last = self
            .last
            .as_ref()
            .filter(|(one, _)| Arc::ptr_eq(one, value));
        let by_address = last.map(|(_, number)| number);
        let by_address = by_address.or_else(|| self.by_address.get(&address(value)));
        by_address.copied()
    }

    /// The number of a value, which is not counted as used yet.
    pub(crate) fn number(&mut self, value: &Arc<T>) -> u32 {
        if let Some(number) = self.find(value) {
            return number;
        }
        if let Some(number) = self.by_value.get(value).copied() {
            self.last = Some((Arc::clone(value), number));
            return number;
        }
        self.arrivals += 1;
        let slot = Some((Arc::clone(value), 0));
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_value.insert(Arc::clone(value), number);
        self.by_address.insert(address(value), number);
        number
    }

    /// How often a value came in that was not there: a number stands for one value until that changes.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The table's own copy of a value.
    pub(crate) fn get(&self, number: u32) -> Option<&Arc<T>> {
        let slot = self.slots.get(number as usize)?.as_ref()?;
        Some(&slot.0)
    }

    /// One more use.
    pub(crate) fn keep(&mut self, number: u32) {
        if let Some(Some((_, uses))) = self.slots.get_mut(number as usize) {
            *uses += 1;
        }
    }

    /// One use less; the last one ends it.
    pub(crate) fn leave(&mut self, number: u32) {
        if let Some(Some((_, uses))) = self.slots.get_mut(number as usize) {
            *uses = uses.saturating_sub(1);
        }
        self.forget_unused(number);
    }

    /// Forgets a value nobody uses; true if it is gone.
    pub(crate) fn forget_unused(&mut self, number: u32) -> bool {
        let Some(slot) = self.slots.get_mut(number as usize) else {
            return true;
        };
        let Some((value, _)) = slot.take_if(|(_, uses)| *uses == 0) else {
            return slot.is_none();
        };
        self.last = self.last.take().filter(|(_, last)| *last != number);
        self.by_value.remove(&value);
        self.by_address.remove(&address(&value));
        self.free.push(number);
        true
    }

    /// Everything that is there, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<T>)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, slot)| Some((at as u32, &slot.as_ref()?.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_unused_ones_make_room() {
        let mut table = Interned::default();
        let (one, same, other) = (Arc::new("a"), Arc::new("a"), Arc::new("b"));
        let number = table.number(&one);
        assert_eq!(table.number(&same), number);
        assert_eq!(table.number(&same), number, "found by its address now");
        assert!(Arc::ptr_eq(table.get(number).unwrap(), &one));
        table.keep(number);
        assert!(!table.forget_unused(number));
        table.leave(number);
        assert_eq!(table.get(number), None);
        assert_eq!(table.number(&other), number, "its number is free again");
        assert_eq!((table.arrivals, table.iter().count()), (2, 1));
        assert_ne!(table.number(&one), number);
        assert_ne!(table.number(&same), number, "not by what it was before");
    }
}
