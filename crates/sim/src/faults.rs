//! Faults and demand: entries of the timeline, as they come due, and the weather's own breakages.

use crate::{
    clock::{Moment, seconds},
    cluster_side::settings::ClusterChange,
    descriptions,
    plan::{Change, Left, Strike},
    world::{Happening, World},
};
use bigfleet_model::{CapacityType, MachineId, State};
use bigfleet_provider_kit as kit;
use bigfleet_shard_core::{Event, PauseNote, PausedBy, Scope};

/// The provider no longer knows the machines; those that break it shows as Failed.
const VANISH: &str = "machines vanish";
/// After so long Lists have shown what two processes did to each other, or what one did and forgot in a crash.
const FOUND_WITHIN: u64 = seconds(60);

/// The epoch of a process that finds an empty disk.
const WITHOUT_A_DISK: u64 = 1;

impl World {
    /// One entry of the timeline.
    pub(crate) fn change(&mut self, at: usize, change: &Change) {
        let clusters = &self.plan.clusters;
        let words = || format!("change {}", descriptions::change(change, clusters));
        self.trace.line(self.now, words);
        self.watch.disturbed(self.now);
        if change.strikes_at_once() {
            self.struck(descriptions::change_name(change));
        }
        match *change {
            Change::Scale {
                cluster,
                work,
                pods,
            } => {
                self.clusters[cluster].pods.scale(work, pods);
                self.with_side(cluster, |side, now, out| {
                    side.scale(work, pods);
                    side.flush(now, out);
                });
            }
            Change::ScaleAll { cluster, per_mille } => {
                self.clusters[cluster].pods.scale_all(per_mille);
                self.with_side(cluster, |side, now, out| {
                    side.scale_all(per_mille);
                    side.flush(now, out);
                });
            }
            Change::ScaleRow {
                cluster,
                work,
                per_mille,
            } => self.clusters[cluster].pods.scale_row(work, per_mille),
            Change::Priority {
                cluster,
                work,
                priority,
            } => self.clusters[cluster].pods.set_priority(work, priority),
            Change::Whole {
                cluster,
                work,
                whole,
            } => self.clusters[cluster].pods.set_whole(work, whole),
            Change::Resize {
                cluster,
                work,
                each,
            } => {
                self.clusters[cluster].pods.resize(work, each);
                self.with_side(cluster, |side, now, out| {
                    side.resize(work, each);
                    side.flush(now, out);
                });
            }
            Change::Break { cluster, count } => self.lose(cluster, count, "machines break"),
            Change::Vanish { cluster, count } => self.lose(cluster, count, VANISH),
            Change::SpotWave(per_mille) => self.spot_wave(per_mille),
            Change::Reprice => self.reprice(),
            Change::StockOut { ref kind, millis } => {
                let until = self.now.after(millis);
                self.cloud.out_of_stock.push((kind.clone(), until));
            }
            Change::FailNext {
                kind,
                machine,
                count,
            } => {
                let fails = std::iter::repeat_n((kind, machine), count as usize);
                self.cloud.fail_next.extend(fails);
            }
            Change::Crash {
                strike: Strike::Now,
                disk,
                millis,
            } => self.crash(disk, millis),
            Change::Crash {
                strike,
                disk,
                millis,
            } => self.armed = Some((strike, disk, millis)),
            Change::Twin { millis } => self.twin(millis),
            Change::WrongDisk { millis } => self.wrong_disk(millis),
            Change::OperatorAway { cluster, millis } => {
                if self.clusters[cluster].side.is_some() {
                    let what = ClusterChange::ShardUnreachable { millis };
                    self.with_side(cluster, |side, now, out| side.change(now, &what, out));
                    return;
                }
                let back = self.now.after(millis);
                self.clusters[cluster].away_until = back;
                self.disconnect(cluster, back);
            }
            Change::ProviderAway { millis, restart } => {
                self.cloud.away_until = self.now.after(millis);
                if restart {
                    self.creates_fail(self.cloud.away_until);
                    let changed = self.cloud.restart();
                    self.cloud_changed(changed);
                }
            }
            Change::TruncatedLists { lists, per_mille } => {
                self.cloud.truncate = (lists, per_mille);
            }
            Change::BlockDrains { cluster, millis } => {
                self.clusters[cluster].drains_blocked_until = self.now.after(millis);
            }
            Change::EmptyRollUps { cluster, count } => {
                self.clusters[cluster].empty_roll_ups = count;
            }
            Change::BlobErrors { cluster, millis } => {
                self.clusters[cluster].blob_errors_until = self.now.after(millis);
            }
            Change::ConfiguresFail { cluster, millis } => {
                self.clusters[cluster].configures_fail_until = self.now.after(millis);
            }
            Change::DeletesFail { millis } => {
                self.cloud.deletes_fail_until = self.now.after(millis);
            }
            Change::Partition { cluster, millis } => {
                self.clusters[cluster].partitioned_until = self.now.after(millis);
                if self.clusters[cluster].side.is_some() {
                    self.struck("partition");
                    self.with_side(cluster, |side, now, out| {
                        side.partition(now, millis);
                        side.flush(now, out);
                    });
                }
            }
            Change::Pause { millis } => self.pause(millis),
            Change::Drain { ref pick, within } => self.drain(pick, within, at),
            Change::Undrain { ref pick } => self.undrain(pick, at),
            Change::Announce {
                ref pick,
                lead,
                meant,
            } => self.announce(pick, lead, meant),
            Change::Withdraw => self.withdraw(),
            Change::InCluster { cluster, ref what } => {
                self.with_side(cluster, |side, now, out| side.change(now, what, out));
            }
        }
    }

