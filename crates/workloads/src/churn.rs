//! Churn: what changes in a steady fleet from one ten-second cycle to the next (workloads.md §4).
//!
//! ```text
//! cycle n      2 % of the Pods per minute are deleted ──▶ their rows dip
//! cycle n + 1  their controllers have made new ones    ──▶ their rows are back; others dip
//!              Configured machines fail, one in a hundred per day
//!              where clusters tell it: what draining a machine would disturb, 5,000 times a minute
//! ```
//!
//! The arithmetic, per cluster of 25,000 Pods and cycle: 25,000 × 0.02 ÷ 6 = 83⅓ Pods go and as many
//! come back. All but 3.6 % of them belong to the nine plain rows, of which six or seven differ from
//! the cycle before; the rest to gangs, where three rows dip and three return. That is 12 changed rows
//! of 230, and 24,500 of 463,000 for 2,000 clusters. Machines: 579,000 × 1.16e-7 × 10 = 0.67 per cycle
//! there, 0.0067 with 20 clusters.
//!
//! What that asks of a shard: a plain row of 100 machines dips by a third of a machine, so it crosses
//! a machine's width now and then. A gang of whole machines that lost a member needs a machine less
//! for a cycle. A gang that folds has another aggregate while a member is away, so it folds with the
//! gangs of that size, or alone, and then wants a machine, if there are none.

use bigfleet_seeded::Stream;

use crate::{
    SeededMachine, ToldDisruption, Workload,
    demand::{asked, write_row, write_rows},
    told::draw_disruption,
};
use bigfleet_model::Row;
use std::{mem, time::Duration};

/// How often a shard decides.
pub const CYCLE: Duration = Duration::from_secs(10);

/// How much changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The part of the Pods deleted and replaced per minute, from 0 to 1.
    pub replaced_per_minute: f64,
    /// Configured machines that fail, per machine and second.
    pub lost_per_second: f64,
    /// Only the first so many clusters change; to compare fleets at the same absolute churn.
    pub clusters: usize,
    /// How often a minute somebody tells anew what draining a machine would disturb, where clusters tell it.
    pub disruptions_per_minute: f64,
}

impl Default for Rates {
    /// The catalog's own: 2 % of the Pods per minute and 1 % of the machines per day, everywhere; and 5,000 words
    /// a minute on what draining would disturb.
    fn default() -> Self {
        Self {
            replaced_per_minute: 0.02,
            lost_per_second: 1.16e-7,
            clusters: usize::MAX,
            disruptions_per_minute: 5_000.0,
        }
    }
}

/// A row whose demand is not what it was a cycle ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedRow {
    /// The number of the cluster.
    pub cluster: u32,
    /// The row, as [`crate::Cluster::rows`] numbers them.
    pub row: u32,
}

/// What one cycle changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows, by cluster and number.
    pub rows: Vec<ChangedRow>,
    /// Serving machines that are now Failed, each once in the life of the fleet. One that the shard
    /// has let go in the meantime is not there to fail.
    pub lost: Vec<SeededMachine>,
    /// Pods that went away.
    pub deleted_pods: u32,
    /// Pods that came back.
    pub returned_pods: u32,
    /// What operators tell anew of draining a machine; the last word on one counts.
    pub disruptions: Vec<ToldDisruption>,
}

/// A fleet that goes on living.
#[derive(Clone, Debug)]
pub struct Churn<'a> {
    workload: &'a Workload,
    rates: Rates,
    random: Stream,
    /// Apart, so that the rest is the same whether disruption is told or not.
    told: Stream,
    /// Pods missing, by cell.
    missing: Vec<u32>,
    /// Pods that were missing a cycle ago.
    before: Vec<u32>,
    /// Whether a serving machine has failed, and how many have.
    failed: Vec<bool>,
    failures: usize,
    changes: Changes,
}

const CHURN_STREAM: u64 = 97;
const TOLD_STREAM: u64 = 101;

impl<'a> Churn<'a> {
    /// The churn of the catalog.
    pub fn new(workload: &'a Workload, seed: u64) -> Self {
        Self::with(workload, seed, Rates::default())
    }

    /// Churn at other rates.
    pub fn with(workload: &'a Workload, seed: u64, rates: Rates) -> Self {
        let clusters = rates.clusters.min(workload.demand.clusters());
        Self {
            workload,
            rates: Rates { clusters, ..rates },
            random: Stream::new(seed, CHURN_STREAM),
            told: Stream::new(seed, TOLD_STREAM),
            missing: vec![0; workload.demand.len()],
            before: vec![0; workload.demand.len()],
            failed: vec![false; workload.seats.starts[clusters]],
            failures: 0,
            changes: Changes::default(),
        }
    }

