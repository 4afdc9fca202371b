//! Metrics page: names, labels and numbers as OpenMetrics text.

use std::fmt::Write as _;
use std::time::Duration;

/// Upper bounds of a histogram's buckets, in seconds: an fsync, a round in a region, an election, a proposal given up.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0];

/// How long something took, each time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Of each bound, and of what is beyond the last.
    counts: [u64; BOUNDS.len() + 1],
    seconds: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        self.counts[bucket.unwrap_or(BOUNDS.len())] += 1;
        self.seconds += seconds;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
    last: &'static str,
}

impl Page {
    fn head(&mut self, name: &'static str, help: &str, kind: &str) {
        if self.last != name {
            self.last = name;
            let name = format!("bigfleet_coordinator_{name}");
            // Writing to a text cannot fail.
            let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        }
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.text, "bigfleet_coordinator_{name} {value}");
    }

    pub(crate) fn labelled(
        &mut self,
        name: &'static str,
        help: &str,
        label: &str,
        of: &str,
        value: u64,
    ) {
        self.head(name, help, "gauge");
        let of = of.escape_default();
        let _ = writeln!(
            self.text,
            "bigfleet_coordinator_{name}{{{label}=\"{of}\"}} {value}"
        );
    }

    pub(crate) fn counter<'a>(
        &mut self,
        name: &'static str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        self.head(name, help, "counter");
        for (of, value) in counts {
            let labels = if label.is_empty() {
                String::new()
            } else {
                format!("{{{label}=\"{of}\"}}")
            };
            let _ = writeln!(
                self.text,
                "bigfleet_coordinator_{name}_total{labels} {value}"
            );
        }
    }

    /// A counter with two labels.
    pub(crate) fn counter_of_two<'a>(
        &mut self,
        name: &'static str,
        help: &str,
        counts: impl Iterator<Item = ([(&'a str, &'a str); 2], u64)>,
    ) {
        self.head(name, help, "counter");
        for ([(one, of_one), (other, of_other)], value) in counts {
            let _ = writeln!(
                self.text,
                "bigfleet_coordinator_{name}_total{{{one}=\"{of_one}\",{other}=\"{of_other}\"}} {value}"
            );
        }
    }

    pub(crate) fn histogram(&mut self, name: &'static str, help: &str, of: &Histogram) {
        self.head(name, help, "histogram");
        let name = format!("bigfleet_coordinator_{name}");
        let mut below = 0;
        for (nth, count) in of.counts.iter().enumerate() {
            below += count;
            let bound = BOUNDS.get(nth);
            let bound = bound.map_or("+Inf".to_owned(), |bound| format!("{bound:?}"));
            let _ = writeln!(self.text, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let seconds = of.seconds;
        let _ = writeln!(self.text, "{name}_sum {seconds:?}\n{name}_count {below}");
    }
}
