//! What is written reads back equal, in both formats, and says what the format documents.

use bigfleet_fleet_file::{Format, decision_json, decision_yaml, read, write};
use bigfleet_model::{
    Action, ActionKind, Claim, Decision, Fleet, MatchingSupply, Reason, Terms, Time, UnmetReason,
    Verdict,
};
use bigfleet_testkit::{Fixture, fleet, generate::Generator};
use std::sync::Arc;

fn again(fleet: &Fleet) -> Fleet {
    let text = write(fleet);
    let loaded =
        read(text.as_bytes(), Format::Json).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
    assert_eq!(loaded.warnings, []);
    loaded.fleet
}

#[test]
fn generated_fleets_read_back_equal() {
    for seed in 0..300 {
        let mut generator = Generator::new(seed);
        let mut fleet = generator.fleet();
        for step in 0..10 {
            assert_eq!(again(&fleet), fleet, "seed {seed} step {step}");
            generator.edit(&mut fleet);
        }
    }
}

#[test]
fn json_is_yaml_too() {
    for seed in 0..30 {
        let fleet = Generator::new(seed).fleet();
        let loaded = read(write(&fleet).as_bytes(), Format::Yaml);
        assert_eq!(loaded.map(|loaded| loaded.fleet), Ok(fleet), "seed {seed}");
    }
}

#[test]
fn every_field_reads_back() {
    let full = fleet(
        "now 0.1
         holds OnDemand=never Spot=0.5
         cluster b not-ready no-acquire
         need a name:web cpu=1500m memory=16Gi min:cpu=1 whole prio=-7 ib=0 rb=27 arrival=0.30000000000000004 group=g1 parked rack=Same(r1,r2) zone=In(z1) type=NotIn(x) k=Exists l=DoesNotExist spread=zone/2 spread=rack/1/soft
         m1 Configured a cpu=4 alloc:cpu=3 $0.1 p=0.3 type=m5 zone=z1 Spot rack=r1 own=web keep=$2 not-ready unavailable disruption=3 leaving=soon
         m2 Draining b gpu=1 own=web penalty=$inf reversible leaving=now
         m3 Idle idle-since=-5
         m4 Failed b
         m5 Configured a alloc:cpu=0",
    );
    assert_eq!(again(&full), full);
    let m2 = full.machines["m2"].machine.intent().cloned();
    assert_eq!(
        m2.map(|intent| intent.terms.reclamation.dollars()),
        Some(f64::INFINITY)
    );
    let m5 = &again(&full).machines["m5"].machine;
    assert!(m5.shape().effective().is_zero(), "given, but worth nothing");
}

/// The example of docs/spec/fleet-file.md, abridged to what has a default elsewhere.
#[test]
fn defaults_are_those_of_the_format() {
    let text = r#"{
        "machines": [
            {"id": "m1", "state": "Idle", "cluster": "a", "host": {"ref": "h"}, "assigned": null,
             "intent": null, "idle_since": null, "resources": {"cpu": 4, "memory": 0.5}},
            {"id": "m2", "state": "Speculative", "resources": {"cpu": "abc", "gpu": "-3"},
             "allocatable": {}}
        ],
        "clusters": [{"id": "a", "needs": [
            {"spread": [{"topology_key": "zone"}], "aggregate_resources": {"cpu": "100u"}},
            {"aggregate_resources": {"cpu": "1"}, "arrival": 9}, {"aggregate_resources": {"cpu": "2"}, "arrival": 5}
        ]}],
        "holds": {"Spot": null}
    }"#;
    let loaded = read(text.as_bytes(), Format::Json).unwrap();
    let fleet = &loaded.fleet;
    assert_eq!(fleet.now.seconds(), 0.0);
    assert_eq!(fleet.holds.on_demand.map(|hold| hold.as_secs()), Some(600));
    assert_eq!(fleet.holds.spot, None);
    let m1 = &fleet.machines["m1"];
    assert_eq!(
        (m1.machine.cluster(), m1.idle_since),
        (None, None),
        "normalised (ST-5)"
    );
    assert_eq!(m1.machine.shape().resources.key(), "cpu=4000;memory=500;");
    assert!(fleet.machines["m2"].machine.shape().effective().is_zero());
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "machines[1]: machine \"m2\": resources.cpu: quantity \"abc\" is malformed (Q-1), read as 0 (Q-5)"
        ]
    );
    let needs = fleet.clusters["a"].needs();
    assert_eq!(needs.len(), 2, "equal rows merge");
    assert_eq!(needs[0].row.aggregate.key(), "cpu=1;");
    assert_eq!(
        needs[0].row.profile.fingerprint().as_str(),
        "p=0|ipb=0|rpb=0|reqs=|spr=zone:1:0;"
    );
    assert_eq!(
        (
            needs[1].row.aggregate.get("cpu"),
            needs[1].arrival.map(Time::seconds)
        ),
        (3000, Some(5.0))
    );
}

