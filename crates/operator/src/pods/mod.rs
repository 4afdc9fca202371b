//! Pods: the pod controller as a process (operator.md §10).
//!
//! ```text
//! Pods, requests, Nodes, volumes ─▶ PodController ─▶ create, patch, delete, condition, annotation ─▶ API server
//! ```
//!
//! Only the process that leads listens and writes; one that loses the lease forgets everything, and what it had begun is
//! made again by comparing.
//!
//! | File | Idea |
//! |---|---|
//! | `roster` | which objects a new list no longer has |
//! | `volumes` | the zones a Pod's volumes tie it to |
//! | `write` | effects as calls, no faster than asked |

mod roster;
mod volumes;
mod write;

use crate::clock::Clock;
use crate::health::Health;
use crate::lease::{Election, Hold};
use crate::metrics;
use crate::read::node::Node;
use crate::read::pod::Pod;
use crate::read::request::Request;
use crate::settings::Leading;
use bigfleet_k8s::{Cluster, Follow, Followed, Followers, Place, ResourceKind};
use bigfleet_model::Requirement;
use bigfleet_operator_core::{ObjectKey, PodConfig, PodController, PodEffect, PodEvent};
use roster::{Change, Roster};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use volumes::{Claim, Volume, Volumes};
use write::Pen;

const WAITING: usize = 1024;
const FAR: Duration = Duration::from_secs(3600);

/// How a pod controller is set up.
#[derive(Clone, Debug)]
pub struct PodSettings {
    /// What requests are made of.
    pub config: PodConfig,
    /// Nodes that are none of ours; empty for none.
    pub unmanaged_nodes: Vec<Requirement>,
    /// Writes per second.
    pub qps: u32,
    /// Writes at once after a pause.
    pub burst: u32,
    /// Which process acts.
    pub leading: Leading,
}

