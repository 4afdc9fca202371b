//! Pauses in a list.

use crate::output::Listable;
use crate::record::PauseRecord;
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::{ago, ahead};

impl Listable for PauseRecord {
    const ONE: &'static str = "pause";
    const MANY: &'static str = "pauses";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["PAUSE", "SCOPE", "SINCE", "ENDS-IN", "BY", "REASON"],
        &["ORIGIN", "WITHHELD"],
    );

    const KEYS: &'static [&'static str] = &["pause", "scope", "origin", "by", "withheld"];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "pause" | "id" | "name" => Fact::text(&self.id),
            "scope" => Fact::text(&self.scope),
            "origin" => Fact::word(&self.origin),
            "by" => Fact::text(&self.requested_by),
            "withheld" => Fact::word(self.withheld_total),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let by = match self.requested_by.as_str() {
            "" => self.origin.to_lowercase(),
            who => who.to_owned(),
        };
        let ends = match self.expires {
            None => "when lifted".to_owned(),
            expires => ahead(now, expires),
        };
        vec![
            self.id.clone().into(),
            Field::tinted(self.scope.clone(), Tint::Notable),
            ago(now, self.started).into(),
            ends.into(),
            by.into(),
            self.reason.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![
            self.origin.clone().into(),
            Field::number(self.withheld_total),
        ]
    }
}
