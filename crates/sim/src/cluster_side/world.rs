//! World: how a cluster with a real operator is wired to the queue, the shard and the provider.

use super::{
    Link, Out, Side, SideEvent, ToShard,
    frames::{heard, said},
    rest::Bound,
};
use crate::{
    clock::{Moment, seconds},
    watch::Rule,
    world::{Happening, World},
};
use bigfleet_model::{MachineId, State};
use bigfleet_operator_core as operator;
use bigfleet_operator_core::{ClosedBy, Heard, RowStatus};
use bigfleet_shard_core::{Event, Frame, SessionId};

/// Nothing but heartbeats for so long, before a cluster counts as at rest: longer than an empty Node is kept and than a
/// Node whose machine left without a word.
const STILL: u64 = seconds(35 * 60);
/// And for so long afterwards.
pub(crate) const STAYS: u64 = seconds(60 * 60);

impl World {
    /// Lets the side of a cluster do something, and carries out what follows.
    pub(crate) fn with_side(
        &mut self,
        cluster: usize,
        act: impl FnOnce(&mut Side, Moment, &mut Out),
    ) {
        let Some(mut side) = self.clusters[cluster].side.take() else {
            return;
        };
        let mut out = Out::default();
        act(&mut side, self.now, &mut out);
        self.clusters[cluster].side = Some(side);
        self.carry_out(cluster, out);
    }

    pub(crate) fn side_step(&mut self, cluster: usize, event: SideEvent) {
        self.with_side(cluster, |side, now, out| side.step(now, event, out));
    }

    fn carry_out(&mut self, cluster: usize, out: Out) {
        let id = self.clusters[cluster].id.clone();
        for text in &out.changes {
            self.trace.stored(self.now, cluster, text);
        }
        for text in out.lines {
            self.trace.line(self.now, || format!("{id} {text}"));
        }
        for fault in out.struck {
            self.struck(fault);
        }
        if let Some((rule, text)) = out.broken {
            self.watch.broke(rule, self.now, format!("{id}: {text}"));
        }
        for (at, is_in_order, event) in out.later {
            let event = Box::new(event);
            let happening = Happening::Side { cluster, event };
            let at = at.max(self.now);
            if is_in_order {
                self.queue.in_order(at, happening);
            } else {
                self.queue.at(at, happening);
            }
        }
        for what in out.to_shard {
            self.say_to_shard(cluster, what);
        }
    }

    fn say_to_shard(&mut self, cluster: usize, what: ToShard) {
        match what {
            ToShard::Dial(process, session) => self.side_dials(cluster, process, session),
            ToShard::Say(process, session, frame) => {
                self.side_says(cluster, process, session, *frame);
            }
            ToShard::HangUp(process, session) => {
                let link = self
                    .side_of(cluster)
                    .and_then(|side| side.links.remove(&(process, session)));
                if let Some(link) = link {
                    self.session_over(cluster, link);
                }
            }
            ToShard::Break { half_open } => self.side_disconnects(cluster, half_open),
            ToShard::TellNeeds => self.tell_needs(cluster),
        }
    }

    fn side_of(&mut self, cluster: usize) -> Option<&mut Side> {
        self.clusters[cluster].side.as_deref_mut()
    }

    fn side_later(&mut self, cluster: usize, at: Moment, process: u64, event: operator::Event) {
        let event = Box::new(SideEvent::Told(process, Box::new(event)));
        self.queue.in_order(at, Happening::Side { cluster, event });
    }

    fn side_dials(&mut self, cluster: usize, process: u64, session: operator::SessionId) {
        let now = self.now;
        self.side_later(cluster, now, process, operator::Event::Opened(session));
        let epoch = self.current;
        let is_there = self.process().is_some_and(|process| process.reachable);
        let Some(side) = self.side_of(cluster) else {
            return;
        };
        if !is_there || now < side.shard_away_until {
            let at = now.after(side.dice.between(1, 1_000));
            let by = ClosedBy::Transport("the shard is not there".to_owned());
            self.side_later(cluster, at, process, operator::Event::Closed(session, by));
            return;
        }
        self.next_session += 1;
        let of_shard = SessionId(self.next_session);
        let link = Link {
            epoch,
            session: of_shard,
        };
        if let Some(side) = self.side_of(cluster) {
            side.links.insert((process, session), link);
        }
        if let Some(process) = self.processes.get_mut(&epoch) {
            process.sessions.insert(of_shard, cluster);
        }
        self.clusters[cluster].session = Some((epoch, of_shard));
    }

