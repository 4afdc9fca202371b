//! Overview: what the shard said last, summed up for the screen.

use std::collections::BTreeMap;
use std::time::Duration;

use bigfleet_model::quantity::{format_short, parse_demand};
use bigfleet_wire::v1alpha1::InspectHeader;

use crate::record::{
    ActionRecord, BreakerRecord, ClusterRecord, MachineRecord, NeedRecord, PauseRecord, RailRecord,
};

/// Needs that are kept to be shown; all of them are counted.
const MOST_ROWS: usize = 2000;

/// The states in the order a machine goes through them.
pub(super) const STATES: [&str; 8] = [
    "Speculative",
    "Creating",
    "Idle",
    "Configuring",
    "Configured",
    "Draining",
    "Deleting",
    "Failed",
];

/// The tiers, what is owned first.
pub(super) const TIERS: [&str; 5] = ["BareMetal", "Reserved", "OnDemand", "Spot", "Unspecified"];

/// Everything the lists show. Each part is as old as its last answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardOverview {
    pub(crate) status: CycleStatus,
    pub(crate) clusters: Vec<ClusterRecord>,
    pub(crate) demand: Demand,
    pub(crate) machines: MachineCounts,
    pub(crate) actions: Vec<ActionRecord>,
    pub(crate) limits: Limits,
}

/// Which shard, and where it is in its cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CycleStatus {
    pub(crate) shard: String,
    pub(crate) cycle: i64,
    /// When that cycle ran, by the shard's clock.
    pub(crate) at: i64,
    /// The time between cycles, computed from two answers.
    pub(crate) cycle_every: Option<Duration>,
    /// How long that cycle took; `None` if the shard does not say.
    pub(crate) cycle_took: Option<Duration>,
    /// What is wrong with the shard as a whole, worst first, in its words.
    pub(crate) troubles: Vec<String>,
    /// Why it shows nothing yet; empty once it does.
    pub(crate) not_ready: String,
}

impl CycleStatus {
    /// Takes in the header of a later answer.
    pub(super) fn advance(&mut self, header: InspectHeader) {
        let (cycle, at) = (header.cycle, header.computed_at_unix_nanos);
        let same = self.shard == header.shard_id;
        if self.cycle < cycle && self.at < at && 0 < self.at && same {
            let nanos = (at - self.at) / (cycle - self.cycle);
            self.cycle_every = Some(Duration::from_nanos(nanos.unsigned_abs()));
        }
        if !same || cycle < self.cycle {
            self.cycle_every = None; // another process answers
        }
        let took = u64::try_from(header.cycle_took_nanos).ok();
        self.cycle_took = took.filter(|nanos| 0 < *nanos).map(Duration::from_nanos);
        self.shard = header.shard_id;
        self.troubles = header.troubles;
        self.not_ready = header.not_ready;
        (self.cycle, self.at) = (cycle, at);
    }
}

/// What limits or stops the shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) rails: Vec<RailRecord>,
    pub(crate) pauses: Vec<PauseRecord>,
    pub(crate) breakers: Vec<BreakerRecord>,
    pub(crate) dry_run: bool,
    pub(crate) fenced: bool,
}

/// Demand: the rows, and their sums by cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// Those that are not served first, then by priority, as the shard lists them.
    pub(crate) rows: Vec<NeedRecord>,
    pub(crate) total: usize,
    pub(crate) by_cluster: BTreeMap<String, DemandSum>,
}

/// Selection and missing, in milli-units by dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DemandSum {
    wanted: BTreeMap<String, i128>,
    serving: BTreeMap<String, i128>,
    missing: BTreeMap<String, i128>,
}

impl Demand {
    /// Counts a row, and keeps it if there is room: what is not served first.
    pub(super) fn add(&mut self, row: NeedRecord) {
        self.total += 1;
        let sum = self.by_cluster.entry(row.cluster.clone()).or_default();
        add(&mut sum.wanted, &row.aggregate_resources);
        add(&mut sum.serving, &row.serving);
        add(&mut sum.missing, &row.stuck);
        add(&mut sum.missing, &row.missing);
        self.rows.push(row);
        if 2 * MOST_ROWS <= self.rows.len() {
            self.trim();
        }
    }

    /// The sort is stable: rows that are equally served stay in the shard's order.
    pub(super) fn trim(&mut self) {
        self.rows.sort_by_key(NeedRecord::is_served);
        self.rows.truncate(MOST_ROWS);
    }
}

fn add(sum: &mut BTreeMap<String, i128>, amounts: &BTreeMap<String, String>) {
    for (name, text) in amounts {
        let amount = parse_demand(text).unwrap_or(0);
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(amount);
    }
}

impl DemandSum {
    /// `cpu=4 memory=16Gi`.
    pub(super) fn wanted(&self) -> String {
        words(&self.wanted)
    }

    /// The same of what is missing or stuck.
    pub(super) fn missing(&self) -> String {
        words(&self.missing)
    }

    /// Per cent of the dimension served worst. Rounded down, so that 100 means all of it.
    pub(super) fn served_per_cent(&self) -> i128 {
        let served = |(name, wanted): (&String, &i128)| {
            let serving = self.serving.get(name).copied().unwrap_or(0);
            if *wanted <= 0 {
                100
            } else {
                serving.clamp(0, *wanted).saturating_mul(100) / wanted
            }
        };
        self.wanted.iter().map(served).min().unwrap_or(100)
    }
}

