//! Shape: what a machine is like, apart from which one it is and what it costs (model.md §1, §7).

use crate::{Amounts, Profile};
use std::collections::BTreeMap;

/// The attribute answered from [`Shape::instance_type`].
pub const INSTANCE_TYPE_KEY: &str = "node.kubernetes.io/instance-type";
/// The attribute answered from [`Shape::zone`].
pub const ZONE_KEY: &str = "topology.kubernetes.io/zone";
/// The attribute answered from [`Shape::capacity_type`] (RM-1).
pub const CAPACITY_TYPE_KEY: &str = "bigfleet.lucy.sh/capacity-type";

/// How capacity is held and paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapacityType {
    /// Not stated; treated as owned, so never released.
    #[default]
    Unspecified = 0,
    /// Owned hardware.
    BareMetal = 1,
    /// Paid for whether used or not.
    Reserved = 2,
    /// Bought by the hour.
    OnDemand = 3,
    /// Bought by the hour, and taken away at will.
    Spot = 4,
}

impl CapacityType {
    /// Every type, by number.
    pub const ALL: [Self; 5] = [
        Self::Unspecified,
        Self::BareMetal,
        Self::Reserved,
        Self::OnDemand,
        Self::Spot,
    ];

    /// The wire number.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The word used in files, labels and speech.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::BareMetal => "BareMetal",
            Self::Reserved => "Reserved",
            Self::OnDemand => "OnDemand",
            Self::Spot => "Spot",
        }
    }
}

/// What the provider says a machine is. Machines of one shape match the same Needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// The provider's name for the size; may be empty.
    pub instance_type: String,
    /// Where it stands; may be empty.
    pub zone: String,
    /// How it is held and paid for.
    pub capacity_type: CapacityType,
    /// Further attributes.
    pub labels: BTreeMap<String, String>,
    /// The hardware.
    pub resources: Amounts,
    /// What the machine really offers, where the provider says so.
    pub allocatable: Option<Amounts>,
}

impl Shape {
    /// What counts: `allocatable` as a whole if given, else `resources` (M-2).
    pub fn effective(&self) -> &Amounts {
        self.allocatable.as_ref().unwrap_or(&self.resources)
    }

