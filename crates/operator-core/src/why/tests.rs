//! What is told at each hop, word by word.

use super::*;
use crate::objects::{
    LabelRule, NodeFacts, NodeReadiness, ObjectKey, Phase, RequestFacts, RequestSpec,
    RequestStatus, Served, Stuck, StuckReason, UpcomingFacts, UpcomingNode,
};
use crate::pods::{Controller, PodBrief, PodFacts, PodPhase};
use bigfleet_model::{Amounts, Dimension, quantity::parse_demand};

/// Seconds after the Pod was made.
fn at(seconds: u64) -> Time {
    Time::from_nanos(1_000_000_000_000) + Duration::from_secs(seconds)
}

fn amounts(cpu: &str) -> Amounts {
    Amounts::from_entries([(Dimension::new("cpu").unwrap(), parse_demand(cpu).unwrap())])
}

fn pod() -> WaitingPod {
    WaitingPod {
        facts: PodFacts {
            brief: PodBrief {
                key: ObjectKey::namespaced("shop", "web"),
                uid: "u".to_owned(),
                phase: PodPhase::Pending,
                annotations: Default::default(),
                controller: None,
                is_terminating: false,
            },
            labels: Default::default(),
            node_name: String::new(),
            is_gated: false,
            is_nominated: false,
            unschedulable: Some((
                at(1),
                "0/3 nodes are available: 3 Insufficient cpu.".to_owned(),
            )),
            containers: Vec::new(),
            init_containers: Vec::new(),
            pod_requests: Default::default(),
            overhead: Default::default(),
            node_selector: Default::default(),
            node_terms: None,
            volume_zones: Vec::new(),
            priority: 0,
            priority_class: String::new(),
            affinity: Vec::new(),
            anti_affinity: Vec::new(),
            spread: Vec::new(),
        },
        created: at(0),
        gates: Vec::new(),
        scheduler: "default-scheduler".to_owned(),
        scheduled_at: None,
        nominated: String::new(),
        ready_at: None,
        container: None,
        warning: None,
        ended_because: String::new(),
    }
}

fn request() -> RequestFacts {
    RequestFacts {
        key: ObjectKey::namespaced("shop", "cr-pod-u"),
        uid: "r".to_owned(),
        generation: 1,
        created: at(2),
        owner: None,
        spec: RequestSpec {
            requirements: vec![LabelRule {
                key: "disk".to_owned(),
                operator: "In".to_owned(),
                values: vec!["nvme".to_owned()],
            }],
            resources: [("cpu".to_owned(), "2".to_owned())].into(),
            ..RequestSpec::default()
        },
        status: Some(RequestStatus {
            acknowledged_at: Some(at(4)),
            ..RequestStatus::default()
        }),
    }
}

fn lease(renewed: u64) -> Result<Vec<LeaseSeen>, NotRead> {
    Ok(vec![LeaseSeen {
        namespace: "bigfleet".to_owned(),
        renewed: Some(at(renewed)),
        is_held: true,
    }])
}

fn upcoming(name: &str, cpu: &str, phase: Phase, readiness: NodeReadiness) -> UpcomingFacts {
    UpcomingFacts {
        name: format!("un-{name}"),
        machine: Some(name.to_owned()),
        content: UpcomingNode {
            labels: [("disk".to_owned(), "nvme".to_owned())].into(),
            resources: amounts(cpu),
            taints: Vec::new(),
            phase,
            node_name: String::new(),
            provider_id: String::new(),
            started: Some(at(10)),
            last_error: String::new(),
            readiness: Some(readiness),
        },
    }
}

fn node(is_ready: bool) -> NodeFacts {
    NodeFacts {
        name: "node-7".to_owned(),
        uid: "n".to_owned(),
        version: String::new(),
        created: at(20),
        labels: Default::default(),
        provider_id: String::new(),
        is_ready,
        ready_since: at(30),
        is_cordoned: false,
        allocatable: amounts("3"),
        drain: None,
        disruption: None,
        empty_since: None,
        removable_since: None,
    }
}

