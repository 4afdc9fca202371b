//! JSONPath as kubectl writes it, for plain paths: `{.items[*].id}`, with text around it and `{range}`.
//!
//! ```text
//! {.items[*].id}                              every id, apart by spaces
//! {range .items[*]}{.id}{"\t"}{.state}{"\n"}{end}
//! .labels.topology\.kubernetes\.io/zone       a key with dots; ['…'] does the same
//! ```
//!
//! Filters, recursion and slices are not known, and are refused rather than guessed.

use std::str::FromStr;

use serde_json::Value;

/// A path to values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(i64),
    All,
}

/// Text with paths in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(Path),
    Range(Path, Vec<Part>),
}

/// Why something is no path or template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a path such as {{.items[*].id}}: {why}")]
pub struct PathRefused {
    text: String,
    why: &'static str,
}

impl Path {
    /// Every value it leads to from here; none if a key is missing on the way.
    pub(crate) fn values<'v>(&self, from: &'v Value) -> Vec<&'v Value> {
        let mut reached = vec![from];
        for step in &self.0 {
            reached = reached.into_iter().flat_map(|at| step.from(at)).collect();
        }
        reached
    }

    /// What it leads to, as text, several apart by `separator`; `None` if it leads to nothing.
    pub(crate) fn text(&self, from: &Value, separator: &str) -> Option<String> {
        let values = self.values(from).into_iter();
        let texts: Vec<String> = values.filter(|value| !value.is_null()).map(text).collect();
        (!texts.is_empty()).then(|| texts.join(separator))
    }
}

impl Step {
    fn from<'v>(&self, at: &'v Value) -> Vec<&'v Value> {
        match (self, at) {
            (Self::Key(key), Value::Object(fields)) => Vec::from_iter(fields.get(key)),
            (Self::Index(index), Value::Array(items)) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { length + index } else { *index };
                let index = usize::try_from(index).ok();
                Vec::from_iter(index.and_then(|index| items.get(index)))
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            _ => Vec::new(),
        }
    }
}

/// A string as it is, everything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl FromStr for Path {
    type Err = PathRefused;

    /// With or without braces, with or without the first dot.
    fn from_str(whole: &str) -> Result<Self, PathRefused> {
        let refused = |why| PathRefused {
            text: whole.to_owned(),
            why,
        };
        let inside = whole.trim();
        let inside = inside.strip_prefix('{').map_or(Ok(inside), |inside| {
            inside
                .strip_suffix('}')
                .ok_or_else(|| refused("a } is missing"))
        })?;
        let mut rest = inside.trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if rest.starts_with("..") {
                return Err(refused("`..` is not known here"));
            }
            if let Some(bracket) = rest.strip_prefix('[') {
                let (step, after) = bracketed(bracket).map_err(&refused)?;
                steps.push(step);
                rest = after;
                continue;
            }
            let dotted = rest.strip_prefix('.');
            if dotted.is_none() && !steps.is_empty() {
                return Err(refused("a dot is missing"));
            }
            let (key, after) = key(dotted.unwrap_or(rest));
            match key.as_str() {
                // `.` alone is the value itself.
                "" if after.is_empty() && steps.is_empty() => {}
                "" if after.starts_with('[') => {}
                "" => return Err(refused("a key is missing")),
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Key(key)),
            }
            rest = after;
        }
        Ok(Self(steps))
    }
}

/// A key up to the next dot or bracket; a backslash takes the character after it as it is.
fn key(text: &str) -> (String, &str) {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (key, &text[at..]),
            '\\' => key.extend(chars.next().map(|(_, c)| c)),
            c => key.push(c),
        }
    }
    (key, "")
}

/// What stands in brackets, after the first of them.
fn bracketed(text: &str) -> Result<(Step, &str), &'static str> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (key, after) = quoted.split_once(quote).ok_or("a quote is missing")?;
            let after = after.strip_prefix(']').ok_or("a ] is missing")?;
            return Ok((Step::Key(key.to_owned()), after));
        }
    }
    let (inside, after) = text.split_once(']').ok_or("a ] is missing")?;
    match inside.trim() {
        "*" => Ok((Step::All, after)),
        index => {
            let index = index.parse();
            let index = index.map_err(|_| "only a number, * or a quoted key may be in brackets")?;
            Ok((Step::Index(index), after))
        }
    }
}

