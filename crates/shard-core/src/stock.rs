//! Stock: how many machines of each shape there are, and which of them are free at what price.
//!
//! Counted as machines come, change and go, so that hints, reports and pools look at shapes, of which
//! there are hundreds, and never at machines.

use crate::intern::Interned;
use bigfleet_model::{Machine, Price, Shape, State};
use std::{collections::BTreeMap, sync::Arc};

/// What there is of one shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// Idle without a promise, by price.
    pub(crate) idle: BTreeMap<Price, u32>,
    pub(crate) speculative: BTreeMap<Price, u32>,
    /// By state, all of them.
    pub(crate) states: BTreeMap<State, u32>,
}

impl Held {
    pub(crate) fn in_state(&self, state: State) -> u32 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u32 {
        self.states.values().sum()
    }
}

/// The machines of a ledger, by shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stock {
    pub(crate) shapes: Interned<Shape>,
    held: Vec<Held>,
    /// How often what is free changed.
    pub(crate) moves: u64,
}

impl Stock {
    /// The one copy of a shape that equal machines share.
    pub(crate) fn share(&mut self, shape: &mut Arc<Shape>) {
        let number = self.shapes.number(shape);
        if let Some(shared) = self.shapes.get(number) {
            shape.clone_from(shared);
        }
    }

    /// A machine comes in, or goes out.
    pub(crate) fn count(&mut self, machine: &Machine, enter: bool) {
        let number = self.shapes.number(machine.shape());
        let place = number as usize;
        if self.held.len() <= place {
            self.held.resize_with(place + 1, Held::default);
        }
        let held = &mut self.held[place];
        step(&mut held.states, machine.state(), enter);
        let free = match machine.state() {
            State::Speculative => Some(&mut held.speculative),
            State::Idle if machine.intent().is_none() => Some(&mut held.idle),
            _ => None,
        };
        if let Some(prices) = free {
            step(prices, machine.price(), enter);
            self.moves += 1;
        }
        match enter {
            true => self.shapes.keep(number),
            false => self.shapes.leave(number),
        }
    }

    pub(crate) fn held(&self, number: u32) -> Option<&Held> {
        self.held.get(number as usize)
    }

    /// Every shape there is a machine of.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Shape>, &Held)> {
        let shapes = self.shapes.iter();
        shapes.filter_map(|(number, shape)| Some((number, shape, self.held(number)?)))
    }
}

/// Counts one up or down; what reaches zero is gone.
fn step<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, enter: bool) {
    let count = counts.entry(key).or_default();
    *count = match enter {
        true => *count + 1,
        false => count.saturating_sub(1),
    };
    if *count == 0 {
        counts.retain(|_, count| *count != 0);
    }
}
