//! Decisions in a list.

use crate::output::Listable;
use crate::record::ActionRecord;
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::ago;

impl ActionRecord {
    /// How its outcome looks.
    pub(crate) fn outcome_tint(&self) -> Tint {
        match self.outcome.as_str() {
            "success" => Tint::Good,
            "committed" => Tint::Plain,
            "suppressed" | "superseded" => Tint::Notable,
            _ => Tint::Bad,
        }
    }

    /// The cluster it is for, or else the one it takes from.
    pub(crate) fn cluster(&self) -> &str {
        match self.cluster.as_str() {
            "" => &self.from_cluster,
            cluster => cluster,
        }
    }
}

impl Listable for ActionRecord {
    const ONE: &'static str = "action";
    const MANY: &'static str = "actions";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "AGO", "CYCLE", "ACTION", "MACHINE", "CLUSTER", "NEED", "OUTCOME", "WHY",
        ],
        &[
            "SEQUENCE",
            "FROM",
            "PRIORITY",
            "GRACE",
            "REASON",
            "OPERATION",
        ],
    );

    const KEYS: &'static [&'static str] = &[
        "action",
        "machine",
        "cluster",
        "from",
        "need",
        "outcome",
        "reason",
        "cycle",
        "operation",
        "priority",
        "sequence",
    ];

    fn name(&self) -> String {
        self.sequence.to_string()
    }

    fn is_called(&self, name: &str) -> bool {
        self.sequence.to_string() == name || self.machine == name || self.operation == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "action" | "kind" => self.kind.as_ref().and_then(Fact::word),
            "machine" => Fact::text(&self.machine),
            "cluster" => Fact::text(&self.cluster),
            "from" | "from-cluster" => Fact::text(&self.from_cluster),
            "need" => self.need.as_deref().and_then(Fact::text),
            "outcome" => Fact::word(&self.outcome),
            "reason" => Fact::word(&self.reason),
            "cycle" => Fact::word(self.cycle),
            "priority" => self.priority.and_then(Fact::word),
            "sequence" => Fact::word(self.sequence),
            "operation" => Fact::text(&self.operation),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        vec![
            ago(now, self.time).into(),
            Field::number(self.cycle),
            self.kind.clone().unwrap_or_default().into(),
            self.machine.clone().into(),
            self.cluster().into(),
            self.need.clone().unwrap_or_default().into(),
            Field::tinted(self.outcome.clone(), self.outcome_tint()),
            self.detail.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        let grace = match self.grace_seconds {
            0 => Field::default(),
            seconds => Field::number(format!("{seconds}s")),
        };
        vec![
            Field::number(self.sequence),
            self.from_cluster.clone().into(),
            self.priority.map(Field::number).unwrap_or_default(),
            grace,
            self.reason.clone().into(),
            self.operation.clone().into(),
        ]
    }
}
