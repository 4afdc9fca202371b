//! Charts: a trace as a picture, for a terminal and as an SVG file.
//!
//! ```text
//! TraceFile ─▶ samples, actions, marks ─▶ Chart ─┬─ text(width)  one row per series, a block per slice
//!                                                └─ svg()        areas of states, bars of actions
//! ```
//!
//! A sample holds until the next: between two nothing is known to have changed, and a gap would look as
//! if the fleet had been gone. Both pictures are drawn per slice of time, so neither grows with the run.

mod pen;
mod scale;
mod svg;
mod terminal;

use crate::trace_file::{TraceFile, TraceRefused, refused};
use bigfleet_model::State;
use scale::natural;
use std::collections::BTreeMap;

/// The states in which a machine is a cluster's, in the order of a sample.
pub(crate) const BOUND: [State; 3] = [State::Configuring, State::Configured, State::Draining];

/// A name, and a value per sample.
#[derive(Clone, Debug, Default, PartialEq)]
struct Series {
    name: String,
    values: Vec<f64>,
}

/// A cluster's machines, by the states of [`BOUND`].
#[derive(Clone, Debug, Default, PartialEq)]
struct ClusterSeries {
    cluster: String,
    states: [Vec<f64>; 3],
}

/// What is marked along the time, the more telling the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Demand,
    Fault,
    Calm,
    Crash,
    Broke,
}

/// What a trace shows over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    title: String,
    /// How the run broke, if it did.
    broke: Option<String>,
    /// Seconds of the whole.
    end: f64,
    /// Seconds of each sample.
    times: Vec<f64>,
    /// Machines in each state of [`State::ALL`].
    states: Vec<Series>,
    /// In the order people count: c2 before c10.
    clusters: Vec<ClusterSeries>,
    /// Needs that are short, Pods that are pending.
    missing: [Series; 2],
    /// Seconds of each action, by kind.
    actions: BTreeMap<String, Vec<f64>>,
    /// Seconds of what happened to the fleet.
    marks: Vec<(f64, Mark)>,
}

impl Mark {
    const ALL: [Self; 5] = [
        Self::Demand,
        Self::Fault,
        Self::Calm,
        Self::Crash,
        Self::Broke,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Demand => "demand moves",
            Self::Fault => "fault",
            Self::Calm => "calm",
            Self::Crash => "crash",
            Self::Broke => "a rule broke",
        }
    }

    /// What a line of a trace marks, if anything.
    fn of(what: &str) -> Option<Self> {
        let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
        match word {
            "calm" => Some(Self::Calm),
            "crash" => Some(Self::Crash),
            "broke" => Some(Self::Broke),
            "change" if rest.starts_with("demand moves") => Some(Self::Demand),
            "change" if rest.starts_with("priority edited") => Some(Self::Demand),
            "change" => Some(Self::Fault),
            _ => None,
        }
    }
}

impl Chart {
    /// Reads a trace.
    pub fn read(trace: &TraceFile<'_>) -> Result<Self, TraceRefused> {
        let series = |name: &str| Series {
            name: name.to_owned(),
            values: Vec::new(),
        };
        let mut chart = Self {
            title: trace.title(),
            states: State::ALL.map(|state| series(state.word())).to_vec(),
            missing: ["Needs short", "Pods pending"].map(series),
            end: 1.0,
            ..Self::default()
        };
        for (number, at, what) in trace.entries() {
            let at = at.0 as f64 / 1000.0;
            chart.end = chart.end.max(at);
            if let Some(mark) = Mark::of(what) {
                chart.marks.push((at, mark));
            }
            let (word, rest) = what.split_once(' ').unwrap_or((what, ""));
            let bad = |why: String| refused(number, &why);
            match word {
                "sample" => chart.take_sample(at, rest).map_err(bad)?,
                "broke" => chart.broke = Some(rest.to_owned()),
                "commit" => {
                    let kind = rest.split(' ').nth(1);
                    let kind = kind.ok_or_else(|| bad("a commit of nothing".to_owned()))?;
                    chart.actions.entry(kind.to_owned()).or_default().push(at);
                }
                _ => {}
            }
        }
        let clusters = &mut chart.clusters;
        clusters.sort_by(|one, other| natural(&one.cluster, &other.cluster));
        Ok(chart)
    }

