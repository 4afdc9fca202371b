//! Slim lists: sixteen bytes for a list that nearly always has one thing or none.
//!
//! There are half a million slots with three of them each, and a [`Vec`] is half as large again, before the one thing in it takes a
//! piece of memory of its own.

use std::{ops::Deref, slice};

#[derive(Clone, Debug)]
pub(crate) enum SlimList<T> {
    AtMostOne(Option<T>),
    More(Box<[T]>),
}

impl<T> Default for SlimList<T> {
    fn default() -> Self {
        Self::AtMostOne(None)
    }
}

impl<T> Deref for SlimList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::AtMostOne(thing) => thing.as_slice(),
            Self::More(things) => things,
        }
    }
}

impl<T: Copy> SlimList<T> {
    pub(crate) fn push(&mut self, thing: T) {
        *self = if self.is_empty() {
            Self::AtMostOne(Some(thing))
        } else {
            Self::More(self.iter().copied().chain([thing]).collect())
        };
    }

    pub(crate) fn retain(&mut self, stays: impl FnMut(&T) -> bool) {
        match self {
            Self::AtMostOne(thing) => *thing = thing.filter(stays),
            Self::More(things) => {
                let mut rest = std::mem::take(things).into_vec();
                rest.retain(stays);
                *self = if rest.len() <= 1 {
                    Self::AtMostOne(rest.pop())
                } else {
                    Self::More(rest.into())
                };
            }
        }
    }
}

impl<'a, T> IntoIterator for &'a SlimList<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::NeedIndex;

    #[test]
    fn any_number_of_things_comes_out_as_it_went_in() {
        let mut list: SlimList<usize> = SlimList::default();
        for thing in 0..6 {
            assert_eq!(*list, (0..thing).collect::<Vec<_>>());
            list.push(thing);
        }
        for thing in 0..6 {
            list.retain(|held| *held != thing);
            assert_eq!(*list, (thing + 1..6).collect::<Vec<_>>());
        }
        assert!(matches!(list, SlimList::AtMostOne(None)));
    }

    #[test]
    fn it_takes_sixteen_bytes() {
        assert_eq!(size_of::<SlimList<NeedIndex>>(), 16);
    }
}
