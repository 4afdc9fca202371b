//! Choice: how a gang's domain was chosen, and what decided between the best two.
//!
//! ```text
//! RF-4 home     own coverage · value
//! RF-6 case 1   own coverage · credited coverage · least to spare · most machines · value
//!      case 2   own coverage · fewest victims · value
//!      case 3   coverage at hand · own coverage · credited coverage · most machines · value
//! ```

use crate::{
    domain::{DomainCase, Domains, Weights},
    explain::trace::Weighing,
    fleet_tables::FleetTables,
    index::{DomainIndex, NeedIndex},
};
use std::cmp::Ordering;

/// The rule that chose a gang's domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Its own machines cover it, in the domain that has most of them (RF-4).
    Home,
    /// Free machines complete it there (RF-6, case 1).
    Complete,
    /// Free machines and victims complete it there (RF-6, case 2).
    WithVictims,
    /// Nothing completes it, so it goes where most is at hand (RF-6, case 3).
    Partial,
}

/// What tells two domains apart, in the words of RF-6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// More of the gang covered by its own machines.
    OwnCoverage,
    /// More of it covered by its own and the cluster's loose machines.
    CreditCoverage,
    /// More of it covered by those and by idle ones.
    CoverageAtHand,
    /// Less to spare.
    LeastToSpare,
    /// Fewer victims.
    FewestVictims,
    /// More machines.
    MostMachines,
    /// The smaller value.
    Value,
}

/// What a gang found in one domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainWeight {
    /// The value of the Same key.
    pub domain: String,
    /// Whether the rule considered it.
    pub qualifies: bool,
    /// The gang's own machines.
    pub own: u64,
    /// Those, and loose ones of its cluster.
    pub credited: u64,
    /// Idle and Creating machines nobody has.
    pub idle: u64,
    /// Machines that could be bought.
    pub speculative: u64,
    /// How much of the gang its own cover: the sum over dimensions, each at most 1 (S-5).
    pub own_coverage: f64,
    /// The same of what is credited.
    pub credit_coverage: f64,
    /// The same of what is credited or idle.
    pub coverage_at_hand: f64,
    /// All of it against what is wanted: the sum over dimensions, with no bound (S-5).
    pub fill: f64,
    /// How many victims complete it, where victims were weighed and enough were found.
    pub victims: Option<usize>,
}

/// How a gang's domain was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The label all machines agree on.
    pub key: String,
    /// The rule that chose.
    pub rule: Rule,
    /// The domain chosen, if there is any.
    pub chosen: Option<String>,
    /// The next best that qualified.
    pub runner_up: Option<String>,
    /// What decided between the two, if there are two.
    pub decided_by: Option<Comparison>,
    /// The domains, best first.
    pub domains: Vec<DomainWeight>,
    /// How many are not listed.
    pub left_out: usize,
}

impl Choice {
    /// How many domains are listed.
    pub const MOST: usize = 50;
}

impl Rule {
    fn of(case: DomainCase) -> Self {
        match case {
            DomainCase::Complete => Self::Complete,
            DomainCase::WithVictims => Self::WithVictims,
            DomainCase::Partial => Self::Partial,
        }
    }

    fn comparisons(self) -> &'static [Comparison] {
        use Comparison::{
            CoverageAtHand, CreditCoverage, FewestVictims, LeastToSpare, MostMachines, OwnCoverage,
        };
        match self {
            Self::Home => &[OwnCoverage],
            Self::Complete => &[OwnCoverage, CreditCoverage, LeastToSpare, MostMachines],
            Self::WithVictims => &[OwnCoverage, FewestVictims],
            Self::Partial => &[CoverageAtHand, OwnCoverage, CreditCoverage, MostMachines],
        }
    }

    fn qualifies(self, weights: &Weights, victims: Option<usize>) -> bool {
        match self {
            Self::Home => 0 < weights.own,
            Self::Complete => weights.is_enough,
            Self::WithVictims => victims.is_some(),
            Self::Partial => 0 < weights.credited + weights.idle,
        }
    }
}

/// A domain, what it weighed, and how many victims complete the gang there.
type WeighedDomain = (DomainIndex, Weights, Option<usize>);

