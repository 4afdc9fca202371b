//! Operations in flight in a list.

use crate::output::Listable;
use crate::record::WorkRecord;
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::{ago, ahead};

impl Listable for WorkRecord {
    const ONE: &'static str = "work";
    const MANY: &'static str = "work";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "OPERATION",
            "AGE",
            "WORK",
            "MACHINE",
            "CLUSTER",
            "WAITS-FOR",
            "SINCE",
            "TRIES",
            "ERROR",
        ],
        &["NEED", "REASON", "CYCLE", "ENDS-IN", "PROVIDER-OPERATION"],
    );

    const KEYS: &'static [&'static str] = &[
        "operation",
        "provider-operation",
        "machine",
        "work",
        "stage",
        "cluster",
        "need",
        "reason",
        "tries",
    ];

    fn name(&self) -> String {
        self.operation.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        [&self.operation, &self.machine, &self.provider_operation].contains(&&name.to_owned())
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "operation" | "name" => Fact::text(&self.operation),
            "provider-operation" => Fact::text(&self.provider_operation),
            "machine" => Fact::text(&self.machine),
            "work" | "kind" => Fact::word(&self.work),
            "stage" | "waits-for" => Fact::word(&self.stage),
            "cluster" => Fact::text(&self.cluster),
            "need" => self
                .intent
                .as_ref()
                .and_then(|intent| Fact::text(&intent.need)),
            "reason" => Fact::word(&self.reason),
            "tries" => Fact::word(self.attempts),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let stage = match self.stage.as_str() {
            "BackingOff" | "Paused" => Tint::Notable,
            _ => Tint::Plain,
        };
        vec![
            self.operation.clone().into(),
            ago(now, self.committed).into(),
            self.work.clone().into(),
            self.machine.clone().into(),
            self.cluster.clone().into(),
            Field::tinted(self.stage.clone(), stage),
            ago(now, self.stage_since).into(),
            Field::number(self.attempts),
            Field::tinted(self.last_error.clone(), Tint::Bad),
        ]
    }

    fn more(&self, now: i64) -> Vec<Field> {
        let need = self.intent.as_ref();
        let ends = self.deadline.map(|_| ahead(now, self.deadline));
        vec![
            need.map(|need| need.need.clone())
                .unwrap_or_default()
                .into(),
            self.reason.clone().into(),
            Field::number(self.decided_cycle),
            ends.unwrap_or_default().into(),
            self.provider_operation.clone().into(),
        ]
    }
}
