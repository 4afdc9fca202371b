//! Explained: what the engine weighed for a row, step by step, in words and numbers.
//!
//! ```text
//! domain ─▶ own ─▶ leftovers ─▶ idle ─▶ creating ─▶ speculative ─▶ draining ─▶ deleting ─▶ preempt
//! ```
//!
//! Each step says how many machines it could have taken, how many it took, what stood against the
//! others, and what was missing after it.

use std::collections::BTreeMap;

use bigfleet_engine::{Alike, Choice, ClaimSource, Explanation, Fate, Rule, VictimFate};
use bigfleet_model::{Amounts, ClusterId, Machine, NeedKey, State, counted, ordinal, shown};
use bigfleet_wire::v1alpha1::{ExplanationStep, Resources};

use super::shortfall_text;
use super::stream::count;
use crate::fate_text::called;

/// Where a machine comes from, in the order the engine goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimOrigin {
    /// The Need's own.
    Own,
    /// Of its cluster, and nobody's.
    Leftovers,
    /// Idle.
    Idle,
    /// Being created for nobody.
    Creating,
    /// To be bought.
    Speculative,
    /// Draining for nobody.
    Draining,
    /// Being given back: nothing takes one, and it is not idle any more.
    Deleting,
}

impl ClaimOrigin {
    const ALL: [Self; 7] = [
        Self::Own,
        Self::Leftovers,
        Self::Idle,
        Self::Creating,
        Self::Speculative,
        Self::Draining,
        Self::Deleting,
    ];

    /// The stable name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Leftovers => "leftovers",
            Self::Idle => "idle",
            Self::Creating => "creating",
            Self::Speculative => "speculative",
            Self::Draining => "draining",
            Self::Deleting => "deleting",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Own => "of its own machines",
            Self::Leftovers => "of its cluster's other machines",
            Self::Idle => "idle machines",
            Self::Creating => "machines being created",
            Self::Speculative => "slots to buy",
            Self::Draining => "draining machines",
            Self::Deleting => "machines being deleted",
        }
    }

    /// The step that takes such a machine for a Need.
    pub(super) fn of(machine: &Machine, need: &NeedKey) -> Self {
        let meant = machine.intent().map(|intent| &intent.need);
        if meant == Some(need) || machine.attribution().as_ref() == Some(need) {
            return Self::Own;
        }
        Self::by_state(machine.state())
    }

    fn by_state(state: State) -> Self {
        match state {
            State::Configuring | State::Configured | State::Failed => Self::Leftovers,
            State::Idle => Self::Idle,
            State::Deleting => Self::Deleting,
            State::Creating => Self::Creating,
            State::Speculative => Self::Speculative,
            State::Draining => Self::Draining,
        }
    }

    fn by_how(how: ClaimSource) -> Self {
        match how {
            ClaimSource::Own => Self::Own,
            ClaimSource::Leaving(_) => Self::Own,
            ClaimSource::Bound => Self::Leftovers,
            ClaimSource::Idle => Self::Idle,
            ClaimSource::Creating => Self::Creating,
            ClaimSource::Speculative => Self::Speculative,
            ClaimSource::Draining | ClaimSource::Restored => Self::Draining,
        }
    }
}

/// Whether a bound machine that was not taken is of the Need's cluster. One of another cluster is never a
/// leftover: only preemption could take it, and that is a step of its own.
fn is_of_cluster(fate: &Fate, cluster: &ClusterId) -> bool {
    match fate {
        Fate::ClaimedBy(need) | Fate::PromisedTo(need) => need.cluster == *cluster,
        // Whose it is, or was, is not told.
        Fate::Serving(_) | Fate::OnItsWayTo(_) | Fate::PreemptedFor(_) | Fate::Failed => false,
        // Why a machine was left is asked only of those the Need could have had.
        Fate::Claimed(_)
        | Fate::Preempted
        | Fate::Pruned
        | Fate::NotReached
        | Fate::OutsideDomain
        | Fate::NoDomain(_)
        | Fate::Spread
        | Fate::OffersNothingMissing
        | Fate::Unavailable
        | Fate::MayNotAcquire
        | Fate::Parked
        | Fate::NotBoughtInPart
        | Fate::Held
        | Fate::FreedLater
        | Fate::NotReady
        | Fate::Leaves(_)
        | Fate::Draining
        | Fate::Deleting
        | Fate::Requirement(..)
        | Fate::BelowMinUnit { .. }
        | Fate::OffersNothing => true,
    }
}

