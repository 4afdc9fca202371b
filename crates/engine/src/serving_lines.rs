//! Serving lines: what short Needs of pass B look through, lined up once for all of them.
//!
//! | Line | Machines | Order |
//! |---|---|---|
//! | loose | bound to the cluster, fit, claimed by nobody, and stays (B1) | keep order |
//! | loose for now | the same, but leaves soon and is attributed to no Need (B1, RF-21) | keep order |
//! | reversible | of the cluster, whose drain can be taken back (B1a) | keep order, on the terms they were bound on |
//! | outrankable | claimed as own by a Need of the cluster (B5) | the claimant's priority, what leaves last, keep order |
//! | rivals | Configured and ready, of any cluster (RF-6) | victim priority, id |
//!
//! Lines of a cluster and rivals of a shape are made when a Need first asks for them and are gone when the pass ends. In
//! between, a machine whose claim changes leaves the lines it stood in and joins others, so each cycle looks at a
//! machine once and not once per Need (D-8).

use crate::{
    Mistake,
    fleet_tables::FleetTables,
    index::{ClusterIndex, MachineIndex, NeedIndex, ShapeIndex},
    lines::Line,
    pass_b::SearchScope,
    picking::Deficit,
    pool::PoolKind,
    table::Table,
};
use bigfleet_model::{Dollars, Price, State, Terms};
use std::{cmp::Reverse, collections::BTreeMap};

/// Which machines of a cluster stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Loose,
    LooseForNow,
    Reversible,
    Outrankable,
}

/// The priority of a claimant that must be outranked, zero where there is none; whether it leaves soon; then keep
/// order but for the id.
type ServingRank = (i32, bool, Price, Reverse<Dollars>);

/// Machines of one kind and cluster.
pub(crate) type ClusterLines = BTreeMap<ShapeIndex, Line<ServingRank>>;

/// What decides about a rival beside its shape and its victim priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RivalClass {
    interruption: Dollars,
    reclamation: Dollars,
    /// The cluster that nobody of claims it: no victim of that cluster's gangs, which may have it as it is.
    pub(crate) loose_of: Option<ClusterIndex>,
}

impl RivalClass {
    /// Terms with its penalties.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            priority: 0,
            interruption: self.interruption,
            reclamation: self.reclamation,
        }
    }
}

/// Rivals of one shape.
pub(crate) type RivalLines = BTreeMap<RivalClass, Line<i32>>;

/// All lines of a pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServingLines {
    is_on: bool,
    /// By [`LineKind`].
    clusters: BTreeMap<ClusterIndex, [Option<ClusterLines>; 4]>,
    rivals: Table<ShapeIndex, Option<RivalLines>>,
    /// No rival of a shape that is lined up stands below this.
    floors: Table<ShapeIndex, Option<i32>>,
}

impl ServingLines {
    /// Whether some rival of a shape may stand below a priority, or nobody has looked yet.
    pub(crate) fn may_have_rivals(&self, shape: ShapeIndex, priority: i32) -> bool {
        let floor = self.floors.get(shape).copied().flatten();
        floor.is_none_or(|floor| floor < priority)
    }

    /// The rivals of a shape, if they were lined up.
    pub(crate) fn rivals(&self, shape: ShapeIndex) -> Option<&RivalLines> {
        self.rivals.get(shape)?.as_ref()
    }

    fn of(&mut self, cluster: ClusterIndex, kind: LineKind) -> &mut Option<ClusterLines> {
        &mut self.clusters.entry(cluster).or_default()[kind as usize]
    }
}

impl FleetTables {
    /// Begins and ends a pass: between them lines are kept up to date.
    pub(crate) fn keep_lines(&mut self, is_on: bool) {
        self.serving = ServingLines {
            is_on,
            ..ServingLines::default()
        };
    }

    /// Takes a machine out of its lines, before its claim changes.
    pub(crate) fn leave_lines(&mut self, machine: MachineIndex) {
        if self.serving.is_on {
            self.change_lines(machine, false);
        }
    }

    /// Puts a machine into its lines, after its claim changed.
    pub(crate) fn join_lines(&mut self, machine: MachineIndex) {
        if self.serving.is_on {
            self.change_lines(machine, true);
        }
    }

