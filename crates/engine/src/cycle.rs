//! Cycle: from what changed to what is decided.
//!
//! ```text
//! facts ─▶ heirs ─▶ fold ─▶ intents that ended ─▶ pass A ─▶ pass B ─▶ phase 2 ─▶ phase 3
//!          └──────── only what changed ──────────────────┘  └─ only Needs that are short,
//!                                                              clusters with something loose ─┘
//! ```
//!
//! Claims of pass A stay from cycle to cycle. What pass B and the phases did is undone at the start
//! of the next cycle that has anything to do, by re-running pass A for the Needs they touched; so
//! every cycle starts from the same place, whatever the last one decided. A *full* cycle marks
//! everything as changed and runs the same code.

use crate::{
    Mistake, NONE,
    book::{Book, MachineIx, NeedIx, SlotIx},
    excess::Held,
    own::Draft,
};
use bigfleet_model::{Amounts, DomainCoverage, MatchingSupply, State, Time, UnmetReason};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a decision, for whoever wants to know how long each takes: the engine has no clock. What
/// comes before the first is taking in what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every Need keeps its own, then those still short are served in order (Phase 1).
    Serve,
    /// Preemption, and what is exchanged in its wake (Phase 2).
    Preempt,
    /// Reclaims, releases and the verdicts (Phase 3).
    LetGo,
}

/// One thing to do, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Bootstrap {
        machine: MachineIx,
        need: NeedIx,
        promised: bool,
    },
    Provision {
        machine: MachineIx,
        need: NeedIx,
    },
    Preempt {
        machine: MachineIx,
        need: NeedIx,
        grace_seconds: u32,
    },
    Reclaim {
        machine: MachineIx,
    },
    Delete {
        machine: MachineIx,
    },
}

/// Why a Need is short and what was tried for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortfall {
    pub(crate) reason: UnmetReason,
    pub(crate) supply: MatchingSupply,
    pub(crate) victims: u32,
    pub(crate) freed: Amounts,
}

/// What a cycle decided beyond the claims, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) steps: Vec<Step>,
    pub(crate) held: Vec<MachineIx>,
    pub(crate) ended: Vec<MachineIx>,
    pub(crate) restamps: Vec<(MachineIx, SlotIx)>,
    pub(crate) short: BTreeMap<NeedIx, Shortfall>,
    pub(crate) weighed: BTreeMap<NeedIx, Vec<DomainCoverage>>,
    /// Needs whose claims are not those of pass A.
    touched: Vec<NeedIx>,
    preempted: Vec<MachineIx>,
    now: Time,
    next_release: f64,
}

impl Outcome {
    /// Whether the passing of time alone changes nothing.
    pub(crate) fn stands_at(&self, now: Time) -> bool {
        self.now <= now && now.seconds() < self.next_release
    }
}

impl Book {
    /// Takes everything as changed, and nothing as decided.
    fn start_over(&mut self) {
        for holding in self.holdings.numbers() {
            let need = self.holdings[holding].need;
            if need != NONE {
                self.release(need);
                self.mark_again(need);
            }
        }
        for class in self.classes.numbers() {
            self.mark_class(class);
        }
        for (cluster, _) in self.orphans.clone() {
            if !self.clusters[cluster as usize].heirs_dirty {
                self.clusters[cluster as usize].heirs_dirty = true;
                self.dirty_clusters.push(cluster);
            }
        }
        let promised: Vec<SlotIx> = self
            .intents
            .iter()
            .map(|at| self.record(*at).slot)
            .collect();
        self.dirty_slots.extend(promised);
        self.supply_moved = true;
    }

    /// Runs one cycle on what changed since `before`, or on everything; says when each part begins.
    pub(crate) fn cycle(
        &mut self,
        before: Outcome,
        now: Time,
        in_full: bool,
        begins: &mut dyn FnMut(Part),
    ) -> Outcome {
        for machine in before.preempted {
            self.records[machine as usize].preempted = false;
        }
        for need in before.touched {
            self.release(need);
            self.mark_again(need);
        }
        if in_full {
            self.start_over();
        }
        self.pass_on();
        self.fold();
        let dirty = self.take_dirty();
        self.end_intents();
        begins(Part::Serve);
        self.keep_all_own(&dirty);
        self.changed = false;

        let mut outcome = Outcome {
            now,
            ..Outcome::default()
        };
        let short = dirty
            .into_iter()
            .filter(|need| self.is_short(*need))
            .collect();
        let weighed = &mut outcome.weighed;
        let served = self.serve_short(short, |book, need, domains| {
            weighed.insert(need, domains.candidates(book));
        });
        self.emit_acquisitions(&served, &mut outcome);
        let short: Vec<NeedIx> = served
            .iter()
            .copied()
            .filter(|need| self.is_short(*need))
            .collect();
        begins(Part::Preempt);
        let held = self.preempt_for(&short, &mut outcome);
        let exchanged = self.exchange(&held, &short);
        let held = match exchanged.is_empty() {
            true => held,
            false => self.hold(&outcome.preempted),
        };
        outcome.touched = served;
        outcome.touched.extend(exchanged);
        begins(Part::LetGo);
        self.let_go(now, &held, &mut outcome);
        self.review_intents(&mut outcome);
        self.judge_supply(&mut outcome);
        outcome
    }

