//! Selectors: which entries are meant by `-l`, in the words kubectl takes.
//!
//! ```text
//! state=Idle,zone in (a, b),rack!=r1,gpu,!spot      every part must hold
//! ```
//!
//! A key names a column or a label. What it means for each kind of entry is in `docs/operating.md`.

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
}

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

    fn is(&self, value: &str) -> bool {
        match self {
            Self::Word(word) => word.eq_ignore_ascii_case(value),
            Self::Texts(texts) => texts.iter().any(|text| text == value),
        }
    }
}

/// Why a selector cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not key=value, key!=value, key in (a, b), key notin (a, b), key or !key")]
pub struct SelectorRefused(String);

impl Selector {
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
            }
        })
    }

    /// The values one of which must be under a key, so that a shard need not send the rest.
    pub(crate) fn allowed_values(&self, keys: &[&str]) -> Option<&[String]> {
        let of_key = |clause: &&Clause| keys.contains(&clause.key.as_str());
        self.0
            .iter()
            .filter(of_key)
            .find_map(|clause| match &clause.test {
                Test::In(values) => Some(values.as_slice()),
                Test::NotIn(_) | Test::Exists | Test::Absent => None,
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
        let sound = !key.is_empty() && !key.contains([' ', '=', '!', '(', ')']);
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
    }

    #[test]
    fn what_is_no_selector_is_refused_by_its_part() {
        for wrong in [
            "", "a=b,", "=b", "a in b", "a of (b)", "a b", "!", "a in (b",
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
