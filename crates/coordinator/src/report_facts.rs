//! Report facts: a shard's report from the wire, and the answer to it back.

use bigfleet_coordinator_core::{
    Ack, AckOutcome, Answer, ExceptionFacts, ExceptionKind, Instruction, Order, Pool, RecordState,
    ReportFacts, Scope, Shortfall, ShortfallRequirement, Stamp, Summary, TransferFacts,
    TransferStep,
};
use bigfleet_model::quantity::{parse_demand, parse_supply};
use bigfleet_model::{Amounts, Bucket, Dimension, Operator, Time, shown};
use bigfleet_wire::v1alpha1::{
    self as wire, CoordinatorInstruction, TransferOwnership, TransferPhase,
    coordinator_instruction::Payload, instruct_ack::Outcome, machine_exception,
    transfer_status::State,
};
use tonic::Status;

fn refused(what: &str) -> Status {
    Status::invalid_argument(format!("report refused: {what}"))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn count(number: i32) -> Result<u32, Status> {
    u32::try_from(number).map_err(|_| refused(&format!("a count is {number}")))
}

/// What is missing is rounded up, what is offered down.
fn amounts(
    resources: Option<wire::Resources>,
    milli: impl Fn(&str) -> Option<i128>,
) -> Result<Amounts, Status> {
    let resources = resources.unwrap_or_default().resources;
    let read = |(name, text): (String, String)| {
        let unreadable = || {
            refused(&format!(
                "{} of {} is no amount",
                shown(&text),
                shown(&name)
            ))
        };
        let dimension = Dimension::new(&name).map_err(|_| unreadable())?;
        Ok((dimension, milli(&text).ok_or_else(unreadable)?))
    };
    let entries: Result<Vec<_>, Status> = resources.into_iter().map(read).collect();
    Ok(Amounts::from_entries(entries?))
}

fn demand(resources: Option<wire::Resources>) -> Result<Amounts, Status> {
    amounts(resources, |text| parse_demand(text).ok())
}

fn supply(resources: Option<wire::Resources>) -> Result<Amounts, Status> {
    amounts(resources, |text| parse_supply(text).ok().map(i128::from))
}

/// The report, as far as it can be read at all. What it says is the core's to judge.
pub(crate) fn facts(report: wire::ShardReport) -> Result<ReportFacts, Status> {
    let scope = match report.scope() {
        wire::Scope::Unspecified => None,
        wire::Scope::Wait => return Err(refused("its scope is WAIT, which only an answer can be")),
        wire::Scope::Everything => Some(Scope::Everything),
        wire::Scope::Assigned => Some(Scope::Assigned),
    };
    let provider = report.summary.as_ref();
    let provider = provider.map(|one| one.provider_address.clone());
    Ok(ReportFacts {
        shard: report.shard_id,
        epoch: report.shard_epoch,
        cycle: report.cycle,
        directory: report.directory,
        process: report.process,
        address: report.shard_address,
        provider: provider.unwrap_or_default(),
        term_seen: report.coordinator_term_seen,
        scope,
        digest: report.domains_digest,
        domains: report.domains,
        exceptions: all(report.exceptions, exception)?,
        transfers: all(report.transfers, transfer)?,
        clusters: report.clusters,
        capabilities: report.capabilities,
        acks: report
            .instruction_acks
            .into_iter()
            .filter_map(ack)
            .collect(),
        summary: summary(report.summary.unwrap_or_default())?,
        shortfalls: all(report.shortfalls, shortfall)?,
    })
}

fn all<M, F>(messages: Vec<M>, read: fn(M) -> Result<F, Status>) -> Result<Vec<F>, Status> {
    messages.into_iter().map(read).collect()
}

fn exception(one: wire::MachineException) -> Result<ExceptionFacts, Status> {
    let kind = match one.kind() {
        machine_exception::Kind::Away => ExceptionKind::Away,
        machine_exception::Kind::Guest => ExceptionKind::Guest,
        machine_exception::Kind::Unspecified => {
            return Err(refused("a machine is neither away nor a guest"));
        }
    };
    Ok(ExceptionFacts {
        machine: one.machine_id,
        kind,
        transfer: one.transfer_id,
        peer: one.peer_shard_id,
        domain: one.domain,
        stamp: stamp(one.term, one.sequence),
    })
}

fn stamp(term: i64, sequence: i64) -> Stamp {
    Stamp {
        reign: unsigned(term),
        sequence: unsigned(sequence),
    }
}

fn transfer(one: wire::TransferStatus) -> Result<TransferFacts, Status> {
    let state = match one.state() {
        State::Draining | State::Reserved => RecordState::Reserved,
        State::Released => RecordState::Released,
        State::Claimed => RecordState::Claimed,
        State::Refused => RecordState::Refused,
        State::Unspecified => return Err(refused("a transfer has no state")),
    };
    let expires = Some(one.expires_unix_ns).filter(|at| 0 < *at);
    Ok(TransferFacts {
        id: one.transfer_id,
        state,
        machines: one.machine_ids,
        peer: one.peer_shard_id,
        domain: one.domain,
        stamp: stamp(one.term, one.sequence),
        expires: expires.map(Time::from_nanos),
    })
}

/// An ack without an outcome says nothing.
fn ack(one: wire::InstructAck) -> Option<Ack> {
    let outcome = match one.outcome() {
        Outcome::Unspecified => return None,
        Outcome::Accepted => AckOutcome::Accepted,
        Outcome::RejectedStale => AckOutcome::RejectedStale,
        Outcome::RejectedInvalid => AckOutcome::RejectedInvalid,
        Outcome::Failed => AckOutcome::Failed,
    };
    let instruction = one.instruction_id;
    Some(Ack {
        instruction,
        outcome,
    })
}

fn summary(one: wire::ShardSummary) -> Result<Summary, Status> {
    let counts = |counts: std::collections::BTreeMap<String, i32>| {
        let counts = counts.into_iter();
        counts
            .map(|(name, number)| Ok((name, count(number)?)))
            .collect::<Result<_, Status>>()
    };
    Ok(Summary {
        machines: count(one.total_machines)?,
        free: count(one.free_machines)?,
        by_instance_type: counts(one.per_instance_type_counts)?,
        by_zone: counts(one.per_zone_counts)?,
        pools: all(one.pools, pool)?,
    })
}

fn pool(one: wire::CapacityPool) -> Result<Pool, Status> {
    Ok(Pool {
        instance_type: one.instance_type,
        zone: one.zone,
        idle: count(one.idle)?,
        speculative: count(one.speculative)?,
        configured: count(one.configured)?,
        allocatable: supply(one.allocatable)?,
    })
}

fn shortfall(one: wire::Shortfall) -> Result<Shortfall, Status> {
    let bucket = Bucket::from_number(one.interruption_penalty_bucket.into());
    let requirement = |one: wire::NodeSelectorRequirement| ShortfallRequirement {
        key: one.key,
        operator: Operator::from_number(one.operator),
        values: one.values,
    };
    Ok(Shortfall {
        deficit: demand(one.deficit)?,
        priority: one.priority,
        age_cycles: count(one.age_cycles)?,
        // One that a later version sends is above all that are known here.
        bucket: bucket.unwrap_or(Bucket::PINNED),
        constrained: one.topology_constrained,
        fingerprint: one.profile_fingerprint,
        min_unit: demand(one.min_unit)?,
        whole_units: one.whole_units,
        requirements: one.requirements.into_iter().map(requirement).collect(),
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn texts<T: ToString>(names: &[T]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// The answer as a shard reads it.
pub(crate) fn report_ack(answer: &Answer) -> wire::ReportAck {
    let scope = match answer.scope {
        Scope::Wait => wire::Scope::Wait,
        Scope::Everything => wire::Scope::Everything,
        Scope::Assigned => wire::Scope::Assigned,
    };
    let soon = answer.next_report.map(|pause| pause.as_millis());
    wire::ReportAck {
        coordinator_term: signed(answer.reign),
        acknowledged: true,
        instructions: answer.instructions.iter().map(instruction).collect(),
        confirmed_transfer_ids: texts(&answer.confirmed),
        foreign_machine_ids: texts(&answer.foreign),
        send_domains: answer.send_lists,
        scope: scope.into(),
        gone_shard_ids: texts(&answer.gone),
        next_report_ms: soon.map_or(0, |millis| u32::try_from(millis).unwrap_or(u32::MAX)),
    }
}

/// An instruction as a shard reads it.
pub(crate) fn instruction(one: &Instruction) -> CoordinatorInstruction {
    let payload = match &one.order {
        Order::AssignDomain(domain) => Payload::AssignDomain(wire::AssignDomain {
            topology_key: domain.key().to_owned(),
            topology_value: domain.value().to_owned(),
        }),
        Order::UnassignDomain(domain) => Payload::UnassignDomain(wire::UnassignDomain {
            topology_key: domain.key().to_owned(),
            topology_value: domain.value().to_owned(),
        }),
        Order::Claim(step) => moved(step, TransferPhase::Claim),
        Order::Return(step) => moved(step, TransferPhase::Return),
    };
    CoordinatorInstruction {
        coordinator_term: signed(one.stamp.reign),
        sequence_number: signed(one.stamp.sequence),
        instruction_id: one.id.clone(),
        payload: Some(payload),
    }
}

fn moved(step: &TransferStep, phase: TransferPhase) -> Payload {
    let text = |name: Option<String>| name.unwrap_or_default();
    Payload::TransferOwnership(TransferOwnership {
        machine_ids: texts(&step.machines),
        from_shard_id: text(step.from.as_ref().map(ToString::to_string)),
        to_shard_id: step.to.to_string(),
        selector: None,
        transfer_id: text(step.transfer.as_ref().map(ToString::to_string)),
        phase: phase.into(),
        domain: text(step.domain.as_ref().map(ToString::to_string)),
    })
}

/// The summary of a report, as readers get it.
pub(crate) fn shown_summary(summary: &Summary, provider: &str) -> wire::ShardSummary {
    let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let counts = |counts: &std::collections::BTreeMap<String, u32>| {
        let counts = counts.iter();
        counts
            .map(|(name, number)| (name.clone(), count(*number)))
            .collect()
    };
    let pool = |one: &Pool| wire::CapacityPool {
        instance_type: one.instance_type.clone(),
        zone: one.zone.clone(),
        idle: count(one.idle),
        speculative: count(one.speculative),
        configured: count(one.configured),
        allocatable: Some((&one.allocatable).into()),
    };
    wire::ShardSummary {
        total_machines: count(summary.machines),
        free_machines: count(summary.free),
        per_instance_type_counts: counts(&summary.by_instance_type),
        per_zone_counts: counts(&summary.by_zone),
        provider_address: provider.to_owned(),
        pools: summary.pools.iter().map(pool).collect(),
    }
}

/// A shortfall as readers get it: without its requirements.
pub(crate) fn shown_shortfall(one: &Shortfall) -> wire::Shortfall {
    wire::Shortfall {
        requirements: Vec::new(),
        deficit: Some((&one.deficit).into()),
        priority: one.priority,
        age_cycles: i32::try_from(one.age_cycles).unwrap_or(i32::MAX),
        interruption_penalty_bucket: wire::PenaltyBucket::from(one.bucket).into(),
        topology_constrained: one.constrained,
        profile_fingerprint: one.fingerprint.clone(),
        min_unit: Some((&one.min_unit).into()),
        whole_units: one.whole_units,
    }
}
