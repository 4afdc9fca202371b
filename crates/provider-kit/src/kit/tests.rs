//! The contract, told as calls and what they lead to.

use super::*;
use crate::list::Query;
use crate::seed::tests::slot;
use proptest::prelude::*;

struct Bench {
    kit: Kit,
    started: Vec<Work>,
}

fn bench(slots: usize) -> Bench {
    let options = Options {
        timeouts: Timeouts::all(Duration::from_secs(2)),
        ..Options::default()
    };
    let mut kit = Kit::new(Tables::new(0xabc), options);
    let instances: Vec<Instance> = (1..=slots)
        .map(|slots| slot(&format!("m{slots}")))
        .collect();
    kit.seed(&instances).unwrap();
    kit.commit();
    Bench {
        kit,
        started: Vec::new(),
    }
}

fn id(text: &str) -> MachineId {
    MachineId::new(text).unwrap()
}

fn token(epoch: i64, sequence: i64) -> Token {
    Token {
        shard: "s".to_owned(),
        epoch,
        sequence,
    }
}

fn create() -> Ask {
    Ask::Create {
        metadata: Arc::default(),
    }
}

fn configure(cluster: &str) -> Ask {
    let metadata = Arc::new(TextMap::from([("k\0".to_owned(), String::new())]));
    Ask::Configure {
        cluster: cluster.to_owned(),
        blob: Arc::from(*b"blob"),
        metadata,
    }
}

fn drain() -> Ask {
    Ask::Drain { grace_seconds: 0 }
}

impl Bench {
    fn call(&mut self, machine: &str, token: Token, ask: Ask) -> Result<Ack, Refusal> {
        let mut effects = Vec::new();
        let mutation = Mutation {
            machine: machine.to_owned(),
            token,
            ask,
        };
        self.kit
            .handle(Event::Mutate { call: 1, mutation }, &mut effects);
        self.kit.commit();
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Answer { answer: given, .. } => answer = Some(given),
                Effect::Start(work) => self.started.push(work),
                Effect::Discarded { .. } | Effect::Skipped(_) | Effect::Failed(_) => {}
            }
        }
        answer.expect("every call is answered")
    }

    fn ask(&mut self, machine: &str, ask: Ask) -> Result<Ack, Refusal> {
        self.call(machine, Token::default(), ask)
    }

    fn end(&mut self, outcome: Outcome) -> Vec<Effect> {
        let work = self.started.pop().expect("something was started");
        let (machine, operation) = (work.machine.id.clone(), work.operation);
        let mut effects = Vec::new();
        self.kit.handle(
            Event::Settled {
                machine,
                operation,
                outcome,
            },
            &mut effects,
        );
        self.kit.commit();
        effects
    }

    fn created(&mut self) -> Vec<Effect> {
        let host = Host {
            provider: "p".to_owned(),
            reference: "h".to_owned(),
        };
        self.end(Ok(Some(Created {
            host,
            ..Created::default()
        })))
    }

    fn walk(&mut self, machine: &str, to: State) {
        self.ask(machine, create()).unwrap();
        self.created();
        if to == State::Configured {
            self.ask(machine, configure("a")).unwrap();
            self.end(Ok(None));
        }
    }

    fn machine(&self, machine: &str) -> Arc<Machine> {
        self.kit.tables().get(machine).unwrap()
    }
}

#[test]
fn the_four_edges_and_what_each_leaves_behind() {
    let mut bench = bench(1);
    let ack = bench.ask("m1", create()).unwrap();
    assert_eq!(
        (ack.machine.state, &ack.machine.host),
        (State::Creating, &None)
    );
    bench.created();
    assert!(bench.machine("m1").host.is_some());
    let ack = bench.ask("m1", configure("a")).unwrap();
    assert_eq!(ack.machine.state, State::Configuring);
    assert_eq!(
        (ack.machine.cluster.as_str(), ack.machine.metadata.len()),
        ("a", 1)
    );
    bench.end(Ok(None));
    let ack = bench.ask("m1", drain()).unwrap();
    assert_eq!(
        (ack.machine.state, ack.machine.cluster.as_str()),
        (State::Draining, "a")
    );
    bench.end(Ok(None));
    let idle = bench.machine("m1");
    assert_eq!(
        (idle.state, idle.cluster.as_str(), idle.metadata.len()),
        (State::Idle, "", 0)
    );
    assert!(bench.ask("m1", Ask::Delete).unwrap().machine.host.is_some());
    bench.end(Ok(None));
    assert_eq!(
        (bench.machine("m1").state, &bench.machine("m1").host),
        (State::Speculative, &None)
    );
}