/// What stood against taking a machine that fits; `None` if it was taken, or does not fit.
fn obstacle(fate: &Fate) -> Option<&'static str> {
    match fate {
        Fate::Claimed(_) | Fate::Preempted => None,
        Fate::Requirement(..) | Fate::BelowMinUnit { .. } | Fate::OffersNothing => None,
        Fate::Pruned | Fate::NotReached => Some("not needed"),
        Fate::OutsideDomain | Fate::NoDomain(_) => Some("outside of its domain"),
        Fate::Spread => Some("against its spread"),
        Fate::OffersNothingMissing => Some("without what is missing"),
        Fate::Unavailable => Some("unavailable"),
        Fate::MayNotAcquire => Some("held back, since its cluster may not acquire"),
        Fate::Parked => Some("not tried, since it is parked"),
        Fate::NotBoughtInPart => Some("not bought for part of a gang"),
        Fate::Held => Some("kept until a replacement serves"),
        Fate::FreedLater => Some("free only after its turn"),
        Fate::ClaimedBy(_) | Fate::PromisedTo(_) => Some("another Need's"),
        Fate::PreemptedFor(_) => Some("preempted for another Need"),
        Fate::Serving(_) | Fate::OnItsWayTo(_) => Some("another cluster's"),
        Fate::NotReady => Some("not ready"),
        Fate::Leaves(_) => Some("to leave"),
        Fate::Draining => Some("draining"),
        Fate::Deleting => Some("not to be had any more"),
        Fate::Failed => Some("failed"),
    }
}

/// One step's machines.
#[derive(Default)]
struct Tally {
    considered: usize,
    taken: usize,
    offered: Amounts,
    against: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn add(&mut self, alike: &Alike) {
        if let Fate::Claimed(_) = alike.fate {
            let scaled = i64::try_from(alike.count).unwrap_or(i64::MAX);
            self.offered = self.offered.add(&alike.kind.offers.scale(scaled));
            self.taken += alike.count;
        } else if let Some(why) = obstacle(&alike.fate) {
            *self.against.entry(why).or_default() += alike.count;
        } else {
            return;
        }
        self.considered += alike.count;
    }

    fn text(&self, step: ClaimOrigin) -> String {
        let mut text = format!("{} of {} {}", self.taken, self.considered, step.words());
        text += " count for it";
        for (why, number) in &self.against {
            text += &format!("; {number} {why}");
        }
        text
    }
}

/// How the verdict came about.
pub(super) fn steps(explained: &Explanation) -> Vec<ExplanationStep> {
    let mut tallies: BTreeMap<ClaimOrigin, Tally> = BTreeMap::new();
    let cluster = &explained.verdict.need.cluster;
    for alike in &explained.machines {
        let step = match alike.fate {
            Fate::Claimed(how) => ClaimOrigin::by_how(how),
            _ => ClaimOrigin::by_state(alike.state),
        };
        if step == ClaimOrigin::Leftovers && !is_of_cluster(&alike.fate, cluster) {
            continue;
        }
        tallies.entry(step).or_default().add(alike);
    }
    // With some kinds left out of the list the sum would be too small.
    let taken: usize = tallies.values().map(|tally| tally.taken).sum();
    let is_whole = taken == explained.verdict.claimed as usize;
    let mut steps: Vec<ExplanationStep> = Vec::from_iter(turn(explained));
    steps.extend(explained.choice.as_ref().map(domain));
    let mut missing = explained.verdict.need.row.aggregate.clone();
    for step in ClaimOrigin::ALL {
        let Some(tally) = tallies.get(&step).filter(|tally| 0 < tally.considered) else {
            continue;
        };
        missing = missing.sub(&tally.offered);
        steps.push(ExplanationStep {
            step: step.name().to_owned(),
            text: tally.text(step),
            considered: count(tally.considered),
            taken: count(tally.taken),
            missing: stated(&missing).filter(|_| is_whole),
        });
    }
    steps.extend(preempt(explained));
    steps
}

fn stated(amounts: &Amounts) -> Option<Resources> {
    (!amounts.is_zero()).then(|| amounts.into())
}

