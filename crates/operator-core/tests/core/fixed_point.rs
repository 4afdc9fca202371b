//! The operator with a scheduler that places Pods and a shard that buys what rows ask for: no Pod that some machine could host
//! stays pending, raises and lowerings end, and then nothing moves any more (operator.md §5).
//!
//! The scheduler fills the emptiest Node first, as Kubernetes does by default. The shard is the simplest one that keeps its
//! promises: sums for plain rows, whole units for spares, the emptiest machine goes first.

use crate::support::{World, amounts, config, node, pod, request};
use bigfleet_operator_core::{
    Defect, Frame, Heard, MachineState, OperatorConfig, RequestStatus, RowStatus, Stuck,
    StuckReason,
};
use bigfleet_seeded::Prng;
use std::{collections::BTreeMap, time::Duration};

const NODE_MILLI: i128 = 3_800;
const ARRIVES_AFTER: Duration = Duration::from_secs(40);

#[derive(Clone, Debug)]
struct Pod {
    milli: i128,
    node: Option<String>,
    waits_since: bigfleet_model::Time,
    reason: StuckReason,
    /// Whether no Node may have two such Pods.
    is_apart: bool,
    /// Whether no Node will ever do.
    is_hopeless: bool,
}

#[derive(Clone, Debug)]
struct Machine {
    group: String,
    arrives: bigfleet_model::Time,
    is_there: bool,
    is_leaving: bool,
}

struct Fleet {
    world: World,
    config: OperatorConfig,
    pods: BTreeMap<String, Pod>,
    machines: BTreeMap<String, Machine>,
    bought: u64,
    actions: u64,
    is_supply_out: bool,
}

impl Fleet {
    fn new(config: OperatorConfig) -> Self {
        Self {
            world: World::started(config.clone()),
            config,
            pods: BTreeMap::new(),
            machines: BTreeMap::new(),
            bought: 0,
            actions: 0,
            is_supply_out: false,
        }
    }

    fn add(&mut self, name: &str, milli: i128) {
        let pod = Pod {
            milli,
            node: None,
            waits_since: self.world.now,
            reason: StuckReason::Insufficient,
            is_apart: false,
            is_hopeless: false,
        };
        self.add_pod(name, pod);
    }

    fn add_pod(&mut self, name: &str, pod: Pod) {
        let mut facts = request(name, &format!("{}m", pod.milli));
        facts.created = self.world.now;
        self.world.add_request(facts);
        self.pods.insert(name.to_owned(), pod);
    }

    fn remove(&mut self, name: &str) {
        self.pods.remove(name);
        self.world.owners.remove(&format!("pod-{name}"));
        self.world.remove_request(name);
    }

    fn used(&self, node: &str) -> i128 {
        let on = self
            .pods
            .values()
            .filter(|pod| pod.node.as_deref() == Some(node));
        on.map(|pod| pod.milli).sum()
    }

    fn pods_on(&self, node: &str) -> usize {
        self.pods
            .values()
            .filter(|pod| pod.node.as_deref() == Some(node))
            .count()
    }

    fn step(&mut self) {
        self.buy();
        self.arrive();
        self.leave();
        self.schedule();
        self.show();
        self.world.run_for(10);
        self.evicted();
    }

    fn run(&mut self, minutes: u64) {
        (0..minutes * 6).for_each(|_| self.step());
    }

    /// What the last roll-up asks for, in machines per row.
    fn asked(&self) -> BTreeMap<String, (String, u64, u64)> {
        let mut asked = BTreeMap::new();
        for row in self.world.last_rows() {
            let (sum, unit) = (row.aggregate.get("cpu"), row.min_unit.get("cpu"));
            let count = if row.whole_units {
                sum / unit
            } else {
                (sum + NODE_MILLI - 1) / NODE_MILLI
            };
            let fits = unit <= NODE_MILLI;
            let fingerprint = row.profile.fingerprint().to_string();
            // What no machine can be is asked for in vain, and missing.
            let (count, missing) = if fits {
                (count as u64, 0)
            } else {
                (0, count as u64)
            };
            asked.insert(row.group.to_string(), (fingerprint, count, missing));
        }
        asked
    }

