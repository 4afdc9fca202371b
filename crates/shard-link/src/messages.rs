//! Messages: a report as the coordinator reads it, and an instruction as the core has it (wire 3.4, 6.15).

use bigfleet_shard_core::{
    CapacityPool, Disposition, Domain, Instruction, InstructionAck, Order, Report,
    ReportedShortfall, Summary,
};
use bigfleet_wire::v1alpha1::{
    self as wire, CoordinatorInstruction, InstructAck, PenaltyBucket, ShardReport, ShardSummary,
    Shortfall, coordinator_instruction::Payload, instruct_ack::Outcome,
};
use ring::digest::{Context, SHA256};

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
    with_domains: bool,
) -> ShardReport {
    let named = |domain: Domain| format!("{}={}", domain.key, domain.value);
    let domains = report.domains.map(|domains| {
        let mut domains: Vec<String> = domains.into_iter().map(named).collect();
        // As texts: a key may go on where another ends, and then pairs are in another order.
        domains.sort_unstable();
        domains
    });
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
        domains_digest: digest(domains.as_deref()),
        domains: domains.filter(|_| with_domains).unwrap_or_default(),
        process: format!("{:016x}", about.process),
        ..ShardReport::default()
    }
}

/// SHA-256 of the domains, a line each, so that two sides can tell whether they mean the same ones
/// without naming them (CO-31). Of a shard that was never given any: no bytes, which no set has.
fn digest(sorted: Option<&[String]>) -> Vec<u8> {
    let Some(sorted) = sorted else {
        return Vec::new();
    };
    let mut sum = Context::new(&SHA256);
    for domain in sorted {
        sum.update(domain.as_bytes());
        sum.update(b"\n");
    }
    sum.finish().as_ref().to_vec()
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
        topology_constrained: profile.same_key().is_some(),
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

/// What the coordinator asks for. Which of it is done, and how it is answered, is the core's to say.
pub(crate) fn instruction(message: CoordinatorInstruction) -> Instruction {
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
        let hex = |domains: &[&str]| -> String {
            let domains: Vec<String> = domains.iter().map(|one| (*one).to_owned()).collect();
            let digest = digest(Some(&domains));
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
        assert_eq!(digest(None), b"", "never given any is not given none");
    }
}
