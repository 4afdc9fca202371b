//! The planted defects, each with the behaviours that must notice it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{
    CapacityType, ListFilter, Machine, MachineList, MachineState as State, TransitionAck,
};
use tonic::{Code, Status};

use super::proxy::{Ask, Kind, Memory};

type Answer = Result<TransitionAck, Status>;
type Shown = Result<Machine, Status>;

/// Where a defect sits, and what it does there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plant {
    /// Before a mutation is looked at; a status refuses it.
    Ask(fn(&mut Ask, &mut Memory) -> Option<Status>),
    /// In the answer to a mutation.
    Ack(fn(&Ask, Answer, &mut Memory) -> Answer),
    /// In every record that is shown.
    Record(fn(&mut Machine, &mut Memory)),
    /// In the answer to a Get.
    Got(fn(&str, Shown, &mut Memory) -> Shown),
    /// In how a List is understood.
    Filter(fn(&mut ListFilter)),
    /// In the answer to a List.
    Listed(fn(&ListFilter, MachineList, &mut Memory) -> Result<MachineList, Status>),
    /// A Delete takes a machine from its cluster.
    DeletesBound,
    /// A call is answered before it is on disk.
    LosesLastWrite,
}

/// One broken promise.
#[derive(Debug)]
pub struct Defect {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What a provider with it does.
    pub does: &'static str,
    /// The behaviours one of which must notice it.
    pub caught_by: &'static [&'static str],
    pub(super) plants: &'static [Plant],
}

impl Defect {
    /// Every planted defect.
    pub fn all() -> Vec<&'static Self> {
        ALL.iter().collect()
    }
}

/// The proxy alone.
pub(super) const NONE: Defect = Defect {
    name: "none",
    does: "keeps every promise",
    caught_by: &[],
    plants: &[],
};

macro_rules! defect {
    ($name:literal, $does:literal, [$($id:literal),+], $($plant:expr),+) => {
        Defect { name: $name, does: $does, caught_by: &[$($id),+], plants: &[$($plant),+] }
    };
}

use Plant::{Ack, Filter, Got, Listed, Record};

