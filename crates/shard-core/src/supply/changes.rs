//! Changes: which machines changed lately, for copies that are made in steps.

use bigfleet_model::MachineId;
use std::collections::VecDeque;

/// Which machines changed lately. Bounded: whoever has fallen further behind begins anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    latest: VecDeque<MachineId>,
    /// How many there were before those.
    forgotten: u64,
}

/// Changes that are remembered.
const MOST_CHANGES: usize = 16_384;

impl Changes {
    pub(super) fn note(&mut self, id: &MachineId) {
        if self.latest.len() == MOST_CHANGES {
            self.latest.pop_front();
            self.forgotten += 1;
        }
        self.latest.push_back(id.clone());
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        self.forgotten + self.latest.len() as u64
    }

    /// Those since a count, oldest first; `None` if some are forgotten.
    pub(crate) fn since(&self, count: u64) -> Option<impl Iterator<Item = &MachineId>> {
        let skip = count.checked_sub(self.forgotten)?;
        Some(self.latest.iter().skip(usize::try_from(skip).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has fallen further behind than is remembered begins anew.
    #[test]
    fn the_latest_changes_are_remembered_and_no_more() {
        let mut changes = Changes::default();
        let id = |number: usize| MachineId::new(&format!("m{number}")).unwrap();
        for number in 0..MOST_CHANGES {
            changes.note(&id(number));
        }
        assert_eq!(changes.count(), MOST_CHANGES as u64);
        assert_eq!(changes.since(0).map(Iterator::count), Some(MOST_CHANGES));
        changes.note(&id(MOST_CHANGES));
        assert_eq!(changes.count(), MOST_CHANGES as u64 + 1);
        assert!(changes.since(0).is_none(), "the first is forgotten");
        let since: Vec<&MachineId> = changes.since(changes.count() - 1).unwrap().collect();
        assert_eq!(since, [&id(MOST_CHANGES)]);
        assert_eq!(changes.since(changes.count()).map(Iterator::count), Some(0));
    }
}
