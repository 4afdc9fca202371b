//! Machines in a list.

use std::collections::BTreeMap;

use bigfleet_model::{CAPACITY_TYPE_KEY, CapacityType, INSTANCE_TYPE_KEY, ZONE_KEY};

use crate::output::{Listable, labels};
use crate::record::{MachineRecord, NeedRef};
use crate::select::Fact;
use crate::text::{Field, Tint, quantities};
use crate::when::ago;

impl MachineRecord {
    fn state_field(&self) -> Field {
        let tint = match self.state.as_str() {
            "Configured" => Tint::Good,
            "Creating" | "Configuring" | "Draining" | "Deleting" => Tint::Notable,
            "Failed" => Tint::Bad,
            _ => Tint::Plain,
        };
        Field::tinted(self.state.clone(), tint)
    }

    /// `prod-eu/1f3c9a02`; where it is going has an arrow before it.
    fn need_text(&self) -> String {
        let name = |need: &NeedRef| format!("{}/{}", need.cluster, need.need);
        match (&self.assigned, &self.intent) {
            (Some(need), _) => name(need),
            (None, Some(need)) => format!("→{}", name(need)),
            (None, None) => String::new(),
        }
    }
}

impl Listable for MachineRecord {
    const ONE: &'static str = "machine";
    const MANY: &'static str = "machines";
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &[
            "MACHINE", "STATE", "CLUSTER", "TYPE", "ZONE", "TIER", "$/H", "AGE", "FLAGS",
        ],
        &[
            "NEED", "PRIORITY", "NODE", "HOST", "OFFERS", "WORK", "LABELS", "ERROR",
        ],
    );

    const HAS_LABELS: bool = true;
    const KEYS: &'static [&'static str] = &[
        "machine", "state", "cluster", "type", "zone", "tier", "need", "priority", "work", "flag",
        "price",
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn labels(&self) -> Option<&BTreeMap<String, String>> {
        Some(&self.labels)
    }

    /// As requirements read a machine: its zone and its type are fields, and what it is paid for is one
    /// unless a label says otherwise.
    fn label(&self, key: &str) -> Option<&str> {
        let label = || self.labels.get(key).map(String::as_str);
        match key {
            INSTANCE_TYPE_KEY if !self.instance_type.is_empty() => Some(&self.instance_type),
            ZONE_KEY if !self.zone.is_empty() => Some(&self.zone),
            CAPACITY_TYPE_KEY => label().or_else(|| {
                let said = self.capacity_type.as_str();
                Some(said).filter(|said| *said != CapacityType::Unspecified.word())
            }),
            _ => label(),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name
    }

    fn fact(&self, key: &str) -> Option<Fact> {
        match key {
            "machine" | "id" | "name" => Fact::text(&self.id),
            "state" => Fact::word(&self.state),
            "cluster" => Fact::text(self.cluster()),
            "type" | "instance-type" => Fact::text(&self.instance_type),
            "zone" => Fact::text(&self.zone),
            "tier" | "capacity-type" => Fact::word(&self.capacity_type),
            "need" => self.need().and_then(|need| Fact::text(&need.need)),
            "priority" => self.need().and_then(|need| Fact::word(need.priority)),
            "work" => self.work.as_ref().and_then(Fact::word),
            "price" => Fact::word(self.price_per_hour),
            "leaving" => self.leaving.as_ref().and_then(|one| Fact::word(&one.word)),
            // What `wait --for=out` asks for.
            "out" => {
                let out = self.leaving.as_ref().filter(|leaving| leaving.is_out());
                out.map(|_| Fact::Word("true".to_owned()))
            }
            "flag" | "flags" => {
                let flags = self.flags().into_iter();
                let flags: Vec<String> = flags.map(|(name, _)| name.to_owned()).collect();
                (!flags.is_empty()).then_some(Fact::Texts(flags))
            }
            label => self
                .label(label)
                .map(|value| Fact::Texts(vec![value.to_owned()])),
        }
    }

    fn fields(&self, now: i64) -> Vec<Field> {
        let flags: Vec<&str> = self.flags().into_iter().map(|(name, _)| name).collect();
        vec![
            self.id.clone().into(),
            self.state_field(),
            self.cluster().into(),
            self.instance_type.clone().into(),
            self.zone.clone().into(),
            self.capacity_type.clone().into(),
            Field::number(format!("{:.4}", self.price_per_hour)),
            ago(now, self.state_since).into(),
            Field::tinted(flags.join(","), Tint::Notable),
        ]
    }

    fn more(&self, _: i64) -> Vec<Field> {
        let priority = self.need().map(|need| Field::number(need.priority));
        let host = self.host.as_ref().map(|host| host.reference.clone());
        vec![
            self.need_text().into(),
            priority.unwrap_or_default(),
            self.node.clone().unwrap_or_default().into(),
            host.unwrap_or_default().into(),
            quantities(&self.resources).into(),
            self.work.clone().unwrap_or_default().into(),
            labels(&self.labels).into(),
            Field::tinted(self.last_error.clone(), Tint::Bad),
        ]
    }
}
