//! Selectors: which entries are meant by `-l`, in the words kubectl takes.
//!
//! ```text
//! state=Idle,zone in (a, b),rack!=r1,gpu,!spot,price>1.5      every part must hold
//! ```
//!
//! A key names a column or a label. What it means for each kind of entry is in `docs/operating.md`. A key that
//! no entry has, or a comparison with what is no number, is an error: an empty list would look like an answer.

use std::str::FromStr;

/// What is meant; nothing said means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Clause>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Clause {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(Number),
    Below(Number),
}

/// A number that was typed; never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number(f64);

impl Eq for Number {}

/// What an entry has under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A word of ours: its case does not matter.
    Word(String),
    /// Texts of others, any of which may be meant; none if it is only there.
    Texts(Vec<String>),
}

impl Fact {
    /// A text, if there is one.
    pub(crate) fn text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::Texts(vec![text.to_owned()]))
    }

    /// A word.
    pub(crate) fn word(word: impl ToString) -> Option<Self> {
        Some(Self::Word(word.to_string()))
    }

    /// The number it is, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        let text = match self {
            Self::Word(word) => word,
            Self::Texts(texts) => texts.first()?,
        };
        text.parse().ok().filter(|number: &f64| !number.is_nan())
    }

    /// As it is shown.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Texts(texts) => texts.join(","),
        }
    }

    fn is(&self, value: &str) -> bool {
        match self {
            Self::Word(word) => word.eq_ignore_ascii_case(value),
            Self::Texts(texts) => texts.iter().any(|text| text == value),
        }
    }
}

/// Why a selector cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not key=value, key!=value, key in (a, b), key notin (a, b), key, !key, key>number or key<number"
)]
pub struct SelectorRefused(String);

impl Selector {
    /// Whether it admits everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an entry is meant.
    pub(crate) fn admits(&self, fact: impl Fn(&str) -> Option<Fact>) -> bool {
        self.0.iter().all(|clause| {
            let fact = fact(&clause.key);
            let among = |values: &[String]| {
                let fact = fact.as_ref();
                fact.is_some_and(|fact| values.iter().any(|value| fact.is(value)))
            };
            match &clause.test {
                Test::In(values) => among(values),
                Test::NotIn(values) => !among(values),
                Test::Exists => fact.is_some(),
                Test::Absent => fact.is_none(),
                Test::Above(than) => number(fact.as_ref()).is_some_and(|number| than.0 < number),
                Test::Below(than) => number(fact.as_ref()).is_some_and(|number| number < than.0),
            }
        })
    }

    /// This and the other: everything in both must hold.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The keys it names.
    pub fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|clause| clause.key.as_str()).collect()
    }

    /// The values one of which must be under a key, so that a shard need not send the rest.
    pub(crate) fn allowed_values(&self, keys: &[&str]) -> Option<&[String]> {
        let of_key = |clause: &&Clause| keys.contains(&clause.key.as_str());
        self.0
            .iter()
            .filter(of_key)
            .find_map(|clause| match &clause.test {
                Test::In(values) => Some(values.as_slice()),
                Test::NotIn(_) | Test::Exists | Test::Absent | Test::Above(_) | Test::Below(_) => {
                    None
                }
            })
    }
}

fn number(fact: Option<&Fact>) -> Option<f64> {
    fact.and_then(Fact::number)
}

/// Which keys of a selector the entries have, so that one that cannot mean anything is noticed.
#[derive(Debug)]
pub(crate) struct Usage<'s> {
    selector: &'s Selector,
    entries: usize,
    /// Per clause: some entry has the key, and some entry has a number under it.
    seen: Vec<(bool, bool)>,
}

impl<'s> Usage<'s> {
    pub(crate) fn of(selector: &'s Selector) -> Self {
        Self {
            selector,
            entries: 0,
            seen: vec![(false, false); selector.0.len()],
        }
    }

    /// An entry, before anything is left out.
    pub(crate) fn see(&mut self, fact: impl Fn(&str) -> Option<Fact>) {
        self.entries += 1;
        for (clause, seen) in self.selector.0.iter().zip(&mut self.seen) {
            if let Some(fact) = fact(&clause.key) {
                seen.0 = true;
                seen.1 |= fact.number().is_some();
            }
        }
    }

    /// The first part that can mean nothing, and why: no entry has its key, or no number there.
    pub(crate) fn problem(&self, kind: &str, keys: &[&str]) -> Option<String> {
        if self.entries == 0 {
            return None;
        }
        let clauses = self.selector.0.iter().zip(&self.seen);
        clauses
            .into_iter()
            .find_map(|(clause, (is_there, is_number))| {
                let key = &clause.key;
                let is_known = *is_there || keys.contains(&key.as_str());
                match &clause.test {
                    Test::NotIn(_) | Test::Exists | Test::Absent => None,
                    _ if !is_known => Some(format!(
                        "no {kind} has \"{key}\"; what can be selected by is {}",
                        keys.join(", ")
                    )),
                    Test::In(_) => None,
                    Test::Above(_) | Test::Below(_) if *is_there && !is_number => Some(format!(
                        "\"{key}\" is not a number, so < and > mean nothing"
                    )),
                    Test::Above(_) | Test::Below(_) => None,
                }
            })
    }
}

