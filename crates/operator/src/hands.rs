//! Hands: does what the core says. Every effect that has an answer is a task that brings it.

use crate::health::Health;
use crate::lease::Hold;
use crate::notes::Notes;
use crate::process::Feed;
use crate::read::node::Node;
use crate::read::pod::Pod;
use crate::read::request::Request;
use crate::read::upcoming::{Available, Upcoming};
use crate::read::{amounts, key};
use crate::secrets;
use crate::session::{Shard, Stream};
use crate::settings::OperatorSettings;
use crate::write::{RECORD_KEY, SPARE_RECORD, evict, write};
use bigfleet_k8s::{Call, Cluster, Follow, Followed, Followers, GROUP, Refused, ResourceKind};
use bigfleet_model::Amounts;
use bigfleet_operator_core::{
    Alert, ClosedBy, Count, Effect, EffectId, Event, Eviction, EvictionOutcome, Kind, Object,
    Owner, OwnerState, OwnersFound, PodBrief, RenderJob, SessionId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A template that takes longer is stopped waiting for (OP-45).
const RENDERED_WITHIN: Duration = Duration::from_secs(1);
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Ends its task when dropped.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) struct Hands {
    cluster: Cluster,
    namespace: String,
    shard: Shard,
    hold: Hold,
    feed: Feed,
    health: Health,
    notes: Notes,
    followers: Followers,
    following: BTreeMap<Kind, Task>,
    daemon_sets: Option<Task>,
    pods: BTreeMap<EffectId, Task>,
    stream: Option<Stream>,
}

impl Hands {
    pub(crate) fn new(
        cluster: Cluster,
        settings: &OperatorSettings,
        hold: Hold,
        feed: Feed,
        health: Health,
    ) -> Self {
        Self {
            notes: Notes::start(cluster.clone(), "bigfleet-operator"),
            cluster,
            namespace: settings.leading.namespace.clone(),
            shard: Shard {
                cluster: settings.core.cluster.as_str().to_owned(),
                addr: settings.shard_addr.clone(),
                tls: settings.tls.clone(),
            },
            hold,
            feed,
            health,
            followers: Followers::default(),
            following: BTreeMap::new(),
            daemon_sets: None,
            pods: BTreeMap::new(),
            stream: None,
        }
    }

    pub(crate) fn act(&mut self, effect: Effect) {
        match effect {
            Effect::WakeAt(_) => {} // the process itself does that
            Effect::Follow(kind) => self.follow(kind),
            Effect::Unfollow => {
                self.following.clear();
                self.daemon_sets = None;
            }
            Effect::ReadSpareRecord => self.read_spare_record(),
            Effect::Count => self.count(),
            Effect::Dial(id) => self.dial(id),
            Effect::Send(id, frame) => {
                let stream = self.stream.as_ref().filter(|stream| stream.id == id);
                if stream.is_some_and(|stream| !stream.say(frame)) {
                    self.stream = None;
                    let why = ClosedBy::Transport("the shard does not read".to_owned());
                    self.tell(Event::Closed(id, why));
                }
            }
            Effect::HangUp(id) => {
                self.stream.take_if(|stream| stream.id == id);
            }
            Effect::Write(id, what) => {
                let (cluster, feed, health) =
                    (self.cluster.clone(), self.feed.clone(), self.health.clone());
                let namespace = self.namespace.clone();
                tokio::spawn(async move {
                    let (outcome, refused) = write(&cluster, &namespace, what).await;
                    health.answered("write", refused.as_ref());
                    feed.send(Event::Wrote(id, outcome)).await;
                });
            }
            Effect::FollowPods(id, node) => self.follow_pods(id, &node),
            Effect::ForgetPods(id) => {
                self.pods.remove(&id);
            }
            Effect::Evict(id, eviction) => self.evict(id, eviction),
            Effect::ReadOwners(id, owners) => self.read_owners(id, owners),
            Effect::Render(id, job) => self.render(id, job),
            Effect::MakeToken { id, expires } => {
                let (cluster, feed) = (self.cluster.clone(), self.feed.clone());
                tokio::spawn(async move {
                    let made = secrets::join_token(&cluster, &id, expires).await;
                    feed.send(Event::Token(made)).await;
                });
            }
            Effect::Tell(note) => self.notes.tell(note),
            Effect::Alert(alert) => self.alert(&alert),
        }
    }

    /// An event that nobody waits for.
    fn tell(&self, event: Event) {
        let feed = self.feed.clone();
        tokio::spawn(async move { feed.send(event).await });
    }

    fn alert(&self, alert: &Alert) {
        tracing::error!(?alert, "needs a human");
        self.health.alert(alert);
    }

    /// OP-11: before every dial and eviction the lease must have been renewed within ten seconds.
    fn dial(&mut self, id: SessionId) {
        if !self.hold.is_held() {
            let why = ClosedBy::Transport("this process no longer leads".to_owned());
            return self.tell(Event::Closed(id, why));
        }
        self.stream = Some(Stream::open(&self.shard, id, self.feed.clone()));
    }