    fn have(&self, group: &str) -> u64 {
        let of = self
            .machines
            .values()
            .filter(|machine| machine.group == group && !machine.is_leaving);
        of.count() as u64
    }

    fn buy(&mut self) {
        let asked = self.asked();
        for (group, (_, count, _)) in &asked {
            while self.have(group) < *count && !self.is_supply_out {
                self.bought += 1;
                self.actions += 1;
                let name = format!("m{:03}", self.bought);
                let machine = Machine {
                    group: group.clone(),
                    arrives: self.world.now + ARRIVES_AFTER,
                    is_there: false,
                    is_leaving: false,
                };
                self.machines.insert(name.clone(), machine);
                self.world.machine_is(&name, MachineState::Configuring);
            }
        }
        let groups: Vec<String> = self
            .machines
            .values()
            .map(|machine| machine.group.clone())
            .collect();
        for group in groups {
            let count = asked.get(&group).map_or(0, |asked| asked.1);
            if count < self.have(&group) && self.machines.values().all(|machine| machine.is_there) {
                self.release(&group);
            }
        }
        let mut rows = Vec::new();
        for (group, (fingerprint, count, never)) in &asked {
            let missing = count.saturating_sub(self.have(group)) + never;
            let of_row = self
                .machines
                .values()
                .filter(|machine| machine.group == *group);
            let coming = of_row.filter(|machine| !machine.is_there).count();
            rows.push(RowStatus {
                fingerprint: fingerprint.clone(),
                group: group.clone(),
                serving: amounts(&[]),
                coming: amounts(&[("cpu", &coming.to_string())]),
                stuck: amounts(&[]),
                missing: amounts(&[("cpu", &missing.to_string())]),
                reason: "Waiting".to_owned(),
                sentence: "a machine is on its way".to_owned(),
            });
        }
        let is_complete = true;
        self.world.hear(Heard::NeedStatus { rows, is_complete });
    }

    /// The emptiest machine of all goes, and whoever had it takes the one of the row that shrinks.
    fn release(&mut self, group: &str) {
        let there = self
            .machines
            .iter()
            .filter(|(_, machine)| machine.is_there && !machine.is_leaving);
        let emptiest =
            there.min_by_key(|(name, _)| (self.pods_on(&name.replace('m', "n")), (*name).clone()));
        let Some(emptiest) = emptiest.map(|(name, _)| name.clone()) else {
            return;
        };
        let other = self.machines[&emptiest].group.clone();
        if other != group {
            let swapped = self
                .machines
                .values_mut()
                .find(|machine| machine.group == group && !machine.is_leaving);
            if let Some(swapped) = swapped {
                swapped.group = other;
            }
        }
        self.actions += 1;
        if let Some(machine) = self.machines.get_mut(&emptiest) {
            machine.is_leaving = true;
        }
        self.world
            .reclaim(&format!("i{}", self.actions), &emptiest, true, 600);
    }

    fn arrive(&mut self) {
        let now = self.world.now;
        let due = self
            .machines
            .iter_mut()
            .filter(|(_, machine)| !machine.is_there && machine.arrives <= now);
        let due: Vec<String> = due
            .map(|(name, machine)| {
                machine.is_there = true;
                name.clone()
            })
            .collect();
        for name in due {
            let mut facts = node(&name.replace('m', "n"), &name);
            facts.allocatable = amounts(&[("cpu", "3.8"), ("memory", "15Gi")]);
            (facts.created, facts.ready_since) = (now, now);
            self.world.put_node(facts);
            self.world.machine_is(&name, MachineState::Configured);
        }
    }

    fn leave(&mut self) {
        let leaving = self
            .machines
            .iter()
            .filter(|(_, machine)| machine.is_leaving);
        let leaving: Vec<String> = leaving.map(|(name, _)| name.clone()).collect();
        for name in leaving {
            let node = name.replace('m', "n");
            if self.pods_on(&node) == 0
                && self
                    .world
                    .nodes
                    .get(&node)
                    .is_none_or(|node| node.is_cordoned)
            {
                self.machines.remove(&name);
                self.world.machine_is(&name, MachineState::Idle);
                self.world.lose_node(&node);
            }
        }
    }

