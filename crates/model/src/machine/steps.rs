//! Steps: how a machine that is known changes (DC-1, DC-5, DC-7, RF-7).
//!
//! ```text
//! source ── commit ──▶ on its way ── arrive ──▶ target
//!    ▲                     │  │
//!    └───── roll back ─────┘  └──── fail ──▶ Failed        restamp, release_intent: only for whom
//! ```
//!
//! Each step answers with the machine as it is afterwards, or says why it cannot be taken. Whoever is
//! refused was mistaken about the machine; nothing was changed. A machine that took a step passes the
//! grid: a step changes only what the grid lets the new state have.

use super::{Breach, Host, Machine, MachineRefused};
use crate::{
    Action, ActionKind, Assignment, ClusterId, Intent, MachineId, NeedKey, Restamp, State, Terms,
    Via,
};
use std::fmt;

/// Why a machine cannot take a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRefused {
    /// The machine that was to take it.
    pub machine: MachineId,
    /// The state it is in.
    pub state: State,
    /// What is in the way.
    pub problem: StepProblem,
}

/// What is in the way of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum StepProblem {
    /// The action starts from its source state only.
    NotAtSource(ActionKind),
    /// The machine is not on its way by this action.
    NotOnItsWay(ActionKind),
    /// The machine rests where it is, so it arrives nowhere and cannot break on the way.
    Resting,
    /// The action names no Need that the machine is for.
    NoNeed(ActionKind),
    /// A machine in this state is not committed to any Need.
    HoldsNoCommitment,
    /// The machine is not meant for anybody.
    NoIntent,
    /// The machine is meant for somebody, so its drain is not taken back.
    Promised,
    /// The machine belongs to another cluster than the Need, or than the one it is seen in.
    OtherCluster(ClusterId),
    /// What is seen is another machine.
    OtherMachine(MachineId),
    /// There is no such edge (ST-1).
    NoEdge(State, Via),
    /// The machine as it would be afterwards breaks the grid (ST-5).
    Grid(Breach),
}

impl fmt::Display for StepRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, state, .. } = self;
        write!(f, "machine {machine} is {state}: ")?;
        match &self.problem {
            StepProblem::NotAtSource(kind) => {
                write!(f, "{} starts from {} (DC-1)", kind.word(), kind.source())
            }
            StepProblem::NotOnItsWay(ActionKind::Restore) => {
                f.write_str("Restore is done when it is committed (RF-20)")
            }
            StepProblem::NotOnItsWay(kind) => {
                let (word, from) = (kind.word(), kind.transitional());
                write!(f, "{word} is rolled back from {from} (DC-7)")
            }
            StepProblem::Resting => f.write_str("it is on its way nowhere (ST-1)"),
            StepProblem::NoNeed(kind) => write!(f, "{} is for no Need (DC-2)", kind.word()),
            StepProblem::HoldsNoCommitment => f.write_str("it cannot be for a Need (RF-7)"),
            StepProblem::NoIntent => f.write_str("it is meant for nobody (DC-5)"),
            StepProblem::Promised => f.write_str("it is promised to a Need (RF-20)"),
            StepProblem::OtherCluster(cluster) => {
                write!(f, "it is not cluster {cluster}'s (RF-7)")
            }
            StepProblem::OtherMachine(other) => write!(f, "{other} is another machine (INV-1)"),
            StepProblem::NoEdge(to, Via::Rollback) => {
                write!(f, "it does not roll back to {to} (DC-7)")
            }
            StepProblem::NoEdge(to, Via::Step | Via::Adoption) => {
                write!(f, "it does not become {to} (ST-1)")
            }
            StepProblem::Grid(breach) => write!(f, "{breach}"),
        }
    }
}

impl std::error::Error for StepRefused {}

impl Machine {
    fn refuse<T>(&self, problem: StepProblem) -> Result<T, StepRefused> {
        Err(StepRefused {
            machine: self.id.clone(),
            state: self.state,
            problem,
        })
    }