static ALL: &[Defect] = &[
    // Codes.
    defect!(
        "unknown-machine-is-internal",
        "answers INTERNAL for an unknown machine",
        ["ERR-05"],
        Ack(unknown_is_internal)
    ),
    defect!(
        "get-invents-machines",
        "answers a Get of an unknown machine",
        ["ERR-12"],
        Got(invents)
    ),
    defect!(
        "empty-id-is-not-found",
        "answers NOT_FOUND for an empty id",
        ["ERR-06"],
        Ack(empty_is_not_found)
    ),
    defect!(
        "wrong-state-is-fenced",
        "uses the code of the fence for a wrong state",
        ["ERR-01"],
        Ack(wrong_state_is_fenced)
    ),
    defect!(
        "wrong-state-is-accepted",
        "says OK to a Create on a bound machine",
        ["ERR-01"],
        Ack(wrong_state_is_ok)
    ),
    defect!(
        "negative-grace-is-internal",
        "answers INTERNAL to a negative grace",
        ["ERR-08"],
        Plant::Ask(negative_grace)
    ),
    defect!(
        "large-blob-is-unavailable",
        "answers UNAVAILABLE to a large blob",
        ["ERR-11"],
        Plant::Ask(large_blob)
    ),
    defect!(
        "unknown-delete-is-ok",
        "says OK to a Delete of an unknown machine",
        ["ERR-12"],
        Ack(unknown_delete)
    ),
    defect!(
        "configures-slots",
        "binds a slot that has no host",
        ["ERR-02"],
        Plant::Ask(notes_slot),
        Record(leaks_cluster)
    ),
    // The fence.
    defect!(
        "fence-is-open",
        "accepts every token",
        ["FENCE-03"],
        Plant::Ask(open_fence)
    ),
    defect!(
        "fence-lets-equal-pass",
        "accepts a token twice",
        ["FENCE-03"],
        Plant::Ask(equal_passes)
    ),
    defect!(
        "fence-forgets-epochs",
        "compares sequences alone",
        ["FENCE-09"],
        Plant::Ask(no_epochs)
    ),
    defect!(
        "fence-per-shard",
        "keeps one mark for all machines of a shard",
        ["FENCE-02"],
        Plant::Ask(per_shard)
    ),
    defect!(
        "fence-per-machine",
        "keeps one mark for all shards",
        ["FENCE-02"],
        Plant::Ask(per_machine)
    ),
    defect!(
        "fence-after-existence",
        "says NOT_FOUND to a stale token",
        ["FENCE-01"],
        Plant::Ask(after_existence)
    ),
    defect!(
        "fence-after-replay",
        "replays for a stale token",
        ["FENCE-05", "FENCE-06"],
        Plant::Ask(after_replay)
    ),
    defect!(
        "refused-call-leaves-no-mark",
        "forgets the token of a refused call",
        ["FENCE-10"],
        Plant::Ask(no_mark_if_refused)
    ),
    defect!(
        "fenced-out-shard-moves-the-mark",
        "takes a stale token as the new mark",
        ["FENCE-03"],
        Plant::Ask(mark_moves_back)
    ),
    defect!(
        "fence-wraps-around",
        "has no room for the largest token",
        ["ERR-10"],
        Plant::Ask(wraps)
    ),
    defect!(
        "fence-refuses-negative",
        "fences negative tokens of a new shard",
        ["ERR-09"],
        Plant::Ask(refuses_negative)
    ),
    defect!(
        "fence-wants-a-token",
        "fences calls without a token",
        ["FENCE-07"],
        Plant::Ask(wants_token)
    ),
    defect!(
        "fenced-is-aborted",
        "answers ABORTED where the fence has a code",
        ["FENCE-03"],
        Ack(fenced_is_aborted)
    ),
    defect!(
        "reads-are-fenced",
        "hides a machine from a fenced-out shard",
        ["FENCE-04"],
        Ack(notes_fenced),
        Got(hides_fenced)
    ),
    // Idempotency.
    defect!(
        "replay-has-a-new-id",
        "starts a new operation for every retry",
        ["IDEM-02"],
        Ack(new_id_each_time)
    ),
    defect!(
        "replay-is-refused",
        "refuses a retry at the target",
        ["IDEM-01"],
        Ack(replay_refused)
    ),
    defect!(
        "operation-id-is-empty",
        "acknowledges without an id",
        ["IDEM-02"],
        Ack(empty_id)
    ),
    defect!(
        "operation-id-of-machine",
        "uses one id for all operations of a machine",
        ["IDEM-03"],
        Ack(id_of_machine)
    ),
    defect!(
        "operation-id-per-connection",
        "has operations of its own on every connection",
        ["IDEM-04"],
        Ack(id_of_connection)
    ),
    defect!(
        "operation-id-per-kind",
        "uses one id for all Creates",
        ["CONC-06"],
        Ack(id_of_kind)
    ),
    defect!(
        "burst-is-many",
        "starts an operation for each of sixteen equal calls",
        ["CONC-01", "CONC-02"],
        Ack(racing_ids)
    ),
    defect!(
        "ack-without-machine",
        "acknowledges without a record",
        ["META-04"],
        Ack(no_machine)
    ),
    // Lifecycle.
    defect!(
        "cluster-stays-after-drain",
        "keeps the cluster of a drained machine",
        ["LIFE-05"],
        Record(cluster_stays)
    ),
    defect!(
        "configuring-shows-creating",
        "shows the wrong state on the way",
        ["LIFE-02"],
        Record(wrong_transition)
    ),
    defect!(
        "machine-does-not-rest",
        "shows a settled machine as draining now and then",
        ["LIFE-07"],
        Record(restless)
    ),
    defect!(
        "host-missing-when-idle",
        "shows an idle machine without its host",
        ["LIFE-06"],
        Record(no_host)
    ),
    defect!(
        "host-stays-after-delete",
        "keeps the host of a deleted machine",
        ["LIFE-08"],
        Record(host_stays)
    ),
    defect!(
        "deletes-bound-machines",
        "takes a machine from its cluster to delete it",
        ["ERR-04"],
        Plant::DeletesBound
    ),
    // Metadata.
    defect!(
        "metadata-loses-empty-values",
        "forgets keys with an empty value",
        ["META-01"],
        Record(loses_empty)
    ),
    defect!(
        "metadata-is-trimmed",
        "trims spaces from values",
        ["META-01"],
        Record(trims)
    ),
    defect!(
        "metadata-missing-in-lists",
        "shows metadata on Get alone",
        ["META-01"],
        Listed(unlisted_metadata)
    ),
    defect!(
        "metadata-stays-after-drain",
        "keeps the metadata of a drained machine",
        ["META-02"],
        Record(metadata_stays)
    ),
    defect!(
        "metadata-is-cut",
        "cuts metadata of many keys",
        ["PROP-05"],
        Record(cuts)
    ),
    defect!(
        "metadata-comes-late",
        "shows metadata once configured",
        ["META-04"],
        Record(late_metadata)
    ),
    defect!(
        "metadata-of-the-retry",
        "takes the metadata of a retry",
        ["META-05"],
        Plant::Ask(notes_retry),
        Record(retry_wins)
    ),
    // Records.
    defect!(
        "price-is-not-a-number",
        "shows a price that is no number",
        ["SHAPE-02"],
        Record(no_price)
    ),
    defect!(
        "spot-is-never-interrupted",
        "shows spot with a probability of zero",
        ["SHAPE-02"],
        Record(safe_spot)
    ),
    defect!(
        "label-shadows-zone",
        "puts the zone into a label",
        ["SHAPE-01"],
        Record(shadow)
    ),
    defect!(
        "amounts-cannot-be-read",
        "shows allocatable in words",
        ["SHAPE-04"],
        Record(words_for_amounts)
    ),
    defect!(
        "provider-label-changes",
        "changes the provider of a host",
        ["SHAPE-05"],
        Record(other_provider)
    ),
    defect!(
        "host-without-zone",
        "shows hosts without a zone",
        ["SHAPE-06"],
        Record(no_zone)
    ),
    // Lists.
    defect!(
        "filter-is-ignored",
        "lists every state",
        ["LIST-01"],
        Filter(no_states)
    ),
    defect!(
        "list-names-twice",
        "names a machine twice",
        ["LIST-01"],
        Listed(twice)
    ),
    defect!(
        "cap-is-exceeded",
        "lists one machine too many",
        ["LIST-02"],
        Filter(one_more)
    ),
    defect!(
        "revision-stands-still",
        "shows the same revision for ever",
        ["LIST-03"],
        Listed(stuck_revision)
    ),
    defect!(
        "head-shows-something",
        "shows a machine since head",
        ["LIST-04"],
        Listed(never_empty)
    ),
    defect!(
        "cursor-skips",
        "leaves the oldest change out of a delta",
        ["LIST-05", "LIST-03"],
        Listed(skips)
    ),
    defect!(
        "junk-cursor-is-refused",
        "refuses a cursor it does not know",
        ["LIST-06"],
        Listed(refuses_junk)
    ),
    defect!(
        "page-loses-the-rest",
        "forgets what a full page had no room for",
        ["LIST-07"],
        Listed(loses_page)
    ),
    defect!(
        "damaged-cursor-is-empty",
        "shows nothing for a damaged cursor",
        ["LIST-09"],
        Listed(empty_for_damaged)
    ),
    // Restarts.
    defect!(
        "restart-loses-marks",
        "forgets fencing marks",
        ["DUR-01"],
        Plant::Ask(marks_lost)
    ),
    defect!(
        "restart-loses-operations",
        "forgets operation ids",
        ["DUR-02"],
        Ack(operations_lost)
    ),
    defect!(
        "restart-loses-metadata",
        "forgets a metadata key",
        ["DUR-03"],
        Record(metadata_lost)
    ),
    defect!(
        "restart-loses-a-machine",
        "forgets a machine",
        ["DUR-04"],
        Listed(machine_lost)
    ),
    defect!(
        "restart-counts-anew",
        "numbers operations from one again",
        ["DUR-05"],
        Ack(counts_anew)
    ),
    defect!(
        "restart-leaves-stuck",
        "leaves a machine in the middle",
        ["DUR-06"],
        Record(stuck)
    ),
    defect!(
        "restart-raises-the-bar",
        "fences new shards below old marks",
        ["DUR-07"],
        Plant::Ask(high_bar)
    ),
    defect!(
        "answers-before-the-write",
        "acknowledges what is not on disk",
        ["DUR-03"],
        Plant::LosesLastWrite
    ),
    // Failures.
    defect!(
        "failure-is-hidden",
        "shows a failed machine as idle",
        ["FAULT-01"],
        Record(hidden_failure)
    ),
    defect!(
        "failure-without-reason",
        "fails without an error",
        ["FAULT-02"],
        Record(no_reason)
    ),
    defect!(
        "late-success-is-believed",
        "believes a success after the timeout",
        ["FAULT-04"],
        Record(late_success)
    ),
    defect!(
        "failed-machine-is-moved",
        "accepts a Create of a failed machine",
        ["FAULT-05"],
        Ack(failed_is_ok)
    ),
    defect!(
        "failed-machine-is-unlisted",
        "leaves failed machines out of lists",
        ["FAULT-07"],
        Listed(failed_unlisted)
    ),
    defect!(
        "readiness-is-not-waited-for",
        "shows CONFIGURED before the node is Ready",
        ["FAULT-08"],
        Record(not_ready)
    ),
    // Scale.
    defect!(
        "delta-is-too-wide",
        "shows neighbours of what moved",
        ["SCALE-02"],
        Listed(too_wide)
    ),
    defect!(
        "large-page-loses-one",
        "loses a machine on every large page",
        ["SCALE-03"],
        Listed(loses_one)
    ),
];

