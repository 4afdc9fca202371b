//! Events in a list.

use crate::output::Listable;
use crate::record::EventRecord;
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::{ago, rfc3339};

impl Listable for EventRecord {
    const ONE: &'static str = "event";
    const MANY: &'static str = "events";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["AGO", "SEVERITY", "KIND", "CLUSTER", "WHAT"],
        &["TIME", "SEQUENCE"],
    );

    const KEYS: &'static [&'static str] = &["cluster", "kind", "severity", "sequence"];

    fn name(&self) -> String {
        self.sequence.to_string()
    }

    fn is_called(&self, name: &str) -> bool {
        self.name() == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "cluster" => self.cluster.as_ref().and_then(|one| Fact::text(one)),
            "kind" => Fact::word(&self.kind),
            "severity" => Fact::word(&self.severity),
            "sequence" => Fact::word(self.sequence),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let tint = match self.severity.as_str() {
            "error" => Tint::Bad,
            "warning" => Tint::Notable,
            _ => Tint::Plain,
        };
        vec![
            ago(now, self.time).into(),
            Field::tinted(self.severity.clone(), tint),
            self.kind.clone().into(),
            self.cluster.clone().unwrap_or_default().into(),
            self.text.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![
            self.time.map(rfc3339).unwrap_or_default().into(),
            Field::number(self.sequence),
        ]
    }
}
