//! Every promise: folded by what it is about, opened where something is not as it should be.

use std::fmt::Write;

use super::{bar, class};
use crate::behaviour::{Profile, Suite};
use crate::certificate::Certificate;
use crate::report::{escaped, reason};
use crate::runner::{Outcome, Report};

pub(super) fn section(certificate: &Certificate) -> String {
    let mut areas: Vec<(&str, Vec<&Report>)> = Vec::new();
    for report in certificate.suite(Suite::Contract) {
        let area = report.behaviour.area();
        match areas.iter_mut().find(|(known, _)| *known == area) {
            Some((_, reports)) => reports.push(report),
            None => areas.push((area, vec![report])),
        }
    }
    let mut section = "<h2>The contract, promise by promise</h2>\n".to_owned();
    for (area, reports) in &areas {
        section += &folded(certificate, name(area), reports);
    }
    section += "<h2>The baseline</h2>\n<p class=\"soft\">Short tests that every provider passes first, whatever its profiles.</p>\n";
    let baseline: Vec<&Report> = certificate.suite(Suite::Baseline).collect();
    section += &folded(certificate, "Baseline", &baseline);
    section += "<h2>In addition</h2>\n<p class=\"soft\">Beyond what the contract asks for. These never decide.</p>\n";
    let ours: Vec<&Report> = certificate.suite(Suite::Ours).collect();
    section + &folded(certificate, "Additional", &ours)
}

/// An area of the registry, for people.
fn name(area: &str) -> &str {
    match area {
        "lifecycle" => "Lifecycle: the four edges of a machine's life",
        "errors" => "Errors: what is refused, and how",
        "idempotency" => "Idempotency: a retry is not a second operation",
        "fencing" => "Fencing: who was superseded changes nothing",
        "concurrency" => "Concurrency: calls at the same time",
        "metadata" => "Metadata: what a shard leaves with a machine",
        "fault" => "Faults: a backend that fails",
        "fieldshape" => "Records: what a machine says about itself",
        "list" => "List: filters, pages, cursors",
        "durability" => "Durability: what a kill must not take",
        "scale" => "Scale: thousands of machines",
        "property" => "Properties: random calls against a model",
        other => other,
    }
}

fn folded(certificate: &Certificate, name: &str, reports: &[&Report]) -> String {
    let passed = reports.iter().filter(|it| it.outcome == Outcome::Passed);
    let (passed, all) = (passed.count(), reports.len());
    let unasked = reports.iter().all(|it| class(certificate, it) == "unasked");
    let broken = reports
        .iter()
        .any(|it| matches!(it.outcome, Outcome::Failed(_)));
    let open = if broken { " open" } else { "" };
    let count = if unasked {
        "not asked for".to_owned()
    } else {
        format!("{passed} of {all}")
    };
    let mut text = format!(
        "<details class=\"card area\"{open}><summary><span class=\"name\">{name}</span>{}<span class=\"count\">{count}</span></summary>\n\
         <table><tr class=\"head\"><th>Behaviour</th><th>Promise</th><th>Outcome</th><th class=\"took\">Took</th></tr>\n",
        bar(certificate, reports)
    );
    for report in reports {
        text += &row(certificate, report);
    }
    text + "</table></details>\n"
}

fn row(certificate: &Certificate, report: &Report) -> String {
    let (behaviour, outcome) = (&report.behaviour, &report.outcome);
    let id = match outcome {
        Outcome::Failed(_) => format!("<a href=\"#{0}\">{0}</a>", behaviour.id),
        _ => behaviour.id.to_owned(),
    };
    let reference = match behaviour.reference {
        "" => String::new(),
        reference => format!(" <span class=\"soft\">{reference}</span>"),
    };
    let class = class(certificate, report);
    let word = match class {
        "passed" => "✓ kept",
        "failed" => "✗ broken",
        "skipped" => "skipped",
        "unasked" => "not asked for",
        _ => "not tried",
    };
    let why = match reason(outcome) {
        why if why.is_empty() || class == "unasked" => String::new(),
        why => format!(": {}", escaped(&why)),
    };
    let took = match outcome {
        Outcome::NotTried(_) => String::new(),
        _ => format!("{:.2} s", report.took.as_secs_f64()),
    };
    let mut promise = escaped(behaviour.title);
    let words: Vec<&str> = behaviour.profiles().iter().map(|it| it.word()).collect();
    if behaviour.suite() != Suite::Baseline && behaviour.profiles() != [Profile::Core] {
        // Writing to a string does not fail.
        let _ = write!(
            promise,
            " <span class=\"soft\">({})</span>",
            words.join(", ")
        );
    }
    format!(
        "<tr><td class=\"id\">{id}{reference}</td><td>{promise}</td><td class=\"outcome {class}\">{word}{why}</td>\
         <td class=\"took\">{took}</td></tr>\n"
    )
}
