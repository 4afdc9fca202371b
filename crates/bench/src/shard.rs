//! A shard on a workload that goes on living: provider, operators and disk answer at once, in memory.
//!
//! ```text
//! workload ── List, Hello, roll-ups ──▶ ShardCore ── effects ──┐
//!                                          ▲                   │
//!    churn: roll-ups, lost machines ───────┴── answers ◀───────┘  calls end before the next cycle
//! ```
//!
//! What the world sends is made before it is handed in, so that a clock around the latter measures
//! the core and nothing else.

use bigfleet_model::{Echoed, Host, Machine, MachineId, Row, State, Time};
use bigfleet_shard_core::{
    BreakerKey, CallOutcome, Effect, Event, Features, ListId, Listed, ProviderCall, Record,
    SessionId, ShardConfig, ShardCore, Sighting,
};
use bigfleet_shard_world::{bare, call_ended, found, listed, obey, shown};
use bigfleet_workloads::{CYCLE, Churn, Workload};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// The moment the shard starts.
const START: Time = Time::from_nanos(3_600_000_000_000);
/// When roll-ups come after a cycle: within the spacing of cycles, so that they wait for the next.
const SOON: Duration = Duration::from_millis(10);
/// Machines in a page of a List.
const PAGE: usize = 1000;

/// A shard in its world.
pub struct Shard<'a> {
    workload: &'a Workload,
    core: ShardCore,
    now: Time,
    /// What the last effects ask for, to be answered.
    answers: Vec<Event>,
    lists: Vec<ListId>,
    lost: BTreeSet<MachineId>,
    /// Records and their bytes since last asked.
    written: (u64, u64),
}

/// How long one cycle took, and what it was about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Deciding, committing, handing out the write.
    pub cycle: Duration,
    /// Everything else: roll-ups, answers, what follows from them.
    pub events: Duration,
    /// How many events.
    pub count: usize,
    /// Records handed out.
    pub records: u64,
    /// What they hold.
    pub bytes: u64,
}

impl<'a> Shard<'a> {
    /// A shard that has read the whole fleet and heard every cluster; returns how long that took.
    pub fn load(workload: &'a Workload) -> (Self, Duration) {
        let config = ShardConfig::production("s0", "bench");
        let core = ShardCore::new(config, 1, START);
        let mut shard = Self {
            workload,
            core: core.unwrap_or_else(|refused| panic!("a shard that does not start: {refused}")),
            now: START,
            answers: Vec::new(),
            lists: Vec::new(),
            lost: BTreeSet::new(),
            written: (0, 0),
        };
        let mut took = shard.tell(Event::Woken);
        for list in std::mem::take(&mut shard.lists) {
            let mut machines = workload.machines().map(|one| shown(workload.record(&one)));
            loop {
                let machines: Vec<Sighting> = machines.by_ref().take(PAGE).collect();
                if machines.is_empty() {
                    break;
                }
                let refused = Vec::new();
                took += shard.tell(Event::ListPage {
                    list,
                    machines,
                    refused,
                });
            }
            let outcome = complete(true);
            took += shard.tell(Event::ListEnded { list, outcome });
        }
        for cluster in workload.clusters() {
            took += shard.tell(Event::SessionOpened {
                session: SessionId(cluster.number() as u64),
                cluster: cluster.id().clone(),
                features: Features {
                    drain_report: true,
                    node_report: false,
                    resync: true,
                },
                identity: None,
            });
            took += shard.tell(shard.rolled_up(cluster.number(), cluster.rows().collect()));
        }
        took += shard.settle();
        (shard, took)
    }

    /// The core.
    pub fn core(&self) -> &ShardCore {
        &self.core
    }

    /// Ten seconds in which nothing happens, and their cycle.
    pub fn quiet_cycle(&mut self) -> Duration {
        self.now = self.now + CYCLE;
        let took = self.tell(Event::CycleDue);
        self.settle();
        took
    }

