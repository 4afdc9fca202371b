//! Render: an outcome in the words of the model.

use crate::{
    NONE,
    book::{Book, MachineIx, NeedIx, SlotIx},
    cycle::{Outcome, Step},
};
use bigfleet_model::{
    Action, ActionKind, Claim, ClusterId, Decision, Digest, Fingerprint, Group, MachineId, Need,
    NeedKey, Reason, Restamp, Row, Terms, Verdict,
};
use std::sync::Arc;

impl Book {
    pub(crate) fn machine_id(&self, machine: MachineIx) -> MachineId {
        known(MachineId::new(self.ids.get(machine)))
    }

    pub(crate) fn cluster_id(&self, cluster: u32) -> ClusterId {
        known(ClusterId::new(self.cluster_names.get(cluster)))
    }

    pub(crate) fn slot_key(&self, slot: SlotIx) -> NeedKey {
        let slot = &self.slots[slot];
        NeedKey {
            cluster: self.cluster_id(slot.cluster),
            fingerprint: Fingerprint::new(self.fingerprints.get(slot.fingerprint)),
            group: Group::new(self.groups.get(slot.group)),
        }
    }

    fn slot_terms(&self, slot: SlotIx) -> Terms {
        let slot = &self.slots[slot];
        let folded = slot.classes.iter().map(|class| self.classes[*class].folded);
        let first = slot.rows.iter().copied().chain(folded).next();
        first.map_or_else(Terms::default, |need| self.terms_of(need))
    }

    fn terms_of(&self, need: NeedIx) -> Terms {
        Terms::of(&self.tables.profiles[self.need(need).profile as usize].profile)
    }

    /// A Need as the engine evaluates it.
    pub(crate) fn need_value(&self, need: NeedIx) -> Need {
        let entry = self.need(need);
        Need {
            cluster: self.cluster_id(entry.cluster),
            row: Row {
                profile: Arc::clone(&self.tables.profiles[entry.profile as usize].profile),
                aggregate: self.tables.amounts(entry.wanted.iter().copied()),
                min_unit: self.tables.uses[entry.usage as usize].min_unit.clone(),
                group: Group::new(self.groups.get(self.slots[entry.slot].group)),
            },
            arrival: entry.arrival,
            parked: entry.parked,
        }
    }

    /// This cycle's Needs in the total order.
    pub(crate) fn needs_in_order(&self) -> Vec<NeedIx> {
        let all = self.needs.numbers();
        let mut live: Vec<NeedIx> = all
            .filter(|need| self.need(*need).in_use && self.need(*need).is_live())
            .collect();
        live.sort_by(|one, other| self.need_order(*one, *other));
        live
    }

    pub(crate) fn decision(&self, outcome: &Outcome) -> Decision {
        Decision {
            actions: self.actions(outcome),
            claims: self.all_claims().collect(),
            ended_intents: self.named(&outcome.ended),
            held: self.named(&outcome.held),
            restamps: self.restamps(outcome),
            needs: self.verdicts(outcome).collect(),
        }
    }

    /// The digest of [`Self::decision`], without holding it.
    pub(crate) fn digest(&self, outcome: &Outcome) -> Digest {
        let mut digest = Digest::default();
        digest.list(self.actions(outcome));
        digest.list(self.all_claims());
        digest.list(self.named(&outcome.ended));
        digest.list(self.named(&outcome.held));
        digest.list(self.restamps(outcome));
        digest.list(self.verdicts(outcome));
        digest
    }

    fn all_claims(&self) -> impl Iterator<Item = Claim> {
        let all = 0..self.records.len() as MachineIx;
        let claimed = all.filter(|machine| self.claimant(*machine) != NONE);
        self.by_id(claimed).into_iter().map(|machine| Claim {
            machine: self.machine_id(machine),
            need: self.slot_key(self.need(self.claimant(machine)).slot),
        })
    }

    fn verdicts(&self, outcome: &Outcome) -> impl Iterator<Item = Verdict> {
        let needs = self.needs_in_order().into_iter();
        needs.map(|need| self.verdict(need, outcome))
    }

    fn by_id(&self, machines: impl IntoIterator<Item = MachineIx>) -> Vec<MachineIx> {
        let mut machines: Vec<MachineIx> = machines.into_iter().collect();
        machines.sort_by(|one, other| self.ids.compare(*one, *other));
        machines
    }

    /// Ids of machines, in their order.
    pub(crate) fn named(&self, machines: &[MachineIx]) -> Vec<MachineId> {
        let sorted = self.by_id(machines.iter().copied()).into_iter();
        sorted.map(|machine| self.machine_id(machine)).collect()
    }

