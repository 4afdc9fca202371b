//! One cluster's rows, all of them short and no two alike, in a fleet that has nothing for them: what they cost is
//! counted, because it is everybody's cycle (D-8).

use bigfleet_engine::Engine;
use bigfleet_model::Fleet;
use bigfleet_testkit::fleet;
use std::fmt::Write as _;

const ZONES: usize = 6;
const PRICES: usize = 12;
const SHAPES: usize = ZONES * PRICES;

/// In what way no two rows are alike.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Priorities,
    Requirements,
    Units,
    TopologyKeys,
    Dimensions,
    Gangs,
    Spreads,
}

impl Rows {
    const ALL: [Self; 7] = [
        Self::Priorities,
        Self::Requirements,
        Self::Units,
        Self::TopologyKeys,
        Self::Dimensions,
        Self::Gangs,
        Self::Spreads,
    ];

    /// What a row says; none is covered by so many machines.
    fn line(self, row: usize, priority: usize, machines: usize) -> String {
        match self {
            Self::Priorities => format!("cpu=8000 prio={}", priority + row),
            Self::Requirements => format!("cpu=8000 prio={priority} color=NotIn(c{row})"),
            Self::Units => format!("cpu=8000 min:cpu=1.{row:04} prio={priority} group=u{row}"),
            Self::TopologyKeys => format!("cpu=8000 prio={priority} spread=key-{row}/1"),
            Self::Dimensions => format!("gpu={} prio={}", 1 + row, priority + row),
            Self::Gangs => format!(
                "cpu={} prio={} group=g{row} zone=Same",
                1 + 4 * machines + row,
                priority + row
            ),
            Self::Spreads => format!("cpu={} prio={} spread=zone/1", 8000 + row, priority + row),
        }
    }
}

/// How the machines stand that do not help the rows, or help only the first of them.
#[derive(Clone, Copy, Debug)]
enum Machines {
    /// They serve a neighbour.
    Neighbours,
    /// They serve another row of the same cluster.
    Own,
    /// They are bound to the cluster and serve nobody.
    Loose,
    /// They drain, and it can be taken back.
    Reversible,
    /// They drain.
    Draining,
    /// They could be bought.
    Speculative,
}

impl Machines {
    const ALL: [Self; 6] = [
        Self::Neighbours,
        Self::Own,
        Self::Loose,
        Self::Reversible,
        Self::Draining,
        Self::Speculative,
    ];

    fn line(self) -> &'static str {
        match self {
            Self::Neighbours => "Configured b own=held",
            Self::Own => "Configured a own=held",
            Self::Loose => "Configured a",
            Self::Reversible => "Draining a reversible",
            Self::Draining => "Draining b",
            Self::Speculative => "Speculative",
        }
    }
}

/// So many rows in a fleet with so many machines of each shape, at a priority below or above all others.
fn crowd(rows: Rows, machines: Machines, priority: usize, count: usize, each: usize) -> Fleet {
    let mut text = String::new();
    let all = SHAPES * each;
    let holder = match machines {
        Machines::Own => "a",
        _ => "b",
    };
    let _ = writeln!(text, "need {holder} name:held cpu={} prio=1000", 4 * all);
    for shape in 0..SHAPES {
        let (zone, price) = (shape % ZONES, shape / ZONES);
        let first = shape * each;
        let last = first + each - 1;
        let _ = writeln!(
            text,
            "m{first}..m{last} {} cpu=4 $1.{price:02} zone=z{zone}",
            machines.line()
        );
    }
    for row in 0..count {
        let _ = writeln!(text, "need a {}", rows.line(row, priority, all));
    }
    fleet(&text)
}

/// Every kind of row among every kind of machine, of low and of high priority.
fn each_crowd(mut check: impl FnMut(&dyn Fn(usize, usize) -> Fleet, &str)) {
    for machines in Machines::ALL {
        for rows in Rows::ALL {
            for priority in [1, 100_000] {
                let crowd = |count, each| crowd(rows, machines, priority, count, each);
                check(
                    &crowd,
                    &format!("{rows:?} at {priority} among {machines:?}"),
                );
            }
        }
    }
}

/// Each row may look at the shapes a few times, and each machine be looked at a few times in all. Where rows looked
/// at machines it was some seven times as much here, and grew with the fleet.
#[test]
fn short_rows_cost_what_they_can_use_and_not_the_fleet() {
    const ROWS: usize = 500;
    const EACH: usize = 40;
    let bound = 5 * (ROWS + EACH) * SHAPES;
    each_crowd(|crowd, which| {
        let fleet = crowd(ROWS, EACH);
        let mut engine = Engine::new();
        engine.load(&fleet);
        let mut last = engine.work();
        for cycle in ["the first", "a later"] {
            engine.decide(fleet.now);
            let work = engine.work();
            let looks = (work.machines - last.machines) as usize;
            assert!(looks <= bound, "{which}: {looks} looks in {cycle} cycle");
            last = work;
            // Any fact of any machine brings all short rows up again.
            let mut moved = fleet.machines.values().next().cloned().unwrap();
            moved.not_ready = true;
            engine.put_machine(&moved);
        }
    });
}

#[test]
fn crowds_are_decided_as_the_oracle_does() {
    each_crowd(|crowd, which| {
        let fleet = crowd(8, 1);
        let decided = bigfleet_engine::decide(&fleet);
        assert_eq!(decided, bigfleet_oracle::decide(&fleet), "{which}");
    });
}