    /// Ten seconds of the workload's life, and their cycle.
    pub fn cycle(&mut self, churn: &mut Churn<'_>) -> Measured {
        let changes = churn.next_cycle().clone();
        let clusters: BTreeSet<u32> = changes.rows.iter().map(|row| row.cluster).collect();
        for lost in &changes.lost {
            self.lost.extend(MachineId::new(&lost.to_string()));
        }
        self.written = (0, 0);
        let mut measured = Measured::default();
        self.now = self.now + SOON;
        for cluster in clusters {
            let rows = churn.rows(cluster as usize).collect();
            measured.events += self.tell(self.rolled_up(cluster as usize, rows));
            measured.count += 1;
        }
        self.now = self.now + (CYCLE - SOON);
        measured.cycle = self.tell(Event::CycleDue);
        measured.count += self.answers.len() + self.lists.len();
        measured.events += self.settle();
        (measured.records, measured.bytes) = self.written;
        measured
    }

    fn rolled_up(&self, cluster: usize, rows: Vec<Row>) -> Event {
        Event::RolledUp {
            session: SessionId(cluster as u64),
            cluster: self.workload.cluster(cluster).id().clone(),
            rollup_id: String::new(),
            rows: Ok(rows),
        }
    }

    /// Hands in one event; what it asks for waits.
    fn tell(&mut self, event: Event) -> Duration {
        let mut effects = Vec::new();
        let now = self.now;
        let clock = Instant::now();
        self.core.handle(now, event, &mut effects);
        let took = clock.elapsed();
        for effect in effects {
            self.answer(effect);
        }
        took
    }

    /// Answers until nothing is asked any more. Cycles that answers wake are left to the next one
    /// that is measured: all of this happens within their spacing.
    fn settle(&mut self) -> Duration {
        let mut took = Duration::ZERO;
        loop {
            let answers = std::mem::take(&mut self.answers);
            let lists = std::mem::take(&mut self.lists);
            if answers.is_empty() && lists.is_empty() {
                return took;
            }
            for answer in answers {
                took += self.tell(answer);
            }
            for list in lists {
                let lost = std::mem::take(&mut self.lost);
                let machines = lost.iter().filter_map(|id| self.failed(id)).collect();
                for event in listed(list, machines, Vec::new(), complete(false)) {
                    took += self.tell(event);
                }
            }
        }
    }

    fn answer(&mut self, effect: Effect) {
        match effect {
            Effect::Persist { barrier, records } => {
                self.written.0 += records.len() as u64;
                self.written.1 += records.iter().map(bytes).sum::<u64>();
                self.answers.push(Event::Persisted { barrier });
            }
            Effect::Call {
                operation,
                machine,
                token,
                call,
            } => {
                let done = self.done(&machine, &call);
                let done = done.map(CallOutcome::acked);
                self.answers
                    .extend(done.map(|done| call_ended(operation, &token, done)));
            }
            Effect::Get { get, machine } => {
                // Only machines that were lost are ever asked for by name.
                let answer = found(self.failed(&machine));
                self.answers.push(Event::GotMachine { get, answer });
            }
            Effect::List { list, .. } => self.lists.push(list),
            Effect::Send { session, frame } => self.answers.extend(obey(session, frame)),
            Effect::Close { .. } | Effect::Audit(_) | Effect::Alert(_) | Effect::WakeAt(_) => {}
        }
    }

    /// The machine as a provider shows it when the call is done.
    fn done(&self, machine: &MachineId, call: &ProviderCall) -> Option<Sighting> {
        let known = self.core.machine(machine)?;
        let echoed = match call {
            ProviderCall::Configure { metadata, .. } => metadata.into(),
            ProviderCall::Create | ProviderCall::Drain { .. } | ProviderCall::Delete => {
                Echoed::default()
            }
        };
        let host = || Host {
            provider: "bench".to_owned(),
            reference: machine.to_string(),
        };
        let machine = bare(known.arrive(host).ok()?);
        Some(Sighting {
            machine,
            echoed,
            leaving: None,
        })
    }

    fn failed(&self, machine: &MachineId) -> Option<Sighting> {
        let mut facts = bare(self.core.machine(machine)?.clone()).into_facts();
        facts.state = State::Failed.into();
        facts.last_error = "lost".to_owned();
        Some(Sighting::from(Machine::new(facts).ok()?))
    }
}