/// Two minutes after the Pod was made, with everything running and nothing on its way.
fn facts() -> WhyFacts {
    WhyFacts {
        now: at(120),
        pod: pod(),
        request: Ok(Some(request())),
        upcoming: Ok(Vec::new()),
        available: Ok(Vec::new()),
        node: Ok(None),
        operators: lease(119),
        pod_controllers: lease(119),
        shard: None,
    }
}

fn served(reason: &str, message: &str) -> WhyFacts {
    let mut request = request();
    let status = request.status.as_mut().unwrap();
    status.served = Some(Served {
        is_served: false,
        reason: reason.to_owned(),
        message: message.to_owned(),
    });
    WhyFacts {
        request: Ok(Some(request)),
        ..facts()
    }
}

fn text(facts: &WhyFacts) -> String {
    let told = account(facts);
    let place = told
        .waits_at
        .map_or(String::new(), |hop| format!(" at {}", hop.word()));
    let mut text = format!("{}{place}: {}\n", told.verdict.word(), told.sentence);
    for hop in &told.hops {
        let since = hop.since.map_or(String::new(), |since| {
            format!(" {}s", since.duration_since(at(0)).as_secs())
        });
        let object = match hop.object.as_str() {
            "" => String::new(),
            object => format!(" {object}"),
        };
        let (name, state) = (hop.name.word(), hop.state.word());
        text +=
            format!("{name} {state}{object}{since}: {}", hop.sentence).trim_end_matches([':', ' ']);
        text += "\n";
    }
    for change in &told.changes {
        text += &format!("- {change}\n");
    }
    text
}

/// The first line: how it is, where it waits, and why.
fn first(facts: &WhyFacts) -> String {
    text(facts).lines().next().unwrap().to_owned()
}

fn check(facts: &WhyFacts, expected: &str) {
    let expected: String = expected
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    assert_eq!(text(facts), expected);
}

const POD: &str = "pod done pod/web 0s: the scheduler finds no Node for it: 0/3 nodes are available: 3 Insufficient cpu.";
const REQUEST: &str =
    "request done capacityrequest/cr-pod-u 2s: it asks for 2 cpu; disk=nvme; priority 0";

#[test]
fn a_pod_that_nobody_may_schedule_waits_at_itself() {
    let mut gated = facts();
    gated.pod.gates = vec!["example.com/quota".to_owned()];
    check(
        &gated,
        "stuck at pod: it is held back by example.com/quota: nobody looks for a Node before that is gone
         pod here pod/web 0s: it has scheduling gates
         request later
         need later
         machine later
         node later
         - whoever set it takes example.com/quota out of the Pod's spec.schedulingGates",
    );
    let mut unseen = facts();
    unseen.pod.facts.unschedulable = None;
    assert_eq!(
        first(&unseen),
        "stuck at pod: default-scheduler has not looked for a Node for it yet"
    );
    unseen.now = at(20);
    assert!(first(&unseen).starts_with("coming at pod"));
    let mut nominated = facts();
    nominated.pod.nominated = "node-7".to_owned();
    assert_eq!(
        first(&nominated),
        "coming at pod: the scheduler makes room for it on Node node-7: Pods of lower priority have to go first"
    );
}

#[test]
fn a_pod_that_needs_no_machine_is_said_to_need_none() {
    let mut daemon = facts();
    daemon.pod.facts.brief.controller = Some(Controller {
        group: "apps".to_owned(),
        kind: "DaemonSet".to_owned(),
    });
    assert_eq!(
        first(&daemon),
        "not-managed at pod: it is a Pod of a DaemonSet, which belongs to a Node that is there already; BigFleet brings no \
         machine for it; the scheduler finds no Node for it: 0/3 nodes are available: 3 Insufficient cpu."
    );
    let annotated = |key: &str, value: &str| {
        let mut facts = facts();
        let annotations = &mut facts.pod.facts.brief.annotations;
        annotations.insert(key.to_owned(), value.to_owned());
        first(&facts)
    };
    assert!(annotated("kubernetes.io/config.mirror", "x").contains("a static Pod of a kubelet"));
    assert!(annotated("bigfleet.lucy.sh/ignore", "true").contains("keeps BigFleet from it"));
    assert!(annotated("bigfleet.lucy.sh/ignore", "false").starts_with("stuck at machine"));
    let ended = |phase| {
        let mut facts = facts();
        facts.pod.facts.brief.phase = phase;
        facts.pod.ended_because = "Evicted".to_owned();
        first(&facts)
    };
    assert_eq!(ended(PodPhase::Succeeded), "over: it has ended, and well");
    assert_eq!(
        ended(PodPhase::Failed),
        "over: it has ended, and failed: Evicted"
    );
    let mut leaving = facts();
    leaving.pod.facts.brief.is_terminating = true;
    check(
        &leaving,
        "over: it is being deleted
         pod done pod/web 0s
         request not needed
         need not needed
         machine not needed
         node not needed",
    );
}

