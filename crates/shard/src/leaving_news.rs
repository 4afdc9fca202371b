//! Leaving news: who marked machines to leave and why, as one event for all machines of one call or List.

use std::collections::BTreeMap;

use bigfleet_model::MachineId;
use bigfleet_shard_core::{AuditRecord, Outcome};

use crate::events::News;

/// Machines whose marks or notices changed since a cycle ended, by what happened and who said so.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeavingNews(BTreeMap<(Outcome, String), Vec<MachineId>>);

/// Machines that an event names.
const MOST_NAMED: usize = 5;

impl LeavingNews {
    /// Takes a record in, if it is about leaving.
    pub(crate) fn add(&mut self, record: &AuditRecord) {
        let said = match record.outcome {
            Outcome::DrainMarked | Outcome::DrainLifted | Outcome::DrainDeadlinePassed => {
                record.said.clone()
            }
            // How long ahead differs from machine to machine.
            Outcome::LeavingAnnounced | Outcome::LeavingWithdrawn => String::new(),
            _ => return,
        };
        let machines = self.0.entry((record.outcome, said)).or_default();
        machines.push(record.machine.clone());
    }

    /// What is to be said of them, once.
    pub(crate) fn take(&mut self) -> Vec<News> {
        let changed = std::mem::take(&mut self.0).into_iter();
        changed
            .map(|((outcome, said), machines)| news(outcome, &said, &machines))
            .collect()
    }
}

fn news(outcome: Outcome, said: &str, machines: &[MachineId]) -> News {
    let names = names(machines);
    match outcome {
        Outcome::DrainMarked => News::info("drain", format!("to leave, {said}: {names}")),
        Outcome::DrainLifted => News::info("undrain", format!("stays, {said}: {names}")),
        Outcome::DrainDeadlinePassed => News::warning(
            "drain-deadline",
            format!("the deadline has passed and nothing is waited for, {said}: {names}"),
        ),
        Outcome::LeavingWithdrawn => News::info(
            "leaving-withdrawn",
            format!("the provider does not take away after all: {names}"),
        ),
        _ => News::warning(
            "leaving-announced",
            format!("the provider announces to take away: {names}"),
        ),
    }
}

/// The first few, and how many more.
fn names(machines: &[MachineId]) -> String {
    let named: Vec<&str> = machines
        .iter()
        .take(MOST_NAMED)
        .map(MachineId::as_str)
        .collect();
    let more = machines.len().saturating_sub(MOST_NAMED);
    let names = named.join(", ");
    if more == 0 {
        return names;
    }
    format!("{names} and {more} more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_machines_of_one_call_are_one_sentence() {
        let ids: Vec<MachineId> = (1..=7)
            .map(|number| MachineId::new(&format!("m{number}")).unwrap())
            .collect();
        let said = news(Outcome::DrainMarked, "by ada: new disks", &ids);
        assert_eq!(
            (said.kind, said.text.as_str()),
            (
                "drain",
                "to leave, by ada: new disks: m1, m2, m3, m4, m5 and 2 more"
            )
        );
        let said = news(Outcome::LeavingAnnounced, "", &ids[..1]);
        assert_eq!(said.text, "the provider announces to take away: m1");
    }
}
