//! EX-RF28 to EX-RF35: machines that leave, and what serves in their place.

use crate::check::check;

/// A fleet of these lines, with what is said against each of the variants.
#[track_caller]
fn each(common: &str, variants: &[(&str, &str)]) {
    for (lines, expected) in variants {
        check(&format!("{common}\n{lines}"), expected);
    }
}

#[test]
fn ex_rf28_one_that_leaves_soon_waits_for_another_and_one_that_leaves_now_does_not() {
    let soon = "need a name:n cpu=8
        m1 Configured a cpu=4 $1 own=n leaving=soon
        m2 Configured a cpu=4 $2 own=n";
    each(
        soon,
        &[
            (
                "s1 Speculative cpu=4 $9",
                "Provision s1 for a
                 claims: m2 s1
                 held: m1
                 restamps:
                 satisfied a",
            ),
            ("s1 Creating cpu=4 $9 own=n", "claims: m2 s1\nheld: m1"),
            ("s1 Configuring a cpu=4 $9 own=n", "claims: m2 s1\nheld: m1"),
            (
                "s1 Configured a cpu=4 $9 own=n",
                "Reclaim m1 from a (leaving)
                 claims: m2 s1
                 held:",
            ),
            ("", "claims: m1 m2\nheld:\nsatisfied a"),
        ],
    );
    check(
        "need a name:n cpu=8
         m1 Configured a cpu=4 $1 own=n
         m2 Configured a cpu=4 $2 own=n
         s1 Configured a cpu=4 $9 own=n",
        "Reclaim s1 from a",
    );
    each(
        &soon.replace("soon", "now"),
        &[
            (
                "s1 Speculative cpu=4 $9",
                "Provision s1 for a
                 Reclaim m1 from a (leaving)
                 claims: m2 s1
                 held:",
            ),
            // What is on its way is enough, though another is to be had.
            (
                "s1 Creating cpu=4 $9 own=n\ns2 Speculative cpu=4 $9",
                "Reclaim m1 from a (leaving)\nclaims: m2 s1",
            ),
            (
                "",
                "Reclaim m1 from a (leaving)
                 claims: m2
                 short a: cpu=4",
            ),
        ],
    );
}

#[test]
fn ex_rf29_replacing_takes_its_turn_and_preempts_nobody() {
    let a = "need a name:n cpu=8 prio=1000
        m1 Configured a cpu=4 own=n leaving=soon
        m2 Configured a cpu=4 own=n";
    each(
        a,
        &[
            (
                "need b cpu=4 prio=50\ni1 Idle cpu=4",
                "Bootstrap i1 for a
                 held: m1
                 short b: cpu=4",
            ),
            (
                "need b cpu=4 prio=2000\ni1 Idle cpu=4",
                "Bootstrap i1 for b
                 claims a: m1 m2
                 held:",
            ),
            (
                "need b name:o cpu=4 prio=50\nb1 Configured b cpu=4 own=o",
                "claims: b1 m1 m2",
            ),
        ],
    );
    each(
        &a.replace("soon", "now"),
        &[
            (
                "need b name:o cpu=4 prio=50\nb1 Configured b cpu=4 own=o",
                "Preempt b1 from b grace 600 for a
                 Reclaim m1 from a (leaving)",
            ),
            (
                "need b name:o cpu=4 prio=50\nb1 Configured b cpu=4 own=o leaving=soon",
                "Reclaim m1 from a (leaving)
                 short a: cpu=4",
            ),
            // What leaves now is no victim either: it would not come.
            (
                "need b name:o cpu=4 prio=50\nb1 Configured b cpu=4 own=o leaving=now",
                "Reclaim m1 from a (leaving)
                 Reclaim b1 from b (leaving)",
            ),
        ],
    );
}

