//! The driver: the one thread that owns the core.
//!
//! ```text
//! loop { next event, or a question, or the moment asked for ─▶ core ─▶ start every effect }
//! ```
//!
//! It waits for nothing but its inbox. The store, the provider, the outboxes and the audit log take what
//! they are handed without making it wait, or are lost, which ends the process. Whose turn it is says `turn`:
//! readers neither delay cycles nor starve.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bigfleet_model::{Amounts, ClusterId, Time};
use bigfleet_shard_core::{
    Alert, Barrier, CloseReason, Effect, Event, Frame, Outcome, RailsView, SessionId, ShardCore,
};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tonic::Status;

use crate::attribution::Probe;
use crate::audit::{AuditLog, RailRecord};
use crate::clock::Clock;
use crate::departure::Departures;
use crate::events::{self, Events, Losses, News};
use crate::history::History;
use crate::hub::{Inbox, Question, Told};
use crate::intentions::Intentions;
use crate::leaving_news::LeavingNews;
use crate::news::{self, HeldBack};
use crate::outbox::{self, Link, Stuck};
use crate::provider::{ListTimes, Provider};
use crate::publish::{Published, Publisher};
use crate::stopwatch::Stopwatch;
use crate::store::Store;
use crate::timing::{TIMING, milliseconds};
use crate::trouble::Trouble;
use crate::turn::{Turn, Turns, Waiting};

/// Cycles may come ten times a second; nobody scrapes that often.
const PUBLISH_EVERY: Duration = Duration::from_millis(250);

/// A part without which the shard cannot go on, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{component}: {problem}")]
pub struct Failed {
    /// The part, by the name it has in the log.
    pub component: &'static str,
    /// What happened to it, for people.
    pub problem: String,
}

/// What the driver drives.
pub(crate) struct Driver {
    pub(crate) core: ShardCore,
    pub(crate) clock: Clock,
    pub(crate) inbox: Inbox,
    pub(crate) store: Store,
    pub(crate) provider: Provider,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) history: Arc<History>,
    pub(crate) events: Arc<Events>,
    /// How Lists went, for the provider's words.
    pub(crate) lists: Arc<ListTimes>,
    pub(crate) publisher: Publisher,
    /// Whether to probe attribution now and then.
    pub(crate) attribution_probe: bool,
    /// Where work goes that is too much for this thread.
    pub(crate) runtime: Handle,
    /// Told once, when the shard cannot go on.
    pub(crate) failed: watch::Sender<Option<Failed>>,
    pub(crate) trouble: Trouble,
}

struct Running {
    driver: Driver,
    sessions: BTreeMap<SessionId, Arc<Link>>,
    /// Calls that have not ended, for those that are not written yet.
    departures: Departures,
    effects: Vec<Effect>,
    wake: Option<Time>,
    /// What was handed to the store last, and what it has on disk.
    handed: Barrier,
    durable: Barrier,
    /// Who waits for a write to be on disk.
    awaiting: VecDeque<(Barrier, Question)>,
    /// A cycle has ended since the last snapshot was published.
    stale: bool,
    /// When the last snapshot was published.
    published: Instant,
    /// What it says of the things that are published at once when they change.
    shown: Urgent,
    counted: news::Counted,
    intentions: Intentions,
    /// What limited the shard when a cycle last ended.
    rails: RailsView,
    losses: Losses,
    leaving_news: LeavingNews,
    stopwatch: Stopwatch,
    /// Somebody waits for the last call to end.
    stopping: Option<oneshot::Sender<()>>,
    lost: Option<Failed>,
    turns: Turns,
}

/// What is published as soon as it changes: somebody who has just paused the shard must not be shown that
/// it is not paused, and nobody should wait for a shard that is already ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Urgent {
    paused: bool,
    ready: bool,
}

impl Urgent {
    fn of(core: &ShardCore) -> Self {
        Self {
            paused: core.is_paused(),
            ready: core.is_ready(),
        }
    }
}

enum Next {
    Told(Told),
    Question(Question),
    Moment,
    Nobody,
}

