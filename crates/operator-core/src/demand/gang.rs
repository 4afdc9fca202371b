//! Gang: which requests must be served together, as a text everybody writes alike.
//!
//! ```text
//! topologyKey NUL a=1,b=2,;key In x,y; NUL namespace        (OP-21)
//! ```
//!
//! The text comes back through provider metadata as the group of a machine, so its bytes are part of the contract.

use crate::{
    limits::MOST_GROUP,
    objects::{LabelSelector, PeerTerm},
    sha256::sha256_hex,
};
use bigfleet_model::Group;

/// The label whose values are single Nodes. No machine has it before it is one.
pub(crate) const HOSTNAME_KEY: &str = "kubernetes.io/hostname";

/// How a request is tied to others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gang {
    /// It is not.
    None,
    /// All of the group share one value of the key.
    Domain {
        /// The label they share.
        key: String,
        /// The gang.
        group: Group,
    },
    /// All of the group run on one machine.
    Host(Group),
}

pub(crate) fn gang_of(namespace: &str, together: Option<&PeerTerm>) -> Gang {
    let Some(term) = together.filter(|term| !term.topology_key.is_empty()) else {
        return Gang::None;
    };
    let key = &term.topology_key;
    let selector = term.selector.as_ref().map(canon).unwrap_or_default();
    let mut text = format!("{key}\0{selector}\0{namespace}");
    if MOST_GROUP < text.len() {
        text = format!("\0{}\0{namespace}", sha256_hex(text.as_bytes()));
    }
    let group = Group::new(&text);
    if key == HOSTNAME_KEY {
        Gang::Host(group)
    } else {
        let key = key.clone();
        Gang::Domain { key, group }
    }
}

/// The selector with everything that has an order in its order.
fn canon(selector: &LabelSelector) -> String {
    let mut text = String::new();
    for (key, value) in &selector.match_labels {
        text.extend([key.as_str(), "=", value.as_str(), ","]);
    }
    text.push(';');
    let mut rules: Vec<_> = selector
        .match_expressions
        .iter()
        .map(|rule| {
            let mut values = rule.values.clone();
            values.sort();
            (rule.key.as_str(), rule.operator.as_str(), values.join(","))
        })
        .collect();
    rules.sort();
    for (key, operator, values) in rules {
        text.extend([key, " ", operator, " ", &values, ";"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::LabelRule;

    #[test]
    fn a_selector_is_written_in_one_way() {
        let labels = LabelSelector {
            match_labels: [("b", "2"), ("a", "1")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..LabelSelector::default()
        };
        assert_eq!(canon(&labels), "a=1,b=2,;");
        assert_eq!(canon(&LabelSelector::default()), ";");
        let expression = |values: &[&str]| LabelRule {
            key: "app".to_owned(),
            operator: "In".to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let expressions = LabelSelector {
            match_expressions: vec![expression(&["y", "x"]), expression(&["a"])],
            ..LabelSelector::default()
        };
        assert_eq!(canon(&expressions), ";app In a;app In x,y;");
    }

    #[test]
    fn a_group_that_cannot_be_sent_is_its_digest() {
        let term = PeerTerm {
            topology_key: "z".repeat(70_000),
            selector: None,
        };
        let Gang::Domain { group, .. } = gang_of("ns", Some(&term)) else {
            unreachable!("it has a key");
        };
        assert_eq!(group.as_str().len(), 1 + 64 + 3);
    }
}
