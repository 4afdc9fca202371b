//! Demand: the Pods of every cluster, as counts (workloads.md §1).
//!
//! ```text
//! draw objects until the cluster has its Pods ──▶ Pods equal in profile, gang and size ──▶ one cell
//!                                                 cells equal in profile and gang      ──▶ one row
//! ```
//!
//! Nothing a shard sees tells two Pods of a cell apart, so fifty million Pods are half a million
//! cells of 20 bytes. A replaced Pod is one less and, later, one more in its cell.

use crate::Size;
use crate::tables::Tables;
use bigfleet_model::Row;
use std::ops::Range;

/// Equal Pods of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// How many Pods of the cluster there are up to and including these.
    pub(crate) end: u32,
    /// How many Pods these are.
    pub(crate) pods: u32,
    /// The cluster's row they are part of.
    pub(crate) row: u32,
    pub(crate) group: u32,
    pub(crate) profile: u16,
    pub(crate) unit: u16,
}

/// The cells of all clusters, one cluster after another. Within a cluster, cells of a row are
/// neighbours and rows are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    cells: Vec<Cell>,
    /// Where each cluster begins; one more at the end.
    starts: Vec<usize>,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            starts: vec![0],
        }
    }
}

impl Demand {
    /// Adds Pods to the cluster being written. Of one row's cells, each must follow the last.
    pub(crate) fn push(&mut self, profile: u16, group: u32, unit: u16, pods: u32) {
        let open = *self.starts.last().unwrap_or(&0);
        let (end, row) = match self.cells[open..].last() {
            None => (0, 0),
            Some(last) if (last.profile, last.group) == (profile, group) => (last.end, last.row),
            Some(last) => (last.end, last.row + 1),
        };
        self.cells.push(Cell {
            end: end + pods,
            pods,
            row,
            group,
            profile,
            unit,
        });
    }

    /// Ends the cluster being written.
    pub(crate) fn close_cluster(&mut self) {
        self.starts.push(self.cells.len());
    }

    pub(crate) fn shrink(&mut self) {
        self.cells.shrink_to_fit();
    }

    pub(crate) fn clusters(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many cells there are in all.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Where a cluster's cells are.
    pub(crate) fn range(&self, cluster: usize) -> Range<usize> {
        self.starts[cluster]..self.starts[cluster + 1]
    }

    pub(crate) fn cells(&self, cluster: usize) -> &[Cell] {
        &self.cells[self.range(cluster)]
    }

    pub(crate) fn row_count(&self, cluster: usize) -> u32 {
        self.cells(cluster).last().map_or(0, |last| last.row + 1)
    }

    pub(crate) fn pods(&self, cluster: usize) -> u32 {
        self.cells(cluster).last().map_or(0, |last| last.end)
    }

    /// Where the cells of one row are, counted within its cluster.
    pub(crate) fn row_range(&self, cluster: usize, row: u32) -> Range<usize> {
        let cells = self.cells(cluster);
        let start = cells.partition_point(|cell| cell.row < row);
        let more = cells[start..].iter().take_while(|cell| cell.row == row);
        start..start + more.count()
    }
}

/// What the cells of a row ask for with so many Pods missing: in sum, and at most at once.
pub(crate) fn asked(tables: &Tables, cells: &[Cell], missing: &[u32]) -> (Size, Size) {
    let (mut aggregate, mut min_unit) = (Size::default(), Size::default());
    for (at, cell) in cells.iter().enumerate() {
        let pods = cell.pods - missing.get(at).copied().unwrap_or(0);
        if 0 < pods {
            let unit = tables.unit(cell.unit);
            aggregate = aggregate.plus(unit.times(pods));
            min_unit = min_unit.larger(unit);
        }
    }
    (aggregate, min_unit)
}

/// The row of some cells of which so many Pods are missing; `None` if none is left, since a roll-up
/// has no row for what nobody asks for.
pub(crate) fn write_row(tables: &Tables, cells: &[Cell], missing: &[u32]) -> Option<Row> {
    let first = cells.first()?;
    let (aggregate, min_unit) = asked(tables, cells, missing);
    (aggregate != Size::default()).then(|| Row {
        profile: tables.profile(first.profile).clone(),
        aggregate: tables.amounts(aggregate),
        min_unit: tables.amounts(min_unit),
        group: tables.group(first.group).clone(),
        whole_units: tables.tells_units() && is_of_one_size(cells, missing),
    })
}

/// Whether all Pods that are left are of one size.
fn is_of_one_size(cells: &[Cell], missing: &[u32]) -> bool {
    let left = cells.iter().enumerate();
    let left = left.filter(|(at, cell)| missing.get(*at).copied().unwrap_or(0) < cell.pods);
    let mut units = left.map(|(_, cell)| cell.unit);
    let first = units.next();
    units.all(|unit| Some(unit) == first)
}

/// Every row of some cells, in order.
pub(crate) fn write_rows<'a>(
    tables: &'a Tables,
    cells: &'a [Cell],
    missing: &'a [u32],
) -> impl Iterator<Item = Row> + 'a {
    let mut at = 0;
    let rows = cells.chunk_by(|a, b| a.row == b.row);
    rows.filter_map(move |cells| {
        let range = at..at + cells.len();
        at = range.end;
        write_row(tables, cells, missing.get(range).unwrap_or(&[]))
    })
}
