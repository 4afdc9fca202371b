//! Explanations as text.

use super::Explanation;
use crate::{decide::Output, table::columns};
use bigfleet_model::shown;

/// In the form asked for.
#[expect(
    clippy::expect_used,
    reason = "writing our own records, whose keys are texts, into memory cannot fail"
)]
pub(crate) fn text(explanations: &[Explanation], output: Output) -> String {
    match output {
        Output::Json => {
            serde_json::to_string_pretty(explanations).expect("a record is JSON") + "\n"
        }
        Output::Yaml => serde_norway::to_string(explanations).expect("a record is YAML"),
        Output::Table => {
            let pages: Vec<String> = explanations.iter().map(page).collect();
            pages.join("\n")
        }
    }
}

fn page(explained: &Explanation) -> String {
    let Explanation {
        position, needs, ..
    } = explained;
    let group = match explained.group.as_str() {
        "" => String::new(),
        group => format!(", gang {}", shown(group)),
    };
    let unit = match explained.smallest_unit.as_str() {
        "" => String::new(),
        unit => format!(", in machines of at least {unit}"),
    };
    let mut text = format!(
        "cluster {}{group}\n{}\nturn {position} of {needs}\nwants {}{unit}\n{}\n",
        shown(&explained.cluster),
        explained.need_fingerprint.escape_debug(),
        explained.wants,
        verdict(explained),
    );
    for action in &explained.actions {
        text += &format!("  {action}\n");
    }
    if !explained.outranked_by.is_empty() {
        let rows = explained.outranked_by.iter();
        text += "\n";
        text += &columns(
            &["EARLIER", "BY"],
            rows.map(|other| vec![other.need.clone(), other.by.clone()]),
        );
        let named = explained.outranked_by.len();
        if named + 1 < *position {
            text += &format!(" and {} more\n", position - 1 - named);
        }
    }
    if !explained.domains.is_empty() {
        let rows = explained.domains.iter();
        text += "\n";
        text += &columns(
            &["DOMAIN", "COVERS", "HOLDS THE GANG"],
            rows.map(|weighed| {
                let covers = f64::from(weighed.coverage_per_mille) / 10.0;
                let holds = if weighed.satisfiable { "yes" } else { "no" };
                vec![
                    shown(&weighed.domain),
                    format!("{covers} %"),
                    holds.to_owned(),
                ]
            }),
        );
    }
    text + "\n" + &machines(explained)
}

fn verdict(explained: &Explanation) -> String {
    let domain = match (explained.same_domain.as_str(), explained.same_satisfiable) {
        ("", _) => String::new(),
        (domain, true) => format!(" in \"{}\"", shown(domain)),
        (domain, false) => format!(" in \"{}\", which cannot hold it", shown(domain)),
    };
    match (explained.satisfied, explained.parked) {
        (true, _) => format!("satisfied{domain}"),
        (false, parked) => {
            let parked = if parked { ", parked" } else { "" };
            let (residual, why) = (&explained.residual, explained.unmet_reason);
            format!("short of {residual}{domain}: {why}{parked}")
        }
    }
}

fn machines(explained: &Explanation) -> String {
    let rows = explained.candidates.iter().map(|alike| {
        let mut names = alike.machines.join(" ");
        if alike.machines.len() < alike.count {
            names += " …";
        }
        vec![
            alike.why.clone(),
            alike.state.to_owned(),
            alike.kind.clone(),
            alike.count.to_string(),
            names,
        ]
    });
    columns(&["FATE", "STATE", "KIND", "COUNT", "MACHINES"], rows)
}
