//! A roll-up that says what the last one said: handed in again as rows, or only as repeated, it is the
//! same to a shard in every effect and in everything it remembers (RI-1).

use crate::support::{FULL, World, cluster, id, rows};
use bigfleet_model::{ClusterId, HashKey, Row, State};
use bigfleet_shard_core::{Defect, Echo, Event, Frame, SessionId, ShardConfig};
use proptest::prelude::*;
use std::collections::BTreeMap;

const FLEET: &str = "i1..i4 Idle cpu=4 $1 rack=r1
     c1..c12 Configured a cpu=4 $1
     s1..s9 Speculative cpu=4 $2 rack=r2";

/// What clusters ask for: much, a little more, next to nothing (which rail 2 holds), a gang no rack has
/// room for, and less.
const DEMANDS: [&str; 6] = [
    "cpu=4 prio=1\n cpu=4 prio=2\n cpu=4 prio=3\n cpu=4 prio=4\n cpu=4 prio=5\n cpu=4 prio=6
     cpu=4 prio=7\n cpu=4 prio=8\n cpu=4 prio=9\n cpu=4 prio=10\n cpu=4 prio=11",
    "cpu=4 prio=1\n cpu=4 prio=2\n cpu=4 prio=3\n cpu=4 prio=4\n cpu=4 prio=5\n cpu=4 prio=6
     cpu=4 prio=7\n cpu=4 prio=8\n cpu=4 prio=9\n cpu=4 prio=10\n cpu=8 prio=11",
    "cpu=1 prio=1",
    "cpu=64 min:cpu=64 group=g1 rack=Same\n cpu=8 prio=100",
    "cpu=4 prio=5\n cpu=4 prio=6",
    "cpu=16",
];

#[derive(Clone, Debug)]
enum Step {
    Connect(usize),
    Disconnect(usize),
    RollUp(usize, usize),
    /// The rows of this demand twice over, so that equal rows are merged.
    RollUpTwice(usize, usize),
    /// What was last accepted on the session.
    Again(usize),
    /// For a cluster that is not the session's.
    Refused(usize),
    Fail(usize),
    Run(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        2 => (0..2usize).prop_map(Step::Connect),
        1 => (0..2usize).prop_map(Step::Disconnect),
        4 => (0..2usize, 0..DEMANDS.len()).prop_map(|(who, what)| Step::RollUp(who, what)),
        1 => (0..2usize, 0..DEMANDS.len()).prop_map(|(who, what)| Step::RollUpTwice(who, what)),
        6 => (0..2usize).prop_map(Step::Again),
        1 => (0..2usize).prop_map(Step::Refused),
        1 => (1..5usize).prop_map(Step::Fail),
        4 => (0..3u32).prop_map(|scale| Step::Run([1, 20, 700][scale as usize])),
    ];
    prop::collection::vec(one, 1..40)
}

const CLUSTERS: [&str; 2] = ["a", "b"];

/// Two worlds that live through the same: one is handed rows again, the other that they are repeated.
struct Both {
    rows: World,
    repeated: World,
    /// What was last accepted on each session.
    accepted: BTreeMap<SessionId, Vec<Row>>,
    numbers: u64,
}

impl Both {
    fn new(config: ShardConfig) -> Self {
        let rows = World::new(config, FLEET);
        Self {
            repeated: rows.clone(),
            rows,
            accepted: BTreeMap::new(),
            numbers: 0,
        }
    }

    fn each(&mut self, mut act: impl FnMut(&mut World)) {
        act(&mut self.rows);
        act(&mut self.repeated);
    }

    fn session(&self, who: usize) -> Option<(SessionId, ClusterId)> {
        let cluster = cluster(CLUSTERS[who]);
        let (session, _) = self.rows.sessions.get(&cluster)?;
        Some((*session, cluster))
    }

    fn roll_up(&mut self, who: usize, named: &str, sent: Vec<Row>) {
        let Some((session, _)) = self.session(who) else {
            return;
        };
        self.numbers += 1;
        let rollup_id = format!("r{}", self.numbers);
        let before = self.rows.core.roll_ups_accepted(session);
        self.each(|world| {
            world.tell(Event::RolledUp {
                session,
                cluster: cluster(named),
                rollup_id: rollup_id.clone(),
                rows: Ok(sent.clone()),
            });
        });
        if before < self.rows.core.roll_ups_accepted(session) {
            self.accepted.insert(session, sent);
        }
    }