    fn side_says(
        &mut self,
        cluster: usize,
        process: u64,
        session: operator::SessionId,
        frame: operator::Frame,
    ) {
        let (id, now) = (self.clusters[cluster].id.clone(), self.now);
        let drawn = self.plan.stages.stream;
        let Some(side) = self.side_of(cluster) else {
            return;
        };
        let Some(link) = side.links.get(&(process, session)).copied() else {
            return;
        };
        if now < side.shard_away_until {
            return;
        }
        let takes = side.dice.latency(drawn);
        let Some(event) = said(link.session, &id, process, frame) else {
            return;
        };
        if let Event::RolledUp {
            rollup_id,
            rows: Ok(rows),
            ..
        } = &event
        {
            self.watch.demand.sent(rollup_id, rows);
        }
        self.side_up(cluster, link.epoch, takes, event);
    }

    fn side_up(&mut self, cluster: usize, epoch: u64, takes: u64, event: Event) {
        let known = &mut self.clusters[cluster];
        known.last_up = known.last_up.after(1).max(self.now.after(takes));
        let at = known.last_up;
        let event = Box::new(event);
        self.queue.in_order(at, Happening::Tell { epoch, event });
    }

    /// A session is over on the operator's side; the shard notices.
    fn session_over(&mut self, cluster: usize, link: Link) {
        let session = link.session;
        if self.clusters[cluster].session == Some((link.epoch, session)) {
            self.clusters[cluster].session = None;
            self.watch.disconnected(cluster);
        }
        self.side_up(cluster, link.epoch, 1, Event::SessionClosed { session });
    }

    /// Every session of a cluster breaks.
    pub(crate) fn side_disconnects(&mut self, cluster: usize, half_open: bool) {
        let now = self.now;
        let Some(side) = self.side_of(cluster) else {
            return;
        };
        let links = std::mem::take(&mut side.links);
        for ((process, session), link) in links {
            self.session_over(cluster, link);
            if !half_open {
                let takes = self
                    .side_of(cluster)
                    .map_or(1, |side| side.dice.between(1, 1_000));
                let by = ClosedBy::Transport("the session broke".to_owned());
                let closed = operator::Event::Closed(session, by);
                self.side_later(cluster, now.after(takes), process, closed);
            }
        }
    }

    /// The shard ends a session: another one of the cluster took its place.
    pub(crate) fn side_replaced(&mut self, session: SessionId) {
        for cluster in 0..self.clusters.len() {
            let now = self.now;
            let Some(side) = self.side_of(cluster) else {
                continue;
            };
            let found = side.links.iter().find(|(_, link)| link.session == session);
            let Some((key, _)) = found.map(|(key, link)| (*key, *link)) else {
                continue;
            };
            side.links.remove(&key);
            let by = ClosedBy::Transport("a newer session took its place".to_owned());
            let closed = operator::Event::Closed(key.1, by);
            self.side_later(cluster, now.after(1), key.0, closed);
        }
    }

    /// A frame of the shard arrives.
    pub(crate) fn side_hears(&mut self, cluster: usize, session: SessionId, frame: Frame) {
        let now = self.now;
        let Some(side) = self
            .side_of(cluster)
            .filter(|side| side.shard_away_until <= now)
        else {
            return;
        };
        let link = side.links.iter().find(|(_, link)| link.session == session);
        if let Some(((process, own), _)) = link {
            let (process, event) = (*process, operator::Event::Heard(*own, heard(frame)));
            self.side_step(cluster, SideEvent::Told(process, Box::new(event)));
        }
    }

