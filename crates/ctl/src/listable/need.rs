//! Needs in a list, and those that are short in a list of their own.

use serde::Serialize;

use crate::output::Listable;
use crate::record::NeedRecord;
use crate::select::Fact;
use crate::text::{Field, Tint, quantities};
use crate::when::ago;

/// A Need that is short.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Shortfall(pub(crate) NeedRecord);

impl NeedRecord {
    /// Its smallest unit, and whether only whole ones count.
    pub(crate) fn unit(&self) -> String {
        let whole = if self.whole_units { " whole" } else { "" };
        format!("{}{whole}", quantities(&self.min_unit))
    }

    /// Its requirements in a line.
    pub(crate) fn requirements_text(&self) -> String {
        let words = self.requirements.iter().map(ToString::to_string);
        words.collect::<Vec<_>>().join("; ")
    }

    fn verdict_field(&self) -> Field {
        let tint = match (self.satisfied, self.parked) {
            (true, _) => Tint::Good,
            (false, true) => Tint::Notable,
            (false, false) => Tint::Bad,
        };
        Field::tinted(self.verdict(), tint)
    }
}

impl Listable for NeedRecord {
    const ONE: &'static str = "need";
    const MANY: &'static str = "needs";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "CLUSTER", "NEED", "GROUP", "PRIORITY", "WANTS", "MISSING", "MACHINES", "VERDICT",
            "AGE",
        ],
        &[
            "UNIT",
            "DOMAIN",
            "NEW",
            "REQUIREMENTS",
            "WHY",
            "FINGERPRINT",
        ],
    );

    /// By its short name or its fingerprint, with or without its cluster and its group.
    fn is_called(&self, name: &str) -> bool {
        let after_cluster = name.strip_prefix(&self.cluster);
        let rest = after_cluster.and_then(|rest| rest.strip_prefix('/'));
        [Some(name), rest].into_iter().flatten().any(|name| {
            let after = name.strip_prefix(self.need_fingerprint.as_str());
            let group = after.and_then(|rest| rest.strip_prefix('/'));
            name == self.need || after == Some("") || group == Some(self.group.as_str())
        })
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "cluster" => Fact::text(&self.cluster),
            "need" => Fact::text(&self.need),
            "group" => Fact::text(&self.group),
            "priority" => Fact::word(self.priority),
            "verdict" => Fact::word(if self.satisfied { "satisfied" } else { "short" }),
            "reason" => Fact::word(&self.unmet_reason),
            "domain" => Fact::text(&self.same_domain),
            "parked" => Fact::word(self.parked),
            _ => {
                let mut asked = self.requirements.iter().filter(|one| one.key == key);
                asked.next().map(|one| Fact::Texts(one.values.clone()))
            }
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        vec![
            self.cluster.clone().into(),
            self.need.clone().into(),
            self.group.clone().into(),
            Field::number(self.priority),
            quantities(&self.aggregate_resources).into(),
            quantities(&self.residual_deficit).into(),
            Field::number(self.claimed),
            self.verdict_field(),
            ago(now, self.arrival).into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        vec![
            self.unit().into(),
            self.same_domain.clone().into(),
            Field::number(self.bootstrap + self.provision),
            self.requirements_text().into(),
            self.why.clone().into(),
            self.need_fingerprint.clone().into(),
        ]
    }
}

impl Listable for Shortfall {
    const ONE: &'static str = "shortfall";
    const MANY: &'static str = "shortfalls";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "CLUSTER", "NEED", "GROUP", "PRIORITY", "MISSING", "CYCLES", "REASON", "WHY",
        ],
        &["WANTS", "UNIT", "MACHINES", "REQUIREMENTS", "FINGERPRINT"],
    );

    fn is_called(&self, name: &str) -> bool {
        self.0.is_called(name)
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        self.0.fact(key)
    }

    fn fields(&self, _: i64) -> Vec<Field> {
        let need = &self.0;
        vec![
            need.cluster.clone().into(),
            need.need.clone().into(),
            need.group.clone().into(),
            Field::number(need.priority),
            Field::tinted(quantities(&need.residual_deficit), Tint::Bad),
            Field::number(need.age_cycles_unmet),
            need.unmet_reason.clone().into(),
            need.why.clone().into(),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        let need = &self.0;
        vec![
            quantities(&need.aggregate_resources).into(),
            need.unit().into(),
            Field::number(need.claimed),
            need.requirements_text().into(),
            need.need_fingerprint.clone().into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::need_name;

    #[test]
    fn a_need_answers_to_its_short_name_and_to_its_fingerprint() {
        let fingerprint = "p=1|ipb=0|rpb=0|reqs=a/b:1:x;|spr=";
        let need = NeedRecord {
            cluster: "prod/eu".to_owned(),
            need: need_name(fingerprint, "g"),
            need_fingerprint: fingerprint.to_owned(),
            group: "g".to_owned(),
            ..NeedRecord::default()
        };
        let short = need_name(fingerprint, "g");
        for name in [
            short.clone(),
            format!("prod/eu/{short}"),
            fingerprint.to_owned(),
            format!("{fingerprint}/g"),
            format!("prod/eu/{fingerprint}"),
            format!("prod/eu/{fingerprint}/g"),
        ] {
            assert!(need.is_called(&name), "{name}");
        }
        for name in ["", "prod/eu", "prod/eu/", "g", &format!("other/{short}")] {
            assert!(!need.is_called(name), "{name}");
        }
    }
}
