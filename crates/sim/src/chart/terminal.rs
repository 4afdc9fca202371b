//! A chart for a terminal: one row per series, one block per slice of time.
//!
//! ```text
//! marks           x    C              |
//! a Configured  ▁▂▅███████▇▇▇▇▇▇▇▇▇▇▇▇▇  7
//! Provision      ▁   ▁                   2 in all
//!               |0 s      |10 s     |20 s
//! ```

use super::{BOUND, Chart, Mark, Series, most, scale};
use std::fmt::Write;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Beyond so many clusters each has one row, not one per state.
const IN_FULL: usize = 6;
/// Room for what stands to the right of a row.
const RIGHT: usize = 14;
/// Room for a tick and its words.
const TICK: usize = 12;

struct Row {
    name: String,
    values: Vec<Option<f64>>,
    says: String,
}

impl Mark {
    fn letter(self) -> char {
        match self {
            Self::Demand => 'd',
            Self::Fault => 'x',
            Self::Calm => '|',
            Self::Crash => 'C',
            Self::Broke => '!',
        }
    }
}

impl Chart {
    /// For a terminal of this width: each row a series, each block the most it was in a slice of time.
    pub fn text(&self, width: usize) -> String {
        let series = self.shown_series();
        let is_zero = |one: &&Series| most(&one.values) == 0.0;
        let names = series
            .iter()
            .filter(|one| !is_zero(one))
            .map(|one| &one.name);
        let longest = names
            .chain(self.actions.keys())
            .map(|name| name.chars().count());
        let left = longest.max().unwrap_or(0).clamp(5, (width / 3).max(10));
        let slices = width.saturating_sub(left + RIGHT + 2).clamp(20, 400);

        let rows = series.iter().filter(|one| !is_zero(one)).map(|one| Row {
            name: one.name.clone(),
            values: self.held_values(&one.values, slices, false),
            says: format!("{:.0}", most(&one.values)),
        });
        let actions = self.actions.iter().map(|(kind, moments)| {
            let counts = self.counted(moments, slices);
            Row {
                name: kind.clone(),
                says: format!("{} in all", moments.len()),
                values: counts.into_iter().map(Some).collect(),
            }
        });

        let mut text = format!(
            "{}\n\n{:left$}  {}\n",
            self.title,
            "marks",
            self.marks_row(slices)
        );
        for row in rows.chain(actions) {
            let (name, blocks) = (fitted(&row.name, left), blocks(&row.values));
            let _ = writeln!(text, "{name:left$}  {blocks} {}", row.says);
        }
        let _ = writeln!(text, "{:left$}  {}\n", "", self.axis(slices));
        text += &self.legend();
        let zero: Vec<&str> = series
            .iter()
            .filter(is_zero)
            .map(|one| one.name.as_str())
            .collect();
        if !zero.is_empty() && !self.times.is_empty() {
            let _ = writeln!(text, "zero throughout: {}", zero.join(", "));
        }
        if self.times.is_empty() {
            text += "the run ended before the first sample: only marks and actions are drawn\n";
        }
        if let Some(broke) = &self.broke {
            let _ = writeln!(text, "broke {broke}");
        }
        text
    }

    /// States, then clusters and theirs, then what is missing.
    fn shown_series(&self) -> Vec<Series> {
        let mut shown = self.states.clone();
        for held in &self.clusters {
            let cluster = &held.cluster;
            if IN_FULL < self.clusters.len() {
                let (name, values) = (format!("{cluster} machines"), held.machines());
                shown.push(Series { name, values });
                continue;
            }
            for (state, values) in BOUND.iter().zip(&held.states) {
                let (name, values) = (format!("{cluster} {}", state.word()), values.clone());
                shown.push(Series { name, values });
            }
        }
        shown.extend(self.missing.iter().cloned());
        shown
    }

    fn marks_row(&self, slices: usize) -> String {
        let marked = self.marked(slices).into_iter();
        let row: String = marked.map(|mark| mark.map_or(' ', Mark::letter)).collect();
        row.trim_end().to_owned()
    }

    fn legend(&self) -> String {
        let there = |mark: &Mark| self.marks.iter().any(|(_, one)| one == mark);
        let marks = Mark::ALL.into_iter().filter(there);
        let words: Vec<String> = marks
            .map(|mark| format!("{} {}", mark.letter(), mark.word()))
            .collect();
        if words.is_empty() {
            String::new()
        } else {
            format!("marks: {}\n", words.join(", "))
        }
    }

    fn axis(&self, slices: usize) -> String {
        let mut axis = String::new();
        for (at, word) in scale::times(self.end, slices / TICK) {
            let place = self.slice(at, slices);
            let gap = place.saturating_sub(axis.chars().count());
            let _ = write!(axis, "{:gap$}|{word}", "");
        }
        axis
    }
}

/// A block per value, the highest for the most; what is more than nothing is never blank.
fn blocks(values: &[Option<f64>]) -> String {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let block = |value: &Option<f64>| match *value {
        Some(value) if 0.0 < value => BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8)],
        _ => BLOCKS[0],
    };
    values.iter().map(block).collect()
}

/// A name that is too long keeps its beginning and its end, where the state is.
fn fitted(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return name.to_owned();
    }
    let tail = width / 2;
    let head = width - tail - 1;
    let (head, tail) = (&letters[..head], &letters[letters.len() - tail..]);
    head.iter().chain(['…'].iter()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TRACE, chart};

    /// No slice after the first sample is blank, unless the value is nothing.
    #[test]
    fn a_trace_becomes_rows_of_blocks() {
        let expected = "\
twins seed 1

marks               C           |   !
Speculative        ██████████████████ 2
Creating           ████████           1
Configured                 ██████████ 1
c10 Configuring    ████████           1
c10 Configured             ██████████ 1
Needs short        ████████           1
Pods pending       ████████           3
Provision        █                    1 in all
                 |0 min         |1 min

marks: x fault, | calm, C crash, ! a rule broke
zero throughout: Idle, Configuring, Draining, Deleting, Failed, c2 Configuring, c2 Configured, \
c2 Draining, c10 Draining
broke gate: 20 Creates, not 1
";
        assert_eq!(chart(TRACE).text(51), expected);
    }

    #[test]
    fn many_clusters_have_a_row_each_and_long_names_are_fitted() {
        let long = "a-cluster-with-a-name-that-is-much-too-long";
        let held: Vec<String> = (1..=9).map(|one| format!("c{one}:0/2/1")).collect();
        let held = format!("{},{long}:0/1/0", held.join(","));
        let text = TRACE.replace("c10:1/0/0,c2:0/0/0", &held);
        let text = chart(&text).text(80);
        assert_eq!(text.matches("c3 ").count(), 1, "{text}");
        assert!(text.contains("c3 machines"), "{text}");
        assert!(text.contains("a-cluster-wi…long machines"), "{text}");
    }

    #[test]
    fn a_trace_without_a_sample_still_shows_what_was_done() {
        let none: String = TRACE
            .lines()
            .filter(|line| !line.contains(" sample "))
            .map(|line| line.replace("# end 7", "# end 5") + "\n")
            .collect();
        let text = chart(&none).text(80);
        assert!(text.contains("before the first sample"), "{text}");
        assert!(text.contains("Provision"), "{text}");
    }
}
