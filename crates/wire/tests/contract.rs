//! The compiled descriptors against the contract, in both directions.
//!
//! ```text
//! wire-fields.csv     what every peer relies on ─┐
//! wire-additions.csv  what we added             ─┼─ equals ─ proto/*.proto as compiled
//! the tables below    reserved, oneofs, methods ─┘
//! ```
//!
//! Both directions matter: a missing row breaks a peer now, an unlisted one breaks a peer the day
//! the shared contract gives its number another meaning.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says so by panicking"
)]

#[path = "contract/surface.rs"]
mod surface;

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_wire::FILE_DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet,
};
use surface::{Surface, braced, table};

const CONTRACT: &str = include_str!("wire-fields.csv");
const ADDITIONS: &str = include_str!("wire-additions.csv");

/// The first number of our own, in messages and enums of the shared contract.
const FIRST_ADDITION: i32 = 1000;

/// Messages without fields have no rows in the table.
const EMPTY: [&str; 7] = [
    "AssignDomainResponse",
    "JoinRaftClusterResponse",
    "ListDomainAssignmentsRequest",
    "ListShardsRequest",
    "RemoveShardResponse",
    "SnapshotSaveRequest",
    "UnassignDomainResponse",
];
const EMPTY_ADDITIONS: [&str; 11] = [
    "FinishRestoreRequest",
    "FinishRestoreResponse",
    "InspectRailsRequest",
    "InspectReplicaRequest",
    "InspectStatusRequest",
    "ListDomainsRequest",
    "ListReplicasRequest",
    "ListClustersRequest",
    "ListInstructionsRequest",
    "RemovePeerResponse",
    "PauseScope.All",
];

const IMPORTS: [(&str, &[&str]); 5] = [
    ("capacity.proto", &[]),
    ("provider.proto", &[]),
    ("shard.proto", &["capacity.proto", "provider.proto"]),
    ("coordinator.proto", &["capacity.proto", "provider.proto"]),
    ("shardread.proto", &["capacity.proto", "provider.proto"]),
];

const RESERVED: [(&str, &[i32]); 9] = [
    ("AvailableCapacityUpdate", &[7, 8, 9]),
    ("CapacityNeed", &[4]),
    ("CreateRequest", &[2]),
    ("Hello", &[2]),
    ("ListFilter", &[2, 3]),
    ("Machine", &[11]),
    ("NodeStateUpdate", &[7]),
    ("ShardSummary", &[5, 6]),
    ("Shortfall", &[4]),
];

const ONEOFS: [(&str, &str); 13] = [
    (
        "OperatorMessage.payload",
        "hello rollup bootstrap_response reclaim_ack drain_report node_report",
    ),
    (
        "ShardMessage.payload",
        "ack bootstrap_request reclaim_instruction node_state_update available_capacity \
         reclaim_cancel need_status",
    ),
    ("SnapshotSaveChunk.payload", "meta_json data"),
    (
        "CoordinatorInstruction.payload",
        "assign_domain unassign_domain reassign_speculative cross_shard_drain transfer_ownership",
    ),
    ("InspectNeedsResponse.frame", "header need"),
    ("InspectMachinesResponse.frame", "header machine"),
    ("InspectClustersResponse.frame", "header cluster"),
    ("InspectWorkResponse.frame", "header work"),
    ("InspectActionsResponse.frame", "header action"),
    ("InspectEventsResponse.frame", "header event"),
    ("ExportFleetResponse.frame", "header data end"),
    ("PauseScope.scope", "all cluster_id provider_address"),
    ("ResumeRequest.target", "pause_id scope"),
];