    fn change_lines(&mut self, machine: MachineIndex, joins: bool) {
        let shape = self.record(machine).shape;
        let (place, rival) = (self.place_in_cluster(machine), self.rival(machine));
        let Self { serving, ids, .. } = self;
        if let Some((cluster, kind, rank)) = place
            && let Some(lines) = serving.of(cluster, kind)
        {
            let line = lines.entry(shape).or_default();
            line.change(ids, rank, machine, joins);
        }
        if let Some((class, standing)) = rival
            && let Some(Some(lines)) = serving.rivals.get_mut(shape)
        {
            let line = lines.entry(class).or_default();
            line.change(ids, standing, machine, joins);
            let floor = &mut serving.floors[shape];
            *floor = floor.map(|floor| floor.min(standing));
        }
    }

    /// The line of a cluster that a machine stands in as it is claimed now.
    fn place_in_cluster(
        &self,
        machine: MachineIndex,
    ) -> Option<(ClusterIndex, LineKind, ServingRank)> {
        let record = self.record(machine);
        let claimant = self.claimant(machine);
        let (price, penalty) = self.keep_key(machine);
        match (record.cluster, claimant) {
            (Some(cluster), None) if !record.is_unfit() => {
                let leaves = record.leaves_soon();
                let is_of_a_need = record.slot.is_some_and(|slot| self.is_live(slot));
                if leaves && is_of_a_need && self.mistake != Some(Mistake::LeavingIsLeftover) {
                    return None;
                }
                let kind = if leaves {
                    LineKind::LooseForNow
                } else {
                    LineKind::Loose
                };
                Some((cluster, kind, (0, leaves, price, penalty)))
            }
            (Some(cluster), Some(claimant)) if self.is_own(claimant, machine) => {
                let leaves = record.leaves_soon();
                let rank = (self.priority(claimant), leaves, price, penalty);
                Some((cluster, LineKind::Outrankable, rank))
            }
            (None, None) if self.pool_of(machine) == Some(PoolKind::Draining) => {
                let way_back = self.ways_back.get(&machine)?;
                let (price, penalty) = self.terms_key(way_back.terms);
                let rank = (0, false, price, penalty);
                Some((way_back.cluster, LineKind::Reversible, rank))
            }
            _ => None,
        }
    }

    /// What a machine is as a rival, and its victim priority without the hold's (RF-6).
    fn rival(&self, machine: MachineIndex) -> Option<(RivalClass, i32)> {
        let record = self.record(machine);
        let may_be_taken = record.state == Some(State::Configured) && record.leaving.is_none();
        if !may_be_taken || record.unfit {
            return None;
        }
        let Terms {
            interruption,
            reclamation,
            ..
        } = self.catalog.terms[record.terms].terms;
        let is_loose = self.claimant(machine).is_none();
        let class = RivalClass {
            interruption,
            reclamation,
            loose_of: record.cluster.filter(|_| is_loose),
        };
        Some((class, self.stands_at(machine)))
    }

    /// Lines up the machines of a cluster, if nobody has asked for them yet, and hands them out; they go back
    /// by [`Self::put_lines_back`].
    fn take_lines(&mut self, cluster: ClusterIndex, kind: LineKind) -> ClusterLines {
        if let Some(lines) = self.serving.of(cluster, kind).take() {
            return lines;
        }
        let entry = &self.clusters[cluster];
        let among: Vec<MachineIndex> = match kind {
            LineKind::Loose | LineKind::LooseForNow if entry.loose == 0 => Vec::new(),
            LineKind::LooseForNow if self.leave_soon == 0 => Vec::new(),
            LineKind::Loose | LineKind::LooseForNow => self.unclaimed(cluster).collect(),
            LineKind::Reversible if self.mistake == Some(Mistake::RestoredForAnybody) => {
                self.ways_back.keys().copied().collect()
            }
            LineKind::Reversible => entry.reversible.clone(),
            LineKind::Outrankable => entry.bound.clone(),
        };
        let looks = match kind {
            LineKind::Loose | LineKind::LooseForNow if !among.is_empty() => entry.bound.len(),
            _ => among.len(),
        };
        self.work.machines += looks as u64;
        let mut lines = ClusterLines::new();
        for machine in among {
            if let Some((_, _, rank)) = self.place_in_cluster(machine).filter(|at| at.1 == kind) {
                let line = lines.entry(self.record(machine).shape).or_default();
                line.push(rank, machine);
            }
        }
        lines
    }

    fn put_lines_back(&mut self, cluster: ClusterIndex, kind: LineKind, lines: ClusterLines) {
        if self.mistake == Some(Mistake::RestoredForAnybody) {
            return; // a machine then stands in the lines of several clusters
        }
        *self.serving.of(cluster, kind) = Some(lines);
    }

