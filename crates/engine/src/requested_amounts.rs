//! Requested amounts: what a Need wants of each dimension.
//!
//! Half a million rows hold one each, and nearly all ask for processors, memory and perhaps accelerators,
//! in amounts that fit 64 bits. Those lie beside the row; anything else is at the end of a pointer.

use crate::index::DimensionIndex;
use std::{iter::Zip, slice};

/// As many as lie beside the row.
const INLINE: usize = 3;

/// Amounts in thousandths, each above zero; ascending by the *name* of the dimension.
///
/// Equal amounts are made of equal parts: whatever fits is inline, and what is beyond the count is always the same. Their order is
/// one to find them by and means nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestedAmounts {
    Inline {
        count: u8,
        dimensions: [DimensionIndex; INLINE],
        milli: [i64; INLINE],
    },
    Elsewhere(Vec<(DimensionIndex, i128)>),
}

impl Default for RequestedAmounts {
    fn default() -> Self {
        Self::Elsewhere(Vec::new())
    }
}

impl RequestedAmounts {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Inline { count, .. } => usize::from(*count),
            Self::Elsewhere(amounts) => amounts.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        match self {
            Self::Inline {
                count,
                dimensions,
                milli,
            } => {
                let count = usize::from(*count);
                Iter::Inline(dimensions[..count].iter().zip(&milli[..count]))
            }
            Self::Elsewhere(amounts) => Iter::Elsewhere(amounts.iter()),
        }
    }
}

/// What is wanted of each dimension, in their order.
pub(crate) enum Iter<'a> {
    Inline(Zip<slice::Iter<'a, DimensionIndex>, slice::Iter<'a, i64>>),
    Elsewhere(slice::Iter<'a, (DimensionIndex, i128)>),
}

impl Iterator for Iter<'_> {
    type Item = (DimensionIndex, i128);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Inline(amounts) => {
                let (dimension, milli) = amounts.next()?;
                Some((*dimension, i128::from(*milli)))
            }
            Self::Elsewhere(amounts) => amounts.next().copied(),
        }
    }
}

impl FromIterator<(DimensionIndex, i128)> for RequestedAmounts {
    fn from_iter<A: IntoIterator<Item = (DimensionIndex, i128)>>(amounts: A) -> Self {
        let mut amounts = amounts.into_iter();
        let Some(first) = amounts.next() else {
            return Self::default();
        };
        let (mut dimensions, mut milli) = ([first.0; INLINE], [0; INLINE]);
        let mut count = 0;
        let mut next = Some(first);
        while let Some((dimension, amount)) = next {
            let small = i64::try_from(amount).ok().filter(|_| count < INLINE);
            let Some(small) = small else {
                let before = dimensions.into_iter().zip(milli.map(i128::from));
                let rest = std::iter::once((dimension, amount)).chain(amounts);
                return Self::Elsewhere(before.take(count).chain(rest).collect());
            };
            (dimensions[count], milli[count]) = (dimension, small);
            count += 1;
            next = amounts.next();
        }
        Self::Inline {
            count: count as u8,
            dimensions,
            milli,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;

    #[test]
    fn amounts_of_any_number_and_size_come_out_as_they_went_in() {
        let small = |at: usize| (DimensionIndex::at(at), 1000 + at as i128);
        let large = |at: usize| (DimensionIndex::at(at), i128::from(i64::MAX) + at as i128);
        for count in 0..6 {
            for first_large in 0..=count {
                let amount = |at: usize| {
                    if at < first_large {
                        small(at)
                    } else {
                        large(at)
                    }
                };
                let amounts: Vec<_> = (0..count).map(amount).collect();
                let requested: RequestedAmounts = amounts.iter().copied().collect();
                assert_eq!(requested.iter().collect::<Vec<_>>(), amounts);
                assert_eq!(requested.len(), count);
                assert_eq!(requested.is_empty(), count == 0);
                assert!(requested == amounts.into_iter().collect());
            }
        }
    }

    #[test]
    fn what_nearly_every_row_wants_takes_forty_bytes() {
        assert_eq!(size_of::<RequestedAmounts>(), 40);
    }
}
