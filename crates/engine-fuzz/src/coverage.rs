//! Coverage: what came up in a history, so that a test can tell that it tests something.

use bigfleet_model::{ActionKind, Decision, Fleet, MachineId, Verdict};
use std::{collections::BTreeMap, fmt};

/// How often everything came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    steps: usize,
    seen: BTreeMap<&'static str, u64>,
    most_machines: usize,
    most_rows: usize,
}

impl Coverage {
    /// What a test should see before it believes itself: what the rules can decide, and the shapes of
    /// demand they decide it for.
    pub const WANTED: [&'static str; 35] = [
        "Bootstrap",
        "Provision",
        "Preempt",
        "Reclaim",
        "Delete",
        "Restore",
        "phase1.idle",
        "phase1.promised",
        "phase1.speculative",
        "phase1.restored",
        "phase2.inversion",
        "phase3.excess",
        "phase3.leaving",
        "phase3.release",
        "PRIORITY_STARVED",
        "NO_MATCHING_SUPPLY",
        "TOPOLOGY_UNSATISFIABLE",
        "PREEMPTION_EXHAUSTED",
        "SPREAD_UNSATISFIABLE",
        "whole units",
        "gang of whole units",
        "fold of whole units",
        "reclaim by disruption",
        "leaves soon, claimed",
        "leaves soon, held",
        "fold",
        "gang in a domain",
        "gang of several domains",
        "spread over several machines",
        "parked",
        "held",
        "ended intent",
        "restamp",
        "nothing to do",
        "decision committed",
    ];

    /// How many decisions were compared.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How often this came up.
    pub fn of(&self, what: &str) -> u64 {
        self.seen.get(what).copied().unwrap_or(0)
    }

    /// What came up less often than this.
    pub fn rarer_than(&self, least: u64) -> Vec<(&'static str, u64)> {
        let counts = Self::WANTED.into_iter().map(|what| (what, self.of(what)));
        counts.filter(|(_, count)| *count < least).collect()
    }

    /// The most machines and rows of any fleet.
    pub fn largest(&self) -> (usize, usize) {
        (self.most_machines, self.most_rows)
    }

    /// Adds another history's.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        for (what, count) in &other.seen {
            *self.seen.entry(what).or_default() += count;
        }
        self.most_machines = self.most_machines.max(other.most_machines);
        self.most_rows = self.most_rows.max(other.most_rows);
    }

    pub(crate) fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Notes one compared decision.
    pub(crate) fn note(&mut self, fleet: &Fleet, decision: &Decision) {
        self.steps += 1;
        self.most_machines = self.most_machines.max(fleet.machines.len());
        let rows = fleet
            .clusters
            .values()
            .map(|cluster| cluster.needs().len())
            .sum();
        self.most_rows = self.most_rows.max(rows);
        for action in &decision.actions {
            let told = fleet.machines.get(&action.machine);
            let told = told.and_then(|found| found.disruption).is_some();
            if told && action.kind == ActionKind::Reclaim {
                self.see("reclaim by disruption");
            }
            self.see(action.kind.word());
            self.see(action.reason.text());
        }
        if decision.actions.is_empty() {
            self.see("nothing to do");
        }
        decision.held.iter().for_each(|_| self.see("held"));
        decision
            .ended_intents
            .iter()
            .for_each(|_| self.see("ended intent"));
        decision.restamps.iter().for_each(|_| self.see("restamp"));
        self.note_leaving(fleet, decision);
        decision
            .needs
            .iter()
            .for_each(|verdict| self.note_verdict(verdict));
    }

    /// What became of machines that leave soon, and of whom they leave.
    fn note_leaving(&mut self, fleet: &Fleet, decision: &Decision) {
        let leaves_soon = |id: &MachineId| {
            let found = fleet.machines.get(id);
            found.filter(|found| found.leaves_soon())
        };
        for claim in &decision.claims {
            if leaves_soon(&claim.machine).is_some() {
                self.see("leaves soon, claimed");
            }
        }
        for machine in decision.held.iter().filter_map(leaves_soon) {
            self.see("leaves soon, held");
            let attribution = machine.machine.attribution();
            let mut needs = decision.needs.iter();
            let Some(verdict) = needs.find(|one| Some(one.need.key()) == attribution) else {
                continue;
            };
            let row = &verdict.need.row;
            let same_key = row.profile.same_key();
            let moves = |key: &str| {
                let domain = machine.machine.shape().attribute(key);
                domain != Some(verdict.same_domain.as_str())
            };
            let facts = [
                ("held for a gang elsewhere", same_key.is_some_and(moves)),
                (
                    "held for a spread",
                    row.profile.hard_spreads().next().is_some(),
                ),
                ("held for a fold", row.group.as_str().starts_with("fold:")),
            ];
            for (what, _) in facts.into_iter().filter(|(_, holds)| *holds) {
                self.see(what);
            }
        }
    }

    fn note_verdict(&mut self, verdict: &Verdict) {
        let profile = &verdict.need.row.profile;
        let spread = profile.hard_spreads().next().is_some();
        let row = &verdict.need.row;
        let is_folded = row.group.as_str().starts_with("fold:");
        let is_gang = profile.same_key().is_some();
        let facts = [
            ("whole units", row.whole_units),
            ("gang of whole units", row.whole_units && is_gang),
            ("fold of whole units", row.whole_units && is_folded),
            (verdict.unmet_reason.text(), !verdict.satisfied),
            ("fold", is_folded),
            ("gang in a domain", !verdict.same_domain.is_empty()),
            ("gang of several domains", 1 < verdict.same_candidates.len()),
            (
                "spread over several machines",
                spread && 1 < verdict.claimed,
            ),
            ("parked", verdict.parked),
        ];
        for (what, holds) in facts {
            if holds {
                self.see(what);
            }
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            steps,
            seen,
            most_machines,
            most_rows,
        } = self;
        writeln!(
            f,
            "{steps} steps, up to {most_machines} machines and {most_rows} rows"
        )?;
        for (what, count) in seen {
            writeln!(f, "{count:>10}  {what}")?;
        }
        Ok(())
    }
}
