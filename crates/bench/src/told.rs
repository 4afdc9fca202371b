//! Told: what it costs that clusters tell more than sums.
//!
//! ```text
//! one size of Pods per row       ── steady and full cycles ──┐
//! every row asks for whole units ── steady and full cycles ──┴── in turns ──▶ ratio
//! the fleet as it is ── Needs, machines and classes looked at ──▶ against those pinned
//! 5,000 words on what draining machines would disturb ──▶ time of each, what they mark, cycles they begin
//! ```
//!
//! Both fleets are measured in turns, so that whatever else the machine does meanwhile slows both.

use crate::{
    Percentiles, Progress, Settings,
    checks::{Check, Promises, ratio},
    percentiles::rounded,
    pinned,
    rig::{Rig, Units},
};
use bigfleet_model::{Disruption, MachineId};
use bigfleet_workloads::{Churn, Preset, Rates, Scale, Workload};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Cycles before the first that counts: they fill the fleets with machines on their way.
const WARM_UP: usize = 10;
/// Steady cycles of which the work is counted; the same in every run, or it could not be pinned.
const COUNTED: usize = 20;
/// Words on disruption: a minute's.
const WORDS: usize = 5_000;
/// Cycles until nothing is on its way any more.
const SETTLED: usize = 10;

/// What telling more costs.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// A steady cycle of the same fleet with one size of Pods per row.
    pub sums_steady_ms: Percentiles,
    /// A steady cycle where every row asks for whole units.
    pub whole_steady_ms: Percentiles,
    /// How many times as long that takes, by the middle of each.
    pub whole_steady_time_ratio: Option<f64>,
    /// A full cycle of the same fleet with one size of Pods per row.
    pub sums_full_ms: Percentiles,
    /// A full cycle where every row asks for whole units.
    pub whole_full_ms: Percentiles,
    /// How many times as long that takes, by the middle of each.
    pub whole_full_time_ratio: Option<f64>,
    /// How many times as many Needs, machines and classes are looked at there. The same in every run.
    pub whole_work_ratio: Option<f64>,
    /// Needs, machines and classes looked at in the fleet as it is, in twenty steady cycles and a full one.
    pub work: u64,
    /// The same against what was looked at when instructions were last compared with those of the engine that knew
    /// sums only, where that was counted.
    pub work_over_pinned: Option<f64>,
    /// How long it takes to hear one word on what draining a machine would disturb.
    pub disruption_us: f64,
    /// Needs, classes, slots and clusters marked by 5,000 such words.
    pub disruption_marked: u64,
    /// Cycles begun because of them, while nothing leaves.
    pub disruption_cycles: u64,
}

impl Promises for Told {
    fn checks(&self) -> Vec<Check> {
        let mut checks = vec![
            Check::at_most(
                "whole_steady_time_ratio",
                self.whole_steady_time_ratio,
                1.25,
            ),
            Check::at_most("whole_full_time_ratio", self.whole_full_time_ratio, 1.25),
            Check::at_most("whole_work_ratio", self.whole_work_ratio, 1.25),
            Check::at_most("disruption_us", self.disruption_us, 1.0),
            Check::at_most("disruption_marked", self.disruption_marked as f64, 0.0),
            Check::at_most("disruption_cycles", self.disruption_cycles as f64, 0.0),
        ];
        if self.work_over_pinned.is_some() {
            checks.push(Check::at_most(
                "work_over_pinned",
                self.work_over_pinned,
                1.02,
            ));
        }
        checks
    }
}