    fn schedule(&mut self) {
        let waiting: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.node.is_none() && !pod.is_hopeless)
            .map(|(name, _)| name.clone())
            .collect();
        for name in waiting {
            let pod = self.pods[&name].clone();
            let open = self
                .world
                .nodes
                .values()
                .filter(|node| node.is_ready && !node.is_cordoned);
            let fits = open.map(|node| node.name.clone()).filter(|node| {
                let is_taken = |other: &Pod| other.is_apart && other.node.as_ref() == Some(node);
                let is_apart = pod.is_apart && self.pods.values().any(is_taken);
                self.used(node) + pod.milli <= NODE_MILLI && !is_apart
            });
            let chosen = fits.min_by_key(|node| (self.used(node), node.clone()));
            if let Some(pod) = self.pods.get_mut(&name) {
                pod.node = chosen;
            }
        }
    }

    /// What the pod controller would say: who is stuck, which Nodes are empty.
    fn show(&mut self) {
        let now = self.world.now;
        for (name, pod) in &self.pods {
            let key = bigfleet_operator_core::ObjectKey::namespaced("ns", name);
            let Some(facts) = self.world.requests.get(&key).cloned() else {
                continue;
            };
            let is_late = pod.node.is_none()
                && Duration::from_secs(30) <= now.duration_since(pod.waits_since);
            let stuck = is_late.then_some(Stuck {
                since: pod.waits_since,
                reason: pod.reason,
            });
            let before = facts.status.as_ref().and_then(|status| status.stuck);
            if before.is_some() != stuck.is_some() {
                let mut facts = facts;
                let status = facts.status.get_or_insert_with(RequestStatus::default);
                status.stuck = stuck;
                self.world.add_request(facts);
            }
        }
        let nodes: Vec<String> = self.world.nodes.keys().cloned().collect();
        for name in nodes {
            let on = self
                .pods
                .iter()
                .filter(|(_, pod)| pod.node.as_deref() == Some(name.as_str()));
            let on: Vec<_> = on.map(|(pod_name, _)| pod(pod_name)).collect();
            let is_empty = on.is_empty();
            self.world.pods.insert(name.clone(), on);
            self.world.show_pods(&name);
            if self.world.nodes[&name].empty_since.is_some() != is_empty {
                self.world
                    .change_node(&name, |node| node.empty_since = is_empty.then_some(now));
            }
        }
    }

    /// An evicted Pod's successor is another Pod with another request.
    fn evicted(&mut self) {
        for (_, uid) in std::mem::take(&mut self.world.evicted) {
            let name = uid.trim_start_matches("uid-").to_owned();
            if let Some(mut pod) = self.pods.get(&name).cloned() {
                self.remove(&name);
                (pod.node, pod.waits_since) = (None, self.world.now);
                self.add_pod(&format!("{name}r"), pod);
            }
        }
    }

    fn stranded(&self) -> usize {
        self.pods
            .values()
            .filter(|pod| pod.node.is_none() && !pod.is_hopeless)
            .count()
    }

    fn raises(&self) -> u64 {
        self.world.core.counters().spare_changes[0]
    }

    /// Whether nothing moves for two hours.
    fn is_quiet(&mut self) -> bool {
        let (actions, changes) = (self.actions, self.world.core.counters().spare_changes);
        self.run(120);
        actions == self.actions && changes == self.world.core.counters().spare_changes
    }

    fn spare_rows(&self) -> Vec<String> {
        self.world
            .last_roll_up()
            .into_iter()
            .filter(|row| row.starts_with("spare:"))
            .collect()
    }
}

fn ten_threes(config: OperatorConfig) -> Fleet {
    let mut fleet = Fleet::new(config);
    (0..10).for_each(|n| fleet.add(&format!("p{n}"), 3_000));
    fleet
}

/// EX-OP15: eight machines cover thirty cpus and leave two of ten Pods out; two spares later all run, for ever.
#[test]
fn ex_op15_ten_threes_on_machines_of_four_all_run() {
    let mut fleet = ten_threes(config());
    fleet.run(1);
    assert_eq!((fleet.machines.len(), fleet.stranded()), (8, 2));
    fleet.run(15);
    assert_eq!(
        (fleet.machines.len(), fleet.stranded(), fleet.raises()),
        (10, 0, 2)
    );
    let rows = fleet.spare_rows();
    assert_eq!(rows.len(), 1);
    assert!(
        rows[0].starts_with("spare:3.6-13.6Gi: {\"cpu\": \"7200m\""),
        "{rows:?}"
    );
    assert!(rows[0].ends_with("whole"));
    assert!(fleet.is_quiet());
}

