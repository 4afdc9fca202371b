//! A trace as a file: what was run, what happened, and that nothing is missing from it.
//!
//! ```text
//! # bigfleet sim trace 1                                                   what it is
//! # build 0.1.0                                                            who wrote it
//! # scenario twins seed 2 defect none fair-weather false without none      what was run
//! 12.345 tell 1 RolledUp a 0-3 [cpu=4]                                     what happened …
//! # end 1                                                                  … in so many lines
//! ```
//!
//! Whatever is not exactly so is refused by its line: a misspelt header would otherwise run something
//! else, and a file that was cut off would look like a run that ended early.

use crate::{clock::Moment, defect::Defect, run::Report, scenarios::Scenario, shorten::Without};
use std::fmt;

const FIRST: &str = "# bigfleet sim trace ";
const VERSION: &str = "1";
const BUILD: &str = "# build ";
const END: &str = "# end ";
/// Lines before what happened.
const HEADER: usize = 3;

/// The build that writes and replays traces.
pub const BUILT: &str = env!("CARGO_PKG_VERSION");

/// Why a file is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRefused(pub(crate) String);

impl fmt::Display for TraceRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TraceRefused {}

/// What a file says.
#[derive(Clone, Debug)]
pub struct TraceFile<'a> {
    /// The version of the simulator that wrote it.
    pub build: &'a str,
    /// What was run.
    pub scenario: Scenario,
    /// With which seed.
    pub seed: u64,
    /// With which defect.
    pub defect: Option<Defect>,
    /// With what left out.
    pub without: Without,
    /// What happened, as it stands there.
    pub lines: Vec<&'a str>,
    /// When each of them did.
    pub(crate) times: Vec<Moment>,
}

/// Whether these are the first bytes of a trace, of whatever version.
pub fn begins_a_trace(bytes: &[u8]) -> bool {
    bytes.starts_with(FIRST.as_bytes())
}

/// The file of a run that was traced.
pub fn trace_text(report: &Report, defect: Option<Defect>, without: &Without) -> String {
    let what = header(report.scenario, report.seed, defect, without);
    let mut text = format!("{FIRST}{VERSION}\n{BUILD}{BUILT}\n{what}\n");
    for line in &report.lines {
        text += line;
        text.push('\n');
    }
    text + &format!("{END}{}\n", report.lines.len())
}

fn header(scenario: &str, seed: u64, defect: Option<Defect>, without: &Without) -> String {
    let defect = defect.map_or("none".to_owned(), Defect::name);
    let numbers: Vec<String> = without.changes.iter().map(usize::to_string).collect();
    let (fair, mut left_out) = (without.weather, numbers.join(","));
    if left_out.is_empty() {
        left_out += "none";
    }
    format!(
        "# scenario {scenario} seed {seed} defect {defect} fair-weather {fair} without {left_out}"
    )
}

impl<'a> TraceFile<'a> {
    /// Reads a file, all of it.
    pub fn read(text: &'a str) -> Result<Self, TraceRefused> {
        let mut lines = text.lines();
        version(lines.next())?;
        let build = lines.next().ok_or_else(|| missing(2, "\"# build …\""))?;
        let build = build.strip_prefix(BUILD).filter(|build| !build.is_empty());
        let build = build.ok_or_else(|| refused(2, "it does not say \"# build …\""))?;
        let what = lines.next();
        let what = what.ok_or_else(|| missing(3, "\"# scenario … seed … defect …\""))?;
        let mut file = what_was_run(what).map_err(|why| refused(HEADER, &why))?;
        file.build = build;
        file.lines = lines.collect();
        file.take_end(text)?;
        file.times = times(&file.lines)?;
        Ok(file)
    }

