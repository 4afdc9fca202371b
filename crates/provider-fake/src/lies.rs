//! Lies: what a caller is told instead of the truth when it lists.

use std::sync::{Mutex, PoisonError};

use bigfleet_provider_kit::{Page, Query};

use crate::knobs::Knobs;
use crate::random::Random;

/// Old answers, halves of answers, and answers with holes.
#[derive(Debug)]
pub struct Lies {
    stale: f64,
    truncated: f64,
    flapping: f64,
    memory: Mutex<Memory>,
}

#[derive(Debug)]
struct Memory {
    random: Random,
    earlier: Option<Page>,
}

impl Lies {
    /// Lies as much as the knobs say.
    pub fn new(knobs: &Knobs) -> Self {
        let random = Random::new(knobs.seed ^ 0x11e5);
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

    /// What to answer instead. Only whole listings are lied about; a delta or a page that is wrong
    /// would be wrong in the same ways.
    pub fn list(&self, query: &Query, page: Page) -> Page {
        let whole = page.is_full && query.page_size == 0 && query.states.is_none();
        if !whole || self.stale + self.truncated + self.flapping == 0.0 {
            return page;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = memory.random.happens(self.stale);
        if let Some(earlier) = memory.earlier.clone().filter(|_| stale) {
            return earlier;
        }
        memory.earlier = Some(page.clone());
        let mut told = page;
        if memory.random.happens(self.truncated) {
            told.machines.truncate(told.machines.len().div_ceil(2));
        }
        told.machines
            .retain(|_| !memory.random.happens(self.flapping));
        told
    }
}

#[cfg(feature = "serve")]
impl bigfleet_provider_kit::Reads for Lies {
    fn list(&self, query: &Query, page: Page) -> Page {
        Lies::list(self, query, page)
    }
}
