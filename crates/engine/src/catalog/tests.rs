use super::*;
use bigfleet_model::{CapacityType, Dimension, Operator, Requirement, Spread, WhenUnsatisfiable};
use bigfleet_seeded::Prng;

fn amounts(random: &mut Prng, most: usize) -> Amounts {
    let names = ["cpu", "memory", "gpu", "unheard-of"];
    let entries = names.map(|name| {
        let milli = if random.chance(0.4) {
            random.below(most)
        } else {
            0
        };
        (Dimension::new(name).unwrap(), milli as i128)
    });
    Amounts::from_entries(entries)
}

fn value(random: &mut Prng) -> String {
    ["", "a", "b", "c"][random.below(4)].to_owned()
}

const KEYS: [&str; 5] = [
    bigfleet_model::ZONE_KEY,
    bigfleet_model::CAPACITY_TYPE_KEY,
    "rack",
    "row",
    "unheard-of",
];

fn shape(random: &mut Prng) -> (Arc<Shape>, Price, Probability) {
    let labels = KEYS[..4].iter().filter(|_| random.chance(0.5));
    let labels: Vec<&str> = labels.copied().collect();
    let labels = labels
        .into_iter()
        .map(|key| (key.to_owned(), value(random)));
    let shape = Shape {
        labels: labels.collect(),
        zone: value(random),
        capacity_type: CapacityType::ALL[random.below(5)],
        resources: amounts(random, 4),
        ..Shape::default()
    };
    let price = Price::new(random.below(4) as f64).unwrap();
    let interruption = Probability::new(random.below(3) as f64 / 4.0).unwrap();
    (Arc::new(shape), price, interruption)
}

fn profile(random: &mut Prng) -> Arc<Profile> {
    let mut requirement = || {
        let key = KEYS[random.below(5)].to_owned();
        let operator = Operator::ALL[random.below(5)];
        let values = (0..random.below(4)).map(|_| value(random)).collect();
        Requirement::new(key, operator, values).unwrap()
    };
    let requirements = [requirement(), requirement()];
    let requirements = requirements.into_iter().take(random.below(3));
    let penalty = Bucket::from_number(random.below(5) as i64 * 5).unwrap();
    let (priority, none) = (random.below(3) as i32, Bucket::ZERO);
    let profile = Profile::new(requirements.collect(), vec![], priority, penalty, none);
    Arc::new(profile)
}

/// RM-2, RM-3, A-2 and B-3: whatever comes first, and however often it is settled in between.
#[test]
fn a_use_knows_the_shapes_that_serve_it_in_both_orders() {
    for seed in 0..300 {
        let mut random = Prng::new(seed);
        let mut catalog = Catalog::default();
        let mut uses: Vec<(Arc<Profile>, Amounts, UseIndex)> = Vec::new();
        for _ in 0..random.below(200) {
            match random.below(8) {
                0 => catalog.settle(),
                1 | 2 => {
                    let (profile, unit) = (profile(&mut random), amounts(&mut random, 4));
                    let index = catalog.profile(&profile);
                    uses.push((profile, unit.clone(), catalog.usage(index, &unit)));
                }
                _ => {
                    let (shape, price, interruption) = shape(&mut random);
                    catalog.shape(&shape, price, interruption);
                }
            }
        }
        catalog.settle();
        for (profile, unit, usage) in uses {
            let serving = catalog.shapes.entries();
            let serving = serving.filter(|(_, entry)| entry.shape.serves(&profile, &unit));
            let mut by_price: Vec<_> = serving.map(|(shape, _)| shape).collect();
            by_price.sort_by_key(|shape| catalog.shapes[*shape].price);
            let found: Vec<_> = catalog.by_price(usage).collect();
            assert_eq!(found, by_price, "seed {seed}: {profile:?} {unit:?}");
            for shape in catalog.shapes.indexes() {
                let serves = catalog.uses[usage].serves(shape);
                assert_eq!(serves, by_price.contains(&shape), "seed {seed}");
            }
            let penalty = profile.interruption();
            let keep = |shape: ShapeIndex| !shape.position().is_multiple_of(3);
            let kept = by_price.into_iter().filter(|shape| keep(*shape));
            let mut by_cost: Vec<_> = kept
                .map(|shape| (catalog.cost(shape, penalty), shape))
                .collect();
            by_cost.sort_by_key(|(cost, shape)| (*cost, catalog.shapes[*shape].price));
            assert_eq!(
                catalog.by_cost(usage, penalty, keep),
                by_cost,
                "seed {seed}"
            );
        }
    }
}