impl FromStr for Selector {
    type Err = SelectorRefused;

    fn from_str(text: &str) -> Result<Self, SelectorRefused> {
        let parts = parts(text).into_iter();
        let clauses = parts.map(|part| clause(part.trim()).ok_or(SelectorRefused(part.to_owned())));
        Ok(Self(clauses.collect::<Result<_, _>>()?))
    }
}

/// What stands between the commas that are not inside parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn clause(text: &str) -> Option<Clause> {
    let made = |key: &str, test: Test| {
        let key = key.trim();
        let sound = !key.is_empty() && !key.contains([' ', '=', '!', '(', ')', '<', '>']);
        sound.then(|| Clause {
            key: key.to_owned(),
            test,
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, Test::In(one(value)));
    }
    for (sign, test) in [('>', Test::Above as fn(Number) -> Test), ('<', Test::Below)] {
        if let Some((key, value)) = text.split_once(sign) {
            let number = value
                .trim()
                .parse()
                .ok()
                .filter(|number: &f64| !number.is_nan())?;
            return made(key, test(Number(number)));
        }
    }
    if let Some(key) = text.strip_prefix('!') {
        return made(key, Test::Absent);
    }
    let Some((key, rest)) = text.split_once(char::is_whitespace) else {
        return made(text, Test::Exists);
    };
    let (operator, set) = rest.trim().split_once('(')?;
    let values = set.strip_suffix(')')?.split(',');
    let values = values.map(|value| value.trim().to_owned()).collect();
    match operator.trim() {
        "in" => made(key, Test::In(values)),
        "notin" => made(key, Test::NotIn(values)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine in rack r1, zone a, Idle.
    fn fact(key: &str) -> Option<Fact> {
        match key {
            "state" => Fact::word("Idle"),
            "rack" => Fact::text("r1"),
            "zone" => Some(Fact::Texts(vec!["a".to_owned(), "b".to_owned()])),
            "price" => Fact::word(1.5),
            _ => None,
        }
    }

    #[track_caller]
    fn check(selector: &str, meant: bool) {
        let selector: Selector = selector.parse().unwrap();
        assert_eq!(selector.admits(fact), meant, "{selector:?}");
    }

    #[test]
    fn every_part_must_hold() {
        check("state=Idle", true);
        check("state==idle", true);
        check("state=Idle,rack=r2", false);
        check("rack=R1", false);
        check("rack!=r2,zone in (b, c)", true);
        check("zone notin (b, c)", false);
        check("rack", true);
        check("gpu", false);
        check("!gpu", true);
        check("gpu!=a", true);
        check("rack notin (r2),!rack", false);
        check("price>1,price<2", true);
        check("price > 1.5", false);
        check("rack>1", false);
    }

    #[test]
    fn a_part_that_can_mean_nothing_is_said() {
        let problem = |text: &str| {
            let selector: Selector = text.parse().unwrap();
            let mut usage = Usage::of(&selector);
            assert_eq!(usage.problem("machine", &["state"]), None, "there are none");
            usage.see(fact);
            usage.problem("machine", &["state", "cluster"])
        };
        for fine in [
            "state=x",
            "cluster=a",
            "rack=r9",
            "!gpu",
            "gpu!=a",
            "gpu",
            "price>9",
        ] {
            assert_eq!(problem(fine), None, "{fine}");
        }
        assert!(
            problem("zoen=a")
                .unwrap()
                .contains("no machine has \"zoen\"")
        );
        assert!(problem("gpu>1").unwrap().contains("state, cluster"));
        assert!(problem("rack>1").unwrap().contains("not a number"));
    }

    #[test]
    fn what_is_no_selector_is_refused_by_its_part() {
        for wrong in [
            "", "a=b,", "=b", "a in b", "a of (b)", "a b", "!", "a in (b", "a>b", ">1", "a<",
            "a>NaN",
        ] {
            let refused = wrong.parse::<Selector>();
            assert!(refused.is_err(), "{wrong}: {refused:?}");
        }
        let refused = "a=b,c of (d)".parse::<Selector>().unwrap_err().to_string();
        assert!(
            refused.starts_with("\"c of (d)\" is not key=value"),
            "{refused}"
        );
    }

    #[test]
    fn what_a_shard_can_select_by_itself_is_found() {
        let selector: Selector = "zone in (a, b),state!=Idle".parse().unwrap();
        assert_eq!(
            selector.allowed_values(&["zone"]),
            Some(&["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(selector.allowed_values(&["state"]), None);
    }
}
