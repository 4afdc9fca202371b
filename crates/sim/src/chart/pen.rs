//! The pen: areas, steps, lines and words of an SVG file, placed in a frame.
//!
//! ```text
//!        ┌──────────────────┐ ▪ name      a frame has a place and a value at its upper edge,
//!  count ┤ ▁▁▂▂▅▅▅▅▅▂▂▂     │ ▪ name      layers have a value per slice,
//!        └┬────────┬────────┘            and what their colours mean stands beside it
//! ```

use std::fmt::Write;

/// Where a panel of the whole width begins.
pub(super) const LEFT: f64 = 60.0;
/// How wide that is.
pub(super) const WIDE: f64 = 860.0;
/// Where the words beside it begin.
const BESIDE: f64 = LEFT + WIDE + 16.0;
/// Two points each.
pub(super) const SLICES: usize = 430;

/// Where something is drawn.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) wide: f64,
    pub(super) high: f64,
    /// The value at the upper edge.
    pub(super) peak: f64,
}

/// Something that is stacked on or drawn over others.
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

impl Frame {
    pub(super) fn x(&self, slice: usize, slices: usize) -> f64 {
        self.left + slice as f64 / slices as f64 * self.wide
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + self.high - value / self.peak.max(1.0) * self.high
    }
}

pub(super) fn full(top: f64, high: f64, peak: f64) -> Frame {
    Frame {
        left: LEFT,
        top,
        wide: WIDE,
        high,
        peak,
    }
}

/// The most the layers come to together.
pub(super) fn stacked_peak(layers: &[Layer]) -> f64 {
    let slices = layers.first().map_or(0, |layer| layer.values.len());
    let sum = |at: usize| layers.iter().filter_map(|layer| layer.values[at]).sum();
    (0..slices).map(sum).fold(0.0, f64::max)
}

/// Layers on top of each other, from the first sample on.
pub(super) fn stack(text: &mut String, frame: Frame, layers: &[Layer]) {
    let Some(first) = layers.first() else {
        return;
    };
    let mut base: Vec<Option<f64>> = first.values.iter().map(|one| one.map(|_| 0.0)).collect();
    for layer in layers {
        let sums = base.iter().zip(&layer.values);
        let upper: Vec<Option<f64>> = sums.map(|(base, one)| Some((*base)? + (*one)?)).collect();
        if upper != base {
            let above = steps(frame, &upper);
            let below = steps(frame, &base).into_iter().rev();
            let points = written(above.into_iter().chain(below));
            let _ = writeln!(
                text,
                "<polygon fill=\"{}\" points=\"{points}\"/>",
                layer.colour
            );
        }
        base = upper;
    }
}

/// Each value from the beginning to the end of its slice, from left to right.
pub(super) fn steps(frame: Frame, values: &[Option<f64>]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (slice, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let y = frame.y(*value);
            points.push((frame.x(slice, SLICES), y));
            points.push((frame.x(slice + 1, SLICES), y));
        }
    }
    points
}

pub(super) fn written(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points = points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}

/// What the colours mean, to the right of a frame.
pub(super) fn beside(text: &mut String, frame: Frame, layers: &[Layer], note: Option<&str>) {
    let mut y = frame.top + 10.0;
    // Downwards as they are stacked, the uppermost first.
    for layer in layers.iter().rev() {
        let _ = writeln!(
            text,
            "<rect x=\"{BESIDE}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>",
            y - 9.0,
            layer.colour
        );
        label(text, (BESIDE + 16.0, y), "start", "#333", &layer.name);
        y += 16.0;
    }
    if let Some(note) = note {
        label(text, (BESIDE, y), "start", "#777", note);
    }
}

pub(super) fn border(text: &mut String, frame: Frame) {
    let Frame {
        left,
        top,
        wide,
        high,
        ..
    } = frame;
    let _ = writeln!(
        text,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
         fill=\"none\" stroke=\"#cccccc\"/>"
    );
}

pub(super) fn line(text: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    let _ = writeln!(
        text,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

pub(super) fn label(
    text: &mut String,
    (x, y): (f64, f64),
    anchor: &str,
    colour: &str,
    words: &str,
) {
    let words = escaped(words);
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
    );
}

pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}