/// Which Needs are served before it; says nothing where none of them holds machines it could use.
fn turn(explained: &Explanation) -> Option<ExplanationStep> {
    let ahead = explained.ahead.iter().filter(|ahead| 0 < ahead.holds);
    let first = ahead.clone().next()?;
    let (position, needs) = (ordinal(explained.position), explained.needs);
    let ahead = ahead.count();
    let holders = counted(ahead, "Need ahead of it holds", "Needs ahead of it hold");
    Some(ExplanationStep {
        step: "order".to_owned(),
        text: format!(
            "served {position} of {needs}; {holders} machines this one could use: the first, {}, \
             holds {}",
            called(&first.need),
            first.holds
        ),
        ..ExplanationStep::default()
    })
}

fn domain(choice: &Choice) -> ExplanationStep {
    let key = shown(&choice.key);
    let why = match choice.rule {
        Rule::Home => "its own machines are there",
        Rule::Complete => "free machines complete it there",
        Rule::WithVictims => "free machines and victims complete it there",
        Rule::Partial => "nothing completes it, and most is at hand there",
    };
    let weighed = choice.domains.len() + choice.left_out;
    let text = match &choice.chosen {
        Some(chosen) => format!("{key} \"{}\" of {weighed}: {why}", shown(chosen)),
        None => format!("none of {weighed} values of {key} can hold any of it"),
    };
    ExplanationStep {
        step: "domain".to_owned(),
        text,
        ..ExplanationStep::default()
    }
}

/// Who makes way; says nothing where there is nobody to weigh.
fn preempt(explained: &Explanation) -> Option<ExplanationStep> {
    let preemption = explained.preemption.as_ref()?;
    let verdict = &explained.verdict;
    let weighed = preemption.victims.len() + preemption.left_out;
    if weighed == 0 {
        return None;
    }
    let picked = verdict.victims_found as usize;
    let eligible = preemption.victims.iter();
    let eligible = eligible.filter(|victim| victim.fate.is_eligible()).count();
    let outranked = preemption.victims.iter();
    let not_lower = outranked.filter(|one| one.fate == VictimFate::NotOutranked);
    let mut text = format!("{picked} of {weighed} machines make way, {eligible} could");
    let not_lower = not_lower.count();
    if 0 < not_lower {
        text += &format!("; {not_lower} serve a priority that is not lower");
    }
    if picked != 0 {
        text += &format!(
            "; together they free {}",
            shortfall_text::amounts(&verdict.capacity_freed)
        );
    }
    Some(ExplanationStep {
        step: "preempt".to_owned(),
        text,
        considered: count(weighed),
        taken: count(picked),
        missing: stated(&verdict.residual.sub(&verdict.capacity_freed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_testkit::fleet;

    /// What is said of the one Need of cluster a, a line per step.
    fn said(fleet_of: &str) -> Vec<String> {
        let fleet = fleet(fleet_of);
        let cluster = ClusterId::new("a").unwrap();
        let key = fleet.clusters[&cluster].needs()[0].key();
        let explained = bigfleet_engine::explain(&fleet, &key).unwrap();
        let steps = steps(&explained).into_iter();
        steps
            .map(|step| format!("{}: {}", step.step, step.text))
            .collect()
    }

    #[test]
    fn leftovers_are_of_the_needs_own_cluster() {
        let said = said(
            "a1 Configured a cpu=4 $1 own=web
             a2 Configured a cpu=4 $1
             b1..b3 Configured b cpu=4 $1 own=other
             b4 Configured b cpu=4 $1
             f1 Failed cpu=4 $1
             need a name:web cpu=4
             need b name:other cpu=12",
        );
        assert_eq!(
            said,
            [
                "own: 1 of 1 of its own machines count for it",
                "leftovers: 0 of 1 of its cluster's other machines count for it; 1 not needed",
            ]
        );
    }

    /// It was idle until it was decided to give it back; nothing takes it.
    #[test]
    fn a_machine_that_is_being_deleted_is_not_idle() {
        let said = said(
            "i1 Idle cpu=4 $1
             d1 Deleting cpu=4 $1
             need a cpu=8",
        );
        assert_eq!(
            said,
            [
                "idle: 1 of 1 idle machines count for it",
                "deleting: 0 of 1 machines being deleted count for it; \
                 1 not to be had any more",
            ]
        );
    }

    #[test]
    fn nobody_to_preempt_is_not_a_step() {
        assert_eq!(said("need a cpu=4 prio=1000"), Vec::<String>::new());
        let said = said("b1 Configured b cpu=4 $1 stamp=1\n need a cpu=4 prio=1000");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("preempt: 1 of 1 machines make way"),
            "{said:?}"
        );
    }
}
