//! Profile: what a Need asks of a machine, and so what rows add up under (model.md §6).
//!
//! ```text
//! requirements, spread, priority, buckets ── canonical form ──▶ Profile ──▶ fingerprint text
//! ```
//!
//! Equality is structural: the text is kept byte-exact for interoperability, but it is not injective
//! (value `a,b` reads like the values `a`, `b`), so nothing here compares profiles by it.

use crate::{Bucket, Fingerprint};
use std::fmt::Write as _;

/// How a requirement compares (P-2). Unspecified does not exist: it is refused at ingest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// The attribute is one of the values.
    In = 1,
    /// The attribute is absent or none of the values.
    NotIn = 2,
    /// The attribute is there.
    Exists = 3,
    /// The attribute is not there.
    DoesNotExist = 4,
    /// All machines of the Need share one value; if values are given, one of them.
    Same = 5,
}

impl Operator {
    /// Every operator, by number.
    pub const ALL: [Self; 5] = [
        Self::In,
        Self::NotIn,
        Self::Exists,
        Self::DoesNotExist,
        Self::Same,
    ];

    /// The wire number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The operator with this wire number, if there is one.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operator| operator.number() == number)
    }

    /// The word used in files and in speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
            Self::Same => "Same",
        }
    }
}

/// One condition on an attribute. Values ascend and do not repeat; the key is not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// The requirement in canonical form; `None` if the key is empty.
    pub fn new(key: String, operator: Operator, mut values: Vec<String>) -> Option<Self> {
        values.sort();
        values.dedup();
        (!key.is_empty()).then_some(Self {
            key,
            operator,
            values,
        })
    }

    /// The attribute it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// With what.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn holds_value(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|held| held.as_str().cmp(value))
            .is_ok()
    }

    /// Whether an attribute with this value, or none, satisfies it (RM-2). For Same this is only
    /// the machine's own part; that all machines agree is the engine's business.
    pub fn accepts(&self, attribute: Option<&str>) -> bool {
        match self.operator {
            Operator::In => attribute.is_some_and(|value| self.holds_value(value)),
            Operator::NotIn => !attribute.is_some_and(|value| self.holds_value(value)),
            Operator::Exists => attribute.is_some(),
            Operator::DoesNotExist => attribute.is_none(),
            Operator::Same => {
                attribute.is_some_and(|value| self.values.is_empty() || self.holds_value(value))
            }
        }
    }
}

/// What to do where a spread cannot be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenUnsatisfiable {
    /// Not stated; the constraint is not honoured.
    #[default]
    Unspecified = 0,
    /// A hard constraint.
    DoNotSchedule = 1,
    /// A wish; not honoured here.
    ScheduleAnyway = 2,
}

impl WhenUnsatisfiable {
    /// Every value, by number.
    pub const ALL: [Self; 3] = [Self::Unspecified, Self::DoNotSchedule, Self::ScheduleAnyway];

    /// The wire number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The word used in files and in speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::DoNotSchedule => "DoNotSchedule",
            Self::ScheduleAnyway => "ScheduleAnyway",
        }
    }
}

/// How evenly machines must lie over the values of a topology key. The skew is at least 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spread {
    topology_key: String,
    max_skew: i32,
    when: WhenUnsatisfiable,
}

impl Spread {
    /// The constraint; `None` if the key is empty or the skew below 1.
    pub fn new(topology_key: String, max_skew: i32, when: WhenUnsatisfiable) -> Option<Self> {
        let valid = !topology_key.is_empty() && 1 <= max_skew;
        valid.then_some(Self {
            topology_key,
            max_skew,
            when,
        })
    }

    /// The attribute whose values are the domains.
    pub fn topology_key(&self) -> &str {
        &self.topology_key
    }

    /// How many more machines one domain may have than another.
    pub fn max_skew(&self) -> i32 {
        self.max_skew
    }

    /// What to do where it cannot be kept.
    pub fn when(&self) -> WhenUnsatisfiable {
        self.when
    }
}

/// The aggregation identity of a Need (P-1), in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Profile {
    priority: i32,
    interruption: Bucket,
    reclamation: Bucket,
    requirements: Vec<Requirement>,
    spread: Vec<Spread>,
    fingerprint: Fingerprint,
}

impl Profile {
    /// Canonicalises (P-3) and writes the fingerprint (P-4).
    pub fn new(
        mut requirements: Vec<Requirement>,
        mut spread: Vec<Spread>,
        priority: i32,
        interruption: Bucket,
        reclamation: Bucket,
    ) -> Self {
        requirements.sort();
        requirements.dedup();
        spread.sort();
        spread.dedup();
        let head = (priority, interruption, reclamation);
        let fingerprint = fingerprint(head, &requirements, &spread);
        Self {
            priority,
            interruption,
            reclamation,
            requirements,
            spread,
            fingerprint,
        }
    }

    /// Higher is served first.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// What an interruption costs the workload.
    pub fn interruption(&self) -> Bucket {
        self.interruption
    }

    /// What losing the particular machine costs the workload.
    pub fn reclamation(&self) -> Bucket {
        self.reclamation
    }