fn code(answer: &Answer) -> Code {
    answer.as_ref().err().map_or(Code::Ok, Status::code)
}

fn ack_of(ask: &Ask) -> TransitionAck {
    TransitionAck {
        operation_id: "op-made-up".to_owned(),
        machine: ask.before.clone(),
        ..TransitionAck::default()
    }
}

fn unknown_is_internal(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::NotFound => Err(Status::internal("no such machine")),
        _ => answer,
    }
}

fn invents(id: &str, answer: Shown, _: &mut Memory) -> Shown {
    match &answer {
        Err(status) if status.code() == Code::NotFound => Ok(Machine {
            id: id.to_owned(),
            state: State::Speculative.into(),
            ..Machine::default()
        }),
        _ => answer,
    }
}

fn empty_is_not_found(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.machine.is_empty() {
        return Err(Status::not_found("no such machine"));
    }
    answer
}

fn wrong_state_is_fenced(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::Internal => Err(Status::failed_precondition("wrong state")),
        _ => answer,
    }
}

fn wrong_state_is_ok(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::Internal if ask.kind == Kind::Create => Ok(ack_of(ask)),
        _ => answer,
    }
}

fn negative_grace(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    (ask.grace < 0).then(|| Status::internal("grace"))
}

fn large_blob(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    ((1 << 20) < ask.blob.len()).then(|| Status::unavailable("too large"))
}

