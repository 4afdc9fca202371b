//! What the provider contract promises: each promise is one check, with an id, that runs against any
//! provider over gRPC.
//!
//! ```text
//! catalogue() ─▶ Behaviour { id, lane, run } ── Subject (clients, a way to boot) ──▶ kept, or why not
//! ```
//!
//! A check knows nothing about how a provider is made. It takes machines nobody else has taken,
//! speaks the six calls, and polls what can be observed, each time with a deadline.

#[macro_use]
mod check;

mod boot;
mod runner;
mod subject;

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

use std::pin::Pin;

pub use boot::{Binary, BootFailed, Running};
pub use check::{Check, Unmet};
pub use runner::{Options, Report, Verdict, run};
pub use subject::{Subject, Token};

/// Which process a behaviour runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// A plain provider.
    Core,
    /// One with fault hooks and short timeouts.
    Fault,
    /// One with a state file, killed and started again.
    Durable,
    /// One with many slots.
    Scale,
    /// A pool of bare metal.
    BareMetal,
}

/// What a provider may do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Delete.
    Delete,
    /// Cursors.
    SinceRevision,
}

type Run = for<'s> fn(&'s Subject) -> Pin<Box<dyn Future<Output = Check> + Send + 's>>;

/// One promise.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Our id.
    pub id: &'static str,
    /// Its id in the reference registry; empty for ours.
    pub reference: &'static str,
    /// The kind of process it is checked against.
    pub lane: Lane,
    /// What it needs the provider to have.
    pub needs: Option<Capability>,
    /// The promise in a sentence.
    pub title: &'static str,
    /// Ends in an error that says how the promise was broken.
    pub check: Run,
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
    fn there_are_ninety_three_and_sixteen_of_ours() {
        let all = catalogue();
        let ids: BTreeSet<_> = all.iter().map(|behaviour| behaviour.id).collect();
        assert_eq!(ids.len(), all.len(), "an id occurs twice");
        let references: BTreeSet<_> = all
            .iter()
            .map(|b| b.reference)
            .filter(|id| !id.is_empty())
            .collect();
        assert_eq!(references.len(), 93);
        assert_eq!(all.iter().filter(|b| b.id.starts_with("X-")).count(), 16);
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
            Lane::Core => "core",
            Lane::Fault => "fault",
            Lane::Durable => "durable",
            Lane::Scale => "scale",
            Lane::BareMetal => "bare metal",
        };
        let needs = match behaviour.needs {
            None => "",
            Some(Capability::Delete) => "Delete",
            Some(Capability::SinceRevision) => "cursors",
        };
        let Behaviour { id, title, .. } = behaviour;
        format!("| **{id}** | {title} | {lane} | {needs} |")
    }
}
