//! Charts: a trace as a picture, for a terminal and as an SVG file.
//!
//! ```text
//! trace lines ─▶ samples, actions ─▶ Chart ─┬─ text()  one row per series, a block per slice of time
//!                                           └─ svg()   areas of states, lines of clusters, ticks of actions
//! ```

use bigfleet_model::State;
use std::{collections::BTreeMap, fmt, fmt::Write};

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartRefused(String);

impl fmt::Display for ChartRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChartRefused {}

/// The states in which a machine is a cluster's, in the order of a sample.
pub(crate) const BOUND: [State; 3] = [State::Configuring, State::Configured, State::Draining];

/// A name, and a value per sample.
type Series = (String, Vec<f64>);

/// What a trace shows over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    title: String,
    /// Seconds of each sample.
    times: Vec<f64>,
    /// A value per sample.
    series: Vec<Series>,
    /// Seconds of each action, by kind.
    actions: BTreeMap<String, Vec<f64>>,
}

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const COLOURS: [&str; 8] = [
    "#c9ced6", "#f2c14e", "#9fd3c7", "#e8956d", "#4a8fe7", "#b07cc6", "#8d99ae", "#d64545",
];

impl Chart {
    /// Reads a trace.
    pub fn read(trace: &str) -> Result<Self, ChartRefused> {
        let mut lines = trace.lines();
        if lines.next() != Some("# bigfleet sim trace 1") {
            let why = "the file does not begin with \"# bigfleet sim trace 1\"";
            return Err(ChartRefused(why.to_owned()));
        }
        let mut chart = Self::default();
        let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (number, line) in lines.enumerate() {
            if let Some(title) = line.strip_prefix("# ") {
                title.clone_into(&mut chart.title);
                continue;
            }
            let bad = || ChartRefused(format!("line {}: \"{line}\" is not a line", number + 2));
            let (time, rest) = line.split_once(' ').ok_or_else(bad)?;
            let time: f64 = time.parse().map_err(|_| bad())?;
            if let Some(sample) = rest.strip_prefix("sample ") {
                chart.take_sample(time, sample, &mut columns);
            } else if let Some(commit) = rest.strip_prefix("commit ") {
                let kind = commit.split(' ').nth(1).unwrap_or("?").to_owned();
                chart.actions.entry(kind).or_default().push(time);
            }
        }
        if chart.times.is_empty() {
            return Err(ChartRefused("the trace has no sample in it".to_owned()));
        }
        chart.series = columns.into_iter().collect();
        chart.series.sort_by_key(|(name, _)| rank(name));
        Ok(chart)
    }