const METHODS: [&str; 42] = [
    "provider.proto CapacityProvider.Create(CreateRequest) -> TransitionAck",
    "provider.proto CapacityProvider.Configure(ConfigureRequest) -> TransitionAck",
    "provider.proto CapacityProvider.Drain(DrainRequest) -> TransitionAck",
    "provider.proto CapacityProvider.Delete(DeleteRequest) -> TransitionAck",
    "provider.proto CapacityProvider.Get(MachineRef) -> Machine",
    "provider.proto CapacityProvider.List(ListFilter) -> MachineList",
    "shard.proto Shard.Session(stream OperatorMessage) -> stream ShardMessage",
    "shardread.proto ShardRead.InspectNeeds(InspectNeedsRequest) -> stream InspectNeedsResponse",
    "coordinator.proto Coordinator.ReportShard(ShardReport) -> ReportAck",
    "coordinator.proto Coordinator.AssignDomain(AssignDomainRequest) -> AssignDomainResponse",
    "coordinator.proto Coordinator.UnassignDomain(UnassignDomainRequest) -> UnassignDomainResponse",
    "coordinator.proto Coordinator.RemoveShard(RemoveShardRequest) -> RemoveShardResponse",
    "coordinator.proto Coordinator.ListShards(ListShardsRequest) -> ListShardsResponse",
    "coordinator.proto Coordinator.ListDomainAssignments(ListDomainAssignmentsRequest) \
     -> ListDomainAssignmentsResponse",
    "coordinator.proto Coordinator.ListShardReports(ListShardReportsRequest) \
     -> ListShardReportsResponse",
    "coordinator.proto Coordinator.JoinRaftCluster(JoinRaftClusterRequest) \
     -> JoinRaftClusterResponse",
    "coordinator.proto Coordinator.SnapshotSave(SnapshotSaveRequest) -> stream SnapshotSaveChunk",
    // Ours.
    "coordinator.proto CoordinatorAdmin.InspectReplica(InspectReplicaRequest) \
     -> InspectReplicaResponse",
    "coordinator.proto CoordinatorAdmin.ListReplicas(ListReplicasRequest) -> ListReplicasResponse",
    "coordinator.proto CoordinatorAdmin.ListDomains(ListDomainsRequest) -> ListDomainsResponse",
    "coordinator.proto CoordinatorAdmin.ListClusters(ListClustersRequest) -> ListClustersResponse",
    "coordinator.proto CoordinatorAdmin.ListInstructions(ListInstructionsRequest) \
     -> ListInstructionsResponse",
    "coordinator.proto CoordinatorAdmin.ChangeDomains(ChangeDomainsRequest) -> ChangeDomainsResponse",
    "coordinator.proto CoordinatorAdmin.RemovePeer(RemovePeerRequest) -> RemovePeerResponse",
    "coordinator.proto CoordinatorAdmin.TransferLeader(TransferLeaderRequest) \
     -> TransferLeaderResponse",
    "coordinator.proto CoordinatorAdmin.FinishRestore(FinishRestoreRequest) -> FinishRestoreResponse",
    "coordinator.proto CoordinatorPeer.Exchange(PeerCall) -> PeerAnswer",
    "shardread.proto ShardRead.InspectMachines(InspectMachinesRequest) \
     -> stream InspectMachinesResponse",
    "shardread.proto ShardRead.InspectClusters(InspectClustersRequest) \
     -> stream InspectClustersResponse",
    "shardread.proto ShardRead.InspectWork(InspectWorkRequest) -> stream InspectWorkResponse",
    "shardread.proto ShardRead.InspectActions(InspectActionsRequest) -> stream InspectActionsResponse",
    "shardread.proto ShardRead.InspectRails(InspectRailsRequest) -> InspectRailsResponse",
    "shardread.proto ShardRead.InspectStatus(InspectStatusRequest) -> InspectStatusResponse",
    "shardread.proto ShardRead.InspectEvents(InspectEventsRequest) -> stream InspectEventsResponse",
    "shardread.proto ShardRead.ExplainNeed(ExplainNeedRequest) -> ExplainNeedResponse",
    "shardread.proto ShardRead.ExportFleet(ExportFleetRequest) -> stream ExportFleetResponse",
    "shardread.proto ShardAdmin.Pause(PauseRequest) -> PauseResponse",
    "shardread.proto ShardAdmin.Resume(ResumeRequest) -> ResumeResponse",
    "shardread.proto ShardAdmin.RetireMachine(RetireMachineRequest) -> RetireMachineResponse",
    "shardread.proto ShardAdmin.DrainMachines(DrainMachinesRequest) -> DrainMachinesResponse",
    "shardread.proto ShardAdmin.UndrainMachines(UndrainMachinesRequest) -> UndrainMachinesResponse",
    "shardread.proto ShardAdmin.ReleaseCluster(ReleaseClusterRequest) -> ReleaseClusterResponse",
];

#[test]
fn the_descriptors_are_the_contract_and_our_additions() {
    assert_eq!(check(&compiled()), Vec::<String>::new());
}

#[test]
fn the_contract_has_all_its_rows() {
    assert_eq!(table(CONTRACT).len(), 276);
}