fn words(sum: &BTreeMap<String, i128>) -> String {
    let there = sum.iter().filter(|(_, milli)| **milli != 0);
    let words: Vec<String> = there
        .map(|(name, milli)| format!("{name}={}", format_short(*milli)))
        .collect();
    words.join(" ")
}

/// How many machines of each tier are in each state, and what the tier costs per hour.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MachineCounts {
    pub(crate) tiers: BTreeMap<String, TierCounts>,
    pub(crate) flagged: u64,
    /// Dollars per hour of the machines each cluster has or is about to get.
    pub(crate) by_cluster: BTreeMap<String, f64>,
}

/// One tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TierCounts {
    pub(crate) states: BTreeMap<String, u64>,
    /// Dollars per hour of what exists: a slot that was never bought costs nothing.
    pub(crate) price: f64,
}

impl MachineCounts {
    pub(super) fn add(&mut self, machine: &MachineRecord) {
        let tier = self.tiers.entry(machine.capacity_type.clone()).or_default();
        *tier.states.entry(machine.state.clone()).or_default() += 1;
        if machine.state != "Speculative" && machine.price_per_hour.is_finite() {
            tier.price += machine.price_per_hour;
            let cluster = machine.cluster();
            if !cluster.is_empty() {
                *self.by_cluster.entry(cluster.to_owned()).or_default() += machine.price_per_hour;
            }
        }
        self.flagged += u64::from(!machine.flags().is_empty());
    }

    pub(super) fn total(&self) -> TierCounts {
        let mut total = TierCounts::default();
        for tier in self.tiers.values() {
            for (state, count) in &tier.states {
                *total.states.entry(state.clone()).or_default() += count;
            }
            total.price += tier.price;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cluster: &str, wanted: &str, serving: &str, missing: &str) -> NeedRecord {
        let cpu = |text: &str| match text {
            "" => BTreeMap::new(),
            text => BTreeMap::from([("cpu".to_owned(), text.to_owned())]),
        };
        NeedRecord {
            cluster: cluster.to_owned(),
            aggregate_resources: cpu(wanted),
            serving: cpu(serving),
            missing: cpu(missing),
            ..NeedRecord::default()
        }
    }

    #[test]
    fn demand_is_summed_by_cluster_and_what_is_not_served_comes_first() {
        let mut demand = Demand::default();
        demand.add(row("a", "8", "8", ""));
        demand.add(row("a", "4", "3500m", "500m"));
        demand.add(row("b", "2", "2", ""));
        demand.trim();
        let sum = &demand.by_cluster["a"];
        assert_eq!(
            (sum.wanted(), sum.missing()),
            ("cpu=12".to_owned(), "cpu=500m".to_owned())
        );
        assert_eq!(sum.served_per_cent(), 95, "95.8 is not all of it");
        assert_eq!(demand.by_cluster["b"].served_per_cent(), 100);
        let short: Vec<bool> = demand.rows.iter().map(|row| !row.is_served()).collect();
        assert_eq!(short, [true, false, false]);
    }

    #[test]
    fn of_too_many_rows_those_not_served_are_kept_and_all_are_counted() {
        let mut demand = Demand::default();
        for at in 0..3 * MOST_ROWS {
            let (serving, missing) = if at % 1000 == 999 {
                ("", "1")
            } else {
                ("1", "")
            };
            demand.add(row("a", "1", serving, missing));
        }
        demand.trim();
        assert_eq!(
            (demand.total, demand.rows.len()),
            (3 * MOST_ROWS, MOST_ROWS)
        );
        assert_eq!(demand.rows.iter().filter(|row| !row.is_served()).count(), 6);
        assert_eq!(demand.by_cluster["a"].missing(), "cpu=6");
    }

    #[test]
    fn a_slot_costs_nothing_and_a_host_its_price() {
        let mut tally = MachineCounts::default();
        for (state, price) in [("Speculative", 5.0), ("Idle", 1.5), ("Configured", 2.0)] {
            tally.add(&MachineRecord {
                state: state.to_owned(),
                capacity_type: "Spot".to_owned(),
                price_per_hour: price,
                cluster: "a".to_owned(),
                ..MachineRecord::default()
            });
        }
        assert_eq!(tally.by_cluster["a"], 3.5);
        assert_eq!(tally.total().price, 3.5);
        assert_eq!(tally.total().states["Idle"], 1);
    }

    fn header(cycle: i64, computed_at_unix_nanos: i64) -> InspectHeader {
        InspectHeader {
            cycle,
            computed_at_unix_nanos,
            shard_id: "s".to_owned(),
            ..InspectHeader::default()
        }
    }

    #[test]
    fn the_time_between_cycles_is_what_two_answers_tell() {
        let mut status = CycleStatus::default();
        status.advance(header(10, 1_000_000_000));
        assert_eq!(status.cycle_every, None);
        status.advance(header(12, 5_000_000_000));
        assert_eq!(status.cycle_every, Some(Duration::from_secs(2)));
        status.advance(header(12, 5_000_000_000));
        assert_eq!(status.cycle_every, Some(Duration::from_secs(2)));
        status.advance(header(1, 9_000_000_000));
        assert_eq!(status.cycle_every, None, "a restarted shard counts anew");
    }
}
