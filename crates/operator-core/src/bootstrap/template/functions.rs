//! Functions: the standard ones of Go's templates.

use super::Value;
use std::{cmp::Ordering, fmt::Write as _};

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Len,
    Index,
    Slice,
    Print,
    Printf,
    Println,
    Html,
    Js,
    Urlquery,
}

impl Function {
    const ALL: [(&'static str, Self); 18] = [
        ("and", Self::And),
        ("or", Self::Or),
        ("not", Self::Not),
        ("eq", Self::Eq),
        ("ne", Self::Ne),
        ("lt", Self::Lt),
        ("le", Self::Le),
        ("gt", Self::Gt),
        ("ge", Self::Ge),
        ("len", Self::Len),
        ("index", Self::Index),
        ("slice", Self::Slice),
        ("print", Self::Print),
        ("printf", Self::Printf),
        ("println", Self::Println),
        ("html", Self::Html),
        ("js", Self::Js),
        ("urlquery", Self::Urlquery),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, function)| *function)
    }

    /// Whether no further value can change the answer.
    pub(super) fn is_decided_by(self, value: &Value) -> bool {
        match self {
            Self::And => !value.is_true(),
            Self::Or => value.is_true(),
            _ => false,
        }
    }

    pub(super) fn call(self, values: Vec<Value>) -> Result<Value, String> {
        match self {
            Self::And | Self::Or => self.last(values),
            Self::Not => Ok(Value::Bool(!self.one(values)?.is_true())),
            Self::Eq => self.equal(&values).map(Value::Bool),
            Self::Ne => {
                let [one, other] = self.two(values)?;
                Ok(Value::Bool(!equal(&one, &other)?))
            }
            Self::Lt => self.ordered(values, Ordering::is_lt),
            Self::Le => self.ordered(values, Ordering::is_le),
            Self::Gt => self.ordered(values, Ordering::is_gt),
            Self::Ge => self.ordered(values, Ordering::is_ge),
            Self::Len => length(&self.one(values)?).map(Value::Integer),
            Self::Index => index(values),
            Self::Slice => slice(values),
            Self::Print => Ok(Value::Text(printed(&values, false))),
            Self::Println => Ok(Value::Text(printed(&values, true) + "\n")),
            Self::Printf => format(values).map(Value::Text),
            Self::Html => Ok(Value::Text(escaped(&printed(&values, false), html))),
            Self::Js => Ok(Value::Text(escaped(&printed(&values, false), js))),
            Self::Urlquery => Ok(Value::Text(url_query(&printed(&values, false)))),
        }
    }

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, function)| *function == self)
            .map_or("", |(name, _)| name)
    }

    fn last(self, mut values: Vec<Value>) -> Result<Value, String> {
        values
            .pop()
            .ok_or_else(|| format!("{} takes a value", self.name()))
    }

    fn one(self, values: Vec<Value>) -> Result<Value, String> {
        let [one] =
            <[Value; 1]>::try_from(values).map_err(|_| format!("{} takes 1 value", self.name()))?;
        Ok(one)
    }

    fn two(self, values: Vec<Value>) -> Result<[Value; 2], String> {
        <[Value; 2]>::try_from(values).map_err(|_| format!("{} takes 2 values", self.name()))
    }

    fn equal(self, values: &[Value]) -> Result<bool, String> {
        let Some((first, others)) = values
            .split_first()
            .filter(|(_, others)| !others.is_empty())
        else {
            return Err(format!("{} takes 2 values or more", self.name()));
        };
        for other in others {
            if equal(first, other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ordered(self, values: Vec<Value>, fits: fn(Ordering) -> bool) -> Result<Value, String> {
        let [one, other] = self.two(values)?;
        let order = match (&one, &other) {
            (Value::Integer(one), Value::Integer(other)) => one.cmp(other),
            (Value::Text(one), Value::Text(other)) => one.cmp(other),
            _ => {
                return Err(format!(
                    "{} and {} cannot be ordered",
                    one.shown(),
                    other.shown()
                ));
            }
        };
        Ok(Value::Bool(fits(order)))
    }
}

fn equal(one: &Value, other: &Value) -> Result<bool, String> {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Ok(one == other),
        (Value::Text(one), Value::Text(other)) => Ok(one == other),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::Nil, other) | (other, Value::Nil) => Ok(*other == Value::Nil),
        _ => Err(format!(
            "{} and {} cannot be compared",
            one.shown(),
            other.shown()
        )),
    }
}

fn length(value: &Value) -> Result<i64, String> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(values) => values.len(),
        Value::Map(values) => values.len(),
        other => return Err(format!("{} has no length", other.shown())),
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX))
}

fn index(values: Vec<Value>) -> Result<Value, String> {
    let mut values = values.into_iter();
    let first = values.next().ok_or("index takes a value")?;
    values.try_fold(first, |value, key| match (value, key) {
        (Value::List(mut list), Value::Integer(at)) => {
            let place = usize::try_from(at).ok().filter(|place| *place < list.len());
            let place = place
                .ok_or_else(|| format!("{at} is beyond the end of a list of {}", list.len()))?;
            Ok(list.swap_remove(place))
        }
        (Value::Map(map), Value::Text(key)) => {
            let absent = Value::Text(String::new()); // as Go answers for a map of texts
            Ok(map.get(&key).cloned().unwrap_or(absent))
        }
        (value, key) => Err(format!("{} has no place {}", value.shown(), key.shown())),
    })
}

