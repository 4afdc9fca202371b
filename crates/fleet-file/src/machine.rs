//! One machine of the file.

use crate::{
    fields::Fields,
    node::Node,
    problem::{FilePart, Refused},
};
use bigfleet_model::{
    Amounts, Assignment, Breach, CapacityType, ClusterId, Dimension, Disruption, Fingerprint,
    FleetMachine, Group, Host, Intent, Leaving, Machine, MachineFacts, NeedKey, Shape, State,
    StateNumber, Terms, quantity::parse_supply, shown,
};
use std::{collections::BTreeSet, sync::Arc};

/// Shapes seen so far: machines of one shape share it.
pub(crate) type Shapes = BTreeSet<Arc<Shape>>;

/// The machine, or everything that is wrong with it. A malformed quantity reads 0 and is noted
/// among the warnings.
pub(crate) fn read(
    node: Node,
    at: usize,
    shapes: &mut Shapes,
    refused: &mut Refused,
    warnings: &mut Refused,
) -> Option<FleetMachine> {
    let id = shown(node.text_at("id").unwrap_or(""));
    let place = &FilePart::Machine { at, id };
    let before = refused.count();
    let mut fields = Fields::open(node, place, String::new(), refused)?;
    let (state, known) = state(&mut fields);
    let mut facts = MachineFacts::new("", State::Failed);
    facts.state = state;
    // What is missing is noted; the stand-in keeps the grid from noting it again.
    facts.id = fields
        .required_text("id", "ST-5")
        .unwrap_or_else(|| "?".to_owned());
    facts.cluster = fields.text("cluster");
    facts.host = host(&mut fields);
    facts.price_per_hour = fields.number("price_per_hour");
    facts.interruption_probability = fields.number("interruption_probability");
    facts.last_error = fields.text("last_error");
    facts.assignment = assignment(&mut fields);
    facts.intent = intent(&mut fields);
    let shape = shape(&mut fields, place, warnings);
    facts.shape = shared(shape, shapes);
    let idle_since = fields.time("idle_since");
    let not_ready = fields.flag("not_ready", false);
    let unavailable = fields.flag("unavailable", false);
    let disruption = disruption(&mut fields);
    let reversible = fields.flag("reversible", false);
    let leaving = leaving(&mut fields);
    fields.close();
    if !known {
        repair(&mut facts, &Breach::UnknownState(StateNumber(0)));
    }
    let machine = grid(facts, place, refused)?;
    (refused.count() == before).then_some(FleetMachine {
        machine,
        idle_since,
        not_ready,
        unavailable,
        disruption,
        reversible,
        leaving,
    })
}

/// What draining it would disturb; unknown if absent (RF-2).
fn disruption(fields: &mut Fields<'_>) -> Option<Disruption> {
    let level: i64 = fields.stated_whole("disruption")?;
    let told = Disruption::new(level);
    if told.is_none() {
        fields.note("disruption", &format!("{level} is not from 0 to 15 (RF-2)"));
    }
    told
}

/// How it is to leave; not at all if absent or empty (RF-21).
fn leaving(fields: &mut Fields<'_>) -> Option<Leaving> {
    let word = fields.text("leaving");
    let leaving = Leaving::from_word(&word);
    if leaving.is_none() && !word.is_empty() {
        let what = format!("\"{}\" is neither soon nor now (RF-21)", shown(&word));
        fields.note("leaving", &what);
    }
    leaving
}

/// The state, and whether it can be put to the grid. "Unspecified" is a word, so the grid says why
/// it is refused.
fn state(fields: &mut Fields<'_>) -> (StateNumber, bool) {
    let Some(word) = fields.required_text("state", "ST-5") else {
        return (StateNumber(0), false);
    };
    let found = State::ALL.into_iter().find(|state| state.word() == word);
    match (found, word.as_str()) {
        (Some(state), _) => (state.into(), true),
        (None, "Unspecified") => (StateNumber(0), true),
        (None, other) => {
            fields.note(
                "state",
                &format!("\"{}\" is not a state (ST-5)", shown(other)),
            );
            (StateNumber(0), false)
        }
    }
}

/// Puts the facts to the grid until it has named every breach, not only the first.
fn grid(mut facts: MachineFacts, place: &FilePart, refused: &mut Refused) -> Option<Machine> {
    loop {
        let breach = match Machine::new(facts.clone()) {
            Ok(machine) => return Some(machine),
            Err(breach) => breach,
        };
        let text = breach.to_string();
        let own = format!("machine \"{}\": ", breach.id);
        refused.push(place, text.strip_prefix(&own).unwrap_or(&text).to_owned());
        repair(&mut facts, &breach.breach);
    }
}

