//! Lies: what a caller is told instead of the truth when it lists.

use std::sync::{Mutex, PoisonError};

use bigfleet_provider_kit::{ListPage, Query, Reads};
use bigfleet_seeded::Prng;

use crate::knobs::Knobs;

/// Replaces some answers of List: with an earlier one, with its first half, or with machines missing.
#[derive(Debug)]
pub struct Lies {
    stale: f64,
    truncated: f64,
    flapping: f64,
    memory: Mutex<Memory>,
}

#[derive(Debug)]
struct Memory {
    random: Prng,
    earlier: Option<ListPage>,
}

impl Lies {
    /// Lies as much as the knobs say.
    pub fn new(knobs: &Knobs) -> Self {
        let random = Prng::new(knobs.seed ^ 0x11e5);
        Self {
            stale: knobs.stale_list,
            truncated: knobs.truncated_list,
            flapping: knobs.flapping,
            memory: Mutex::new(Memory {
                random,
                earlier: None,
            }),
        }
    }
}

impl Reads for Lies {
    /// What to answer instead. Only whole listings are lied about; a delta or a page that is wrong
    /// would be wrong in the same ways.
    fn list(&self, query: &Query, page: ListPage) -> ListPage {
        let whole = page.is_full && query.page_size == 0 && query.states.is_none();
        if !whole || self.stale + self.truncated + self.flapping == 0.0 {
            return page;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = memory.random.chance(self.stale);
        if let Some(earlier) = memory.earlier.clone().filter(|_| stale) {
            return earlier;
        }
        memory.earlier = Some(page.clone());
        let mut told = page;
        if memory.random.chance(self.truncated) {
            told.machines.truncate(told.machines.len().div_ceil(2));
        }
        told.machines
            .retain(|_| !memory.random.chance(self.flapping));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::conventional;
    use bigfleet_provider_kit::check_instance;
    use std::sync::Arc;

    /// A whole listing of twelve machines.
    fn page(revision: u8) -> ListPage {
        let machines = conventional("fake", 12);
        let machines = machines
            .iter()
            .map(|slot| Arc::new(check_instance(slot, true).unwrap()));
        ListPage {
            machines: machines.collect(),
            revision: vec![revision],
            is_full: true,
            total: 12,
            ..ListPage::default()
        }
    }

    /// The revision and the number of machines of the second of two listings.
    fn told(knobs: &Knobs, query: &Query) -> (Vec<u8>, usize) {
        let lies = Lies::new(knobs);
        lies.list(query, page(1));
        let told = lies.list(query, page(2));
        (told.revision, told.machines.len())
    }

    #[test]
    fn lists_are_stale_cut_or_full_of_holes_when_asked_to_be() {
        let whole = Query::default();
        let none = Knobs::default();
        assert_eq!(told(&none, &whole), (vec![2], 12));
        let stale = Knobs {
            stale_list: 1.0,
            ..Knobs::default()
        };
        assert_eq!(told(&stale, &whole), (vec![1], 12));
        let truncated = Knobs {
            truncated_list: 1.0,
            ..Knobs::default()
        };
        assert_eq!(told(&truncated, &whole), (vec![2], 6));
        let flapping = Knobs {
            flapping: 1.0,
            ..Knobs::default()
        };
        assert_eq!(told(&flapping, &whole), (vec![2], 0));
        let paged = Query {
            page_size: 100,
            ..Query::default()
        };
        assert_eq!(told(&flapping, &paged), (vec![2], 12));
    }
}