    /// Serving machines that the shard is not doing anything with right now.
    fn serving(&self, cluster: Option<usize>) -> Vec<MachineId> {
        let name = cluster.map(|cluster| self.clusters[cluster].id.as_str());
        let serving = self.cloud.machines().filter(|one| {
            one.state == State::Configured && name.is_none_or(|name| one.cluster == name)
        });
        serving.map(|one| one.id.clone()).collect()
    }

    fn lose(&mut self, cluster: Option<usize>, count: u32, fault: &'static str) {
        let mut serving = self.serving(cluster);
        self.dice.shuffle(&mut serving);
        serving.truncate(count as usize);
        for machine in serving {
            self.lose_one(machine, fault);
        }
    }

    fn lose_one(&mut self, machine: MachineId, fault: &'static str) {
        self.watch.losses += 1;
        self.struck(fault);
        let event = match fault {
            VANISH => kit::Event::Vanished { machine },
            _ => kit::Event::Broke {
                machine,
                failure: kit::Failure::permanent("the machine broke"),
            },
        };
        let changed = self.cloud.tell(event).0;
        self.cloud_changed(changed);
    }

    pub(crate) fn break_by_weather(&mut self) {
        if self.is_calm {
            return;
        }
        self.watch.disturbed(self.now);
        self.lose(None, 1, "machines break");
        let next = self.dice.interval(self.plan.weather.break_every);
        self.queue.at(self.now.after(next), Happening::Break);
    }

    fn spot_wave(&mut self, per_mille: u64) {
        let spot = self.cloud.machines().filter(|one| {
            one.offer.capacity_type == CapacityType::Spot
                && matches!(one.state, State::Idle | State::Configured)
        });
        let spot: Vec<MachineId> = spot.map(|one| one.id.clone()).collect();
        for machine in spot {
            if self.dice.per_mille(per_mille) {
                let changed = self.cloud.give_notice(&machine);
                self.cloud_changed(changed);
                let taken = self.now.after(self.dice.between(0, seconds(120)));
                self.queue.at(taken, Happening::TakenBack(machine));
            }
        }
    }

    /// The provider takes back a spot machine it gave notice of, if it still runs.
    pub(crate) fn taken_back(&mut self, machine: MachineId) {
        let there = self.cloud.machine(&machine);
        let runs = there.is_some_and(|one| matches!(one.state, State::Idle | State::Configured));
        if runs && !self.is_calm {
            self.watch.disturbed(self.now);
            self.lose_one(machine, "spot wave");
        }
    }

    fn reprice(&mut self) {
        let all: Vec<MachineId> = self.cloud.machines().map(|one| one.id.clone()).collect();
        for machine in all {
            if self.dice.per_mille(100) {
                let factor = self.dice.between(900, 1100);
                let changed = self.cloud.reprice(&machine, factor);
                if !changed.is_empty() {
                    self.struck("prices move");
                }
                self.cloud_changed(changed);
            }
        }
    }