fn unknown_delete(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::NotFound if ask.kind == Kind::Delete => Ok(ack_of(ask)),
        _ => answer,
    }
}

fn notes_slot(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.kind == Kind::Configure && ask.is_at(State::Speculative) {
        memory
            .names
            .insert(ask.machine.clone(), ask.cluster.clone());
    }
    None
}

fn leaks_cluster(machine: &mut Machine, memory: &mut Memory) {
    if let Some(cluster) = memory.names.get(&machine.id) {
        machine.cluster = cluster.clone();
    }
}

fn notes_fenced(ask: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    if code(&answer) == Code::FailedPrecondition {
        memory.names.insert(ask.machine.clone(), String::new());
    }
    answer
}

fn hides_fenced(id: &str, answer: Shown, memory: &mut Memory) -> Shown {
    if memory.names.contains_key(id) {
        return Err(Status::failed_precondition("fenced"));
    }
    answer
}

fn open_fence(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    ask.without_token();
    None
}

/// The name of a pair of shard and machine.
fn pair(ask: &Ask) -> String {
    format!("{}|{}", ask.shard, ask.machine)
}

fn equal_passes(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let (key, token) = (pair(ask), ask.token());
    if memory.marks.get(&key) == Some(&token) {
        ask.without_token();
    } else if memory.marks.get(&key).is_none_or(|mark| *mark < token) {
        memory.marks.insert(key, token);
    }
    None
}

fn no_epochs(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if !ask.shard.is_empty() {
        ask.epoch = 1;
    }
    None
}