/// Without this a checker that says nothing would pass for a contract that holds.
#[test]
fn the_checker_reports_every_kind_of_breach() {
    for (breach, expected) in breaches() {
        let mut tampered = compiled();
        breach(&mut tampered);
        let problems = check(&tampered);
        assert!(
            problems.iter().any(|p| p == expected),
            "{expected:?} is not in {problems:#?}"
        );
    }
}

type Breach = fn(&mut FileDescriptorSet);

fn breaches() -> [(Breach, &'static str); 12] {
    [
        (
            |set| field(set, "Hello", "cluster_id").number = Some(9),
            "shard.proto Hello.cluster_id is 9 string, not 1 string",
        ),
        (
            |set| field(set, "Machine", "zone").r#type = Some(Type::Bytes.into()),
            "provider.proto Machine.zone is 5 bytes, not 5 string",
        ),
        (
            |set| field(set, "ShardReport", "shortfalls").label = Some(Label::Optional.into()),
            "coordinator.proto ShardReport.shortfalls is 6 Shortfall, not 6 repeated Shortfall",
        ),
        (
            |set| field(set, "HostRef", "ref").name = Some("reference".to_owned()),
            "provider.proto HostRef.ref is missing",
        ),
        (
            |set| message(set, "Machine").reserved_range.clear(),
            "Machine reserves {}, not {11}",
        ),
        (
            |set| add_field(set, "Hello", "extra", 4),
            "shard.proto Hello.extra is number 4 and not in the contract; additions start at 1000",
        ),
        (
            |set| add_field(set, "Hello", "extra", 1009),
            "shard.proto Hello.extra is not among our additions",
        ),
        (
            |set| field(set, "OperatorMessage", "hello").oneof_index = None,
            "OperatorMessage.payload holds {bootstrap_response drain_report node_report \
             reclaim_ack rollup}, not {bootstrap_response drain_report hello node_report \
             reclaim_ack rollup}",
        ),
        (
            |set| add_enum_value(set, "MachineState", "MACHINE_STATE_LOST", 9),
            "provider.proto MachineState.MACHINE_STATE_LOST is number 9 and not in the contract; \
             additions start at 1000",
        ),
        (
            |set| enumeration(set, "CapacityType").value[4].number = Some(5),
            "provider.proto CapacityType.CAPACITY_TYPE_SPOT is 5 enum, not 4 enum",
        ),
        (
            |set| file(set, "shard.proto").service[0].method[0].client_streaming = Some(false),
            "missing method: shard.proto Shard.Session(stream OperatorMessage) -> stream \
             ShardMessage",
        ),
        (
            |set| message(set, "RemoveShardResponse").name = Some("RemoveShardReply".to_owned()),
            "message RemoveShardResponse is missing",
        ),
    ]
}

/// Every difference between the descriptors and the tables, one line each.
fn check(set: &FileDescriptorSet) -> Vec<String> {
    let surface = Surface::of(set);
    [
        check_rows(&surface),
        check_holders(&surface),
        check_reserved(&surface),
        check_oneofs(&surface),
        check_methods(&surface),
        check_files(set),
    ]
    .concat()
}

fn check_rows(surface: &Surface) -> Vec<String> {
    let mut problems = Vec::new();
    let (contract, additions) = (table(CONTRACT), table(ADDITIONS));
    for (row, expected) in contract.iter().chain(&additions) {
        match surface.rows.get(row) {
            Some(found) if found == expected => {}
            Some(found) => problems.push(format!("{row} is {found}, not {expected}")),
            None => problems.push(format!("{row} is missing")),
        }
    }
    let shared = contract.keys().map(|row| row.holder.as_str());
    let shared: BTreeSet<&str> = shared.chain(EMPTY).collect();
    for (row, found) in &surface.rows {
        let shared = shared.contains(row.holder.as_str());
        match (contract.contains_key(row), additions.contains_key(row)) {
            (true, false) => {}
            (true, true) => problems.push(format!("{row} is in both tables")),
            (false, _) if shared && found.number < FIRST_ADDITION => problems.push(format!(
                "{row} is number {} and not in the contract; additions start at {FIRST_ADDITION}",
                found.number
            )),
            (false, false) => problems.push(format!("{row} is not among our additions")),
            (false, true) => {}
        }
    }
    problems
}

fn check_holders(surface: &Surface) -> Vec<String> {
    let rows = table(CONTRACT)
        .into_keys()
        .chain(table(ADDITIONS).into_keys());
    let empty = EMPTY.into_iter().chain(EMPTY_ADDITIONS).map(str::to_owned);
    let expected: BTreeSet<String> = rows.map(|row| row.holder).chain(empty).collect();
    let missing = expected.difference(&surface.holders);
    let unlisted = surface.holders.difference(&expected);
    missing
        .map(|name| format!("message {name} is missing"))
        .chain(unlisted.map(|name| format!("message {name} is not listed")))
        .collect()
}

fn check_reserved(surface: &Surface) -> Vec<String> {
    let expected = RESERVED.map(|(message, numbers)| (message.to_owned(), braced(numbers)));
    differences(&surface.reserved, &BTreeMap::from(expected), "reserves")
}

fn check_oneofs(surface: &Surface) -> Vec<String> {
    let members = |members: &str| braced(members.split(' ').collect::<BTreeSet<_>>());
    let expected = ONEOFS.map(|(name, listed)| (name.to_owned(), members(listed)));
    let held = |(name, members): (&String, &BTreeSet<String>)| (name.clone(), braced(members));
    let found = surface.oneofs.iter().map(held).collect();
    differences(&found, &BTreeMap::from(expected), "holds")
}

fn differences(
    found: &BTreeMap<String, String>,
    expected: &BTreeMap<String, String>,
    verb: &str,
) -> Vec<String> {
    let text = |map: &BTreeMap<String, String>, name| map.get(name).cloned().unwrap_or("{}".into());
    let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    names
        .into_iter()
        .map(|name| (name, text(found, name), text(expected, name)))
        .filter(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| format!("{name} {verb} {found}, not {expected}"))
        .collect()
}

fn check_methods(surface: &Surface) -> Vec<String> {
    let expected: BTreeSet<String> = METHODS.map(str::to_owned).into();
    let missing = expected.difference(&surface.methods);
    let unlisted = surface.methods.difference(&expected);
    missing
        .map(|method| format!("missing method: {method}"))
        .chain(unlisted.map(|method| format!("unlisted method: {method}")))
        .collect()
}

fn check_files(set: &FileDescriptorSet) -> Vec<String> {
    let mut problems = Vec::new();
    let expected = IMPORTS.map(|(file, imports)| {
        let imports = imports
            .iter()
            .map(|import| format!("bigfleet/v1alpha1/{import}"));
        (
            format!("bigfleet/v1alpha1/{file}"),
            imports.collect::<BTreeSet<_>>(),
        )
    });
    let found: BTreeMap<String, BTreeSet<String>> = set
        .file
        .iter()
        .map(|file| {
            (
                file.name().to_owned(),
                file.dependency.iter().cloned().collect(),
            )
        })
        .collect();
    if found != BTreeMap::from(expected) {
        problems.push(format!("files and imports are {found:?}"));
    }
    for file in &set.file {
        if (file.syntax(), file.package()) != ("proto3", "bigfleet.v1alpha1") {
            problems.push(format!(
                "{} is {} {}",
                file.name(),
                file.syntax(),
                file.package()
            ));
        }
    }
    problems
}

fn compiled() -> FileDescriptorSet {
    FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap()
}

fn file<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut FileDescriptorProto {
    set.file
        .iter_mut()
        .find(|file| file.name().ends_with(&format!("/{name}")))
        .unwrap()
}

fn message<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut DescriptorProto {
    let mut messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    messages.find(|message| message.name() == name).unwrap()
}

fn enumeration<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut EnumDescriptorProto {
    let mut enums = set.file.iter_mut().flat_map(|file| &mut file.enum_type);
    enums
        .find(|enumeration| enumeration.name() == name)
        .unwrap()
}

fn field<'a>(
    set: &'a mut FileDescriptorSet,
    holder: &str,
    name: &str,
) -> &'a mut FieldDescriptorProto {
    message(set, holder)
        .field
        .iter_mut()
        .find(|field| field.name() == name)
        .unwrap()
}

fn add_field(set: &mut FileDescriptorSet, holder: &str, name: &str, number: i32) {
    let mut added = field(set, "MachineRef", "id").clone();
    (added.name, added.number) = (Some(name.to_owned()), Some(number));
    message(set, holder).field.push(added);
}

fn add_enum_value(set: &mut FileDescriptorSet, holder: &str, name: &str, number: i32) {
    let (name, number) = (Some(name.to_owned()), Some(number));
    let added = EnumValueDescriptorProto {
        name,
        number,
        ..Default::default()
    };
    enumeration(set, holder).value.push(added);
}
