//! Deal: spares where no record says what they are (OP-67).
//!
//! ```text
//! Ready Nodes, largest first ─▶ a row of their own class, not yet covered ─▶ any such row ─▶ a spare each
//! ```
//!
//! Without it the next roll-up would ask for the sums alone and every Node beyond them would be drained. Each Node is
//! dealt once: if every profile counted all of them, each would buy them again.

use super::{
    SpareView, Spares,
    bins::bin_group,
    profile::{Spare, served_size},
    view::accepts,
};
use crate::{
    demand::class::{Size, UnitClass},
    objects::NodeFacts,
};
use bigfleet_model::Amounts;

struct Uncovered {
    want: usize,
    class: UnitClass,
    missing: Amounts,
}

pub(super) fn deal(spares: &mut Spares, view: &SpareView<'_>) {
    let mut rows = rows(view);
    let mut nodes: Vec<&NodeFacts> = view
        .nodes
        .iter()
        .copied()
        .filter(|node| node.is_ready)
        .collect();
    nodes.sort_by_key(|node| {
        let size = std::cmp::Reverse((Size::of(&node.allocatable), node.allocatable.clone()));
        (size, node.name.clone())
    });
    let mut left = Vec::new();
    for own_class_only in [true, false] {
        for node in std::mem::take(if own_class_only {
            &mut nodes
        } else {
            &mut left
        }) {
            let could = |row: &&mut Uncovered| {
                let want = &view.wants[row.want];
                let largest = want
                    .units
                    .keys()
                    .filter(|unit| UnitClass::of(unit) == row.class);
                let fits = largest
                    .into_iter()
                    .all(|unit| node.allocatable.covers(unit));
                let is_own = row.class.order() == order_of(node);
                !row.missing.is_zero()
                    && accepts(&want.profile, &node.labels)
                    && fits
                    && (is_own || !own_class_only)
            };
            match rows.iter_mut().find(could) {
                Some(row) => row.missing = row.missing.sub(&node.allocatable),
                None if own_class_only => left.push(node),
                None => add_spare(spares, node, view),
            }
        }
    }
}

/// Class rows: by priority, text of the profile, larger class first.
fn rows(view: &SpareView<'_>) -> Vec<Uncovered> {
    let mut rows = Vec::new();
    for (at, want) in view.wants.iter().enumerate() {
        let mut classes: Vec<UnitClass> = want.units.keys().map(UnitClass::of).collect();
        classes.sort();
        classes.dedup();
        for class in classes.into_iter().rev() {
            let missing = want.class_sum(&class);
            rows.push(Uncovered {
                want: at,
                class,
                missing,
            });
        }
    }
    rows.sort_by_key(|row| {
        let profile = &view.wants[row.want].profile;
        (
            std::cmp::Reverse(profile.priority()),
            profile.fingerprint().clone(),
        )
    });
    rows
}

/// The greatest class whose shape the Node covers.
fn order_of(node: &NodeFacts) -> u32 {
    let mut shape = UnitClass::of(&Amounts::NONE).shape();
    let mut order = 0;
    while node.allocatable.covers(&shape.scale(2)) && order < 32 {
        shape = shape.scale(2);
        order += 1;
    }
    order
}

fn add_spare(spares: &mut Spares, node: &NodeFacts, view: &SpareView<'_>) {
    let mut shape = UnitClass::of(&Amounts::NONE).shape();
    (0..order_of(node)).for_each(|_| shape = shape.scale(2));
    let capped = shape
        .iter()
        .map(|(name, milli)| (name.clone(), milli.min(node.allocatable.get(name.as_str()))));
    let bin = Amounts::from_entries(capped);
    let mut matching = view
        .wants
        .iter()
        .filter(|want| accepts(&want.profile, &node.labels));
    if let Some(want) = matching.next() {
        let known = spares.profile(want.profile.fingerprint().as_str());
        let spare = known.bins.entry(bin_group(&bin)).or_insert_with(|| Spare {
            bin: bin.clone(),
            count: 0,
            raised_at: served_size(want, &bin),
        });
        spare.count += 1;
    }
}
