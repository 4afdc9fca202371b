//! Writing: a fleet to a text that reads back equal.
//!
//! What has its default is left out, so that what is unusual about a machine stands out.

use crate::{lines::Lines, moment::written};
use bigfleet_model::{
    Amounts, Assignment, CapacityType, Cluster, ClusterId, Disruption, Dollars, Fleet,
    FleetMachine, Holds, Intent, Leaving, Need, Price, Shape, Time, quantity::format_milli,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, time::Duration};

/// The fleet as JSON.
pub fn write(fleet: &Fleet) -> String {
    let mut lines = Lines::new();
    lines.value("now", &moment(fleet.now));
    lines.list("machines", fleet.machines.values().map(MachineRecord::of));
    let clusters = fleet.clusters.iter();
    lines.list("clusters", clusters.map(ClusterRecord::of));
    if fleet.holds != Holds::default() {
        lines.value("holds", &HoldsRecord::of(fleet.holds));
    }
    lines.finish()
}

/// A row as the file has it.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub(crate) fn need_value(need: &Need) -> serde_json::Value {
    serde_json::to_value(NeedRecord::of(need)).expect("a record is JSON")
}

/// A machine as the file has it.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub(crate) fn machine_value(machine: &FleetMachine) -> serde_json::Value {
    serde_json::to_value(MachineRecord::of(machine)).expect("a record is JSON")
}

fn moment(time: Time) -> Box<RawValue> {
    written(time.nanos().into())
}

fn span(span: Duration) -> Box<RawValue> {
    // The longest span is 20 digits of seconds, so its nanoseconds can be counted.
    written(span.as_nanos().cast_signed())
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_true(flag: &bool) -> bool {
    *flag
}

#[derive(Serialize)]
struct MachineRecord<'a> {
    id: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostRecord<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instance_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    zone: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_type: Option<&'static str>,
    #[serde(skip_serializing_if = "is_default")]
    price_per_hour: f64,
    #[serde(skip_serializing_if = "is_default")]
    interruption_probability: f64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    allocatable: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    last_error: &'a str,
    #[serde(skip_serializing_if = "is_false")]
    not_ready: bool,
    #[serde(skip_serializing_if = "is_false")]
    unavailable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    disruption: Option<u8>,
    #[serde(skip_serializing_if = "is_false")]
    reversible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaving: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned: Option<CommitmentRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<CommitmentRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_since: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct HostRecord<'a> {
    provider: &'a str,
    #[serde(rename = "ref")]
    reference: &'a str,
}

#[derive(Serialize)]
struct CommitmentRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    need_fingerprint: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    priority: i32,
    #[serde(serialize_with = "dollars")]
    interruption_penalty_dollars: Dollars,
    #[serde(serialize_with = "dollars")]
    reclamation_penalty_dollars: Dollars,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_price: Option<f64>,
}

/// JSON has no infinity.
fn dollars<S: Serializer>(dollars: &Dollars, serializer: S) -> Result<S::Ok, S::Error> {
    if *dollars == Dollars::PINNED {
        serializer.serialize_str("+Inf")
    } else {
        serializer.serialize_f64(dollars.dollars())
    }
}

impl<'a> MachineRecord<'a> {
    fn of(held: &'a FleetMachine) -> Self {
        let machine = &held.machine;
        let Shape {
            instance_type,
            zone,
            capacity_type,
            labels,
            resources,
            allocatable,
        } = &**machine.shape();
        let assigned = Some(machine.assignment()).filter(|assigned| !is_default(*assigned));
        Self {
            id: machine.id().as_str(),
            state: machine.state().word(),
            cluster: machine.cluster().map(ClusterId::as_str),
            host: machine.host().map(|host| HostRecord {
                provider: &host.provider,
                reference: &host.reference,
            }),
            instance_type,
            zone,
            capacity_type: (*capacity_type != CapacityType::Unspecified)
                .then(|| capacity_type.word()),
            price_per_hour: machine.price().dollars_per_hour(),
            interruption_probability: machine.interruption().per_hour(),
            resources: quantities(resources),
            allocatable: allocatable.as_ref().map(given).unwrap_or_default(),
            labels,
            last_error: machine.last_error(),
            not_ready: held.not_ready,
            unavailable: held.unavailable,
            disruption: held.disruption.map(Disruption::level),
            reversible: held.reversible,
            leaving: held.leaving.map(Leaving::word),
            assigned: assigned.map(CommitmentRecord::assigned),
            intent: machine.intent().map(CommitmentRecord::intent),
            idle_since: held.idle_since.map(moment),
        }
    }
}

