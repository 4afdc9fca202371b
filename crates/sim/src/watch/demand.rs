//! Demand as the shard has it: the last roll-up it accepted from each cluster.

use bigfleet_model::{Amounts, Row};
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

    /// A roll-up leaves its cluster. Rows of one profile and group are one Need (NT-3), of whole units if all
    /// of them are, of one size (RF-19).
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
                    one.whole_units &= row.whole_units && one.min_unit == row.min_unit;
                    one.min_unit = one.min_unit.larger(&row.min_unit);
                }
                None => merged.push(row.clone()),
            }
        }
        for row in merged.iter_mut().filter(|row| row.whole_units) {
            row.aggregate = whole(row);
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

/// What a row of whole units asks for, without parts of them.
fn whole(row: &Row) -> Amounts {
    let unit = &row.min_unit;
    let aggregate = &row.aggregate;
    let counts = unit.iter().map(|(name, each)| {
        let wanted = aggregate.get(name.as_str());
        (wanted + each - 1) / each
    });
    let units = counts.max().unwrap_or(0);
    let others = aggregate.iter();
    let others = others.filter(|(name, _)| unit.get(name.as_str()) == 0);
    let others = others.map(|(name, milli)| (name.clone(), milli));
    let wholes = unit.iter();
    let wholes = wholes.map(|(name, each)| (name.clone(), units * each));
    Amounts::from_entries(others.chain(wholes))
}