#[test]
fn the_fence_comes_before_existence_and_its_mark_stays() {
    let mut bench = bench(2);
    assert!(matches!(
        bench.call("ghost", token(5, 5), create()),
        Err(Refusal::NotFound(_))
    ));
    assert!(matches!(
        bench.call("ghost", token(5, 5), create()),
        Err(Refusal::Fenced { .. })
    ));
    assert!(matches!(
        bench.call("m1", token(5, 5), drain()),
        Err(Refusal::Position { .. })
    ));
    assert!(matches!(
        bench.call("m1", token(5, 4), create()),
        Err(Refusal::Fenced { .. })
    ));
    assert!(bench.call("m1", token(6, -9), create()).is_ok());
    assert!(bench.call("m2", token(0, 0), create()).is_ok());
    assert!(matches!(
        bench.call("m2", token(0, 0), create()),
        Err(Refusal::Fenced { .. })
    ));
    let most = i64::MAX;
    assert!(bench.call("m2", token(most, most), create()).is_ok());
    assert!(matches!(
        bench.call("m2", token(most, most), create()),
        Err(Refusal::Fenced { .. })
    ));
}

#[test]
fn a_bad_argument_does_not_touch_the_fence() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    let negative = Ask::Drain { grace_seconds: -5 };
    assert!(matches!(
        bench.call("m1", token(1, 1), negative),
        Err(Refusal::Invalid(_))
    ));
    assert!(matches!(
        bench.call("", token(1, 1), create()),
        Err(Refusal::Invalid(_))
    ));
    assert!(matches!(
        bench.call("m1", token(1, 1), configure("")),
        Err(Refusal::Invalid(_))
    ));
    assert!(bench.call("m1", token(1, 1), drain()).is_ok());
}

#[test]
fn a_retry_gets_the_recorded_id_and_a_new_cycle_a_new_one() {
    let mut bench = bench(1);
    let first = bench.ask("m1", create()).unwrap();
    let again = bench.ask("m1", create()).unwrap();
    assert_eq!((&again.operation, again.replayed), (&first.operation, true));
    assert_eq!(bench.started.len(), 1, "a retry starts nothing");
    bench.created();
    assert_eq!(
        bench.ask("m1", create()).unwrap().operation,
        first.operation
    );
    assert!(matches!(
        bench.ask("m1", drain()),
        Err(Refusal::Position { .. })
    ));
    bench.ask("m1", Ask::Delete).unwrap();
    bench.end(Ok(None));
    assert_ne!(
        bench.ask("m1", create()).unwrap().operation,
        first.operation
    );
}

#[test]
fn another_cluster_does_not_get_the_binding() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    assert!(matches!(
        bench.ask("m1", configure("b")),
        Err(Refusal::Bound { .. })
    ));
    assert!(bench.ask("m1", configure("a")).unwrap().replayed);
    assert_eq!(bench.machine("m1").cluster, "a");
}

#[test]
fn what_comes_after_a_timeout_is_discarded() {
    let mut bench = bench(1);
    let operation = bench.ask("m1", create()).unwrap().operation;
    let mut effects = Vec::new();
    bench.kit.handle(
        Event::TimedOut {
            machine: id("m1"),
            operation,
        },
        &mut effects,
    );
    bench.kit.commit();
    let failed = bench.machine("m1");
    assert!(
        failed.last_error.contains("create timed out"),
        "{}",
        failed.last_error
    );
    assert!(matches!(
        bench.created().as_slice(),
        [Effect::Discarded { .. }]
    ));
    assert_eq!(bench.machine("m1"), failed);
    for ask in [create(), configure("a"), drain(), Ask::Delete] {
        assert!(matches!(
            bench.ask("m1", ask),
            Err(Refusal::Position { .. })
        ));
    }
    assert_eq!(bench.machine("m1"), failed);
}