fn of_zones(zones: u32) -> Catalog {
    let mut catalog = Catalog::default();
    for zone in 0..zones {
        let shape = Shape {
            zone: format!("z{zone}"),
            ..Shape::default()
        };
        catalog.shape(&Arc::new(shape), Price::ZERO, Probability::ZERO);
    }
    catalog
}

#[test]
fn priorities_and_penalties_make_no_use_of_their_own() {
    let mut catalog = of_zones(3);
    for number in 0..1000 {
        let penalty = Bucket::from_number(i64::from(number % 28)).unwrap();
        let profile = Profile::new(vec![], vec![], number, penalty, Bucket::ZERO);
        let index = catalog.profile(&Arc::new(profile));
        catalog.usage(index, &Amounts::NONE);
    }
    catalog.settle();
    assert_eq!((catalog.profiles.len(), catalog.uses.len()), (1000, 1));
    assert_eq!(catalog.by_cost.len(), 28, "orders are shared");
}

#[test]
fn a_topology_key_that_no_machine_has_takes_no_room_for_machines() {
    let mut catalog = of_zones(1000);
    let mut key = |name: String| {
        let spread = Spread::new(name, 1, WhenUnsatisfiable::DoNotSchedule).unwrap();
        let profile = Profile::new(vec![], vec![spread], 0, Bucket::ZERO, Bucket::ZERO);
        let index = catalog.profile(&Arc::new(profile));
        catalog.profiles[index].spreads[0].0
    };
    let made_up: Vec<KeyIndex> = (0..1000)
        .map(|number| key(format!("key-{number}")))
        .collect();
    let zone = key(bigfleet_model::ZONE_KEY.to_owned());
    assert_eq!(key("key-7".to_owned()), made_up[7]);
    catalog.settle();
    assert!(made_up.iter().all(|key| !catalog.keys[*key].has_domains()));
    assert_eq!(catalog.keys[made_up[0]].domain(ShapeIndex::FIRST), None);
    assert_eq!(catalog.keys[zone].count(), 1000);
    let last = ShapeIndex::at(999);
    let domain = catalog.keys[zone].domain(last).unwrap();
    assert_eq!(catalog.keys[zone].value(domain), "z999");
    assert_eq!(catalog.keys[zone].domain(ShapeIndex::at(1000)), None);
}

/// What is listed for a use never takes more room than the set of all shapes does.
#[test]
fn only_few_shapes_are_listed_for_a_use() {
    let mut catalog = of_zones(640);
    let mut usage = |zones: u32| {
        let values = (0..zones).map(|zone| format!("z{zone}")).collect();
        let key = bigfleet_model::ZONE_KEY.to_owned();
        let requirement = Requirement::new(key, Operator::In, values).unwrap();
        let profile = Profile::new(vec![requirement], vec![], 0, Bucket::ZERO, Bucket::ZERO);
        let index = catalog.profile(&Arc::new(profile));
        catalog.usage(index, &Amounts::NONE)
    };
    let (few, many) = (usage(20), usage(21));
    catalog.settle();
    let listed = |usage: UseIndex| catalog.uses[usage].few.as_ref().map(|few| few.len());
    assert_eq!((listed(few), listed(many)), (Some(20), None));
    assert_eq!(catalog.by_price(few).count(), 20);
    assert_eq!(catalog.by_price(many).count(), 21);
}
