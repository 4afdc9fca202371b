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
    Mistake,
    excess::Excess,
    fleet_tables::FleetTables,
    index::{MachineIndex, NeedIndex, SlotIndex, UseIndex},
    pass_a::Draft,
    preempt::Victims,
};
use bigfleet_model::{Amounts, DomainCoverage, MatchingSupply, State, Time, UnmetReason};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a decision, so that a caller with a clock can time each: the engine has none. Before the
/// first of them the engine takes in what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every Need keeps its own, then those still short are served in order (Phase 1).
    Serve,
    /// Preemption, and the exchanges after it (Phase 2).
    Preempt,
    /// Reclaims, releases and the verdicts (Phase 3).
    LetGo,
}

/// One thing to do, with indexes where an [`bigfleet_model::Action`] has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedAction {
    Restore {
        machine: MachineIndex,
        need: NeedIndex,
    },
    Bootstrap {
        machine: MachineIndex,
        need: NeedIndex,
        promised: bool,
    },
    Provision {
        machine: MachineIndex,
        need: NeedIndex,
    },
    Preempt {
        machine: MachineIndex,
        need: NeedIndex,
        grace_seconds: u32,
    },
    Reclaim {
        machine: MachineIndex,
        /// It is marked to leave (RF-21).
        leaves: bool,
    },
    Delete {
        machine: MachineIndex,
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

/// What a cycle decided beyond the claims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) actions: Vec<PlannedAction>,
    pub(crate) held: Vec<MachineIndex>,
    pub(crate) ended: Vec<MachineIndex>,
    pub(crate) restamps: Vec<(MachineIndex, SlotIndex)>,
    pub(crate) short: BTreeMap<NeedIndex, Shortfall>,
    pub(crate) weighed: BTreeMap<NeedIndex, Vec<DomainCoverage>>,
    /// Needs whose claims are not those of pass A.
    touched: Vec<NeedIndex>,
    preempted: Vec<MachineIndex>,
    /// Drains that are taken back (RF-20).
    pub(crate) restored: BTreeSet<MachineIndex>,
    now: Time,
    /// When the next idle machine's hold runs out.
    next_release: Option<Time>,
}

impl Outcome {
    /// Whether it is still the decision at this moment, if nothing but time has passed.
    pub(crate) fn stands_at(&self, now: Time) -> bool {
        self.now <= now && self.next_release.is_none_or(|next| now < next)
    }

    /// Whether a machine is reclaimed, so that it matters what draining machines would disturb.
    pub(crate) fn lets_go(&self) -> bool {
        let is_reclaim = |action: &PlannedAction| matches!(action, PlannedAction::Reclaim { .. });
        self.actions.iter().any(is_reclaim)
    }
}

impl FleetTables {
    /// Marks every Need and every class as changed, so that this cycle decides about all of them anew.
    fn mark_everything(&mut self) {
        for holding in self.holdings.indexes() {
            if let Some(need) = self.holdings[holding].need {
                self.release(need);
                self.mark_again(need);
            }
        }
        for class in self.classes.indexes() {
            self.mark_class(class);
        }
        for (cluster, _) in self.orphans.clone() {
            self.mark_heirs(cluster);
        }
        self.mark_intents();
        self.supply_moved = true;
    }

