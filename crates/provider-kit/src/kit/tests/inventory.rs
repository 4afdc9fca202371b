//! What the provider learns of its cloud without being asked: prices, machines that come and go.

use super::*;

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
