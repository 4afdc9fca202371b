//! The contract, told as calls and what they lead to.

use super::*;
use crate::call::{Ack, Ask, Mutation, Refusal, Token};
use crate::event::{Created, Outcome};
use crate::list::Query;
use crate::machine::{FailureClass, TextMap};
use crate::options::{Fencing, Timeouts};
use crate::seed::tests::slot;
use bigfleet_model::{CapacityType, Host};
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

fn host(reference: &str) -> Host {
    Host {
        provider: "p".to_owned(),
        reference: reference.to_owned(),
    }
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
        let host = host("h");
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
            refused: None,
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
    let late = bench.created();
    let [
        Effect::Discarded {
            left: Some(left), ..
        },
    ] = late.as_slice()
    else {
        panic!("the host of a late create is left to nobody: {late:?}");
    };
    assert_eq!(left.host, Some(host("h")));
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
fn what_needs_no_secret_is_taken_up_again_with_its_own_id() {
    let mut bench = bench(4);
    bench.kit.options.resumes = true;
    bench.walk("m2", State::Idle);
    bench.walk("m3", State::Configured);
    bench.walk("m4", State::Idle);
    let create = bench.ask("m1", create()).unwrap().operation;
    bench.ask("m2", configure("a")).unwrap();
    let long = Ask::Drain { grace_seconds: 90 };
    let drain = bench.ask("m3", long).unwrap().operation;
    let delete = bench.ask("m4", Ask::Delete).unwrap().operation;
    let work = bench.kit.resume();
    let ids: Vec<_> = work
        .iter()
        .map(|work| Arc::clone(&work.operation))
        .collect();
    assert_eq!(ids, [create, drain, delete]);
    let grace = Duration::from_secs(90);
    assert_eq!(work[1].task, Task::Drain { grace });
    assert_eq!(bench.kit.recover(), 1, "only the configure is given up");
    assert_eq!(bench.machine("m2").state, State::Failed);
    assert_eq!(bench.machine("m1").state, State::Creating);
}

fn failed_after_create(bench: &mut Bench) {
    bench.walk("m1", State::Configured);
    bench.ask("m1", drain()).unwrap();
    bench.end(Err(Failure::permanent("stuck")));
    assert_eq!(bench.machine("m1").state, State::Failed);
}

fn clean_up(bench: &mut Bench) -> usize {
    let mut effects = Vec::new();
    let machine = id("m1");
    bench.kit.handle(Event::CleanUp { machine }, &mut effects);
    bench.kit.commit();
    let before = bench.started.len();
    for effect in effects {
        if let Effect::Start(work) = effect {
            assert_eq!(work.task, Task::CleanUp);
            bench.started.push(work);
        }
    }
    bench.started.len() - before
}

#[test]
fn a_cleaned_up_machine_is_a_slot_again_and_failed_until_then() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    let failed = bench.machine("m1");
    assert_eq!(clean_up(&mut bench), 1);
    assert_eq!(clean_up(&mut bench), 0, "one at a time");
    assert_eq!(bench.machine("m1"), failed);
    assert!(matches!(
        bench.ask("m1", create()),
        Err(Refusal::Position { .. })
    ));
    let again = bench.end(Err(Failure::new("busy")));
    assert!(matches!(again.as_slice(), [Effect::Failed(_)]), "{again:?}");
    assert_eq!(
        bench.machine("m1"),
        failed,
        "a clean-up that fails changes nothing"
    );

    assert_eq!(clean_up(&mut bench), 1);
    bench.end(Ok(None));
    let slot = bench.machine("m1");
    assert_eq!((slot.state, &slot.host), (State::Speculative, &None));
    let traces = (
        slot.cluster.as_str(),
        slot.metadata.len(),
        slot.last_error.as_str(),
    );
    assert_eq!(traces, ("", 0, ""));
    assert_eq!(slot.failure, FailureClass::Unspecified);
    assert_eq!(clean_up(&mut bench), 0, "nothing is failed any more");
    assert!(bench.ask("m1", create()).is_ok());
}

#[test]
fn a_host_that_is_not_given_back_is_idle_after_its_clean_up() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    bench.kit.options.deletes = false;
    clean_up(&mut bench);
    bench.end(Ok(None));
    let idle = bench.machine("m1");
    assert_eq!(
        (idle.state, idle.host.clone()),
        (State::Idle, Some(host("h")))
    );
    assert_eq!(idle.cluster, "");
}

#[test]
fn a_clean_up_that_was_rolled_back_can_begin_again() {
    let mut bench = bench(1);
    failed_after_create(&mut bench);
    let (mut effects, machine) = (Vec::new(), id("m1"));
    bench.kit.handle(Event::CleanUp { machine }, &mut effects);
    bench.kit.rollback();
    assert_eq!(clean_up(&mut bench), 1);
}

#[test]
fn a_strict_fence_turns_an_older_life_away_everywhere() {
    let mut bench = bench(2);
    assert!(bench.call("m1", token(5, 1), create()).is_ok());
    assert!(
        bench.call("m2", token(4, 1), create()).is_ok(),
        "off: each machine for itself"
    );
    bench.kit.options.fencing = Fencing::Strict;
    let older = bench.call("m2", token(4, 2), create());
    assert!(matches!(older, Err(Refusal::Fenced { .. })), "{older:?}");
    assert!(bench.call("m2", token(5, 2), create()).is_ok());
    let nobody = bench.ask("m2", create());
    assert!(matches!(nobody, Err(Refusal::Invalid(_))), "{nobody:?}");
    let other = Token {
        shard: "t".to_owned(),
        ..token(1, 1)
    };
    assert!(
        bench.call("m2", other, create()).is_ok(),
        "other shards have lives of their own"
    );
}

#[test]
fn a_quote_changes_the_price_and_nothing_else_and_a_bad_one_nothing() {
    let mut bench = bench(2);
    bench.walk("m1", State::Configured);
    let quote = |id: &str, price: f64, chance: f64| Quote {
        id: id.to_owned(),
        price_per_hour: price,
        interruption_probability: chance,
    };
    let mut quoted = |quotes: Vec<Quote>| {
        let mut effects = Vec::new();
        bench.kit.handle(Event::Quoted { quotes }, &mut effects);
        let changes = bench.kit.tables().pending().len();
        bench.kit.commit();
        (changes, effects.len(), bench.machine("m1"))
    };
    let (_, _, before) = quoted(Vec::new());
    let (changes, skipped, after) = quoted(vec![quote("m1", 0.5, 0.0), quote("ghost", 1.0, 0.0)]);
    assert_eq!((changes, skipped, after.offer.price_per_hour), (1, 0, 0.5));
    let mut offer = (*after.offer).clone();
    offer.price_per_hour = before.offer.price_per_hour;
    let same = Machine {
        offer: Arc::new(offer),
        ..(*after).clone()
    };
    assert_eq!(same, *before);
    assert_eq!(
        quoted(vec![quote("m1", 0.5, 0.0)]).0,
        0,
        "no change, no revision"
    );
    for bad in [
        quote("m1", f64::NAN, 0.0),
        quote("m1", 0.0, 0.0),
        quote("m1", 0.5, 2.0),
    ] {
        assert_eq!(quoted(vec![bad]), (0, 1, Arc::clone(&after)));
    }
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
