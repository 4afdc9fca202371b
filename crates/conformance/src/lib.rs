//! What the provider contract promises: each promise is one check, with an id, that runs against any
//! provider over gRPC.
//!
//! ```text
//! catalogue() ─▶ Behaviour { id, lane, check } ── Subject (clients, a way to boot) ──▶ Report ─┐
//!                                       report.json, junit.xml, badge.json, report.html ◀── Certificate
//! ```
//!
//! A check knows nothing about how a provider is made. It takes machines nobody else has taken,
//! speaks the six calls, and polls what can be observed, each time with a deadline.

#[macro_use]
mod check;

mod behaviour;
mod boot;
mod exchange;
mod runner;
mod subject;

mod certificate;
mod report;

pub mod mutants;

mod baseline;
mod concurrency;
mod durability;
mod errors;
mod extra;
mod fault;
mod fencing;
mod idempotency;
mod lifecycle;
mod list;
mod metadata;
mod property;
mod scale;
mod shape;

pub use behaviour::{Behaviour, Capability, Lane, Profile, Suite};
pub use boot::{Binary, BootFailed, Provider};
pub use certificate::{Certificate, Verdict};
pub use check::{Check, Unmet};
pub use exchange::Exchange;
pub use report::{summary, write};
pub use runner::{Options, Outcome, Progress, Report, run};
pub use subject::{Subject, Token};

/// The short suite that every provider passes first.
pub fn baseline() -> Vec<Behaviour> {
    baseline::ALL.to_vec()
}

/// Every promise, in the order of the specification.
pub fn catalogue() -> Vec<Behaviour> {
    [
        lifecycle::ALL,
        errors::ALL,
        idempotency::ALL,
        fencing::ALL,
        concurrency::ALL,
        metadata::ALL,
        fault::ALL,
        shape::ALL,
        list::ALL,
        durability::ALL,
        scale::ALL,
        property::ALL,
        extra::ALL,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_ninety_three_and_seventeen_of_ours() {
        let all = catalogue();
        let ids: BTreeSet<_> = all.iter().map(|behaviour| behaviour.id).collect();
        assert_eq!(ids.len(), all.len(), "an id occurs twice");
        let references: BTreeSet<_> = all
            .iter()
            .map(|b| b.reference)
            .filter(|id| !id.is_empty())
            .collect();
        assert_eq!(references.len(), 93);
        assert_eq!(all.iter().filter(|b| b.id.starts_with("X-")).count(), 17);
    }

    #[test]
    fn the_baseline_has_twenty_five_tests() {
        let ids: BTreeSet<_> = baseline().iter().map(|test| test.id).collect();
        assert_eq!(ids.len(), 25);
        assert!(
            baseline()
                .iter()
                .all(|test| test.suite() == Suite::Baseline)
        );
    }

    #[test]
    fn areas_and_phases_are_those_of_the_registry() {
        let count = |area: &str| {
            let of_contract = |b: &&Behaviour| b.suite() == Suite::Contract && b.area() == area;
            catalogue().iter().filter(of_contract).count()
        };
        let counts = [
            ("lifecycle", 8),
            ("errors", 12),
            ("idempotency", 4),
            ("fencing", 11),
            ("concurrency", 8),
            ("metadata", 5),
            ("fault", 8),
            ("fieldshape", 7),
            ("list", 9),
            ("durability", 7),
            ("scale", 9),
            ("property", 5),
        ];
        assert_eq!(counts.map(|(area, _)| (area, count(area))), counts);
        for behaviour in catalogue() {
            let black_box = matches!(behaviour.lane, Lane::Core | Lane::BareMetal);
            assert_eq!(behaviour.phase() == 2, black_box, "{}", behaviour.id);
            assert_ne!(behaviour.area(), "baseline", "{}", behaviour.id);
        }
    }

    /// The page is what an author of a provider reads: it has every check, as the check says it.
    #[test]
    fn the_page_of_behaviours_has_every_check() {
        let page = include_str!("../../../docs/spec/behaviours.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| **"))
            .collect();
        let expected: Vec<String> = catalogue().iter().map(row).collect();
        assert_eq!(rows, expected);
    }

    fn row(behaviour: &Behaviour) -> String {
        let lane = match behaviour.lane {
            Lane::Baseline | Lane::Core => "core",
            Lane::Fault => "fault",
            Lane::Durable => "durable",
            Lane::Scale => "scale",
            Lane::BareMetal => "bare metal",
        };
        let needs = match behaviour.needs {
            None => "",
            Some(needed) => &needed.to_string(),
        };
        let Behaviour { id, title, .. } = behaviour;
        format!("| **{id}** | {title} | {lane} | {needs} |")
    }
}