#[test]
fn a_create_without_a_usable_host_fails() {
    let mut bench = bench(1);
    bench.ask("m1", create()).unwrap();
    bench.end(Ok(Some(Created::default())));
    assert_eq!(bench.machine("m1").state, State::Failed);
    assert!(bench.machine("m1").last_error.contains("no usable host"));
}

#[test]
fn an_interrupted_transition_comes_back_failed_and_says_so() {
    let mut bench = bench(2);
    bench.walk("m1", State::Idle);
    bench.ask("m1", configure("a")).unwrap();
    assert_eq!(bench.kit.recover(), 1);
    let failed = bench.machine("m1");
    assert!(
        failed.last_error.contains("configure was interrupted"),
        "{}",
        failed.last_error
    );
    assert_eq!(bench.machine("m2").state, State::Speculative);
}

#[test]
fn bare_metal_is_never_deleted_and_a_provider_may_not_delete_at_all() {
    let mut bench = bench(1);
    let mut metal = slot("metal");
    Arc::make_mut(&mut metal.offer).capacity_type = CapacityType::BareMetal;
    metal.host = Some(Host {
        provider: "p".to_owned(),
        reference: "r".to_owned(),
    });
    bench.kit.seed(&[metal]).unwrap();
    assert!(matches!(
        bench.ask("metal", Ask::Delete),
        Err(Refusal::Unsupported(_))
    ));
    assert!(matches!(
        bench.ask("ghost", Ask::Delete),
        Err(Refusal::NotFound(_))
    ));
    bench.kit.options.deletes = false;
    assert!(matches!(
        bench.ask("ghost", Ask::Delete),
        Err(Refusal::Unsupported(_))
    ));
    assert!(matches!(
        bench.ask("", Ask::Delete),
        Err(Refusal::Invalid(_))
    ));
}

fn describe(bench: &mut Bench, instances: &[Instance]) -> usize {
    let (instances, as_of) = (instances.to_vec(), bench.kit.tables().head());
    let mut effects = Vec::new();
    bench
        .kit
        .handle(Event::Described { instances, as_of }, &mut effects);
    let changes = bench.kit.tables().pending().len();
    bench.kit.commit();
    changes
}

#[test]
fn reconcile_refreshes_adds_and_needs_two_misses_to_let_go() {
    let mut bench = bench(2);
    assert_eq!(
        describe(&mut bench, &[slot("m1"), slot("m2")]),
        0,
        "no change, no write"
    );
    let mut dearer = slot("m1");
    Arc::make_mut(&mut dearer.offer).price_per_hour = 9.0;
    Arc::make_mut(&mut dearer.offer).instance_type = "other".to_owned();
    assert_eq!(describe(&mut bench, &[dearer.clone(), slot("m3")]), 2);
    let machine = bench.machine("m1");
    assert_eq!(
        (
            machine.offer.price_per_hour,
            machine.offer.instance_type.as_str()
        ),
        (9.0, "m")
    );
    assert_eq!(
        bench.machine("m2").state,
        State::Speculative,
        "one miss proves nothing"
    );
    describe(&mut bench, &[]);
    assert!(
        bench.kit.tables().get("m2").is_ok(),
        "an empty inventory proves nothing"
    );
    describe(&mut bench, &[dearer.clone(), slot("m3")]);
    describe(&mut bench, &[dearer, slot("m3")]);
    assert!(bench.kit.tables().get("m2").is_err());
}

#[test]
fn a_host_the_substrate_lost_fails_its_machine() {
    let mut bench = bench(1);
    bench.walk("m1", State::Configured);
    describe(&mut bench, &[slot("m1")]);
    assert_eq!(bench.machine("m1").state, State::Configured);
    describe(&mut bench, &[slot("m1")]);
    assert!(bench.machine("m1").last_error.contains("host lost"));
}

