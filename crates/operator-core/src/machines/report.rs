//! Report: what the shard is told of Nodes (OP-32, OP-33).
//!
//! ```text
//! change ── 1 s ──▶ changes        counted resync, then every 5 min ──▶ all of them
//! more than half, and at least 3, of those last ready are not ──▶ none of them is told
//! ```
//!
//! To a shard whatever a complete report leaves out is not ready, and is replaced after ten minutes. So one is complete
//! only if nothing can be missing by mistake, and a whole cluster that goes silent at once is a network that broke, not
//! machines that did.

use crate::effect::{Frame, NodeLine};
use bigfleet_model::{MachineId, Time};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

const DEBOUNCE: Duration = Duration::from_secs(1);
const FULL_EVERY: Duration = Duration::from_secs(300);
/// Changes of what a drain would disturb are told at most so often for one Node.
const DISRUPTION_EVERY: Duration = Duration::from_secs(10);
/// Fewer Nodes than this never look like a broken network.
const LEAST_FLIP: usize = 3;

/// What was told of a machine.
#[derive(Clone, Debug)]
struct Told {
    line: NodeLine,
    at: Time,
}

/// What may be said now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportTerms {
    /// Nothing can be missing by mistake: counted, fresh, none unaccounted, none ambiguous.
    pub(crate) is_sure: bool,
    /// The shard wants to know what a drain would disturb.
    pub(crate) with_disruption: bool,
    pub(crate) no_mass_flip: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// What each machine's Node is like now; absent without a Node.
    now: BTreeMap<MachineId, NodeLine>,
    told: BTreeMap<MachineId, Told>,
    changed: BTreeSet<MachineId>,
    due: Option<Time>,
    full_due: Option<Time>,
}

impl Reports {
    /// A machine's Node is like this now, or is not there.
    pub(crate) fn is_now(&mut self, now: Time, machine: &MachineId, line: Option<NodeLine>) {
        let before = match line.clone() {
            Some(line) => self.now.insert(machine.clone(), line),
            None => self.now.remove(machine),
        };
        if before != line {
            self.changed.insert(machine.clone());
            self.due.get_or_insert(now + DEBOUNCE);
        }
    }

    /// The machine left: nobody asks about it any more.
    pub(crate) fn left(&mut self, machine: &MachineId) {
        self.now.remove(machine);
        self.told.remove(machine);
        self.changed.remove(machine);
    }

    /// A session begins; it hears everything once its resync is counted.
    pub(crate) fn session_begins(&mut self) {
        self.full_due = None;
    }

    pub(crate) fn resynced(&mut self, now: Time) {
        self.full_due = Some(now);
    }

    pub(crate) fn next(&self) -> Option<Time> {
        if self.now.is_empty() && self.told.is_empty() {
            return None;
        }
        let due = self.due.filter(|_| !self.changed.is_empty());
        Time::earliest(due, self.full_due)
    }

    /// OP-33: machines that were ready and are not, if they are too many to be believed.
    fn frozen(&self, terms: ReportTerms) -> BTreeSet<MachineId> {
        let is_ready = |machine: &MachineId| self.now.get(machine).is_some_and(|line| line.ready);
        let was_ready = || self.told.iter().filter(|(_, told)| told.line.ready);
        let silent: BTreeSet<_> = was_ready()
            .map(|(machine, _)| machine)
            .filter(|machine| !is_ready(machine))
            .cloned()
            .collect();
        let is_mass = LEAST_FLIP <= silent.len() && was_ready().count() < 2 * silent.len();
        if is_mass && !terms.no_mass_flip {
            silent
        } else {
            BTreeSet::new()
        }
    }

    pub(crate) fn frozen_count(&self) -> usize {
        let terms = ReportTerms {
            is_sure: false,
            with_disruption: false,
            no_mass_flip: false,
        };
        self.frozen(terms).len()
    }

    /// The report that is due, if there is anything to say.
    pub(crate) fn build(&mut self, now: Time, terms: ReportTerms) -> Option<Frame> {
        let is_full = self.full_due.is_some_and(|due| due <= now);
        let is_due = self.due.is_some_and(|due| due <= now) || is_full;
        // A shard judges only who reports, so an operator that knows no Node keeps quiet.
        if !is_due || (self.now.is_empty() && self.told.is_empty()) {
            return None;
        }
        let frozen = self.frozen(terms);
        let named: BTreeSet<MachineId> = if is_full {
            self.now.keys().chain(self.told.keys()).cloned().collect()
        } else {
            self.changed.clone()
        };
        let mut nodes = Vec::new();
        let mut later = None;
        for machine in named.difference(&frozen) {
            match self.line(now, machine, terms) {
                Said::Line(line) if is_full || self.is_news(machine, &line) => nodes.push(line),
                Said::Line(_) | Said::Nothing => {}
                Said::Later(at) => later = Time::earliest(later, Some(at)),
            }
        }
        self.changed.retain(|machine| frozen.contains(machine));
        if let Some(at) = later {
            let waits = |machine: &&MachineId| self.waits_for_disruption(machine, terms);
            let waiting: Vec<_> = named.iter().filter(waits).cloned().collect();
            self.changed.extend(waiting);
            self.due = Some(at);
        } else {
            self.due = (!self.changed.is_empty()).then_some(now + DISRUPTION_EVERY);
        }
        if is_full {
            self.full_due = Some(now + FULL_EVERY);
        }
        for line in &nodes {
            let told = Told {
                line: line.clone(),
                at: now,
            };
            if self.now.contains_key(&line.machine) {
                self.told.insert(line.machine.clone(), told);
            } else {
                self.told.remove(&line.machine);
            }
        }
        let complete = is_full && terms.is_sure && frozen.is_empty();
        (is_full || !nodes.is_empty()).then_some(Frame::NodeReport { complete, nodes })
    }