    /// The process dies. What was being written may be there in part.
    pub(crate) fn crash(&mut self, disk: Left, millis: u64) {
        let Some(process) = self.processes.remove(&self.current) else {
            return;
        };
        self.struck("crash");
        self.trace.line(self.now, || {
            format!("crash with {}", descriptions::disk(disk))
        });
        self.current = 0;
        if 0 < process.disk.unsure() {
            self.struck("crash with a write under way");
        }
        if !process.calls.is_empty() {
            self.struck("crash with calls under way");
        }
        let records = match disk {
            Left::Whole => process.disk.found(0),
            Left::Torn => {
                let torn = self.dice.below(process.disk.unsure() + 1);
                process.disk.found(torn)
            }
            Left::Nothing => {
                self.watch.commits.disk_lost();
                Vec::new()
            }
        };
        self.watch.process_lost(self.now);
        let back = self.now.after(millis);
        // The next process does not know what this one bound last until a List that does not lag shows it.
        self.watch.twins_until = self.watch.twins_until.max(back.after(FOUND_WITHIN));
        self.queue.in_order(back, Happening::Begin { records });
        self.lose_sessions(back);
    }

    /// A process reached a point of its work at which a crash may have been planned.
    pub(crate) fn exposed(&mut self, epoch: u64, strike: Strike, from: Moment, until: Moment) {
        let armed = self.armed.filter(|(meant, ..)| *meant == strike);
        if let Some((_, disk, millis)) = armed.filter(|_| epoch == self.current) {
            self.armed = None;
            let at = Moment(self.dice.between(from.0, until.0.max(from.0)));
            self.queue.at(at, Happening::Crash { disk, millis });
        }
    }

    /// A second process of the shard starts while the first still runs.
    fn twin(&mut self, millis: u64) {
        let old = self.current;
        let Some(process) = self.processes.get_mut(&old) else {
            return;
        };
        process.reachable = false;
        let records = process.disk.found(0);
        self.watch.process_lost(self.now);
        self.watch.commits.outlived(old);
        let ends = self.now.after(millis);
        self.watch.twins_until = ends.after(FOUND_WITHIN);
        self.queue.at(ends, Happening::End { epoch: old });
        self.lose_sessions(self.now);
        self.start_process(records);
    }

    /// The process is replaced by one that knows neither what was decided nor which epochs were used.
    fn wrong_disk(&mut self, millis: u64) {
        let Some(process) = self.processes.remove(&self.current) else {
            return;
        };
        let records = process.disk.found(0);
        self.watch.process_lost(self.now);
        let back = self.now.after(millis);
        self.watch.twins_until = self.watch.twins_until.max(back.after(FOUND_WITHIN));
        self.lose_sessions(self.now);
        self.start_process_as(WITHOUT_A_DISK, Vec::new());
        self.queue.in_order(back, Happening::RightDisk { records });
    }

    /// It is replaced in turn by one that has the disk.
    pub(crate) fn right_disk(&mut self, records: Vec<bigfleet_shard_core::Record>) {
        self.processes.remove(&WITHOUT_A_DISK);
        self.watch.process_lost(self.now);
        self.lose_sessions(self.now);
        self.start_process(records);
    }

    fn lose_sessions(&mut self, back: Moment) {
        for cluster in 0..self.clusters.len() {
            let again = back.after(self.dice.between(500, 8_000));
            self.disconnect(cluster, again);
        }
    }

    fn pause(&mut self, millis: u64) {
        let until = self.now.after(millis);
        let epoch = self.current;
        let pause = Event::Pause {
            by: PausedBy::Admin,
            scope: Scope::All,
            since: None,
            until: Some(until.time()),
            note: PauseNote::default(),
        };
        self.watch.paused_until = until;
        self.tell(epoch, pause);
    }

    /// The faults stop: operators and the provider come back, and broken things work again.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
        self.armed = None;
        self.watch.disturbed(self.now);
        self.cloud.away_until = self.now;
        self.cloud.deletes_fail_until = self.now;
        self.cloud.out_of_stock.clear();
        self.cloud.fail_next.clear();
        self.cloud.truncate = (0, 0);
        for cluster in &mut self.clusters {
            cluster.away_until = self.now;
            cluster.drains_blocked_until = self.now;
            cluster.blob_errors_until = self.now;
            cluster.configures_fail_until = self.now;
            cluster.partitioned_until = self.now;
            cluster.empty_roll_ups = 0;
        }
        for cluster in 0..self.clusters.len() {
            if self.clusters[cluster].side.is_none() {
                self.queue.at(self.now, Happening::Connect { cluster });
            }
            self.with_side(cluster, |side, now, out| side.calm_down(now, out));
        }
        self.trace.line(self.now, || "calm".to_owned());
        self.resume();
    }

    /// Somebody lifts the pause, which outlives the process that was paused.
    pub(crate) fn resume(&mut self) {
        let resume = Event::Resume {
            by: PausedBy::Admin,
            scope: Scope::All,
        };
        self.watch.paused_until = self.now;
        self.tell(self.current, resume);
    }
}