impl Template {
    /// The text for this value.
    pub(crate) fn text(&self, value: &Value) -> String {
        let mut out = String::new();
        write(&self.0, value, &mut out);
        out
    }
}

fn write(parts: &[Part], value: &Value, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => out.push_str(&path.text(value, " ").unwrap_or_default()),
            Part::Range(path, inner) => {
                for each in path.values(value) {
                    write(inner, each, out);
                }
            }
        }
    }
}

impl FromStr for Template {
    type Err = PathRefused;

    fn from_str(whole: &str) -> Result<Self, PathRefused> {
        let refused = |why| PathRefused {
            text: whole.to_owned(),
            why,
        };
        // What is open: the path of each range, and what came before it.
        let mut open: Vec<(Path, Vec<Part>)> = Vec::new();
        let mut parts = Vec::new();
        let mut rest = whole;
        if !whole.contains('{') {
            return Ok(Self(vec![Part::Path(whole.parse()?)]));
        }
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (inside, after) = braced(after).ok_or_else(|| refused("a } is missing"))?;
            rest = after;
            let inside = inside.trim();
            if inside == "end" {
                let (path, before) = open.pop().ok_or_else(|| refused("{end} without {range}"))?;
                let inner = std::mem::replace(&mut parts, before);
                parts.push(Part::Range(path, inner));
            } else if let Some(path) = inside.strip_prefix("range ") {
                open.push((path.parse()?, std::mem::take(&mut parts)));
            } else if let Some(quoted) = inside.strip_prefix('"') {
                let quoted = quoted.strip_suffix('"');
                let quoted = quoted.ok_or_else(|| refused("a quote is missing"))?;
                parts.push(Part::Text(unescaped(quoted)));
            } else {
                parts.push(Part::Path(inside.parse()?));
            }
        }
        if !open.is_empty() {
            return Err(refused("{end} is missing"));
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }
}

/// Up to the brace that closes, and what comes after it. Braces in quotes do not count.
fn braced(text: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let text = text.replace("\\n", "\n").replace("\\t", "\t");
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fleet() -> Value {
        json!({"items": [
            {"id": "m1", "price": 1.5, "labels": {"a.b/zone": "x"}, "host": null},
            {"id": "m2", "price": 2, "labels": {}},
        ]})
    }

    #[track_caller]
    fn check(template: &str, text: &str) {
        let template: Template = template.parse().unwrap();
        assert_eq!(template.text(&fleet()), text);
    }

    #[test]
    fn plain_paths_lead_to_what_kubectl_prints() {
        check("{.items[*].id}", "m1 m2");
        check(".items[*].id", "m1 m2");
        check("items[-1].price", "2");
        check("{.items[0].labels.a\\.b/zone}", "x");
        check("{.items[0].labels['a.b/zone']}", "x");
        check("{.items[0].labels}", "{\"a.b/zone\":\"x\"}");
        check("{.items[5].id}{.nothing}", "");
        check("{.items[0].host}", "");
        check("first: {.items[0].id}{\"\\n\"}", "first: m1\n");
        check(
            "{range .items[*]}{.id}{\"\\t\"}{.price}{\"\\n\"}{end}",
            "m1\t1.5\nm2\t2\n",
        );
    }

    #[test]
    fn what_is_no_plain_path_is_refused() {
        for wrong in [
            "{.items[*}",
            "{.items",
            "{..id}",
            "{.items[?(@.price>1)]}",
            "{.items[0:2]}",
            "{range .items[*]}{.id}",
            "{end}",
            "{.items[*]id}",
        ] {
            let refused = wrong.parse::<Template>();
            assert!(refused.is_err(), "{wrong}: {refused:?}");
        }
    }
}
