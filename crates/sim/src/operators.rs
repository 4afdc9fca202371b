//! Operators: they connect, roll up, hand out blobs, drain nodes, and go away.

use crate::{
    clock::Moment,
    plan::Telling,
    world::{Happening, World},
};
use bigfleet_model::{Disruption, MachineId, State};
use bigfleet_shard_core::{
    BlobAnswer, DrainPhase, Event, Features, Frame, NodeFact, OperationId, SessionId,
};
use bigfleet_shard_world::blob;

impl World {
    /// An operator tries to connect to the shard's current process.
    pub(crate) fn connect(&mut self, cluster: usize) {
        let known = &self.clusters[cluster];
        if known.session.is_some() || known.side.is_some() {
            return;
        }
        let reachable = self.process().is_some_and(|process| process.reachable);
        if self.now < known.away_until || !reachable {
            let again = known.away_until.max(self.now);
            let again = again.after(self.dice.between(500, 5_000));
            self.queue.at(again, Happening::Connect { cluster });
            return;
        }
        self.next_session += 1;
        let session = SessionId(self.next_session);
        let epoch = self.current;
        if let Some(process) = self.processes.get_mut(&epoch) {
            process.sessions.insert(session, cluster);
        }
        let plan = &self.plan.clusters[cluster];
        let features = Features {
            drain_report: plan.drain_reports,
            node_report: plan.node_reports,
            resync: true,
        };
        let known = &mut self.clusters[cluster];
        known.session = Some((epoch, session));
        let opened = Event::SessionOpened {
            session,
            cluster: known.id.clone(),
            features,
            identity: None,
        };
        self.up(cluster, opened);
        let soon = self.now.after(self.dice.between(100, 3_000));
        let tick = false;
        self.queue.at(soon, Happening::RollUp { cluster, tick });
    }

    /// The session of a cluster breaks; both sides notice, and the operator tries again.
    pub(crate) fn disconnect(&mut self, cluster: usize, back: Moment) {
        if self.clusters[cluster].side.is_some() {
            return self.side_disconnects(cluster, false);
        }
        self.watch.disconnected(cluster);
        let known = &mut self.clusters[cluster];
        if let Some((epoch, session)) = known.session.take() {
            let at = known.last_up.after(1).max(self.now);
            let event = Box::new(Event::SessionClosed { session });
            self.queue.in_order(at, Happening::Tell { epoch, event });
        }
        self.queue.at(back, Happening::Connect { cluster });
    }

    /// Sends something up a cluster's stream, in order.
    fn up(&mut self, cluster: usize, event: Event) {
        let drawn = self.now.after(self.dice.latency(self.plan.stages.stream));
        let known = &mut self.clusters[cluster];
        let Some((epoch, _)) = known.session else {
            return;
        };
        known.last_up = known.last_up.after(1).max(drawn);
        let event = Box::new(event);
        let at = known.last_up;
        self.queue.in_order(at, Happening::Tell { epoch, event });
    }

    /// A cluster sends its whole demand, as every roll-up does.
    pub(crate) fn roll_up(&mut self, cluster: usize, tick: bool) {
        if tick {
            let every = self.plan.clusters[cluster].roll_up_every;
            let next = self.dice.between(every * 9 / 10, every * 11 / 10);
            let tick = true;
            let again = Happening::RollUp { cluster, tick };
            self.queue.at(self.now.after(next), again);
        }
        let weather = self.plan.weather;
        let nodes = self.clusters[cluster].pods.nodes().cloned().collect();
        self.report_nodes(cluster, nodes, true);
        let known = &mut self.clusters[cluster];
        let Some((epoch, session)) = known.session else {
            return;
        };
        known.roll_ups += 1;
        let rollup_id = format!("{cluster}-{}", known.roll_ups);
        let rows = match known.empty_roll_ups {
            0 => known.pods.rows(),
            _ => Vec::new(),
        };
        let forgotten = 0 < known.empty_roll_ups;
        known.empty_roll_ups = known.empty_roll_ups.saturating_sub(1);
        let id = known.id.clone();
        if forgotten {
            self.struck("roll-up empty");
        }
        self.watch.demand.sent(&rollup_id, &rows);
        let rows = if self.happens("roll-up invalid", weather.roll_up_invalid) {
            Err("row 1: cpu: \"many\" is not a quantity".to_owned())
        } else {
            Ok(rows)
        };
        let event = Event::RolledUp {
            session,
            cluster: id,
            rollup_id,
            rows,
        };
        if self.happens("roll-up lost", weather.roll_up_lost) {
            return;
        }
        if self.happens("roll-up late", weather.roll_up_late) {
            let late = self.now.after(self.dice.between(5_000, 20_000));
            self.later(late, epoch, event);
            return;
        }
        if self.happens("roll-up twice", weather.roll_up_twice) {
            self.up(cluster, event.clone());
        }
        self.up(cluster, event);
    }