    fn take_sample(&mut self, time: f64, text: &str, columns: &mut BTreeMap<String, Vec<f64>>) {
        let before = self.times.len();
        self.times.push(time);
        let mut put = |name: String, value: &str| {
            let column = columns.entry(name).or_default();
            column.resize(before, 0.0);
            column.push(value.parse().unwrap_or(0.0));
        };
        for part in text.split(' ') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "states" => {
                    for (state, count) in State::ALL.iter().zip(value.split(',')) {
                        put(state.word().to_owned(), count);
                    }
                }
                "clusters" => {
                    for part in value.split(',') {
                        let (cluster, counts) = part.rsplit_once(':').unwrap_or((part, ""));
                        for (state, count) in BOUND.iter().zip(counts.split('/')) {
                            put(format!("{cluster} {}", state.word()), count);
                        }
                    }
                }
                name => put(name.to_owned(), value),
            }
        }
    }

    fn end(&self) -> f64 {
        self.times.last().copied().unwrap_or(0.0).max(1.0)
    }

    /// For a terminal of this width: each row a series, each block the most it was in a slice of time.
    pub fn text(&self, width: usize) -> String {
        let slices = width.saturating_sub(34).clamp(20, 200);
        let mut text = format!("{}\n\n", self.title);
        for (name, values) in &self.series {
            let mut most = vec![0.0_f64; slices];
            for (time, value) in self.times.iter().zip(values) {
                let at = self.slice(*time, slices);
                most[at] = most[at].max(*value);
            }
            text += &row(name, &most);
        }
        for (kind, times) in &self.actions {
            let mut count = vec![0.0; slices];
            times
                .iter()
                .for_each(|time| count[self.slice(*time, slices)] += 1.0);
            text += &row(&format!("{kind} per slice"), &count);
        }
        let _ = writeln!(text, "{:24} 0 s … {:.0} s", "", self.end());
        text
    }

    fn slice(&self, time: f64, slices: usize) -> usize {
        ((time / self.end() * slices as f64) as usize).min(slices - 1)
    }

    /// A picture: machines by state, machines per cluster, shortfall and pending, actions.
    pub fn svg(&self) -> String {
        let (wide, high) = (960.0, 180.0);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1180 {:.0}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
             fill=\"white\"/>\n<text x=\"20\" y=\"24\" font-size=\"15\">{}</text>\n",
            4.0 * (high + 50.0) + 30.0,
            escaped(&self.title)
        );
        let states: Vec<&str> = State::ALL.iter().map(|state| state.word()).collect();
        let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<&Series> {
            self.series
                .iter()
                .filter(|(name, _)| wanted(name))
                .collect()
        };
        let panels = [
            (
                "machines by state",
                named(&|name| states.contains(&name)),
                true,
            ),
            (
                "machines per cluster",
                named(&|name| name.contains(' ')),
                false,
            ),
            (
                "Needs short, Pods pending",
                named(&|name| ["short", "pending"].contains(&name)),
                false,
            ),
        ];
        for (number, (title, series, stacked)) in panels.into_iter().enumerate() {
            let top = 40.0 + number as f64 * (high + 50.0);
            self.panel(&mut text, title, &series, stacked, (20.0, top, wide, high));
        }
        self.ticks(&mut text, (20.0, 40.0 + 3.0 * (high + 50.0), wide, high));
        text + "</svg>\n"
    }

    fn panel(
        &self,
        text: &mut String,
        title: &str,
        series: &[&Series],
        stacked: bool,
        (left, top, wide, high): (f64, f64, f64, f64),
    ) {
        let sum = |at: usize| series.iter().map(|(_, values)| values[at]).sum::<f64>();
        let largest = |at: usize| {
            series
                .iter()
                .map(|(_, values)| values[at])
                .fold(0.0, f64::max)
        };
        let peak = (0..self.times.len()).map(|at| if stacked { sum(at) } else { largest(at) });
        let peak = peak.fold(1.0, f64::max);
        let x = |at: usize| left + self.times[at] / self.end() * wide;
        let y = |value: f64| top + high - value / peak * high;
        let _ = writeln!(
            text,
            "<text x=\"{left}\" y=\"{:.1}\">{title}, at most {peak:.0}</text>\n\
             <rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" fill=\"none\" \
             stroke=\"#ddd\"/>",
            top - 6.0
        );
        let mut base = vec![0.0; self.times.len()];
        for (number, (name, values)) in series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut path = String::new();
            for at in 0..values.len() {
                let value = if stacked {
                    base[at] + values[at]
                } else {
                    values[at]
                };
                let _ = write!(path, "{:.1},{:.1} ", x(at), y(value));
            }
            if stacked {
                for at in (0..values.len()).rev() {
                    let _ = write!(path, "{:.1},{:.1} ", x(at), y(base[at]));
                    base[at] += values[at];
                }
                let _ = writeln!(text, "<polygon fill=\"{colour}\" points=\"{path}\"/>");
            } else {
                let _ = writeln!(
                    text,
                    "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
                     points=\"{path}\"/>"
                );
            }
            let place = top + 12.0 + number as f64 * 14.0;
            if number < 12 {
                let _ = writeln!(
                    text,
                    "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                     <text x=\"{:.0}\" y=\"{place:.0}\">{}</text>",
                    left + wide + 12.0,
                    place - 9.0,
                    left + wide + 28.0,
                    escaped(name)
                );
            }
        }
    }

    fn ticks(&self, text: &mut String, (left, top, wide, high): (f64, f64, f64, f64)) {
        let _ = writeln!(
            text,
            "<text x=\"{left}\" y=\"{:.1}\">actions</text>",
            top - 6.0
        );
        let each = high / self.actions.len().max(1) as f64;
        for (number, (kind, times)) in self.actions.iter().enumerate() {
            let (y, colour) = (
                top + number as f64 * each,
                COLOURS[(number + 3) % COLOURS.len()],
            );
            for time in times {
                let x = left + time / self.end() * wide;
                let _ = writeln!(
                    text,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y:.1}\" y2=\"{:.1}\" \
                     stroke=\"{colour}\"/>",
                    y + each * 0.8
                );
            }
            let (x, y) = (left + wide + 12.0, y + each / 2.0);
            let _ = writeln!(
                text,
                "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{colour}\">{kind}: {}</text>",
                times.len()
            );
        }
    }
}

/// States in their own order, then clusters and theirs, then what is missing.
fn rank(name: &str) -> (usize, String, usize) {
    let place = |word: &str| State::ALL.iter().position(|state| state.word() == word);
    match (place(name), name.rsplit_once(' ')) {
        (Some(state), _) => (0, String::new(), state),
        (None, Some((cluster, state))) => (1, cluster.to_owned(), place(state).unwrap_or(0)),
        (None, None) => (2, name.to_owned(), 0),
    }
}

fn row(name: &str, values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| match *value {
        value if value <= 0.0 => BLOCKS[0],
        value => BLOCKS[((value / most * 8.0).ceil() as usize).clamp(1, 8)],
    };
    let blocks: String = values.iter().map(block).collect();
    format!("{name:24} {blocks} {most:.0}\n")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# bigfleet sim trace 1\n# scenario x seed 1 defect none\n\
        0.500 commit op-1-1 Provision m1 a\n\
        10.000 sample short=1 pending=3 states=2,1,0,0,0,0,0,0 clusters=a:1/0/0,b:0/0/0\n\
        20.000 sample short=0 pending=0 states=2,0,0,0,1,0,0,0 clusters=a:0/1/0,b:0/0/0\n";

    #[test]
    fn a_trace_becomes_rows_of_blocks_and_a_picture() {
        let chart = Chart::read(TRACE).unwrap();
        let text = chart.text(80);
        assert!(text.contains("Configured"), "{text}");
        assert!(text.contains("Provision per slice"), "{text}");
        let svg = chart.svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<polygon").count(), 8);
        assert_eq!(svg.matches("<polyline").count(), 8);
        assert!(text.contains("a Configured"), "{text}");
    }

    #[test]
    fn what_is_no_trace_is_refused_by_its_line() {
        assert!(
            Chart::read("hello")
                .unwrap_err()
                .to_string()
                .contains("begin")
        );
        let broken = TRACE.to_owned() + "what\n";
        assert!(
            Chart::read(&broken)
                .unwrap_err()
                .to_string()
                .contains("line 6")
        );
    }
}
