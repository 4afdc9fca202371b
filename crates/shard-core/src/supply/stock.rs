//! Stock: how many machines of each shape there are, and which of them are free at what price.
//!
//! Counted as machines come, change and go, so that hints, reports and pools look at shapes, of which
//! there are hundreds, and never at machines.

use crate::intern::Interned;
use bigfleet_model::{CapacityType, Dimension, Machine, Price, Shape, State};
use std::{collections::BTreeMap, sync::Arc};

/// What there is of one shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShapeStock {
    /// Idle without a promise, by price.
    pub(crate) idle: BTreeMap<Price, u32>,
    pub(crate) speculative: BTreeMap<Price, u32>,
    /// By state, all of them.
    pub(crate) states: BTreeMap<State, u32>,
}

impl ShapeStock {
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
    shapes: Interned<Shape>,
    by_shape: Vec<ShapeStock>,
    /// What machines cost, in millionths of a dollar per hour: whole numbers, so that what leaves takes
    /// away exactly what it brought.
    spend: BTreeMap<(CapacityType, State), i128>,
    /// What all machines and slots offer together, in milli-units.
    offered: BTreeMap<Dimension, i128>,
    /// How often what is free changed.
    moves: u64,
}

impl Stock {
    /// Has a machine share the one copy of its shape.
    pub(crate) fn share_with(&mut self, machine: &mut Machine) {
        let number = self.shapes.number(machine.shape());
        if let Some(shared) = self.shapes.get(number) {
            machine.share_shape(shared);
        }
    }

    /// A machine was one thing and is another; either may be nothing.
    pub(crate) fn replace(&mut self, was: Option<&Machine>, is: Option<&Machine>) {
        let from = was.map(|machine| (self.number(machine.shape()), Counted::of(machine)));
        let to = match (is, was, from) {
            (None, ..) => None,
            (Some(is), Some(was), Some((number, _))) if Arc::ptr_eq(is.shape(), was.shape()) => {
                Some((number, Counted::of(is)))
            }
            (Some(is), ..) => Some((self.number(is.shape()), Counted::of(is))),
        };
        if from == to {
            return;
        }
        if from.map(|(number, _)| number) != to.map(|(number, _)| number) {
            self.offer(is, 1);
            self.offer(was, -1);
        }
        // In before out, so that a shape it keeps is not forgotten in between.
        if let Some((number, counted)) = to {
            self.step(number, counted, true);
        }
        if let Some((number, counted)) = from {
            self.step(number, counted, false);
        }
    }

    /// A machine comes or goes, and what it offers with it.
    fn offer(&mut self, machine: Option<&Machine>, count: i128) {
        let shape = machine.map(Machine::shape);
        for (dimension, milli) in shape.into_iter().flat_map(|shape| shape.effective().iter()) {
            match self.offered.get_mut(dimension) {
                Some(offered) => *offered += count * milli,
                None => drop(self.offered.insert(dimension.clone(), count * milli)),
            }
        }
    }

    /// What all machines and slots offer together of one dimension, in milli-units.
    pub(crate) fn offered(&self, dimension: &str) -> i128 {
        self.offered.get(dimension).copied().unwrap_or(0)
    }

    fn number(&mut self, shape: &Arc<Shape>) -> u32 {
        let number = self.shapes.number(shape);
        if self.by_shape.len() <= number as usize {
            self.by_shape
                .resize_with(number as usize + 1, ShapeStock::default);
        }
        number
    }

    fn step(&mut self, number: u32, counted: Counted, enter: bool) {
        if counted.state != State::Speculative {
            let spent = self.spend.entry((counted.tier, counted.state)).or_default();
            let price = millionths(counted.price);
            *spent += if enter { price } else { -price };
        }
        let stock = &mut self.by_shape[number as usize];
        step(&mut stock.states, counted.state, enter);
        if let Some(price) = counted.free {
            let prices = match counted.state {
                State::Speculative => &mut stock.speculative,
                _ => &mut stock.idle,
            };
            step(prices, price, enter);
            self.moves += 1;
        }
        if enter {
            self.shapes.keep(number);
        } else {
            self.shapes.leave(number);
        }
    }

    /// How often what is free changed.
    pub(crate) fn moves(&self) -> u64 {
        self.moves
    }

    /// How many shapes there have ever been: a number stands for one of them until that changes.
    pub(crate) fn shapes_seen(&self) -> u64 {
        self.shapes.arrivals()
    }

