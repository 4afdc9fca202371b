//! What holds something back, in a list.

use crate::output::Listable;
use crate::record::HoldRecord;
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::ago;

impl Listable for HoldRecord {
    const ONE: &'static str = "rail";
    const MANY: &'static str = "rails";
    const NOTHING: Option<&'static str> =
        Some("nothing is held back: no rail, pause or breaker is engaged");
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["RAIL", "CLUSTER", "SINCE", "REPORTS", "WHY"], &[]);

    const KEYS: &'static [&'static str] = &["rail", "cluster", "reports"];

    fn name(&self) -> String {
        match self.cluster.as_str() {
            "" => self.rail.clone(),
            cluster => format!("{}/{cluster}", self.rail),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.rail == name || self.name() == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "rail" | "name" => Fact::text(&self.rail),
            "cluster" => Fact::text(&self.cluster),
            "reports" => Fact::word(self.reports),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        vec![
            Field::tinted(self.rail.clone(), Tint::Notable),
            self.cluster.clone().into(),
            ago(now, self.since).into(),
            Field::number(self.reports),
            self.why.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        Vec::new()
    }
}