    fn evict(&self, id: EffectId, eviction: Eviction) {
        let (cluster, feed, hold) = (self.cluster.clone(), self.feed.clone(), self.hold.clone());
        let health = self.health.clone();
        tokio::spawn(async move {
            let outcome = if hold.is_held() {
                let (outcome, refused) = evict(&cluster, &eviction).await;
                health.answered("evict", refused.as_ref());
                tracing::info!(pod = %eviction.pod, ?outcome, "evicted");
                outcome
            } else {
                EvictionOutcome::Failed("this process no longer leads".to_owned())
            };
            feed.send(Event::Evicted(id, outcome)).await;
        });
    }

    fn follow(&mut self, kind: Kind) {
        let task = match kind {
            Kind::Request => {
                self.followed(kind, ResourceKind::CapacityRequest.path(), |it: Request| {
                    Object::Request(Box::new(it.facts()))
                })
            }
            Kind::Upcoming => {
                self.followed(kind, ResourceKind::UpcomingNode.path(), |it: Upcoming| {
                    Object::Upcoming(Box::new(it.facts()))
                })
            }
            Kind::Available => self.followed(
                kind,
                ResourceKind::AvailableCapacity.path(),
                |it: Available| Object::Available(Box::new(it.facts())),
            ),
            Kind::Node => self.followed(kind, "/api/v1/nodes".to_owned(), |it: Node| {
                Object::Node(Box::new(it.facts()))
            }),
        };
        self.following.insert(kind, task);
        if self.daemon_sets.is_none() {
            self.daemon_sets = Some(self.follow_daemon_sets());
        }
    }

    fn followed<T: DeserializeOwned + Send + 'static>(
        &self,
        kind: Kind,
        path: String,
        read: impl Fn(T) -> Object + Send + Sync + Copy + 'static,
    ) -> Task {
        let (feed, health) = (self.feed.clone(), self.health.clone());
        let what = Follow {
            path: path.clone(),
            fields: String::new(),
        };
        let tell = move |told: Followed<T>| {
            let (feed, health, path) = (feed.clone(), health.clone(), path.clone());
            async move {
                let event = match told {
                    Followed::Began => Event::Began(kind),
                    Followed::Seen(seen) => match seen.object {
                        Ok(object) => Event::Seen(read(object), seen.version),
                        Err(why) => Event::Unreadable {
                            kind,
                            key: key(&seen.place),
                            why,
                        },
                    },
                    Followed::Gone(place, version) => Event::Gone {
                        kind,
                        key: key(&place),
                        version,
                    },
                    Followed::Whole(version) => {
                        health.answered(&path, None);
                        Event::Whole(kind, version)
                    }
                    Followed::Fresh(version) => Event::Fresh(kind, version),
                    Followed::Broken(why) => {
                        if let Some(why) = &why {
                            tracing::warn!(%path, %why, "a watch broke");
                        }
                        health.answered(&path, why.as_ref());
                        Event::Broken(kind)
                    }
                };
                feed.send(event).await
            }
        };
        Task(self.followers.follow(&self.cluster, what, tell))
    }

    /// OP-51: what DaemonSets ask of every Node, in all.
    fn follow_daemon_sets(&self) -> Task {
        #[derive(Deserialize)]
        struct DaemonSet {
            spec: Spec,
        }
        #[derive(Deserialize)]
        struct Spec {
            template: Pod,
        }
        let feed = self.feed.clone();
        let known: Arc<Mutex<BTreeMap<_, Amounts>>> = Arc::default();
        let what = Follow {
            path: "/apis/apps/v1/daemonsets".to_owned(),
            fields: String::new(),
        };
        let tell = move |told: Followed<DaemonSet>| {
            let sum = {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                match told {
                    Followed::Began => known.clear(),
                    Followed::Seen(seen) => {
                        let asked = seen.object.map(|it| {
                            let each = it.spec.template.requests().map(|it| amounts(it.iter()));
                            each.fold(Amounts::NONE, |sum, each| sum.add(&each))
                        });
                        known.insert(seen.place, asked.unwrap_or(Amounts::NONE));
                    }
                    Followed::Gone(place, _) => drop(known.remove(&place)),
                    Followed::Whole(_) | Followed::Fresh(_) | Followed::Broken(_) => {}
                }
                known
                    .values()
                    .fold(Amounts::NONE, |sum, each| sum.add(each))
            };
            let feed = feed.clone();
            async move { feed.send(Event::DaemonSets(sum)).await }
        };
        Task(self.followers.follow(&self.cluster, what, tell))
    }

    /// OP-37: all Pods of a Node, once they are whole and again whenever one changes.
    fn follow_pods(&mut self, id: EffectId, node: &str) {
        let feed = self.feed.clone();
        let what = Follow {
            path: "/api/v1/pods".to_owned(),
            fields: format!("spec.nodeName={node}"),
        };
        let known: Arc<Mutex<NodePods>> = Arc::default();
        let tell = move |told: Followed<Pod>| {
            let told = known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(told);
            let feed = feed.clone();
            async move {
                match told {
                    Some(pods) => feed.send(Event::Pods(id, pods)).await,
                    None => true,
                }
            }
        };
        let task = Task(self.followers.follow(&self.cluster, what, tell));
        self.pods.insert(id, task);
    }

    fn read_spare_record(&self) {
        let (cluster, feed) = (self.cluster.clone(), self.feed.clone());
        let path = format!(
            "/api/v1/namespaces/{}/configmaps/{SPARE_RECORD}",
            self.namespace
        );
        let health = self.health.clone();
        tokio::spawn(async move {
            loop {
                let read = cluster.call::<Value>(Call::get(&path)).await;
                let text = match read {
                    Ok(map) => Some(
                        map["data"][RECORD_KEY]
                            .as_str()
                            .unwrap_or_default()
                            .to_owned(),
                    ),
                    Err(refused) if refused.code() == Some(404) => None,
                    Err(refused) => {
                        health.answered(&path, Some(&refused));
                        tokio::time::sleep(TRY_AGAIN).await;
                        continue;
                    }
                };
                health.answered(&path, None);
                feed.send(Event::SpareRecord(text)).await;
                return;
            }
        });
    }

    fn count(&self) {
        let (cluster, feed) = (self.cluster.clone(), self.feed.clone());
        tokio::spawn(async move {
            let path = format!("{}?limit=1", ResourceKind::CapacityRequest.path());
            let list = cluster.call::<Value>(Call::get(&path)).await;
            let count = list.ok().and_then(|list| {
                let metadata = &list["metadata"];
                let further = metadata["remainingItemCount"].as_u64().unwrap_or_default();
                let items = list["items"].as_array()?.len() as u64;
                let version = metadata["resourceVersion"].as_str()?.parse().ok()?;
                Some(Count {
                    version,
                    items: items + further,
                })
            });
            feed.send(Event::Counted(count)).await;
        });
    }

    fn read_owners(&self, id: EffectId, owners: Vec<Owner>) {
        let (cluster, feed) = (self.cluster.clone(), self.feed.clone());
        tokio::spawn(async move {
            let found = owners_found(&cluster, owners).await.ok();
            feed.send(Event::Owners(id, found)).await;
        });
    }

    fn render(&self, id: EffectId, job: Box<RenderJob>) {
        let feed = self.feed.clone();
        tokio::spawn(async move {
            let rendering = tokio::task::spawn_blocking(move || job.render());
            let rendered = match tokio::time::timeout(RENDERED_WITHIN, rendering).await {
                Ok(Ok(rendered)) => rendered.map_err(|why| why.to_string()),
                Ok(Err(_)) => Err("the template could not be rendered".to_owned()),
                Err(_) => Err("the template was not rendered within a second".to_owned()),
            };
            feed.send(Event::Rendered(id, rendered)).await;
        });
    }
}

