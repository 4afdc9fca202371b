//! The stopwatch: how long each phase of a cycle takes (CY-3). The core says when one begins; the clock is
//! here, since a core has none.
//!
//! ```text
//! an event ─▶ snapread ─▶ phase1 ─▶ phase2 ─▶ phase3 ─▶ execute ─▶ emit ─▶ execute ─▶ effects started
//! of a List: reconcile ┘
//! ```
//!
//! Every moment of a cycle belongs to exactly one phase, so the phases but `reconcile` add up to the
//! cycle. A List is taken in page by page, beside the cycles (SH-1); it is counted once it has ended.

use bigfleet_shard_core::{Event, Phase};
use std::time::{Duration, Instant};

/// What is measured so far.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    since: Instant,
    phase: Option<Phase>,
    spent: [Duration; Phase::ALL.len()],
    /// Whether a List has ended that no cycle has told of.
    list_ended: bool,
}

/// What a cycle took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Took {
    pub(crate) cycle: Duration,
    /// Its phases, in seconds, and a List's, if one has ended since the last cycle.
    pub(crate) phases: Vec<(Phase, f64)>,
}

impl Stopwatch {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            phase: None,
            spent: [Duration::ZERO; Phase::ALL.len()],
            list_ended: false,
        }
    }

    /// The core is about to hear of this.
    pub(crate) fn start(&mut self, event: &Event, now: Instant) {
        let is_end = matches!(event, Event::ListEnded { .. });
        let is_list = is_end || matches!(event, Event::ListPage { .. });
        self.list_ended |= is_end;
        (self.since, self.phase) = (now, is_list.then_some(Phase::Reconcile));
    }

    /// A phase begins, and with it the one before is over.
    pub(crate) fn begins(&mut self, phase: Option<Phase>, now: Instant) {
        if let Some(over) = self.phase {
            self.spent[over as usize] += now.saturating_duration_since(self.since);
        }
        (self.since, self.phase) = (now, phase);
    }

    /// What the event asked for is started. Says what the cycle took that it brought on, if it did.
    pub(crate) fn stop(&mut self, was_cycle: bool, now: Instant) -> Option<Took> {
        self.begins(None, now);
        if !was_cycle {
            return None;
        }
        let mut took = Took {
            cycle: Duration::ZERO,
            phases: Vec::with_capacity(Phase::ALL.len()),
        };
        for phase in Phase::ALL {
            let is_list = phase == Phase::Reconcile;
            if is_list && !self.list_ended {
                continue;
            }
            let spent = std::mem::take(&mut self.spent[phase as usize]);
            took.phases.push((phase, spent.as_secs_f64()));
            if !is_list {
                took.cycle += spent;
            }
        }
        self.list_ended = false;
        Some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_shard_core::{ListId, Listed};

    /// What a stopwatch says of cycles whose phases begin at these milliseconds.
    struct Script {
        watch: Stopwatch,
        zero: Instant,
    }

    impl Script {
        fn new() -> Self {
            let zero = Instant::now();
            let watch = Stopwatch::new(zero);
            Self { watch, zero }
        }

        fn at(&self, ms: u64) -> Instant {
            self.zero + Duration::from_millis(ms)
        }

        fn event(&mut self, event: &Event, from: u64, phases: &[(Phase, u64)], to: u64) -> Said {
            self.watch.start(event, self.at(from));
            for (phase, ms) in phases {
                self.watch.begins(Some(*phase), self.at(*ms));
            }
            let took = self.watch.stop(!phases.is_empty(), self.at(to))?;
            let ms = |seconds: f64| (seconds * 1e3).round() as u64;
            let phases = took.phases.iter().map(|(phase, s)| (*phase, ms(*s)));
            Some((took.cycle.as_millis() as u64, phases.collect()))
        }
    }

    type Said = Option<(u64, Vec<(Phase, u64)>)>;

    const CYCLE: [(Phase, u64); 7] = [
        (Phase::Snapread, 10),
        (Phase::Phase1, 11),
        (Phase::Phase2, 20),
        (Phase::Phase3, 24),
        (Phase::Execute, 30),
        (Phase::Emit, 31),
        (Phase::Execute, 40),
    ];

    /// What a cycle with these phases took, if it ended at 60.
    const PARTS: [(Phase, u64); 6] = [
        (Phase::Snapread, 1),
        (Phase::Phase1, 9),
        (Phase::Phase2, 4),
        (Phase::Phase3, 6),
        (Phase::Emit, 9),
        (Phase::Execute, 21),
    ];

    fn list_ended() -> Event {
        Event::ListEnded {
            list: ListId(1),
            outcome: Listed::Failed,
        }
    }

    #[test]
    fn the_phases_add_up_to_the_cycle_and_what_came_before_it_is_no_part() {
        let mut script = Script::new();
        let said = script.event(&Event::Woken, 3, &CYCLE, 60);
        assert_eq!(said, Some((50, PARTS.to_vec())));
        // The next one starts from nothing; one that decides nothing has its phases all the same.
        let short = [(Phase::Snapread, 70), (Phase::Execute, 71)];
        let (cycle, phases) = script.event(&Event::Woken, 70, &short, 75).unwrap();
        assert_eq!(cycle, 5);
        let spent: Vec<u64> = phases.into_iter().map(|(_, ms)| ms).collect();
        assert_eq!(spent, [1, 0, 0, 0, 0, 4]);
    }

    #[test]
    fn a_list_is_summed_over_its_pages_and_told_once_with_the_cycle_after_its_end() {
        let mut script = Script::new();
        let page = Event::ListPage {
            list: ListId(1),
            machines: Vec::new(),
            refused: Vec::new(),
        };
        assert_eq!(script.event(&page, 0, &[], 3), None);
        let said = script.event(&Event::Woken, 5, &CYCLE, 60);
        assert_eq!(said, Some((50, PARTS.to_vec())), "it has not ended");
        assert_eq!(script.event(&page, 61, &[], 65), None);
        let later = CYCLE.map(|(phase, ms)| (phase, ms + 70));
        let said = script.event(&list_ended(), 75, &later, 130);
        let with_list = [(Phase::Reconcile, 3 + 4 + 5)].into_iter().chain(PARTS);
        assert_eq!(said, Some((50, with_list.collect())));
        let later = CYCLE.map(|(phase, ms)| (phase, ms + 140));
        let said = script.event(&Event::Woken, 150, &later, 200);
        assert_eq!(said, Some((50, PARTS.to_vec())));
    }
}
