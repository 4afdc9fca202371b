//! One replica that agrees with itself at once, and the shards that report to it.

use std::{fmt::Write as _, time::Duration};

use bigfleet_coordinator_core::{
    AdminRequest, Answer, Applied, Caller, Command, CoordinatorCore, Defect, Domain, Order,
    Refused, ReportFacts, Scope, Settings, ShardId, Step, Tables,
};
use bigfleet_model::{MachineId, Time};

use crate::shard::Shard;

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().try_into().unwrap()
}

pub(crate) fn settings(defect: Option<Defect>) -> Settings {
    Settings {
        sha256,
        report_interval: Duration::from_secs(10),
        defect,
    }
}

pub(crate) fn shard(id: &str) -> ShardId {
    ShardId::new(id).unwrap()
}

pub(crate) fn zone(value: &str) -> Domain {
    Domain::new("zone", value).unwrap()
}

pub(crate) fn machine(id: &str) -> MachineId {
    MachineId::new(id).unwrap()
}

/// A replica that leads and whose every proposal is applied at once.
pub(crate) struct One {
    pub(crate) core: CoordinatorCore,
    pub(crate) now: Time,
    seed: u64,
}

impl One {
    pub(crate) fn new(defect: Option<Defect>) -> Self {
        Self::with(defect, Tables::default(), 0)
    }

    /// Over these tables. `seed` is the last one that was used for ids of instructions: shards remember those.
    pub(crate) fn with(defect: Option<Defect>, tables: Tables, seed: u64) -> Self {
        let mut one = Self {
            core: CoordinatorCore::new(settings(defect), tables),
            now: Time::from_nanos(1_000_000_000),
            seed,
        };
        one.elect();
        one
    }

    /// The next reign begins.
    pub(crate) fn elect(&mut self) {
        let entry = self.core.elected();
        let results = self.core.apply(&entry);
        let Ok(Applied::Reign(reign)) = results[0] else {
            panic!("{results:?}");
        };
        self.seed += 1;
        self.core.begin(self.now, reign, self.seed);
    }

    pub(crate) fn apply(&mut self, command: Command) -> Result<Applied, Refused> {
        self.core.apply(&[command]).remove(0)
    }

    pub(crate) fn ask(&mut self, request: AdminRequest) -> Result<(), Refused> {
        let commands = self.core.admin(self.now, &Caller::Unverified, &request)?;
        let results = self.core.apply(&commands);
        results.into_iter().try_for_each(|result| result.map(drop))
    }

    pub(crate) fn assign(&mut self, value: &str, shard: &str) -> Result<(), Refused> {
        let (key, value, shard) = ("zone".to_owned(), value.to_owned(), shard.to_owned());
        self.ask(AdminRequest::AssignDomain { key, value, shard })
    }

    pub(crate) fn move_to(&mut self, value: &str, to: &str) -> Result<(), Refused> {
        let (key, value, to) = ("zone".to_owned(), value.to_owned(), to.to_owned());
        self.ask(AdminRequest::MoveDomain { key, value, to })
    }

    pub(crate) fn unassign(&mut self, value: &str) {
        let (key, value) = ("zone".to_owned(), value.to_owned());
        let request = AdminRequest::UnassignDomain { key, value };
        self.ask(request).unwrap();
    }

    pub(crate) fn remove(&mut self, shard: &str, gone: bool) -> Result<(), Refused> {
        let shard = shard.to_owned();
        self.ask(AdminRequest::RemoveShard { shard, gone })
    }

    /// A report, with whatever it proposes applied at once.
    pub(crate) fn take(&mut self, facts: ReportFacts) -> Result<Answer, Refused> {
        let mut step = self.core.report(self.now, &Caller::Unverified, facts);
        loop {
            match step {
                Step::Answer(answer) => return Ok(answer),
                Step::Refuse(refused) => return Err(refused),
                Step::Propose(commands, ticket) => {
                    let results = self.core.apply(&commands);
                    step = self.core.proceed(self.now, ticket, &results);
                }
            }
        }
    }

    /// The shard reports, and hears the answer.
    pub(crate) fn round(&mut self, shard: &mut Shard) -> Answer {
        let answer = self.take(shard.report()).unwrap();
        shard.hear(&answer);
        answer
    }

    /// So many reports of a shard; the last answer.
    pub(crate) fn rounds(&mut self, shard: &mut Shard, count: usize) -> Answer {
        (1..count).for_each(|_| drop(self.round(shard)));
        self.round(shard)
    }

    pub(crate) fn holder(&self, value: &str) -> Option<String> {
        let snapshot = self.core.tables().snapshot();
        let mut rows = snapshot.domains.into_iter();
        let row = rows.find(|(domain, _)| *domain == zone(value))?.1;
        row.holder.map(|shard| shard.to_string())
    }
}

/// Two shards of one provider, known and heard, with nothing assigned.
pub(crate) fn two_shards(one: &mut One) -> (Shard, Shard) {
    let (mut s1, mut s2) = (Shard::new("s1", "p:1"), Shard::new("s2", "p:1"));
    one.round(&mut s1);
    one.round(&mut s2);
    one.rounds(&mut s1, 2);
    one.rounds(&mut s2, 2);
    (s1, s2)
}

/// An answer as one line: what tests compare.
pub(crate) fn shown(answer: &Answer) -> String {
    let mut line = match answer.scope {
        Scope::Wait => "WAIT".to_owned(),
        Scope::Everything => "EVERYTHING".to_owned(),
        Scope::Assigned => "ASSIGNED".to_owned(),
    };
    if answer.send_lists {
        line.push_str(" send-lists");
    }
    for id in &answer.confirmed {
        write!(line, " confirmed {id}").unwrap();
    }
    for machine in &answer.foreign {
        write!(line, " foreign {machine}").unwrap();
    }
    for instruction in &answer.instructions {
        match &instruction.order {
            Order::AssignDomain(domain) => write!(line, " assign {domain}"),
            Order::UnassignDomain(domain) => write!(line, " unassign {domain}"),
            Order::Claim(step) => write!(line, " claim {}", step.machines[0]),
            Order::Return(step) => write!(line, " return {}", step.machines[0]),
        }
        .unwrap();
    }
    for shard in &answer.gone {
        write!(line, " gone {shard}").unwrap();
    }
    line
}