    fn is_short(&self, need: NeedIx) -> bool {
        self.need(need).is_live() && !self.holding(need).is_covered()
    }

    /// The Needs to look at again.
    fn take_dirty(&mut self) -> Vec<NeedIx> {
        let mut dirty = std::mem::take(&mut self.dirty_needs);
        dirty.retain(|need| {
            self.needs[*need].dirty = false;
            self.need(*need).in_use && self.need(*need).is_live()
        });
        dirty
    }

    /// Whether an old mistake has a Need not keep what is its own.
    fn forgets_own(&self, need: NeedIx) -> bool {
        self.mistake.is_some_and(|mistake| match mistake {
            Mistake::OwnNotFirst => true,
            Mistake::NoIncumbent => {
                self.tables.profiles[self.need(need).profile as usize].same_key != NONE
            }
        })
    }

    fn keep_all_own(&mut self, dirty: &[NeedIx]) {
        let mut draft = Draft::default();
        let mut shared = Vec::new();
        for need in dirty {
            let own_changed = std::mem::replace(&mut self.needs[*need].own_dirty, false);
            if own_changed {
                self.sum_up(*need);
            }
            if self.forgets_own(*need) {
                self.release(*need);
            } else if self.is_shared(*need) {
                self.release(*need);
                shared.push(*need);
            } else if !self.keep_whole(*need) && (own_changed || !self.is_settled(*need)) {
                self.keep_own(*need, &mut draft);
            }
        }
        // Profiles whose texts collide share their own (RF-1): the first in order goes first.
        shared.sort_by(|one, other| self.need_order(*one, *other));
        for need in shared {
            self.keep_own(need, &mut draft);
        }
    }

    /// Bootstraps, promised and new, then Provisions, Need by Need (RF-14).
    fn emit_acquisitions(&self, served: &[NeedIx], outcome: &mut Outcome) {
        let new =
            |need: &&NeedIx| 0 < self.holding(**need).bootstraps + self.holding(**need).provisions;
        let mut needs: BTreeSet<NeedIx> = served.iter().filter(new).copied().collect();
        for machine in &self.intents {
            let record = self.record(*machine);
            if record.state == Some(State::Idle) && record.claimant != NONE {
                needs.insert(record.claimant);
            }
        }
        let mut needs: Vec<NeedIx> = needs.into_iter().collect();
        needs.sort_by(|one, other| self.need_order(*one, *other));
        for need in needs {
            let entry = self.need(need);
            let acquires = self.clusters[entry.cluster as usize].acquire;
            let in_state = |state: State| {
                let claims = self.claims(need).iter().copied();
                claims.filter(move |machine| self.record(*machine).state == Some(state))
            };
            let is_promised = |machine: &MachineIx| self.attribution(*machine) == entry.slot;
            let (promised, new): (Vec<_>, Vec<_>) = in_state(State::Idle).partition(is_promised);
            let bootstrap = |promised| {
                move |machine| Step::Bootstrap {
                    machine,
                    need,
                    promised,
                }
            };
            if acquires {
                outcome
                    .steps
                    .extend(promised.into_iter().map(bootstrap(true)));
            }
            outcome.steps.extend(new.into_iter().map(bootstrap(false)));
            let provision = |machine| Step::Provision { machine, need };
            outcome
                .steps
                .extend(in_state(State::Speculative).map(provision));
        }
    }