fn ids(page: &crate::list::Page) -> Vec<String> {
    page.machines
        .iter()
        .map(|machine| machine.id.to_string())
        .collect()
}

#[test]
fn threading_capped_cursors_misses_nothing_even_while_machines_move() {
    let mut bench = bench(7);
    for rotation in 0..7 {
        let mut query = Query {
            max_results: 3,
            rotation,
            ..Query::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = bench.kit.tables().list(&query).unwrap();
            assert!(page.machines.len() <= 3);
            if page.machines.is_empty() {
                break;
            }
            seen.extend(ids(&page));
            query.since = page.revision;
        }
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!((seen.len(), once.len()), (7, 7), "{seen:?}");
    }
    let first = bench
        .kit
        .tables()
        .list(&Query {
            max_results: 3,
            ..Query::default()
        })
        .unwrap();
    bench.ask("m1", create()).unwrap();
    let mut query = Query {
        since: first.revision,
        ..Query::default()
    };
    let rest = bench.kit.tables().list(&query).unwrap();
    query.since = rest.revision;
    assert_eq!(ids(&bench.kit.tables().list(&query).unwrap()), ["m1"]);
}

#[test]
fn pages_name_every_machine_and_end() {
    let mut bench = bench(5);
    let mut query = Query {
        page_size: 2,
        ..Query::default()
    };
    let mut seen = Vec::new();
    for last in [false, false, true] {
        let page = bench.kit.tables().list(&query).unwrap();
        assert_eq!(
            (page.is_full, page.total, page.next_page.is_empty()),
            (true, 5, last)
        );
        assert_eq!(page.revision, bench.kit.tables().cursor());
        seen.extend(ids(&page));
        query.page_token = page.next_page;
    }
    seen.sort();
    assert_eq!(seen, ["m1", "m2", "m3", "m4", "m5"]);
    query.page_token = b"junk".to_vec();
    assert!(matches!(
        bench.kit.tables().list(&query),
        Err(Refusal::Invalid(_))
    ));
    let since = bench.kit.tables().cursor();
    let mut effects = Vec::new();
    bench
        .kit
        .handle(Event::Vanished { machine: id("m3") }, &mut effects);
    let query = Query {
        since,
        removed: true,
        ..Query::default()
    };
    assert_eq!(bench.kit.tables().list(&query).unwrap().removed, [id("m3")]);
}

#[test]
fn a_capped_listing_starts_somewhere_else_each_time() {
    let bench = bench(4);
    let first = |rotation| {
        let query = Query {
            max_results: 1,
            rotation,
            states: Some(vec![State::Speculative]),
            ..Query::default()
        };
        ids(&bench.kit.tables().list(&query).unwrap())
    };
    assert_eq!([first(0), first(1), first(2)], [["m1"], ["m2"], ["m3"]]);
}

proptest! {
    /// What a store that fails at random times leaves behind is what the acknowledged calls made.
    #[test]
    fn a_rolled_back_call_never_happened(calls in proptest::collection::vec(
        (1..4_usize, 0..4_usize, 0..4_i64, any::<bool>()), 1..40,
    )) {
        let mut real = bench(3);
        let mut twin = bench(3);
        for (machine, ask, sequence, stored) in calls {
            let ask = [create(), configure("a"), drain(), Ask::Delete][ask].clone();
            let (machine, token) = (format!("m{machine}"), token(1, sequence));
            let mutation = Mutation { machine, token, ask };
            let mut effects = Vec::new();
            real.kit.handle(Event::Mutate { call: 0, mutation: mutation.clone() }, &mut effects);
            match stored {
                true => {
                    real.kit.commit();
                    twin.kit.handle(Event::Mutate { call: 0, mutation }, &mut effects);
                    twin.kit.commit();
                }
                false => real.kit.rollback(),
            }
        }
        let all = |bench: &Bench| bench.kit.tables().snapshot().collect::<Vec<_>>();
        prop_assert_eq!(all(&real), all(&twin));
        prop_assert_eq!(real.kit.tables().cursor(), twin.kit.tables().cursor());
    }
}
