//! History: a fleet that lives for a while, and every engine's answer to all of it.

use crate::{
    Coverage, Difference, Feed, Stop, Subject, Then, Way,
    compare::{against, attempt, step},
    invent::Inventor,
};
use std::fmt;

/// A history before it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// What it is drawn from.
    pub seed: u64,
    /// How many decisions are compared.
    pub steps: usize,
    /// How large its fleets are.
    pub mode: Mode,
}

/// How large fleets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Up to some thirty machines and a dozen rows: everything meets everything.
    Few,
    /// Some hundreds of machines, many of them alike: pools and own sets are long.
    Crowd,
}

/// An answer that is not the oracle's.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The history it came up in.
    pub history: History,
    /// After how many steps.
    pub step: usize,
    /// Whose answer.
    pub way: Way,
    /// How the engine came there; the last fleet is the one it is wrong about.
    pub trail: Vec<Stop>,
    /// Where it differs.
    pub differences: Vec<Difference>,
}

/// The wandering engine is compared every so many steps.
const WANDER_EVERY: usize = 10;

impl History {
    /// Lets it happen. Every list of every decision is compared on every step.
    pub fn run(self, subject: &dyn Subject) -> Result<Coverage, Box<Mismatch>> {
        let mut inventor = Inventor::new(self.seed, self.mode);
        let feed = if inventor.prng.percent(50) {
            Feed::Rows
        } else {
            Feed::Clusters
        };
        let (mut coverage, mut engine) = (Coverage::default(), subject.engine());
        let mut trail: Vec<Stop> = Vec::new();
        let mut decision = None;
        for at in 0..self.steps {
            let known = trail.len();
            self.go_on(&mut inventor, decision.as_ref(), &mut trail, &mut coverage);
            let Some(Stop { fleet, .. }) = trail.last() else {
                break;
            };
            let expected = bigfleet_oracle::decide(fleet);
            let incremental = attempt(|| {
                for place in known..trail.len() {
                    let before = place.checked_sub(1).map(|before| &trail[before].fleet);
                    step(subject, feed, &mut engine, before, &trail[place]);
                }
                subject.answer(Way::Incremental(feed), fleet, engine.decision())
            });
            let mut answers = vec![
                (Way::Full, attempt(|| subject.full(fleet))),
                (Way::Incremental(feed), incremental),
            ];
            if at % WANDER_EVERY == 0 {
                let seed = inventor.prng.next_u64();
                answers.push((Way::Wander(seed), attempt(|| subject.wander(fleet, seed))));
            }
            coverage.note(fleet, &expected);
            for (way, answer) in answers {
                let differences = against(&expected, &answer);
                if !differences.is_empty() {
                    let history = self;
                    return Err(Box::new(Mismatch {
                        history,
                        step: at,
                        way,
                        trail,
                        differences,
                    }));
                }
            }
            decision = Some(expected);
        }
        Ok(coverage)
    }

    /// Adds stops up to the next one that is decided on.
    fn go_on(
        self,
        inventor: &mut Inventor,
        decision: Option<&bigfleet_model::Decision>,
        trail: &mut Vec<Stop>,
        coverage: &mut Coverage,
    ) {
        let decides = if inventor.prng.percent(6) {
            Then::Full
        } else {
            Then::Decide
        };
        let Some(last) = trail.last() else {
            trail.push(Stop {
                fleet: inventor.first(),
                then: decides,
            });
            return;
        };
        let mut fleet = last.fleet.clone();
        // Mostly one edit per decision, sometimes several, told one by one or together.
        let edits = if inventor.prng.percent(70) {
            1
        } else {
            inventor.prng.between(2, 6)
        };
        let one_by_one = inventor.prng.percent(50);
        for edit in 1..=edits {
            let decision = decision.filter(|_| edit == 1);
            coverage.see(inventor.next(&mut fleet, decision));
            if edit == edits {
                trail.push(Stop {
                    fleet,
                    then: decides,
                });
                return;
            } else if one_by_one {
                trail.push(Stop {
                    fleet: fleet.clone(),
                    then: Then::Pass,
                });
            }
        }
    }
}

impl Mismatch {
    /// The fleets of the trail, each as a fleet file.
    pub fn fleets(&self) -> String {
        let mut text = String::new();
        for (at, stop) in self.trail.iter().enumerate() {
            text += &match self.trail.len() {
                1 => String::new(),
                stops => format!("fleet {} of {stops}, {}:\n", at + 1, stop.then.word()),
            };
            text += &bigfleet_fleet_file::write(&stop.fleet);
            text += "\n";
        }
        text
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            history: History { seed, mode, .. },
            step,
            way,
            ..
        } = self;
        writeln!(
            f,
            "{mode:?}, seed {seed}, step {step}: {way} differs from the oracle"
        )?;
        self.differences
            .iter()
            .try_for_each(|difference| writeln!(f, "{difference}"))
    }
}
