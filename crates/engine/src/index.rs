//! Index: where a thing is in its table, one type per table, so that a machine's cannot be taken for a Need's.
//!
//! An index is stored as its position plus one. That leaves zero for "none", so an `Option` of one takes
//! the same four bytes: there are millions of them.

use std::num::NonZeroU32;

/// A position in the table of one kind of thing.
pub(crate) trait Index: Copy + Eq {
    /// The lowest there is, to begin a range with.
    const FIRST: Self;
    /// The highest there is, to end a range with.
    const LAST: Self;

    /// The index of a position.
    ///
    /// # Panics
    ///
    /// Beyond four billion: no table is that long.
    fn at(position: usize) -> Self;

    fn position(self) -> usize;
}

macro_rules! indexes {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(NonZeroU32);

        impl Index for $name {
            const FIRST: Self = Self(NonZeroU32::MIN);
            const LAST: Self = Self(NonZeroU32::MAX);

            fn at(position: usize) -> Self {
                Self(one_more(position))
            }

            fn position(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    )*};
}

indexes! {
    /// Of a machine: that of its id among the ids.
    MachineIndex;
    /// Of a cluster: that of its id among the ids.
    ClusterIndex;
    /// Of a fingerprint's text.
    FingerprintIndex;
    /// Of the part of a fingerprint's text that says which machines match.
    ConstraintsIndex;
    /// Of a group's text.
    GroupIndex;
    /// Of a (cluster, fingerprint, group).
    SlotIndex;
    /// Of a Need: a row as received, or the folded row of a class.
    NeedIndex;
    /// Of what a Need of this cycle has claimed.
    HoldingIndex;
    /// Of a class of gangs.
    ClassIndex;
    /// Of a (profile, aggregate) that gangs of any cluster have.
    SupplyIndex;
    /// Of a (shape, price, interruption).
    ShapeIndex;
    /// Of a profile.
    ProfileIndex;
    /// Of a set of requirements.
    ConditionsIndex;
    /// Of a (set of requirements, smallest unit).
    UseIndex;
    /// Of the amounts of a shape.
    AmountsIndex;
    /// Of a smallest unit that rows ask for whole.
    UnitIndex;
    /// Of a topology key.
    KeyIndex;
    /// Of a value of a topology key, among the values of that key.
    DomainIndex;
    /// Of a dimension: processors, memory and so on.
    DimensionIndex;
    /// Of terms a machine is committed on.
    TermsIndex;
}

fn one_more(position: usize) -> NonZeroU32 {
    let number = u32::try_from(position + 1).ok().and_then(NonZeroU32::new);
    match number {
        Some(number) => number,
        None => unreachable!("a table of {position} things does not fit into memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_may_be_missing_takes_no_more_room() {
        assert_eq!(size_of::<Option<MachineIndex>>(), 4);
    }

    #[test]
    fn a_position_comes_out_as_it_went_in() {
        assert_eq!(NeedIndex::at(0), NeedIndex::FIRST);
        for position in [0, 1, 2, 1 << 20, u32::MAX as usize - 1] {
            assert_eq!(NeedIndex::at(position).position(), position);
        }
    }
}