#[test]
fn a_pod_without_a_request_waits_for_one() {
    let without = |now, pod_controllers| WhyFacts {
        now: at(now),
        request: Ok(None),
        pod_controllers,
        ..facts()
    };
    check(
        &without(120, lease(40)),
        &format!(
            "stuck at request: BigFleet does not know of it: it has no CapacityRequest, and no pod controller, which makes them, \
             has renewed its lease lately
             {POD}
             request here 0s: there is none
             need later
             machine later
             node later
             - whoever runs BigFleet starts `bigfleet pod-controller` for this cluster"
        ),
    );
    assert!(first(&without(120, lease(119))).ends_with("though a pod controller runs"));
    let unread = Err(NotRead::Forbidden("leases is forbidden".to_owned()));
    for unseen in [unread, Ok(Vec::new())] {
        assert!(first(&without(120, unseen)).ends_with("runs cannot be seen"));
    }
    assert!(first(&without(10, lease(9))).starts_with("coming at request"));
}

/// What was not read is unknown, never absent.
#[test]
fn what_could_not_be_read_is_said() {
    let with = |request| WhyFacts { request, ..facts() };
    assert_eq!(
        first(&with(Err(NotRead::NotServed))),
        "stuck at request: BigFleet is not installed in this cluster: it does not know CapacityRequests"
    );
    let forbidden = || NotRead::Forbidden("no such right".to_owned());
    check(
        &with(Err(forbidden())),
        &format!(
            "unknown at request: how far it is cannot be told: you may not read it: no such right
             {POD}
             request unknown: you may not read it: no such right
             need later
             machine later
             node later
             - get, list on capacityrequests.bigfleet.lucy.sh in its namespace let you see it"
        ),
    );
    let unseen = WhyFacts {
        upcoming: Err(forbidden()),
        ..facts()
    };
    assert_eq!(
        first(&unseen),
        "unknown at machine: whether a machine is on its way to it cannot be told: you may not read it: no such right"
    );
    let mut runs = unseen;
    runs.pod.facts.node_name = "node-7".to_owned();
    runs.pod.facts.brief.phase = PodPhase::Running;
    assert!(text(&runs).contains("machine unknown: you may not read it"));
    assert!(first(&runs).starts_with("runs: "));
}

#[test]
fn a_request_nobody_told_the_shard_of_waits_for_the_operator() {
    let mut untold = facts();
    untold.request = Ok(Some(RequestFacts {
        status: None,
        ..request()
    }));
    check(
        &untold,
        &format!(
            "stuck at need: the shard was not told of it: the operator does not run, has no session with the shard, or holds demand back
             {POD}
             {REQUEST}
             need here 2s: the shard was not told yet
             machine later: none that could hold it is on its way
             node later
             - whoever runs BigFleet looks at /readyz and the log of `bigfleet operator`"
        ),
    );
    untold.operators = lease(10);
    assert_eq!(
        first(&untold),
        "stuck at need: nobody tells the shard: no operator has renewed its lease lately"
    );
    (untold.now, untold.operators) = (at(5), lease(4));
    assert!(first(&untold).starts_with("coming at need"));
}