    /// Ten seconds pass.
    pub fn next_cycle(&mut self) -> &Changes {
        mem::swap(&mut self.missing, &mut self.before);
        self.missing.fill(0);
        let returned_pods = self.changes.deleted_pods;
        self.changes.rows.clear();
        self.changes.lost.clear();
        self.changes.disruptions.clear();
        self.changes.deleted_pods = 0;
        self.changes.returned_pods = returned_pods;
        for cluster in 0..self.rates.clusters {
            self.delete_pods(cluster);
            self.note_rows(cluster);
        }
        self.lose_machines();
        self.tell_disruptions();
        &self.changes
    }

    /// What the last cycle changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The roll-up a cluster sends now, rows nobody asks for left out.
    pub fn rows(&self, cluster: usize) -> impl Iterator<Item = Row> + '_ {
        let Workload { tables, demand, .. } = self.workload;
        let missing = &self.missing[demand.range(cluster)];
        write_rows(tables, demand.cells(cluster), missing)
    }

    /// One row as it is now; `None` if no Pod of it is left.
    pub fn row(&self, changed: ChangedRow) -> Option<Row> {
        let Workload { tables, demand, .. } = self.workload;
        let cluster = changed.cluster as usize;
        let range = demand.row_range(cluster, changed.row);
        let missing = &self.missing[demand.range(cluster)][range.clone()];
        write_row(tables, &demand.cells(cluster)[range], missing)
    }

    /// Deletes Pods that live: neither gone this cycle already nor being made again.
    fn delete_pods(&mut self, cluster: usize) {
        let demand = &self.workload.demand;
        let cells = demand.cells(cluster);
        let range = demand.range(cluster);
        let (missing, before) = (&mut self.missing[range.clone()], &self.before[range]);
        let pods = demand.pods(cluster);
        let rate = self.rates.replaced_per_minute.clamp(0.0, 1.0) * CYCLE.as_secs_f64() / 60.0;
        let live = pods - before.iter().sum::<u32>();
        let due = self.random.rounded(f64::from(pods) * rate).min(live);
        let mut deleted = 0;
        while deleted < due {
            let pod = self.random.below(pods);
            let at = cells.partition_point(|cell| cell.end <= pod);
            // Pods of a cell are alike, so those gone may as well be its first ones.
            let within = pod - (cells[at].end - cells[at].pods);
            if before[at] + missing[at] <= within {
                missing[at] += 1;
                deleted += 1;
            }
        }
        self.changes.deleted_pods += deleted;
    }

    /// Notes the rows that ask for something else than before. Two small Pods back and a large one
    /// gone may well be no change.
    fn note_rows(&mut self, cluster: usize) {
        let Workload { tables, demand, .. } = self.workload;
        let range = demand.range(cluster);
        let (now, then) = (&self.missing[range.clone()], &self.before[range]);
        let mut at = 0;
        for cells in demand.cells(cluster).chunk_by(|a, b| a.row == b.row) {
            let range = at..at + cells.len();
            at = range.end;
            let (now, then) = (&now[range.clone()], &then[range]);
            if now != then && asked(tables, cells, now) != asked(tables, cells, then) {
                self.changes.rows.push(ChangedRow {
                    cluster: cluster as u32,
                    row: cells[0].row,
                });
            }
        }
    }

    /// Operators tell anew what draining some of their machines would disturb.
    fn tell_disruptions(&mut self) {
        let seats = self.failed.len() as u32;
        if !self.workload.tells() || seats == 0 {
            return;
        }
        let mean = self.rates.disruptions_per_minute * CYCLE.as_secs_f64() / 60.0;
        for _ in 0..self.told.rounded(mean) {
            let seat = self.told.below(seats) as usize;
            let cluster = self.workload.seats.cluster(seat);
            self.changes.disruptions.push(ToldDisruption {
                machine: self.workload.seat(cluster, seat),
                level: draw_disruption(&mut self.told),
            });
        }
    }

    fn lose_machines(&mut self) {
        let standing = self.failed.len() - self.failures;
        let mean = standing as f64 * self.rates.lost_per_second * CYCLE.as_secs_f64();
        let due = (self.random.poisson(mean) as usize).min(standing);
        for _ in 0..due {
            let seat = loop {
                let seat = self.random.below(self.failed.len() as u32) as usize;
                if !mem::replace(&mut self.failed[seat], true) {
                    break seat;
                }
            };
            let cluster = self.workload.seats.cluster(seat);
            self.changes.lost.push(self.workload.seat(cluster, seat));
        }
        self.failures += due;
    }
}