fn slice(values: Vec<Value>) -> Result<Value, String> {
    let mut values = values.into_iter();
    let first = values.next().ok_or("slice takes a value")?;
    let end = usize::try_from(length(&first)?).unwrap_or(0);
    let noun = match &first {
        Value::Text(_) => format!("a text of {end} bytes"),
        _ => format!("a list of {end}"),
    };
    let mut bound = |otherwise: usize| match values.next() {
        None => Ok(otherwise),
        Some(Value::Integer(at)) => usize::try_from(at)
            .ok()
            .filter(|at| *at <= end)
            .ok_or_else(|| format!("{at} is beyond the end of {noun}")),
        Some(other) => Err(format!("{} is no place", other.shown())),
    };
    let (from, to) = (bound(0)?, bound(end)?);
    match first {
        Value::Text(text) => text
            .get(from..to)
            .map(|part| Value::Text(part.to_owned()))
            .ok_or_else(|| format!("{from} to {to} is no part of a text")),
        Value::List(list) => list
            .get(from..to)
            .map(|part| Value::List(part.to_vec()))
            .ok_or_else(|| format!("{from} to {to} is no part of a list")),
        other => Err(format!("{} cannot be cut", other.shown())),
    }
}

/// As Go's Print and Println: with spaces between all, or between two that are no texts.
fn printed(values: &[Value], is_spaced: bool) -> String {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &values[before]);
        let is_text = |value: &Value| matches!(value, Value::Text(_));
        let needs = |before: &Value| is_spaced || !(is_text(before) || is_text(value));
        if before.is_some_and(needs) {
            text.push(' ');
        }
        let _ = write!(text, "{value}"); // writing to a String cannot fail
    }
    text
}

fn format(values: Vec<Value>) -> Result<String, String> {
    let mut values = values.into_iter();
    let Some(Value::Text(pattern)) = values.next() else {
        return Err("printf takes a format".to_owned());
    };
    let mut text = String::new();
    let mut rest = pattern.as_str();
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = after.find(|c: char| !"-0123456789".contains(c));
        let end = end.ok_or_else(|| "a format ends in the middle".to_owned())?;
        let verb = after[end..].chars().next().unwrap_or('%');
        let spec = &after[..end];
        rest = &after[end + verb.len_utf8()..];
        if verb == '%' {
            text.push('%');
            continue;
        }
        let value = values
            .next()
            .ok_or_else(|| format!("%{spec}{verb} has no value"))?;
        let shown = one_verb(verb, &value)
            .ok_or_else(|| format!("%{spec}{verb}: {} is no {}", value.shown(), wanted(verb)))?;
        pad(&mut text, spec, &shown)?;
    }
    text.push_str(rest);
    match values.next() {
        Some(_) => Err("a value is left over after the format".to_owned()),
        None => Ok(text),
    }
}

fn wanted(verb: char) -> &'static str {
    match verb {
        'd' | 'x' => "integer",
        't' => "yes or no",
        _ => "value of this kind",
    }
}

fn one_verb(verb: char, value: &Value) -> Option<String> {
    match (verb, value) {
        ('v', value) => Some(value.to_string()),
        ('s', Value::Text(_) | Value::List(_)) => Some(value.to_string()),
        ('q', Value::Text(text)) => Some(format!("{text:?}")),
        ('d', Value::Integer(number)) => Some(number.to_string()),
        ('x', Value::Integer(number)) => Some(format!("{number:x}")),
        ('t', Value::Bool(value)) => Some(value.to_string()),
        _ => None,
    }
}

/// The widest field a format may ask for.
const MOST_WIDTH: usize = 1024;

fn pad(text: &mut String, spec: &str, shown: &str) -> Result<(), String> {
    let (is_left, digits) = match spec.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, spec),
    };
    let width: usize = match digits {
        "" => 0,
        digits => digits
            .parse()
            .ok()
            .filter(|width| *width <= MOST_WIDTH)
            .ok_or_else(|| format!("%{spec} is no width"))?,
    };
    let missing = width.saturating_sub(shown.chars().count());
    let filler = if digits.starts_with('0') && !is_left {
        "0"
    } else {
        " "
    };
    if is_left {
        text.push_str(shown);
        text.push_str(&filler.repeat(missing));
    } else {
        text.push_str(&filler.repeat(missing));
        text.push_str(shown);
    }
    Ok(())
}

fn escaped(text: &str, escape: fn(char) -> Option<&'static str>) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match escape(letter) {
            Some(replaced) => escaped.push_str(replaced),
            None => escaped.push(letter),
        }
    }
    escaped
}

fn html(letter: char) -> Option<&'static str> {
    match letter {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&#34;"),
        '\'' => Some("&#39;"),
        '\0' => Some("\u{fffd}"),
        _ => None,
    }
}

fn js(letter: char) -> Option<&'static str> {
    match letter {
        '\\' => Some("\\\\"),
        '\'' => Some("\\'"),
        '"' => Some("\\\""),
        '<' => Some("\\u003C"),
        '>' => Some("\\u003E"),
        '&' => Some("\\u0026"),
        '=' => Some("\\u003D"),
        '\n' => Some("\\u000A"),
        '\r' => Some("\\u000D"),
        '\t' => Some("\\u0009"),
        _ => None,
    }
}

fn url_query(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => escaped.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => {
                escaped.push(byte as char)
            }
            byte => {
                let _ = write!(escaped, "%{byte:02X}"); // writing to a String cannot fail
            }
        }
    }
    escaped
}
