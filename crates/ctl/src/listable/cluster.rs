//! Clusters in a list.

use crate::output::Listable;
use crate::record::ClusterRecord;
use crate::select::Fact;
use crate::text::{Field, Tint, without_rule_ids};
use crate::when::ago;

impl ClusterRecord {
    /// Whether its operator is connected: `live`, `gone` or `never`.
    pub(crate) fn operator(&self) -> (&'static str, Tint) {
        match (&self.session, self.session_ended) {
            (Some(_), _) => ("live", Tint::Good),
            (None, Some(_)) => ("gone", Tint::Bad),
            (None, None) => ("never", Tint::Notable),
        }
    }

    /// Whether it gets new machines, and why not.
    pub(crate) fn acquires(&self) -> Field {
        match (self.acquire, self.acquire_block.as_deref()) {
            (true, _) => Field::from("yes"),
            (false, Some(block)) => Field::tinted(block, Tint::Bad),
            (false, None) => Field::tinted("no", Tint::Bad),
        }
    }
}

impl Listable for ClusterRecord {
    const ONE: &'static str = "cluster";
    const MANY: &'static str = "clusters";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "CLUSTER", "OPERATOR", "REPORTED", "NEEDS", "LACKING", "SERVING", "COMING", "LEAVING",
            "ACQUIRES",
        ],
        &["READY", "NOT-READY", "HELD-REPORTS", "LAST-HEARD", "DETAIL"],
    );

    const KEYS: &'static [&'static str] = &[
        "cluster", "operator", "ready", "acquires", "lacking", "needs", "serving", "coming",
        "leaving",
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "cluster" | "id" | "name" => Fact::text(&self.id),
            "operator" => Fact::word(self.operator().0),
            "ready" => Fact::word(self.ready),
            "needs" => Fact::word(self.needs),
            "serving" => Fact::word(self.serving()),
            "coming" => Fact::word(self.coming()),
            "leaving" => Fact::word(self.leaving()),
            "acquires" | "acquire" => Fact::word(&self.acquires().text),
            "short" | "lacking" => Fact::word(0 < self.needs_lacking.max(self.needs_unmet)),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let (operator, tint) = self.operator();
        let rollup = self.rollup.as_ref();
        let short = match self.needs_lacking.max(self.needs_unmet) {
            0 => Field::number(0),
            unmet => Field {
                tint: Tint::Bad,
                ..Field::number(unmet)
            },
        };
        vec![
            self.id.clone().into(),
            Field::tinted(operator, tint),
            Field::from(rollup.map_or_else(String::new, |one| ago(now, one.accepted))),
            Field::number(self.needs),
            short,
            Field::number(self.serving()),
            Field::number(self.coming()),
            Field::number(self.leaving()),
            self.acquires(),
        ]
    }

    fn more(&self, now: i64) -> Vec<Field> {
        let session = self.session.as_ref();
        vec![
            Field::from(if self.ready { "yes" } else { "no" }),
            Field::number(self.not_ready),
            Field::number(self.rollups_held),
            Field::from(session.map_or_else(String::new, |one| ago(now, one.last_frame))),
            Field::from(without_rule_ids(&self.acquire_detail)),
        ]
    }
}
