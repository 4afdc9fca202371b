//! The world: one seeded queue, and everything that takes from it.
//!
//! ```text
//!            ┌────────────── queue: (moment, drawn tie, order) ◀─────────────────┐
//!            ▼                                                                    │
//! timeline ─▶ step ─┬─▶ process: ShardCore::handle ─▶ effects ─▶ latencies drawn ─┤
//! weather ──▶       ├─▶ cloud: Kit::handle ─▶ Start ─▶ stage latency ─────────────┤
//!                   ├─▶ operators: frames, blobs, drains, roll-ups ───────────────┤
//!                   └─▶ watch: invariants, after every event                      │
//! ```
//!
//! There is no thread, no clock and no order but the queue's. What a run did is a function of its
//! plan and its seed.

use crate::{
    clock::{Moment, Queue, seconds},
    cloud::Cloud,
    cluster_side::{Side, SideEvent},
    defect::Defect,
    dice::Dice,
    log::Log,
    plan::{Left, MachinePlan, Plan, Start, Strike},
    pods::Pods,
    process::Process,
    trace::Trace,
    watch::Watch,
};
use bigfleet_model::{Assignment, ClusterId, MachineId, Terms};
use bigfleet_provider_kit::Outcome;
use bigfleet_shard_core::{
    Barrier, Event, Frame, GetId, ListId, OperationId, ProviderCall, Rails, Record, SessionId,
    ShardConfig, ShardCore, Token,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// A store with more records than this is compacted.
const LONGEST_FILE: usize = 20_000;

/// The stream of draws of the first cluster with a real operator.
const FIRST_SIDE: u64 = 1_000;

/// Something that is going to happen.
pub(crate) enum Happening {
    /// An event reaches a process.
    Tell { epoch: u64, event: Box<Event> },
    /// A timer a process asked for.
    Wake { epoch: u64, wake: u64 },
    /// A write of a process is on disk.
    Written { epoch: u64, barrier: Barrier },
    /// A call reaches the provider.
    Call {
        epoch: u64,
        operation: OperationId,
        machine: MachineId,
        token: Token,
        call: ProviderCall,
    },
    /// A List reaches the provider.
    List {
        epoch: u64,
        list: ListId,
        cursor: Vec<u8>,
    },
    /// A Get reaches the provider.
    Get {
        epoch: u64,
        get: GetId,
        machine: MachineId,
    },
    /// The provider finishes an operation, well or not.
    Settles {
        machine: MachineId,
        operation: Arc<str>,
        outcome: Outcome,
    },
    /// A frame reaches an operator.
    Frame {
        cluster: usize,
        session: SessionId,
        frame: Box<Frame>,
    },
    /// A cluster sends a roll-up; `tick` marks the regular ones.
    RollUp { cluster: usize, tick: bool },
    /// A machine's node takes Pods.
    Joins { cluster: usize, machine: MachineId },
    /// A node is empty.
    Emptied {
        cluster: usize,
        instruction: OperationId,
        machine: MachineId,
    },
    /// An operator tries to connect.
    Connect { cluster: usize },
    /// A process starts, with the records it found on disk.
    Begin { records: Vec<Record> },
    /// A process that was started without its disk is replaced by one with these records.
    RightDisk { records: Vec<Record> },
    /// The current process of the shard dies.
    Crash { disk: Left, millis: u64 },
    /// A process that was replaced by a newer one ends.
    End { epoch: u64 },
    /// A broken slot can be used again.
    Repair(MachineId),
    /// An entry of the timeline, by position.
    Change(usize),
    /// The provider takes back a spot machine.
    TakenBack(MachineId),
    /// A machine breaks at random.
    Break,
    /// Something on the side of a cluster with a real operator.
    Side {
        cluster: usize,
        event: Box<SideEvent>,
    },
    /// The invariants that need time are checked.
    Probe,
}

/// A cluster and its operator.
pub(crate) struct Cluster {
    pub(crate) id: ClusterId,
    pub(crate) pods: Pods,
    /// The operator's session, and with which process.
    pub(crate) session: Option<(u64, SessionId)>,
    pub(crate) away_until: Moment,
    pub(crate) drains_blocked_until: Moment,
    pub(crate) blob_errors_until: Moment,
    pub(crate) configures_fail_until: Moment,
    pub(crate) partitioned_until: Moment,
    pub(crate) roll_ups: u64,
    pub(crate) empty_roll_ups: u32,
    /// What was told of each node, if that is not always the truth.
    pub(crate) told: BTreeMap<MachineId, u32>,
    /// Messages on a stream arrive in order: the last one up and the last one down.
    pub(crate) last_up: Moment,
    pub(crate) last_down: Moment,
    /// A Kubernetes with the real operator; its Pods are not those above.
    pub(crate) side: Option<Box<Side>>,
}

impl Cluster {
    /// Whether a machine is a node.
    pub(crate) fn has_node(&self, machine: &MachineId) -> bool {
        match &self.side {
            Some(side) => side.has_node(machine),
            None => self.pods.has_node(machine),
        }
    }

    /// Pods that wait for a node.
    pub(crate) fn pending(&self) -> u32 {
        match &self.side {
            Some(side) => side.pending(),
            None => self.pods.pending(),
        }
    }

    /// Pods there are.
    pub(crate) fn live(&self) -> u32 {
        match &self.side {
            Some(side) => side.live(),
            None => self.pods.live(),
        }
    }

    /// Pods that were evicted.
    pub(crate) fn evicted(&self) -> u64 {
        match &self.side {
            Some(side) => side.evicted,
            None => self.pods.evicted,
        }
    }
}

/// The state of a run: the fleet, the shard's processes, the clusters, and what is still to happen.
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) defect: Option<Defect>,
    pub(crate) now: Moment,
    pub(crate) queue: Queue<Happening>,
    pub(crate) dice: Dice,
    pub(crate) cloud: Cloud,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) processes: BTreeMap<u64, Process>,
    /// The epoch of the shard's current process; 0 while none runs.
    pub(crate) current: u64,
    pub(crate) epochs: u64,
    pub(crate) next_session: u64,
    pub(crate) next_call: u64,
    pub(crate) is_calm: bool,
    /// A crash that strikes at the next moment of its kind, such as the next write.
    pub(crate) armed: Option<(Strike, Left, u64)>,
    /// How often each fault struck.
    pub(crate) struck: BTreeMap<&'static str, u64>,
    /// How long it took to come to rest, once it did.
    pub(crate) rested_after: Option<u64>,
    pub(crate) watch: Watch,
    pub(crate) log: Log,
    pub(crate) trace: Trace,
    pub(crate) events: u64,
}

