//! Slab: things by number, where the number of one that is gone is given to the next.

use std::ops::{Index, IndexMut};

/// Things by number.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts a thing in and returns its number; it is made knowing whom it takes the place of.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Option<&T>) -> T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                let thing = make(Some(&self[number]));
                self[number] = thing;
                number
            }
            None => {
                self.items.push(make(None));
                (self.items.len() - 1) as u32
            }
        }
    }

    /// Gives a number back. The thing stays readable until the number is used again.
    pub(crate) fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    /// The thing with this number, if it is one.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.items.get_mut(number as usize)
    }

    /// Every number ever given.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.items.len() as u32
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }
}
