//! The words of each cause, as people read them: a change here is a change of the product.

use super::*;
use bigfleet_testkit::fleet;

/// Why the first Need of cluster a is short.
fn said(of: &str, around: &Around) -> Vec<String> {
    let fleet = fleet(of);
    let key = fleet.clusters[&a()].needs()[0].key();
    causes(&bigfleet_engine::explain(&fleet, &key).unwrap(), around)
}

fn a() -> ClusterId {
    ClusterId::new("a").unwrap()
}

fn said_of(of: &str) -> Vec<String> {
    said(of, &Around::default())
}

#[test]
fn a_requirement_nobody_meets_says_which_and_what_they_have() {
    assert_eq!(
        said_of("i1..i3 Idle cpu=4 $1 media=hdd\n i4 Idle cpu=4 $1\n need a cpu=4 media=In(ssd)"),
        ["no machine meets media In ssd: they have hdd (3), nothing (1)"]
    );
}

#[test]
fn a_zone_and_a_type_nobody_has() {
    assert_eq!(
        said_of("i1..i3 Idle cpu=4 $1 zone=z1\n need a cpu=4 zone=In(z9)"),
        ["no machine is in zone z9: they are in z1 (3)"]
    );
    assert_eq!(
        said_of("i1..i3 Idle cpu=4 $1 type=m5\n need a cpu=4 type=In(p4)"),
        ["no machine is of type p4, so nobody offers it: they are of type m5 (3)"]
    );
}

#[test]
fn a_dimension_below_the_unit() {
    assert_eq!(
        said_of("i1 Idle cpu=4 $1\n i2 Idle cpu=16 $1\n need a cpu=64 min:cpu=64"),
        [
            "no machine is large enough: the smallest unit is cpu=64, and the largest machine that \
             meets the rest has cpu=16"
        ]
    );
}

#[test]
fn one_that_others_make_way_for() {
    assert_eq!(
        said_of("b1 Configured b cpu=4 $1 stamp=1\n need a cpu=4 prio=1000"),
        ["drained for it, which is enough: 1 machine of lower priority"]
    );
}

#[test]
fn no_machines_at_all() {
    assert_eq!(
        said_of("need a cpu=4"),
        ["there are no machines at all, not even ones that could be bought"]
    );
}

#[test]
fn one_that_holds_everything_is_not_told_to_raise_its_priority() {
    assert_eq!(
        said_of("i1..i2 Idle cpu=4 $1\n need a cpu=40 prio=5"),
        [
            "it already holds every machine that fits, 2: no priority helps, only more machines or a \
             smaller Need"
        ]
    );
}

#[test]
fn machines_of_another_cluster_say_why_they_stay_there() {
    let of = "b1..b3 Configured b cpu=4 $1 own=big stamp=1000
              need a cpu=4 prio=100
              need b name:big cpu=12 prio=1000";
    assert_eq!(
        said_of(of),
        ["3 machines that would fit: in use by cluster b at priority 1000, which is not below 100"]
    );
    let b = BTreeSet::from([ClusterId::new("b").unwrap()]);
    let gone = Around {
        gone: b.clone(),
        ..Around::default()
    };
    assert_eq!(
        said(of, &gone),
        [
            "3 machines that would fit: in use by cluster b at priority 1000, which is not below 100, \
             kept for it while its operator is gone"
        ]
    );
    let quarantined = Around {
        quarantined: b.clone(),
        ..Around::default()
    };
    assert!(
        said(of, &quarantined)[0].ends_with("for its earlier demand: its last roll-up is held")
    );
    let paused = Around {
        paused: b,
        ..Around::default()
    };
    assert_eq!(
        said(of, &paused),
        ["3 machines that would fit: in use by cluster b, which is paused"]
    );
}

#[test]
fn pools_behind_a_breaker_and_clusters_that_may_not_acquire() {
    let around = Around {
        breakers: vec!["m5 in z1 ran out, tried again in 40 s".to_owned()],
        ..Around::default()
    };
    assert_eq!(
        said(
            "s1..s2 Speculative cpu=4 $1 unavailable\n need a cpu=4",
            &around
        ),
        ["2 machines that would fit: left alone for now: m5 in z1 ran out, tried again in 40 s"]
    );
}

#[test]
fn a_gang_says_how_much_its_best_domain_holds() {
    assert_eq!(
        said_of(
            "i1..i2 Idle cpu=4 $1 rack=r1\n i3 Idle cpu=4 $1 rack=r2\n need a cpu=12 group=g rack=Same"
        )[0],
        "no value of rack holds all of the gang: the best, r1, holds 66 % of it"
    );
}