/// Measures it, where more such fleets are not too much for a machine.
pub(crate) fn told(
    settings: Settings,
    workload: &Workload,
    progress: Progress<'_>,
) -> Option<Told> {
    match settings.preset {
        Preset::Dev50 | Preset::CoLocated | Preset::FiveK | Preset::FiveKTold | Preset::FiftyK => {}
        Preset::FiveHundredK | Preset::CostRouting5k => return None,
    }
    progress("loading it again", 0, 1);
    let (work, words) = as_it_is(settings, workload);
    progress("drawing it with one size of Pods", 0, 1);
    let one_size = of_one_size(settings);
    let mut sums = Measured::load(&one_size, settings, Units::AsTold);
    let mut whole = Measured::load(&one_size, settings, Units::Whole);
    let cycles = settings.cycles.max(COUNTED);
    for cycle in 0..WARM_UP + cycles {
        progress("whole units", cycle, WARM_UP + cycles);
        for one in [&mut sums, &mut whole] {
            one.steady_cycle(cycle);
        }
    }
    let fulls = settings.cycles.clamp(1, 30);
    for cycle in 0..fulls {
        progress("whole units, all anew", cycle, fulls);
        for one in [&mut sums, &mut whole] {
            one.full_cycle(cycle);
        }
    }
    let millis = |times: &[Duration]| Percentiles::of(times, Duration::from_millis(1));
    let [sums_steady_ms, whole_steady_ms] = [&sums, &whole].map(|one| millis(&one.steady));
    let [sums_full_ms, whole_full_ms] = [&sums, &whole].map(|one| millis(&one.full));
    let pinned = pinned::work(settings.preset.name(), settings.seed);
    let pinned = pinned.filter(|_| settings.churning_clusters.is_none());
    Some(Told {
        whole_steady_time_ratio: ratio(whole_steady_ms.p50, sums_steady_ms.p50),
        whole_full_time_ratio: ratio(whole_full_ms.p50, sums_full_ms.p50),
        whole_work_ratio: ratio(whole.work as f64, sums.work as f64),
        work,
        work_over_pinned: pinned.and_then(|pinned| ratio(work as f64, pinned as f64)),
        sums_steady_ms,
        whole_steady_ms,
        sums_full_ms,
        whole_full_ms,
        disruption_us: words.micros,
        disruption_marked: words.marked,
        disruption_cycles: words.cycles,
    })
}

/// The same fleet with one size of Pods per kind of workload: a row that asks for whole units then asks for what
/// it asked for, and its machines hold their units without a rest. So both fleets are served by the same machines,
/// and a difference is the price of counting.
fn of_one_size(settings: Settings) -> Workload {
    let name = settings.preset.name();
    match settings.preset.scale() {
        Some(scale) => {
            let catalog = scale.catalog.of_one_size();
            let scale = Scale {
                catalog,
                tells: false,
                ..scale
            };
            scale.build(name, settings.seed)
        }
        None => settings.preset.build(settings.seed), // written down with one size each
    }
}

/// The work of as many cycles as are pinned, and then a minute's words.
fn as_it_is(settings: Settings, workload: &Workload) -> (u64, Words) {
    let mut fleet = Measured::load(workload, settings, Units::AsTold);
    for cycle in 0..WARM_UP + COUNTED {
        fleet.steady_cycle(cycle);
    }
    fleet.full_cycle(0);
    let words = fleet.hear(workload);
    (fleet.work, words)
}

/// A fleet, and how long its cycles took.
struct Measured<'w> {
    rig: Rig<'w>,
    churn: Churn<'w>,
    steady: Vec<Duration>,
    full: Vec<Duration>,
    /// Needs, machines and classes looked at in the cycles that count.
    work: u64,
}

/// What 5,000 words on disruption came to.
struct Words {
    micros: f64,
    marked: u64,
    cycles: u64,
}

impl<'w> Measured<'w> {
    fn load(workload: &'w Workload, settings: Settings, units: Units) -> Self {
        let mut rig = Rig::load_with(workload, units);
        rig.decide_full();
        let rates = Rates {
            clusters: settings.churning_clusters.unwrap_or(usize::MAX),
            ..Rates::default()
        };
        Self {
            rig,
            churn: Churn::with(workload, settings.seed, rates),
            steady: Vec::new(),
            full: Vec::new(),
            work: 0,
        }
    }

    fn steady_cycle(&mut self, cycle: usize) {
        self.rig.wait();
        let facts = self.rig.next_facts(&mut self.churn);
        let before = self.rig.touched();
        let clock = Instant::now();
        self.rig.take_in(&facts);
        self.rig.decide();
        let took = clock.elapsed();
        if WARM_UP <= cycle {
            self.steady.push(took);
        }
        if (WARM_UP..WARM_UP + COUNTED).contains(&cycle) {
            self.work += self.rig.touched() - before;
        }
    }