/// EX-OP16: a Pod whose row grows by a machine raises nothing.
#[test]
fn ex_op16_demand_that_the_row_itself_covers_raises_nothing() {
    let mut fleet = ten_threes(config());
    fleet.run(20);
    fleet.add("one", 1_000);
    fleet.run(20);
    assert_eq!(
        (fleet.machines.len(), fleet.stranded(), fleet.raises()),
        (11, 0, 2)
    );
    assert!(fleet.is_quiet());
}

/// EX-OP17: Pods that no Node helps end as unplaceable and cost nothing; Pods that need a Node each get it.
#[test]
fn ex_op17_what_no_machine_helps_is_given_up_and_pods_apart_get_nodes() {
    for (reason, most) in [(StuckReason::Other, 0), (StuckReason::Insufficient, 2)] {
        let mut fleet = Fleet::new(config());
        fleet.add("runs", 1_000);
        fleet.run(5);
        for n in 0..3 {
            let pod = Pod {
                milli: 100,
                node: None,
                waits_since: fleet.world.now,
                reason,
                is_apart: false,
                is_hopeless: true,
            };
            fleet.add_pod(&format!("never{n}"), pod);
        }
        fleet.run(240);
        assert!(fleet.raises() <= most, "{} raises", fleet.raises());
        if reason == StuckReason::Insufficient {
            assert_eq!(fleet.world.core.unplaceable(), 3);
        }
        assert_eq!(fleet.spare_rows(), [] as [String; 0], "taken back");
        fleet.world.restart(fleet.config.clone());
        assert!(fleet.is_quiet(), "also over a restart");
    }
    let mut fleet = Fleet::new(config());
    for n in 0..8 {
        let pod = Pod {
            milli: 100,
            node: None,
            waits_since: fleet.world.now,
            reason: StuckReason::Alone,
            is_apart: true,
            is_hopeless: false,
        };
        fleet.add_pod(&format!("apart{n}"), pod);
    }
    fleet.run(120);
    assert_eq!(
        (fleet.stranded(), fleet.machines.len(), fleet.raises()),
        (0, 8, 7)
    );
    assert!(fleet.is_quiet());
}

/// EX-OP18: what is on its way is waited for.
#[test]
fn ex_op18_a_machine_that_is_coming_is_waited_for() {
    let mut fleet = ten_threes(config());
    fleet.run(1);
    assert_eq!(fleet.raises(), 0, "they have just arrived");
    fleet.world.machine_is("m900", MachineState::Configuring);
    fleet.run(10);
    assert_eq!(fleet.raises(), 0);
    fleet.world.machine_is("m900", MachineState::Idle);
    fleet.run(10);
    assert_eq!(fleet.stranded(), 0);
}

/// EX-OP22: a record survives a process, its loss costs nothing, an unreadable one says nothing, and a raise nobody could serve waits.
#[test]
fn ex_op22_a_record_survives_and_its_loss_buys_nothing() {
    let mut fleet = ten_threes(config());
    fleet.run(20);
    let actions = fleet.actions;
    let config = fleet.config.clone();
    fleet.world.restart(config.clone());
    fleet.run(30);
    assert_eq!((fleet.actions, fleet.stranded()), (actions, 0));
    fleet.world.spare_record = None;
    fleet.world.restart(config.clone());
    fleet.run(60);
    assert_eq!((fleet.actions, fleet.stranded()), (actions, 0));
    fleet.world.spare_record = Some("nonsense".to_owned());
    fleet.world.frames.clear();
    fleet.world.restart(config);
    fleet.world.run_for(120);
    assert!(
        !fleet
            .world
            .frames
            .iter()
            .any(|(_, frame)| matches!(frame, Frame::RollUp { .. }))
    );

    let mut fleet = ten_threes(self::config());
    fleet.run(2);
    fleet.is_supply_out = true;
    fleet.run(240);
    assert_eq!(
        (fleet.raises(), fleet.world.core.unplaceable()),
        (2, 0),
        "never doubted"
    );
    fleet.is_supply_out = false;
    fleet.run(30);
    assert_eq!(fleet.stranded(), 0);
    assert!(fleet.is_quiet());
}

