//! Render: the outcome of a cycle as the model's actions, claims and verdicts.

use crate::{
    cycle::{Outcome, PlannedAction},
    fleet_tables::FleetTables,
    index::{ClusterIndex, MachineIndex, NeedIndex, SlotIndex},
};
use bigfleet_model::{
    Action, ActionKind, Claim, ClusterId, Decision, Digest, Fingerprint, Group, MachineId, Need,
    NeedKey, Reason, Restamp, Row, Terms, Verdict,
};
use std::sync::Arc;

impl FleetTables {
    pub(crate) fn machine_id(&self, machine: MachineIndex) -> MachineId {
        known(MachineId::new(self.ids.get(machine)))
    }

    pub(crate) fn cluster_id(&self, cluster: ClusterIndex) -> ClusterId {
        known(ClusterId::new(self.cluster_names.get(cluster)))
    }

    pub(crate) fn slot_key(&self, slot: SlotIndex) -> NeedKey {
        let slot = &self.slots[slot];
        NeedKey {
            cluster: self.cluster_id(slot.cluster),
            fingerprint: Fingerprint::new(self.fingerprints.get(slot.fingerprint)),
            group: Group::new(self.groups.get(slot.group)),
        }
    }

    fn slot_terms(&self, slot: SlotIndex) -> Terms {
        let slot = &self.slots[slot];
        let folded = slot.classes.iter().map(|class| self.classes[*class].folded);
        let first = slot.rows.iter().copied().chain(folded).next();
        first.map_or_else(Terms::default, |need| self.terms_of(need))
    }

    fn terms_of(&self, need: NeedIndex) -> Terms {
        Terms::of(&self.catalog.profiles[self.need(need).profile].profile)
    }

    /// A Need as it is evaluated: after folding.
    pub(crate) fn need_value(&self, need: NeedIndex) -> Need {
        let entry = self.need(need);
        Need {
            cluster: self.cluster_id(entry.cluster),
            row: Row {
                profile: Arc::clone(&self.catalog.profiles[entry.profile].profile),
                aggregate: self.catalog.dimensions.amounts(entry.wanted.iter()),
                min_unit: self.catalog.uses[entry.usage].min_unit.clone(),
                group: Group::new(self.groups.get(self.slots[entry.slot].group)),
                whole_units: entry.whole,
            },
            arrival: entry.arrival,
            parked: entry.parked,
        }
    }

    /// This cycle's Needs in the total order.
    pub(crate) fn needs_in_order(&self) -> Vec<NeedIndex> {
        let all = self.needs.indexes();
        let mut live: Vec<NeedIndex> = all.filter(|need| self.need(*need).is_live()).collect();
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

    /// The digest of [`Self::decision`], without building it in memory.
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
        let machines = self.records.indexes();
        let claimed = machines.filter(|machine| self.claimant(*machine).is_some());
        self.by_id(claimed).into_iter().filter_map(|machine| {
            let claimant = self.claimant(machine)?;
            Some(Claim {
                machine: self.machine_id(machine),
                need: self.slot_key(self.need(claimant).slot),
            })
        })
    }

    pub(crate) fn verdicts(&self, outcome: &Outcome) -> impl Iterator<Item = Verdict> {
        let needs = self.needs_in_order().into_iter();
        needs.map(|need| self.verdict(need, outcome))
    }

    fn by_id(&self, machines: impl IntoIterator<Item = MachineIndex>) -> Vec<MachineIndex> {
        let mut machines: Vec<MachineIndex> = machines.into_iter().collect();
        machines.sort_by(|one, other| self.ids.compare(*one, *other));
        machines
    }

    /// The ids of machines, sorted.
    pub(crate) fn named(&self, machines: &[MachineIndex]) -> Vec<MachineId> {
        let sorted = self.by_id(machines.iter().copied()).into_iter();
        sorted.map(|machine| self.machine_id(machine)).collect()
    }

    pub(crate) fn actions(&self, outcome: &Outcome) -> Vec<Action> {
        self.actions_within(outcome, usize::MAX).0
    }