    fn again(&mut self, who: usize) {
        let Some((session, cluster)) = self.session(who) else {
            return;
        };
        let Some(sent) = self.accepted.get(&session).cloned() else {
            return;
        };
        self.numbers += 1;
        let rollup_id = format!("r{}", self.numbers);
        self.rows.tell(Event::RolledUp {
            session,
            cluster,
            rollup_id: rollup_id.clone(),
            rows: Ok(sent),
        });
        self.repeated
            .tell(Event::RollUpRepeated { session, rollup_id });
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Connect(who) => self.each(|world| {
                world.connect(CLUSTERS[who], FULL);
            }),
            Step::Disconnect(who) if self.session(who).is_some() => {
                self.each(|world| world.disconnect(CLUSTERS[who]));
            }
            Step::Disconnect(_) => {}
            Step::RollUp(who, what) => {
                self.roll_up(who, CLUSTERS[who], rows(CLUSTERS[who], DEMANDS[what]));
            }
            Step::RollUpTwice(who, what) => {
                let once = rows(CLUSTERS[who], DEMANDS[what]);
                self.roll_up(who, CLUSTERS[who], [once.clone(), once].concat());
            }
            Step::Again(who) => self.again(who),
            Step::Refused(who) => self.roll_up(who, "c", Vec::new()),
            Step::Fail(number) => self.each(|world| {
                let there = world.provider.machines.get_mut(&id(&format!("i{number}")));
                there.unwrap().become_state(State::Failed);
            }),
            Step::Run(seconds) => self.each(|world| world.run(f64::from(seconds))),
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.repeated.every, &self.rows.every);
        // All of it: what is due, what is remembered, what the engine was told.
        let whole = |world: &World| format!("{:#?}", world.core);
        let (repeated, rows) = (whole(&self.repeated), whole(&self.rows));
        let mut lines = repeated.lines().zip(rows.lines());
        let differs = lines.find(|(one, other)| one != other);
        prop_assert_eq!(differs, None);
        prop_assert_eq!(repeated.len(), rows.len());
        Ok(())
    }
}

fn live_through(config: ShardConfig, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut both = Both::new(config);
    both.live(steps);
    both.check()
}

impl Both {
    fn live(&mut self, steps: &[Step]) {
        self.each(|world| {
            world.run(1.0);
            for name in CLUSTERS {
                world.connect(name, FULL);
            }
        });
        for step in steps {
            self.take(step);
        }
        self.each(|world| world.run(30.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_repeated_roll_up_is_the_rows_again(steps in steps()) {
        live_through(ShardConfig::production("s", "p"), &steps)?;
    }

    /// The key is another in every process, and what was recorded of one is true of the next (D-6).
    #[test]
    fn no_effect_depends_on_the_hash_key(steps in steps()) {
        let config = ShardConfig::production("s", "p");
        let hash_key = HashKey::new([u64::MAX, 7, 11]);
        let mut both = Both {
            repeated: World::new(ShardConfig { hash_key, ..config.clone() }, FLEET),
            ..Both::new(config)
        };
        both.live(&steps);
        prop_assert_eq!(&both.repeated.every, &both.rows.every);
    }

    #[test]
    fn nor_does_it_matter_with_the_rails_off_or_an_old_mistake_on(steps in steps()) {
        let undamped = ShardConfig::undamped("s", "p");
        live_through(undamped.clone(), &steps)?;
        let defect = Some(Defect::RollUpArrivalReset);
        live_through(ShardConfig { defect, ..undamped }, &steps)?;
    }
}

/// A repeat of nothing is refused, and says so.
#[test]
fn there_must_be_something_to_repeat() {
    let mut world = World::new(ShardConfig::production("s", "p"), FLEET);
    world.run(1.0);
    let session = world.connect("a", FULL);
    let repeat = |session| Event::RollUpRepeated {
        session,
        rollup_id: "r1".to_owned(),
    };
    let answers = |world: &World, session| -> Vec<(Echo, String)> {
        let frames = world.frames(session).into_iter();
        let acks = frames.filter_map(|frame| match frame {
            Frame::Ack { echo, reason, .. } => Some((*echo, reason.clone())),
            _ => None,
        });
        let of_roll_ups = |(echo, _): &(Echo, String)| {
            matches!(
                echo,
                Echo::RollUpAccepted | Echo::RollUpHeld | Echo::RollUpRejected
            )
        };
        acks.filter(of_roll_ups).collect()
    };
    world.tell(repeat(session));
    let none = "no roll-up was accepted on this session that could be repeated (RI-1)";
    let refused = (Echo::RollUpRejected, none.to_owned());
    assert_eq!(answers(&world, session).last(), Some(&refused));
    assert!(!world.core.is_cluster_ready(&cluster("a")));

    world.roll_up("a", DEMANDS[0]);
    assert_eq!(world.core.roll_ups_accepted(session), 1);
    world.tell(repeat(session));
    assert_eq!(world.core.roll_ups_accepted(session), 2);
    let accepted = (Echo::RollUpAccepted, String::new());
    assert_eq!(answers(&world, session)[1..], vec![accepted; 2]);

    // What another session said is not repeated by this one, and the old one is heard no more.
    let newer = world.connect("a", FULL);
    world.tell(repeat(newer));
    assert_eq!(answers(&world, newer), [refused]);
    let before = world.every.len();
    world.tell(repeat(session));
    assert_eq!(world.every.len(), before);
    assert_eq!(world.core.roll_ups_accepted(session), 0);
}