    fn full_cycle(&mut self, cycle: usize) {
        let before = self.rig.touched();
        let clock = Instant::now();
        self.rig.decide_full();
        self.full.push(clock.elapsed());
        if cycle == 0 {
            self.work += self.rig.touched() - before;
        }
    }

    /// Hears what draining machines would disturb, all of a minute at once, when nothing is on its way.
    fn hear(&mut self, workload: &'w Workload) -> Words {
        let rates = Rates {
            clusters: 0,
            ..Rates::default()
        };
        let mut still = Churn::with(workload, 0, rates);
        for _ in 0..SETTLED {
            self.rig.wait();
            let facts = self.rig.next_facts(&mut still);
            self.rig.take_in(&facts);
            self.rig.decide();
        }
        let words = words(workload);
        let before = self.rig.engine().work().marked;
        let clock = Instant::now();
        self.rig.hear(&words);
        let took = clock.elapsed();
        let marked = self.rig.engine().work().marked - before;
        let cycles = u64::from(self.rig.decides());
        let micros = rounded(took.as_secs_f64() * 1e6 / words.len().max(1) as f64);
        Words {
            micros,
            marked,
            cycles,
        }
    }
}

/// A minute's words, each on the next of the serving machines and unlike the one before on it.
fn words(workload: &Workload) -> Vec<(MachineId, Option<Disruption>)> {
    let serving: Vec<_> = (0..workload.counts().clusters)
        .flat_map(|cluster| workload.serving(cluster))
        .take(WORDS)
        .collect();
    let rounds = serving.iter().cycle().zip(2..).take(WORDS);
    let word = |(machine, number): (&bigfleet_workloads::SeededMachine, usize)| {
        let level = Disruption::new((number / serving.len().max(1) + number % 2) as i64 % 16);
        MachineId::new(&machine.to_string())
            .ok()
            .map(|id| (id, level))
    };
    rounds.filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::broken;

    fn settings(preset: Preset) -> Settings {
        Settings {
            preset,
            seed: 1,
            cycles: 1,
            churning_clusters: None,
        }
    }

    /// What it costs is counted, and none of it is zero because nothing happened.
    #[test]
    fn whole_units_are_decided_on_and_words_are_heard() {
        let workload = Preset::Dev50.build(1);
        let told = told(settings(Preset::Dev50), &workload, &mut |_, _, _| {}).unwrap();
        assert!(0 < told.work && told.whole_work_ratio.is_some());
        assert_eq!((told.disruption_marked, told.disruption_cycles), (0, 0));
        assert_eq!(told.sums_steady_ms.count, COUNTED);
        let words = words(&workload);
        assert_eq!(words.len(), WORDS);
        let mut rig = Rig::load(&workload);
        rig.decide_full();
        rig.hear(&words);
        let known = words.iter().filter(|(_, level)| level.is_some()).count();
        assert_eq!(known, WORDS);
    }

    #[test]
    fn words_that_mark_or_begin_something_break_a_promise() {
        let workload = Preset::Dev50.build(1);
        let told = told(settings(Preset::Dev50), &workload, &mut |_, _, _| {}).unwrap();
        let costly = Told {
            disruption_us: 1.001,
            disruption_marked: 1,
            disruption_cycles: 1,
            whole_steady_time_ratio: Some(1.251),
            whole_full_time_ratio: Some(1.251),
            whole_work_ratio: Some(1.251),
            work_over_pinned: Some(1.021),
            ..told
        };
        assert_eq!(
            broken(&costly),
            [
                "whole_steady_time_ratio_at_most",
                "whole_full_time_ratio_at_most",
                "whole_work_ratio_at_most",
                "disruption_us_at_most",
                "disruption_marked_at_most",
                "disruption_cycles_at_most",
                "work_over_pinned_at_most",
            ]
        );
    }
}