impl<'a> CommitmentRecord<'a> {
    fn assigned(assigned: &'a Assignment) -> Self {
        Self {
            cluster: None,
            need_fingerprint: assigned.fingerprint.as_str(),
            group: assigned.group.as_str(),
            priority: assigned.terms.priority,
            interruption_penalty_dollars: assigned.terms.interruption,
            reclamation_penalty_dollars: assigned.terms.reclamation,
            keep_price: assigned.keep_price.map(Price::dollars_per_hour),
        }
    }

    fn intent(intent: &'a Intent) -> Self {
        Self {
            cluster: Some(intent.need.cluster.as_str()),
            need_fingerprint: intent.need.fingerprint.as_str(),
            group: intent.need.group.as_str(),
            priority: intent.terms.priority,
            interruption_penalty_dollars: intent.terms.interruption,
            reclamation_penalty_dollars: intent.terms.reclamation,
            keep_price: intent.keep_price.map(Price::dollars_per_hour),
        }
    }
}

pub(crate) fn quantities(amounts: &Amounts) -> BTreeMap<&str, String> {
    let text = amounts.iter();
    text.map(|(name, milli)| (name.as_str(), format_milli(milli)))
        .collect()
}

/// An allocatable that was given but is worth nothing must not read back as not given (M-2).
fn given(allocatable: &Amounts) -> BTreeMap<&str, String> {
    if allocatable.is_zero() {
        BTreeMap::from([("cpu", "0".to_owned())])
    } else {
        quantities(allocatable)
    }
}

#[derive(Serialize)]
struct ClusterRecord<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "is_true")]
    ready: bool,
    #[serde(skip_serializing_if = "is_true")]
    acquire: bool,
    needs: Vec<NeedRecord<'a>>,
}

impl<'a> ClusterRecord<'a> {
    fn of((id, cluster): (&'a ClusterId, &'a Cluster)) -> Self {
        Self {
            id: id.as_str(),
            ready: cluster.ready,
            acquire: cluster.acquire,
            needs: cluster.needs().iter().map(NeedRecord::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct NeedRecord<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requirements: Vec<RequirementRecord<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spread: Vec<SpreadRecord<'a>>,
    priority: i32,
    interruption_penalty_bucket: u8,
    reclamation_penalty_bucket: u8,
    aggregate_resources: BTreeMap<&'a str, String>,
    min_unit: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "is_false")]
    parked: bool,
    #[serde(skip_serializing_if = "is_false")]
    whole_units: bool,
}

#[derive(Serialize)]
struct RequirementRecord<'a> {
    key: &'a str,
    operator: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    values: &'a [String],
}

#[derive(Serialize)]
struct SpreadRecord<'a> {
    topology_key: &'a str,
    max_skew: i32,
    when_unsatisfiable: &'static str,
}

impl<'a> NeedRecord<'a> {
    fn of(need: &'a Need) -> Self {
        let profile = &need.row.profile;
        let requirements = profile.requirements().iter();
        let spread = profile.spread().iter();
        Self {
            requirements: requirements
                .map(|requirement| RequirementRecord {
                    key: requirement.key(),
                    operator: requirement.operator().word(),
                    values: requirement.values(),
                })
                .collect(),
            spread: spread
                .map(|spread| SpreadRecord {
                    topology_key: spread.topology_key(),
                    max_skew: spread.max_skew(),
                    when_unsatisfiable: spread.when().word(),
                })
                .collect(),
            priority: profile.priority(),
            interruption_penalty_bucket: profile.interruption().number(),
            reclamation_penalty_bucket: profile.reclamation().number(),
            aggregate_resources: quantities(&need.row.aggregate),
            min_unit: quantities(&need.row.min_unit),
            group: need.row.group.as_str(),
            arrival: need.arrival.map(moment),
            parked: need.parked,
            whole_units: need.row.whole_units,
        }
    }
}

#[derive(Serialize)]
struct HoldsRecord {
    #[serde(rename = "OnDemand")]
    on_demand: Option<Box<RawValue>>,
    #[serde(rename = "Spot")]
    spot: Option<Box<RawValue>>,
}

impl HoldsRecord {
    fn of(holds: Holds) -> Self {
        Self {
            on_demand: holds.on_demand.map(span),
            spot: holds.spot.map(span),
        }
    }
}