    /// Conditions, all of which must hold; ascending by key, operator, values.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Spread constraints, ascending by topology key.
    pub fn spread(&self) -> &[Spread] {
        &self.spread
    }

    /// The canonical text. Compared for equality only, never as identity of a profile.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The key all machines must agree on: that of the first Same requirement (S-1).
    pub fn same_key(&self) -> Option<&str> {
        let same = |requirement: &&Requirement| requirement.operator == Operator::Same;
        self.requirements.iter().find(same).map(Requirement::key)
    }

    /// The spread constraints in force: DoNotSchedule ones, and none for a gang (RF-9).
    pub fn hard_spreads(&self) -> impl Iterator<Item = &Spread> {
        let gang = self.same_key().is_some();
        let hard = |spread: &&Spread| spread.when == WhenUnsatisfiable::DoNotSchedule;
        self.spread.iter().filter(hard).filter(move |_| !gang)
    }

    /// The profile a gang folds to: each Same becomes Exists, or In where it has values (RF-12).
    pub fn folded(&self) -> Self {
        let fold = |requirement: &Requirement| {
            let operator = match (requirement.operator, requirement.values.is_empty()) {
                (Operator::Same, true) => Operator::Exists,
                (Operator::Same, false) => Operator::In,
                (other, _) => other,
            };
            Requirement {
                operator,
                ..requirement.clone()
            }
        };
        let requirements = self.requirements.iter().map(fold).collect();
        let spread = self.spread.clone();
        Self::new(
            requirements,
            spread,
            self.priority,
            self.interruption,
            self.reclamation,
        )
    }
}

impl Fingerprint {
    /// The text from `|reqs=` on: what two rows share whose priority or penalties alone differ
    /// (RF-1). `None` if the text is not a fingerprint.
    pub fn constraints(&self) -> Option<&str> {
        self.as_str().find("|reqs=").map(|at| &self.as_str()[at..])
    }
}