#[test]
fn a_need_that_is_short_says_why_and_what_would_change_it() {
    let short = served("NoMatchingSupply", "no machine offered has disk=nvme");
    check(
        &short,
        &format!(
            "stuck at need: no machine offered has disk=nvme
             {POD}
             {REQUEST}
             need here 4s: no machine offered has disk=nvme
             machine later: none that could hold it is on its way
             node later
             - smaller requests or other labels (nodeSelector, affinity) that some machine offers; or whoever runs BigFleet adds \
             such machines
             - `--shard HOST:PORT` asks the shard too, and says what it tried"
        ),
    );
    for word in [
        "PriorityStarved",
        "PreemptionExhausted",
        "TopologyUnsatisfiable",
        "SpreadUnsatisfiable",
        "ProviderBackoff",
        "ActuationPaused",
        "Stuck",
        "Unplaceable",
    ] {
        let told = account(&served(word, "because"));
        let place = (told.verdict, told.waits_at);
        assert_eq!(place, (Verdict::Stuck, Some(HopName::Need)), "{word}");
        assert!(!told.changes[0].starts_with("`--shard"), "{word}");
    }
    let unplaceable = served("Unplaceable", "another Node did not help this Pod (sum 12)");
    assert!(
        !text(&unplaceable).contains("sum"),
        "a number for the operator"
    );
}

#[test]
fn a_shard_that_was_asked_says_what_it_tried() {
    let need = NeedSaid {
        cluster: "prod".to_owned(),
        name: "k7".to_owned(),
        summary: "2 cpu missing".to_owned(),
        causes: vec!["all 12 nvme machines serve others".to_owned()],
        changes: vec!["served: with one more machine".to_owned()],
        ..NeedSaid::default()
    };
    let with = |need: Option<NeedSaid>| WhyFacts {
        shard: Some(ShardSaid {
            need,
            machine: None,
        }),
        ..facts()
    };
    check(
        &with(Some(need.clone())),
        &format!(
            "stuck at need: all 12 nvme machines serve others
             {POD}
             {REQUEST}
             need here need/prod/k7 4s: all 12 nvme machines serve others
             machine later: none that could hold it is on its way
             node later
             - served: with one more machine"
        ),
    );
    assert_eq!(
        first(&with(None)),
        "stuck at need: the shard that was asked has no Need like it"
    );
    let coming = NeedSaid {
        is_coming: true,
        ..need
    };
    assert!(text(&with(Some(coming))).contains("need done need/prod/k7 4s: 2 cpu missing"));
}

#[test]
fn a_machine_on_its_way_is_named_and_promised_to_nobody() {
    let with = |machines: Vec<UpcomingFacts>| WhyFacts {
        upcoming: Ok(machines),
        ..facts()
    };
    let made = upcoming("m-1", "4", Phase::Provisioning, NodeReadiness::NoNode);
    check(
        &with(vec![made.clone()]),
        &format!(
            "coming at machine: a machine that could hold it is being made
             {POD}
             {REQUEST}
             need done 4s: the shard has it
             machine here upcomingnode/un-m-1 10s: is being made
             node later"
        ),
    );
    let joining = upcoming("m-2", "4", Phase::Registered, NodeReadiness::NoNode);
    let small = upcoming("m-3", "1", Phase::Ready, NodeReadiness::Ready);
    let three = with(vec![small.clone(), made.clone(), joining]);
    assert_eq!(
        machine_to_ask(&three).as_deref(),
        Some("m-2"),
        "the furthest"
    );
    assert!(text(&three).contains(
        "machine here upcomingnode/un-m-2 10s: 2 machines that could hold it are on their way; the one that is furthest is \
         joining the cluster"
    ));
    assert!(
        first(&with(vec![small])).starts_with("stuck at machine: no machine that could hold it"),
        "too small to count"
    );
    let mut failed = upcoming("m-4", "4", Phase::Failed, NodeReadiness::NoNode);
    failed.content.last_error = "no quota".to_owned();
    assert_eq!(
        first(&with(vec![failed])),
        "stuck at machine: a machine for it failed: no quota"
    );
    let silent = upcoming("m-5", "4", Phase::Ready, NodeReadiness::NotReady);
    assert!(first(&with(vec![silent])).ends_with("has joined, and its Node is not Ready"));
    let new = WhyFacts {
        now: at(30),
        ..facts()
    };
    assert!(first(&new).starts_with("coming at machine: the shard has heard of it"));
    // A shortage goes before machines that come for others; it is said all the same.
    let mut short = served("PriorityStarved", "others come first");
    short.upcoming = Ok(vec![made]);
    assert!(text(&short).contains("machine later upcomingnode/un-m-1 10s: is being made"));
    assert_eq!(first(&short), "stuck at need: others come first");
}

