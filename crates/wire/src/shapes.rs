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
use crate::shown::{Shown, Texts};

/// Shapes kept: a few types in a few zones may take turns.
const KEPT: usize = 16;

/// The shapes seen last.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Vec<(Parts, Arc<Shape>)>);

/// What of a shape is not in it as it was sent.
#[derive(Debug)]
struct Parts {
    capacity_type: i32,
    resources: BTreeMap<String, String>,
    allocatable: BTreeMap<String, String>,
}

fn are_alike(parts: &Parts, shape: &Shape, machine: &Shown<'_>) -> bool {
    shape.instance_type == machine.instance_type
        && shape.zone == machine.zone
        && parts.capacity_type == machine.capacity_type
        && machine.resources.are(&parts.resources)
        && machine.allocatable.are(&parts.allocatable)
        && machine.labels.are(&shape.labels)
}

impl Shapes {
    /// The shape of a machine.
    pub(crate) fn of(&mut self, machine: &Shown<'_>, warnings: &mut Vec<Warning>) -> Arc<Shape> {
        let mut known = self.0.iter().rev();
        if let Some((_, shape)) = known.find(|(parts, shape)| are_alike(parts, shape, machine)) {
            return Arc::clone(shape);
        }
        let before = warnings.len();
        let shape = Arc::new(Shape {
            capacity_type: capacity_type(machine.capacity_type, warnings),
            resources: amounts("resources", &machine.resources, warnings).unwrap_or_default(),
            allocatable: amounts("allocatable", &machine.allocatable, warnings),
            instance_type: machine.instance_type.to_owned(),
            zone: machine.zone.to_owned(),
            labels: machine.labels.owned(),
        });
        if warnings.len() == before {
            if KEPT <= self.0.len() {
                self.0.remove(0);
            }
            let parts = Parts {
                capacity_type: machine.capacity_type,
                resources: machine.resources.owned(),
                allocatable: machine.allocatable.owned(),
            };
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
fn amounts(field: &'static str, texts: &Texts<'_>, warnings: &mut Vec<Warning>) -> Option<Amounts> {
    let mut entries = Vec::with_capacity(texts.len());
    for (name, text) in texts.iter() {
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
    (texts.len() != 0).then(|| Amounts::from_entries(entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::{Machine, Resources};

    fn machine(cpu: &str) -> Machine {
        let resources = [("cpu".to_owned(), cpu.to_owned())].into();
        Machine {
            resources: Some(Resources { resources }),
            zone: "a".to_owned(),
            ..Machine::default()
        }
    }

    fn of(shapes: &mut Shapes, message: &Machine, warnings: &mut Vec<Warning>) -> Arc<Shape> {
        let mut machine = Shown::default();
        let Ok(()) = machine.set(message);
        shapes.of(&machine, warnings)
    }

    #[test]
    fn machines_that_are_alike_share_a_shape() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        let mut of = |message: &Machine| of(&mut shapes, message, &mut warnings);
        let one = of(&machine("4"));
        let other = of(&machine("8"));
        assert!(Arc::ptr_eq(&one, &of(&machine("4"))));
        assert_ne!(one, other);
        let mut elsewhere = machine("4");
        elsewhere.zone = "b".to_owned();
        assert_ne!(of(&elsewhere), one);
    }

    #[test]
    fn what_cannot_be_read_is_said_of_each() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        for _ in 0..2 {
            of(&mut shapes, &machine("many"), &mut warnings);
        }
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn only_the_last_few_are_kept() {
        let (mut shapes, mut warnings) = (Shapes::default(), Vec::new());
        for cpu in 1..=2 * KEPT {
            of(&mut shapes, &machine(&cpu.to_string()), &mut warnings);
        }
        assert_eq!(shapes.0.len(), KEPT);
    }
}
