//! A chart as an SVG file.
//!
//! ```text
//! marks               a strip                ┐
//! hosts by state      stacked areas          │
//! clusters            a small stack each     │ one time axis; faults, crashes, calm and the break
//! what is missing     lines                  │ through all of it
//! actions             stacked bars per slice ┘
//! ```
//!
//! Slots that nobody uses are left out: a fleet may have thousands, and beside them nothing is seen. Of
//! many clusters the largest are drawn, and the rest as one. Everything is drawn per slice of two
//! points, so the file of a day is no larger than that of an hour.

use super::{
    BOUND, Chart, ClusterSeries, Mark, Series, most,
    pen::{
        Frame, LEFT, Layer, SLICES, WIDE, beside, border, escaped, full, label, line, stack,
        stacked_peak, steps, written,
    },
    scale,
};
use bigfleet_model::State;
use std::{collections::BTreeSet, fmt::Write};

const WHOLE: f64 = 1140.0;
/// Bars are wider, or they could not be seen.
const BARS: usize = 172;
/// More clusters than this are drawn as the largest and the rest.
const CELLS: usize = 12;
const IN_A_ROW: usize = 3;
/// More marks of a kind than this are not drawn through the panels.
const THROUGH: usize = 40;

/// Of the states, in their order.
const STATES: [&str; 8] = [
    "#c9ced6", "#f2c14e", "#9fd3c7", "#e8956d", "#4a8fe7", "#b07cc6", "#8d99ae", "#d64545",
];
/// Of Needs and of Pods.
const MISSING: [&str; 2] = ["#d64545", "#e8956d"];

impl Mark {
    fn colour(self) -> &'static str {
        match self {
            Self::Demand => "#59a96a",
            Self::Fault => "#8d99ae",
            Self::Calm => "#333333",
            Self::Crash => "#e8956d",
            Self::Broke => "#d64545",
        }
    }
}

