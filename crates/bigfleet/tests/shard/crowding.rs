//! An operator that says as much as it may, all of it different and none of it to be had: everybody else is decided
//! about as before (D-7, D-8).

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1 as wire;

use crate::shard_scene::operator::{Heard, Manner, cpus, row};
use crate::shard_scene::scene::Scene;

const ROWS: usize = 10_000;
/// Each short row looked at each of them.
const MACHINES: usize = 400;

/// In what way no two rows are alike.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Priorities,
    Requirements,
    Units,
    TopologyKeys,
    Gangs,
}

impl Rows {
    const ALL: [Self; 5] = [
        Self::Priorities,
        Self::Requirements,
        Self::Units,
        Self::TopologyKeys,
        Self::Gangs,
    ];

    /// Rows of this kind, each for two machines of priorities below the neighbour's.
    fn said(self) -> Vec<wire::CapacityNeed> {
        let said = (0..ROWS).map(|number| {
            let mut need = row(8, -1, "");
            match self {
                Self::Priorities => need.priority = -1 - number as i32,
                Self::Requirements => need = row(8, -1, &format!("r{number}")),
                Self::Units => {
                    let unit = format!("{}m", 3000 + number / 10);
                    need.min_unit.insert("cpu".to_owned(), unit);
                    need.group = format!("g{number}");
                }
                Self::TopologyKeys => need.spread.push(wire::TopologySpread {
                    topology_key: format!("key-{number}"),
                    max_skew: 1,
                    when_unsatisfiable: wire::topology_spread::WhenUnsatisfiable::DoNotSchedule
                        .into(),
                }),
                Self::Gangs => {
                    need = row(8 + number, -1, "");
                    need.group = format!("g{number}");
                    need.requirements.push(wire::NodeSelectorRequirement {
                        key: "topology.kubernetes.io/zone".to_owned(),
                        operator: wire::node_selector_requirement::Operator::Same.into(),
                        values: Vec::new(),
                    });
                }
            }
            need
        });
        said.collect()
    }
}

fn acknowledged(heard: &Heard) -> usize {
    heard.acks.iter().filter(|ack| ack.echo == "rollup").count()
}

#[tokio::test]
async fn ten_thousand_rows_of_one_operator_do_not_slow_another() {
    let scene = Scene::new("crowding", MACHINES, 0).await;
    let neighbour = scene.operator("neighbour", Manner::Plain).await;
    neighbour.needs(vec![cpus(MACHINES)]).await;
    neighbour.has(MACHINES).await;
    let crowd = scene.operator("crowd", Manner::Plain).await;
    for (freed, rows) in Rows::ALL.into_iter().enumerate() {
        crowd.needs(rows.said()).await;
        crowd
            .sees("an acknowledgement", |heard| freed < acknowledged(heard))
            .await;
        // The cycle that decides about this waits for the one that decides about all of those.
        let asked = Instant::now();
        neighbour.needs(vec![cpus(MACHINES - freed - 1)]).await;
        neighbour
            .sees("an instruction", |heard| freed < heard.instructions.len())
            .await;
        let took = asked.elapsed();
        println!("{rows:?}: {} ms", took.as_millis());
        assert!(took < Duration::from_secs(2), "{rows:?}: {took:?}");
    }
}