    /// Runs one cycle on what changed since `before`, or on everything; calls `begins` for each part.
    pub(crate) fn cycle(
        &mut self,
        before: Outcome,
        now: Time,
        in_full: bool,
        begins: &mut dyn FnMut(Part),
    ) -> Outcome {
        self.catalog.settle();
        self.replaced.clear();
        for machine in before.preempted {
            self.records[machine].preempted = false;
        }
        for need in before.touched {
            self.release(need);
            self.mark_again(need);
        }
        if in_full {
            self.mark_everything();
        }
        self.pass_on();
        self.fold();
        let dirty = self.take_dirty();
        self.end_intents();
        begins(Part::Serve);
        self.keep_all_own(&dirty);
        (self.changed, self.disruption_moved) = (false, false);

        let mut outcome = Outcome {
            now,
            ..Outcome::default()
        };
        let turns = dirty.iter().copied();
        let turns = turns.filter(|need| self.is_short(*need) || self.is_to_replace(*need));
        let turns = turns.collect();
        let weighed = &mut outcome.weighed;
        let served = self.serve_short(turns, |tables, need, domains| {
            weighed.insert(need, domains.candidates(tables));
        });
        self.emit_acquisitions(&served, &mut outcome);
        let short: Vec<NeedIndex> = served
            .iter()
            .copied()
            .filter(|need| self.is_short(*need))
            .collect();
        begins(Part::Preempt);
        let mut excess = self.preempt_for(&short, &mut outcome);
        let exchanged = self.exchange(&excess, &short);
        if !exchanged.is_empty() {
            excess = self.find_excess(&outcome.preempted);
        }
        outcome.touched = served;
        outcome.touched.extend(exchanged);
        begins(Part::LetGo);
        self.let_go(now, &excess, &mut outcome);
        self.review_intents(&mut outcome);
        self.judge_supply(&mut outcome);
        self.note_lacking(dirty.iter().chain(&outcome.touched));
        outcome
    }

