//! One row of demand, both ways. What makes a row valid is the model's business (NT-6); how large it
//! may be is ours.

use bigfleet_model::{
    Bucket, Operator, Requirement, RequirementFacts, Row, RowFacts, Spread, SpreadFacts,
    WhenUnsatisfiable,
};

use crate::amounts::texts;
use crate::limits::{
    MAX_GROUP_BYTES, MAX_REQUIREMENTS, MAX_RESOURCES, MAX_SPREADS, MAX_VALUES, OverLimit,
    check_bytes, check_count, check_text,
};
use crate::v1alpha1::{
    CapacityNeed, NodeSelectorRequirement, PenaltyBucket, TopologySpread,
    node_selector_requirement, topology_spread,
};

/// Refuses a row that holds more than it may, before anything is built from it.
pub(crate) fn check_size(need: &CapacityNeed) -> Result<(), OverLimit> {
    check_count("requirements", need.requirements.len(), MAX_REQUIREMENTS)?;
    for requirement in &need.requirements {
        check_text("requirements.key", &requirement.key)?;
        check_count("requirements.values", requirement.values.len(), MAX_VALUES)?;
        for value in &requirement.values {
            check_text("requirements.values", value)?;
        }
    }
    check_count("spread", need.spread.len(), MAX_SPREADS)?;
    for spread in &need.spread {
        check_text("spread.topology_key", &spread.topology_key)?;
    }
    for (field, amounts) in [
        ("aggregate_resources", &need.aggregate_resources),
        ("min_unit", &need.min_unit),
    ] {
        check_count(field, amounts.len(), MAX_RESOURCES)?;
    }
    check_bytes("group", need.group.len(), MAX_GROUP_BYTES)
}

impl From<CapacityNeed> for RowFacts {
    fn from(need: CapacityNeed) -> Self {
        Self {
            requirements: need.requirements.into_iter().map(Into::into).collect(),
            spread: need.spread.into_iter().map(Into::into).collect(),
            priority: need.priority,
            interruption_bucket: need.interruption_penalty_bucket.into(),
            reclamation_bucket: need.reclamation_penalty_bucket.into(),
            aggregate: need.aggregate_resources,
            min_unit: need.min_unit,
            group: need.group,
            whole_units: need.whole_units,
        }
    }
}

impl From<NodeSelectorRequirement> for RequirementFacts {
    fn from(requirement: NodeSelectorRequirement) -> Self {
        let number = requirement.operator;
        let named = || match node_selector_requirement::Operator::try_from(number) {
            Ok(operator) => operator.as_str_name().to_owned(),
            Err(_) => number.to_string(),
        };
        Self {
            key: requirement.key,
            operator: Operator::from_number(number).ok_or_else(named),
            values: requirement.values,
        }
    }
}

impl From<TopologySpread> for SpreadFacts {
    /// An unknown `when_unsatisfiable` reads as unspecified (wire 6.2).
    fn from(spread: TopologySpread) -> Self {
        let number = spread.when_unsatisfiable;
        let when = WhenUnsatisfiable::ALL
            .into_iter()
            .find(|when| when.number() == number);
        Self {
            topology_key: spread.topology_key,
            max_skew: spread.max_skew.into(),
            when: when.unwrap_or_default(),
        }
    }
}

impl From<&Row> for CapacityNeed {
    fn from(row: &Row) -> Self {
        let profile = &row.profile;
        Self {
            requirements: profile.requirements().iter().map(Into::into).collect(),
            aggregate_resources: texts(&row.aggregate),
            priority: profile.priority(),
            spread: profile.spread().iter().map(Into::into).collect(),
            interruption_penalty_bucket: PenaltyBucket::from(profile.interruption()).into(),
            reclamation_penalty_bucket: PenaltyBucket::from(profile.reclamation()).into(),
            min_unit: texts(&row.min_unit),
            group: row.group.to_string(),
            whole_units: row.whole_units,
        }
    }
}

impl From<&Requirement> for NodeSelectorRequirement {
    fn from(requirement: &Requirement) -> Self {
        let operator: node_selector_requirement::Operator = requirement.operator().into();
        Self {
            key: requirement.key().to_owned(),
            operator: operator.into(),
            values: requirement.values().to_vec(),
        }
    }
}

impl From<Operator> for node_selector_requirement::Operator {
    fn from(operator: Operator) -> Self {
        match operator {
            Operator::In => Self::In,
            Operator::NotIn => Self::NotIn,
            Operator::Exists => Self::Exists,
            Operator::DoesNotExist => Self::DoesNotExist,
            Operator::Same => Self::Same,
        }
    }
}

impl From<&Spread> for TopologySpread {
    fn from(spread: &Spread) -> Self {
        let when = match spread.when() {
            WhenUnsatisfiable::Unspecified => topology_spread::WhenUnsatisfiable::Unspecified,
            WhenUnsatisfiable::DoNotSchedule => topology_spread::WhenUnsatisfiable::DoNotSchedule,
            WhenUnsatisfiable::ScheduleAnyway => topology_spread::WhenUnsatisfiable::ScheduleAnyway,
        };
        Self {
            topology_key: spread.topology_key().to_owned(),
            max_skew: spread.max_skew(),
            when_unsatisfiable: when.into(),
        }
    }
}

impl From<Bucket> for PenaltyBucket {
    fn from(bucket: Bucket) -> Self {
        // The numbers are the same by definition (B-1), which a test walks.
        Self::try_from(i32::from(bucket.number())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_between_model_and_wire() {
        for number in 0..=27 {
            let bucket = Bucket::from_number(number.into()).unwrap();
            assert_eq!(PenaltyBucket::from(bucket) as i32, number);
        }
        assert!(PenaltyBucket::try_from(28).is_err());
        for operator in Operator::ALL {
            let wire: node_selector_requirement::Operator = operator.into();
            assert_eq!(wire as i32, operator.number());
        }
        for when in WhenUnsatisfiable::ALL {
            let spread = Spread::new("zone".to_owned(), 1, when).unwrap();
            let wire = TopologySpread::from(&spread);
            assert_eq!(wire.when_unsatisfiable, when.number());
            assert_eq!(SpreadFacts::from(wire).when, when);
        }
    }

    #[test]
    fn an_unknown_when_unsatisfiable_reads_as_unspecified() {
        let newer = TopologySpread {
            when_unsatisfiable: 7,
            ..TopologySpread::default()
        };
        assert_eq!(
            SpreadFacts::from(newer).when,
            WhenUnsatisfiable::Unspecified
        );
    }
}
