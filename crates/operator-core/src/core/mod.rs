//! Core: the value itself, its one way in, and the order in which its parts are asked.
//!
//! The fields are private to this folder, and those of every part to its own. What happens to several parts at once is
//! written here, one file per kind of event; each of them asks parts and hands on what they answer.

mod drains;
mod machines;
mod roll_ups;
mod sessions;
mod spares;
mod watching;
mod writes;

use crate::{
    acknowledge::Acknowledgements,
    available::{Availed, Hints},
    bootstrap::{BootstrapStep, Bootstraps, Tokens},
    counters::Counters,
    defect::Defect,
    demand::{
        KeptRequest, answers::Answers, guard::WithdrawalGuard, ledger::Ledger,
        overhead::OverheadWatch, pace::Pace,
    },
    drain::{DrainTerms, Drains},
    effect::{Alert, Effect, Frame, Write},
    event::{EffectId, Event},
    follow::{CountCheck, Followed},
    jitter::Jitter,
    lead::Lead,
    machines::{registry::Registry, report::Reports, resync::Departures, upcoming::UpcomingNodes},
    objects::{AvailableFacts, Kind, NodeFacts, UpcomingFacts},
    queue::{Item, WriteQueue},
    served::ServedWords,
    session::Session,
    settings::OperatorConfig,
    spare::Spares,
};
use bigfleet_model::{Row, Time};
use std::{collections::BTreeMap, time::Duration};

/// How often the share that DaemonSets take is looked at.
const OVERHEAD_EVERY: Duration = Duration::from_secs(60);

/// A cluster's operator, as a value: told events, it answers with effects.
///
/// It never blocks, fails, logs, or reads a clock, a file or a random number. The same events at the same moments give
/// the same effects, byte for byte.
#[derive(Clone, Debug)]
pub struct OperatorCore {
    config: OperatorConfig,
    now: Time,
    effects_so_far: u64,
    jitter: Jitter,
    is_leading: bool,
    lead: Lead,

    /// What the cluster has.
    requests: Followed<KeptRequest>,
    upcoming_shown: Followed<UpcomingFacts>,
    available_shown: Followed<AvailableFacts>,
    nodes: Followed<NodeFacts>,
    count_check: CountCheck,
    /// Until when a request that nobody could ever read holds roll-ups.
    unread_until: Option<Time>,

    /// What it asks for, and which of it the shard has.
    ledger: Ledger,
    overhead: OverheadWatch,
    overhead_due: Option<Time>,
    guard: WithdrawalGuard,
    owners_asked: Option<EffectId>,
    pace: Pace,
    answers: Answers,
    last_rows: Vec<Row>,
    acknowledgements: Acknowledgements,
    served: ServedWords,

    /// What sums do not show.
    spares: Spares,
    spare_read: Option<EffectId>,
    /// Requests that came, by the text of their profile.
    came: BTreeMap<String, u64>,

    /// The shard.
    session: Session,
    hints: Hints,
    bootstraps: Bootstraps,
    tokens: Tokens,

    /// Machines and Nodes.
    registry: Registry,
    reports: Reports,
    upcoming: UpcomingNodes,
    departures: Departures,
    drains: Drains,

    queue: WriteQueue,
    counters: Counters,
    woken_at: Option<Time>,
}

impl OperatorCore {
    /// An operator that knows nothing yet and does not lead.
    pub fn new(config: OperatorConfig) -> Self {
        let cluster = config.cluster.as_str();
        Self {
            now: Time::from_nanos(i64::MIN),
            effects_so_far: 0,
            jitter: Jitter::new(config.jitter_seed),
            is_leading: false,
            lead: Lead::default(),
            requests: Followed::default(),
            upcoming_shown: Followed::default(),
            available_shown: Followed::default(),
            nodes: Followed::default(),
            count_check: CountCheck::default(),
            unread_until: None,
            ledger: Ledger::default(),
            overhead: OverheadWatch::default(),
            overhead_due: None,
            guard: WithdrawalGuard::new(config.max_withdrawal_hold),
            owners_asked: None,
            pace: Pace::new(config.rollup_interval),
            answers: Answers::default(),
            last_rows: Vec::new(),
            acknowledgements: Acknowledgements::default(),
            served: ServedWords::default(),
            spares: Spares::default(),
            spare_read: None,
            came: BTreeMap::new(),
            session: Session::default(),
            hints: Hints::default(),
            bootstraps: Bootstraps::new(cluster, config.template.clone()),
            tokens: Tokens::new(cluster, config.token_ttl),
            registry: Registry::default(),
            reports: Reports::default(),
            upcoming: UpcomingNodes::default(),
            departures: Departures::default(),
            drains: Drains::new(DrainTerms {
                settle: config.reclaim_settle,
                defect: config.defect,
            }),
            queue: WriteQueue::new(config.qps, config.burst, config.ack_concurrency),
            counters: Counters::default(),
            woken_at: None,
            config,
        }
    }

