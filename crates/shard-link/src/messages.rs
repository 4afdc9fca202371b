//! Messages: a report as the coordinator reads it, and an instruction as the core has it (wire 3.4, 6.15).

use bigfleet_model::{MachineId, Time};
use bigfleet_shard_core::{
    Answer, CapacityPool, Disposition, Domain, Exception, ExceptionKind, Held, Instruction,
    InstructionAck, Order, Report, ReportedShortfall, Stamp, Summary, ToldScope, TransferRecord,
    TransferRole, TransferState,
};
use bigfleet_wire::v1alpha1::{
    self as wire, CoordinatorInstruction, InstructAck, MachineException, PenaltyBucket, ReportAck,
    ShardReport, ShardSummary, Shortfall, TransferStatus, coordinator_instruction::Payload,
    instruct_ack::Outcome, machine_exception, transfer_status,
};
use ring::digest::{SHA256, digest as sum};

/// What a report says that the core does not know.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// Drawn when this process started, so that two of one shard are told apart (CO-13).
    pub(crate) process: u64,
    pub(crate) address: String,
    pub(crate) provider: String,
}

/// The report as the coordinator reads it. `capabilities` stays empty: this shard does not take part in
/// moves of machines between shards.
pub(crate) fn report(
    report: Report,
    about: &About,
    number: u64,
    now_unix_nanos: i64,
    with_lists: bool,
) -> ShardReport {
    let held = report.held.as_ref();
    let scope = match held {
        None => wire::Scope::Unspecified,
        Some(held) if held.everything => wire::Scope::Everything,
        Some(_) => wire::Scope::Assigned,
    };
    let listed = held.filter(|_| with_lists);
    let exceptions = listed.iter().flat_map(|held| &held.exceptions);
    ShardReport {
        shard_id: report.shard,
        cycle: signed(number),
        timestamp_unix_nanos: now_unix_nanos,
        shard_epoch: signed(report.epoch),
        summary: Some(summary(report.summary, about)),
        shortfalls: report.shortfalls.iter().map(shortfall).collect(),
        instruction_acks: report.acks.into_iter().map(ack).collect(),
        shard_address: about.address.clone(),
        coordinator_term_seen: signed(report.term_seen),
        clusters: report.clusters.iter().map(ToString::to_string).collect(),
        domains_digest: digest(held),
        domains: listed.map(Held::domain_texts).unwrap_or_default(),
        exceptions: exceptions.map(exception).collect(),
        transfers: report.transfers.iter().map(transfer).collect(),
        scope: scope.into(),
        directory: report.directory,
        process: format!("{:016x}", about.process),
        ..ShardReport::default()
    }
}

/// SHA-256 of what is held, a line each, so that two sides can tell whether they mean the same without naming it (CO-31). Of a
/// shard that has nothing on disk: no bytes, which no set has.
fn digest(held: Option<&Held>) -> Vec<u8> {
    let Some(held) = held else {
        return Vec::new();
    };
    sum(&SHA256, held.lines().as_bytes()).as_ref().to_vec()
}

fn exception((machine, one): (&MachineId, &Exception)) -> MachineException {
    let kind = match one.kind {
        ExceptionKind::Away => machine_exception::Kind::Away,
        ExceptionKind::Guest => machine_exception::Kind::Guest,
    };
    MachineException {
        machine_id: machine.to_string(),
        kind: kind.into(),
        transfer_id: one.transfer.clone(),
        peer_shard_id: one.peer.clone(),
        domain: text(one.domain.as_ref()),
        term: signed(one.stamp.term),
        sequence: signed(one.stamp.sequence),
    }
}

fn transfer((id, one): &(String, TransferRecord)) -> TransferStatus {
    let role = match one.role {
        TransferRole::Donor => transfer_status::Role::Donor,
        TransferRole::Recipient => transfer_status::Role::Recipient,
    };
    let state = match one.state {
        TransferState::Reserved => transfer_status::State::Reserved,
        TransferState::Released => transfer_status::State::Released,
        TransferState::Claimed => transfer_status::State::Claimed,
        TransferState::Refused => transfer_status::State::Refused,
    };
    let Stamp { term, sequence } = one.stamp;
    TransferStatus {
        transfer_id: id.clone(),
        role: role.into(),
        state: state.into(),
        machine_ids: one.machines.iter().map(ToString::to_string).collect(),
        peer_shard_id: one.peer.clone(),
        expires_unix_ns: one.expires.map_or(0, Time::nanos),
        domain: text(one.domain.as_ref()),
        term: signed(term),
        sequence: signed(sequence),
    }
}

fn text(domain: Option<&Domain>) -> String {
    domain.map(ToString::to_string).unwrap_or_default()
}

