//! The scripted operator as tests use it: what is waited for comes, or the test fails and says what came.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Deref;

use bigfleet_scripted_operator::Operator as Scripted;
pub(crate) use bigfleet_scripted_operator::{Heard, Manner, NO_BLOB};
use bigfleet_wire::v1alpha1 as wire;

use super::WITHIN;

pub(crate) struct Operator(Scripted);

impl Deref for Operator {
    type Target = Scripted;

    fn deref(&self) -> &Scripted {
        &self.0
    }
}

impl Operator {
    /// Connects and says Hello; answers once the shard has answered.
    pub(crate) async fn connect(shard: SocketAddr, cluster: &str, manner: Manner) -> Self {
        let operator = Self(Scripted::dial(shard, cluster, manner).await);
        operator
            .sees("an answer to Hello", |heard| {
                !heard.acks.is_empty() || heard.ended.is_some()
            })
            .await;
        operator
    }

    /// Waits until this holds of what it was told.
    pub(crate) async fn sees(&self, what: &str, holds: impl Fn(&Heard) -> bool) -> Heard {
        let heard = self.hears(holds, WITHIN).await;
        heard.unwrap_or_else(|instead| panic!("never: {what}; there is {instead:?}"))
    }

    /// How many machines it was last told to be in a state.
    pub(crate) fn count(&self, state: wire::MachineState) -> usize {
        self.heard().count(state)
    }

    /// Waits until exactly so many machines are Configured, and none is on its way. In the middle of a resync
    /// that may seem so.
    pub(crate) async fn has(&self, machines: usize) {
        let what = format!("{machines} machines of {}", self.cluster);
        self.sees(&what, |heard| {
            let moving = heard.count(wire::MachineState::Configuring)
                + heard.count(wire::MachineState::Draining);
            let serving = heard.count(wire::MachineState::Configured);
            !heard.is_resyncing() && (serving, moving) == (machines, 0)
        })
        .await;
    }
}

/// So much cpu in whole machines of four.
pub(crate) fn cpus(machines: usize) -> wire::CapacityNeed {
    row(machines * 4, 100, "")
}

pub(crate) fn row(cpu: usize, priority: i32, label: &str) -> wire::CapacityNeed {
    let amount = |cpu: usize| BTreeMap::from([("cpu".to_owned(), cpu.to_string())]);
    let requirement = |value: &str| wire::NodeSelectorRequirement {
        key: "row".to_owned(),
        operator: 2,
        values: vec![value.to_owned()],
    };
    wire::CapacityNeed {
        aggregate_resources: amount(cpu),
        min_unit: amount(4.min(cpu)),
        priority,
        // A label no machine has, and which must not be had: it only tells rows apart.
        requirements: Some(label)
            .filter(|label| !label.is_empty())
            .map(requirement)
            .into_iter()
            .collect(),
        ..wire::CapacityNeed::default()
    }
}

/// A row whose machine cannot be created, by a provider with fault hooks.
pub(crate) fn fails_to_be_created() -> wire::CapacityNeed {
    let fault = wire::NodeSelectorRequirement {
        key: "conformance.fault/create".to_owned(),
        operator: wire::node_selector_requirement::Operator::Exists.into(),
        values: Vec::new(),
    };
    wire::CapacityNeed {
        requirements: vec![fault],
        ..row(1, 100, "")
    }
}

/// A row that only one zone can serve.
pub(crate) fn only_in(zone: &str) -> wire::CapacityNeed {
    let zone = wire::NodeSelectorRequirement {
        key: "topology.kubernetes.io/zone".to_owned(),
        operator: wire::node_selector_requirement::Operator::In.into(),
        values: vec![zone.to_owned()],
    };
    wire::CapacityNeed {
        requirements: vec![zone],
        ..row(4, 50, "")
    }
}
