//! Shapes: what many machines have in common, read once.
//!
//! ```text
//! record ─▶ its shape among the last few seen? ─ yes ─▶ shared
//!                                               └ no ─▶ quantities read, kept for the next
//! ```
//!
//! A fleet has millions of machines and hundreds of shapes, and a List names machines of one shape one
//! after the other. A shape that could not be read without a warning is not kept, so each record that
//! has it says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::{Amounts, CapacityType, Dimension, Shape, quantity::parse_supply, shown};

use crate::record::Warning;
use crate::v1alpha1::{Machine, Resources};

/// Shapes kept: a few types in a few zones may take turns.
const KEPT: usize = 16;

/// The shapes seen last.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Vec<(Parts, Arc<Shape>)>);

/// A shape as it was sent.
#[derive(Debug, PartialEq)]
struct Parts {
    instance_type: String,
    zone: String,
    capacity_type: i32,
    resources: Option<Resources>,
    allocatable: Option<Resources>,
    labels: BTreeMap<String, String>,
}

impl Parts {
    fn are_of(&self, message: &Machine) -> bool {
        self.instance_type == message.instance_type
            && self.zone == message.zone
            && self.capacity_type == message.capacity_type
            && self.resources == message.resources
            && self.allocatable == message.allocatable
            && self.labels == message.labels
    }
}

impl Shapes {
    /// The shape of a machine, taken out of its record.
    pub(crate) fn of(&mut self, message: &mut Machine, warnings: &mut Vec<Warning>) -> Arc<Shape> {
        let known = self.0.iter().rposition(|(parts, _)| parts.are_of(message));
        if let Some((_, shape)) = known.and_then(|at| self.0.get(at)) {
            return Arc::clone(shape);
        }
        let before = warnings.len();
        let parts = Parts {
            instance_type: std::mem::take(&mut message.instance_type),
            zone: std::mem::take(&mut message.zone),
            capacity_type: message.capacity_type,
            resources: message.resources.take(),
            allocatable: message.allocatable.take(),
            labels: std::mem::take(&mut message.labels),
        };
        let shape = Arc::new(Shape {
            capacity_type: capacity_type(parts.capacity_type, warnings),
            resources: amounts("resources", &parts.resources, warnings).unwrap_or_default(),
            allocatable: amounts("allocatable", &parts.allocatable, warnings),
            instance_type: parts.instance_type.clone(),
            zone: parts.zone.clone(),
            labels: parts.labels.clone(),
        });
        if warnings.len() == before {
            if KEPT <= self.0.len() {
                self.0.remove(0);
            }
            self.0.push((parts, Arc::clone(&shape)));
        }
        shape
    }
}

fn capacity_type(number: i32, warnings: &mut Vec<Warning>) -> CapacityType {
    let known = CapacityType::ALL
        .into_iter()
        .find(|tier| tier.number() == number);
    known.unwrap_or_else(|| {
        warnings.push(Warning::CapacityType(number));
        CapacityType::Unspecified
    })
}

/// The vector, or `None` if nothing is stated. A stated one may still be worth nothing (M-2).
fn amounts(
    field: &'static str,
    resources: &Option<Resources>,
    warnings: &mut Vec<Warning>,
) -> Option<Amounts> {
    let texts = &resources.as_ref()?.resources;
    let mut entries = Vec::with_capacity(texts.len());
    for (name, text) in texts {
        let resource = || shown(name);
        match (Dimension::new(name), parse_supply(text)) {
            (Ok(dimension), Ok(milli)) => entries.push((dimension, milli.into())),
            (Ok(_), Err(refused)) => warnings.push(Warning::Quantity {
                field,
                resource: resource(),
                text: refused.text,
            }),
            (Err(_), _) => warnings.push(Warning::Resource {
                field,
                resource: resource(),
            }),
        }
    }
    (!texts.is_empty()).then(|| Amounts::from_entries(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpu: &str) -> Machine {
        let resources = [("cpu".to_owned(), cpu.to_owned())].into();
        Machine {
            resources: Some(Resources { resources }),
            zone: "a".to_owned(),
            ..Machine::default()
        }
    }

    #[test]
    fn machines_that_are_alike_share_a_shape() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        let mut of = |message: &mut Machine| shapes.of(message, &mut warnings);
        let one = of(&mut machine("4"));
        let other = of(&mut machine("8"));
        assert!(Arc::ptr_eq(&one, &of(&mut machine("4"))));
        assert_ne!(one, other);
        let mut elsewhere = machine("4");
        elsewhere.zone = "b".to_owned();
        assert_ne!(of(&mut elsewhere), one);
    }

    #[test]
    fn what_cannot_be_read_is_said_of_each() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        for _ in 0..2 {
            shapes.of(&mut machine("many"), &mut warnings);
        }
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn only_the_last_few_are_kept() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        for cpu in 1..=2 * KEPT {
            shapes.of(&mut machine(&cpu.to_string()), &mut warnings);
        }
        assert_eq!(shapes.0.len(), KEPT);
    }
}
