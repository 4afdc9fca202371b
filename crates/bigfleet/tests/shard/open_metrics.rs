//! A reader of OpenMetrics text, as strict as the format: what it takes, a scraper takes.

use std::collections::{BTreeMap, BTreeSet};

/// Labels, without the one that a suffix adds.
type Labels = Vec<(String, String)>;

/// One histogram of a family.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Upper bounds and cumulative counts, as they come.
    buckets: Vec<(f64, f64)>,
    count: Option<f64>,
    sum: Option<f64>,
}

impl Histogram {
    /// As `histogram_quantile` of a query language does it: by interpolation within a bucket; what falls into
    /// the last is at least the bound before.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let (last, total) = *self.buckets.last()?;
        if last != f64::INFINITY || total == 0.0 {
            return None;
        }
        let rank = q * total;
        let at = self.buckets.iter().position(|(_, count)| rank <= *count)?;
        let (low, below) = match at {
            0 => (0.0, 0.0),
            at => self.buckets[at - 1],
        };
        let (high, upto) = self.buckets[at];
        if high == f64::INFINITY {
            return Some(low);
        }
        Some(low + (high - low) * (rank - below) / (upto - below))
    }

    pub(crate) fn count(&self) -> f64 {
        self.count.unwrap()
    }
}

/// A page that was read.
#[derive(Debug, Default)]
pub(crate) struct Page {
    types: BTreeMap<String, String>,
    pub(crate) samples: BTreeMap<(String, Labels), f64>,
    pub(crate) histograms: BTreeMap<(String, Labels), Histogram>,
}

/// Reads a page; says the line that is wrong, and why.
pub(crate) fn parse(text: &str) -> Result<Page, String> {
    let mut page = Page::default();
    let (mut family, mut done) = (String::new(), BTreeSet::new());
    let body = text
        .strip_suffix("# EOF\n")
        .ok_or("it does not end in # EOF")?;
    for line in body.lines() {
        let wrong = |why: &str| format!("{why}: {line}");
        if let Some(said) = line.strip_prefix("# ") {
            let mut words = said.splitn(3, ' ');
            let (kind, name) = (words.next(), words.next().ok_or(wrong("no name"))?);
            if name != family {
                if !done.insert(name.to_owned()) {
                    return Err(wrong("a family in two places"));
                }
                name.clone_into(&mut family);
            }
            match kind {
                Some("TYPE") => {
                    let of = words.next().ok_or(wrong("no type"))?.to_owned();
                    page.types.insert(name.to_owned(), of);
                }
                Some("HELP" | "UNIT") => {}
                _ => return Err(wrong("neither HELP, TYPE nor UNIT")),
            }
            continue;
        }
        page.sample(line, &family).map_err(|why| wrong(&why))?;
    }
    for ((name, labels), histogram) in &page.histograms {
        check(histogram).map_err(|why| format!("{name} {labels:?}: {why}"))?;
    }
    Ok(page)
}

fn check(histogram: &Histogram) -> Result<(), String> {
    let mut bounds = histogram.buckets.windows(2);
    if !bounds.all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1) {
        return Err("its buckets do not grow".to_owned());
    }
    match histogram.buckets.last() {
        Some((bound, all)) if *bound == f64::INFINITY => match histogram.count {
            Some(count) if count == *all && histogram.sum.is_some() => Ok(()),
            _ => Err("its count is not what its last bucket holds".to_owned()),
        },
        _ => Err("its last bucket is not +Inf".to_owned()),
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        text if text.chars().any(|c| c.is_ascii_alphabetic() && c != 'e') => {
            Err(format!("{text} is no number"))
        }
        text => text.parse().map_err(|_| format!("{text} is no number")),
    }
}

impl Page {
    fn sample(&mut self, line: &str, family: &str) -> Result<(), String> {
        let (series, value) = line.rsplit_once(' ').ok_or("no value")?;
        let value = number(value)?;
        let (name, labels) = match series.split_once('{') {
            None => (series, Labels::new()),
            Some((name, rest)) => (name, read_labels(rest)?),
        };
        let suffix = name.strip_prefix(family).ok_or("of another family")?;
        let kind = self.types.get(family).ok_or("of a family without a type")?;
        match (kind.as_str(), suffix) {
            ("gauge", "") | ("counter", "_total") => {
                let before = self.samples.insert((name.to_owned(), labels), value);
                before.map_or(Ok(()), |_| Err("a series twice".to_owned()))
            }
            ("histogram", "_bucket") => {
                let (le, labels): (Labels, Labels) =
                    labels.into_iter().partition(|(key, _)| key == "le");
                let [(_, bound)] = &le[..] else {
                    return Err("not one le".to_owned());
                };
                let bucket = (number(bound)?, value);
                let histogram = self.histograms.entry((family.to_owned(), labels));
                histogram.or_default().buckets.push(bucket);
                Ok(())
            }
            ("histogram", "_count") => {
                let histogram = self.histograms.entry((family.to_owned(), labels));
                histogram.or_default().count = Some(value);
                Ok(())
            }
            ("histogram", "_sum") => {
                let histogram = self.histograms.entry((family.to_owned(), labels));
                histogram.or_default().sum = Some(value);
                Ok(())
            }
            (kind, suffix) => Err(format!("a {kind} has no sample with {suffix:?}")),
        }
    }
}

/// `a="b",c="d"}`, with the escapes of the format.
fn read_labels(text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    let mut rest = text;
    loop {
        if let Some(end) = rest.strip_prefix('}') {
            return if end.is_empty() {
                Ok(labels)
            } else {
                Err("something after its labels".to_owned())
            };
        }
        let (key, value) = rest.split_once("=\"").ok_or("a label without a value")?;
        let (mut read, mut chars) = (String::new(), value.char_indices());
        let end = loop {
            match chars.next().ok_or("a value without an end")? {
                (at, '"') => break at + 1,
                (_, '\\') => match chars.next().ok_or("an escape without an end")?.1 {
                    'n' => read.push('\n'),
                    escaped @ ('\\' | '"') => read.push(escaped),
                    other => return Err(format!("\\{other} is no escape")),
                },
                (_, other) => read.push(other),
            }
        };
        labels.push((key.to_owned(), read));
        rest = &value[end..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[test]
fn a_last_bucket_that_is_not_without_bound_is_refused() {
    let page = |last: &str| {
        format!(
            "# HELP h Seconds.\n# TYPE h histogram\nh_sum 3.0\nh_count 2\nh_bucket{{le=\"1.0\"}} 1\n\
             h_bucket{{le=\"{last}\"}} 2\n# EOF\n"
        )
    };
    let read = parse(&page("+Inf")).unwrap();
    let histogram = &read.histograms[&("h".to_owned(), Labels::new())];
    assert_eq!(histogram.quantile(0.25), Some(0.5));
    assert_eq!(histogram.quantile(0.99), Some(1.0));
    let refused = parse(&page("1.7976931348623157e308")).unwrap_err();
    assert!(refused.contains("+Inf"), "{refused}");
}