fn complete(full: bool) -> Listed {
    Listed::Complete {
        full,
        removed: Vec::new(),
        cursor: vec![1],
    }
}

/// What a record holds: every text with a length of four bytes, every number as eight, every choice
/// as one. Whoever writes files adds a frame and a checksum.
fn bytes(record: &Record) -> u64 {
    let text = |text: &str| 4 + text.len() as u64;
    let need = |need: &bigfleet_model::NeedKey| {
        text(need.cluster.as_str()) + text(need.fingerprint.as_str()) + text(need.group.as_str())
    };
    // Priority, two penalties, keep price.
    const TERMS: u64 = 4 * 8;
    1 + match record {
        Record::Machine { machine, kept } => {
            let kept = kept.as_ref().map(|kept| {
                let cluster = kept.cluster.as_ref().map_or(0, |one| text(one.as_str()));
                let assignment = &kept.assignment;
                let bound =
                    text(assignment.fingerprint.as_str()) + text(assignment.group.as_str()) + TERMS;
                let intent = kept
                    .intent
                    .as_ref()
                    .map_or(0, |one| need(&one.need) + TERMS);
                let operation = kept.operation.as_ref().map_or(0, |one| {
                    let cluster = one.cluster.as_ref().map_or(0, |one| text(one.as_str()));
                    // Id, cycle, grace, priority, deadline; action and reason.
                    6 * 8 + 2 + cluster + one.need.as_ref().map_or(0, need)
                });
                let given_up = kept.given_up.map_or(0, |_| 16);
                let spent = kept
                    .spent
                    .as_ref()
                    .map_or(0, |(of, _)| text(of.as_str()) + 8);
                7 + cluster + bound + intent + given_up + spent + operation
            });
            text(machine.as_str()) + kept.unwrap_or(0)
        }
        Record::Cluster {
            cluster, baseline, ..
        } => {
            let totals = baseline
                .totals
                .iter()
                .map(|(name, _)| text(name.as_str()) + 16);
            text(cluster.as_str()) + 8 + totals.sum::<u64>()
        }
        Record::Reclaims { cluster, left } => text(cluster.as_str()) + 12 * left.len() as u64,
        Record::Owned { machine, .. } => text(machine.as_str()) + 1,
        Record::Epoch(_) | Record::Term(_) => 8,
        Record::ForeignSeen => 0,
        Record::Arrival { need: row, at } => need(row) + at.map_or(1, |_| 9),
        Record::Instruction(id) => text(id),
        Record::Domain { domain, .. } => text(&domain.key) + text(&domain.value) + 2,
        Record::Scope(_) | Record::Superseded => 1,
        Record::Exception { machine, exception } => {
            let one = exception.as_ref();
            text(machine.as_str()) + one.map_or(1, |one| text(&one.transfer) + text(&one.peer) + 17)
        }
        Record::Transfer { id, transfer } => {
            let one = transfer.as_ref();
            let machines = one.map_or(0, |one| {
                let machines = one.machines.iter();
                machines.map(|id| text(id.as_str())).sum::<u64>()
            });
            text(id) + machines + one.map_or(1, |one| text(&one.peer) + 26)
        }
        Record::GoneShard(shard) => text(shard),
        Record::ClusterForgotten(cluster) => text(cluster.as_str()),
        Record::Released { cluster, .. } => text(cluster.as_str()) + 1,
        Record::Retired { machine, .. } => text(machine.as_str()),
        Record::Drained { machine, mark } => {
            let said = mark.as_ref();
            let said = said.map_or(1, |mark| text(&mark.by) + text(&mark.reason) + 19);
            text(machine.as_str()) + said
        }
        Record::Paused { kept, .. } => kept.as_ref().map_or(1, |kept| {
            text(&kept.note.requested_by) + text(&kept.note.reason) + 17
        }),
        Record::Breaker { key, kept } => {
            let key = match key {
                BreakerKey::Create(pool) => text(&pool.instance_type) + text(&pool.zone),
                BreakerKey::Join(cluster, _) => text(cluster.as_str()) + 1,
            };
            key + kept
                .as_ref()
                .map_or(1, |kept| text(&kept.last_error) + 4 * 8)
        }
    }
}
