//! Needs in a list, and those of which something is missing or stuck in a list of their own.

use serde::Serialize;

use crate::output::Listable;
use crate::record::NeedRecord;
use crate::select::Fact;
use crate::text::{Field, Tint, quantities};
use crate::when::ago;

/// A Need of which something is missing or stuck.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Shortfall(pub(crate) NeedRecord);

/// What can be selected by besides requirement keys.
const NEED_KEYS: &[&str] = &[
    "cluster", "need", "group", "priority", "status", "reason", "domain", "parked",
];

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

    /// What can be said of it in a word.
    pub(crate) fn status_field(&self) -> Field {
        let tint = match self.status() {
            "served" => Tint::Good,
            "coming" => Tint::Notable,
            _ => Tint::Bad,
        };
        match (self.parked, self.missing.is_empty()) {
            (true, false) => Field::tinted("missing, parked", tint),
            _ => Field::tinted(self.status(), tint),
        }
    }
}

impl Listable for NeedRecord {
    const ONE: &'static str = "need";
    const MANY: &'static str = "needs";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "CLUSTER", "NEED", "GROUP", "PRIORITY", "WANTS", "SERVING", "COMING", "STUCK",
            "MISSING", "STATUS", "FOR",
        ],
        &[
            "MACHINES",
            "AGE",
            "UNIT",
            "DOMAIN",
            "NEW",
            "REQUIREMENTS",
            "WHY",
            "FINGERPRINT",
        ],
    );

    const KEYS: &'static [&'static str] = NEED_KEYS;

    fn name(&self) -> String {
        format!("{}/{}", self.cluster, self.need)
    }

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
            "status" => Fact::word(self.status()),
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
            quantities(&self.serving).into(),
            quantities(&self.coming).into(),
            Field::tinted(quantities(&self.stuck), Tint::Bad),
            Field::tinted(quantities(&self.missing), Tint::Bad),
            self.status_field(),
            ago(now, self.lacking_since).into(),
        ]
    }

    fn more(&self, now: i64) -> Vec<Field> {
        vec![
            Field::number(self.claimed),
            ago(now, self.arrival).into(),
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
            "CLUSTER", "NEED", "GROUP", "PRIORITY", "STUCK", "MISSING", "FOR", "REASON", "WHY",
        ],
        &["WANTS", "UNIT", "MACHINES", "REQUIREMENTS", "FINGERPRINT"],
    );

    const KEYS: &'static [&'static str] = NEED_KEYS;

    fn name(&self) -> String {
        self.0.name()
    }

    fn is_called(&self, name: &str) -> bool {
        self.0.is_called(name)
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        self.0.fact(key)
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let need = &self.0;
        vec![
            need.cluster.clone().into(),
            need.need.clone().into(),
            need.group.clone().into(),
            Field::number(need.priority),
            Field::tinted(quantities(&need.stuck), Tint::Bad),
            Field::tinted(quantities(&need.missing), Tint::Bad),
            ago(now, need.lacking_since).into(),
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
