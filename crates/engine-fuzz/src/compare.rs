//! Compare: the oracle's answer and another, list by list.

use crate::{Feed, Stop, Subject, Then};
use bigfleet_engine::Engine;
use bigfleet_model::{Decision, Fleet};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Cold.
    Full,
    /// Step by step, along the trail.
    Incremental(Feed),
    /// By random edits of this seed from an empty fleet.
    Wander(u64),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Incremental(Feed::Clusters) => f.write_str("incremental"),
            Self::Incremental(Feed::Rows) => f.write_str("incremental, row by row"),
            Self::Wander(seed) => write!(f, "incremental, wandering from seed {seed}"),
        }
    }
}

/// Where an answer differs from the oracle's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An answer, or what the subject said when it gave up instead.
pub(crate) type Answer = Result<Decision, String>;

/// Lets a subject answer. An assertion that fails in it is an answer too, and a wrong one.
pub(crate) fn attempt(answer: impl FnOnce() -> Decision) -> Answer {
    catch_unwind(AssertUnwindSafe(answer)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("no message").to_owned()
    })
}

/// Where the subject's answer at the end of a trail differs from the oracle's.
pub fn at_the_end(subject: &dyn Subject, way: Way, trail: &[Stop]) -> Vec<Difference> {
    let Some(last) = trail.last() else {
        return Vec::new();
    };
    let fleet = &last.fleet;
    let found = attempt(|| match way {
        Way::Full => subject.full(fleet),
        Way::Wander(seed) => subject.wander(fleet, seed),
        Way::Incremental(feed) => {
            let mut engine = subject.engine();
            let mut before = None;
            for stop in trail {
                step(subject, feed, &mut engine, before, stop);
                before = Some(&stop.fleet);
            }
            let mut anew = subject.engine();
            anew.load(fleet);
            anew.decide_full(fleet.now);
            assert_eq!(
                engine.lacking(),
                anew.lacking(),
                "the Needs that lack something, kept up and found anew"
            );
            subject.answer(way, fleet, engine.decision())
        }
    });
    against(&bigfleet_oracle::decide(fleet), &found)
}

/// Leads an engine to the next stop of a trail.
pub(crate) fn step(
    subject: &dyn Subject,
    feed: Feed,
    engine: &mut Engine,
    before: Option<&Fleet>,
    stop: &Stop,
) {
    match before {
        None => engine.load(&stop.fleet),
        Some(before) => subject.follow(engine, feed, before, &stop.fleet),
    }
    match stop.then {
        Then::Pass => {}
        Then::Decide => engine.decide(stop.fleet.now),
        Then::Full => engine.decide_full(stop.fleet.now),
    }
}

pub(crate) fn against(expected: &Decision, found: &Answer) -> Vec<Difference> {
    match found {
        Ok(found) => differences(expected, found),
        Err(text) => vec![Difference(format!("it panicked: {text}"))],
    }
}

/// Where two decisions differ: the first place in every list that does.
fn differences(expected: &Decision, found: &Decision) -> Vec<Difference> {
    // Spelled out, so that a new list cannot be forgotten.
    let Decision {
        actions,
        claims,
        ended_intents,
        held,
        restamps,
        needs,
    } = expected;
    let mut all = Vec::new();
    all.extend(first("actions", actions, &found.actions));
    all.extend(first("claims", claims, &found.claims));
    all.extend(first("ended_intents", ended_intents, &found.ended_intents));
    all.extend(first("held", held, &found.held));
    all.extend(first("restamps", restamps, &found.restamps));
    all.extend(first("needs", needs, &found.needs));
    all
}

fn first<T: fmt::Debug + PartialEq>(list: &str, expected: &[T], found: &[T]) -> Option<Difference> {
    let longest = expected.len().max(found.len());
    let at = (0..longest).find(|at| expected.get(*at) != found.get(*at))?;
    let text = |item: Option<&T>| item.map_or("nothing".to_owned(), |item| format!("{item:?}"));
    let (expected, found) = (text(expected.get(at)), text(found.get(at)));
    Some(Difference(format!(
        "{list}[{at}]\n  oracle: {expected}\n  engine: {found}"
    )))
}
