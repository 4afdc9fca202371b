//! `bigfleet sim list`: what there is to run, and what can be switched on.

use super::{Output, chosen, report::say_json};
use crate::{failure::Failure, output::say, table::columns};
use bigfleet_sim::{Class, Defect, Scenario};
use clap::Args as ClapArgs;
use serde::Serialize;

/// What was asked.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// The form of the answer [default: table on a terminal, else json]
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

#[derive(Serialize)]
struct ScenarioLine {
    name: &'static str,
    size: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct DefectLine {
    name: String,
    about: &'static str,
    /// The scenarios told for its sake.
    guards: &'static [&'static str],
}

#[derive(Serialize)]
struct Object {
    scenarios: Vec<ScenarioLine>,
    defects: Vec<DefectLine>,
}

/// Lists them.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let scenario = |one: Scenario| ScenarioLine {
        name: one.name,
        size: match one.class {
            Class::Small => "small",
            Class::Large => "large",
        },
        about: one.about,
    };
    let defect = |one: Defect| DefectLine {
        name: one.name(),
        about: one.about(),
        guards: one.guards(),
    };
    let object = Object {
        scenarios: Scenario::all().into_iter().map(scenario).collect(),
        defects: Defect::all().into_iter().map(defect).collect(),
    };
    match chosen(args.output) {
        Output::Json => say_json(&object),
        Output::Table => say(&tables(&object)),
    }
}

fn tables(object: &Object) -> String {
    let scenarios = object.scenarios.iter();
    let scenarios = scenarios.map(|one| [one.name, one.size, one.about].map(str::to_owned));
    let defects = object.defects.iter();
    let defects = defects.map(|one| {
        [
            one.name.clone(),
            one.about.to_owned(),
            one.guards.join(", "),
        ]
    });
    let header = ["SCENARIO", "SIZE", "WHAT HAPPENS"];
    let scenarios = columns(&header, scenarios.map(Vec::from));
    let header = ["DEFECT", "WHAT GOES WRONG", "GUARDED BY"];
    let defects = columns(&header, defects.map(Vec::from));
    format!("{scenarios}\n{defects}")
}