#[test]
fn ex_rf30_a_gang_is_replaced_in_its_domain_or_moves_as_a_whole() {
    let gang = "need a name:n group=g rack=Same cpu=8
        m1 Configured a cpu=4 rack=r1 own=n leaving=soon
        m2 Configured a cpu=4 rack=r1 own=n";
    each(
        gang,
        &[
            (
                "i1 Idle cpu=4 rack=r1\ni2..i3 Idle cpu=4 rack=r2",
                "Bootstrap i1 for a
                 claims: i1 m2
                 held: m1
                 domain a/g: r1",
            ),
            (
                "i2..i3 Idle cpu=4 rack=r2",
                "Bootstrap i2 for a
                 Bootstrap i3 for a
                 claims: i2 i3
                 held: m1 m2
                 domain a/g: r2",
            ),
            (
                "i2..i3 Configuring a cpu=4 rack=r2 own=n",
                "claims: i2 i3
                 held: m1 m2
                 domain a/g: r2",
            ),
            (
                "i2..i3 Configured a cpu=4 rack=r2 own=n",
                "Reclaim m1 from a (leaving)
                 Reclaim m2 from a
                 claims: i2 i3
                 held:",
            ),
            ("i2 Idle cpu=4 rack=r2", "claims: m1 m2\nsatisfied a/g"),
        ],
    );
    each(
        &gang.replace("cpu=8", "cpu=16"),
        &[(
            "s1 Speculative cpu=4 rack=r1",
            "claims: m1 m2\nshort a/g: cpu=8",
        )],
    );
    check(
        "need a name:n group=g rack=Same cpu=8
         m1..m2 Configured a cpu=4 rack=r1 own=n leaving=soon
         i1 Idle cpu=4 rack=r1",
        "Bootstrap i1 for a
         claims: i1 m1
         held: m2
         satisfied a/g",
    );
}

#[test]
fn ex_rf31_like_replaces_like_where_machines_are_spread() {
    let spread = "need a name:n cpu=8 prio=10 spread=zone/1
        a1 Configured a cpu=4 zone=a own=n leaving=soon
        b1 Configured a cpu=4 zone=b own=n
        b2 Idle cpu=4 zone=b $1";
    each(
        spread,
        &[
            (
                "need a name:o group=o cpu=4
                 x Configured a cpu=4 zone=a own=o
                 a2 Idle cpu=4 zone=a $9",
                "Bootstrap a2 for a\nheld: a1",
            ),
            (
                "need a name:o group=o cpu=4
                 x Configured a cpu=4 zone=a own=o",
                "claims n: a1 b1",
            ),
            ("", "Bootstrap b2 for a\nheld: a1"),
            (
                "need a name:o group=o cpu=4
                 x Configured a cpu=4 zone=a own=o leaving=soon",
                "Bootstrap b2 for a\nheld: a1",
            ),
        ],
    );
}

#[test]
fn ex_rf32_what_is_unbound_and_leaves_is_for_the_mechanic() {
    each(
        "need a name:n cpu=4",
        &[
            ("i1 Idle cpu=4 OnDemand leaving=soon", "short a: cpu=4"),
            ("k1 Creating cpu=4 leaving=now", "short a: cpu=4"),
            ("s1 Speculative cpu=4 leaving=soon", "short a: cpu=4"),
            (
                "i1 Idle cpu=4 own=n leaving=soon",
                "ended: i1\nshort a: cpu=4",
            ),
            (
                "i1 Idle cpu=4 own=n leaving=now\ns1 Speculative cpu=4",
                "Provision s1 for a\nended: i1",
            ),
            (
                "m2 Draining a cpu=4 reversible leaving=soon",
                "short a: cpu=4\nclaims:",
            ),
        ],
    );
    check(
        "now 1000\ncluster a\ni1 Idle cpu=4 OnDemand idle-since=0 leaving=soon",
        "",
    );
    // Its intent ends whatever its cluster.
    check(
        "cluster a not-ready no-acquire\ni1 Idle cpu=4 own-raw=gone, for=a leaving=soon",
        "ended: i1",
    );
    check(
        "cluster a not-ready\nm1 Configured a cpu=4 leaving=soon",
        "",
    );
    check(
        "cluster a not-ready\nm1 Configured a cpu=4 leaving=now",
        "Reclaim m1 from a (leaving)",
    );
}

