//! Lists: whole, in pages, capped, and what changed.

use super::*;
use crate::list::Query;

fn ids(page: &crate::list::ListPage) -> Vec<String> {
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
