//! One cluster of the file, with its rows.

use crate::{
    fields::Fields,
    node::Node,
    problem::{FilePart, Refused},
};
use bigfleet_model::{
    Cluster, ClusterId, Operator, RequirementFacts, Row, RowFacts, RowRefused, SpreadFacts, Time,
    WhenUnsatisfiable, shown,
};

/// The cluster, or everything that is wrong with it and its rows.
pub(crate) fn read(node: Node, at: usize, refused: &mut Refused) -> Option<(ClusterId, Cluster)> {
    let shown_id = shown(node.text_at("id").unwrap_or(""));
    let place = FilePart::Cluster {
        at,
        id: shown_id.clone(),
    };
    let before = refused.count();
    let mut fields = Fields::open(node, &place, String::new(), refused)?;
    let id = id(&mut fields);
    let ready = fields.flag("ready", true);
    let acquire = fields.flag("acquire", true);
    let nodes = fields.list("needs");
    fields.close();
    let mut rows = Vec::with_capacity(nodes.len());
    for (row, node) in nodes.into_iter().enumerate() {
        let id = shown_id.clone();
        let place = FilePart::Row { at, id, row };
        rows.extend(read_row(node, &place, refused));
    }
    let id = id.filter(|_| refused.count() == before)?;
    match Cluster::new(&id, rows) {
        Ok(mut cluster) => {
            cluster.ready = ready;
            cluster.acquire = acquire;
            Some((id, cluster))
        }
        Err(row) => {
            let place = FilePart::Row {
                at,
                id: shown_id,
                row,
            };
            refused.push(&place, RowRefused::Sum.to_string());
            None
        }
    }
}

fn id(fields: &mut Fields<'_>) -> Option<ClusterId> {
    let text = fields.required_text("id", "NT-1")?;
    match ClusterId::new(&text) {
        Ok(id) => Some(id),
        Err(refused) => {
            fields.note("id", &format!("{refused} (NT-1)"));
            None
        }
    }
}

fn read_row(
    node: Node,
    place: &FilePart,
    refused: &mut Refused,
) -> Option<(Row, Option<Time>, bool)> {
    let before = refused.count();
    let mut fields = Fields::open(node, place, String::new(), refused)?;
    let mut facts = RowFacts {
        priority: fields.whole("priority", 0),
        interruption_bucket: fields.whole("interruption_penalty_bucket", 0),
        reclamation_bucket: fields.whole("reclamation_penalty_bucket", 0),
        aggregate: fields.quantity_map("aggregate_resources"),
        min_unit: fields.quantity_map("min_unit"),
        group: fields.text("group"),
        whole_units: fields.flag("whole_units", false),
        ..RowFacts::default()
    };
    for (at, node) in fields.list("requirements").into_iter().enumerate() {
        let item = fields.item("requirements", at, node);
        facts.requirements.extend(item.and_then(requirement));
    }
    for (at, node) in fields.list("spread").into_iter().enumerate() {
        let item = fields.item("spread", at, node);
        facts.spread.extend(item.map(spread));
    }
    // 0 is how a file says that it is not stated.
    let arrival = fields.time("arrival").filter(|at| at.nanos() != 0);
    let parked = fields.flag("parked", false);
    fields.close();
    let row = match facts.check() {
        Ok(row) => row,
        Err(problems) => {
            for problem in problems {
                refused.push(place, problem.to_string());
            }
            return None;
        }
    };
    (refused.count() == before).then_some((row, arrival, parked))
}

fn requirement(mut fields: Fields<'_>) -> Option<RequirementFacts> {
    let key = fields.text("key");
    let operator = fields.required_text("operator", "NT-6");
    let values = fields.text_list("values");
    fields.close();
    let operator = operator.map(|word| {
        let known = Operator::ALL.into_iter();
        known
            .into_iter()
            .find(|operator| operator.word() == word)
            .ok_or(word)
    })?;
    Some(RequirementFacts {
        key,
        operator,
        values,
    })
}

fn spread(mut fields: Fields<'_>) -> SpreadFacts {
    let words = WhenUnsatisfiable::ALL.map(|when| (when.word(), when));
    let facts = SpreadFacts {
        topology_key: fields.text("topology_key"),
        max_skew: fields.whole("max_skew", 1),
        when: fields
            .word("when_unsatisfiable", words, "P-2")
            .unwrap_or_default(),
    };
    fields.close();
    facts
}