impl Chart {
    /// A picture: hosts by state, each cluster's machines, what is missing, actions.
    pub fn svg(&self) -> String {
        let mut body = String::new();
        let mut top = 44.0;
        if let Some(broke) = &self.broke {
            label(
                &mut body,
                (LEFT, top),
                "start",
                Mark::Broke.colour(),
                &format!("broke {broke}"),
            );
            top += 18.0;
        }
        top = self.mark_legend(&mut body, top);
        top = self.mark_strip(&mut body, top + 8.0);
        top = self.states_panel(&mut body, top + 24.0);
        top = self.clusters_panel(&mut body, top + 24.0);
        top = self.missing_panel(&mut body, top + 24.0);
        top = self.actions_panel(&mut body, top + 24.0);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WHOLE}\" height=\"{top:.0}\" \
             viewBox=\"0 0 {WHOLE} {top:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WHOLE}\" height=\"{top:.0}\" fill=\"white\"/>\n"
        );
        let _ = writeln!(
            text,
            "<text x=\"{LEFT}\" y=\"26\" font-size=\"16\">{}</text>",
            escaped(&self.title)
        );
        text + &body + "</svg>\n"
    }

    fn mark_legend(&self, text: &mut String, top: f64) -> f64 {
        let mut left = LEFT;
        for mark in Mark::ALL {
            let count = self.marks.iter().filter(|(_, one)| *one == mark).count();
            if count == 0 {
                continue;
            }
            let words = format!("{} ({count})", mark.word());
            let _ = writeln!(
                text,
                "<line x1=\"{left:.1}\" x2=\"{left:.1}\" y1=\"{:.1}\" y2=\"{top:.1}\" \
                 stroke=\"{}\" stroke-width=\"2\"/>",
                top - 11.0,
                mark.colour()
            );
            label(text, (left + 6.0, top), "start", "#333", &words);
            left += 30.0 + 7.0 * words.len() as f64;
        }
        top
    }

    /// Every mark, above the rest.
    fn mark_strip(&self, text: &mut String, top: f64) -> f64 {
        let frame = full(top, 12.0, 1.0);
        for mark in Mark::ALL {
            self.mark(text, frame, mark);
        }
        border(text, frame);
        top + frame.high
    }

    fn states_panel(&self, text: &mut String, top: f64) -> f64 {
        let layers: Vec<Layer> = self
            .states
            .iter()
            .zip(STATES)
            .filter(|(series, _)| series.name != State::Speculative.word())
            .filter(|(series, _)| 0.0 < most(&series.values))
            .map(|(series, colour)| self.layer(&series.name, colour, &series.values, true))
            .collect();
        let frame = full(top, 170.0, stacked_peak(&layers));
        self.panel(text, frame, "hosts by state");
        stack(text, frame, &layers);
        self.marks(text, frame);
        let slots = self
            .states
            .iter()
            .find(|one| one.name == State::Speculative.word());
        let slots = slots.map_or(0.0, |one| most(&one.values));
        let note = format!("slots, not drawn: {slots:.0}");
        beside(text, frame, &layers, (0.0 < slots).then_some(note.as_str()));
        frame.top + frame.high + 18.0
    }

    /// A small stack for each cluster; the largest ones and the rest, if there are many.
    fn clusters_panel(&self, text: &mut String, top: f64) -> f64 {
        let (cells, empty) = self.cells();
        if cells.is_empty() {
            return top - 24.0;
        }
        let mut title = "machines of each cluster".to_owned();
        if !empty.is_empty() {
            title += &format!("; none throughout: {}", empty.join(", "));
        }
        label(text, (LEFT, top - 6.0), "start", "#333", &title);
        let wide = (WIDE - 30.0 * (IN_A_ROW - 1) as f64) / IN_A_ROW as f64;
        let (high, apart) = (60.0, 84.0);
        let mut shown = Vec::new();
        for (number, held) in cells.iter().enumerate() {
            let layers: Vec<Layer> = BOUND
                .iter()
                .zip(&held.states)
                .map(|(state, values)| self.layer(state.word(), colour_of(*state), values, true))
                .collect();
            let (row, column) = (number / IN_A_ROW, number % IN_A_ROW);
            let frame = Frame {
                left: LEFT + column as f64 * (wide + 30.0),
                top: top + 16.0 + row as f64 * apart,
                wide,
                high,
                peak: most(&held.machines()),
            };
            let title = format!("{}, at most {:.0}", held.cluster, frame.peak);
            label(text, (frame.left, frame.top - 4.0), "start", "#333", &title);
            border(text, frame);
            stack(text, frame, &layers);
            self.marks(text, frame);
            shown = layers;
        }
        let frame = full(top + 16.0, high, 1.0);
        beside(text, frame, &shown, None);
        top + cells.len().div_ceil(IN_A_ROW) as f64 * apart
    }

    /// The clusters that are drawn, and the names of those that never had a machine.
    fn cells(&self) -> (Vec<ClusterSeries>, Vec<&str>) {
        let all = self.clusters.iter();
        let (held, empty): (Vec<&ClusterSeries>, Vec<&ClusterSeries>) =
            all.partition(|held| 0.0 < most(&held.machines()));
        let empty = empty.iter().map(|held| held.cluster.as_str()).collect();
        if held.len() <= CELLS {
            return (held.into_iter().cloned().collect(), empty);
        }
        let mut by_size: Vec<usize> = (0..held.len()).collect();
        let size = |at: &usize| most(&held[*at].machines());
        by_size.sort_by(|one, other| size(other).total_cmp(&size(one)).then(one.cmp(other)));
        let (largest, rest) = by_size.split_at(CELLS - 1);
        let mut largest = largest.to_vec();
        largest.sort_unstable();
        let mut cells: Vec<ClusterSeries> = largest.iter().map(|at| held[*at].clone()).collect();
        let mut others = ClusterSeries {
            cluster: format!("the other {} together", rest.len()),
            states: [0; 3].map(|_| vec![0.0; self.times.len()]),
        };
        for one in rest.iter().map(|at| held[*at]) {
            for (sum, values) in others.states.iter_mut().zip(&one.states) {
                sum.iter_mut()
                    .zip(values)
                    .for_each(|(sum, value)| *sum += value);
            }
        }
        cells.push(others);
        (cells, empty)
    }

    fn missing_panel(&self, text: &mut String, top: f64) -> f64 {
        let peak = self
            .missing
            .iter()
            .map(|one| most(&one.values))
            .fold(0.0, f64::max);
        let frame = full(top, 90.0, peak);
        self.panel(text, frame, "what is missing");
        let layer = |(one, colour): (&Series, &&'static str)| {
            let name = format!("{}, at most {:.0}", one.name, most(&one.values));
            self.layer(&name, colour, &one.values, false)
        };
        let layers: Vec<Layer> = self.missing.iter().zip(&MISSING).map(layer).collect();
        for layer in &layers {
            let _ = writeln!(
                text,
                "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>",
                layer.colour,
                written(steps(frame, &layer.values))
            );
        }
        self.marks(text, frame);
        beside(text, frame, &layers, None);
        frame.top + frame.high + 18.0
    }

    fn actions_panel(&self, text: &mut String, top: f64) -> f64 {
        let layer = |(kind, moments): (&String, &Vec<f64>)| Layer {
            name: format!("{kind}, {} in all", moments.len()),
            colour: colour_of_action(kind),
            values: self.counted(moments, BARS).into_iter().map(Some).collect(),
        };
        let layers: Vec<Layer> = self.actions.iter().map(layer).collect();
        let frame = full(top, 110.0, stacked_peak(&layers));
        self.panel(text, frame, "actions");
        let mut base = vec![0.0; BARS];
        let wide = WIDE / BARS as f64 - 1.0;
        for layer in &layers {
            for (slice, value) in layer.values.iter().enumerate() {
                let value = value.unwrap_or(0.0);
                if value == 0.0 {
                    continue;
                }
                let (x, y) = (frame.x(slice, BARS), frame.y(base[slice] + value));
                let high = frame.y(base[slice]) - y;
                base[slice] += value;
                let _ = writeln!(
                    text,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
                     fill=\"{}\"/>",
                    layer.colour
                );
            }
        }
        self.marks(text, frame);
        beside(text, frame, &layers, None);
        frame.top + frame.high + 30.0
    }

    fn layer(&self, name: &str, colour: &'static str, values: &[f64], last: bool) -> Layer {
        Layer {
            name: name.to_owned(),
            colour,
            values: self.held_values(values, SLICES, last),
        }
    }

    /// Title, border, and ticks on both axes.
    fn panel(&self, text: &mut String, frame: Frame, title: &str) {
        label(text, (frame.left, frame.top - 6.0), "start", "#333", title);
        let right = frame.left + frame.wide;
        for count in scale::counts(frame.peak) {
            let y = frame.y(count);
            line(text, (frame.left, y), (right, y), "#eeeeee");
            label(
                text,
                (frame.left - 6.0, y + 4.0),
                "end",
                "#777",
                &format!("{count:.0}"),
            );
        }
        let bottom = frame.top + frame.high;
        for (at, word) in scale::times(self.end, 10) {
            let x = frame.left + at / self.end * frame.wide;
            line(text, (x, bottom), (x, bottom + 4.0), "#999999");
            label(text, (x, bottom + 16.0), "middle", "#777", &word);
        }
        border(text, frame);
    }

    /// What a whole panel is seen against. Demand may move all the time, and would hide it.
    fn marks(&self, text: &mut String, frame: Frame) {
        for mark in [Mark::Fault, Mark::Calm, Mark::Crash, Mark::Broke] {
            let count = self.marks.iter().filter(|(_, one)| *one == mark).count();
            if count <= THROUGH {
                self.mark(text, frame, mark);
            }
        }
    }

    /// The marks of a kind, from top to bottom of a frame; one for each slice that has any.
    fn mark(&self, text: &mut String, frame: Frame, mark: Mark) {
        let moments = self.marks.iter().filter(|(_, one)| *one == mark);
        let slices: BTreeSet<usize> = moments.map(|(at, _)| self.slice(*at, SLICES)).collect();
        for slice in slices {
            let x = frame.x(slice, SLICES);
            let (top, bottom) = (frame.top, frame.top + frame.high);
            let _ = writeln!(
                text,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" \
                 stroke=\"{}\" stroke-opacity=\"0.7\"/>",
                mark.colour()
            );
        }
    }
}