/// Digits never pass through a float, which has three too few for a moment of our days.
#[test]
fn moments_are_exact_to_the_nanosecond() {
    let json = r#"{
        "now": 1700000000.123456789,
        "machines": [{"id": "m1", "state": "Idle", "host": {"ref": "h"}, "idle_since": 1700000000.000000001,
                      "labels": {"idle_since": "1.50"}}],
        "clusters": [{"id": "a", "needs": [{"arrival": 0.1}, {"priority": 1, "arrival": 17e-1},
                                           {"priority": 2, "arrival": 1700000000}]}],
        "holds": {"OnDemand": 31536000.987654321, "Spot": 0.1}
    }"#;
    let yaml = "
now: 1700000000.123456789
machines:
- {id: m1, state: Idle, host: {ref: h}, idle_since: 1700000000.000000001, labels: {idle_since: '1.50'}}
clusters:
- id: a
  needs:
  - arrival: 0.1
  - {priority: 1, arrival: 17e-1}
  - {priority: 2, arrival: 1700000000}
holds: {OnDemand: 31536000.987654321, Spot: 0.1}
";
    for (text, format) in [(json, Format::Json), (yaml, Format::Yaml)] {
        let fleet = read(text.as_bytes(), format).unwrap().fleet;
        assert_eq!(fleet.now.nanos(), 1_700_000_000_123_456_789, "{format:?}");
        let idle_since = fleet.machines["m1"].idle_since;
        assert_eq!(
            idle_since,
            Some(Time::from_nanos(1_700_000_000_000_000_001))
        );
        let arrivals = fleet.clusters["a"].needs().iter().map(|need| need.arrival);
        let nanos = [100_000_000, 1_700_000_000, 1_700_000_000_000_000_000];
        assert!(arrivals.eq(nanos.map(|nanos| Some(Time::from_nanos(nanos)))));
        let holds = [fleet.holds.on_demand, fleet.holds.spot].map(|hold| hold.unwrap().as_nanos());
        assert_eq!(holds, [31_536_000_987_654_321, 100_000_000]);
        let label = &fleet.machines["m1"].machine.shape().labels["idle_since"];
        assert_eq!(label, "1.50", "a label is no moment");
        assert_eq!(again(&fleet), fleet);
        let text = write(&fleet);
        assert!(text.contains(r#""now": 1700000000.123456789"#), "{text}");
    }
}

/// 0 is how a file says that an arrival is not stated, and how it is left out.
#[test]
fn an_arrival_of_zero_is_not_stated() {
    for text in ["0", "0.0", "-0.0", "0e3", "null"] {
        let json = format!(r#"{{"clusters": [{{"id": "a", "needs": [{{"arrival": {text}}}]}}]}}"#);
        let fleet = read(json.as_bytes(), Format::Json).unwrap().fleet;
        assert_eq!(fleet.clusters["a"].needs()[0].arrival, None, "{text}");
        assert!(!write(&fleet).contains("arrival"));
    }
}

#[test]
fn the_format_is_told_by_name_or_by_text() {
    assert_eq!(Format::of("a.yml", b"{}"), Format::Yaml);
    assert_eq!(Format::of("a.json", b"x"), Format::Json);
    assert_eq!(Format::of("-", b"\n {"), Format::Json);
    assert_eq!(Format::of("-", b"now: 1"), Format::Yaml);
}

/// A decision with something in every list.
fn decision() -> Decision {
    let fixture = Fixture::read("need a group=g1 cpu=8 rack=Same\n i1 Idle\n b1 Configured b");
    let need = fixture.need("a");
    let id = |text: &str| fixture.fleet.machines[text].machine.id().clone();
    let action = |kind, machine, cluster, purpose, grace_seconds, reason| Action {
        kind,
        machine,
        cluster,
        purpose,
        grace_seconds,
        preemptor_priority: 0,
        reason,
    };
    let b = fixture.fleet.machines["b1"].machine.cluster().cloned();
    let purpose = || Some((need.key(), Terms::default()));
    Decision {
        actions: vec![
            action(
                ActionKind::Bootstrap,
                id("i1"),
                Some(need.cluster.clone()),
                purpose(),
                0,
                Reason::Idle,
            ),
            action(
                ActionKind::Preempt,
                id("b1"),
                b,
                purpose(),
                10,
                Reason::Inversion,
            ),
            action(ActionKind::Delete, id("i1"), None, None, 0, Reason::Release),
        ],
        claims: vec![Claim {
            machine: id("i1"),
            need: need.key(),
        }],
        held: vec![id("b1")],
        needs: vec![Verdict {
            need: Arc::new(need.clone()),
            satisfied: false,
            residual: need.row.aggregate.clone(),
            claimed: 1,
            bootstrap: 1,
            provision: 0,
            same_domain: "r1".to_owned(),
            same_satisfiable: true,
            parked: false,
            victims_found: 0,
            capacity_freed: Default::default(),
            unmet_reason: UnmetReason::PriorityStarved,
            matching_supply: MatchingSupply::capped(1, 2, 2000),
            same_candidates: vec![],
        }],
        ..Decision::default()
    }
}

#[test]
fn a_decision_is_written_in_the_documented_order() {
    let decision = decision();
    let fingerprint = "p=0|ipb=1|rpb=1|reqs=rack:5:;|spr=";
    let expected = format!(
        r#"{{
  "actions": [
    {{"kind":"Bootstrap","machine":"i1","cluster":"a","need_fingerprint":"{fingerprint}","group":"g1","grace_seconds":0,"preemptor_priority":0,"reason":"phase1.idle"}},
    {{"kind":"Preempt","machine":"b1","cluster":"b","for_cluster":"a","need_fingerprint":"{fingerprint}","group":"g1","grace_seconds":10,"preemptor_priority":0,"reason":"phase2.inversion"}},
    {{"kind":"Delete","machine":"i1","cluster":"","need_fingerprint":"","group":"","grace_seconds":0,"preemptor_priority":0,"reason":"phase3.release"}}
  ],
  "claims": [
    {{"machine":"i1","cluster":"a","need_fingerprint":"{fingerprint}","group":"g1"}}
  ],
  "ended_intents": [],
  "held": [
    "b1"
  ],
  "restamps": [],
  "needs": [
    {{"cluster":"a","need_fingerprint":"{fingerprint}","group":"g1","satisfied":false,"residual_deficit":{{"cpu":"8"}},"claimed":1,"bootstrap":1,"provision":0,"same_domain":"r1","same_satisfiable":true,"parked":false,"victims_found":0,"capacity_freed":{{}},"unmet_reason":"PRIORITY_STARVED","matching_supply":{{"idle":1,"speculative":2,"configured":1000,"capped":true}}}}
  ],
  "digest": "{}"
}}
"#,
        decision.digest()
    );
    assert_eq!(decision_json(&decision), expected);
}

#[test]
fn yaml_says_what_json_says() {
    let decision = decision();
    let json: serde_json::Value = serde_json::from_str(&decision_json(&decision)).unwrap();
    let yaml: serde_json::Value = serde_norway::from_str(&decision_yaml(&decision)).unwrap();
    assert_eq!(json, yaml);
}
