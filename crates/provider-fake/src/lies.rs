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
    /// An earlier answer to whoever begins a listing with this many machines per page.
    earlier: Option<(usize, ListPage)>,
    /// How many more machines the listing under way may show, if it is one that is cut.
    left: Option<usize>,
}

impl Lies {
    /// Lies as much as the knobs say.
    pub fn new(knobs: &Knobs) -> Self {
        Self {
            stale: knobs.stale_list,
            truncated: knobs.truncated_list,
            flapping: knobs.flapping,
            memory: Mutex::new(Memory {
                random: Prng::new(knobs.seed ^ 0x11e5),
                earlier: None,
                left: None,
            }),
        }
    }
}

impl Reads for Lies {
    /// What to answer instead. Only listings of everything are lied about, in one answer or by pages; a
    /// delta that is wrong would be wrong in the same ways. Pages of callers that list at the same time
    /// share their luck.
    fn list(&self, query: &Query, page: ListPage) -> ListPage {
        let whole = page.is_full && query.states.is_none();
        if !whole || self.stale + self.truncated + self.flapping == 0.0 {
            return page;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if query.page_token.is_empty() {
            let stale = memory.random.chance(self.stale);
            let earlier = memory.earlier.as_ref();
            let earlier = earlier.filter(|(size, _)| stale && *size == query.page_size);
            if let Some((_, earlier)) = earlier {
                return earlier.clone();
            }
            memory.earlier = Some((query.page_size, page.clone()));
            let cut = memory.random.chance(self.truncated);
            memory.left = cut.then(|| page.total.div_ceil(2));
        }
        let mut told = page;
        if let Some(left) = &mut memory.left {
            if *left <= told.machines.len() {
                told.machines.truncate(*left);
                told.next_page.clear();
            }
            *left -= told.machines.len();
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
        let some = Query {
            states: Some(Vec::new()),
            ..Query::default()
        };
        assert_eq!(told(&flapping, &some), (vec![2], 12));
    }

    /// A listing of the twelve machines by pages of five: how many it names, and on how many pages.
    fn paged(knobs: &Knobs) -> (usize, usize) {
        let (lies, all) = (Lies::new(knobs), page(1).machines);
        let (mut named, mut pages, mut token) = (0, 0, Vec::new());
        loop {
            let query = Query {
                page_size: 5,
                page_token: token.clone(),
                ..Query::default()
            };
            let (from, to) = (5 * pages, 12.min(5 * pages + 5));
            let told = lies.list(
                &query,
                ListPage {
                    machines: all[from..to].to_vec(),
                    next_page: if to == 12 { Vec::new() } else { vec![to as u8] },
                    ..page(1)
                },
            );
            (named, pages, token) = (named + told.machines.len(), pages + 1, told.next_page);
            if token.is_empty() {
                return (named, pages);
            }
        }
    }

    #[test]
    fn whoever_lists_by_pages_is_lied_to_as_well() {
        let knobs = |truncated_list, flapping| Knobs {
            truncated_list,
            flapping,
            ..Knobs::default()
        };
        assert_eq!(paged(&knobs(0.0, 0.0)), (12, 3));
        assert_eq!(
            paged(&knobs(1.0, 0.0)),
            (6, 2),
            "the second half is missing"
        );
        assert_eq!(paged(&knobs(0.0, 1.0)), (0, 3), "every machine is missing");
        let stale = Knobs {
            stale_list: 1.0,
            ..Knobs::default()
        };
        let first = |page_size| Query {
            page_size,
            ..Query::default()
        };
        assert_eq!(told(&stale, &first(5)), (vec![1], 12));
        let lies = Lies::new(&stale);
        lies.list(&first(5), page(1));
        let other = lies.list(&first(7), page(2));
        assert_eq!(
            other.revision,
            [2],
            "an earlier answer to another question is none"
        );
    }
}