    fn is_news(&self, machine: &MachineId, line: &NodeLine) -> bool {
        self.told.get(machine).is_none_or(|told| told.line != *line)
    }

    /// What to say of a machine: its Node as it is, or that it has none any more.
    fn line(&self, now: Time, machine: &MachineId, terms: ReportTerms) -> Said {
        let Some(line) = self.now.get(machine) else {
            let gone = |told: &Told| NodeLine {
                ready: false,
                ..told.line.clone()
            };
            return self
                .told
                .get(machine)
                .map_or(Said::Nothing, |told| Said::Line(gone(told)));
        };
        let disruption = line.disruption.filter(|_| terms.with_disruption);
        let line = NodeLine {
            disruption,
            ..line.clone()
        };
        if let Some(told) = self.told.get(machine) {
            let same = NodeLine {
                disruption: told.line.disruption,
                ..line.clone()
            };
            let next = told.at + DISRUPTION_EVERY;
            if same == told.line && line != told.line && now < next {
                return Said::Later(next);
            }
        }
        Said::Line(line)
    }

    fn waits_for_disruption(&self, machine: &MachineId, terms: ReportTerms) -> bool {
        let (Some(line), Some(told)) = (self.now.get(machine), self.told.get(machine)) else {
            return false;
        };
        terms.with_disruption && line.disruption != told.line.disruption
    }
}

enum Said {
    Line(NodeLine),
    Later(Time),
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> MachineId {
        MachineId::new(&format!("m{number:02}")).unwrap()
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn line(number: usize, ready: bool, disruption: u8) -> NodeLine {
        NodeLine {
            machine: id(number),
            node_name: format!("n{number}"),
            provider_id: String::new(),
            ready,
            disruption: Some(disruption),
        }
    }

    const SURE: ReportTerms = ReportTerms {
        is_sure: true,
        with_disruption: true,
        no_mass_flip: false,
    };

    fn told(frame: Option<Frame>) -> (bool, Vec<(String, bool)>) {
        let Some(Frame::NodeReport { complete, nodes }) = frame else {
            return (false, vec![]);
        };
        let short = |line: NodeLine| (line.machine.to_string(), line.ready);
        (complete, nodes.into_iter().map(short).collect())
    }

    fn twenty() -> Reports {
        let mut reports = Reports::default();
        (0..20).for_each(|n| reports.is_now(at(0), &id(n), Some(line(n, true, 0))));
        reports.resynced(at(0));
        let (complete, nodes) = told(reports.build(at(0), SURE));
        assert!(complete);
        assert_eq!(nodes.len(), 20);
        reports
    }

    fn silence(reports: &mut Reports, seconds: u64, nodes: std::ops::Range<usize>) -> usize {
        nodes.for_each(|n| reports.is_now(at(seconds), &id(n), Some(line(n, false, 0))));
        told(reports.build(at(seconds + 1), SURE)).1.len()
    }

    /// EX-OP9: six of twenty are told, twelve more at once are not, and when nine of them are back all is told.
    #[test]
    fn ex_op9_a_mass_flip_is_not_believed() {
        let mut reports = twenty();
        assert_eq!(silence(&mut reports, 10, 0..6), 6);
        assert_eq!(silence(&mut reports, 20, 6..18), 0);
        assert_eq!(reports.frozen_count(), 12);
        reports.resynced(at(30));
        let (complete, nodes) = told(reports.build(at(30), SURE));
        assert!(!complete, "nothing is complete while some are not told");
        assert_eq!(nodes.len(), 8);
        (6..15).for_each(|n| reports.is_now(at(40), &id(n), Some(line(n, true, 0))));
        let (_, nodes) = told(reports.build(at(41), SURE));
        assert_eq!(nodes, [15, 16, 17].map(|n| (id(n).to_string(), false)));
    }

    /// The failing arm of OP-33.
    #[test]
    fn without_the_rule_a_broken_network_would_cost_the_cluster() {
        let mut reports = twenty();
        (0..18).for_each(|n| reports.is_now(at(10), &id(n), Some(line(n, false, 0))));
        let terms = ReportTerms {
            no_mass_flip: true,
            ..SURE
        };
        assert_eq!(told(reports.build(at(11), terms)).1.len(), 18);
    }

    /// OP-32.
    #[test]
    fn disruption_is_told_every_ten_seconds_and_only_to_who_asks() {
        let mut reports = twenty();
        reports.is_now(at(1), &id(3), Some(line(3, true, 5)));
        assert_eq!(reports.build(at(2), SURE), None);
        assert_eq!(reports.next(), Some(at(10)));
        let (_, nodes) = told(reports.build(at(10), SURE));
        assert_eq!(nodes.len(), 1);
        reports.is_now(at(20), &id(3), Some(line(3, true, 6)));
        let terms = ReportTerms {
            with_disruption: false,
            ..SURE
        };
        let frame = reports.build(at(21), terms);
        let Some(Frame::NodeReport { nodes, .. }) = frame else {
            unreachable!("the shard no longer knows what it heard before");
        };
        assert_eq!(nodes[0].disruption, None);
    }

    #[test]
    fn a_node_that_is_gone_is_not_ready_and_then_forgotten() {
        let mut reports = twenty();
        reports.is_now(at(5), &id(1), None);
        let (_, nodes) = told(reports.build(at(6), SURE));
        assert_eq!(nodes, [(id(1).to_string(), false)]);
        reports.left(&id(2));
        reports.resynced(at(10));
        assert_eq!(told(reports.build(at(10), SURE)).1.len(), 18);
        assert_eq!(Reports::default().build(at(0), SURE), None);
    }
}