    /// What there is of the shape with this number.
    pub(crate) fn of_shape(&self, number: u32) -> Option<&ShapeStock> {
        self.by_shape.get(number as usize)
    }

    /// What the machines cost, in dollars per hour, by capacity type and state. One that is not there yet
    /// costs nothing. A series that empties stays, at zero.
    pub(crate) fn spend(&self) -> impl Iterator<Item = (CapacityType, State, f64)> {
        let spend = self.spend.iter();
        spend.map(|((tier, state), spent)| (*tier, *state, *spent as f64 / 1e6))
    }

    /// Every shape there is a machine of.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<Shape>, &ShapeStock)> {
        let shapes = self.shapes.iter();
        shapes.filter_map(|(number, shape)| Some((number, shape, self.of_shape(number)?)))
    }
}

/// What is counted of a machine.
#[derive(Clone, Copy, PartialEq)]
struct Counted {
    state: State,
    tier: CapacityType,
    price: Price,
    /// Its price, if it can be had.
    free: Option<Price>,
}

impl Counted {
    fn of(machine: &Machine) -> Self {
        let state = machine.state();
        let free = match state {
            State::Speculative => true,
            State::Idle => machine.intent().is_none(),
            _ => false,
        };
        let free = free.then(|| machine.price());
        Self {
            state,
            tier: machine.shape().capacity_type,
            price: machine.price(),
            free,
        }
    }
}

/// A price no fleet could pay counts as a thousand million dollars.
fn millionths(price: Price) -> i128 {
    (price.dollars_per_hour().min(1e9) * 1e6).round() as i128
}

/// Counts one up or down; what reaches zero is gone.
fn step<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, enter: bool) {
    let count = counts.entry(key).or_default();
    *count = if enter {
        *count + 1
    } else {
        count.saturating_sub(1)
    };
    if *count == 0 {
        counts.retain(|_, count| *count != 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;

    fn machine(line: &str) -> Machine {
        let mut machines = fleet(line).machines.into_values();
        machines.next().unwrap().machine
    }

    /// What is free by price, what there is by state, and what it costs, as one machine lives.
    #[test]
    fn counts_follow_a_machine_through_its_life() {
        let mut stock = Stock::default();
        let speculative = machine("m1 Speculative cpu=4 $2");
        let idle = machine("m1 Idle cpu=4 $2");
        let serving = machine("m1 Configured a cpu=4 $2");
        let counts = |stock: &Stock| {
            let held = stock.of_shape(0).unwrap();
            let free = |prices: &BTreeMap<Price, u32>| prices.values().sum::<u32>();
            (free(&held.speculative), free(&held.idle), held.total())
        };
        let spent = |stock: &Stock| stock.spend().map(|(.., spent)| spent).sum::<f64>();
        stock.replace(None, Some(&speculative));
        assert_eq!((counts(&stock), stock.moves()), ((1, 0, 1), 1));
        assert_eq!(spent(&stock), 0.0, "it is not there yet");
        stock.replace(Some(&speculative), Some(&idle));
        assert_eq!((counts(&stock), stock.moves()), ((0, 1, 1), 3));
        assert_eq!(spent(&stock), 2.0);
        stock.replace(Some(&idle), Some(&idle));
        assert_eq!(stock.moves(), 3, "nothing moved");
        stock.replace(Some(&idle), Some(&serving));
        assert_eq!((counts(&stock), stock.moves()), ((0, 0, 1), 4));
        assert_eq!(stock.of_shape(0).unwrap().in_state(State::Configured), 1);
        assert_eq!((stock.iter().count(), stock.shapes_seen()), (1, 1));
        stock.replace(Some(&serving), None);
        assert_eq!((stock.iter().count(), spent(&stock)), (0, 0.0));
    }

    #[test]
    fn a_promised_machine_is_not_free_and_a_price_nobody_can_pay_is_bounded() {
        let mut stock = Stock::default();
        let free = machine("m1 Idle cpu=4 $1");
        let promised = machine("m2 Idle cpu=4 $1 own-raw=f,g for=a");
        stock.replace(None, Some(&promised));
        assert_eq!(stock.of_shape(0).unwrap().idle.len(), 0);
        stock.replace(None, Some(&free));
        assert_eq!(stock.of_shape(0).unwrap().idle.len(), 1);
        assert_eq!(millionths(Price::new(1.5).unwrap()), 1_500_000);
        assert_eq!(
            millionths(Price::new(1e300).unwrap()),
            1_000_000_000_000_000
        );
    }
}