    /// What the shard knows of a cluster's rows, where that is something new (SV-11).
    fn tell_needs(&mut self, cluster: usize) {
        let now = self.now;
        let Some((epoch, session)) = self.clusters[cluster].session else {
            return;
        };
        let id = &self.clusters[cluster].id;
        let process = self.processes.get(&epoch);
        let Some(core) = process.map(|process| &process.core) else {
            return;
        };
        let Some(decided) = core
            .decided()
            .filter(|_| 0 < core.roll_ups_accepted(session))
        else {
            return;
        };
        let mut rows = Vec::new();
        for view in &decided.needs {
            let need = &view.verdict.need;
            if need.cluster != *id {
                continue;
            }
            let (progress, _) = core.progress(&need.key(), &need.row.aggregate);
            let reason = match (progress.is_served(), progress.missing.is_zero()) {
                (true, _) => "Served",
                (false, true) => "Coming",
                (false, false) => "NoMatchingSupply",
            };
            rows.push(RowStatus {
                fingerprint: need.row.profile.fingerprint().as_str().to_owned(),
                group: need.row.group.as_str().to_owned(),
                serving: progress.serving,
                coming: progress.coming,
                stuck: progress.stuck,
                missing: progress.missing,
                reason: reason.to_owned(),
                sentence: "as the shard has it".to_owned(),
            });
        }
        let takes = self.plan.stages.stream.most();
        let Some(side) = self.side_of(cluster) else {
            return;
        };
        let told = Some((session, rows.clone()));
        if side.needs_told == told || now < side.shard_away_until {
            return;
        }
        side.needs_told = told;
        let link = side.links.iter().find(|(_, link)| link.session == session);
        if let Some(((process, own), _)) = link {
            let (process, is_complete) = (*process, true);
            let word = Heard::NeedStatus { rows, is_complete };
            let event = operator::Event::Heard(*own, word);
            self.side_later(cluster, now.after(takes), process, event);
        }
    }

    /// A machine changed at the provider: what its kubelet does.
    pub(crate) fn side_machine(
        &mut self,
        cluster: usize,
        machine: &MachineId,
        state: Option<State>,
        is_own: bool,
    ) {
        let Some(side) = &self.clusters[cluster].side else {
            return;
        };
        let runs = side.runs(machine);
        if runs && !is_own {
            let machine = machine.clone();
            self.with_side(cluster, |side, now, out| {
                if state == Some(State::Idle) {
                    side.drained(now, &machine, out);
                }
                side.halt(now, &machine);
                side.flush(now, out);
            });
            return;
        }
        if runs || !is_own || state != Some(State::Configured) {
            return;
        }
        let Some(found) = self.cloud.machine(machine).cloned() else {
            return;
        };
        if self.happens("node lost", self.plan.weather.node_lost) {
            return;
        }
        let shape = self.cloud.shape(&found.offer);
        let reference = found.host.as_ref().map(|host| host.reference.clone());
        let latency = self.plan.stages.join;
        let machine = machine.clone();
        self.with_side(cluster, |side, now, out| {
            let takes = side.dice.latency(latency);
            side.boot(now, machine, shape, reference.unwrap_or_default(), takes);
            side.flush(now, out);
        });
    }

    /// Whether every cluster with a real operator has been still for long enough.
    pub(crate) fn sides_rest(&self) -> bool {
        let mut sides = self.clusters.iter().filter_map(|one| one.side.as_deref());
        sides.all(|side| STILL <= self.now.since(side.stirred_at) && side.is_settled())
    }

    pub(crate) fn has_sides(&self) -> bool {
        self.clusters.iter().any(|one| one.side.is_some())
    }

    /// The rules of rest, cluster by cluster.
    pub(crate) fn check_sides(&mut self) {
        for cluster in 0..self.clusters.len() {
            let name = self.clusters[cluster].id.to_string();
            let bound = self.cloud.machines().filter(|one| one.cluster == name);
            // A Failed machine keeps its cluster as evidence, and its operator tells of it.
            let is_bound = |state: State| state.is_bound() || state == State::Failed;
            let bound: Bound = bound
                .filter(|one| is_bound(one.state))
                .map(|one| (one.id.clone(), one.state != State::Configured))
                .collect();
            let id = &self.clusters[cluster].id;
            let is_short = self.process().is_some_and(|process| {
                process
                    .core
                    .shortfalls()
                    .any(|short| short.need.cluster == *id)
            });
            self.with_side(cluster, |side, _, out| {
                side.check_rest(&bound, is_short, out)
            });
        }
    }

    /// What each of them has done by now.
    pub(crate) fn sides_done(&self) -> Vec<(u64, u64, Moment)> {
        let sides = self.clusters.iter().filter_map(|one| one.side.as_deref());
        sides.map(Side::done).collect()
    }

    /// Nothing was done since.
    pub(crate) fn check_quiet(&mut self, before: &[(u64, u64, Moment)]) {
        let now = self.sides_done();
        if now != before {
            let text = format!(
                "writes, evictions and the last change: {before:?} at rest and {now:?} now, though nothing changed"
            );
            self.watch.broke(Rule::Quiet, self.now, text);
        }
    }
}
