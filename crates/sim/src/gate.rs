//! Gates: what a scenario demands beyond the invariants, judged by program once the fleet rests.

use crate::{clock::Moment, watch::Rule, world::World};
use bigfleet_model::{ActionKind, State};

/// Bootstraps and Provisions.
pub(crate) const ACQUIRE: &[ActionKind] = &[ActionKind::Bootstrap, ActionKind::Provision];

/// Whatever moves a machine to a cluster or away from one.
pub(crate) const MOVES: &[ActionKind] = &[
    ActionKind::Bootstrap,
    ActionKind::Provision,
    ActionKind::Reclaim,
    ActionKind::Preempt,
];

/// From the least to the most, both allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u64, pub(crate) u64);

impl Count {
    pub(crate) const NONE: Self = Self(0, 0);

    pub(crate) const fn exactly(count: u64) -> Self {
        Self(count, count)
    }

    pub(crate) const fn at_least(count: u64) -> Self {
        Self(count, u64::MAX)
    }

    fn check(self, what: &str, is: u64) -> Result<(), (Side, String)> {
        let side = match is {
            is if is < self.0 => Side::TooFew,
            is if self.1 < is => Side::TooMany,
            _ => return Ok(()),
        };
        let text = match self {
            Self(least, most) if least == most => format!("{is} {what}, not {least}"),
            Self(least, u64::MAX) => format!("{is} {what}, not at least {least}"),
            Self(least, most) => format!("{is} {what}, not {least} to {most}"),
        };
        Err((side, text))
    }
}

/// A gate that was missed. One that is missed on the other side is another failure: a Create too many
/// is not a Create too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Which of the scenario's gates.
    pub gate: usize,
    /// On which side.
    pub side: Side,
}

/// On which side a gate is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Less than it takes.
    TooFew,
    /// More than is allowed.
    TooMany,
    /// Not a matter of one number.
    Otherwise,
}

/// One demand.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    /// So many actions of these kinds are committed from one moment up to another.
    Actions(&'static [ActionKind], Moment, Moment, Count),
    /// The provider takes on so many Creates.
    Creates(Count),
    /// So many machines serve a cluster in the end.
    Serving(usize, Count),
    /// So many machines are in a state in the end.
    InState(State, Count),
    /// So many Needs are short in the end.
    Short(Count),
    /// So many Pods of a cluster wait in the end.
    Pending(usize, Count),
    /// So many Pods of a cluster live in the end.
    Live(usize, Count),
    /// So many Pods of a cluster are on nodes in the end.
    Bound(usize, Count),
    /// So many Pods of a cluster were evicted in the whole run.
    Evicted(usize, Count),
    /// Nobody was ever seen short.
    NeverShort,
    /// From this moment on as many are short all the time as in the end.
    ShortStands(Moment),
    /// A machine is Failed in the end, and says why.
    FailedWithError(&'static str),
    /// Anything else.
    Judge(fn(&World) -> Result<(), String>),
}

impl Gate {
    /// So many actions of these kinds are committed in the whole run.
    pub(crate) const fn ever(kinds: &'static [ActionKind], count: Count) -> Self {
        Self::Actions(kinds, Moment::START, Moment::NEVER, count)
    }
}

impl World {
    /// Judges every gate; the first that is not met counts.
    pub(crate) fn judge(&mut self) {
        for (gate, demand) in self.plan.gates.clone().iter().enumerate() {
            if let Err((side, text)) = self.judge_one(demand) {
                self.watch.broke(Rule::Gate, self.now, text);
                if let Some(broken) = &mut self.watch.broken {
                    broken.missed = Some(Missed { gate, side });
                }
                return;
            }
        }
    }

    fn judge_one(&self, gate: &Gate) -> Result<(), (Side, String)> {
        match gate {
            Gate::Actions(kinds, from, until, count) => {
                let is = kinds
                    .iter()
                    .map(|kind| self.log.count(*kind, *from, *until));
                let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
                let when = match *until {
                    Moment::NEVER => format!("from {from} s on"),
                    until => format!("from {from} s to {until} s"),
                };
                let what = format!("{} {when}", words.join(" and "));
                count.check(&what, is.sum())
            }
            Gate::Creates(count) => count.check("Creates", self.log.creates.len() as u64),
            Gate::Serving(cluster, count) => {
                let name = &self.clusters[*cluster].id;
                count.check(
                    &format!("machines serve {name}"),
                    self.serving_count(*cluster),
                )
            }
            Gate::InState(state, count) => {
                let is = self.cloud.count(*state) as u64;
                count.check(&format!("machines are {state}"), is)
            }
            Gate::Short(count) => {
                let short = self.process().map(|one| one.core.shortfalls().count());
                count.check("Needs are short", short.unwrap_or(0) as u64)
            }
            Gate::Pending(cluster, count) => {
                let known = &self.clusters[*cluster];
                let what = format!("Pods of {} wait", known.id);
                count.check(&what, known.pending().into())
            }
            Gate::Live(cluster, count) => {
                let known = &self.clusters[*cluster];
                count.check(&format!("Pods of {} live", known.id), known.live().into())
            }
            Gate::Bound(cluster, count) => {
                let known = &self.clusters[*cluster];
                let bound = known.live() - known.pending();
                count.check(&format!("Pods of {} are on nodes", known.id), bound.into())
            }
            Gate::Evicted(cluster, count) => {
                let known = &self.clusters[*cluster];
                let what = format!("Pods of {} were evicted", known.id);
                count.check(&what, known.evicted())
            }
            Gate::NeverShort => otherwise(self.judge_never_short()),
            Gate::ShortStands(from) => otherwise(self.judge_standing(*from)),
            Gate::FailedWithError(machine) => otherwise(self.judge_failed(machine)),
            Gate::Judge(judge) => otherwise(judge(self)),
        }
    }

    fn judge_never_short(&self) -> Result<(), String> {
        match self.log.samples.iter().find(|one| 0 < one.short) {
            Some(one) => Err(format!("{} Needs are short at {} s", one.short, one.at)),
            None => Ok(()),
        }
    }

    fn judge_standing(&self, from: Moment) -> Result<(), String> {
        let mut late = self.log.samples.iter().filter(|one| from <= one.at);
        let Some(last) = late.clone().next_back() else {
            return Err(format!("nobody looked from {from} s on"));
        };
        match late.find(|one| one.short != last.short) {
            Some(one) => Err(format!(
                "{} Needs are short at {} s, {} at {} s",
                one.short, one.at, last.short, last.at
            )),
            None => Ok(()),
        }
    }

    fn judge_failed(&self, machine: &str) -> Result<(), String> {
        let core = self.process().map(|process| &process.core);
        let mut known = core.into_iter().flat_map(|core| core.machines());
        let known = known.find(|one| one.id().as_str() == machine);
        match known.map(|one| (one.state(), one.last_error())) {
            Some((State::Failed, error)) if !error.is_empty() => Ok(()),
            other => Err(format!(
                "{machine} is {other:?} in the ledger, not Failed with an error"
            )),
        }
    }

    pub(crate) fn serving_count(&self, cluster: usize) -> u64 {
        let name = self.clusters[cluster].id.as_str();
        let serving = self.cloud.machines();
        let serving = serving.filter(|one| one.state == State::Configured && one.cluster == name);
        serving.count() as u64
    }
}

/// Not a matter of one number.
fn otherwise(judged: Result<(), String>) -> Result<(), (Side, String)> {
    judged.map_err(|text| (Side::Otherwise, text))
}