    /// Keeps up which Needs are not covered by Configured machines alone.
    fn note_lacking<'n>(&mut self, looked_at: impl Iterator<Item = &'n NeedIndex>) {
        for need in looked_at {
            if self.is_short(*need) || 0 < self.holding(*need).arriving {
                self.lacking.insert(*need);
            } else {
                self.lacking.remove(need);
            }
        }
    }

    fn is_short(&self, need: NeedIndex) -> bool {
        self.need(need).is_live() && !self.holding(need).is_covered()
    }

    /// Whether a Need counts on machines that leave soon (RF-21). Then it had a turn in the last cycle, too, and
    /// is decided about again in every one.
    fn is_to_replace(&self, need: NeedIndex) -> bool {
        self.need(need).is_live() && 0 < self.holding(need).leaving
    }

    /// The Needs marked since the last cycle that are still there.
    fn take_dirty(&mut self) -> Vec<NeedIndex> {
        let mut dirty = std::mem::take(&mut self.dirty_needs);
        self.work.marked += dirty.len() as u64;
        dirty.retain(|need| {
            self.needs[*need].dirty = false;
            self.need(*need).is_live()
        });
        dirty
    }

    /// Whether a mistake that is switched on makes a Need skip pass A.
    fn forgets_own(&self, need: NeedIndex) -> bool {
        match self.mistake {
            Some(Mistake::OwnNotFirst) => true,
            Some(Mistake::NoIncumbent) => self.is_gang(need),
            _ => false,
        }
    }

    fn keep_all_own(&mut self, dirty: &[NeedIndex]) {
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

    /// Claimed machines whose drain is taken back: each was meant for nobody (RF-20).
    fn taken_back(&self) -> impl Iterator<Item = (MachineIndex, NeedIndex)> {
        self.ways_back.keys().filter_map(|machine| {
            let claimant = self.record(*machine).claimant?;
            let is_own = self.attribution(*machine) == Some(self.need(claimant).slot);
            (!is_own).then_some((*machine, claimant))
        })
    }

    /// Restores, Bootstraps, promised and new, then Provisions, Need by Need (RF-14).
    fn emit_acquisitions(&self, served: &[NeedIndex], outcome: &mut Outcome) {
        let new = |need: &&NeedIndex| {
            0 < self.holding(**need).bootstraps + self.holding(**need).provisions
        };
        let mut needs: BTreeSet<NeedIndex> = served.iter().filter(new).copied().collect();
        for (machine, need) in self.taken_back() {
            outcome.restored.insert(machine);
            needs.insert(need);
        }
        for machine in &self.intents {
            let record = self.record(*machine);
            if record.state == Some(State::Idle) {
                needs.extend(record.claimant);
            }
        }
        let mut needs: Vec<NeedIndex> = needs.into_iter().collect();
        needs.sort_by(|one, other| self.need_order(*one, *other));
        for need in needs {
            let entry = self.need(need);
            let acquires = self.clusters[entry.cluster].acquire;
            let in_state = |state: State| {
                let claims = self.claims(need).iter().copied();
                claims.filter(move |machine| self.record(*machine).state == Some(state))
            };
            let restored = in_state(State::Draining).filter(|at| outcome.restored.contains(at));
            let restore = |machine| PlannedAction::Restore { machine, need };
            let restores: Vec<_> = restored.map(restore).collect();
            outcome.actions.extend(restores);
            let is_promised =
                |machine: &MachineIndex| self.attribution(*machine) == Some(entry.slot);
            let (promised, new): (Vec<_>, Vec<_>) = in_state(State::Idle).partition(is_promised);
            let bootstrap = |promised| {
                move |machine| PlannedAction::Bootstrap {
                    machine,
                    need,
                    promised,
                }
            };
            if acquires {
                outcome
                    .actions
                    .extend(promised.into_iter().map(bootstrap(true)));
            }
            outcome
                .actions
                .extend(new.into_iter().map(bootstrap(false)));
            let provision = |machine| PlannedAction::Provision { machine, need };
            outcome
                .actions
                .extend(in_state(State::Speculative).map(provision));
        }
    }

    /// Phase 2; returns the excess after it (RF-11).
    fn preempt_for(&mut self, short: &[NeedIndex], outcome: &mut Outcome) -> Excess {
        let excess = self.find_excess(&[]);
        let mut victims = Victims::default();
        let mut moved = false;
        for need in short {
            let preemption = self.preempt(*need, &excess, &mut victims);
            for machine in &preemption.victims {
                let grace_seconds = self.grace(*need, *machine, &excess);
                outcome.actions.push(PlannedAction::Preempt {
                    machine: *machine,
                    need: *need,
                    grace_seconds,
                });
            }
            let freed = preemption
                .victims
                .iter()
                .fold(Amounts::NONE, |sum, machine| {
                    let shape = &self.catalog.shapes[self.record(*machine).shape];
                    sum.add(shape.shape.effective())
                });
            let victims = preemption.victims.len() as u32;
            let exhausted = 0 < victims && !preemption.resolved;
            let reason = if exhausted {
                UnmetReason::PreemptionExhausted
            } else {
                UnmetReason::PriorityStarved
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
        if moved {
            self.find_excess(&outcome.preempted)
        } else {
            excess
        }
    }

    /// Reclaims and Deletes (Phase 3).
    fn let_go(&self, now: Time, excess: &Excess, outcome: &mut Outcome) {
        let reclaims = self.reclaims(excess);
        outcome
            .actions
            .extend(reclaims.into_iter().map(|machine| PlannedAction::Reclaim {
                machine,
                leaves: self.record(machine).leaving.is_some(),
            }));
        outcome.held = excess.held().collect();
        let (releases, next_release) = self.releases(now);
        outcome.actions.extend(
            releases
                .into_iter()
                .map(|machine| PlannedAction::Delete { machine }),
        );
        outcome.next_release = next_release;
    }

    /// Lists the intents that ended (RF-13) and the commitments that change (RF-7).
    fn review_intents(&mut self, outcome: &mut Outcome) {
        let mut restamps: BTreeMap<MachineIndex, SlotIndex> = BTreeMap::new();
        outcome.ended.extend(&self.let_off);
        for machine in &self.intents {
            let record = self.record(*machine);
            let Some(own_slot) = record.slot else {
                continue;
            };
            let claimed_for = record.claimant.map(|claimant| self.need(claimant).slot);
            let is_kept = claimed_for.is_some() && claimed_for == self.attribution(*machine);
            let slot = &self.slots[own_slot];
            let acquires = self.clusters[slot.cluster].acquire;
            let ends = slot.ended || (self.is_live(own_slot) && acquires);
            if !is_kept && ends {
                outcome.ended.push(*machine);
            } else if let Some(heir) = slot.heir {
                restamps.insert(*machine, heir);
            }
        }
        for (_, orphan) in &self.orphans {
            let slot = &self.slots[*orphan];
            let bound =
                |at: &&MachineIndex| !self.record(**at).preempted && !self.intents.contains(at);
            if let Some(heir) = slot.heir {
                let passed = slot.machines.iter().filter(bound);
                restamps.extend(passed.map(|machine| (*machine, heir)));
            }
        }
        // What was replaced is attributed to the Need that gave it back, unless it goes at once (RF-21).
        let reclaimed = |machine: MachineIndex| {
            let mut actions = outcome.actions.iter();
            actions.any(|action| matches!(action, PlannedAction::Reclaim { machine: at, .. } if *at == machine))
        };
        let is_passed_on = self.mistake != Some(Mistake::ReplacedNotRestamped);
        for (machine, need) in &self.replaced {
            let slot = self.need(*need).slot;
            if self.record(*machine).slot != Some(slot) && !reclaimed(*machine) && is_passed_on {
                restamps.insert(*machine, slot);
            }
        }
        let is_listed_too = self.mistake == Some(Mistake::RestoredAndRestamped);
        for machine in &self.mismatched {
            let record = self.record(*machine);
            let is_free = matches!(record.state, Some(State::Idle | State::Speculative));
            if let Some(claimant) = record.claimant
                && !is_free
                && !record.preempted
                && (!outcome.restored.contains(machine) || is_listed_too)
            {
                restamps.insert(*machine, self.need(claimant).slot);
            }
        }
        outcome.restamps = restamps.into_iter().collect();
    }

    /// Says why each short Need is short (VD-2, RF-15).
    fn judge_supply(&mut self, outcome: &mut Outcome) {
        let mut of_use: BTreeMap<UseIndex, (MatchingSupply, u32)> = BTreeMap::new();
        for (need, shortfall) in &mut outcome.short {
            let (entry, holding) = (self.need(*need), self.holding(*need));
            let supply = of_use.entry(entry.usage);
            let (supply, unclaimed) = *supply.or_insert_with(|| self.matching_supply(entry.usage));
            shortfall.supply = supply;
            let is_homeless = !holding.satisfiable || entry.parked || holding.domain.is_none();
            if self.is_gang(*need) && is_homeless {
                shortfall.reason = UnmetReason::TopologyUnsatisfiable;
            } else if shortfall.supply.is_empty() && self.claims(*need).is_empty() {
                shortfall.reason = UnmetReason::NoMatchingSupply;
            } else if self.is_spread(*need) && 0 < unclaimed {
                shortfall.reason = UnmetReason::SpreadUnsatisfiable;
            }
        }
    }

    /// What matches a use at all, and how much of what is free nobody claims (RF-15).
    fn matching_supply(&self, usage: UseIndex) -> (MatchingSupply, u32) {
        let (mut counts, mut unclaimed) = ([0_u32; 3], 0);
        for shape in self.catalog.by_price(usage) {
            let stock = &self.stocks[shape];
            let of = |state: State| stock.count[state as usize];
            let (idle, speculative) = (of(State::Idle), of(State::Speculative));
            let of_states = [idle, speculative, of(State::Configured)];
            for (sum, count) in counts.iter_mut().zip(of_states) {
                *sum = sum.saturating_add(count);
            }
            unclaimed += idle + speculative - stock.claimed;
        }
        let [idle, speculative, configured] = counts;
        let supply = MatchingSupply::capped(idle, speculative, configured);
        (supply, unclaimed)
    }
}