impl World {
    /// The world of a plan, before anything has happened.
    pub(crate) fn new(mut plan: Plan, seed: u64, defect: Option<Defect>, trace: Trace) -> Self {
        if let Some(defect) = defect {
            plan.clusters
                .iter_mut()
                .for_each(|cluster| defect.spoil(cluster));
        }
        let mut dice = Dice::stream(seed, 1);
        let clusters = plan.clusters.iter().enumerate();
        let clusters = clusters.map(|(number, plan)| cluster(plan, number, seed, defect));
        let clusters: Vec<Cluster> = clusters.collect();
        let serving = |machine: &MachinePlan| serving(&plan, machine);
        let cloud = Cloud::new(seed, &plan.machines, serving);
        let mut world = Self {
            now: Moment::START,
            queue: Queue::new(dice.fork()),
            watch: Watch::new(clusters.len(), plan.blind_to.clone()),
            log: Log::default(),
            cloud,
            clusters,
            dice,
            defect,
            processes: BTreeMap::new(),
            current: 0,
            epochs: plan.shard.epochs,
            next_session: 0,
            next_call: 0,
            is_calm: false,
            armed: None,
            struck: BTreeMap::new(),
            rested_after: None,
            trace,
            events: 0,
            plan,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let changes = self.plan.timeline.iter().enumerate();
        let changes: Vec<(usize, Moment)> = changes.map(|(at, (when, _))| (at, *when)).collect();
        for (at, when) in changes {
            self.queue.at(when, Happening::Change(at));
        }
        for cluster in 0..self.clusters.len() {
            if self.clusters[cluster].side.is_some() {
                self.with_side(cluster, |side, _, out| side.begin(out));
                continue;
            }
            let every = self.plan.clusters[cluster].roll_up_every;
            let phase = Moment(self.dice.between(0, every));
            self.queue.at(
                phase,
                Happening::RollUp {
                    cluster,
                    tick: true,
                },
            );
            let soon = Moment(self.dice.between(0, 2_000));
            self.queue.at(soon, Happening::Connect { cluster });
        }
        if 0 < self.plan.weather.break_every {
            let first = self.dice.interval(self.plan.weather.break_every);
            self.queue.at(Moment(first), Happening::Break);
        }
        let records = Vec::new();
        self.queue
            .in_order(Moment::START, Happening::Begin { records });
        self.queue.at(Moment(seconds(10)), Happening::Probe);
        let serving = self.cloud.machines().filter(|one| !one.cluster.is_empty());
        let serving: Vec<_> = serving
            .map(|one| (one.id.clone(), one.cluster.clone()))
            .collect();
        for (machine, name) in serving {
            if let Some(cluster) = self.cluster_named(&name)
                && let Some(found) = self.cloud.machine(&machine).cloned()
            {
                let shape = self.cloud.shape(&found.offer);
                self.clusters[cluster].pods.add_node(machine, shape);
            }
        }
        self.clusters.iter_mut().for_each(|one| one.pods.bind());
    }

    /// Runs everything that is due until a moment; false if an invariant broke.
    pub(crate) fn run_until(&mut self, end: Moment) -> bool {
        while let Some(at) = self.queue.next_at().filter(|at| *at <= end) {
            let Some((_, what)) = self.queue.pop() else {
                break;
            };
            self.now = at;
            self.events += 1;
            self.step(what);
            if self.watch.broken.is_some() {
                return false;
            }
        }
        self.now = self.now.max(end);
        true
    }

    fn step(&mut self, what: Happening) {
        match what {
            Happening::Tell { epoch, event } => self.tell(epoch, *event),
            Happening::Wake { epoch, wake } => {
                if self
                    .processes
                    .get(&epoch)
                    .is_some_and(|one| one.wake == wake)
                {
                    self.tell(epoch, Event::Woken);
                }
            }
            Happening::Written { epoch, barrier } => {
                if let Some(process) = self.processes.get_mut(&epoch) {
                    process.disk.written(barrier);
                    if LONGEST_FILE < process.disk.len() {
                        process.disk.compact(process.core.records());
                    }
                    self.watch.commits.on_disk(epoch, barrier);
                    self.tell(epoch, Event::Persisted { barrier });
                }
            }
            Happening::Call {
                epoch,
                operation,
                machine,
                token,
                call,
            } => self.call_arrives(epoch, operation, &machine, &token, call),
            Happening::List {
                epoch,
                list,
                cursor,
            } => self.list_arrives(epoch, list, cursor),
            Happening::Get {
                epoch,
                get,
                machine,
            } => self.get_arrives(epoch, get, &machine),
            Happening::Settles {
                machine,
                operation,
                outcome,
            } => self.settles(machine, operation, outcome),
            Happening::Frame {
                cluster,
                session,
                frame,
            } => self.frame_arrives(cluster, session, *frame),
            Happening::RollUp { cluster, tick } => self.roll_up(cluster, tick),
            Happening::Joins { cluster, machine } => self.join(cluster, &machine),
            Happening::Emptied {
                cluster,
                instruction,
                machine,
            } => self.emptied(cluster, instruction, &machine),
            Happening::Connect { cluster } => self.connect(cluster),
            Happening::Begin { records } => self.start_process(records),
            Happening::RightDisk { records } => self.right_disk(records),
            Happening::Crash { disk, millis } => {
                if !self.is_calm {
                    self.crash(disk, millis);
                }
            }
            Happening::End { epoch } => {
                self.processes.remove(&epoch);
                self.trace
                    .line(self.now, || format!("process {epoch} ends"));
            }
            Happening::Repair(machine) => {
                self.watch.repairs -= 1;
                if self.cloud.machine(&machine).is_none() {
                    self.watch.back_at.insert(machine.clone(), self.now);
                }
                let changed = self.cloud.repair(&machine);
                self.cloud_changed(changed);
            }
            Happening::Change(at) => {
                let change = self.plan.timeline[at].1.clone();
                if !self.is_calm {
                    self.change(at, &change);
                }
            }
            Happening::TakenBack(machine) => self.taken_back(machine),
            Happening::Break => self.break_by_weather(),
            Happening::Side { cluster, event } => self.side_step(cluster, *event),
            Happening::Probe => self.probe(),
        }
    }

    /// Starts a process with the records on its disk.
    pub(crate) fn start_process(&mut self, records: Vec<Record>) {
        self.epochs += 1;
        self.start_process_as(self.epochs, records);
    }

    /// The same with an epoch that need not be the next.
    pub(crate) fn start_process_as(&mut self, epoch: u64, records: Vec<Record>) {
        let core = ShardCore::rebuild(self.config(), epoch, self.now.time(), records.clone());
        let core = core.unwrap_or_else(|refused| panic!("the shard does not start: {refused}"));
        self.trace.line(self.now, || {
            format!("process {epoch} starts with {} records", records.len())
        });
        self.note_found(&records);
        self.processes.insert(epoch, Process::new(core, records));
        self.current = epoch;
        self.tell(epoch, Event::Woken);
        if self.is_calm {
            self.resume(); // whoever wanted to earlier found nobody to tell
        }
    }

    fn config(&self) -> ShardConfig {
        let plan = &self.plan.shard;
        let mut config = if plan.rails {
            ShardConfig::production("sim", "sim")
        } else {
            ShardConfig::undamped("sim", "sim")
        };
        config.cycle_interval = Duration::from_secs(plan.cycle_seconds);
        config.execute_concurrency = plan.workers;
        config.max_actions_per_cycle = plan.actions_per_cycle;
        config.holds = plan.holds;
        if let Some(defect) = self.defect {
            defect.apply(&mut config);
        }
        debug_assert!(plan.rails || config.rails == off());
        config
    }

    pub(crate) fn cluster_named(&self, name: &str) -> Option<usize> {
        let mut clusters = self.clusters.iter();
        clusters.position(|cluster| cluster.id.as_str() == name)
    }

    /// The shard's current process.
    pub(crate) fn process(&self) -> Option<&Process> {
        self.processes.get(&self.current)
    }
}

fn off() -> Rails {
    Rails {
        reclaim_cap_per_million: 0,
        roll_up_guard: false,
    }
}

fn cluster(
    plan: &crate::plan::ClusterPlan,
    number: usize,
    seed: u64,
    defect: Option<Defect>,
) -> Cluster {
    let id = ClusterId::new(&plan.name);
    let id = id.unwrap_or_else(|refused| panic!("a plan names a cluster badly: {refused}"));
    let side = plan.kubernetes.as_ref().map(|kubernetes| {
        let dice = Dice::stream(seed, FIRST_SIDE + number as u64);
        let of_core = defect.and_then(Defect::of_operator);
        let ignored = defect == Some(Defect::LeaseIgnored);
        Box::new(Side::new(&id, plan, kubernetes, dice, of_core, ignored))
    });
    Cluster {
        id,
        side,
        pods: Pods::new(plan),
        session: None,
        away_until: Moment::START,
        drains_blocked_until: Moment::START,
        blob_errors_until: Moment::START,
        configures_fail_until: Moment::START,
        partitioned_until: Moment::START,
        roll_ups: 0,
        empty_roll_ups: 0,
        told: BTreeMap::new(),
        last_up: Moment::START,
        last_down: Moment::START,
    }
}

/// The metadata of a machine that serves from the start.
fn serving(plan: &Plan, machine: &MachinePlan) -> Option<(String, BTreeMap<String, String>)> {
    let Start::Serving {
        cluster,
        work,
        stamped,
    } = machine.start
    else {
        return None;
    };
    let cluster = &plan.clusters[cluster];
    if let Some(echo) = &machine.echo {
        return Some((cluster.name.clone(), BTreeMap::clone(echo)));
    }
    let work = &cluster.works[work];
    let assignment = Assignment {
        terms: Terms::of(&work.profile),
        fingerprint: work.profile.fingerprint().clone(),
        group: work.group.clone(),
        keep_price: None,
    };
    let metadata = if stamped {
        assignment.to_metadata()
    } else {
        BTreeMap::new()
    };
    Some((cluster.name.clone(), metadata))
}