    /// What was run, in words.
    pub fn title(&self) -> String {
        let Self { scenario, seed, .. } = self;
        let mut title = format!("{} seed {seed}", scenario.name);
        if let Some(defect) = self.defect {
            title += &format!(" with {}", defect.name());
        }
        if self.without.weather {
            title += ", fair weather";
        }
        match self.without.changes.len() {
            0 => title,
            1 => title + ", without one entry of its timeline",
            count => title + &format!(", without {count} entries of its timeline"),
        }
    }

    /// What happened, with the number of its line in the file and its moment.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, Moment, &'a str)> {
        let lines = self.lines.iter().zip(&self.times).enumerate();
        lines.map(|(at, (line, time))| {
            let what = line.split_once(' ').map_or("", |(_, what)| what);
            (line_number(at), *time, what)
        })
    }

    /// Takes the last line off, which says how many there were.
    fn take_end(&mut self, text: &str) -> Result<(), TraceRefused> {
        let lines = HEADER + self.lines.len();
        let last = self.lines.pop().and_then(|last| last.strip_prefix(END));
        let last = last.filter(|_| text.ends_with('\n'));
        let said = last.ok_or_else(|| {
            let why = format!("the trace is cut off: it ends in line {lines} without \"{END}…\"");
            TraceRefused(why)
        })?;
        let are = self.lines.len();
        match said.parse::<usize>() {
            Ok(said) if said == are => Ok(()),
            Ok(said) => {
                let why = format!("it speaks of {said} lines, and there are {are}");
                Err(refused(lines, &why))
            }
            Err(_) => Err(refused(lines, &format!("\"{said}\" is not a number"))),
        }
    }
}

/// The number of a line in the file, by its position among those of what happened.
pub fn line_number(at: usize) -> usize {
    HEADER + 1 + at
}

pub(crate) fn refused(line: usize, why: &str) -> TraceRefused {
    TraceRefused(format!("line {line}: {why}"))
}

fn missing(line: usize, what: &str) -> TraceRefused {
    TraceRefused(format!("line {line} is missing: it says {what}"))
}

fn version(line: Option<&str>) -> Result<(), TraceRefused> {
    let first = line.ok_or_else(|| missing(1, &format!("\"{FIRST}{VERSION}\"")))?;
    match first.strip_prefix(FIRST) {
        Some(VERSION) => Ok(()),
        Some(other) => {
            let why = format!("a trace of version {other}; this build reads {VERSION}");
            Err(refused(1, &why))
        }
        None => {
            let why = format!("it does not say \"{FIRST}{VERSION}\", so this is no trace");
            Err(refused(1, &why))
        }
    }
}

/// Reads the third line: all of its words, in their order.
fn what_was_run(line: &str) -> Result<TraceFile<'_>, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [
        "#",
        "scenario",
        scenario,
        "seed",
        seed,
        "defect",
        defect,
        "fair-weather",
        fair,
        "without",
        without,
    ] = words[..]
    else {
        return Err(
            "it does not say \"# scenario … seed … defect … fair-weather … \
                    without …\", and nothing else"
                .to_owned(),
        );
    };
    let seed = seed.parse();
    let seed = seed.map_err(|_| format!("seed {} is not a whole number", words[4]))?;
    let known = Scenario::named(scenario);
    let scenario = known.ok_or_else(|| format!("there is no scenario {scenario}"))?;
    let weather = match fair {
        "true" => true,
        "false" => false,
        other => return Err(format!("fair-weather is {other}, neither true nor false")),
    };
    let entry = |word: &str| {
        let number = word.parse::<usize>();
        number.map_err(|_| format!("without {word}: that is no entry's number"))
    };
    let changes = match without {
        "none" => Ok(Default::default()),
        some => some.split(',').map(entry).collect(),
    };
    let without = Without {
        changes: changes?,
        weather,
    };
    let checked = without.check(&scenario, seed);
    checked.map_err(|refused| refused.to_string())?;
    Ok(TraceFile {
        build: "",
        scenario,
        seed,
        defect: match defect {
            "none" => None,
            name => Some(Defect::named(name).ok_or_else(|| format!("there is no defect {name}"))?),
        },
        without,
        lines: Vec::new(),
        times: Vec::new(),
    })
}

