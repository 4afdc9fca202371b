//! Demand as the shard has it: the last roll-up it accepted from each cluster.

use bigfleet_model::Row;
use std::collections::VecDeque;

/// Roll-ups on their way, and the last ones accepted.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    sent: VecDeque<(String, Vec<Row>)>,
    accepted: Vec<Option<Vec<Row>>>,
    most: usize,
}

impl Demand {
    pub(crate) fn new(clusters: usize) -> Self {
        Self {
            sent: VecDeque::new(),
            accepted: vec![None; clusters],
            // A late one is overtaken by a few; nothing is later than that.
            most: clusters * 8 + 8,
        }
    }

    /// A roll-up leaves its cluster. Rows of one profile and group are one Need (NT-3).
    pub(crate) fn sent(&mut self, rollup: &str, rows: &[Row]) {
        if self.most <= self.sent.len() {
            self.sent.pop_front();
        }
        let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
        for row in rows {
            let same = |one: &&mut Row| one.profile == row.profile && one.group == row.group;
            match merged.iter_mut().find(same) {
                Some(one) => {
                    one.aggregate = one.aggregate.add(&row.aggregate);
                    one.min_unit = one.min_unit.larger(&row.min_unit);
                }
                None => merged.push(row.clone()),
            }
        }
        self.sent.push_back((rollup.to_owned(), merged));
    }

    pub(crate) fn accepted(&mut self, cluster: usize, rollup: &str) {
        let sent = self.sent.iter().find(|(id, _)| id == rollup);
        if let Some((_, rows)) = sent {
            self.accepted[cluster] = Some(rows.clone());
        }
    }

    /// The process that had accepted them is gone.
    pub(crate) fn forget(&mut self) {
        self.accepted.iter_mut().for_each(|rows| *rows = None);
    }

    /// What the shard believes a cluster wants, if it has heard from it.
    pub(crate) fn of(&self, cluster: usize) -> Option<&[Row]> {
        self.accepted[cluster].as_deref()
    }
}