async fn owners_found(cluster: &Cluster, owners: Vec<Owner>) -> Result<OwnersFound, Refused> {
    let crd = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.{GROUP}",
        ResourceKind::CapacityRequest.plural()
    );
    let is_crd_there = match cluster.call::<Value>(Call::get(&crd)).await {
        Ok(crd) => crd["metadata"]["deletionTimestamp"].is_null(),
        Err(refused) if refused.code() == Some(404) => false,
        Err(refused) => return Err(refused),
    };
    let mut found = Vec::new();
    for owner in owners {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            owner.key.namespace, owner.key.name
        );
        let state = match cluster.call::<Pod>(Call::get(&path)).await {
            Ok(pod) => pod.state(&owner.uid),
            Err(refused) if refused.code() == Some(404) => OwnerState::Over,
            Err(refused) => return Err(refused),
        };
        found.push((owner, state));
    }
    Ok(OwnersFound {
        owners: found,
        is_crd_there,
    })
}

/// The Pods of one Node.
#[derive(Default)]
struct NodePods {
    current: BTreeMap<bigfleet_k8s::Place, PodBrief>,
    filling: Option<BTreeMap<bigfleet_k8s::Place, PodBrief>>,
}

impl NodePods {
    /// What to tell: all of them once they are whole; `None` inside if one cannot be read.
    #[expect(
        clippy::option_option,
        reason = "nothing to say, or that nothing is known"
    )]
    fn take(&mut self, told: Followed<Pod>) -> Option<Option<Vec<PodBrief>>> {
        match told {
            Followed::Began => self.filling = Some(BTreeMap::new()),
            Followed::Seen(seen) => {
                let Ok(pod) = seen.object else {
                    return Some(None);
                };
                let pods = self.filling.as_mut().unwrap_or(&mut self.current);
                pods.insert(seen.place, pod.brief());
            }
            Followed::Gone(place, _) => {
                let pods = self.filling.as_mut().unwrap_or(&mut self.current);
                pods.remove(&place);
            }
            Followed::Whole(_) => {
                if let Some(filled) = self.filling.take() {
                    self.current = filled;
                }
            }
            Followed::Fresh(_) | Followed::Broken(_) => return None,
        }
        let is_whole = self.filling.is_none();
        is_whole.then(|| Some(self.current.values().cloned().collect()))
    }
}