fn colour_of(state: State) -> &'static str {
    let at = State::ALL.iter().position(|one| *one == state);
    at.map_or(STATES[0], |at| STATES[at])
}

/// The same kind has the same colour in every picture.
fn colour_of_action(kind: &str) -> &'static str {
    match kind {
        "Bootstrap" => "#4a8fe7",
        "Provision" => "#f2c14e",
        "Preempt" => "#e8956d",
        "Reclaim" => "#b07cc6",
        "Delete" => "#8d99ae",
        _ => "#333333",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TRACE, chart};

    #[test]
    fn a_trace_becomes_a_picture_with_axes_marks_and_bars() {
        let svg = chart(TRACE).svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        // Creating and Configured among all, and each of them in c10.
        assert_eq!(svg.matches("<polygon").count(), 4, "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2);
        for words in [
            ">20 s<",
            ">Provision, 1 in all<",
            ">slots, not drawn: 2<",
            ">c10, at most 1<",
            ">crash (1)<",
            ">broke gate: 20 Creates, not 1<",
            ">Pods pending, at most 3<",
        ] {
            assert!(svg.contains(words), "{words}: {svg}");
        }
    }

    #[test]
    fn of_many_clusters_the_largest_are_drawn_and_the_rest_together() {
        let held: Vec<String> = (1..=30).map(|one| format!("c{one}:0/{one}/0")).collect();
        let text = TRACE.replace("c10:1/0/0,c2:0/0/0", &held.join(","));
        let svg = chart(&text).svg();
        assert!(svg.contains(">c30, at most 30<") && svg.contains(">c20, at most 20<"));
        // 1 + 2 + … + 19
        assert!(
            svg.contains(">the other 19 together, at most 190<"),
            "{svg}"
        );
    }

    #[test]
    fn the_file_does_not_grow_with_the_run() {
        let sample = "sample short=1 pending=3 states=2,1,0,0,0,0,0,0 clusters=a:1/0/0";
        let drawn = |count: usize| {
            let lines = (1..=count).map(|at| format!("{at}.000 {sample}\n"));
            let lines: String = lines.collect();
            let header: Vec<&str> = TRACE.lines().take(3).collect();
            let text = format!("{}\n{lines}# end {count}\n", header.join("\n"));
            chart(&text).svg().len()
        };
        assert!(drawn(50_000) < 2 * drawn(500));
    }
}