    /// `short=0 pending=2 states=… clusters=a:0/3/1,b:…`, and nothing else.
    fn take_sample(&mut self, at: f64, text: &str) -> Result<(), String> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [short, pending, states, clusters] = parts[..] else {
            return Err(format!("a sample has four parts, not {}", parts.len()));
        };
        for (series, part) in self
            .missing
            .iter_mut()
            .zip([field("short", short)?, field("pending", pending)?])
        {
            series.values.push(count(part)?);
        }
        let states = numbers(field("states", states)?, ',', State::ALL.len())?;
        for (series, value) in self.states.iter_mut().zip(states) {
            series.values.push(value);
        }
        let before = self.times.len();
        self.times.push(at);
        let clusters = field("clusters", clusters)?.split(',');
        for part in clusters.filter(|part| !part.is_empty()) {
            let (cluster, counts) = part.rsplit_once(':').unwrap_or((part, ""));
            let counts = numbers(counts, '/', BOUND.len())?;
            let held = self.held(cluster);
            for (values, count) in held.states.iter_mut().zip(counts) {
                values.resize(before, 0.0);
                values.push(count);
            }
        }
        for values in self.clusters.iter_mut().flat_map(|one| &mut one.states) {
            values.resize(before + 1, 0.0);
        }
        Ok(())
    }

    fn held(&mut self, cluster: &str) -> &mut ClusterSeries {
        let known = self.clusters.iter().position(|one| one.cluster == cluster);
        let at = known.unwrap_or_else(|| {
            let cluster = cluster.to_owned();
            let states = Default::default();
            self.clusters.push(ClusterSeries { cluster, states });
            self.clusters.len() - 1
        });
        &mut self.clusters[at]
    }

    /// In which of so many slices a second is.
    fn slice(&self, at: f64, slices: usize) -> usize {
        ((at / self.end * slices as f64) as usize).min(slices - 1)
    }

    /// A value per slice: the most it was there, or the last if `last`. A slice without a sample has what
    /// the one before it ended with, and those before the first sample have nothing.
    fn held_values(&self, values: &[f64], slices: usize, last: bool) -> Vec<Option<f64>> {
        let mut drawn = vec![None; slices];
        for (time, value) in self.times.iter().zip(values) {
            let slot: &mut Option<(f64, f64)> = &mut drawn[self.slice(*time, slices)];
            let most = slot.map_or(*value, |(most, _)| most.max(*value));
            *slot = Some((most, *value));
        }
        let mut before = None;
        let carried = drawn.into_iter().map(|slot| {
            let shown = slot.map(|(most, end)| if last { end } else { most });
            let shown = shown.or(before);
            before = slot.map(|(_, end)| end).or(before);
            shown
        });
        carried.collect()
    }

    /// How many of these moments are in each slice.
    fn counted(&self, moments: &[f64], slices: usize) -> Vec<f64> {
        let mut counts = vec![0.0; slices];
        for at in moments {
            counts[self.slice(*at, slices)] += 1.0;
        }
        counts
    }

    /// The most telling mark of each slice.
    fn marked(&self, slices: usize) -> Vec<Option<Mark>> {
        let mut marked = vec![None; slices];
        for (at, mark) in &self.marks {
            let slot = &mut marked[self.slice(*at, slices)];
            *slot = (*slot).max(Some(*mark));
        }
        marked
    }
}

impl ClusterSeries {
    /// In whichever state.
    fn machines(&self) -> Vec<f64> {
        let [on_the_way, serving, leaving] = &self.states;
        let sums = on_the_way.iter().zip(serving).zip(leaving);
        sums.map(|((one, two), three)| one + two + three).collect()
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn field<'a>(name: &str, part: &'a str) -> Result<&'a str, String> {
    let value = part.strip_prefix(name).and_then(|it| it.strip_prefix('='));
    value.ok_or_else(|| format!("\"{part}\" does not say {name}=…"))
}

/// A whole number, and neither `inf` nor `NaN`.
fn count(text: &str) -> Result<f64, String> {
    let number = text.parse::<u32>();
    number.map_or_else(
        |_| Err(format!("\"{text}\" is not a count")),
        |one| Ok(one.into()),
    )
}

fn numbers(text: &str, between: char, wanted: usize) -> Result<Vec<f64>, String> {
    let numbers: Vec<f64> = text.split(between).map(count).collect::<Result<_, _>>()?;
    if numbers.len() == wanted {
        Ok(numbers)
    } else {
        Err(format!(
            "\"{text}\" has {} counts, not {wanted}",
            numbers.len()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const TRACE: &str = "# bigfleet sim trace 1\n# build 0.1.0\n\
        # scenario twins seed 1 defect none fair-weather false without none\n\
        0.500 commit 0000000100000001 Provision m1 a\n\
        10.000 sample short=1 pending=3 states=2,1,0,0,0,0,0,0 clusters=c10:1/0/0,c2:0/0/0\n\
        15.000 change crash: at once, disk whole, away 5 s\n\
        15.000 crash with disk whole\n\
        40.000 sample short=0 pending=0 states=2,0,0,0,1,0,0,0 clusters=c10:0/1/0,c2:0/0/0\n\
        60.000 calm\n\
        80.000 broke gate: 20 Creates, not 1\n\
        # end 7\n";

    pub(super) fn chart(text: &str) -> Chart {
        Chart::read(&TraceFile::read(text).unwrap()).unwrap()
    }

    #[test]
    fn a_sample_holds_until_the_next() {
        let chart = chart(TRACE);
        let short = chart.held_values(&chart.missing[0].values, 8, false);
        let (none, yes, no) = (None, Some(1.0), Some(0.0));
        assert_eq!(short, [none, yes, yes, yes, no, no, no, no]);
    }

    #[test]
    fn clusters_come_as_people_count_and_marks_by_weight() {
        let chart = chart(TRACE);
        let names = chart.clusters.iter().map(|one| one.cluster.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["c2", "c10"]);
        let marked = chart.marked(8);
        assert_eq!(marked[1], Some(Mark::Crash));
        assert_eq!(marked[6..], [Some(Mark::Calm), Some(Mark::Broke)]);
    }

    #[test]
    fn a_sample_that_says_no_number_is_refused_by_its_line() {
        for (right, wrong, said) in [
            ("short=1", "short=NaN", "line 5: \"NaN\" is not a count"),
            ("pending=3", "pending=inf", "line 5: \"inf\" is not a count"),
            ("pending=3 ", "", "line 5: a sample has four parts, not 3"),
            ("states=2,1,0", "states=2,1", "has 7 counts, not 8"),
            ("c10:1/0/0", "c10:1/0", "\"1/0\" has 2 counts, not 3"),
            ("short=1", "shirt=1", "\"shirt=1\" does not say short="),
        ] {
            let text = TRACE.replacen(right, wrong, 1);
            let refused = Chart::read(&TraceFile::read(&text).unwrap()).unwrap_err();
            assert!(refused.to_string().contains(said), "{wrong}: {refused}");
        }
    }
}