#[test]
fn a_spread_that_would_break_and_machines_without_its_key() {
    assert_eq!(
        said_of(
            "need a cpu=16 spread=zone/1
             a1..a3 Idle cpu=4 $1 zone=a
             b1 Idle cpu=4 $5 zone=b
             n1 Idle cpu=4 $1"
        ),
        [
            "1 machine that would fit: taking one would break its hard spread",
            "1 machine that would fit: without any topology.kubernetes.io/zone",
        ]
    );
}

#[test]
fn a_node_that_is_not_ready() {
    assert_eq!(
        said_of("a1..a2 Configured a cpu=4 $1 not-ready\n need a cpu=8"),
        ["2 machines that would fit: bound, but not Ready as a Node, so nothing can run there"]
    );
}

#[test]
fn a_need_of_its_own_cluster_that_comes_first() {
    let of = |more: &str| {
        let text = format!(
            "a1 Configured a cpu=4 $1 own=first
             need a name:second cpu=4 prio=5 arrival=9 k=DoesNotExist
             need a name:first cpu=4 {more}"
        );
        let (fleet, first) = {
            let fixture = bigfleet_testkit::Fixture::read(&text);
            (fixture.fleet.clone(), fixture.need_key("first").name())
        };
        let second = bigfleet_testkit::Fixture::read(&text).need_key("second");
        let explained = bigfleet_engine::explain(&fleet, &second).unwrap();
        let said = causes(&explained, &Around::default());
        said.join("; ").replace(&first, "FIRST")
    };
    let in_use = "1 machine that would fit: in use by Need FIRST of its own cluster";
    for (more, why) in [
        ("prio=9", ", which has a higher priority"),
        ("prio=5 rb=4 arrival=9", ", whose interruption costs more"),
        ("prio=5 arrival=1", ", which came first"),
    ] {
        assert_eq!(of(more), format!("{in_use}{why}"), "{more}");
    }
}

#[test]
fn machines_on_their_way_elsewhere_and_those_that_go() {
    assert_eq!(
        said_of(
            "need a cpu=64 prio=1
             cluster c not-ready
             c1 Configuring c cpu=4 $1
             f1 Failed cpu=4
             g1 Deleting cpu=4 $1
             u1 Speculative cpu=4 $1 unavailable"
        ),
        [
            "1 machine that would fit: being deleted",
            "1 machine that would fit: failed; a person has to look (`bigfleet get machines -l state=Failed`)",
            "1 machine that would fit: left alone for now: the pool failed lately, or the provider has not \
             confirmed that there are any",
            "1 machine that would fit: on the way to cluster c",
        ]
    );
}

#[test]
fn a_cluster_that_gets_no_new_machines() {
    let of = "cluster a no-acquire\n i1..i2 Idle cpu=4 $1\n need a cpu=4";
    let withheld = Around {
        withheld: Some("no operator of its cluster is connected".to_owned()),
        ..Around::default()
    };
    assert_eq!(
        said(of, &withheld),
        [
            "2 machines that would fit: free, but its cluster gets no new machines: no operator of its cluster \
             is connected"
        ]
    );
    assert_eq!(
        said_of(of),
        ["2 machines that would fit: free, but its cluster may get no new machines now"]
    );
}

#[test]
fn a_gang_whose_domain_is_too_small_and_one_that_is_parked() {
    let racks = "i1..i2 Idle cpu=4 $1 rack=r1
                 s1 Speculative cpu=4 $1 rack=r1
                 i3 Idle cpu=4 $1 rack=r2";
    assert_eq!(
        said_of(&format!("{racks}\n need a cpu=40 group=g rack=Same")),
        [
            "no value of rack holds all of the gang: the best, r1, holds 30 % of it",
            "1 machine that would fit: not bought for part of a gang",
            "1 machine that would fit: outside of the gang's domain",
        ]
    );
    assert_eq!(
        said_of(&format!("{racks}\n need a cpu=40 group=g rack=Same parked")),
        ["4 machines that would fit: not tried, since the gang is parked until something changes",]
    );
}

#[test]
fn what_several_machines_fail_at_is_said_of_each() {
    assert_eq!(
        said_of(
            "i1..i2 Idle cpu=4 $1 media=hdd
             i3 Idle cpu=2 $1 media=ssd
             i4 Idle memory=8Gi $1 media=ssd
             need a cpu=4 min:cpu=4 media=In(ssd)"
        ),
        [
            "2 of 4 machines fail at this: none meets media In ssd: they have hdd (2)",
            "2 of 4 machines fail at this: none is large enough: the smallest unit is cpu=4, and the largest \
             machine that meets the rest has cpu=2",
        ]
    );
}
