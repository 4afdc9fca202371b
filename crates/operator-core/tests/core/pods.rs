//! The pod controller: a request is a function of its Pod.

use crate::support::{at, pod};
use bigfleet_model::Time;
use bigfleet_operator_core::{
    ContainerFacts, LabelRule, LabelSelector, ObjectKey, PeerTerm, PodConfig, PodController,
    PodEffect, PodEvent, PodFacts, Served, ShownNode, ShownRequest, StuckReason, disruption_of,
    request_of, stuck_of,
};
use std::collections::BTreeMap;

fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    entries.iter().map(own).collect()
}

fn container(cpu: &str, is_sidecar: bool) -> ContainerFacts {
    ContainerFacts {
        requests: texts(&[("cpu", cpu)]),
        is_sidecar,
    }
}

fn facts(name: &str) -> PodFacts {
    PodFacts {
        brief: pod(name),
        labels: texts(&[("app", "x")]),
        node_name: String::new(),
        is_gated: false,
        is_nominated: false,
        unschedulable: None,
        containers: vec![container("1", false)],
        init_containers: Vec::new(),
        pod_requests: BTreeMap::new(),
        overhead: BTreeMap::new(),
        node_selector: BTreeMap::new(),
        node_terms: None,
        volume_zones: Vec::new(),
        priority: 7,
        priority_class: String::new(),
        affinity: Vec::new(),
        anti_affinity: Vec::new(),
        spread: Vec::new(),
    }
}