fn fingerprint(
    (priority, interruption, reclamation): (i32, Bucket, Bucket),
    requirements: &[Requirement],
    spread: &[Spread],
) -> Fingerprint {
    let (ipb, rpb) = (interruption.number(), reclamation.number());
    let mut text = format!("p={priority}|ipb={ipb}|rpb={rpb}|reqs=");
    for Requirement {
        key,
        operator,
        values,
    } in requirements
    {
        // Writing to a String cannot fail.
        let _ = write!(text, "{key}:{}:{};", operator.number(), values.join(","));
    }
    text.push_str("|spr=");
    for Spread {
        topology_key,
        max_skew,
        when,
    } in spread
    {
        let _ = write!(text, "{topology_key}:{max_skew}:{};", when.number());
    }
    Fingerprint::new(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Requirement::new(key.to_owned(), operator, values).unwrap()
    }

    fn example(order: [usize; 3], zones: &[&str], types: &[&str], penalty: f64) -> Profile {
        let all = [
            requirement("zone", Operator::In, zones),
            requirement("node.kubernetes.io/instance-type", Operator::In, types),
            requirement("rack", Operator::Same, &[]),
        ];
        let requirements = order.map(|at| all[at].clone()).to_vec();
        let when = WhenUnsatisfiable::DoNotSchedule;
        let spread = Spread::new("topology.kubernetes.io/zone".to_owned(), 1, when).unwrap();
        Profile::new(
            requirements,
            vec![spread],
            1000,
            Bucket::of(penalty),
            Bucket::of(0.0),
        )
    }

    /// EX-P1 and EX-P2.
    #[test]
    fn ex_p1_ex_p2_the_text_is_exact_and_order_does_not_matter() {
        let text = "p=1000|ipb=5|rpb=1|reqs=node.kubernetes.io/instance-type:1:c5,m5;rack:5:;\
                    zone:1:a,b;|spr=topology.kubernetes.io/zone:1:1;";
        let first = example([0, 1, 2], &["b", "a"], &["m5", "c5"], 3.0);
        let second = example([2, 1, 0], &["a", "b", "a"], &["c5", "m5"], 3.0);
        assert_eq!(first.fingerprint().as_str(), text);
        assert_eq!(first, second);
    }

    /// EX-P3.
    #[test]
    fn ex_p3_penalties_of_one_bucket_are_one_profile() {
        let with = |penalty| example([0, 1, 2], &["a"], &["m5"], penalty);
        assert_eq!(with(3.0), with(3.5));
        assert_ne!(with(3.0), with(4.01));
    }

    /// EX-P4.
    #[test]
    fn ex_p4_an_empty_profile_has_a_text() {
        let empty = Profile::new(vec![], vec![], 0, Bucket::ZERO, Bucket::ZERO);
        assert_eq!(empty.fingerprint().as_str(), "p=0|ipb=1|rpb=1|reqs=|spr=");
        assert_eq!(empty.fingerprint().constraints(), Some("|reqs=|spr="));
    }

    #[test]
    fn colliding_texts_are_still_different_profiles() {
        let with = |values: &[&str]| {
            let requirements = vec![requirement("zone", Operator::In, values)];
            Profile::new(requirements, vec![], 0, Bucket::ZERO, Bucket::ZERO)
        };
        let (one, two) = (with(&["a,b"]), with(&["a", "b"]));
        assert_eq!(one.fingerprint(), two.fingerprint());
        assert_ne!(one, two);
    }

    #[test]
    fn folding_turns_same_into_a_plain_condition() {
        let free = example([0, 1, 2], &["a"], &["m5"], 3.0).folded();
        assert_eq!(free.same_key(), None);
        assert!(free.fingerprint().as_str().contains("rack:3:;"));
        let bound = vec![requirement("rack", Operator::Same, &["r1"])];
        let bound = Profile::new(bound, vec![], 0, Bucket::ZERO, Bucket::ZERO).folded();
        assert!(bound.fingerprint().as_str().contains("rack:1:r1;"));
    }

    /// RM-2: every operator, with the attribute absent, among the values and not.
    #[test]
    fn every_operator_accepts_what_it_says() {
        let accepts = |operator, values: &[&str]| {
            let requirement = requirement("k", operator, values);
            [None, Some("a"), Some("b")].map(|attribute| requirement.accepts(attribute))
        };
        assert_eq!(accepts(Operator::In, &["a"]), [false, true, false]);
        assert_eq!(accepts(Operator::NotIn, &["a"]), [true, false, true]);
        assert_eq!(accepts(Operator::Exists, &[]), [false, true, true]);
        assert_eq!(accepts(Operator::DoesNotExist, &[]), [true, false, false]);
        assert_eq!(accepts(Operator::Same, &[]), [false, true, true]);
        assert_eq!(accepts(Operator::Same, &["b"]), [false, false, true]);
    }

    /// RF-9: hard ones only, and none for a gang.
    #[test]
    fn spreads_in_force_are_hard_and_not_a_gangs() {
        let spread = |key: &str, when| Spread::new(key.to_owned(), 2, when).unwrap();
        let spreads = || {
            vec![
                spread("hard", WhenUnsatisfiable::DoNotSchedule),
                spread("soft", WhenUnsatisfiable::ScheduleAnyway),
                spread("unstated", WhenUnsatisfiable::Unspecified),
            ]
        };
        let with = |requirements| {
            Profile::new(requirements, spreads(), 7, Bucket::of(1.0), Bucket::PINNED)
        };
        let plain = with(vec![]);
        let hard: Vec<_> = plain.hard_spreads().map(Spread::topology_key).collect();
        assert_eq!(hard, ["hard"]);
        let gang = with(vec![requirement("rack", Operator::Same, &[])]);
        assert_eq!(gang.hard_spreads().count(), 0);
        assert_eq!((plain.same_key(), gang.same_key()), (None, Some("rack")));
        assert_eq!((gang.priority(), gang.interruption()), (7, Bucket::of(1.0)));
        assert_eq!(gang.reclamation(), Bucket::PINNED);
        assert_eq!(gang.spread(), plain.spread());
        assert_eq!(plain.spread()[0].max_skew(), 2);
        assert_eq!(gang.folded().spread(), gang.spread());
        assert_eq!(gang.requirements()[0].operator(), Operator::Same);
    }

    #[test]
    fn a_spread_has_a_key_and_a_skew_of_one_or_more() {
        let spread =
            |key: &str, skew| Spread::new(key.to_owned(), skew, WhenUnsatisfiable::default());
        assert_eq!((spread("", 1), spread("k", 0)), (None, None));
        assert!(spread("k", 1).is_some());
        assert_eq!(
            Requirement::new(String::new(), Operator::Exists, vec![]),
            None
        );
        assert_eq!(Fingerprint::new("nothing").constraints(), None);
        assert_eq!(
            Fingerprint::new("p=1|reqs=a").constraints(),
            Some("|reqs=a")
        );
    }

    fn any_requirement() -> impl Strategy<Value = Requirement> {
        let operators = prop::sample::select(Operator::ALL.to_vec());
        let values = prop::collection::vec("[ab,;]{0,2}", 0..3);
        ("[kr]{1,2}", operators, values)
            .prop_map(|(key, operator, values)| Requirement::new(key, operator, values).unwrap())
    }

    proptest! {
        #[test]
        fn order_never_matters_and_different_profiles_are_never_equal(
            (first, shuffled) in prop::collection::vec(any_requirement(), 0..5)
                .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            other in prop::collection::vec(any_requirement(), 0..5),
            priority in -2..2_i32,
        ) {
            let with = |requirements: &[Requirement]| {
                Profile::new(requirements.to_vec(), vec![], priority, Bucket::ZERO, Bucket::ZERO)
            };
            prop_assert_eq!(with(&first), with(&shuffled));
            let text = |requirements: &[Requirement]| with(requirements).fingerprint().clone();
            prop_assert_eq!(text(&first), text(&shuffled));
            let set = |requirements: &[Requirement]| {
                requirements.iter().cloned().collect::<std::collections::BTreeSet<_>>()
            };
            prop_assert_eq!(with(&first) == with(&other), set(&first) == set(&other));
        }
    }
}
