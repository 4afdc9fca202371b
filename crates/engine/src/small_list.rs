//! Small lists: a short list beside its owner instead of at the end of a pointer.

use std::ops::{Deref, DerefMut};

/// As many as are kept inline: processors, memory, accelerators.
pub(crate) const INLINE: usize = 3;

/// A list that is nearly always short.
#[derive(Clone, Debug)]
pub(crate) enum SmallList<T> {
    Inline(u8, [T; INLINE]),
    Elsewhere(Vec<T>),
}

impl<T> Default for SmallList<T> {
    fn default() -> Self {
        Self::Elsewhere(Vec::new())
    }
}

impl<T> Deref for SmallList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Inline(count, items) => &items[..*count as usize],
            Self::Elsewhere(items) => items,
        }
    }
}

impl<T> DerefMut for SmallList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Inline(count, items) => &mut items[..*count as usize],
            Self::Elsewhere(items) => items,
        }
    }
}

impl<T: PartialEq> PartialEq for SmallList<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Copy> FromIterator<T> for SmallList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let Some(first) = items.next() else {
            return Self::default();
        };
        let mut inline = [first; INLINE];
        let mut count = 1;
        while let Some(item) = items.next() {
            if count == INLINE {
                let rest = std::iter::once(item).chain(items);
                return Self::Elsewhere(inline.into_iter().chain(rest).collect());
            }
            inline[count] = item;
            count += 1;
        }
        Self::Inline(count as u8, inline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_things_comes_out_as_it_went_in() {
        for count in 0..8_u64 {
            let mut list: SmallList<u64> = (0..count).collect();
            assert_eq!(*list, (0..count).collect::<Vec<_>>());
            list.iter_mut().for_each(|item| *item += 1);
            assert_eq!(*list, (1..=count).collect::<Vec<_>>());
        }
    }
}