    /// The actions with at most so many acquisitions, and how many were left out.
    pub(crate) fn actions_within(
        &self,
        outcome: &Outcome,
        acquisitions: usize,
    ) -> (Vec<Action>, usize) {
        let (mut left, mut beyond) = (acquisitions, 0);
        let planned = outcome.actions.iter().filter(|action| match action {
            PlannedAction::Bootstrap { .. } | PlannedAction::Provision { .. } => {
                let within = 0 < left;
                left = left.saturating_sub(1);
                beyond += usize::from(!within);
                within
            }
            PlannedAction::Restore { .. }
            | PlannedAction::Preempt { .. }
            | PlannedAction::Reclaim { .. }
            | PlannedAction::Delete { .. } => true,
        });
        let actions = planned.map(|action| self.action(*action)).collect();
        (actions, beyond)
    }

    pub(crate) fn restamps(&self, outcome: &Outcome) -> Vec<Restamp> {
        let mut restamps = outcome.restamps.clone();
        restamps.sort_by(|one, other| self.ids.compare(one.0, other.0));
        let restamp = |(machine, slot)| Restamp {
            machine: self.machine_id(machine),
            need: self.slot_key(slot),
            terms: self
                .claimant(machine)
                .map_or_else(|| self.slot_terms(slot), |claimant| self.terms_of(claimant)),
        };
        restamps.into_iter().map(restamp).collect()
    }

    fn action(&self, planned: PlannedAction) -> Action {
        let purpose =
            |need: NeedIndex| Some((self.slot_key(self.need(need).slot), self.terms_of(need)));
        let base = |kind, machine: MachineIndex, reason| Action {
            kind,
            machine: self.machine_id(machine),
            cluster: None,
            purpose: None,
            grace_seconds: 0,
            preemptor_priority: 0,
            reason,
        };
        let destination = |need: NeedIndex| Some(self.cluster_id(self.need(need).cluster));
        let source = |machine: MachineIndex| {
            let cluster = self.record(machine).cluster;
            cluster.map(|cluster| self.cluster_id(cluster))
        };
        match planned {
            PlannedAction::Restore { machine, need } => Action {
                cluster: destination(need),
                purpose: purpose(need),
                ..base(ActionKind::Restore, machine, Reason::Restored)
            },
            PlannedAction::Bootstrap {
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
            PlannedAction::Provision { machine, need } => Action {
                cluster: destination(need),
                purpose: purpose(need),
                ..base(ActionKind::Provision, machine, Reason::Speculative)
            },
            PlannedAction::Preempt {
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
            PlannedAction::Reclaim { machine, leaves } => Action {
                cluster: source(machine),
                grace_seconds: 600,
                ..base(
                    ActionKind::Reclaim,
                    machine,
                    if leaves {
                        Reason::Leaving
                    } else {
                        Reason::Excess
                    },
                )
            },
            PlannedAction::Delete { machine } => base(ActionKind::Delete, machine, Reason::Release),
        }
    }

    pub(crate) fn verdict(&self, need: NeedIndex, outcome: &Outcome) -> Verdict {
        let (entry, holding) = (self.need(need), self.holding(need));
        let shortfall = outcome.short.get(&need);
        let is_gang = self.is_gang(need);
        let residual = entry.wanted.iter().zip(&*holding.left);
        let residual = residual.map(|((dimension, _), left)| (dimension, *left));
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
            residual: self.catalog.dimensions.amounts(residual),
            claimed: self.claims(need).len() as u32,
            bootstrap: holding.bootstraps,
            provision: holding.provisions,
            same_domain: holding.domain.map_or_else(String::new, |domain| {
                self.domain_name(need, domain).to_owned()
            }),
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

/// An id that was checked when it came in is valid when it goes out.
fn known<T, E: std::fmt::Debug>(id: Result<T, E>) -> T {
    match id {
        Ok(id) => id,
        Err(refused) => unreachable!("a name that was accepted is refused: {refused:?}"),
    }
}