/// Fences with a mark of our own under this name.
fn fenced_by(key: String, ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.shard.is_empty() {
        return None;
    }
    let token = ask.token();
    if memory.marks.get(&key).is_some_and(|mark| token <= *mark) {
        return Some(Status::failed_precondition("fenced"));
    }
    memory.marks.insert(key, token);
    ask.without_token();
    None
}

fn per_shard(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    fenced_by(ask.shard.clone(), ask, memory)
}

fn per_machine(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    fenced_by(ask.machine.clone(), ask, memory)
}

fn after_existence(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if ask.before.is_none() {
        ask.without_token();
    }
    None
}

fn after_replay(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    // A Create or Drain of a machine that is where it leads is a retry, and so is a Configure.
    if ask.kind != Kind::Create && ask.is_at(ask.kind.target()) {
        ask.without_token();
    }
    None
}

fn no_mark_if_refused(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if !ask.is_at(ask.kind.source()) && !ask.is_at(ask.kind.target()) {
        ask.without_token();
    }
    None
}

fn mark_moves_back(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.shard.is_empty() {
        return None;
    }
    let (key, token) = (pair(ask), ask.token());
    let stale = memory.marks.get(&key).is_some_and(|mark| token <= *mark);
    memory.marks.insert(key, token);
    ask.without_token();
    stale.then(|| Status::failed_precondition("fenced"))
}

fn wraps(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    if ask.epoch == i64::MAX {
        ask.without_token();
    }
    None
}

fn refuses_negative(ask: &mut Ask, _: &mut Memory) -> Option<Status> {
    (ask.epoch < 0 || ask.sequence < 0).then(|| Status::failed_precondition("negative"))
}

fn wants_token(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let again = memory
        .names
        .insert(ask.machine.clone(), String::new())
        .is_some();
    let replayed = again && ask.kind == Kind::Create;
    (ask.shard.is_empty() && replayed).then(|| Status::failed_precondition("no token"))
}

fn fenced_is_aborted(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    match code(&answer) {
        Code::FailedPrecondition => Err(Status::aborted("fenced")),
        _ => answer,
    }
}

fn with_id(answer: Answer, id: impl FnOnce(String) -> String) -> Answer {
    answer.map(|ack| TransitionAck {
        operation_id: id(ack.operation_id),
        ..ack
    })
}

fn new_id_each_time(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let nth = memory.next();
    with_id(answer, |id| format!("{id}-{nth}"))
}

fn replay_refused(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.is_at(ask.kind.target()) {
        return Err(Status::internal("already there"));
    }
    answer
}

fn empty_id(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| String::new())
}

fn id_of_machine(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| format!("op-{}", ask.machine))
}

fn id_of_connection(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |id| format!("{id}-{}", ask.port))
}

fn id_of_kind(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    with_id(answer, |_| format!("op-{:?}", ask.kind))
}

fn racing_ids(ask: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let nth = memory.next();
    let key = format!("{:?}|{}", ask.kind, ask.machine);
    let last = memory.since.insert(key, Instant::now());
    let racing = last.is_some_and(|last| last.elapsed() < Duration::from_millis(50));
    with_id(answer, |id| if racing { format!("{id}-{nth}") } else { id })
}

fn no_machine(_: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    answer.map(|ack| TransitionAck {
        machine: None,
        ..ack
    })
}

fn cluster_stays(machine: &mut Machine, memory: &mut Memory) {
    match machine.state() {
        State::Configured => {
            memory
                .names
                .insert(machine.id.clone(), machine.cluster.clone());
        }
        State::Idle => {
            let before = memory.names.get(&machine.id).cloned();
            machine.cluster = before.unwrap_or_default();
        }
        _ => {}
    }
}

fn wrong_transition(machine: &mut Machine, memory: &mut Memory) {
    // Shown once per machine even where the transition is over before anybody looks.
    let first = !memory.names.contains_key(&machine.id);
    if machine.state() == State::Configured && first {
        memory.names.insert(machine.id.clone(), String::new());
        machine.state = State::Creating.into();
    }
}

fn restless(machine: &mut Machine, memory: &mut Memory) {
    if machine.state() == State::Configured && memory.next().is_multiple_of(7) {
        machine.state = State::Draining.into();
    }
}

fn no_host(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Idle {
        machine.host = None;
    }
}