impl Driver {
    /// Drives until the hub is gone, a part is lost, or a stop has come to its end.
    pub(crate) async fn run(self) {
        // At once, but after what is in the inbox already: a shard that starts paused hears so first.
        let wake = Some(self.clock.now());
        // What limits it from the first moment on is told too.
        let unlimited = RailsView {
            pauses: Vec::new(),
            dry_run: false,
            ..self.core.rails()
        };
        let mut running = Running {
            driver: self,
            sessions: BTreeMap::new(),
            departures: Departures::default(),
            effects: Vec::new(),
            wake,
            handed: Barrier::default(),
            durable: Barrier::default(),
            awaiting: VecDeque::new(),
            stale: false,
            published: Instant::now(),
            shown: Urgent::default(),
            counted: news::Counted::default(),
            intentions: Intentions::default(),
            rails: unlimited,
            losses: Losses::default(),
            leaving_news: LeavingNews::default(),
            stopwatch: Stopwatch::new(Instant::now()),
            stopping: None,
            lost: None,
            turns: Turns::default(),
        };
        running.publish();
        while running.lost.is_none() {
            match running.next().await {
                Next::Told(told) => running.told(told),
                Next::Question(question) => question(&mut running.driver.core),
                Next::Moment => running.happened(Event::Woken),
                Next::Nobody => break,
            }
            if running.has_stopped() {
                break;
            }
        }
        running.end();
    }
}

