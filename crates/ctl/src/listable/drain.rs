//! Machines that leave, in a list.

use crate::output::Listable;
use crate::record::{DrainRecord, PlannedDrain};
use crate::select::Fact;
use crate::text::{Field, Tint};
use crate::when::{ago, ahead};

/// Replacements, as many as fit into a cell.
fn replacements(ids: &[String]) -> String {
    match ids {
        [] => String::new(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} +{}", rest.len()),
    }
}

fn phase_field(phase: &str) -> Field {
    let (words, tint) = match phase {
        "NoReplacement" => ("no replacement", Tint::Bad),
        "ReplacementComing" => ("replacement coming", Tint::Notable),
        "Draining" => ("draining", Tint::Notable),
        "Out" => ("out", Tint::Good),
        other => (other, Tint::Plain),
    };
    Field::tinted(words.to_owned(), tint)
}

impl Listable for DrainRecord {
    const ONE: &'static str = "drain";
    const MANY: &'static str = "drains";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "MACHINE",
            "CLUSTER",
            "PHASE",
            "SINCE",
            "REPLACEMENT",
            "WORD",
            "DEADLINE-IN",
            "STATUS",
        ],
        &["BY", "REASON", "MARKED", "STATE"],
    );

    const KEYS: &'static [&'static str] = &[
        "machine", "cluster", "state", "phase", "word", "source", "by",
    ];

    fn name(&self) -> String {
        self.machine.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.machine == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "machine" | "id" | "name" => Fact::text(&self.machine),
            "cluster" => Fact::text(&self.cluster),
            "state" => Fact::word(&self.state),
            "phase" => Fact::word(&self.leaving.phase),
            "word" => Fact::word(&self.leaving.word),
            "source" => Fact::word(&self.leaving.source),
            "by" => Fact::text(&self.leaving.requested_by),
            "out" => self.leaving.is_out().then(|| Fact::Word("true".to_owned())),
            _ => None,
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let leaving = &self.leaving;
        let deadline = match leaving.deadline {
            Some(deadline) if deadline <= now => "passed".to_owned(),
            deadline => ahead(now, deadline),
        };
        vec![
            self.machine.clone().into(),
            self.cluster.clone().into(),
            phase_field(&leaving.phase),
            ago(now, leaving.phase_since).into(),
            replacements(&leaving.replacements).into(),
            leaving.word.clone().into(),
            deadline.into(),
            leaving.status.clone().into(),
        ]
    }

    fn more(&self, now: i64) -> Vec<Field> {
        let leaving = &self.leaving;
        let by = match leaving.requested_by.as_str() {
            "" => leaving.source.clone(),
            who => who.to_owned(),
        };
        vec![
            by.into(),
            leaving.reason.clone().into(),
            ago(now, leaving.since).into(),
            self.state.clone().into(),
        ]
    }
}

impl Listable for PlannedDrain {
    const ONE: &'static str = "drain";
    const MANY: &'static str = "drains";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "MACHINE",
            "CLUSTER",
            "NEED",
            "REPLACEMENT",
            "$/H",
            "$/H-AFTER",
            "STATUS",
        ],
        &["PHASE", "GANG"],
    );

    const KEYS: &'static [&'static str] = &["machine", "cluster", "need"];

    fn name(&self) -> String {
        self.machine.clone()
    }

    fn is_called(&self, name: &str) -> bool {
        self.machine == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "machine" => Fact::text(&self.machine),
            "cluster" => Fact::text(&self.cluster),
            "need" => Fact::text(&self.need),
            _ => None,
        }
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        let after = match self.replacements.as_slice() {
            [] => Field::number("-"),
            _ => Field::number(format!("{:.4}", self.replacement_price_per_hour)),
        };
        let tint = if self.is_unreplaced() || self.passed_over {
            Tint::Bad
        } else {
            Tint::Plain
        };
        vec![
            self.machine.clone().into(),
            self.cluster.clone().into(),
            self.need.clone().into(),
            replacements(&self.replacements).into(),
            Field::number(format!("{:.4}", self.price_per_hour)),
            after,
            Field::tinted(self.status.clone(), tint),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![phase_field(&self.phase), self.group.clone().into()]
    }
}
