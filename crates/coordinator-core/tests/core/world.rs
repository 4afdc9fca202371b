//! A world of replicas, shards and a network, all drawn from one seed.
//!
//! ```text
//! shards ── reports ──▶ network (loses, repeats, reorders) ──▶ whoever believes that it leads
//!        ◀─ answers ───
//! leaders ── proposals ──▶ one log: what commits, commits in order; what a dying leader left may or may not
//! ```
//!
//! After every event no machine may have two shards that act on it. Leaders die, hang on without knowing that they were deposed, restart
//! from snapshots; the whole group is lost and put back from an older backup; shards restart, lose their disks and die for good.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bigfleet_coordinator_core::{
    AdminRequest, Answer, Applied, Caller, Command, CoordinatorCore, Defect, ReportFacts, ShardId,
    Snapshot, Step, TERM_BUMP, Tables, Ticket,
};
use bigfleet_model::{MachineId, Time};
use bigfleet_seeded::Prng;

use crate::{
    shard::Shard,
    support::{machine, settings, shard, shown, zone},
};

const REPLICAS: usize = 3;
const SHARDS: [&str; 4] = ["s0", "s1", "s2", "s3"];
const ZONES: [&str; 4] = ["a", "b", "c", "d"];

/// A report or an answer under way.
#[derive(Clone, Debug)]
enum Message {
    Report {
        to: usize,
        facts: Box<ReportFacts>,
    },
    Answer {
        to: usize,
        process: u64,
        cycle: i64,
        answer: Answer,
    },
}

/// An entry that a leader has proposed and that has not committed.
#[derive(Debug)]
struct Proposal {
    entry: Vec<Command>,
    /// The call that waits for it: which report, and how it goes on.
    waiting: Option<(ReportFacts, Ticket)>,
}

#[derive(Debug)]
struct Replica {
    core: CoordinatorCore,
    applied: usize,
    /// It believes that it leads.
    believes: bool,
}

pub(crate) struct World {
    dice: Prng,
    now: Time,
    log: Vec<Vec<Command>>,
    /// The log begins with these tables.
    base: Tables,
    replicas: Vec<Replica>,
    leader: Option<usize>,
    pending: VecDeque<Proposal>,
    network: Vec<Message>,
    pub(crate) shards: Vec<Shard>,
    dead: Vec<bool>,
    is_waiting: Vec<bool>,
    transfers: u64,
    backups: Vec<Snapshot>,
    defect: Option<Defect>,
    seeds: u64,
    /// What was counted on the way, so that a walk that tests nothing is noticed.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// What happened last, for whoever has to understand a failure.
    trace: VecDeque<String>,
}

pub(crate) fn machines() -> Vec<MachineId> {
    let ids = ZONES
        .iter()
        .flat_map(|zone| [format!("{zone}1"), format!("{zone}2")]);
    ids.map(|id| machine(&id)).collect()
}