impl Running {
    async fn next(&mut self) -> Next {
        let is_due = self.is_due();
        let inbox = &mut self.driver.inbox;
        let turn = self.turns.next(Waiting {
            event: !inbox.events.is_empty(),
            question: !inbox.questions.is_empty(),
            is_due,
        });
        match turn {
            // Under load, without a timer.
            Turn::Event => return inbox.events.recv().await.map_or(Next::Nobody, Next::Told),
            Turn::Question => {
                let asked = inbox.questions.recv().await;
                return asked.map_or(Next::Nobody, Next::Question);
            }
            Turn::Moment => return Next::Moment,
            Turn::Sleep => {}
        }
        let wake = self.wake.map(|moment| self.driver.clock.instant(moment));
        let due = self.stale.then(|| (self.published + PUBLISH_EVERY).into());
        let wake = [wake, due].into_iter().flatten().min();
        let asleep = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            told = inbox.events.recv() => told.map_or(Next::Nobody, Next::Told),
            question = inbox.questions.recv() => question.map_or(Next::Nobody, Next::Question),
            () = asleep => Next::Moment,
        }
    }

    /// Whether the core wanted to be woken by now, or what it says is to be published.
    fn is_due(&self) -> bool {
        let now = self.driver.clock.now();
        self.wake.is_some_and(|wake| wake <= now)
            || (self.stale && PUBLISH_EVERY <= self.published.elapsed())
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Event(event, then) => {
                let closed = match &event {
                    Event::SessionClosed { session } => Some(*session),
                    _ => None,
                };
                let asked = match &event {
                    Event::RolledUp { cluster, .. } => Some(cluster.clone()),
                    _ => None,
                };
                let asked = asked.map(|cluster| {
                    let before = self.demand_of(&cluster);
                    (cluster, before)
                });
                let persisted = match &event {
                    Event::Persisted { barrier } => Some(*barrier),
                    _ => None,
                };
                self.happened(event);
                if let Some((cluster, before)) = asked {
                    self.tell_demand(&cluster, before);
                }
                if let Some(session) = closed
                    && let Some(link) = self.sessions.remove(&session)
                {
                    let text = "the operator's session ended";
                    self.tell(News::warning("session-ended", text).of(&link.cluster));
                }
                if let Some(barrier) = persisted {
                    self.on_disk(barrier);
                }
                if let Some(then) = then {
                    then(&mut self.driver.core);
                }
            }
            Told::Durably(event, then) => {
                self.happened(event);
                if self.handed <= self.durable {
                    then(&mut self.driver.core)
                } else {
                    self.awaiting.push_back((self.handed, then))
                }
            }
            Told::Opened {
                session,
                link,
                features,
                identity,
            } => {
                let cluster = link.cluster.clone();
                let text = "the operator's session began";
                self.tell(News::info("session-began", text).of(&cluster));
                self.sessions.insert(session, link);
                self.happened(Event::SessionOpened {
                    session,
                    cluster,
                    features,
                    identity,
                });
            }
            Told::Lost(component, problem) => self.lose(component, problem),
            Told::Stop(stopped) => {
                self.stopping = Some(stopped);
                for link in std::mem::take(&mut self.sessions).into_values() {
                    link.end(Err(Status::unavailable("the shard is stopping")));
                }
            }
        }
    }

    /// Everything up to there is on disk: those who waited for it hear so.
    fn on_disk(&mut self, barrier: Barrier) {
        self.durable = self.durable.max(barrier);
        let durable = self.durable;
        while let Some((_, then)) = self.awaiting.pop_front_if(|(wanted, _)| *wanted <= durable) {
            then(&mut self.driver.core);
        }
    }

    /// The core takes in what happened, and what it asks for is started. Then it hears how long that
    /// took, if it was a cycle, in an event of its own.
    fn happened(&mut self, event: Event) {
        let before = self.driver.core.cycle();
        self.handle(event);
        let was_cycle = self.driver.core.cycle() != before;
        if was_cycle
            && self.driver.attribution_probe
            && let Some(probe) = Probe::of_cycle(&mut self.driver.core, &self.effects)
        {
            let span = tracing::Span::current();
            let runtime = &self.driver.runtime;
            runtime.spawn_blocking(move || span.in_scope(|| probe.log()));
        }
        self.start_effects();
        if let Some(took) = self.stopwatch.stop(was_cycle, Instant::now()) {
            tracing::debug!(target: TIMING, ms = milliseconds(took.cycle), "cycle took");
            let held_back = news::of_cycle(&self.driver.core, &mut self.counted, Instant::now());
            self.audit_rails(held_back);
            self.tell_changes();
            self.stale = true;
            self.happened(Event::CycleTook {
                seconds: took.cycle.as_secs_f64(),
                phases: took.phases,
            });
        } else if self.is_provider_news() {
            self.tell_changes();
        }
        let is_urgent = Urgent::of(&self.driver.core) != self.shown;
        if is_urgent || (self.stale && PUBLISH_EVERY <= self.published.elapsed()) {
            self.publish();
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.driver.clock.now();
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
        }
        let (core, watch) = (&mut self.driver.core, &mut self.stopwatch);
        news::of_event(core, &event);
        watch.start(&event, Instant::now());
        if let Event::CallEnded { sequence, .. } = &event {
            self.departures.ended(*sequence);
        }
        core.handle_in_phases(now, event, &mut self.effects, &mut |phase| {
            watch.begins(Some(phase), Instant::now());
        });
        self.withdraw();
    }

    /// Whatever the gate let go and nobody wrote yet stays here, once the gate has closed for it (SH-16).
    fn withdraw(&self) {
        let core = &self.driver.core;
        if self.departures.is_empty() || core.is_gate_open() || self.driver.trouble.lets_calls_go()
        {
            return;
        }
        let withdrawn = self.departures.withdraw(|machine| core.holds_back(machine));
        if 0 < withdrawn {
            tracing::info!(withdrawn, "calls that were not written yet are held back");
        }
    }

    fn demand_of(&self, cluster: &ClusterId) -> (usize, Amounts) {
        let known = self.driver.core.demand_of(cluster);
        known.map_or_else(Default::default, |(rows, totals)| (rows, totals.clone()))
    }

    fn tell_demand(&self, cluster: &ClusterId, before: (usize, Amounts)) {
        let after = self.demand_of(cluster);
        if before != after {
            let (before, after) = ((before.0, &before.1), (after.0, &after.1));
            self.tell(events::demand_changed(cluster, before, after));
        }
    }

    /// Whether the provider was lost or came back since a cycle last ended: nobody waits for the next to hear it.
    fn is_provider_news(&self) -> bool {
        let is_lost = self.driver.core.provider_lost().is_some();
        self.rails.provider_lost.is_some() != is_lost
    }

    /// Says what changed since a cycle last ended.
    fn tell_changes(&mut self) {
        let rails = self.driver.core.rails();
        self.losses.log();
        let mut told = self.losses.take();
        told.extend(self.leaving_news.take());
        let said = self.driver.lists.problem_words();
        let before = std::mem::replace(&mut self.rails, rails);
        told.extend(events::differences(&before, &self.rails, &said));
        for news in told {
            self.tell(news);
        }
    }

    fn tell(&self, news: News) {
        self.driver.events.add(self.driver.clock.now(), news);
    }

    fn publish(&mut self) {
        let published = Published::of(&self.driver.core);
        self.driver.publisher.publish(published);
        (self.stale, self.published) = (false, Instant::now());
        self.shown = Urgent::of(&self.driver.core);
    }

    fn start_effects(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            let is_news = match &effect {
                Effect::Audit(record) => self.intentions.is_news(record),
                _ => true,
            };
            if is_news {
                news::of_effect(&effect, &mut self.counted, &self.sessions);
            }
            if self.lost.is_none() {
                self.start(effect, is_news);
            }
        }
        self.effects = effects; // keeps its room
    }

    fn start(&mut self, effect: Effect, is_news: bool) {
        // What is committed and not sent is taken up by the next process (SH-6).
        let stopping = self.stopping.is_some();
        match effect {
            Effect::Persist { barrier, records } => {
                let (now, cycle) = (self.driver.clock.now(), self.driver.core.cycle());
                self.driver.history.committed(now, cycle, &records);
                self.handed = barrier;
                let ages = self.driver.core.take_lacking_changes();
                if let Err(problem) = self.driver.store.persist(barrier, records, ages) {
                    self.lose("store", problem);
                }
            }
            Effect::Call { .. } | Effect::Get { .. } | Effect::List { .. } if stopping => {}
            Effect::Call {
                operation,
                machine,
                token,
                call,
            } => {
                let departure = self.departures.begin(token.sequence, machine.clone());
                let provider = &self.driver.provider;
                provider.call(operation, machine, token, call, departure);
            }
            Effect::Get { get, machine } => self.driver.provider.get(get, machine),
            Effect::List { list, cursor } => self.driver.provider.list(list, cursor),
            Effect::Send { session, frame } => self.send(session, frame),
            Effect::Close { session, reason } => {
                let status = match reason {
                    CloseReason::Replaced => {
                        Status::aborted("the cluster's operator has opened a newer session")
                    }
                    CloseReason::Identity => Status::permission_denied(
                        "the certificate names another cluster than Hello does",
                    ),
                };
                if let Some(link) = self.sessions.remove(&session) {
                    tracing::warn!(cluster = %link.cluster, ?reason, "session ended");
                    let text = format!("the operator's session was ended: {}", status.message());
                    self.tell(News::warning("session-ended", text).of(&link.cluster));
                    link.end(Err(status));
                }
            }
            Effect::Audit(record) => {
                if record.outcome == Outcome::Adopted {
                    self.losses
                        .add(record.cluster.clone(), record.machine.clone());
                }
                self.leaving_news.add(&record);
                self.driver.history.ended(&record);
                match &self.driver.audit {
                    Some(audit) if is_news => audit.action(record),
                    Some(audit) => audit.again(&record),
                    None => {}
                }
            }
            Effect::Alert(alert) => self.audit_guard(&alert), // and said already
            Effect::WakeAt(moment) => self.wake = Some(moment),
        }
    }

    /// What a cycle began to hold back is a line, for whoever asks later why nothing was done.
    fn audit_rails(&self, held_back: HeldBack) {
        for (cluster, machines) in held_back.capped {
            self.audit_rail(
                "reclaim-cap",
                cluster.to_string(),
                json!({ "actions": machines }),
            );
        }
        if 0 < held_back.deferred {
            let detail = json!({ "actions": held_back.deferred });
            self.audit_rail("admission", String::new(), detail);
        }
    }

    fn audit_guard(&self, alert: &Alert) {
        if let Alert::RollUpSuspicious {
            cluster,
            rows_before,
            rows_now,
            held,
            why,
        } = alert
        {
            let detail = json!({
                "rows_before": rows_before, "rows_now": rows_now, "held": held, "why": why,
            });
            self.audit_rail("roll-up-guard", cluster.to_string(), detail);
        }
        if let Alert::NoticesHeld { cluster, machines } = alert {
            let detail = json!({ "not_hurried": machines });
            self.audit_rail("leaving-notices", cluster.to_string(), detail);
            let text = format!(
                "the provider announces to take away more than half of cluster {cluster}: {machines} of them are not hurried"
            );
            self.tell(News::error("leaving-notices-held", text).of(cluster));
        }
    }

    fn audit_rail(&self, rail: &'static str, cluster: String, detail: serde_json::Value) {
        if let Some(audit) = &self.driver.audit {
            audit.rail(RailRecord {
                time: self.driver.clock.now(),
                cycle: self.driver.core.cycle(),
                rail,
                cluster,
                detail,
            });
        }
    }

    fn send(&mut self, session: SessionId, frame: Frame) {
        let Some(link) = self.sessions.get(&session) else {
            return; // it ended meanwhile; a resync tells everything to the next one
        };
        if let Err(Stuck) = link.push(frame) {
            tracing::warn!(cluster = %link.cluster, "session ended: the operator does not read");
            link.end(Err(outbox::stuck()));
            // The reader of the session tells the core of its end.
            self.sessions.remove(&session);
        }
    }

    fn lose(&mut self, component: &'static str, problem: String) {
        let failed = Failed { component, problem };
        let text = format!("the shard ends: {failed}");
        self.tell(News::error("shard-ends", text));
        tracing::error!(component, err = failed.problem, "component exited");
        self.driver.failed.send_replace(Some(failed.clone()));
        self.lost = Some(failed);
    }

    /// Whether a stop was asked for and no call is under way.
    fn has_stopped(&mut self) -> bool {
        self.stopping.is_some() && self.driver.core.gauges().on_wire == 0
    }

    fn end(self) {
        for link in self.sessions.values() {
            link.end(Err(Status::unavailable("the shard has ended")));
        }
        drop(self.driver.inbox); // whoever waits for an answer hears that there is none
        if let Some(audit) = self.driver.audit {
            audit.close();
        }
        self.driver.store.close();
        if let Some(stopped) = self.stopping {
            let _ = stopped.send(()); // whoever asked may have lost patience
        }
    }
}