fn host_stays(machine: &mut Machine, memory: &mut Memory) {
    if machine.host.is_some() {
        memory.machines.insert(machine.id.clone(), machine.clone());
    } else if let Some(before) = memory.machines.get(&machine.id) {
        machine.host = before.host.clone();
    }
}

fn loses_empty(machine: &mut Machine, _: &mut Memory) {
    machine.shard_metadata.retain(|_, value| !value.is_empty());
}

fn trims(machine: &mut Machine, _: &mut Memory) {
    for value in machine.shard_metadata.values_mut() {
        *value = value.trim().to_owned();
    }
}

fn unlisted_metadata(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    for machine in &mut list.machines {
        machine.shard_metadata.clear();
    }
    Ok(list)
}

fn metadata_stays(machine: &mut Machine, memory: &mut Memory) {
    match machine.state() {
        State::Configured => {
            memory.machines.insert(machine.id.clone(), machine.clone());
        }
        State::Idle => {
            if let Some(before) = memory.machines.get(&machine.id) {
                machine.shard_metadata = before.shard_metadata.clone();
            }
        }
        _ => {}
    }
}

fn cuts(machine: &mut Machine, _: &mut Memory) {
    if 200 < machine.shard_metadata.len() {
        let first: BTreeMap<_, _> = machine
            .shard_metadata
            .clone()
            .into_iter()
            .take(200)
            .collect();
        machine.shard_metadata = first;
    }
}

fn late_metadata(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configuring {
        machine.shard_metadata.clear();
    }
}

fn notes_retry(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if ask.kind == Kind::Configure
        && let Some(before) = ask
            .before
            .clone()
            .filter(|m| m.state() == State::Configured)
    {
        let shard_metadata = ask.metadata.clone();
        let retried = Machine {
            shard_metadata,
            ..before
        };
        memory.machines.insert(ask.machine.clone(), retried);
    }
    None
}

fn retry_wins(machine: &mut Machine, memory: &mut Memory) {
    if let Some(retried) = memory.machines.get(&machine.id) {
        machine.shard_metadata = retried.shard_metadata.clone();
    }
}

fn no_price(machine: &mut Machine, _: &mut Memory) {
    machine.price_per_hour = f64::NAN;
}

fn safe_spot(machine: &mut Machine, _: &mut Memory) {
    if machine.capacity_type() == CapacityType::Spot {
        machine.interruption_probability = 0.0;
    }
}

fn shadow(machine: &mut Machine, _: &mut Memory) {
    machine
        .labels
        .insert("zone".to_owned(), machine.zone.clone());
}

fn words_for_amounts(machine: &mut Machine, _: &mut Memory) {
    if let Some(allocatable) = &mut machine.allocatable {
        allocatable
            .resources
            .insert("cpu".to_owned(), "plenty".to_owned());
    }
}

fn other_provider(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configured
        && let Some(host) = &mut machine.host
    {
        host.provider += "-bound";
    }
}

fn no_zone(machine: &mut Machine, _: &mut Memory) {
    if machine.host.is_some() {
        machine.zone.clear();
    }
}

fn no_states(filter: &mut ListFilter) {
    filter.states.clear();
}

fn one_more(filter: &mut ListFilter) {
    if filter.max_results != 0 {
        filter.max_results += 1;
    }
}

fn twice(_: &ListFilter, mut list: MachineList, _: &mut Memory) -> Result<MachineList, Status> {
    let first = list.machines.first().cloned();
    list.machines.extend(first);
    Ok(list)
}

fn stuck_revision(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    list.revision = b"1".to_vec();
    Ok(list)
}

fn is_delta(filter: &ListFilter) -> bool {
    !filter.since_revision.is_empty()
}

fn never_empty(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if !is_delta(filter) {
        memory.machines = list
            .machines
            .iter()
            .take(1)
            .map(|m| (m.id.clone(), m.clone()))
            .collect();
    } else if list.machines.is_empty() {
        list.machines = memory.machines.values().cloned().collect();
    }
    Ok(list)
}

fn skips(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && !list.machines.is_empty() {
        list.machines.remove(0);
    }
    Ok(list)
}

fn refuses_junk(
    filter: &ListFilter,
    list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && list.is_full {
        return Err(Status::invalid_argument("unknown cursor"));
    }
    Ok(list)
}

