//! Random walks: crashes, lost sessions, instructions, cancels, returns, Nodes that go silent, in any order.
//!
//! An independent ledger watches: no Pod is evicted without an instruction that was heard by the living process and not
//! taken back, and when all is over no Node is cordoned that nobody drains.

use crate::support::{World, config};
use bigfleet_operator_core::{Defect, MachineState, OperatorConfig};
use bigfleet_seeded::Prng;
use std::collections::{BTreeMap, BTreeSet};

const MACHINES: usize = 4;

#[derive(Default)]
struct Ledger {
    /// Instructions the living process heard, by Node.
    heard: BTreeMap<String, String>,
    orders: u64,
}

/// What went wrong in one walk, if anything did.
fn walk(seed: u64, config: &OperatorConfig) -> Option<String> {
    let mut prng = Prng::new(seed);
    let mut world = World::started(config.clone());
    let mut ledger = Ledger::default();
    let mut persons: BTreeSet<String> = BTreeSet::new();
    for number in 0..MACHINES {
        world.serve(number, &[&format!("p{number}a"), &format!("p{number}b")]);
    }
    for _ in 0..60 {
        let number = prng.below(MACHINES);
        let (machine, node) = (format!("m{number}"), format!("n{number}"));
        let evicted_before = world.evicted.len();
        let nodes_of: BTreeMap<String, String> = world
            .pods
            .iter()
            .flat_map(|(node, pods)| pods.iter().map(move |pod| (pod.uid.clone(), node.clone())))
            .collect();
        match prng.below(11) {
            0 | 1 => {
                if world.session.is_some() && world.machines.contains_key(&machine) {
                    ledger.orders += 1;
                    let instruction = format!("i{}", ledger.orders);
                    ledger.heard.insert(node.clone(), instruction.clone());
                    world.reclaim(&instruction, &machine, prng.percent(50), 300);
                }
            }
            2 => {
                if let Some(instruction) = ledger.heard.get(&node).cloned()
                    && world.session.is_some()
                {
                    world
                        .machines
                        .insert(machine.clone(), MachineState::Configured);
                    world.cancel(&instruction);
                    ledger.heard.remove(&node);
                }
            }
            3 => {
                // The shard takes it back while nobody listens.
                world.is_shard_up = false;
                world.lose_session();
                if world.machines.contains_key(&machine) {
                    world
                        .machines
                        .insert(machine.clone(), MachineState::Configured);
                }
            }
            4 => {
                ledger.heard.clear();
                world.restart(config.clone());
            }
            5 => world.is_shard_up = true,
            6 => {
                if world.session.is_some() {
                    world.machine_is(&machine, MachineState::Idle);
                    ledger.heard.remove(&node);
                }
            }
            7 => {
                // It returns under its name: a new Node, or the one that was left.
                if world.session.is_some() && !world.machines.contains_key(&machine) {
                    if !world.nodes.contains_key(&node) {
                        world.serve(number, &[&format!("p{number}a")]);
                    }
                    world.machine_is(&machine, MachineState::Configured);
                }
            }
            8 => {
                if world.nodes.contains_key(&node) && !world.nodes[&node].is_cordoned {
                    persons.insert(node.clone());
                    world.change_node(&node, |node| node.is_cordoned = true);
                }
            }
            9 => {
                if world.nodes.contains_key(&node) {
                    let now = world.now;
                    let is_ready = !world.nodes[&node].is_ready;
                    world.change_node(&node, |node| {
                        (node.is_ready, node.ready_since) = (is_ready, now)
                    });
                }
            }
            _ => {}
        }
        world.run_for(prng.below(90) as u64);
        for (_, uid) in &world.evicted[evicted_before..] {
            let node = nodes_of.get(uid).cloned().unwrap_or_default();
            if !ledger.heard.contains_key(&node) {
                return Some(format!(
                    "{uid} was evicted from {node} without an instruction"
                ));
            }
        }
        persons.retain(|node| world.nodes.contains_key(node));
        for node in &persons {
            if !world.nodes[node].is_cordoned {
                return Some(format!("{node} is no longer cordoned as a person wants it"));
            }
        }
    }
    // All is well again: every machine the shard has serves.
    world.is_shard_up = true;
    for state in world.machines.values_mut() {
        *state = MachineState::Configured;
    }
    world.lose_session();
    let silent: Vec<String> = world.nodes.keys().cloned().collect();
    for node in silent {
        let machine = node.replace('n', "m");
        let now = world.now;
        let is_ready = world.machines.contains_key(&machine);
        world.change_node(&node, |node| {
            if node.is_ready != is_ready {
                (node.is_ready, node.ready_since) = (is_ready, now);
            }
        });
    }
    world.run_for(1200);
    world.run_for(1000);
    // Where more than half were not named, Nodes stay as they are: a guess would cost Pods.
    let is_mass = 2 * world.machines.len() < MACHINES;
    for (name, node) in &world.nodes {
        let machine = name.replace('n', "m");
        if is_mass && !world.machines.contains_key(&machine) {
            continue;
        }
        if node.is_cordoned && !persons.contains(name) {
            return Some(format!("{name} stays cordoned"));
        }
        if node.drain.is_some() {
            return Some(format!("{name} keeps a record of nothing"));
        }
        if !world.machines.contains_key(&machine) {
            return Some(format!("{name} is left behind"));
        }
    }
    for name in world.upcoming.keys() {
        if !world.machines.contains_key(&name.replace("un-", "")) {
            return Some(format!("{name} is left behind"));
        }
    }
    None
}

#[test]
fn no_order_of_events_evicts_without_an_instruction_or_leaves_anything_behind() {
    for seed in 0..150 {
        assert_eq!(walk(seed, &config()), None, "seed {seed}");
    }
}

#[test]
fn the_walk_finds_every_old_mistake() {
    for defect in [
        Defect::CordonWithoutRecord,
        Defect::ConfiguredIsNoCancel,
        Defect::NoCleaningOnLeaving,
        Defect::NoCleaningByResync,
        Defect::CordonNotRemembered,
        Defect::RecordIsAnInstruction,
    ] {
        let broken = OperatorConfig {
            defect: Some(defect),
            ..config()
        };
        let caught = (0..150).any(|seed| walk(seed, &broken).is_some());
        assert!(caught, "the walk no longer shows {defect:?}");
    }
}