    /// What it becomes, if that passes the grid.
    fn pass(&self, next: Self) -> Result<Self, StepRefused> {
        match next.breach() {
            Some(breach) => self.refuse(StepProblem::Grid(breach)),
            None => Ok(next),
        }
    }

    /// Commits it to an action before anything is sent (DC-1, DC-2): the state it passes through, and
    /// whom it is for. A machine that was promised keeps the price of the promise; one whose drain is
    /// taken back serves its cluster at once (RF-20).
    pub fn commit(&self, action: &Action) -> Result<Self, StepRefused> {
        let kind = action.kind;
        if action.machine != self.id {
            return self.refuse(StepProblem::OtherMachine(action.machine.clone()));
        }
        if self.state != kind.source() {
            return self.refuse(StepProblem::NotAtSource(kind));
        }
        let mut next = self.clone();
        next.state = kind.transitional();
        let promised = next.intent.take();
        match (kind, &action.purpose) {
            (ActionKind::Bootstrap, Some((need, terms))) => {
                let promised = promised.and_then(|intent| intent.keep_price);
                next.cluster = Some(need.cluster.clone());
                next.assignment = Assignment {
                    keep_price: Some(promised.unwrap_or(self.price)),
                    ..assignment(need, *terms)
                };
            }
            // It was bound all along, so its price of then stays.
            (ActionKind::Restore, Some((need, terms))) => {
                if self.cluster.as_ref() != Some(&need.cluster) {
                    return self.refuse(StepProblem::OtherCluster(need.cluster.clone()));
                }
                if promised.is_some() {
                    return self.refuse(StepProblem::Promised);
                }
                next.assignment = Assignment {
                    keep_price: self.assignment.keep_price,
                    ..assignment(need, *terms)
                };
            }
            (ActionKind::Provision | ActionKind::Preempt, Some((need, terms))) => {
                next.intent = Some(Box::new(Intent {
                    need: need.clone(),
                    terms: *terms,
                    keep_price: Some(self.price),
                }));
            }
            (
                ActionKind::Bootstrap
                | ActionKind::Provision
                | ActionKind::Preempt
                | ActionKind::Restore,
                None,
            ) => return self.refuse(StepProblem::NoNeed(kind)),
            (ActionKind::Reclaim | ActionKind::Delete, _) => {}
        }
        Ok(next)
    }

    /// Ends its way where it was to go. An intent survives becoming Idle. `host` is what a machine that
    /// was created runs on; all others have theirs.
    pub fn arrive(&self, host: impl FnOnce() -> Host) -> Result<Self, StepRefused> {
        let mut next = self.clone();
        next.state = match self.state {
            State::Creating => {
                next.host = Some(host()).filter(|host| !host.is_empty());
                State::Idle
            }
            State::Configuring => State::Configured,
            State::Draining => {
                next.unbind();
                State::Idle
            }
            State::Deleting => {
                next.host = None;
                State::Speculative
            }
            State::Speculative | State::Idle | State::Configured | State::Failed => {
                return self.refuse(StepProblem::Resting);
            }
        };
        self.pass(next)
    }

    /// Takes over what its provider shows of it: state, host, shape and price are the provider's word,
    /// for whom it is stays ours (RC-6). `rebound` is what the provider echoes of a binding that is not
    /// the one known here; without it, a machine that is bound must be so to the cluster it is known in.
    pub fn follow(
        &self,
        seen: &Self,
        via: Via,
        rebound: Option<Assignment>,
    ) -> Result<Self, StepRefused> {
        if seen.id != self.id {
            return self.refuse(StepProblem::OtherMachine(seen.id.clone()));
        }
        if seen.state != self.state && !self.state.may_become(seen.state, via) {
            return self.refuse(StepProblem::NoEdge(seen.state, via));
        }
        let assignment = match (rebound, &seen.cluster) {
            (_, None) => Assignment::default(),
            (Some(rebound), Some(_)) => rebound,
            (None, cluster) if *cluster == self.cluster => self.assignment.clone(),
            (None, Some(cluster)) => {
                return self.refuse(StepProblem::OtherCluster(cluster.clone()));
            }
        };
        let intent = self.intent.clone();
        Ok(Self {
            assignment,
            intent: intent.filter(|_| seen.state.may_hold_intent()),
            ..seen.clone()
        })
    }