impl World {
    pub(crate) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let replica = || Replica {
            core: CoordinatorCore::new(settings(defect), Tables::default()),
            applied: 0,
            believes: false,
        };
        let mut shards: Vec<Shard> = SHARDS.iter().map(|id| Shard::new(id, "p:1")).collect();
        for (number, shard) in shards.iter_mut().enumerate() {
            shard.directory += number as u64;
            shard.process += 1000 * number as u64;
        }
        let mut world = Self {
            dice: Prng::new(seed),
            now: Time::from_nanos(1_000_000_000),
            log: Vec::new(),
            base: Tables::default(),
            replicas: (0..REPLICAS).map(|_| replica()).collect(),
            leader: None,
            pending: VecDeque::new(),
            network: Vec::new(),
            shards,
            dead: vec![false; SHARDS.len()],
            is_waiting: vec![false; SHARDS.len()],
            transfers: 0,
            backups: Vec::new(),
            defect,
            seeds: seed << 20,
            counts: BTreeMap::new(),
            trace: VecDeque::new(),
        };
        world.elect();
        // In half of the worlds the first shard is alone for a while, and has everything.
        if world.dice.percent(50) {
            (0..3).for_each(|_| world.calm_round(0));
        }
        for number in 0..SHARDS.len() {
            (0..3).for_each(|_| world.calm_round(number));
        }
        world.back_up();
        world
    }

    fn note(&mut self, line: String) {
        if self.trace.len() == 200 {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// The last things that happened.
    pub(crate) fn trace(&self) -> String {
        let lines: Vec<&str> = self.trace.iter().map(String::as_str).collect();
        lines.join("\n")
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// One event; an error says which machine has two owners after it.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        self.now = self.now + Duration::from_millis(500);
        let draw = self.dice.below(1000);
        match draw {
            0..250 => self.send_report(),
            250..600 => self.deliver(),
            600..800 => self.commit_one(),
            800..810 => self.time_out(),
            810..850 => self.administer(),
            850..890 => self.let_go(),
            890..930 => self.release(),
            930..934 => self.depose(),
            934..940 => self.restart_shard(),
            940..955 => self.lose_message(),
            955..957 => self.reload_replica(),
            957..961 => self.back_up(),
            961 => self.restore(),
            962..982 => self.finish_restore(),
            982 => self.kill_shard(),
            _ => self.catch_up(),
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        for machine in machines() {
            let shards = self.shards.iter().zip(&self.dead);
            let alive = shards.filter(|(_, is_dead)| !**is_dead);
            let acting = alive.filter(|(shard, _)| shard.acts_on(&machine));
            let acting: Vec<&str> = acting.map(|(shard, _)| shard.id.as_str()).collect();
            if 1 < acting.len() {
                return Err(format!("{machine} belongs to {acting:?}"));
            }
        }
        Ok(())
    }

    fn live_shard(&mut self) -> usize {
        loop {
            let number = self.dice.below(SHARDS.len());
            if !self.dead[number] {
                return number;
            }
        }
    }

    /// To the leader mostly, sometimes to somebody who believes to be it.
    fn send_report(&mut self) {
        let number = self.live_shard();
        // One report is under way at a time; now and then a shard gives up on it.
        if self.is_waiting[number] && self.dice.percent(85) {
            return;
        }
        self.is_waiting[number] = true;
        let facts = self.shards[number].report();
        let to = match self.leader {
            Some(leader) if self.dice.percent(85) => leader,
            _ => self.dice.below(REPLICAS),
        };
        let facts = Box::new(facts);
        self.network.push(Message::Report { to, facts });
        if 30 < self.network.len() {
            let oldest = self.dice.below(self.network.len());
            self.network.swap_remove(oldest);
        }
    }

    fn deliver(&mut self) {
        if self.network.is_empty() {
            return;
        }
        let is_in_order = self.dice.percent(70);
        let at = if is_in_order {
            0
        } else {
            self.dice.below(self.network.len())
        };
        let message = self.network[at].clone();
        if !self.dice.percent(10) {
            self.network.remove(at);
        }
        match message {
            Message::Report { to, facts } => {
                let caller = Caller::Unverified;
                let replica = &mut self.replicas[to];
                if replica.believes {
                    let step = replica.core.report(self.now, &caller, (*facts).clone());
                    self.go_on(to, *facts, step);
                }
            }
            Message::Answer {
                to,
                process,
                cycle,
                answer,
            } => {
                let shard = &mut self.shards[to];
                let is_newest = shard.process == process && shard.cycle as i64 == cycle;
                if is_newest && !self.dead[to] {
                    shard.hear(&answer);
                    let line = format!("{} hears {}: {}", shard.id, answer.reign, shown(&answer));
                    self.note(line);
                    self.is_waiting[to] = false;
                    self.count("answers heard");
                }
            }
        }
    }

    fn go_on(&mut self, at: usize, facts: ReportFacts, step: Step) {
        match step {
            Step::Answer(answer) => {
                let number = SHARDS.iter().position(|id| *id == facts.shard).unwrap();
                let process = u64::from_str_radix(&facts.process, 16).unwrap();
                self.network.push(Message::Answer {
                    to: number,
                    process,
                    cycle: facts.cycle,
                    answer,
                });
            }
            Step::Refuse(_) => self.count("refused"),
            Step::Propose(entry, ticket) => {
                // Whoever only believes to lead waits for ever.
                if self.leader == Some(at) {
                    let waiting = Some((facts, ticket));
                    self.pending.push_back(Proposal { entry, waiting });
                }
            }
        }
    }

    fn commit_one(&mut self) {
        let Some(leader) = self.leader else {
            return self.elect();
        };
        let Some(Proposal { entry, waiting }) = self.pending.pop_front() else {
            return;
        };
        self.note(format!("commits {entry:?}"));
        self.log.push(entry);
        let results = self.apply_all(leader);
        if let Some((facts, ticket)) = waiting {
            let results = results.unwrap();
            let core = &mut self.replicas[leader].core;
            let step = core.proceed(self.now, ticket, &results);
            self.go_on(leader, facts, step);
        }
    }

    /// Applies what a replica has not applied; the results of the last entry.
    fn apply_all(
        &mut self,
        at: usize,
    ) -> Option<Vec<Result<Applied, bigfleet_coordinator_core::Refused>>> {
        let replica = &mut self.replicas[at];
        let mut results = None;
        while replica.applied < self.log.len() {
            results = Some(replica.core.apply(&self.log[replica.applied]));
            replica.applied += 1;
        }
        results
    }

    fn time_out(&mut self) {
        let waiting = self.pending.iter_mut().filter(|one| one.waiting.is_some());
        let count = waiting.count();
        if 0 < count {
            let chosen = self.dice.below(count);
            let mut waiting = self.pending.iter_mut().filter(|one| one.waiting.is_some());
            waiting.nth(chosen).unwrap().waiting = None;
            self.count("proposals timed out");
        }
    }

    fn administer(&mut self) {
        let Some(leader) = self.leader else { return };
        let to = SHARDS[self.live_shard()].to_owned();
        let (key, value) = ("zone".to_owned(), (*self.dice.pick(&ZONES)).to_owned());
        let request = match self.dice.below(20) {
            0..9 => AdminRequest::AssignDomain {
                key,
                value,
                shard: to,
            },
            9..15 => AdminRequest::MoveDomain { key, value, to },
            15..18 => AdminRequest::UnassignDomain { key, value },
            18 => AdminRequest::RemoveShard {
                shard: to,
                gone: false,
            },
            _ => self.declare_gone(),
        };
        let core = &mut self.replicas[leader].core;
        if let Ok(entry) = core.admin(self.now, &Caller::Unverified, &request) {
            let waiting = None;
            self.pending.push_back(Proposal { entry, waiting });
        }
    }

    /// Only of a shard that is dead: it is an admin's word.
    fn declare_gone(&mut self) -> AdminRequest {
        let dead = (0..SHARDS.len()).filter(|number| self.dead[*number]);
        let shard = dead.map(|number| SHARDS[number]).next();
        if shard.is_some() {
            self.now = self.now + Duration::from_secs(700);
            self.count("declared gone");
        }
        let gone = shard.is_some();
        let shard = shard.unwrap_or("s0").to_owned();
        AdminRequest::RemoveShard { shard, gone }
    }

    fn let_go(&mut self) {
        let number = self.live_shard();
        self.shards[number].let_go();
        self.note(format!("{} lets go", SHARDS[number]));
    }

    /// A leader has told a donor to give a machine up, and it does.
    fn release(&mut self) {
        let Some(leader) = self.leader else { return };
        let (from, to) = (self.live_shard(), self.dice.below(SHARDS.len()));
        let core = &mut self.replicas[leader].core;
        let is_of_reign = self.shards[from].mark == core.tables().reign();
        if from == to || !is_of_reign || core.tables().is_restored() {
            return;
        }
        let owned = machines()
            .into_iter()
            .filter(|one| self.shards[from].acts_on(one));
        let owned: Vec<MachineId> = owned.collect();
        let Ok(stamp) = core.stamp() else { return };
        if owned.is_empty() || 3 < self.shards[from].records.len() {
            return;
        }
        let machine = self.dice.pick(&owned).clone();
        let open = self.shards[from].records.values();
        if open
            .into_iter()
            .any(|record| record.machines.contains(&machine))
        {
            return;
        }
        self.transfers += 1;
        let id = format!("{:x}-{:x}", stamp.reign, self.transfers);
        let to = shard(SHARDS[to]);
        self.note(format!(
            "{} releases {machine} to {to} by {id}",
            SHARDS[from]
        ));
        self.shards[from].release(&id, &machine, &to, stamp);
        self.count("released");
    }

    /// The leader is not the leader any more. It may know, or not; what it proposed commits up to some point.
    fn depose(&mut self) {
        let Some(leader) = self.leader.take() else {
            return self.elect();
        };
        self.leave_proposals();
        match self.dice.below(3) {
            0 => self.reload(leader),
            1 => {
                self.replicas[leader].core.deposed();
                self.replicas[leader].believes = false;
            }
            _ => {}
        }
        self.count("leaders deposed");
        if self.dice.percent(60) {
            self.elect();
        }
    }

    fn leave_proposals(&mut self) {
        let committed = self.dice.below(self.pending.len() + 1);
        let entries = self.pending.drain(..).take(committed);
        let entries: Vec<_> = entries.map(|one| one.entry).collect();
        self.note(format!("left behind {entries:?}"));
        self.log.extend(entries);
        self.pending.clear();
    }

    fn elect(&mut self) {
        let at = self.dice.below(REPLICAS);
        self.apply_all(at);
        let entry = self.replicas[at].core.elected();
        self.log.push(entry);
        let results = self.apply_all(at).unwrap();
        let Ok(Applied::Reign(reign)) = results[0] else {
            panic!("{results:?}");
        };
        self.seeds += 1;
        let seed = self.seeds;
        self.replicas[at].core.begin(self.now, reign, seed);
        self.replicas[at].believes = true;
        self.leader = Some(at);
        self.note(format!("replica {at} reigns in {reign}"));
        self.count("reigns");
    }

    fn restart_shard(&mut self) {
        let number = self.live_shard();
        if self.dice.percent(25) {
            self.shards[number].lose_disk();
            self.note(format!("{} loses its disk", SHARDS[number]));
            self.count("disks lost");
        } else {
            self.shards[number].restart();
            self.note(format!("{} restarts", SHARDS[number]));
        }
        self.shards[number].refuses = self.dice.percent(30);
    }

    fn lose_message(&mut self) {
        if !self.network.is_empty() {
            let at = self.dice.below(self.network.len());
            self.network.swap_remove(at);
        }
    }

    /// A replica starts again, from its snapshot.
    fn reload(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        let snapshot = replica.core.tables().snapshot();
        let tables = Tables::from_snapshot(snapshot).unwrap();
        assert_eq!(
            tables,
            *replica.core.tables(),
            "nothing is lost in a snapshot"
        );
        replica.core = CoordinatorCore::new(settings(self.defect), tables);
        replica.believes = false;
    }

    fn reload_replica(&mut self) {
        let at = self.dice.below(REPLICAS);
        if self.leader == Some(at) {
            self.leader = None;
            self.leave_proposals();
        }
        self.reload(at);
        self.count("replicas restarted");
    }

    fn catch_up(&mut self) {
        let at = self.dice.below(REPLICAS);
        if Some(at) == self.leader {
            return;
        }
        self.apply_all(at);
    }

    fn back_up(&mut self) {
        if let Some(leader) = self.leader {
            let tables = self.replicas[leader].core.tables();
            if !tables.is_restored() {
                self.backups.push(tables.snapshot());
            }
        }
    }

    /// Every replica is lost, and an older backup put back.
    fn restore(&mut self) {
        let at = self.dice.below(self.backups.len());
        let backup = self.backups[at].clone();
        // One that is too small is made good by the marks of the shards.
        let bump = *self.dice.pick(&[1, TERM_BUMP]);
        let tables = Tables::from_snapshot(backup.begin_restore(bump)).unwrap();
        self.base = tables.clone();
        self.log.clear();
        self.pending.clear();
        self.backups = vec![self.base.snapshot()];
        for replica in &mut self.replicas {
            replica.core = CoordinatorCore::new(settings(self.defect), tables.clone());
            (replica.applied, replica.believes) = (0, false);
        }
        self.leader = None;
        self.elect();
        self.note("restored".to_owned());
        self.count("restores");
    }

    fn finish_restore(&mut self) {
        let Some(leader) = self.leader else { return };
        let core = &mut self.replicas[leader].core;
        let request = AdminRequest::FinishRestore;
        if let Ok(entry) = core.admin(self.now, &Caller::Unverified, &request) {
            let waiting = None;
            self.pending.push_back(Proposal { entry, waiting });
            self.count("restores finished");
        }
    }

    /// For good. Two always stay.
    fn kill_shard(&mut self) {
        let alive = self.dead.iter().filter(|is_dead| !**is_dead).count();
        if 3 < alive {
            let number = self.live_shard();
            self.dead[number] = true;
            self.count("shards dead");
        }
    }

    /// A report and its answer with nothing in between.
    fn calm_round(&mut self, number: usize) {
        if self.dead[number] {
            return;
        }
        let Some(leader) = self.leader else { return };
        let facts = self.shards[number].report();
        let core = &mut self.replicas[leader].core;
        let mut step = core.report(self.now, &Caller::Unverified, facts);
        loop {
            match step {
                Step::Answer(answer) => {
                    let line = format!("{} hears calmly: {}", SHARDS[number], shown(&answer));
                    self.note(line);
                    return self.shards[number].hear(&answer);
                }
                Step::Refuse(_) => return,
                Step::Propose(entry, ticket) => {
                    self.note(format!("calmly {entry:?}"));
                    self.log.push(entry);
                    let results = self.apply_all(leader).unwrap();
                    let core = &mut self.replicas[leader].core;
                    step = core.proceed(self.now, ticket, &results);
                }
            }
        }
    }

    fn say(&mut self, request: &AdminRequest) -> bool {
        let leader = self.leader.unwrap();
        let core = &mut self.replicas[leader].core;
        let Ok(entry) = core.admin(self.now, &Caller::Unverified, request) else {
            return false;
        };
        self.log.push(entry);
        let results = self.apply_all(leader).unwrap();
        results.iter().all(Result::is_ok)
    }

    /// The faults stop. Everything that somebody shall have is had, every machine by one shard.
    pub(crate) fn calm_down(&mut self) -> Result<(), String> {
        self.network.clear();
        if self.leader.is_none() {
            self.elect();
        }
        self.leave_proposals();
        self.apply_all(self.leader.unwrap());
        self.now = self.now + Duration::from_secs(700);
        for (number, id) in SHARDS.iter().enumerate() {
            self.shards[number].refuses = false;
            if self.dead[number] {
                let shard = (*id).to_owned();
                self.say(&AdminRequest::RemoveShard { shard, gone: true });
            }
        }
        self.rounds(4)?;
        self.say(&AdminRequest::FinishRestore);
        let alive: Vec<usize> = (0..SHARDS.len()).filter(|at| !self.dead[*at]).collect();
        for (number, value) in ZONES.iter().enumerate() {
            let shard = SHARDS[alive[number % alive.len()]].to_owned();
            let (key, value) = ("zone".to_owned(), (*value).to_owned());
            let (to, again) = (shard.clone(), (key.clone(), value.clone()));
            if !self.say(&AdminRequest::AssignDomain { key, value, shard }) {
                let (key, value) = again;
                self.say(&AdminRequest::MoveDomain { key, value, to });
            }
        }
        self.rounds(12)?;
        for machine in machines() {
            let alive = alive.iter().map(|number| &self.shards[*number]);
            let acting = alive.filter(|shard| shard.acts_on(&machine)).count();
            if acting != 1 {
                return Err(format!("{acting} shards have {machine}"));
            }
        }
        let open = self.shards.iter().zip(&self.dead);
        let mut open = open.filter(|(shard, is_dead)| !**is_dead && !shard.records.is_empty());
        if let Some((shard, _)) = open.next() {
            return Err(format!("{} never closed {:?}", shard.id, shard.records));
        }
        let leader = self.leader.unwrap();
        let snapshot = self.replicas[leader].core.tables().snapshot();
        let held = snapshot.domains.iter();
        let held = held.filter(|(_, row)| row.desired.is_some() && row.desired == row.holder);
        if held.count() != ZONES.len() {
            return Err(format!("domains in the end: {:?}", snapshot.domains));
        }
        assert!(
            ZONES
                .iter()
                .all(|value| snapshot.domains.iter().any(|(one, _)| *one == zone(value)))
        );
        Ok(())
    }

    fn rounds(&mut self, count: usize) -> Result<(), String> {
        for _ in 0..count {
            for number in 0..SHARDS.len() {
                self.calm_round(number);
                self.check()?;
                self.shards[number].let_go();
            }
        }
        Ok(())
    }

    /// Replicas that have applied the same have the same tables, and so has one that begins anew and applies all of it.
    pub(crate) fn check_replicas(&mut self) {
        for at in 0..REPLICAS {
            self.apply_all(at);
        }
        let mut anew = CoordinatorCore::new(settings(self.defect), self.base.clone());
        self.log.iter().for_each(|entry| drop(anew.apply(entry)));
        for replica in &self.replicas {
            assert_eq!(replica.core.tables(), anew.tables());
        }
        let half = self.log.len() / 2;
        let mut early = CoordinatorCore::new(settings(self.defect), self.base.clone());
        self.log[..half]
            .iter()
            .for_each(|entry| drop(early.apply(entry)));
        let tables = Tables::from_snapshot(early.tables().snapshot()).unwrap();
        let mut late = CoordinatorCore::new(settings(self.defect), tables);
        self.log[half..]
            .iter()
            .for_each(|entry| drop(late.apply(entry)));
        assert_eq!(
            late.tables(),
            anew.tables(),
            "a snapshot and the rest is all of it"
        );
        assert!(anew.tables().reign() < i64::MAX as u64);
    }

    /// Marks that raised a reign, as far as present leaders counted them.
    pub(crate) fn floors(&self) -> u64 {
        let cores = self.replicas.iter().map(|replica| replica.core.counters());
        cores.map(|counters| counters.floor_raised).sum()
    }

    pub(crate) fn shard_ids() -> Vec<ShardId> {
        SHARDS.iter().map(|id| shard(id)).collect()
    }
}