fn loses_page(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    // The second page of two is left out; the third is there.
    if is_delta(filter) && filter.max_results == 2 && memory.next() == 2 {
        list.machines.truncate(1);
    }
    Ok(list)
}

fn empty_for_damaged(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if is_delta(filter) && list.is_full {
        list.machines.clear();
    }
    Ok(list)
}

fn marks_lost(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    if memory.reborn && !ask.shard.is_empty() {
        ask.shard += "-reborn";
    }
    None
}

fn operations_lost(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    let reborn = memory.reborn;
    with_id(answer, |id| if reborn { format!("{id}-again") } else { id })
}

fn metadata_lost(machine: &mut Machine, memory: &mut Memory) {
    if memory.reborn {
        machine.shard_metadata.pop_last();
    }
}

fn machine_lost(
    _: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if memory.reborn {
        list.machines.pop();
    }
    Ok(list)
}

fn counts_anew(_: &Ask, answer: Answer, memory: &mut Memory) -> Answer {
    with_id(answer, |id| {
        if let Some(known) = memory.names.get(&id) {
            return known.clone();
        }
        let nth = memory.next();
        memory.names.insert(id, format!("op-{nth}"));
        format!("op-{nth}")
    })
}

fn stuck(machine: &mut Machine, memory: &mut Memory) {
    if memory.reborn && machine.state() == State::Failed {
        machine.state = State::Configuring.into();
        machine.last_error.clear();
    }
}

fn high_bar(ask: &mut Ask, memory: &mut Memory) -> Option<Status> {
    let low = memory.reborn && !ask.shard.is_empty() && ask.token() < (5, 0);
    low.then(|| Status::failed_precondition("below the mark of the store"))
}

fn hidden_failure(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Failed {
        machine.state = State::Idle.into();
        machine.last_error.clear();
    }
}

fn no_reason(machine: &mut Machine, _: &mut Memory) {
    machine.last_error.clear();
}

fn late_success(machine: &mut Machine, memory: &mut Memory) {
    if machine.state() == State::Failed {
        let since = memory
            .since
            .entry(machine.id.clone())
            .or_insert_with(Instant::now);
        if Duration::from_millis(900) < since.elapsed() {
            machine.state = State::Configured.into();
            machine.last_error.clear();
        }
    }
}

fn failed_is_ok(ask: &Ask, answer: Answer, _: &mut Memory) -> Answer {
    if ask.kind == Kind::Create && ask.is_at(State::Failed) {
        return Ok(ack_of(ask));
    }
    answer
}

fn failed_unlisted(
    _: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    list.machines
        .retain(|machine| machine.state() != State::Failed);
    Ok(list)
}

fn not_ready(machine: &mut Machine, _: &mut Memory) {
    if machine.state() == State::Configuring {
        machine.state = State::Configured.into();
    }
}

fn too_wide(
    filter: &ListFilter,
    mut list: MachineList,
    memory: &mut Memory,
) -> Result<MachineList, Status> {
    if !is_delta(filter) {
        memory.machines = list
            .machines
            .iter()
            .map(|m| (m.id.clone(), m.clone()))
            .collect();
        return Ok(list);
    }
    let named = |id: &String| list.machines.iter().any(|m| m.id == *id);
    let neighbour = memory.machines.keys().find(|id| !named(id)).cloned();
    let neighbour = neighbour.and_then(|id| memory.machines.get(&id).cloned());
    list.machines.extend(neighbour);
    Ok(list)
}

fn loses_one(
    filter: &ListFilter,
    mut list: MachineList,
    _: &mut Memory,
) -> Result<MachineList, Status> {
    if 100 < filter.max_results {
        list.machines.pop();
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Suite, catalogue};
    use std::collections::BTreeSet;

    #[test]
    fn every_defect_names_behaviours_that_decide() {
        let known = catalogue();
        let names: BTreeSet<_> = ALL.iter().map(|defect| defect.name).collect();
        assert_eq!(names.len(), ALL.len(), "a name occurs twice");
        assert!(30 <= ALL.len(), "{}", ALL.len());
        for defect in ALL {
            for id in defect.caught_by {
                let named = known.iter().find(|behaviour| behaviour.id == *id);
                let decides = named.is_some_and(|named| named.suite() == Suite::Contract);
                assert!(decides, "{}: {id}", defect.name);
            }
        }
    }
}