    pub(crate) fn frame_arrives(&mut self, cluster: usize, session: SessionId, frame: Frame) {
        if self.clusters[cluster].side.is_some() {
            return self.side_hears(cluster, session, frame);
        }
        let known = &mut self.clusters[cluster];
        if known.session.is_none_or(|(_, current)| current != session) {
            return;
        }
        match frame {
            Frame::BootstrapRequest { request, .. } => {
                let failing = self.now < known.blob_errors_until;
                if failing {
                    self.struck("blob errors");
                }
                let answer = if failing {
                    BlobAnswer::Error("no token could be made".to_owned())
                } else {
                    blob()
                };
                if self.happens("blob lost", self.plan.weather.blob_lost) {
                    return;
                }
                let at = self.now.after(self.dice.latency(self.plan.stages.blob));
                let event = Event::BlobAnswered {
                    session,
                    request,
                    answer,
                };
                let epoch = self.clusters[cluster].session.map_or(0, |(epoch, _)| epoch);
                self.later(at, epoch, event);
            }
            Frame::Reclaim {
                instruction,
                machine,
                grace_seconds,
                voluntary,
                ..
            } => {
                let settles = voluntary && 0 < known.pods.on(&machine);
                let settle = if settles {
                    self.plan.clusters[cluster].settle
                } else {
                    0
                };
                self.instructed(cluster, instruction, machine, grace_seconds, settle);
            }
            Frame::ReclaimCancel { instruction } => {
                if let Some(machine) = self.watch.commits.machine_of(instruction) {
                    known.pods.cordon(&machine, false);
                }
            }
            // That it serves is as good as a cancel, which may have been lost (operator.md 14.7).
            Frame::Node(node)
                if node.state == State::Configured && known.pods.is_cordoned(&node.machine) =>
            {
                known.pods.cordon(&node.machine, false);
            }
            _ => {}
        }
    }

    /// An operator is told to empty a node; before it evicts, it waits for so long.
    fn instructed(
        &mut self,
        cluster: usize,
        instruction: OperationId,
        machine: MachineId,
        grace_seconds: u32,
        settle: u64,
    ) {
        let known = &mut self.clusters[cluster];
        if !known.pods.has_node(&machine) {
            self.report(cluster, instruction, machine, DrainPhase::Unresolved);
            return;
        }
        known.pods.cordon(&machine, true);
        if self.now < known.drains_blocked_until {
            self.struck("drains blocked");
            self.report(cluster, instruction, machine, DrainPhase::Blocked);
            return;
        }
        if 0 < settle {
            let machine = machine.clone();
            self.report(cluster, instruction, machine, DrainPhase::Started);
        }
        let takes = settle + self.dice.latency(self.plan.stages.evict);
        let takes = takes.min(u64::from(grace_seconds) * 1000);
        let emptied = Happening::Emptied {
            cluster,
            instruction,
            machine,
        };
        self.queue.at(self.now.after(takes), emptied);
    }

    /// A node is empty: its Pods wait for another, and the shard is told.
    pub(crate) fn emptied(
        &mut self,
        cluster: usize,
        instruction: OperationId,
        machine: &MachineId,
    ) {
        let known = &mut self.clusters[cluster];
        if known.pods.has_node(machine) && self.watch.commits.is_open(instruction) {
            known.pods.evict(machine);
        }
        self.report(cluster, instruction, machine.clone(), DrainPhase::Drained);
    }

    fn report(
        &mut self,
        cluster: usize,
        instruction: OperationId,
        machine: MachineId,
        phase: DrainPhase,
    ) {
        let Some((_, session)) = self.clusters[cluster].session else {
            return;
        };
        let event = Event::DrainReported {
            session,
            instruction,
            machine,
            phase,
        };
        if self.plan.clusters[cluster].drain_reports {
            self.up(cluster, event);
        }
    }

    /// A machine's node takes Pods, if it still serves the cluster.
    pub(crate) fn join(&mut self, cluster: usize, machine: &MachineId) {
        let Some(found) = self.cloud.machine(machine).cloned() else {
            return;
        };
        let serves = found.state == State::Configured
            && self.cluster_named(&found.cluster) == Some(cluster)
            && !self.clusters[cluster].pods.has_node(machine);
        if !serves || self.happens("node lost", self.plan.weather.node_lost) {
            return;
        }
        let shape = self.cloud.shape(&found.offer);
        self.clusters[cluster].pods.join(machine.clone(), shape);
        self.report_nodes(cluster, vec![machine.clone()], false);
    }

    /// Reports nodes, if this operator does: one when it joins, all with every roll-up.
    fn report_nodes(&mut self, cluster: usize, machines: Vec<MachineId>, complete: bool) {
        if !self.plan.clusters[cluster].node_reports {
            return;
        }
        if let Some((_, session)) = self.clusters[cluster].session {
            let ready = self.clusters[cluster].partitioned_until <= self.now;
            if !ready {
                self.struck("partition");
            }
            let mut node = |machine: MachineId| NodeFact {
                node_name: format!("node-{machine}"),
                disruption: self.disruption(cluster, &machine),
                machine: Some(machine),
                provider_id: String::new(),
                ready,
            };
            let event = Event::NodesReported {
                session,
                complete,
                nodes: machines.into_iter().map(&mut node).collect(),
            };
            self.up(cluster, event);
        }
    }

    /// What an operator tells of how much draining a node would disturb.
    fn disruption(&mut self, cluster: usize, machine: &MachineId) -> Option<Disruption> {
        let known = &mut self.clusters[cluster];
        let pods = known.pods.on(machine);
        let told = match self.plan.clusters[cluster].tells {
            Telling::Nothing => return None,
            Telling::Truly => pods,
            Telling::Late => known.told.insert(machine.clone(), pods)?,
            Telling::Wrongly => self.dice.between(0, 20) as u32,
        };
        Some(Disruption::at_most(told))
    }
}
