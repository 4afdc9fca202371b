//! A shard as far as a coordinator sees one: it reports, remembers what it is told, and says what it holds.

use bigfleet_wire::v1alpha1::coordinator_instruction::Payload;
use bigfleet_wire::v1alpha1::instruct_ack::Outcome;
use bigfleet_wire::v1alpha1::{InstructAck, ReportAck, Scope, ShardReport, ShardSummary};
use ring::digest::{SHA256, digest};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pub(crate) id: String,
    pub(crate) epoch: i64,
    pub(crate) directory: u64,
    pub(crate) process: String,
    cycle: i64,
    /// The highest reign it has heard of.
    pub(crate) mark: i64,
    /// `None` until it is told anything.
    pub(crate) scope: Option<Scope>,
    pub(crate) domains: BTreeSet<String>,
    is_asked: bool,
    acks: Vec<InstructAck>,
}

impl Reporter {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            epoch: 1,
            directory: 7,
            process: "0123456789abcdef".to_owned(),
            cycle: 0,
            mark: 0,
            scope: None,
            domains: BTreeSet::new(),
            is_asked: false,
            acks: Vec::new(),
        }
    }

    /// The next thing it says.
    pub(crate) fn report(&mut self) -> ShardReport {
        self.cycle += 1;
        let mut report = ShardReport {
            shard_id: self.id.clone(),
            cycle: self.cycle,
            shard_epoch: self.epoch,
            summary: Some(ShardSummary::default()),
            instruction_acks: self.acks.clone(),
            coordinator_term_seen: self.mark,
            directory: self.directory,
            process: self.process.clone(),
            domains_digest: self.digest(),
            ..ShardReport::default()
        };
        report.set_scope(self.scope.unwrap_or_default());
        if self.is_asked {
            report.domains = self.domains.iter().cloned().collect();
        }
        report
    }

    fn digest(&self) -> Vec<u8> {
        let Some(scope) = self.scope else {
            return Vec::new();
        };
        let mut text = String::new();
        if scope == Scope::Everything {
            text.push_str("*\n");
        }
        for domain in &self.domains {
            text.push_str(domain);
            text.push('\n');
        }
        digest(&SHA256, text.as_bytes()).as_ref().to_vec()
    }

    /// Does what it is told; false if the answer is of an earlier reign.
    pub(crate) fn hear(&mut self, answer: &ReportAck) -> bool {
        if answer.coordinator_term < self.mark {
            return false;
        }
        self.mark = answer.coordinator_term;
        self.is_asked = answer.send_domains;
        self.acks.clear();
        match answer.scope() {
            Scope::Wait | Scope::Unspecified => return true,
            scope => self.scope = Some(scope),
        }
        for told in &answer.instructions {
            match &told.payload {
                Some(Payload::AssignDomain(one)) => {
                    let domain = format!("{}={}", one.topology_key, one.topology_value);
                    self.domains.insert(domain);
                }
                Some(Payload::UnassignDomain(one)) => {
                    let domain = format!("{}={}", one.topology_key, one.topology_value);
                    self.domains.remove(&domain);
                }
                _ => continue,
            }
            let mut ack = InstructAck {
                instruction_id: told.instruction_id.clone(),
                ..InstructAck::default()
            };
            ack.set_outcome(Outcome::Accepted);
            self.acks.push(ack);
        }
        true
    }
}