#[test]
fn a_pod_beside_a_node_that_could_hold_it_waits_for_the_scheduler() {
    let mut ready = upcoming("m-1", "4", Phase::Ready, NodeReadiness::Ready);
    ready.content.node_name = "node-7".to_owned();
    let mut beside = facts();
    beside.upcoming = Ok(vec![ready]);
    assert_eq!(node_to_read(&beside).as_deref(), Some("node-7"));
    beside.node = Ok(Some(node(true)));
    let stuck = |facts: &mut WhyFacts, reason| {
        let Ok(Some(request)) = &mut facts.request else {
            unreachable!("it has one")
        };
        let status = request.status.as_mut().unwrap();
        status.stuck = Some(Stuck {
            since: at(31),
            reason,
        });
    };
    stuck(&mut beside, StuckReason::Insufficient);
    check(
        &beside,
        &format!(
            "coming at node: Node node-7 could hold it by labels and size, and the scheduler finds no Node for it: 0/3 nodes are \
             available: 3 Insufficient cpu.
             {POD}
             {REQUEST}
             need done 4s: the shard has it
             machine done upcomingnode/un-m-1 10s: it serves
             node here node/node-7 30s: it is Ready
             - time: BigFleet asks for one machine more for Pods that stay without room"
        ),
    );
    stuck(&mut beside, StuckReason::Other);
    assert!(first(&beside).starts_with("stuck at node"));
}

#[test]
fn a_pod_that_has_its_node_runs_or_says_what_it_waits_for() {
    let mut bound = facts();
    bound.pod.facts.node_name = "node-7".to_owned();
    bound.pod.facts.unschedulable = None;
    bound.pod.scheduled_at = Some(at(40));
    bound.node = Ok(Some(node(true)));
    check(
        &bound,
        "coming at node: it has its Node node-7, which starts its containers
         pod done pod/web 40s: it has its Node
         request done capacityrequest/cr-pod-u 2s: it asks for 2 cpu; disk=nvme; priority 0
         need done 4s: the shard has it
         machine not needed: its Node is none that BigFleet brought
         node here node/node-7 40s: its containers are being started",
    );
    bound.pod.container = Some(("ImagePullBackOff".to_owned(), "no such image".to_owned()));
    assert_eq!(
        first(&bound),
        "stuck at node: it has its Node node-7, and a container does not start: ImagePullBackOff (no such image)"
    );
    bound.pod.container = Some(("ContainerCreating".to_owned(), String::new()));
    bound.pod.warning = Some(("FailedMount".to_owned(), "no such volume".to_owned()));
    assert_eq!(
        first(&bound),
        "coming at node: it has its Node node-7, which starts its containers; its Node says FailedMount (no such volume)"
    );
    bound.now = at(40 + 600);
    assert!(first(&bound).starts_with("stuck at node"));
    bound.pod.warning = None;
    assert!(first(&bound).starts_with("coming at node"));
    bound.node = Ok(Some(node(false)));
    assert_eq!(first(&bound), "stuck at node: its Node node-7 is not Ready");
    bound.node = Ok(None);
    assert_eq!(first(&bound), "stuck at node: its Node node-7 is gone");
    bound.pod.facts.brief.phase = PodPhase::Running;
    assert_eq!(
        first(&bound),
        "runs: it runs on Node node-7 and is not Ready: ContainerCreating"
    );
    (bound.pod.container, bound.pod.ready_at) = (None, Some(at(50)));
    assert_eq!(first(&bound), "runs: it runs on Node node-7");
    bound.request = Ok(None);
    assert!(text(&bound).contains("request not needed: it has none"));
}

#[test]
fn a_need_is_named_as_the_operator_names_it() {
    let mut spec = request().spec;
    let name = need_name("shop", &spec);
    assert_eq!(name.fingerprint, "p=0|ipb=1|rpb=1|reqs=disk:1:nvme;|spr=");
    assert_eq!(name.groups, [""], "class 0 has no group");
    spec.resources.insert("cpu".to_owned(), "32".to_owned());
    assert_eq!(need_name("shop", &spec).groups, ["unit:4", ""]);
}