    /// Takes a commit back because nothing of it was done (DC-7): the state it came from, meant for
    /// nobody. One that was to be bound is unbound; one that was to be drained serves on. A Restore is
    /// done when it is committed.
    pub fn roll_back(&self, kind: ActionKind) -> Result<Self, StepRefused> {
        if kind == ActionKind::Restore || self.state != kind.transitional() {
            return self.refuse(StepProblem::NotOnItsWay(kind));
        }
        let mut next = self.clone();
        next.state = kind.source();
        next.intent = None;
        if kind == ActionKind::Bootstrap {
            next.unbind();
        }
        Ok(next)
    }

    /// Commits it to another Need without an action (RF-7): all of its assignment, or its intent. The
    /// price it is kept at stays; a machine that was meant for nobody takes the live one.
    pub fn restamp(&self, to: &Restamp) -> Result<Self, StepRefused> {
        if to.machine != self.id {
            return self.refuse(StepProblem::OtherMachine(to.machine.clone()));
        }
        let mut next = self.clone();
        if self.state.is_bound() {
            if self.cluster.as_ref() != Some(&to.need.cluster) {
                return self.refuse(StepProblem::OtherCluster(to.need.cluster.clone()));
            }
            next.assignment = Assignment {
                keep_price: self.assignment.keep_price,
                ..assignment(&to.need, to.terms)
            };
        } else if self.state.may_hold_intent() {
            let before = next.intent.take();
            next.intent = Some(Box::new(Intent {
                need: to.need.clone(),
                terms: to.terms,
                keep_price: before.map_or(Some(self.price), |intent| intent.keep_price),
            }));
        } else {
            return self.refuse(StepProblem::HoldsNoCommitment);
        }
        Ok(next)
    }

    /// Releases it from the Need it was meant for: it is ordinary supply again (DC-5, RF-13).
    pub fn release_intent(&self) -> Result<Self, StepRefused> {
        if self.intent.is_none() {
            return self.refuse(StepProblem::NoIntent);
        }
        Ok(Self {
            intent: None,
            ..self.clone()
        })
    }

    /// Breaks on its way (ST-2); it is meant for nobody any more.
    pub fn fail(&self, error: &str) -> Result<Self, StepRefused> {
        if !self.state.may_become(State::Failed, Via::Step) {
            return self.refuse(StepProblem::Resting);
        }
        self.pass(Self {
            state: State::Failed,
            last_error: error.to_owned(),
            intent: None,
            ..self.clone()
        })
    }

    /// Puts it back on the way of an action it was committed to before a restart, as remembered; this
    /// is what the provider shows of it now, which may be before, on or after that way. The remembered
    /// commitment passes the grid as in [`Self::new`].
    pub fn resume(
        &self,
        kind: ActionKind,
        cluster: Option<ClusterId>,
        assignment: Assignment,
        intent: Option<Intent>,
    ) -> Result<Self, MachineRefused> {
        let state = kind.transitional();
        let cluster = cluster.filter(|_| !state.drops_cluster());
        let next = Self {
            state,
            host: self.host.clone().filter(|_| state != State::Creating),
            assignment: cluster
                .as_ref()
                .map_or_else(Assignment::default, |_| assignment),
            cluster,
            intent: intent.map(Box::new),
            ..self.clone()
        };
        match next.breach() {
            Some(breach) => Err(next.refused(breach)),
            None => Ok(next),
        }
    }

    fn unbind(&mut self) {
        self.cluster = None;
        self.assignment = Assignment::default();
    }
}

/// The assignment to a Need, without the price it was made at.
fn assignment(need: &NeedKey, terms: Terms) -> Assignment {
    Assignment {
        terms,
        fingerprint: need.fingerprint.clone(),
        group: need.group.clone(),
        keep_price: None,
    }
}

#[cfg(test)]
mod tests;
