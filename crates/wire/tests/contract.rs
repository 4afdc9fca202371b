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

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_wire::FILE_DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet,
};

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
const EMPTY_ADDITIONS: [&str; 2] = ["InspectRailsRequest", "PauseScope.All"];

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

const ONEOFS: [(&str, &str); 11] = [
    (
        "OperatorMessage.payload",
        "hello rollup bootstrap_response reclaim_ack drain_report node_report",
    ),
    (
        "ShardMessage.payload",
        "ack bootstrap_request reclaim_instruction node_state_update available_capacity \
         reclaim_cancel",
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
    ("ExportFleetResponse.frame", "header data end"),
    ("PauseScope.scope", "all cluster_id provider_address"),
    ("ResumeRequest.target", "pause_id scope"),
];

const METHODS: [&str; 27] = [
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
    "shardread.proto ShardRead.InspectMachines(InspectMachinesRequest) \
     -> stream InspectMachinesResponse",
    "shardread.proto ShardRead.InspectClusters(InspectClustersRequest) \
     -> stream InspectClustersResponse",
    "shardread.proto ShardRead.InspectWork(InspectWorkRequest) -> stream InspectWorkResponse",
    "shardread.proto ShardRead.InspectRails(InspectRailsRequest) -> InspectRailsResponse",
    "shardread.proto ShardRead.ExplainNeed(ExplainNeedRequest) -> ExplainNeedResponse",
    "shardread.proto ShardRead.ExportFleet(ExportFleetRequest) -> stream ExportFleetResponse",
    "shardread.proto ShardAdmin.Pause(PauseRequest) -> PauseResponse",
    "shardread.proto ShardAdmin.Resume(ResumeRequest) -> ResumeResponse",
    "shardread.proto ShardAdmin.RetireMachine(RetireMachineRequest) -> RetireMachineResponse",
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
    let (contract, additions) = (table(CONTRACT), table(ADDITIONS));
    let mut problems = Vec::new();

    let shared = contract.keys().map(|row| row.holder.as_str());
    let shared: BTreeSet<&str> = shared.chain(EMPTY).collect();
    for (row, expected) in contract.iter().chain(&additions) {
        match surface.rows.get(row) {
            Some(found) if found == expected => {}
            Some(found) => problems.push(format!("{row} is {found}, not {expected}")),
            None => problems.push(format!("{row} is missing")),
        }
    }
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

    let reserved = RESERVED.map(|(message, numbers)| (message.to_owned(), braced(numbers)));
    let reserved = BTreeMap::from(reserved);
    for message in surface
        .reserved
        .keys()
        .chain(reserved.keys())
        .collect::<BTreeSet<_>>()
    {
        let found = surface.reserved.get(message).map_or("{}", String::as_str);
        let expected = reserved.get(message).map_or("{}", String::as_str);
        if found != expected {
            problems.push(format!("{message} reserves {found}, not {expected}"));
        }
    }
    let oneofs = ONEOFS.map(|(name, members)| {
        (
            name.to_owned(),
            members
                .split(' ')
                .map(str::to_owned)
                .collect::<BTreeSet<_>>(),
        )
    });
    let oneofs = BTreeMap::from(oneofs);
    for name in surface
        .oneofs
        .keys()
        .chain(oneofs.keys())
        .collect::<BTreeSet<_>>()
    {
        let found = braced(surface.oneofs.get(name).into_iter().flatten());
        let expected = braced(oneofs.get(name).into_iter().flatten());
        if found != expected {
            problems.push(format!("{name} holds {found}, not {expected}"));
        }
    }
    let methods: BTreeSet<String> = METHODS.iter().map(|method| (*method).to_owned()).collect();
    problems.extend(
        methods
            .difference(&surface.methods)
            .map(|m| format!("missing method: {m}")),
    );
    problems.extend(
        surface
            .methods
            .difference(&methods)
            .map(|m| format!("unlisted method: {m}")),
    );

    let holders = contract
        .keys()
        .chain(additions.keys())
        .map(|row| row.holder.clone());
    let empty = EMPTY.into_iter().chain(EMPTY_ADDITIONS).map(str::to_owned);
    let holders: BTreeSet<String> = holders.chain(empty).collect();
    let missing = holders.difference(&surface.holders);
    problems.extend(missing.map(|name| format!("message {name} is missing")));
    let unlisted = surface.holders.difference(&holders);
    problems.extend(unlisted.map(|name| format!("message {name} is not listed")));
    problems.extend(check_files(set));
    problems
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

/// A field of a message or a value of an enum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    file: String,
    holder: String,
    name: String,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}.{}", self.file, self.holder, self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    number: i32,
    text: String,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.number, self.text)
    }
}