    pub(crate) fn actions(&self, outcome: &Outcome) -> Vec<Action> {
        self.actions_within(outcome, usize::MAX).0
    }

    /// All but the acquisitions after the first so many, and how many those are.
    pub(crate) fn actions_within(
        &self,
        outcome: &Outcome,
        acquisitions: usize,
    ) -> (Vec<Action>, usize) {
        let (mut left, mut beyond) = (acquisitions, 0);
        let steps = outcome.steps.iter().filter(|step| match step {
            Step::Bootstrap { .. } | Step::Provision { .. } => {
                let within = 0 < left;
                left = left.saturating_sub(1);
                beyond += usize::from(!within);
                within
            }
            Step::Preempt { .. } | Step::Reclaim { .. } | Step::Delete { .. } => true,
        });
        let actions = steps.map(|step| self.action(*step)).collect();
        (actions, beyond)
    }

    pub(crate) fn restamps(&self, outcome: &Outcome) -> Vec<Restamp> {
        let mut restamps = outcome.restamps.clone();
        restamps.sort_by(|one, other| self.ids.compare(one.0, other.0));
        let restamp = |(machine, slot)| Restamp {
            machine: self.machine_id(machine),
            need: self.slot_key(slot),
            terms: match self.claimant(machine) {
                NONE => self.slot_terms(slot),
                claimant => self.terms_of(claimant),
            },
        };
        restamps.into_iter().map(restamp).collect()
    }

    fn action(&self, step: Step) -> Action {
        let purpose =
            |need: NeedIx| Some((self.slot_key(self.need(need).slot), self.terms_of(need)));
        let base = |kind, machine: MachineIx, reason| Action {
            kind,
            machine: self.machine_id(machine),
            cluster: None,
            purpose: None,
            grace_seconds: 0,
            preemptor_priority: 0,
            reason,
        };
        let destination = |need: NeedIx| Some(self.cluster_id(self.need(need).cluster));
        let source = |machine: MachineIx| Some(self.cluster_id(self.record(machine).cluster));
        match step {
            Step::Bootstrap {
                machine,
                need,
                promised,
            } => Action {
                cluster: destination(need),
                purpose: purpose(need),
                ..base(
                    ActionKind::Bootstrap,
                    machine,
                    if promised {
                        Reason::Promised
                    } else {
                        Reason::Idle
                    },
                )
            },
            Step::Provision { machine, need } => Action {
                cluster: destination(need),
                purpose: purpose(need),
                ..base(ActionKind::Provision, machine, Reason::Speculative)
            },
            Step::Preempt {
                machine,
                need,
                grace_seconds,
            } => Action {
                cluster: source(machine),
                purpose: purpose(need),
                grace_seconds,
                preemptor_priority: self.priority(need),
                ..base(ActionKind::Preempt, machine, Reason::Inversion)
            },
            Step::Reclaim { machine } => Action {
                cluster: source(machine),
                grace_seconds: 600,
                ..base(ActionKind::Reclaim, machine, Reason::Excess)
            },
            Step::Delete { machine } => base(ActionKind::Delete, machine, Reason::Release),
        }
    }

    pub(crate) fn verdict(&self, need: NeedIx, outcome: &Outcome) -> Verdict {
        let (entry, holding) = (self.need(need), self.holding(need));
        let shortfall = outcome.short.get(&need);
        let is_gang = self.tables.profiles[entry.profile as usize].same_key != NONE;
        let residual = entry.wanted.iter().zip(&*holding.left);
        let residual = residual.map(|((dimension, _), left)| (*dimension, *left));
        let (victims_found, capacity_freed, unmet_reason, matching_supply) = match shortfall {
            Some(short) => (
                short.victims,
                short.freed.clone(),
                short.reason,
                short.supply,
            ),
            None => Default::default(),
        };
        Verdict {
            need: Arc::new(self.need_value(need)),
            satisfied: shortfall.is_none(),
            residual: self.tables.amounts(residual),
            claimed: self.claims(need).len() as u32,
            bootstrap: holding.bootstraps,
            provision: holding.provisions,
            same_domain: match is_gang {
                true => self.domain_name(need, holding.domain).to_owned(),
                false => String::new(),
            },
            same_satisfiable: is_gang && holding.satisfiable,
            parked: is_gang && entry.parked,
            victims_found,
            capacity_freed,
            unmet_reason,
            matching_supply,
            same_candidates: outcome.weighed.get(&need).cloned().unwrap_or_default(),
        }
    }
}

/// An id that came in through a checked type comes out the same.
fn known<T, E: std::fmt::Debug>(id: Result<T, E>) -> T {
    match id {
        Ok(id) => id,
        Err(refused) => unreachable!("a name that was accepted is refused: {refused:?}"),
    }
}