/// The moment of every line; none is before the one above it.
fn times(lines: &[&str]) -> Result<Vec<Moment>, TraceRefused> {
    let mut times = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let word = line.split(' ').next().unwrap_or("");
        let time = moment(word);
        let time = time.ok_or_else(|| {
            let why = format!("\"{word}\" is not a moment like 12.345");
            refused(line_number(at), &why)
        })?;
        if times.last().is_some_and(|last| time < *last) {
            let why = format!("{time} is before the line above it");
            return Err(refused(line_number(at), &why));
        }
        times.push(time);
    }
    Ok(times)
}

/// Seconds and three digits after the point, as [`Moment`] is written.
fn moment(word: &str) -> Option<Moment> {
    let (seconds, millis) = word.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|one| one.is_ascii_digit());
    if millis.len() != 3 || !digits(millis) || !digits(seconds) {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let millis: u64 = millis.parse().ok()?;
    Some(Moment(seconds.checked_mul(1000)?.checked_add(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# bigfleet sim trace 1\n# build 0.1.0\n\
        # scenario runway seed 2 defect creating-not-credited fair-weather true without 0\n\
        0.500 commit 0000000100000001 Provision m1 a\n20.000 calm\n# end 2\n";

    #[test]
    fn what_was_written_is_read() {
        let file = TraceFile::read(GOOD).unwrap();
        assert_eq!((file.build, file.seed), ("0.1.0", 2));
        assert_eq!(file.lines.len(), 2);
        assert_eq!(
            file.title(),
            "runway seed 2 with creating-not-credited, fair weather, without one entry of its \
             timeline"
        );
        let written = header("runway", 2, file.defect, &file.without);
        assert_eq!(Some(written.as_str()), GOOD.lines().nth(2));
    }

    /// One thing wrong at a time, and what is said about it.
    #[test]
    fn whatever_is_not_exactly_so_is_refused_by_its_line() {
        for (right, wrong, said) in [
            (GOOD, "", "line 1 is missing"),
            (GOOD, "hello\n", "line 1: it does not say"),
            (GOOD, "# bigfleet sim trace 1\n", "line 2 is missing"),
            ("trace 1", "trace 2", "version 2; this build reads 1"),
            ("# build 0.1.0", "# build ", "line 2: it does not say"),
            (
                "weather true",
                "weather flase",
                "fair-weather is flase, neither",
            ),
            ("weather true", "wether true", "line 3: it does not say"),
            ("without 0", "without 0 more", "line 3: it does not say"),
            ("without 0", "without x", "line 3: without x"),
            ("without 0", "without 99", "no entry 99 in this timeline"),
            ("seed 2", "seed -2", "line 3: seed -2 is not a whole number"),
            ("scenario runway", "scenario runaway", "no scenario runaway"),
            (
                "creating-not",
                "creating-nod",
                "no defect creating-nod-credited",
            ),
            ("20.000 calm", "NaN calm", "line 5: \"NaN\" is not a moment"),
            ("20.000 calm", "inf calm", "line 5: \"inf\" is not a moment"),
            ("20.000 calm", "20 calm", "line 5: \"20\" is not a moment"),
            ("20.000 calm", "0.400 calm", "line 5: 0.400 is before"),
            ("# end 2\n", "", "cut off: it ends in line 5"),
            ("# end 2\n", "# end 2", "cut off: it ends in line 6"),
            ("20.000 calm\n", "", "speaks of 2 lines, and there are 1"),
            ("# end 2\n", "# end 2\n21.000 calm\n", "cut off"),
        ] {
            assert!(GOOD.contains(right), "{right}");
            let text = GOOD.replacen(right, wrong, 1);
            let refused = TraceFile::read(&text).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(said), "{wrong}: {refused}");
        }
    }
}