/// EX-OP20 in a cluster: what is empty is given back, and a raise at the same sum bars the next lowering.
#[test]
fn ex_op20_empty_nodes_are_given_back_and_it_comes_to_rest() {
    let mut fleet = ten_threes(config());
    fleet.run(20);
    (0..6).for_each(|n| fleet.remove(&format!("p{n}")));
    fleet.run(240);
    assert_eq!(fleet.stranded(), 0);
    assert!(
        fleet.machines.len() <= 5,
        "{} machines for four Pods",
        fleet.machines.len()
    );
    assert!(fleet.is_quiet());
}

/// Mixed Pods that come and go, with a seed: nobody is stranded and it comes to rest.
fn mixed(seed: u64, config: OperatorConfig) -> (usize, bool) {
    let mut prng = Prng::new(seed);
    let mut fleet = Fleet::new(config);
    for n in 0..24 {
        let milli = [250, 500, 1_000, 1_500, 2_000, 3_000][prng.below(6)];
        fleet.add(&format!("a{n:02}"), milli);
    }
    fleet.run(90);
    for n in 0..24 {
        if prng.percent(40) {
            fleet.remove(&format!("a{n:02}"));
        }
    }
    fleet.run(60);
    for n in 0..8 {
        fleet.add(&format!("b{n:02}"), [500, 2_500, 3_500][prng.below(3)]);
    }
    fleet.run(360);
    (fleet.stranded(), fleet.is_quiet())
}

#[test]
fn mixed_pods_all_run_and_then_nothing_moves() {
    for seed in 0..6 {
        assert_eq!(mixed(seed, config()), (0, true), "seed {seed}");
    }
}

#[test]
fn pods_that_need_a_node_each_are_stranded_if_only_room_is_seen() {
    let mut fleet = Fleet::new(OperatorConfig {
        defect: Some(Defect::AloneIgnored),
        ..config()
    });
    for n in 0..4 {
        let pod = Pod {
            milli: 100,
            node: None,
            waits_since: fleet.world.now,
            reason: StuckReason::Alone,
            is_apart: true,
            is_hopeless: false,
        };
        fleet.add_pod(&format!("apart{n}"), pod);
    }
    fleet.run(60);
    assert_eq!(fleet.stranded(), 3);
}

#[test]
fn a_machine_that_is_coming_is_bought_twice_if_nobody_looks() {
    let mut fleet = ten_threes(OperatorConfig {
        defect: Some(Defect::ComingIgnored),
        ..config()
    });
    fleet.run(1);
    fleet.world.machine_is("m900", MachineState::Configuring);
    fleet.run(10);
    assert!(0 < fleet.raises());
}

#[test]
fn a_roll_up_that_leaves_before_its_record_is_lost_with_its_process() {
    let early = |defect| {
        let mut fleet = ten_threes(OperatorConfig { defect, ..config() });
        fleet.run(1);
        fleet.world.holds_writes = true;
        fleet.run(10);
        !fleet.spare_rows().is_empty()
    };
    assert_eq!(
        (early(None), early(Some(Defect::SpareNotRecordedFirst))),
        (false, true)
    );
}

#[test]
fn what_did_not_help_is_paid_for_if_it_is_not_taken_back() {
    let left = |defect| {
        let mut fleet = Fleet::new(OperatorConfig { defect, ..config() });
        fleet.add("runs", 1_000);
        fleet.run(5);
        let pod = Pod {
            milli: 100,
            node: None,
            waits_since: fleet.world.now,
            reason: StuckReason::Insufficient,
            is_apart: false,
            is_hopeless: true,
        };
        fleet.add_pod("never", pod);
        fleet.run(9);
        fleet.spare_rows().len()
    };
    let rows = (left(None), left(Some(Defect::DoubtKept)));
    assert_eq!(
        rows,
        (1, 2),
        "twice the bin, and with the mistake the bin as well"
    );
}