fn summary(summary: Summary, about: &About) -> ShardSummary {
    let counts = |counts: std::collections::BTreeMap<String, u32>| {
        let named = counts.into_iter().filter(|(name, _)| !name.is_empty());
        named.map(|(name, number)| (name, count(number))).collect()
    };
    ShardSummary {
        total_machines: count(summary.machines),
        free_machines: count(summary.free),
        per_instance_type_counts: counts(summary.by_instance_type),
        per_zone_counts: counts(summary.by_zone),
        provider_address: about.provider.clone(),
        pools: summary.pools.into_iter().map(pool).collect(),
    }
}

fn pool(pool: CapacityPool) -> wire::CapacityPool {
    wire::CapacityPool {
        instance_type: pool.instance_type,
        zone: pool.zone,
        idle: count(pool.idle),
        speculative: count(pool.speculative),
        configured: count(pool.configured),
        allocatable: Some((&pool.allocatable).into()),
    }
}

fn shortfall(line: &ReportedShortfall) -> Shortfall {
    let (row, profile) = (&line.need.row, &line.need.row.profile);
    let need = wire::CapacityNeed::from(row);
    Shortfall {
        requirements: need.requirements,
        deficit: Some((&line.deficit).into()),
        priority: profile.priority(),
        age_cycles: count(line.age),
        interruption_penalty_bucket: PenaltyBucket::from(profile.interruption()).into(),
        topology_constrained: line.constrained,
        profile_fingerprint: profile.fingerprint().to_string(),
        min_unit: Some((&row.min_unit).into()),
        whole_units: row.whole_units,
    }
}

fn ack(ack: InstructionAck) -> InstructAck {
    let outcome = match ack.disposition {
        Disposition::Accepted => Outcome::Accepted,
        Disposition::RejectedStale => Outcome::RejectedStale,
        Disposition::RejectedInvalid => Outcome::RejectedInvalid,
        Disposition::Failed => Outcome::Failed,
    };
    InstructAck {
        instruction_id: ack.id,
        outcome: outcome.into(),
        reason: ack.reason,
        ..InstructAck::default()
    }
}

/// An answer as the core has it. Which of it is taken is the core's to say; what is no name is left out.
pub(crate) fn answer(message: ReportAck) -> Answer {
    let scope = match message.scope() {
        wire::Scope::Unspecified => ToldScope::Unsaid,
        wire::Scope::Wait => ToldScope::Wait,
        wire::Scope::Everything => ToldScope::Everything,
        wire::Scope::Assigned => ToldScope::Assigned,
    };
    let foreign = message.foreign_machine_ids.iter();
    let gone = message.gone_shard_ids.into_iter();
    Answer {
        // A term below zero is none.
        term: u64::try_from(message.coordinator_term).unwrap_or_default(),
        scope,
        confirmed: message.confirmed_transfer_ids,
        foreign: foreign.filter_map(|id| MachineId::new(id).ok()).collect(),
        gone: gone.filter(|id| !id.is_empty()).collect(),
        instructions: message.instructions.into_iter().map(instruction).collect(),
    }
}

/// What the coordinator asks for. Which of it is done, and how it is answered, is the core's to say.
fn instruction(message: CoordinatorInstruction) -> Instruction {
    let domain = |key: String, value: String| Domain { key, value };
    let order = match message.payload {
        Some(Payload::AssignDomain(one)) => {
            Order::AssignDomain(domain(one.topology_key, one.topology_value))
        }
        Some(Payload::UnassignDomain(one)) => {
            Order::UnassignDomain(domain(one.topology_key, one.topology_value))
        }
        Some(
            Payload::ReassignSpeculative(_)
            | Payload::CrossShardDrain(_)
            | Payload::TransferOwnership(_),
        ) => Order::Move,
        None => Order::Unknown,
    };
    Instruction {
        id: message.instruction_id,
        term: u64::try_from(message.coordinator_term).unwrap_or_default(),
        sequence: u64::try_from(message.sequence_number).unwrap_or_default(),
        order,
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that `printf 'a.b=2\na=1\n' | sha256sum` gives, and that of nothing.
    #[test]
    fn a_digest_is_of_the_sorted_lines() {
        let domain = |text: &&str| {
            let (key, value) = text.split_once('=').unwrap();
            let (key, value) = (key.to_owned(), value.to_owned());
            Domain { key, value }
        };
        let hex = |domains: &[&str]| -> String {
            let held = Held {
                domains: domains.iter().map(domain).collect(),
                ..Held::default()
            };
            let digest = digest(Some(&held));
            digest.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(
            hex(&["a.b=2", "a=1"]),
            "b3698eccc8a3a6cb236d7d474c8413af7336ffea46ff881e9af5e8a12a1f378b"
        );
        assert_eq!(
            hex(&[]),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(digest(None), b"", "nothing on disk is not given nothing");
    }
}