    /// Takes in what happened and says what to do about it. A moment earlier than the last one heard counts as the last
    /// one.
    pub fn handle(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) {
        let now = now.max(self.now);
        self.now = now;
        self.take(now, event, effects);
        self.look_at_lead(now, effects);
        if self.is_leading {
            self.follow_up(now, effects);
        }
        self.ask_to_be_woken(now, effects);
    }

    fn take(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Woken => self.woken_at = None,
            Event::Leads(renewed) => self.lead.renewed(renewed),
            // Whoever does not lead knows nothing, and what it hears is late.
            _ if !self.is_leading => {}
            Event::Began(kind) => self.began(now, kind),
            Event::Seen(object, version) => self.seen(now, object, version, effects),
            Event::Unreadable { kind, key, why } => self.unreadable(now, kind, key, why, effects),
            Event::Gone { kind, key, version } => self.gone(now, kind, &key, version, effects),
            Event::Whole(kind, version) => self.whole(now, kind, version, effects),
            Event::Fresh(kind, version) => self.fresh(now, kind, version),
            Event::Broken(kind) => self.broken(now, kind, effects),
            Event::Counted(count) => self.counted(now, count, effects),
            Event::DaemonSets(requests) => {
                self.overhead.daemon_sets(requests);
                self.overhead_due = Some(now);
            }
            Event::Opened(session) => self.opened(now, session, effects),
            Event::Heard(session, heard) => self.heard(now, session, heard, effects),
            Event::Closed(session, by) => self.closed(now, session, by, effects),
            Event::Wrote(id, outcome) => self.wrote(now, id, outcome, effects),
            Event::Pods(id, pods) => self.drains.pods(id, pods),
            Event::Evicted(id, outcome) => self.evicted(now, id, outcome),
            Event::Owners(id, found) => self.owners_found(now, id, found),
            Event::Rendered(id, result) => {
                let step = self.bootstraps.rendered(id, result);
                self.bootstrap_step(step, effects);
            }
            Event::Template(read) => match read {
                Ok(template) => self.bootstraps.template(template),
                Err(why) => effects.push(Effect::Alert(Alert::TemplateRefused(why))),
            },
            Event::Token(made) => {
                let refused = self.tokens.made(now, made);
                effects.extend(refused.map(|why| Effect::Alert(Alert::TokenRefused(why))));
            }
            Event::SpareRecord(text) => self.spare_recorded(text.as_deref(), effects),
        }
    }

    /// OP-11: only the leader follows, dials and writes, and it looks at its own clock before it does.
    fn look_at_lead(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let leads = self.lead.leads(now);
        if leads == self.is_leading {
            return;
        }
        self.is_leading = leads;
        if leads {
            effects.extend(Kind::ALL.map(Effect::Follow));
            effects.push(Effect::ReadSpareRecord);
            self.session.start(now);
        } else {
            self.give_up(effects);
        }
    }

    /// Another process leads: whatever it needs is in the cluster.
    fn give_up(&mut self, effects: &mut Vec<Effect>) {
        let mut steps = Vec::new();
        self.drains.give_up(&mut steps);
        self.drain_steps(steps, effects);
        effects.extend(self.session.stop().map(Effect::HangUp));
        effects.push(Effect::Unfollow);
        let (counters, effects_so_far) = (self.counters.clone(), self.effects_so_far);
        let (session, answers) = (self.session.clone(), self.answers.clone());
        let (now, lead, jitter) = (self.now, self.lead, self.jitter.clone());
        let bootstraps = self.bootstraps.clone();
        *self = Self {
            counters,
            effects_so_far,
            session,
            answers,
            now,
            lead,
            jitter,
            bootstraps,
            ..Self::new(self.config.clone())
        };
    }

    /// What follows from what is known now.
    fn follow_up(&mut self, now: Time, effects: &mut Vec<Effect>) {
        effects.extend(self.session.dial(now).map(Effect::Dial));
        self.advance_departures(now, effects);
        self.advance_drains(now, effects);
        self.look_at_overhead(now);
        self.watch_the_shard(now, effects);
        self.look_at_spares(now, effects);
        self.roll_up(now, effects);
        self.report_nodes(now, effects);
        self.speak_of_missing_nodes(now, effects);
        for step in self.hints.due(now) {
            self.queue.push(Item::Write(match step {
                Availed::Apply(name, content) => Write::ApplyAvailable { name, content },
                Availed::Delete(name) => Write::DeleteAvailable { name },
            }));
        }
        while let Some(write) = self.served.next(now) {
            self.queue.push(Item::Write(write));
        }
        self.acknowledge(now);
        self.answer_bootstraps(now, effects);
        if let Some((id, expires)) = self.tokens.make(now) {
            effects.push(Effect::MakeToken { id, expires });
        }
        if self.count_check.is_due(now) {
            effects.push(Effect::Count);
        }
        let so_far = &mut self.effects_so_far;
        let mut next_id = || next_effect(so_far);
        self.queue.release(now, &mut next_id, effects);
    }

    fn ask_to_be_woken(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let moments = if self.is_leading {
            self.moments(now)
        } else {
            Vec::new()
        };
        // Whatever was due by now is done, or waits for something other than the clock.
        let next = moments
            .into_iter()
            .flatten()
            .filter(|next| now < *next)
            .min();
        if next != self.woken_at
            && let Some(next) = next
        {
            effects.push(Effect::WakeAt(next));
        }
        self.woken_at = next;
    }

    fn moments(&self, now: Time) -> Vec<Option<Time>> {
        vec![
            self.lead.ends(),
            self.session.next(),
            self.drains.next(),
            self.departures_next(),
            self.overhead_due,
            self.answers_next(),
            self.roll_up_next(now),
            self.reports
                .next()
                .filter(|_| self.session.features().node_report),
            self.upcoming.next_overdue(),
            self.hints.next(),
            self.served.next_write(),
            self.tokens.next(now),
            self.spares.next(),
            self.count_check.next(),
            self.queue.next(now),
        ]
    }

    fn look_at_overhead(&mut self, now: Time) {
        if !self.config.daemonset_overhead || self.overhead_due.is_none_or(|due| now < due) {
            return;
        }
        self.overhead_due = Some(now + OVERHEAD_EVERY);
        let is_ours = |node: &&NodeFacts| {
            !crate::machines::registry::is_selected(&self.config.unmanaged_nodes, node)
        };
        let nodes = self.nodes.iter().map(|(_, node)| node).filter(is_ours);
        let offered: Vec<_> = nodes.map(|node| &node.allocatable).collect();
        if self.overhead.look(now, &offered) {
            self.pace.changed(now);
        }
    }

    fn acknowledge(&mut self, now: Time) {
        while 0 < self.queue.room_for_requests() {
            let Some(write) = self.acknowledgements.next(now) else {
                break;
            };
            let item = Item::Write(write);
            if !self.queue.is_pending(&item.slot()) {
                self.queue.push(item);
            }
        }
    }

    fn answer_bootstraps(&mut self, now: Time, effects: &mut Vec<Effect>) {
        loop {
            let upcoming = &self.upcoming;
            let labels = |machine: &str| {
                let machine = bigfleet_model::MachineId::new(machine).ok();
                let known = machine.and_then(|machine| upcoming.get(&machine));
                known.map(|known| known.labels.clone()).unwrap_or_default()
            };
            let Some(step) = self.bootstraps.next(now, self.tokens.in_force(), labels) else {
                break;
            };
            self.bootstrap_step(Some(step), effects);
        }
    }

    fn bootstrap_step(&mut self, step: Option<BootstrapStep>, effects: &mut Vec<Effect>) {
        match step {
            None => {}
            Some(BootstrapStep::Render(job)) => {
                let id = self.next_id();
                self.bootstraps.renders(id);
                effects.push(Effect::Render(id, job));
            }
            Some(BootstrapStep::Answer { request, answer }) => {
                self.counters.bootstraps[usize::from(answer.is_err())] += 1;
                self.send(Frame::BootstrapResponse { request, answer }, effects);
            }
        }
    }

    /// Says something to the shard, if there is one to say it to.
    fn send(&self, frame: Frame, effects: &mut Vec<Effect>) {
        effects.extend(
            self.session
                .speaks()
                .map(|session| Effect::Send(session, frame)),
        );
    }

    fn next_id(&mut self) -> EffectId {
        next_effect(&mut self.effects_so_far)
    }

    fn has(&self, defect: Defect) -> bool {
        self.config.defect == Some(defect)
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether this process leads.
    pub fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// Whether every kind was listed completely (OP-12).
    pub fn is_whole(&self) -> bool {
        self.requests.is_whole()
            && self.upcoming_shown.is_whole()
            && self.available_shown.is_whole()
            && self.nodes.is_whole()
    }

    /// How many drains are in which stage.
    pub fn drains(&self) -> BTreeMap<&'static str, usize> {
        self.drains.stages()
    }

    /// How many requests count.
    pub fn requests(&self) -> u64 {
        self.ledger.requests()
    }

    /// Requests the shard has and that have not been told.
    pub fn acknowledgements_waiting(&self) -> usize {
        self.acknowledgements.backlog()
    }

    /// Writes that wait for their turn.
    pub fn writes_waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Pods that no further Node would help (OP-63).
    pub fn unplaceable(&self) -> usize {
        self.spares.unplaceable()
    }

    /// Machines with a Node, and machines that could be more than one.
    pub fn machines_resolved(&self) -> (usize, usize) {
        (self.registry.resolved(), self.registry.ambiguous())
    }

    /// Nodes whose silence is not told since too many are silent at once (OP-33).
    pub fn nodes_frozen(&self) -> usize {
        self.reports.frozen_count()
    }
}

fn next_effect(so_far: &mut u64) -> EffectId {
    *so_far += 1;
    EffectId(*so_far)
}