/// A running pod controller.
#[derive(Debug)]
pub struct Pods {
    health: Health,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Pods {
    /// What the probes ask.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// The text of the metrics.
    pub fn metrics(&self) -> impl Fn() -> bigfleet_net::Answer + Send + Sync + use<> {
        let health = self.health.clone();
        move || {
            let text = metrics::calls(&health);
            Box::pin(async move { text })
        }
    }

    /// Ends in order: the lease is given up.
    pub async fn stop(self) {
        self.stop.send(()).ok(); // over already is as good
        drop(self.task.await);
    }
}

/// Starts a pod controller; it begins to act once it leads.
pub fn start_pods(cluster: Cluster, settings: PodSettings) -> Pods {
    let hold = Hold::new(Clock::start());
    let health = Health::without_session(hold.clone());
    let (stop, stopped) = oneshot::channel();
    let election = Election::new(cluster.clone(), settings.leading.clone(), hold.clone());
    let of_task = health.clone();
    let task = tokio::spawn(lead(cluster, settings, election, hold, of_task, stopped));
    Pods { health, stop, task }
}

/// Runs a controller for as long as the lease is held, and a new one when it is had again.
async fn lead(
    cluster: Cluster,
    settings: PodSettings,
    mut election: Election,
    hold: Hold,
    health: Health,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut running: Option<Aborted> = None;
    loop {
        let (renewed, pause) = election.step().await;
        if renewed.is_none() {
            running = None;
            health.core(false, false);
        } else if running.is_none() {
            let controller = Controller::new(&cluster, &settings, hold.clone(), health.clone());
            running = Some(Aborted(tokio::spawn(controller.run())));
        }
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    drop(running);
    election.give_up().await;
}

struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a watch brings.
enum News {
    Pods(Followed<Pod>),
    Requests(Followed<Request>),
    Nodes(Followed<Node>),
    Claims(Followed<Claim>),
    Volumes(Followed<Volume>),
}

struct Controller {
    core: PodController,
    clock: Clock,
    health: Health,
    news: mpsc::Receiver<News>,
    pen: Pen,
    unmanaged: Vec<Requirement>,
    pods: Roster,
    requests: Roster,
    nodes: Roster,
    volumes: Volumes,
    /// Pods whose volumes may tie them to a zone.
    tied: BTreeMap<Place, Pod>,
    is_whole: bool,
    wake: Option<Instant>,
    _watches: Vec<Aborted>,
}

impl Controller {
    fn new(cluster: &Cluster, settings: &PodSettings, hold: Hold, health: Health) -> Self {
        let (bring, news) = mpsc::channel(WAITING);
        let followers = Followers::default();
        let requests = ResourceKind::CapacityRequest.path();
        let watches = vec![
            watch(
                &followers,
                cluster,
                &health,
                "/api/v1/pods",
                &bring,
                News::Pods,
            ),
            watch(
                &followers,
                cluster,
                &health,
                &requests,
                &bring,
                News::Requests,
            ),
            watch(
                &followers,
                cluster,
                &health,
                "/api/v1/nodes",
                &bring,
                News::Nodes,
            ),
            watch(
                &followers,
                cluster,
                &health,
                "/api/v1/persistentvolumeclaims",
                &bring,
                News::Claims,
            ),
            watch(
                &followers,
                cluster,
                &health,
                "/api/v1/persistentvolumes",
                &bring,
                News::Volumes,
            ),
        ];
        Self {
            core: PodController::new(settings.config.clone()),
            clock: Clock::start(),
            pen: Pen::new(
                cluster.clone(),
                settings.qps,
                settings.burst,
                hold,
                health.clone(),
            ),
            health,
            news,
            unmanaged: settings.unmanaged_nodes.clone(),
            pods: Roster::default(),
            requests: Roster::default(),
            nodes: Roster::default(),
            volumes: Volumes::default(),
            tied: BTreeMap::new(),
            is_whole: false,
            wake: None,
            _watches: watches,
        }
    }

    async fn run(mut self) {
        loop {
            let wake = self.wake.unwrap_or_else(|| Instant::now() + FAR);
            tokio::select! {
                news = self.news.recv() => match news {
                    Some(news) => self.hear(news),
                    None => return,
                },
                () = tokio::time::sleep_until(wake) => {
                    self.wake = None;
                    self.handle(PodEvent::Woken);
                }
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Pods(told) => {
                let (changes, object) = self.pods.take(told);
                for change in changes {
                    match change {
                        Change::Seen(place) => {
                            if let Some(pod) = &object {
                                self.pod(place, pod.clone());
                            }
                        }
                        Change::Gone(place) => {
                            self.tied.remove(&place);
                            self.handle(PodEvent::PodGone(key(place)));
                        }
                    }
                }
            }
            News::Requests(told) => {
                let (changes, object) = self.requests.take(told);
                let mut object = object;
                for change in changes {
                    match change {
                        Change::Seen(_) => {
                            if let Some(shown) = object.take().and_then(Request::shown) {
                                self.handle(PodEvent::Request(Box::new(shown)));
                            }
                        }
                        Change::Gone(place) => self.handle(PodEvent::RequestGone(key(place))),
                    }
                }
            }
            News::Nodes(told) => {
                let (changes, mut object) = self.nodes.take(told);
                for change in changes {
                    match change {
                        Change::Seen(place) => {
                            let shown = object.take().map(|node: Node| node.shown(&self.unmanaged));
                            self.handle(PodEvent::Node(place.name, shown));
                        }
                        Change::Gone(place) => self.handle(PodEvent::Node(place.name, None)),
                    }
                }
            }
            News::Claims(told) => {
                if self.volumes.claims(told) {
                    self.tied_anew();
                }
            }
            News::Volumes(told) => {
                if self.volumes.volumes(told) {
                    self.tied_anew();
                }
            }
        }
        let is_whole = self.pods.is_whole()
            && self.requests.is_whole()
            && self.nodes.is_whole()
            && self.volumes.is_whole();
        if is_whole && !self.is_whole {
            self.is_whole = true;
            self.handle(PodEvent::Whole);
        }
        self.health.core(true, self.is_whole);
    }

    fn pod(&mut self, place: Place, pod: Pod) {
        let zones = self.volumes.zones(&place.namespace, pod.claims());
        let facts = pod.facts(zones);
        if pod.claims().next().is_some() {
            self.tied.insert(place, pod);
        }
        self.handle(PodEvent::Pod(Box::new(facts)));
    }

    fn tied_anew(&mut self) {
        for (place, pod) in std::mem::take(&mut self.tied) {
            self.pod(place, pod);
        }
    }

    fn handle(&mut self, event: PodEvent) {
        let mut effects = Vec::new();
        self.core.handle(self.clock.now(), event, &mut effects);
        for effect in effects {
            match effect {
                PodEffect::WakeAt(at) => self.wake = Some(self.clock.instant(at)),
                other => self.pen.write(other),
            }
        }
    }
}

fn key(place: Place) -> ObjectKey {
    crate::read::key(&place)
}

fn watch<T: DeserializeOwned + Send + 'static>(
    followers: &Followers,
    cluster: &Cluster,
    health: &Health,
    path: &str,
    bring: &mpsc::Sender<News>,
    news: fn(Followed<T>) -> News,
) -> Aborted {
    let what = Follow {
        path: path.to_owned(),
        fields: String::new(),
    };
    let (bring, health, path) = (bring.clone(), health.clone(), path.to_owned());
    let tell = move |told: Followed<T>| {
        match &told {
            Followed::Whole(_) => health.answered(&path, None),
            Followed::Broken(Some(why)) => {
                tracing::warn!(%path, %why, "a watch broke");
                health.answered(&path, Some(why));
            }
            _ => {}
        }
        let bring = bring.clone();
        async move { bring.send(news(told)).await.is_ok() }
    };
    Aborted(followers.follow(cluster, what, tell))
}
