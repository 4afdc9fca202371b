//! Registry: which Node is which machine (OP-29 to OP-31).
//!
//! ```text
//! machine ─▶ label machine-id or machine-hash ─▶ providerID, whole or its last part ─▶ name ─▶ the target's name
//! ```
//!
//! The first step that names a Node decides. A step that names more than one is ambiguous and ends the search: a guess
//! could drain the wrong Node.

use crate::{event::MachineState, objects::NodeFacts, sha256::sha256_hex};
use bigfleet_model::{MachineId, Requirement, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The label of a Node that says which machine it is.
pub const MACHINE_LABEL: &str = "bigfleet.lucy.sh/machine-id";
/// The label for ids that cannot be a label's value: 32 hexadecimal digits of their SHA-256.
pub const MACHINE_HASH_LABEL: &str = "bigfleet.lucy.sh/machine-hash";

/// Whether a text may be the value of a label.
fn is_label_value(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.len() <= 63 && is_edge(bytes.first()) && is_edge(bytes.last()) && bytes.iter().all(fits)
}

/// The label a machine's Node carries (OP-29): what a bootstrap template sets and the operator writes.
pub fn machine_label(machine: &str) -> (&'static str, String) {
    if is_label_value(machine) {
        return (MACHINE_LABEL, machine.to_owned());
    }
    let mut hash = sha256_hex(machine.as_bytes());
    hash.truncate(32);
    (MACHINE_HASH_LABEL, hash)
}

/// What is known of a machine's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is this one.
    Node(String),
    /// No Node is it.
    None,
    /// More than one could be.
    Ambiguous,
}