    /// How many machines of each shape a Need may take from its cluster; for a gang that weighs domains.
    pub(crate) fn count_in_cluster(
        &mut self,
        need: NeedIndex,
        kind: LineKind,
    ) -> BTreeMap<ShapeIndex, u64> {
        let cluster = self.need(need).cluster;
        let lines = self.take_lines(cluster, kind);
        let usable = lines.iter().filter(|(shape, _)| self.serves(need, **shape));
        let counts = usable.map(|(shape, line)| {
            // What was given back for others in this cycle is theirs who did (RF-21).
            let gone = match kind {
                LineKind::LooseForNow => line.among(|at| self.is_replaced(at)),
                _ => 0,
            };
            (*shape, (line.len() - gone) as u64)
        });
        let counts = counts.collect();
        self.work.machines += lines.len() as u64;
        self.put_lines_back(cluster, kind, lines);
        counts
    }

    /// Whether a machine was given back for others in this cycle.
    fn is_replaced(&self, machine: MachineIndex) -> bool {
        self.replaced.contains_key(&machine) && self.mistake != Some(Mistake::LeavingIsLeftover)
    }

    /// Picks machines of the Need's cluster in the order of their lines. A gang that is `complete` or nothing picks
    /// none unless they cover it.
    pub(crate) fn pick_in_cluster(
        &mut self,
        need: NeedIndex,
        scope: SearchScope<'_>,
        kind: LineKind,
        all_or_nothing: bool,
    ) -> Vec<MachineIndex> {
        let mut deficit = Deficit::of(self, need);
        if deficit.is_covered() {
            return Vec::new();
        }
        let (cluster, priority) = (self.need(need).cluster, self.priority(need));
        let may_take = move |rank: &ServingRank| kind != LineKind::Outrankable || rank.0 < priority;
        let mut lines = self.take_lines(cluster, kind);
        let mut useful = Vec::new();
        for (shape, line) in &mut lines {
            if line.may_begin(may_take)
                && self.serves(need, *shape)
                && self.is_in(need, scope, *shape)
                && deficit.shrinks_by(self, *shape)
            {
                line.sort(&self.ids);
                useful.push((*shape, &*line));
            }
        }
        let mut looks = 0;
        let is_worth_it = !all_or_nothing || {
            let mut left = deficit.clone();
            for (shape, line) in &useful {
                left.change_by(self, *shape, line.count(may_take) as i128);
            }
            left.is_covered()
        };
        let mut picked = Vec::new();
        if is_worth_it && !useful.is_empty() {
            let queues = useful.into_iter().map(|(shape, line)| {
                let first = line.iter().take_while(move |(rank, _)| may_take(rank));
                let stays = |(_, machine): &(_, MachineIndex)| !self.is_replaced(*machine);
                (shape, first.filter(stays))
            });
            let picks = self.pick_in_place(&mut deficit, scope.place(), &[], queues.collect());
            looks += picks.looks;
            picked = picks.machines;
        }
        self.work.machines += looks + lines.len() as u64;
        self.put_lines_back(cluster, kind, lines);
        picked
    }

    /// Lines up the rivals of a shape, if nobody has asked for them yet.
    pub(crate) fn line_up_rivals(&mut self, shape: ShapeIndex) {
        self.serving.rivals.grow_to(self.stocks.len());
        if self.serving.rivals[shape].is_some() {
            return;
        }
        let mut lines = RivalLines::new();
        let mut floor = i32::MAX;
        let configured = &self.stocks[shape].configured;
        for machine in configured {
            if let Some((class, standing)) = self.rival(*machine) {
                floor = floor.min(standing);
                lines.entry(class).or_default().push(standing, *machine);
            }
        }
        self.work.machines += configured.len() as u64;
        self.serving.rivals[shape] = Some(lines);
        self.serving.floors.grow_to(self.stocks.len());
        self.serving.floors[shape] = Some(floor);
    }

    /// Sorts those rivals of a shape that begin below a priority.
    pub(crate) fn sort_rivals(&mut self, shape: ShapeIndex, priority: i32) {
        let Self { serving, ids, .. } = self;
        if let Some(Some(lines)) = serving.rivals.get_mut(shape) {
            let lines = lines.values_mut();
            let begins = |line: &&mut Line<i32>| line.may_begin(|standing| *standing < priority);
            lines.filter(begins).for_each(|line| line.sort(ids));
        }
    }
}