fn rule(key: &str, operator: &str, values: &[&str]) -> LabelRule {
    LabelRule {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

fn spec(pod: &PodFacts) -> bigfleet_operator_core::RequestSpec {
    request_of(pod, &PodConfig::default(), false).unwrap()
}

/// OP-48.
#[test]
fn pods_that_somebody_else_provides_for_get_no_request() {
    let config = PodConfig {
        ignored_namespaces: ["kube-system".to_owned()].into(),
        ..PodConfig::default()
    };
    let none = |change: &dyn Fn(&mut PodFacts)| {
        let mut pod = facts("p");
        change(&mut pod);
        request_of(&pod, &config, false).is_none()
    };
    assert!(!none(&|_| {}));
    assert!(none(&|pod| pod.is_gated = true));
    assert!(none(
        &|pod| pod.brief.phase = bigfleet_operator_core::PodPhase::Failed
    ));
    assert!(none(
        &|pod| pod.brief.annotations = texts(&[("kubernetes.io/config.mirror", "")])
    ));
    assert!(none(
        &|pod| pod.brief.annotations = texts(&[("bigfleet.lucy.sh/ignore", "true")])
    ));
    assert!(none(
        &|pod| pod.brief.key.namespace = "kube-system".to_owned()
    ));
    assert!(request_of(&facts("p"), &config, true).is_none());
}

/// OP-49.
#[test]
fn a_pod_asks_for_the_greater_of_start_and_run_and_its_overhead() {
    let cpu = |change: &dyn Fn(&mut PodFacts)| {
        let mut pod = facts("p");
        change(&mut pod);
        spec(&pod).resources["cpu"].clone()
    };
    assert_eq!(cpu(&|_| {}), "1");
    assert_eq!(
        cpu(&|pod| pod.init_containers = vec![container("4", false)]),
        "4"
    );
    assert_eq!(
        cpu(&|pod| pod.init_containers = vec![container("2", true), container("1500m", false)]),
        "3500m"
    );
    assert_eq!(
        cpu(&|pod| pod.init_containers = vec![container("3", false), container("2", true)]),
        "3"
    );
    assert_eq!(
        cpu(&|pod| pod.overhead = texts(&[("cpu", "250m")])),
        "1250m"
    );
    assert_eq!(
        cpu(&|pod| pod.pod_requests = texts(&[("cpu", "500m")])),
        "500m"
    );
    let mut pod = facts("p");
    pod.containers[0]
        .requests
        .insert("ephemeral-storage".to_owned(), "1Gi".to_owned());
    assert_eq!(spec(&pod).resources.len(), 1, "no machine states it");
}

/// OP-50.
#[test]
fn affinity_becomes_what_every_node_that_may_have_the_pod_is_like() {
    let rules = |terms: &[Vec<LabelRule>]| {
        let mut pod = facts("p");
        pod.node_terms = Some(terms.to_vec());
        spec(&pod).requirements
    };
    let zone = |value: &str| rule("zone", "In", &[value]);
    assert_eq!(
        rules(&[vec![zone("a")], vec![zone("b")]]),
        [rule("zone", "In", &["a", "b"])]
    );
    let arm = rule("arch", "In", &["arm"]);
    let both = rules(&[vec![arm.clone(), zone("a")], vec![zone("b"), arm.clone()]]);
    assert_eq!(both, [arm.clone(), rule("zone", "In", &["a", "b"])]);
    assert_eq!(
        rules(&[vec![arm.clone(), zone("a")], vec![arm.clone()]]),
        [arm]
    );
    assert_eq!(
        rules(&[vec![rule("n", "Gt", &["4"])]]),
        [rule("n", "Exists", &[])]
    );
    assert_eq!(rules(&[]), []);
    assert_eq!(
        spec(&facts("p")).requirements,
        [rule("node.kubernetes.io/instance-type", "Exists", &[])]
    );
    let mut bound = facts("p");
    bound.volume_zones = vec!["b".to_owned(), "b".to_owned()];
    assert_eq!(
        spec(&bound).requirements,
        [rule("topology.kubernetes.io/zone", "In", &["b"])]
    );
}

#[test]
fn only_anti_affinity_to_its_own_kind_is_asked_for() {
    let term = |app: &str| PeerTerm {
        topology_key: "kubernetes.io/hostname".to_owned(),
        selector: Some(LabelSelector {
            match_labels: texts(&[("app", app)]),
            ..LabelSelector::default()
        }),
    };
    let mut pod = facts("p");
    pod.anti_affinity = vec![term("x"), term("other")];
    assert_eq!(spec(&pod).anti_affinity, [term("x")]);
}

/// OP-60.
#[test]
fn the_schedulers_message_says_what_would_help() {
    let reason = |message: &str| {
        let mut pod = facts("p");
        pod.unschedulable = Some((at(10), message.to_owned()));
        assert_eq!(stuck_of(&pod, at(39)), Err(Some(at(40))));
        stuck_of(&pod, at(40)).unwrap().reason
    };
    assert_eq!(
        reason("0/3 nodes are available: 3 Insufficient cpu, 1 Too many pods."),
        StuckReason::Insufficient
    );
    assert_eq!(
        reason("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."),
        StuckReason::Alone
    );
    assert_eq!(
        reason("0/3 nodes are available: 3 node(s) had untolerated taint."),
        StuckReason::Other
    );
    let mut nominated = facts("p");
    nominated.unschedulable = Some((at(10), "Insufficient cpu".to_owned()));
    nominated.is_nominated = true;
    assert_eq!(stuck_of(&nominated, at(100)), Err(None));
    let pods = |count: usize| (0..count).map(|n| pod(&n.to_string())).collect::<Vec<_>>();
    let words = [0, 1, 2, 3, 4, 200].map(|count| disruption_of(pods(count).iter()));
    assert_eq!(words, [0, 1, 2, 2, 3, 8]);
    let mut precious = pod("p");
    precious.annotations = texts(&[("bigfleet.lucy.sh/do-not-disrupt", "true")]);
    assert_eq!(disruption_of([precious].iter()), 15);
}

struct Desk {
    controller: PodController,
}

impl Desk {
    fn tell(&mut self, now: Time, event: PodEvent) -> Vec<PodEffect> {
        let mut effects = Vec::new();
        self.controller.handle(now, event, &mut effects);
        effects.retain(|effect| !matches!(effect, PodEffect::WakeAt(_)));
        effects
    }
}

fn shown(name: &str, pod: &PodFacts, created: u64) -> ShownRequest {
    ShownRequest {
        key: ObjectKey::namespaced("ns", name),
        pod_uid: pod.brief.uid.clone(),
        created: at(created),
        spec: spec(pod),
        has_status: true,
        stuck: None,
        served: None,
    }
}

/// OP-47.
#[test]
fn requests_are_created_once_patched_made_again_and_further_ones_deleted() {
    let mut desk = Desk {
        controller: PodController::new(PodConfig::default()),
    };
    let mut p1 = facts("p1");
    assert_eq!(
        desk.tell(at(0), PodEvent::Pod(Box::new(p1.clone()))),
        [],
        "not before all is listed"
    );
    let created = desk.tell(at(1), PodEvent::Whole);
    let key = ObjectKey::namespaced("ns", "cr-pod-uid-p1");
    assert!(matches!(created.as_slice(), [PodEffect::Create { key: made, .. }] if *made == key));
    assert_eq!(
        desk.tell(at(2), PodEvent::Pod(Box::new(p1.clone()))),
        [],
        "it is on its way"
    );
    assert_eq!(
        desk.tell(at(11), PodEvent::Woken).len(),
        1,
        "and tried again"
    );
    let mut request = shown("cr-pod-uid-p1", &p1, 3);
    request.has_status = false;
    assert_eq!(
        desk.tell(at(12), PodEvent::Request(Box::new(request))),
        [PodEffect::Pend(key.clone())]
    );
    assert_eq!(
        desk.tell(
            at(13),
            PodEvent::Request(Box::new(shown("cr-pod-uid-p1", &p1, 3)))
        ),
        []
    );
    p1.priority = 9;
    let patched = desk.tell(at(14), PodEvent::Pod(Box::new(p1.clone())));
    assert!(
        matches!(patched.as_slice(), [PodEffect::Patch(made, spec)] if *made == key && spec.priority == 9)
    );
    let older = desk.tell(at(15), PodEvent::Request(Box::new(shown("older", &p1, 1))));
    assert_eq!(older, [], "the other one has a patch on its way");
    let request = Box::new(shown("cr-pod-uid-p1", &p1, 3));
    let collapsed = desk.tell(at(16), PodEvent::Request(request));
    assert_eq!(collapsed, [PodEffect::Delete(key.clone())]);
    assert_eq!(
        desk.tell(at(31), PodEvent::RequestGone(key)).len(),
        0,
        "the older one is kept"
    );
    let gone = desk.tell(
        at(32),
        PodEvent::RequestGone(ObjectKey::namespaced("ns", "older")),
    );
    assert!(matches!(gone.as_slice(), [PodEffect::Create { .. }]));
    let request = Box::new(shown("cr-pod-uid-p1", &p1, 33));
    assert_eq!(desk.tell(at(33), PodEvent::Request(request)), []);
    p1.brief.phase = bigfleet_operator_core::PodPhase::Succeeded;
    let finished = desk.tell(at(34), PodEvent::Pod(Box::new(p1)));
    assert!(matches!(finished.as_slice(), [PodEffect::Delete(_)]));
}

/// OP-60.
#[test]
fn words_are_said_on_change_and_ten_a_second() {
    let mut desk = Desk {
        controller: PodController::new(PodConfig::default()),
    };
    desk.tell(at(0), PodEvent::Whole);
    for n in 0..30 {
        desk.tell(
            at(0),
            PodEvent::Node(format!("n{n:02}"), Some(ShownNode::default())),
        );
    }
    let mut said = 0;
    for tenth in 1..=20 {
        let now = at(0) + std::time::Duration::from_millis(100 * tenth);
        said += desk.tell(now, PodEvent::Woken).len();
    }
    assert_eq!(said, 20);
    for n in 0..30 {
        let annotated = ShownNode {
            disruption: Some(0),
            empty_since: Some(at(0)),
            ..ShownNode::default()
        };
        desk.tell(at(3), PodEvent::Node(format!("n{n:02}"), Some(annotated)));
    }
    let mut p1 = facts("p1");
    desk.tell(at(10), PodEvent::Pod(Box::new(p1.clone())));
    desk.tell(
        at(11),
        PodEvent::Request(Box::new(shown("cr-pod-uid-p1", &p1, 10))),
    );
    p1.unschedulable = Some((at(12), "3 Insufficient cpu".to_owned()));
    (0..20).for_each(|n| drop(desk.tell(at(20 + n), PodEvent::Woken)));
    assert_eq!(desk.tell(at(40), PodEvent::Pod(Box::new(p1))), []);
    let stuck = desk.tell(at(42), PodEvent::Woken);
    assert!(
        matches!(stuck.as_slice(), [PodEffect::Stick(_, Some(stuck))] if stuck.reason == StuckReason::Insufficient)
    );
}

/// OP-47: a condition that the API server refused is missing for ever unless it is written again.
#[test]
fn a_word_that_shows_no_effect_is_said_again() {
    let mut desk = Desk {
        controller: PodController::new(PodConfig::default()),
    };
    desk.tell(at(0), PodEvent::Whole);
    let mut p1 = facts("p1");
    p1.unschedulable = Some((at(0), "3 Insufficient cpu".to_owned()));
    desk.tell(at(0), PodEvent::Pod(Box::new(p1.clone())));
    let mut request = shown("cr-pod-uid-p1", &p1, 1);
    desk.tell(at(1), PodEvent::Request(Box::new(request.clone())));
    let said = desk.tell(at(31), PodEvent::Woken);
    assert!(matches!(
        said.as_slice(),
        [PodEffect::Stick(_, Some(stuck))] if stuck.reason == StuckReason::Insufficient
    ));
    assert_eq!(desk.tell(at(36), PodEvent::Woken), [], "it is on its way");
    assert_eq!(desk.tell(at(42), PodEvent::Woken), said, "it was lost");
    request.stuck = stuck_of(&p1, at(42)).ok();
    desk.tell(at(43), PodEvent::Request(Box::new(request)));
    assert_eq!(desk.tell(at(60), PodEvent::Woken), []);
}

/// OP-53: a Pod hears what its request says of how it is served, once, and nothing that was said before.
#[test]
fn a_pod_is_told_when_its_request_says_something_new() {
    let mut desk = Desk {
        controller: PodController::new(PodConfig::default()),
    };
    let p1 = facts("p1");
    let saying = |reason: &str| {
        let mut request = shown("cr-pod-uid-p1", &p1, 3);
        request.served = Some(Served {
            is_served: false,
            reason: reason.to_owned(),
            message: "why".to_owned(),
        });
        PodEvent::Request(Box::new(request))
    };
    desk.tell(at(0), PodEvent::Pod(Box::new(p1.clone())));
    desk.tell(at(0), saying("Coming"));
    desk.tell(at(1), PodEvent::Whole);
    assert_eq!(desk.tell(at(2), saying("Coming")), [], "said before");
    let told = desk.tell(at(3), saying("Stuck"));
    assert!(
        matches!(&told[..], [PodEffect::Tell { pod, uid, served }]
            if *pod == p1.brief.key && *uid == p1.brief.uid && served.reason == "Stuck"),
        "{told:?}"
    );
    assert_eq!(desk.tell(at(4), saying("Stuck")), [], "once");
}