#[test]
fn ex_rf33_one_that_leaves_soon_is_held_for_the_need_it_belongs_to() {
    check(
        "need a name:p group=p cpu=4 prio=100
         need a name:q group=q cpu=4 prio=100
         m1 Configured a cpu=4 own=p leaving=soon
         r1 Configured a cpu=4 own=p
         c1 Creating cpu=4 own=q",
        "Reclaim m1 from a (leaving)
         claims p: r1
         claims q: c1",
    );
    check(
        "need a name:p group=p cpu=4 prio=100
         need a name:q group=q cpu=4 prio=100
         m1 Configured a cpu=4 own=p leaving=soon
         r1 Configuring a cpu=4 own=p",
        "claims p: r1
         held: m1
         short q: cpu=4",
    );
    check(
        "need a name:p group=p cpu=4 prio=100
         need a name:q group=q cpu=4 prio=200
         m1 Configured a cpu=4 own=p leaving=soon
         r1 Configured a cpu=4 own=p",
        "claims p: m1
         claims q: r1
         restamps: r1
         held:",
    );
    check(
        "need a name:p cpu=4
         m1 Configured a cpu=4 leaving=soon
         i1 Idle cpu=4",
        "Bootstrap i1 for a
         claims: i1
         held: m1
         restamps: m1",
    );
}

#[test]
fn ex_rf34_one_machine_is_replaced_whole_or_not_at_all() {
    let own = "need a name:n cpu=8\nm1 Configured a cpu=8 own=n leaving=soon";
    each(
        own,
        &[
            ("s1 Speculative cpu=4", "claims: m1"),
            (
                "s1..s2 Speculative cpu=4",
                "Provision s1 for a
                 Provision s2 for a
                 held: m1",
            ),
        ],
    );
    check(
        "need a name:n cpu=16
         m1 Configured a cpu=16 own=n leaving=soon
         i1 Idle cpu=4 $1
         i2 Idle cpu=16 $2",
        "Bootstrap i2 for a\nclaims: i2\nheld: m1",
    );
    check(
        "need a name:n cpu=16 spread=zone/1
         a1 Configured a cpu=4 zone=a own=n leaving=soon
         a2..a3 Configured a cpu=4 zone=a own=n
         b1 Configured a cpu=4 zone=b own=n
         a4 Idle cpu=4 zone=a",
        "Bootstrap a4 for a\nclaims: a2 a3 a4 b1\nheld: a1",
    );
    check(
        "need a name:l group=l cpu=8 prio=100
         need a name:h group=h cpu=4 prio=200
         m1 Configured a cpu=4 own=l leaving=soon
         m2 Configured a cpu=4 own=l",
        "claims h: m2\nclaims l: m1",
    );
}

#[test]
fn ex_rf35_a_folded_gang_stays_folded_on_what_leaves_soon() {
    let gangs = "need a name:g1 group=g1 rack=Same cpu=4
        need a name:g2 group=g2 rack=Same cpu=4
        m0 Configured a cpu=8 rack=r1 own=fold:g1 leaving=soon";
    each(
        gangs,
        &[
            ("", "absent a/g1\nabsent a/g2\nclaims: m0"),
            (
                "i1 Idle cpu=8 rack=r2",
                "Bootstrap i1 for a
                 claims: i1
                 held: m0
                 absent a/g1",
            ),
        ],
    );
    each(
        &gangs.replace("soon", "now"),
        &[(
            "",
            "Reclaim m0 from a (leaving)
             short a/g1: cpu=4
             short a/g2: cpu=4",
        )],
    );
    check(
        "need a group=g rack=Same cpu=8 prio=1000
         need b name:o cpu=8 prio=100
         v1 Configured b cpu=4 rack=r1 own=o
         v2 Configured b cpu=4 rack=r1 own=o leaving=soon",
        "claims: v1 v2
         domain a/g: unsatisfiable",
    );
}