    /// Phase 2; returns what is held after it (RF-11).
    fn preempt_for(&mut self, short: &[NeedIx], outcome: &mut Outcome) -> Held {
        let held = self.hold(&[]);
        let mut moved = false;
        for need in short {
            let preemption = self.preempt(*need, &held);
            for machine in &preemption.victims {
                let grace_seconds = self.grace(*need, *machine, &held);
                outcome.steps.push(Step::Preempt {
                    machine: *machine,
                    need: *need,
                    grace_seconds,
                });
            }
            let freed = preemption
                .victims
                .iter()
                .fold(Amounts::NONE, |sum, machine| {
                    let shape = &self.tables.shapes[self.record(*machine).shape as usize];
                    sum.add(shape.shape.effective())
                });
            let victims = preemption.victims.len() as u32;
            let exhausted = 0 < victims && !preemption.resolved;
            let reason = match exhausted {
                true => UnmetReason::PreemptionExhausted,
                false => UnmetReason::PriorityStarved,
            };
            let shortfall = Shortfall {
                reason,
                victims,
                freed,
                ..Shortfall::default()
            };
            moved |= 0 < victims || preemption.promised;
            outcome.preempted.extend(preemption.victims);
            outcome.short.insert(preemption.need, shortfall);
        }
        match moved {
            true => self.hold(&outcome.preempted),
            false => held,
        }
    }

    /// Reclaims and Deletes (Phase 3).
    fn let_go(&self, now: Time, held: &Held, outcome: &mut Outcome) {
        let reclaims = self.reclaims(held);
        outcome.steps.extend(
            reclaims
                .into_iter()
                .map(|machine| Step::Reclaim { machine }),
        );
        outcome.held = held.machines().collect();
        let (releases, next_release) = self.releases(now);
        outcome
            .steps
            .extend(releases.into_iter().map(|machine| Step::Delete { machine }));
        // A hair early: the exact test subtracts, this one adds.
        let hair = next_release.abs().min(f64::MAX) * 1e-12;
        outcome.next_release = next_release - hair;
    }

    /// Lists the intents that ended (RF-13) and the commitments that change (RF-7).
    fn review_intents(&mut self, outcome: &mut Outcome) {
        let mut restamps: BTreeMap<MachineIx, SlotIx> = BTreeMap::new();
        for machine in &self.intents {
            let record = self.record(*machine);
            let attribution = self.attribution(*machine);
            let is_kept = record.claimant != NONE && self.need(record.claimant).slot == attribution;
            let slot = &self.slots[record.slot];
            let acquires = self.clusters[slot.cluster as usize].acquire;
            let ends = slot.ended || (self.is_live(record.slot) && acquires);
            if !is_kept && ends {
                outcome.ended.push(*machine);
            } else if slot.heir != NONE {
                restamps.insert(*machine, slot.heir);
            }
        }
        for (_, orphan) in &self.orphans {
            let slot = &self.slots[*orphan];
            let bound =
                |at: &&MachineIx| !self.record(**at).preempted && !self.intents.contains(at);
            if slot.heir != NONE {
                let passed = slot.machines.iter().filter(bound);
                restamps.extend(passed.map(|machine| (*machine, slot.heir)));
            }
        }
        for machine in &self.mismatched {
            let record = self.record(*machine);
            let is_free = matches!(record.state, Some(State::Idle | State::Speculative));
            if !is_free && !record.preempted {
                restamps.insert(*machine, self.need(record.claimant).slot);
            }
        }
        outcome.restamps = restamps.into_iter().collect();
    }

    /// Says why each short Need is short (VD-2, RF-15).
    fn judge_supply(&mut self, outcome: &mut Outcome) {
        for (need, shortfall) in &mut outcome.short {
            let (entry, holding) = (self.need(*need), self.holding(*need));
            let (mut counts, mut unclaimed) = ([0_u32; 3], 0);
            for shape in &self.tables.uses[entry.usage as usize].by_price {
                let stock = &self.stocks[*shape as usize];
                let of = |state: State| stock.count[state as usize];
                let (idle, speculative) = (of(State::Idle), of(State::Speculative));
                for (sum, count) in
                    counts
                        .iter_mut()
                        .zip([idle, speculative, of(State::Configured)])
                {
                    *sum = sum.saturating_add(count);
                }
                unclaimed += idle + speculative - stock.claimed;
            }
            let [idle, speculative, configured] = counts;
            shortfall.supply = MatchingSupply::capped(idle, speculative, configured);
            let is_gang = self.tables.profiles[entry.profile as usize].same_key != NONE;
            let is_homeless = !holding.satisfiable || entry.parked || holding.domain == NONE;
            if is_gang && is_homeless {
                shortfall.reason = UnmetReason::TopologyUnsatisfiable;
            } else if shortfall.supply.is_empty() && self.claims(*need).is_empty() {
                shortfall.reason = UnmetReason::NoMatchingSupply;
            } else if self.is_spread(*need) && 0 < unclaimed {
                shortfall.reason = UnmetReason::SpreadUnsatisfiable;
            }
        }
    }
}
