//! JSON with one entry per line: people can read it, and two of them can be compared line by line.

use serde::Serialize;

/// An object in the making.
pub(crate) struct Lines {
    text: String,
    empty: bool,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self {
            text: "{".to_owned(),
            empty: true,
        }
    }

    /// A key with a value on its line.
    pub(crate) fn value(&mut self, key: &str, value: &impl Serialize) {
        self.key(key);
        self.text += &json(value);
    }

    /// A key with a list, an item a line.
    pub(crate) fn list<T: Serialize>(&mut self, key: &str, items: impl IntoIterator<Item = T>) {
        self.key(key);
        self.text.push('[');
        let mut empty = true;
        for item in items {
            self.text += if empty { "\n    " } else { ",\n    " };
            self.text += &json(&item);
            empty = false;
        }
        self.text += if empty { "]" } else { "\n  ]" };
    }

    pub(crate) fn finish(mut self) -> String {
        self.text += "\n}\n";
        self.text
    }

    fn key(&mut self, key: &str) {
        self.text += if self.empty { "\n  " } else { ",\n  " };
        self.text += &format!("\"{key}\": ");
        self.empty = false;
    }
}

#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a record is JSON")
}
