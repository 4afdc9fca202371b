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
