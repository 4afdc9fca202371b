//! Rows that look alike: profiles that fold to one, texts that collide.

use bigfleet_engine::{Engine, decide};
use bigfleet_testkit::fleet;

fn agree(text: &str) {
    let after = fleet(text);
    let expected = bigfleet_oracle::decide(&after);
    assert_eq!(decide(&after), expected);
    // Also where each machine and each cluster comes and goes on the way there.
    let mut engine = Engine::new();
    engine.load(&after);
    engine.decide(after.now);
    for id in after.clusters.keys() {
        let mut without = after.clone();
        without.clusters.remove(id);
        engine.follow(&after, &without);
        engine.decide(without.now);
        assert_eq!(engine.decision(), bigfleet_oracle::decide(&without));
        engine.follow(&without, &after);
        engine.decide(after.now);
        assert_eq!(engine.decision(), expected);
    }
}

#[test]
fn gangs_of_two_profiles_that_fold_to_one_make_one_row() {
    agree(
        "i1..i4 Idle cpu=16 rack=r1
         need a group=g1 rack=Same cpu=6 prio=5 arrival=3
         need a group=g2 rack=Same rack=Exists cpu=6 prio=5 arrival=2
         need a group=g3 rack=Same rack=Exists cpu=6 prio=5 arrival=4",
    );
}

#[test]
fn profiles_whose_texts_collide_share_what_is_attributed_to_the_text() {
    agree(
        "m1..m3 Configured a cpu=4 $1 zone=z1 own=one
         need a name:one cpu=8 zone=In(z1,z2)
         need a name:two cpu=4 zone=Exists",
    );
}

/// A row that inherited machines gives them back when the row they were committed to returns.
#[test]
fn a_row_that_returns_has_its_machines_again() {
    let machines = "m1 Configured a cpu=4 own-raw=p=-5|ipb=1|rpb=1|reqs=|spr=,
                    m2 Configuring a cpu=4 own-raw=p=-5|ipb=1|rpb=1|reqs=|spr=,
                    i1 Idle cpu=4";
    let heir = "need a cpu=8";
    let before = fleet(&format!("{machines}\n{heir}"));
    let after = fleet(&format!("{machines}\n{heir}\nneed a cpu=12 prio=-5"));
    let mut engine = Engine::new();
    engine.load(&before);
    engine.decide(before.now);
    engine.follow(&before, &after);
    engine.decide(after.now);
    assert_eq!(engine.decision(), bigfleet_oracle::decide(&after));
}
