//! Why: everything a cluster shows of one Pod on its way to a Node, read once.
//!
//! ```text
//! Pod ─▶ its request · UpcomingNodes · AvailableCapacities · leases, side by side ─▶ the Node that matters ─▶ WhyFacts
//! ```
//!
//! Nothing is written and nothing is watched. Whoever asks is a developer with their own rights: what they may not read is
//! told as such. Lists are read in pages, and no more of them than a person would wait for.

use crate::read::{
    Metadata, moment, node::Node, pod::Pod, request::POD_LABEL, request::Request,
    upcoming::Available, upcoming::Upcoming,
};
use bigfleet_k8s::{Call, Cluster, Condition, Refused, ResourceKind};
use bigfleet_model::Time;
use bigfleet_operator_core::{
    LeaseSeen, NotRead, ObjectKey, RequestFacts, WaitingPod, WhyFacts, node_to_read, request_name,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The leases our processes take unless they are told otherwise.
const OPERATOR_LEASE: &str = "bigfleet-operator";
const POD_CONTROLLER_LEASE: &str = "bigfleet-pod-controller";
const PAGE: usize = 500;
/// Pages of a list: ten thousand objects.
const MOST_PAGES: usize = 20;
/// Namespaces that are named when a Pod is not where it was looked for.
const MOST_NAMESPACES: usize = 10;

/// Why nothing can be told of a Pod.
#[derive(Debug, thiserror::Error)]
pub enum PodNotRead {
    /// There is none.
    #[error("there is no Pod \"{name}\" in namespace \"{namespace}\"{}", elsewhere(.others))]
    Missing {
        /// Its name.
        name: String,
        /// Where it was looked for.
        namespace: String,
        /// Other namespaces that have a Pod of this name.
        others: Vec<String>,
    },
    /// It may not be read.
    #[error(
        "you may not read Pods in namespace \"{namespace}\": {why}; name another with --namespace or --context"
    )]
    Forbidden {
        /// Where.
        namespace: String,
        /// In the words of the API server.
        why: String,
    },
    /// The API server does not know who is asking.
    #[error(
        "{server} does not accept your credentials: {why}; sign in again, or name another with --context"
    )]
    Unknown {
        /// The API server.
        server: String,
        /// In its words.
        why: String,
    },
    /// Anything else.
    #[error("{server}: {why}")]
    Failed {
        /// The API server.
        server: String,
        /// What went wrong.
        why: Refused,
    },
}

fn elsewhere(others: &[String]) -> String {
    match others {
        [] => "; `kubectl get pods -A` shows all there are".to_owned(),
        [one] => format!("; there is one in namespace {one}: -n {one}"),
        several => format!("; there are some in namespaces {}", several.join(", ")),
    }
}