/// Reads `proto_file,message,field,number,type`; only the type may be quoted.
fn table(csv: &str) -> BTreeMap<Row, Kind> {
    let mut rows = BTreeMap::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.splitn(5, ',').collect();
        let &[file, holder, name, number, text] = &cells[..] else {
            panic!("not a row: {line}")
        };
        let [file, holder, name] = [file, holder, name].map(str::to_owned);
        let text = text.trim_matches('"').to_owned();
        let kind = Kind {
            number: number.parse().expect(line),
            text,
        };
        assert_eq!(
            rows.insert(Row { file, holder, name }, kind),
            None,
            "twice: {line}"
        );
    }
    rows
}

/// The descriptors in the form of the tables.
#[derive(Default)]
struct Surface {
    rows: BTreeMap<Row, Kind>,
    holders: BTreeSet<String>,
    reserved: BTreeMap<String, String>,
    oneofs: BTreeMap<String, BTreeSet<String>>,
    methods: BTreeSet<String>,
}

impl Surface {
    fn of(set: &FileDescriptorSet) -> Self {
        let mut surface = Self::default();
        for descriptor in &set.file {
            let file = descriptor.name().rsplit('/').next().unwrap_or_default();
            for message in &descriptor.message_type {
                surface.add_message(file, "", message);
            }
            for enumeration in &descriptor.enum_type {
                surface.add_enum(file, "", enumeration);
            }
            surface.add_services(file, descriptor);
        }
        surface
    }

    fn add_message(&mut self, file: &str, outer: &str, message: &DescriptorProto) {
        let holder = format!("{outer}{}", message.name());
        for field in &message.field {
            let (file, name) = (file.to_owned(), field.name().to_owned());
            let kind = Kind {
                number: field.number(),
                text: field_type(message, field),
            };
            self.rows.insert(
                Row {
                    file,
                    holder: holder.clone(),
                    name,
                },
                kind,
            );
            if let Some(index) = field.oneof_index.filter(|_| !field.proto3_optional()) {
                let oneof = message.oneof_decl[index as usize].name();
                let members = self.oneofs.entry(format!("{holder}.{oneof}")).or_default();
                members.insert(field.name().to_owned());
            }
        }
        // The end of a range is exclusive.
        let reserved: Vec<i32> = message
            .reserved_range
            .iter()
            .flat_map(|range| range.start()..range.end())
            .collect();
        if !reserved.is_empty() {
            self.reserved.insert(holder.clone(), braced(&reserved));
        }
        let inner = format!("{holder}.");
        for nested in message
            .nested_type
            .iter()
            .filter(|nested| !is_map_entry(nested))
        {
            self.add_message(file, &inner, nested);
        }
        for enumeration in &message.enum_type {
            self.add_enum(file, &inner, enumeration);
        }
        self.holders.insert(holder);
    }

    fn add_enum(&mut self, file: &str, outer: &str, enumeration: &EnumDescriptorProto) {
        let holder = format!("{outer}{}", enumeration.name());
        for value in &enumeration.value {
            let (file, name) = (file.to_owned(), value.name().to_owned());
            let kind = Kind {
                number: value.number(),
                text: "enum".to_owned(),
            };
            self.rows.insert(
                Row {
                    file,
                    holder: holder.clone(),
                    name,
                },
                kind,
            );
        }
        self.holders.insert(holder);
    }

    fn add_services(&mut self, file: &str, descriptor: &FileDescriptorProto) {
        for service in &descriptor.service {
            for method in &service.method {
                let streamed = |yes: bool| if yes { "stream " } else { "" };
                self.methods.insert(format!(
                    "{file} {}.{}({}{}) -> {}{}",
                    service.name(),
                    method.name(),
                    streamed(method.client_streaming()),
                    local(method.input_type()),
                    streamed(method.server_streaming()),
                    local(method.output_type()),
                ));
            }
        }
    }
}

fn is_map_entry(message: &DescriptorProto) -> bool {
    message
        .options
        .as_ref()
        .is_some_and(|options| options.map_entry())
}

/// The type as the tables write it.
fn field_type(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry_name = field.type_name().rsplit('.').next();
    let entry = message
        .nested_type
        .iter()
        .find(|nested| Some(nested.name()) == entry_name);
    if let Some(entry) = entry.filter(|entry| is_map_entry(entry)) {
        let [key, value] = [0, 1].map(|index| field_type(entry, &entry.field[index]));
        return format!("map<{key},{value}>");
    }
    let base = match field.r#type() {
        Type::Message | Type::Enum => local(field.type_name()).to_owned(),
        scalar => scalar
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_lowercase(),
    };
    match (field.label(), field.proto3_optional()) {
        (Label::Repeated, _) => format!("repeated {base}"),
        (_, true) => format!("optional {base}"),
        (_, false) => base,
    }
}

fn local(type_name: &str) -> &str {
    type_name.trim_start_matches(".bigfleet.v1alpha1.")
}

fn braced<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("{{{}}}", items.join(" "))
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