/// Removes a breach that has been noted, so that the next one shows. Each kind is removed for good.
fn repair(facts: &mut MachineFacts, breach: &Breach) {
    let any = || "?".to_owned();
    match breach {
        Breach::Id(_) => facts.id = any(),
        Breach::Cluster(_) | Breach::NoCluster(_) => facts.cluster = any(),
        Breach::HostGiven(_) => facts.host = Host::default(),
        Breach::ClusterGiven(..) => facts.cluster.clear(),
        Breach::NoHost(_) => facts.host.provider = any(),
        Breach::NoError => facts.last_error = any(),
        Breach::UnknownState(_) => {
            facts.state = State::Failed.into();
            facts.last_error = any();
            facts.intent = None;
        }
        Breach::IntentGiven(_) => facts.intent = None,
        Breach::Probability(_) => facts.interruption_probability = 0.0,
        Breach::Price(_) => facts.price_per_hour = 0.0,
    }
}

fn host(fields: &mut Fields<'_>) -> Host {
    let Some(mut host) = fields.object("host") else {
        return Host::default();
    };
    let read = Host {
        provider: host.text("provider"),
        reference: host.text("ref"),
    };
    host.close();
    read
}

fn terms(fields: &mut Fields<'_>) -> Terms {
    Terms {
        priority: fields.whole("priority", 0),
        interruption: fields.dollars("interruption_penalty_dollars"),
        reclamation: fields.dollars("reclamation_penalty_dollars"),
    }
}

fn assignment(fields: &mut Fields<'_>) -> Assignment {
    let Some(mut assigned) = fields.object("assigned") else {
        return Assignment::default();
    };
    let read = Assignment {
        terms: terms(&mut assigned),
        fingerprint: Fingerprint::new(&assigned.text("need_fingerprint")),
        group: Group::new(&assigned.text("group")),
        keep_price: assigned.price("keep_price"),
    };
    assigned.close();
    read
}

fn intent(fields: &mut Fields<'_>) -> Option<Intent> {
    let mut intent = fields.object("intent")?;
    let cluster =
        intent
            .required_text("cluster", "RF-1")
            .and_then(|text| match ClusterId::new(&text) {
                Ok(id) => Some(id),
                Err(refused) => {
                    intent.note("cluster", &format!("{refused} (RF-1)"));
                    None
                }
            });
    let fingerprint = Fingerprint::new(&intent.text("need_fingerprint"));
    let group = Group::new(&intent.text("group"));
    let terms = terms(&mut intent);
    let keep_price = intent.price("keep_price");
    intent.close();
    let need = NeedKey {
        cluster: cluster?,
        fingerprint,
        group,
    };
    Some(Intent {
        need,
        terms,
        keep_price,
    })
}

fn shape(fields: &mut Fields<'_>, place: &FilePart, warnings: &mut Refused) -> Shape {
    let tiers = CapacityType::ALL.map(|tier| (tier.word(), tier));
    let resources = supply(fields, "resources", place, warnings);
    Shape {
        instance_type: fields.text("instance_type"),
        zone: fields.text("zone"),
        capacity_type: fields
            .word("capacity_type", tiers, "model.md §1")
            .unwrap_or_default(),
        labels: fields.text_map("labels"),
        resources: resources.unwrap_or_default(),
        allocatable: supply(fields, "allocatable", place, warnings),
    }
}

/// What a machine offers; `None` for an empty or absent map (M-2).
fn supply(
    fields: &mut Fields<'_>,
    key: &str,
    place: &FilePart,
    warnings: &mut Refused,
) -> Option<Amounts> {
    let problems = fields.problems();
    let texts = fields.quantity_map(key);
    if texts.is_empty() || fields.problems() != problems {
        return None;
    }
    let mut entries = Vec::with_capacity(texts.len());
    for (name, text) in &texts {
        let milli = parse_supply(text).unwrap_or_else(|malformed| {
            let what = format!("{key}.{}: {malformed}, read as 0 (Q-5)", shown(name));
            warnings.push(place, what);
            0
        });
        match Dimension::new(name) {
            Ok(dimension) => entries.push((dimension, milli.into())),
            Err(refused) => {
                fields.note(key, &format!("\"{}\": {refused} (Q-1)", shown(name)));
            }
        }
    }
    Some(Amounts::from_entries(entries))
}

fn shared(shape: Shape, shapes: &mut Shapes) -> Arc<Shape> {
    if let Some(same) = shapes.get(&shape) {
        return Arc::clone(same);
    }
    let shape = Arc::new(shape);
    shapes.insert(Arc::clone(&shape));
    shape
}