/// Reads what there is of a Pod; an empty namespace is that of the kubeconfig.
pub async fn read_why(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<WhyFacts, PodNotRead> {
    let namespace = match namespace {
        "" => cluster.namespace(),
        named => named,
    };
    let mut pod = waiting_pod(cluster, namespace, name).await?;
    pod.warning = warning(cluster, &pod).await;
    let [upcoming, available] =
        [ResourceKind::UpcomingNode, ResourceKind::AvailableCapacity].map(ResourceKind::path);
    let (now, request, upcoming, available, operators, pod_controllers) = tokio::join!(
        cluster.time(),
        request(cluster, &pod),
        list(cluster, &upcoming, Upcoming::facts),
        list(cluster, &available, Available::facts),
        leases(cluster, OPERATOR_LEASE),
        leases(cluster, POD_CONTROLLER_LEASE),
    );
    let mut facts = WhyFacts {
        // Who may not ask for the time there has their own.
        now: Time::from_nanos(now.unwrap_or_else(|_| crate::notes::wall_clock_nanos())),
        pod,
        request,
        upcoming,
        available,
        node: Ok(None),
        operators,
        pod_controllers,
        shard: None,
    };
    if let Some(name) = node_to_read(&facts) {
        let read = cluster
            .call(Call::get(&format!("/api/v1/nodes/{name}")))
            .await;
        facts.node = there_or_not(read).map(|node| node.map(Node::facts));
    }
    Ok(facts)
}

/// What a Pod says of itself that only people look at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodForPeople {
    spec: SpecForPeople,
    status: StatusForPeople,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecForPeople {
    scheduler_name: String,
    scheduling_gates: Vec<GateName>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct GateName {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusForPeople {
    reason: String,
    message: String,
    nominated_node_name: String,
    conditions: Vec<Condition>,
    init_container_statuses: Vec<ContainerForPeople>,
    container_statuses: Vec<ContainerForPeople>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerForPeople {
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

impl PodForPeople {
    /// Since when a condition holds.
    fn since(&self, kind: &str) -> Option<Time> {
        let holds = |it: &&Condition| it.kind == kind && it.status == "True";
        let condition = self.status.conditions.iter().find(holds)?;
        moment(condition.last_transition_time.as_deref())
    }

    /// What the first container that waits waits for; init containers come first.
    fn container(&self) -> Option<(String, String)> {
        let status = &self.status;
        let mut all = status
            .init_container_statuses
            .iter()
            .chain(&status.container_statuses);
        let waiting = all.find_map(|container| container.state.waiting.clone())?;
        Some((waiting.reason, waiting.message))
    }
}

async fn waiting_pod(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<WaitingPod, PodNotRead> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let bytes = match cluster.bytes(Call::get(&path)).await {
        Ok(bytes) => bytes,
        Err(why) => return Err(no_pod(cluster, namespace, name, why).await),
    };
    let unreadable = |why: serde_json::Error| PodNotRead::Failed {
        server: cluster.server().to_owned(),
        why: Refused::Unreadable(why.to_string()),
    };
    let pod: Pod = serde_json::from_slice(&bytes).map_err(unreadable)?;
    let more: PodForPeople = serde_json::from_slice(&bytes).map_err(unreadable)?;
    let ended = [&more.status.reason, &more.status.message].map(String::as_str);
    let ended: Vec<&str> = ended.into_iter().filter(|text| !text.is_empty()).collect();
    Ok(WaitingPod {
        created: pod.metadata.created(),
        facts: pod.facts(Vec::new()),
        gates: more
            .spec
            .scheduling_gates
            .iter()
            .map(|gate| gate.name.clone())
            .collect(),
        scheduler: more.spec.scheduler_name.clone(),
        scheduled_at: more.since("PodScheduled"),
        nominated: more.status.nominated_node_name.clone(),
        ready_at: more.since("Ready"),
        container: more.container(),
        warning: None,
        ended_because: ended.join(": "),
    })
}

async fn no_pod(cluster: &Cluster, namespace: &str, name: &str, why: Refused) -> PodNotRead {
    let server = cluster.server().to_owned();
    let namespace = namespace.to_owned();
    let said = match &why {
        Refused::Said(said) => said.message.clone(),
        Refused::Unreachable(_) | Refused::Unreadable(_) => String::new(),
    };
    match why.code() {
        Some(404) => PodNotRead::Missing {
            name: name.to_owned(),
            namespace,
            others: others(cluster, name).await,
        },
        Some(403) => PodNotRead::Forbidden {
            namespace,
            why: said,
        },
        Some(401) => PodNotRead::Unknown { server, why: said },
        _ => PodNotRead::Failed { server, why },
    }
}

/// Namespaces that have a Pod of this name; none where that may not be asked.
async fn others(cluster: &Cluster, name: &str) -> Vec<String> {
    let path = format!("/api/v1/pods?fieldSelector=metadata.name%3D{name}&limit={MOST_NAMESPACES}");
    let list: Result<List<OnlyMetadata>, _> = cluster.call(Call::get(&path)).await;
    let items = list.map_or_else(|_| Vec::new(), |list| list.items);
    items
        .into_iter()
        .map(|item| item.metadata.namespace)
        .collect()
}

#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    more: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OnlyMetadata {
    metadata: Metadata,
}

/// Why something was not read.
fn not_read(why: Refused) -> NotRead {
    match why {
        Refused::Said(said) if said.code == 404 => NotRead::NotServed,
        Refused::Said(said) if said.code == 403 => NotRead::Forbidden(said.message),
        other => NotRead::Failed(other.to_string()),
    }
}

fn there_or_not<T>(read: Result<T, Refused>) -> Result<Option<T>, NotRead> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(why) if why.code() == Some(404) => Ok(None),
        Err(why) => Err(not_read(why)),
    }
}

/// All objects of a kind; one that cannot be read hides no other.
async fn list<T: DeserializeOwned, F>(
    cluster: &Cluster,
    path: &str,
    facts: impl Fn(T) -> F,
) -> Result<Vec<F>, NotRead> {
    let mut found = Vec::new();
    let mut more = String::new();
    for _ in 0..MOST_PAGES {
        let mark = if path.contains('?') { '&' } else { '?' };
        let next = match more.as_str() {
            "" => String::new(),
            token => format!("&continue={token}"),
        };
        let page = Call::get(&format!("{path}{mark}limit={PAGE}{next}"));
        let page: List<serde_json::Value> = cluster.call(page).await.map_err(not_read)?;
        let read = |item| serde_json::from_value::<T>(item).ok();
        found.extend(page.items.into_iter().filter_map(read).map(&facts));
        more = page.metadata.more;
        if more.is_empty() {
            return Ok(found);
        }
    }
    Ok(found)
}

/// The request of a Pod: by its usual name, by its label, or by its owner, as other producers make them.
async fn request(cluster: &Cluster, pod: &WaitingPod) -> Result<Option<RequestFacts>, NotRead> {
    let ObjectKey { namespace, .. } = &pod.facts.brief.key;
    let uid = &pod.facts.brief.uid;
    let folder = ResourceKind::CapacityRequest.path_in(namespace);
    let path = format!("{folder}/{}", request_name(&pod.facts));
    if let Ok(Some(found)) = there_or_not(cluster.call::<Request>(Call::get(&path)).await) {
        return Ok(Some(found.facts()));
    }
    let labelled = format!("{folder}?labelSelector={POD_LABEL}%3D{uid}");
    // Where the kind is not known or may not be read, this says so.
    let by_label = list(cluster, &labelled, Request::facts).await?;
    if let Some(found) = by_label.into_iter().next() {
        return Ok(Some(found));
    }
    let all = list(cluster, &folder, Request::facts).await?;
    let is_its = |request: &RequestFacts| {
        let owner = request.owner.as_ref();
        owner.is_some_and(|owner| owner.uid == *uid)
    };
    Ok(all.into_iter().find(is_its))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodEvent {
    metadata: Metadata,
    reason: String,
    message: String,
    last_timestamp: Option<String>,
    event_time: Option<String>,
}

impl PodEvent {
    fn at(&self) -> Time {
        let said = [&self.last_timestamp, &self.event_time];
        let mut said = said.into_iter().filter_map(|at| moment(at.as_deref()));
        said.next().unwrap_or_else(|| self.metadata.created())
    }
}

/// The newest Warning about a Pod that has its Node; whoever may not read Events does without.
async fn warning(cluster: &Cluster, pod: &WaitingPod) -> Option<(String, String)> {
    if pod.facts.node_name.is_empty() {
        return None; // what the scheduler says is a condition of the Pod
    }
    let (namespace, uid) = (&pod.facts.brief.key.namespace, &pod.facts.brief.uid);
    let path = format!(
        "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid%3D{uid}%2Ctype%3DWarning"
    );
    let events = list(cluster, &path, |event: PodEvent| event).await.ok()?;
    let newest = events.into_iter().max_by_key(PodEvent::at)?;
    Some((newest.reason, newest.message))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Metadata,
    spec: LeaseSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LeaseSpec {
    holder_identity: String,
    renew_time: Option<String>,
}

/// All leases of this name: nobody else knows in which namespace a process has its own.
async fn leases(cluster: &Cluster, name: &str) -> Result<Vec<LeaseSeen>, NotRead> {
    let path = format!("/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{name}");
    let seen = |lease: Lease| LeaseSeen {
        namespace: lease.metadata.namespace,
        renewed: moment(lease.spec.renew_time.as_deref()),
        is_held: !lease.spec.holder_identity.is_empty(),
    };
    list(cluster, &path, seen).await
}

/// The names of the Pods of a namespace, for who is typing one; an empty namespace is that of the kubeconfig.
pub async fn pod_names(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let namespace = match namespace {
        "" => cluster.namespace(),
        named => named,
    };
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let name = |pod: OnlyMetadata| pod.metadata.name;
    list(cluster, &path, name).await.unwrap_or_default()
}