#[derive(Clone, Debug)]
struct Machine {
    state: MachineState,
    /// Whether the state was heard in the present session.
    is_heard: bool,
    provider_id: String,
    label: (&'static str, String),
    known_since: Time,
    found: Found,
}

/// Machines, Nodes, and which is which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    machines: BTreeMap<MachineId, Machine>,
    by_provider: BTreeMap<String, BTreeSet<MachineId>>,
    by_label: BTreeMap<(&'static str, String), BTreeSet<MachineId>>,
    nodes: BTreeMap<String, NodeNames>,
    nodes_by_label: BTreeMap<(&'static str, String), BTreeSet<String>>,
    nodes_by_provider: BTreeMap<String, BTreeSet<String>>,
    machine_of: BTreeMap<String, MachineId>,
}

/// What of a Node names a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeNames {
    labels: Vec<(&'static str, String)>,
    providers: BTreeSet<String>,
}

impl NodeNames {
    fn of(node: &NodeFacts) -> Self {
        let label = |key: &'static str| Some((key, node.labels.get(key)?.clone()));
        let whole = node.provider_id.as_str();
        let last = whole.rsplit('/').next().unwrap_or_default();
        let named = [whole, last].into_iter().filter(|name| !name.is_empty());
        Self {
            labels: [MACHINE_LABEL, MACHINE_HASH_LABEL]
                .into_iter()
                .filter_map(label)
                .collect(),
            providers: named.map(str::to_owned).collect(),
        }
    }
}

impl Registry {
    /// A frame names a machine; whether its Node is another one now.
    pub(crate) fn heard(
        &mut self,
        now: Time,
        machine: &MachineId,
        state: MachineState,
        provider_id: &str,
    ) -> bool {
        self.know(now, machine, state, provider_id);
        if let Some(known) = self.machines.get_mut(machine) {
            known.is_heard = true;
        }
        self.resolve(machine)
    }

    /// An UpcomingNode tells of a machine nobody named yet.
    pub(crate) fn recall(
        &mut self,
        since: Time,
        machine: &MachineId,
        state: MachineState,
        provider_id: &str,
    ) -> bool {
        if self.machines.contains_key(machine) {
            return false;
        }
        self.know(since, machine, state, provider_id);
        self.resolve(machine)
    }

    fn know(&mut self, now: Time, machine: &MachineId, state: MachineState, provider_id: &str) {
        let label = machine_label(machine.as_str());
        let known = self
            .machines
            .entry(machine.clone())
            .or_insert_with(|| Machine {
                state,
                is_heard: false,
                provider_id: String::new(),
                label: label.clone(),
                known_since: now,
                found: Found::None,
            });
        known.state = state;
        if !provider_id.is_empty() && known.provider_id != provider_id {
            let old = std::mem::replace(&mut known.provider_id, provider_id.to_owned());
            forget(&mut self.by_provider, &old, machine);
            let same = self.by_provider.entry(provider_id.to_owned()).or_default();
            same.insert(machine.clone());
        }
        self.by_label
            .entry(label)
            .or_default()
            .insert(machine.clone());
    }

    /// The machine has left the cluster; the Node it was.
    pub(crate) fn left(&mut self, machine: &MachineId) -> Option<String> {
        let known = self.machines.remove(machine)?;
        forget(&mut self.by_provider, &known.provider_id, machine);
        forget(&mut self.by_label, &known.label, machine);
        let Found::Node(node) = known.found else {
            return None;
        };
        self.machine_of.remove(&node);
        Some(node)
    }

    /// A session begins: what was heard before is hearsay.
    pub(crate) fn session_begins(&mut self) {
        for known in self.machines.values_mut() {
            known.is_heard = false;
        }
    }

    /// A Node came, changed or went. The machines whose Node is another one now.
    pub(crate) fn node_changed(&mut self, name: &str, after: Option<&NodeFacts>) -> Vec<MachineId> {
        let names = after.map(NodeNames::of);
        let before = match &names {
            Some(names) => self.nodes.insert(name.to_owned(), names.clone()),
            None => self.nodes.remove(name),
        };
        if before == names {
            return Vec::new();
        }
        let mut touched = BTreeSet::new();
        for (sides, is_there) in [(&before, false), (&names, true)] {
            let Some(side) = sides else { continue };
            for label in &side.labels {
                touched.extend(self.by_label.get(label).into_iter().flatten().cloned());
                point(&mut self.nodes_by_label, label, name, is_there);
            }
            for provider in &side.providers {
                touched.extend(
                    self.by_provider
                        .get(provider)
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
                point(&mut self.nodes_by_provider, provider, name, is_there);
            }
        }
        touched.extend(
            MachineId::new(name)
                .ok()
                .filter(|id| self.machines.contains_key(id)),
        );
        touched.extend(self.machine_of.get(name).cloned());
        touched.retain(|machine| self.resolve(machine));
        touched.into_iter().collect()
    }

    /// Looks for the machine's Node anew; whether it is another one.
    fn resolve(&mut self, machine: &MachineId) -> bool {
        let found = self.search(machine);
        let Some(known) = self.machines.get_mut(machine) else {
            return false;
        };
        if known.found == found {
            return false;
        }
        if let Found::Node(old) = &known.found
            && self.machine_of.get(old) == Some(machine)
        {
            self.machine_of.remove(old);
        }
        if let Found::Node(new) = &found {
            self.machine_of.insert(new.clone(), machine.clone());
        }
        known.found = found;
        true
    }

    fn search(&self, machine: &MachineId) -> Found {
        let Some(known) = self.machines.get(machine) else {
            return Found::None;
        };
        let labelled = self.nodes_by_label.get(&known.label);
        if let Some(found) = labelled.and_then(one) {
            return found;
        }
        // A Node that says it is another machine is not this one, whatever else it is called.
        let is_free = |name: &&String| {
            let names = self.nodes.get(*name);
            names.is_some_and(|names| names.labels.is_empty())
        };
        if !known.provider_id.is_empty() {
            let claimants = self.by_provider.get(&known.provider_id);
            let hosts = self.nodes_by_provider.get(&known.provider_id);
            let hosts: BTreeSet<String> = hosts
                .into_iter()
                .flatten()
                .filter(is_free)
                .cloned()
                .collect();
            if !hosts.is_empty() && claimants.is_some_and(|claimants| 1 < claimants.len()) {
                return Found::Ambiguous;
            }
            if let Some(found) = one(&hosts) {
                return found;
            }
        }
        let name = machine.as_str().to_owned();
        let is_named = self.nodes.contains_key(&name) && is_free(&&name);
        if is_named {
            Found::Node(name)
        } else {
            Found::None
        }
    }

    pub(crate) fn found(&self, machine: &MachineId) -> &Found {
        self.machines
            .get(machine)
            .map_or(&Found::None, |known| &known.found)
    }

    /// The machine's Node for a drain: also by the name the shard gives, if that Node is no other machine (OP-29).
    pub(crate) fn found_as(&self, machine: &MachineId, node_name: &str) -> Found {
        let found = self.found(machine).clone();
        let names = self.nodes.get(node_name);
        let label = machine_label(machine.as_str());
        let is_other = |names: &NodeNames| {
            self.machine_of
                .get(node_name)
                .is_some_and(|other| other != machine)
                || names.labels.iter().any(|other| *other != label)
        };
        match found {
            Found::None if names.is_some_and(|names| !is_other(names)) => {
                Found::Node(node_name.to_owned())
            }
            found => found,
        }
    }

    pub(crate) fn machine_of(&self, node: &str) -> Option<&MachineId> {
        self.machine_of.get(node)
    }

    /// The state of a machine, if it was heard in this session.
    pub(crate) fn heard_state(&self, machine: &MachineId) -> Option<MachineState> {
        let known = self.machines.get(machine)?;
        known.is_heard.then_some(known.state)
    }

    pub(crate) fn is_known(&self, machine: &MachineId) -> bool {
        self.machines.contains_key(machine)
    }

    pub(crate) fn provider_id(&self, machine: &MachineId) -> &str {
        self.machines
            .get(machine)
            .map_or("", |known| known.provider_id.as_str())
    }

    pub(crate) fn ambiguous(&self) -> usize {
        let is_it = |known: &&Machine| known.found == Found::Ambiguous;
        self.machines.values().filter(is_it).count()
    }

    pub(crate) fn resolved(&self) -> usize {
        self.machine_of.len()
    }

    /// OP-31: Ready Nodes that are no machine and could be one.
    pub(crate) fn unaccounted<'a>(
        &self,
        nodes: impl Iterator<Item = &'a NodeFacts>,
        unmanaged: &[Requirement],
    ) -> usize {
        let is_missing = |known: &&Machine| {
            known.state == MachineState::Configured && known.found == Found::None
        };
        let missing = self.machines.values().filter(is_missing);
        let Some(oldest) = missing.map(|known| known.known_since).min() else {
            return 0;
        };
        let could_be = |node: &&NodeFacts| {
            node.is_ready
                && oldest <= node.created
                && !self.machine_of.contains_key(&node.name)
                && !is_selected(unmanaged, node)
        };
        nodes.filter(could_be).count()
    }
}

/// Whether a Node is one of those the conditions select; no condition selects none.
pub(crate) fn is_selected(conditions: &[Requirement], node: &NodeFacts) -> bool {
    let accepts = |condition: &Requirement| {
        condition.accepts(node.labels.get(condition.key()).map(String::as_str))
    };
    !conditions.is_empty() && conditions.iter().all(accepts)
}

/// Nothing for no Node, the Node for one, ambiguous for more.
fn one(nodes: &BTreeSet<String>) -> Option<Found> {
    match nodes.len() {
        0 => None,
        1 => nodes.first().cloned().map(Found::Node),
        _ => Some(Found::Ambiguous),
    }
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<MachineId>>, key: &K, machine: &MachineId) {
    if let Some(machines) = index.get_mut(key) {
        machines.remove(machine);
        if machines.is_empty() {
            index.remove(key);
        }
    }
}

fn point<K: Ord + Clone>(
    index: &mut BTreeMap<K, BTreeSet<String>>,
    key: &K,
    node: &str,
    is_there: bool,
) {
    let nodes = index.entry(key.clone()).or_default();
    if is_there {
        nodes.insert(node.to_owned());
    } else {
        nodes.remove(node);
    }
    if nodes.is_empty() {
        index.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigfleet_model::Amounts;

    fn id(name: &str) -> MachineId {
        MachineId::new(name).unwrap()
    }

    fn node(name: &str, label: Option<(&str, &str)>, provider: &str) -> NodeFacts {
        let labels = label
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        NodeFacts {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            version: "1".to_owned(),
            created: Time::from_nanos(5),
            labels: labels.collect(),
            provider_id: provider.to_owned(),
            is_ready: true,
            ready_since: Time::ZERO,
            is_cordoned: false,
            allocatable: Amounts::NONE,
            drain: None,
            disruption: None,
            empty_since: None,
            removable_since: None,
        }
    }

    fn registry(nodes: &[NodeFacts]) -> Registry {
        let mut registry = Registry::default();
        for node in nodes {
            registry.node_changed(&node.name, Some(node));
        }
        registry
    }

    fn resolved(registry: &mut Registry, machine: &str, provider: &str) -> Found {
        registry.heard(Time::ZERO, &id(machine), MachineState::Configured, provider);
        registry.found(&id(machine)).clone()
    }

    fn is(name: &str) -> Found {
        Found::Node(name.to_owned())
    }

    /// OP-29: the order of the steps.
    #[test]
    fn the_first_step_that_names_a_node_decides() {
        let odd = "provider/zone:1";
        let (key, hash) = machine_label(odd);
        assert_eq!((key, hash.len()), (MACHINE_HASH_LABEL, 32));
        let mut registry = registry(&[
            node("n1", Some((MACHINE_LABEL, "m1")), "aws:///z/i-1"),
            node("n2", None, "aws:///z/i-2"),
            node("m3", None, ""),
            node("n4", Some((MACHINE_HASH_LABEL, &hash)), ""),
        ]);
        assert_eq!(
            resolved(&mut registry, "m1", "i-2"),
            is("n1"),
            "the label goes first"
        );
        assert_eq!(
            resolved(&mut registry, "m2", "i-2"),
            Found::Ambiguous,
            "two machines say so"
        );
        assert_eq!(resolved(&mut registry, "m3", ""), is("m3"));
        assert_eq!(resolved(&mut registry, odd, ""), is("n4"));
        assert_eq!(resolved(&mut registry, "m9", ""), Found::None);
        assert_eq!(registry.found_as(&id("m9"), "n2"), is("n2"));
        assert_eq!(
            registry.found_as(&id("m9"), "n1"),
            Found::None,
            "it is another machine"
        );
        assert_eq!(registry.machine_of("n1"), Some(&id("m1")));
    }

    #[test]
    fn the_last_part_of_a_provider_id_is_enough_unless_two_nodes_have_it() {
        let mut registry = registry(&[node("n1", None, "aws:///a/i-1")]);
        assert_eq!(resolved(&mut registry, "m1", "i-1"), is("n1"));
        let twin = node("n2", None, "gce://b/i-1");
        assert_eq!(registry.node_changed("n2", Some(&twin)), [id("m1")]);
        assert_eq!(
            (registry.found(&id("m1")), registry.ambiguous()),
            (&Found::Ambiguous, 1)
        );
        assert_eq!(registry.machine_of("n1"), None);
        registry.node_changed("n2", None);
        assert_eq!(registry.found(&id("m1")), &is("n1"));
    }

    #[test]
    fn a_label_that_appears_later_is_followed() {
        let mut registry = registry(&[node("n1", None, "")]);
        assert_eq!(resolved(&mut registry, "m1", ""), Found::None);
        let labelled = node("n1", Some((MACHINE_LABEL, "m1")), "");
        assert_eq!(registry.node_changed("n1", Some(&labelled)), [id("m1")]);
        assert_eq!(registry.node_changed("n1", Some(&labelled)), []);
        assert_eq!(registry.node_changed("n1", None), [id("m1")]);
        assert_eq!(registry.found(&id("m1")), &Found::None);
    }

    /// OP-31.
    #[test]
    fn a_ready_node_that_could_be_a_machine_is_unaccounted() {
        let control = "node-role.kubernetes.io/control-plane";
        let nodes = [node("n1", None, ""), node("n2", Some((control, "")), "")];
        let mut registry = registry(&nodes);
        let unmanaged =
            [
                Requirement::new(control.to_owned(), bigfleet_model::Operator::Exists, vec![])
                    .unwrap(),
            ];
        let count = |registry: &Registry| registry.unaccounted(nodes.iter(), &unmanaged);
        assert_eq!(count(&registry), 0, "no machine lacks a Node");
        resolved(&mut registry, "m1", "");
        assert_eq!(count(&registry), 1);
        registry.heard(Time::ZERO, &id("m1"), MachineState::Draining, "");
        assert_eq!(count(&registry), 0);
        registry.heard(Time::from_nanos(9), &id("m2"), MachineState::Configured, "");
        assert_eq!(count(&registry), 0, "the Node is older than the machine");
    }

    #[test]
    fn what_left_is_forgotten_everywhere() {
        let mut registry = registry(&[node("n1", None, "i-1")]);
        resolved(&mut registry, "m1", "i-1");
        assert_eq!(registry.left(&id("m1")), Some("n1".to_owned()));
        assert_eq!(registry.left(&id("m1")), None);
        assert_eq!(resolved(&mut registry, "m2", "i-1"), is("n1"));
    }
}