    /// The value of an attribute, if the machine has it (RM-1).
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let label = || self.labels.get(key).map(String::as_str);
        let field = |value: &'static str| Some(value).filter(|_| self.capacity_type.number() != 0);
        match key {
            INSTANCE_TYPE_KEY if !self.instance_type.is_empty() => Some(&self.instance_type),
            ZONE_KEY if !self.zone.is_empty() => Some(&self.zone),
            CAPACITY_TYPE_KEY => label().or_else(|| field(self.capacity_type.word())),
            _ => label(),
        }
    }

    /// Every attribute the machine has (RM-1), each once.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        const FIELDS: [&str; 3] = [INSTANCE_TYPE_KEY, ZONE_KEY, CAPACITY_TYPE_KEY];
        let labels = self.labels.keys().map(String::as_str);
        let keys = labels.filter(|key| !FIELDS.contains(key)).chain(FIELDS);
        keys.filter_map(|key| self.attribute(key).map(|value| (key, value)))
    }

    /// Whether every requirement of the profile holds (RM-2).
    pub fn matches(&self, profile: &Profile) -> bool {
        profile
            .requirements()
            .iter()
            .all(|need| need.accepts(self.attribute(need.key())))
    }

    /// Whether a Need of this profile and smallest unit can use such a machine (RM-3).
    pub fn serves(&self, profile: &Profile, min_unit: &Amounts) -> bool {
        self.matches(profile) && self.effective().covers(min_unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bucket, Dimension, Operator, Requirement};

    fn matches(shape: &Shape, key: &str, operator: Operator, values: &[&str]) -> bool {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let requirement = Requirement::new(key.to_owned(), operator, values).unwrap();
        let (zero, spread) = (Bucket::ZERO, vec![]);
        shape.matches(&Profile::new(vec![requirement], spread, 0, zero, zero))
    }

    fn labelled(labels: &[(&str, &str)]) -> Shape {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let labels = labels.iter().map(owned).collect();
        Shape {
            instance_type: "m5.large".to_owned(),
            labels,
            ..Shape::default()
        }
    }

    /// EX-RM.
    #[test]
    fn ex_rm_requirements_match_attributes() {
        let shape = labelled(&[("rack", "r1")]);
        assert!(!matches(&shape, "rack", Operator::NotIn, &["r1"]));
        assert!(matches(&shape, "gpu", Operator::NotIn, &["x"]));
        assert!(matches(&shape, "gpu", Operator::DoesNotExist, &[]));
        assert!(matches(&shape, "rack", Operator::Same, &[]));
        assert!(!matches(&shape, "rack", Operator::Same, &["r2"]));
        assert!(!matches(&shape, ZONE_KEY, Operator::Exists, &[]));
        assert!(!matches(&shape, "rack", Operator::In, &[]));
    }

    #[test]
    fn fields_answer_before_labels() {
        let shape = labelled(&[(INSTANCE_TYPE_KEY, "other"), (ZONE_KEY, "z9")]);
        assert_eq!(shape.attribute(INSTANCE_TYPE_KEY), Some("m5.large"));
        assert_eq!(shape.attribute(ZONE_KEY), Some("z9"));
    }

    #[test]
    fn capacity_type_is_an_attribute_unless_a_label_says_otherwise() {
        let mut shape = labelled(&[]);
        assert_eq!(shape.attribute(CAPACITY_TYPE_KEY), None);
        shape.capacity_type = CapacityType::Spot;
        assert_eq!(shape.attribute(CAPACITY_TYPE_KEY), Some("Spot"));
        shape
            .labels
            .insert(CAPACITY_TYPE_KEY.to_owned(), "mine".to_owned());
        assert_eq!(shape.attribute(CAPACITY_TYPE_KEY), Some("mine"));
    }

    /// RM-1: the list of attributes is what asking for each of them gives.
    #[test]
    fn every_attribute_is_listed_once() {
        let mut shape = labelled(&[("rack", "r1"), (INSTANCE_TYPE_KEY, "other")]);
        let listed = |shape: &Shape| {
            let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
            let listed: Vec<_> = shape.attributes().map(owned).collect();
            for (key, value) in &listed {
                assert_eq!(shape.attribute(key), Some(value.as_str()));
            }
            listed.len()
        };
        assert_eq!(listed(&shape), 2, "{shape:?}");
        shape.zone = "a".to_owned();
        shape.capacity_type = CapacityType::Spot;
        assert_eq!(listed(&shape), 4, "{shape:?}");
        assert_eq!(listed(&Shape::default()), 0);
    }

    /// RM-3: it matches, and it is large enough; one is not enough.
    #[test]
    fn a_shape_serves_what_it_matches_and_covers() {
        let cpu = |n| Amounts::from_entries([(Dimension::new("cpu").unwrap(), n)]);
        let shape = Shape {
            resources: cpu(4),
            ..labelled(&[("rack", "r1")])
        };
        let wants = |key: &str| {
            let requirement = Requirement::new(key.to_owned(), Operator::Exists, vec![]).unwrap();
            Profile::new(vec![requirement], vec![], 0, Bucket::ZERO, Bucket::ZERO)
        };
        assert!(shape.serves(&wants("rack"), &cpu(4)));
        assert!(!shape.serves(&wants("rack"), &cpu(5)));
        assert!(!shape.serves(&wants("zone"), &cpu(4)));
    }

    #[test]
    fn allocatable_is_chosen_as_a_whole() {
        let cpu = |n| Amounts::from_entries([(Dimension::new("cpu").unwrap(), n)]);
        let mut shape = Shape {
            resources: cpu(4),
            ..Shape::default()
        };
        assert_eq!(shape.effective(), &cpu(4));
        shape.allocatable = Some(Amounts::NONE);
        assert_eq!(
            shape.effective(),
            &Amounts::NONE,
            "given, but worth nothing"
        );
    }
}