impl Comparison {
    /// `Less` if the first is better.
    fn compare(
        self,
        rule: Rule,
        (_, a, ours): &WeighedDomain,
        (_, b, theirs): &WeighedDomain,
    ) -> Ordering {
        match self {
            Self::OwnCoverage => b.own_coverage.total_cmp(&a.own_coverage),
            Self::CreditCoverage => b.credit_coverage.total_cmp(&a.credit_coverage),
            Self::CoverageAtHand => b.coverage_at_hand.total_cmp(&a.coverage_at_hand),
            Self::LeastToSpare => a.fill.total_cmp(&b.fill),
            Self::FewestVictims => ours.cmp(theirs),
            Self::MostMachines => {
                let spec = |weights: &Weights| match rule {
                    Rule::Partial => 0,
                    Rule::Home | Rule::Complete | Rule::WithVictims => weights.speculative,
                };
                let machines = |of: &Weights| of.credited + of.idle + spec(of);
                machines(b).cmp(&machines(a))
            }
            // Compared last, by name, where the names are known: in `order`.
            Self::Value => Ordering::Equal,
        }
    }
}

impl FleetTables {
    /// How a gang's domain was chosen; `None` for a plain Need.
    pub(super) fn explain_choice(
        &self,
        need: NeedIndex,
        weighing: Option<Weighing>,
    ) -> Option<Choice> {
        let profile = &self.catalog.profiles[self.need(need).profile].profile;
        let key = profile.same_key()?.to_owned();
        let (rule, mut found) = match weighing {
            Some(weighing) => (Rule::of(weighing.case), weighing.domains),
            None => (Rule::Home, self.own_domains(need)),
        };
        let qualifies = |found: &WeighedDomain| rule.qualifies(&found.1, found.2);
        found.sort_by(|one, other| {
            let first = qualifies(other).cmp(&qualifies(one));
            first.then_with(|| self.order(need, rule, one, other).0)
        });
        let in_question = found.iter().filter(|found| qualifies(found)).count();
        let name = |at: usize| {
            let found = found[..in_question].get(at)?;
            Some(self.domain_name(need, found.0).to_owned())
        };
        let decided_by = (1 < in_question).then(|| self.order(need, rule, &found[0], &found[1]).1);
        let listed = found.iter().take(Choice::MOST);
        Some(Choice {
            key,
            rule,
            chosen: name(0),
            runner_up: name(1),
            decided_by,
            domains: listed
                .map(|found| self.domain_weight(need, found, qualifies(found)))
                .collect(),
            left_out: found.len().saturating_sub(Choice::MOST),
        })
    }

    /// Which of two domains comes first, and the comparison that decides it.
    fn order(
        &self,
        need: NeedIndex,
        rule: Rule,
        one: &WeighedDomain,
        other: &WeighedDomain,
    ) -> (Ordering, Comparison) {
        let mut all = rule.comparisons().iter();
        let decides = all.find(|by| by.compare(rule, one, other).is_ne());
        match decides {
            Some(by) => (by.compare(rule, one, other), *by),
            None => {
                let value = |found: &WeighedDomain| self.domain_name(need, found.0);
                (value(one).cmp(value(other)), Comparison::Value)
            }
        }
    }

    /// The domains that hold a gang's own machines.
    fn own_domains(&self, need: NeedIndex) -> Vec<WeighedDomain> {
        let mut domains = Domains::new(self, need);
        for machine in self.attributed(self.need(need).slot) {
            if self.is_own(need, machine) {
                domains.add_own(self, self.record(machine).shape);
            }
        }
        let table = domains
            .weights()
            .filter(|(_, weights)| !weights.is_nothing());
        table
            .map(|(domain, weights)| (domain, weights, None))
            .collect()
    }

    fn domain_weight(
        &self,
        need: NeedIndex,
        found: &WeighedDomain,
        qualifies: bool,
    ) -> DomainWeight {
        let (domain, weights, victims) = found;
        DomainWeight {
            domain: self.domain_name(need, *domain).to_owned(),
            qualifies,
            own: weights.own,
            credited: weights.credited,
            idle: weights.idle,
            speculative: weights.speculative,
            own_coverage: weights.own_coverage,
            credit_coverage: weights.credit_coverage,
            coverage_at_hand: weights.coverage_at_hand,
            fill: weights.fill,
            victims: *victims,
        }
    }
}
