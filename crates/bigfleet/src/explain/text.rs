//! Explanations as text.

use super::record::{Choice, Explanation, Victims, WholeUnits};
use crate::{decide::Output, table::columns};
use bigfleet_model::{ordinal, shown};

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
    let unit = match (explained.smallest_unit.as_str(), &explained.whole_units) {
        ("", _) => String::new(),
        (unit, None) => format!(", in machines of at least {unit}"),
        (unit, Some(whole)) => format!(", in whole units of {unit}{}", counted(whole)),
    };
    let mut text = format!(
        "Need of cluster {}{group}\nfingerprint {}\nserved {} of {needs}{}\nasks for {}{unit}\n{}\n",
        shown(&explained.cluster),
        explained.need_fingerprint.escape_debug(),
        ordinal(*position),
        competition(explained),
        explained.wants,
        verdict(explained),
    );
    for action in &explained.actions {
        text += &format!("  {action}\n");
    }
    if !explained.outranked_by.is_empty() {
        text += &ahead(explained);
    }
    if let Some(choice) = &explained.choice {
        text += &domains(choice);
    }
    if let Some(victims) = explained
        .victims
        .as_ref()
        .filter(|of| !of.weighed.is_empty())
    {
        text += &weighed(victims);
    }
    text + "\n" + &machines(explained)
}

/// What its machines count for, and what they would if any part of a unit counted.
fn counted(whole: &WholeUnits) -> String {
    match whole.counted.as_str() {
        "" => String::new(),
        counted => format!(
            "; its machines count for {counted}, and would for {} otherwise",
            whole.otherwise
        ),
    }
}

/// How many of the Needs that are served before it hold machines it could use; empty if none does.
fn competition(explained: &Explanation) -> String {
    let named = explained.outranked_by.len();
    let ahead = explained.outranked_by.iter();
    let holders = ahead.filter(|other| 0 < other.holds).count();
    // Holders are named first: if all that are named hold some, so may others.
    let least = if holders == named && named < explained.position - 1 {
        "at least "
    } else {
        ""
    };
    match holders {
        0 => String::new(),
        1 => format!("; {least}one Need ahead of it holds machines this one could use"),
        count => format!("; {least}{count} Needs ahead of it hold machines this one could use"),
    }
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

fn ahead(explained: &Explanation) -> String {
    let rows = explained.outranked_by.iter().map(|other| {
        vec![
            other.need.clone(),
            other.by.clone(),
            other.holds.to_string(),
        ]
    });
    let mut text = "\n".to_owned()
        + &columns(
            &[
                "SERVED BEFORE IT",
                "BECAUSE OF",
                "HOLDS MACHINES IT COULD USE",
            ],
            rows,
        );
    let named = explained.outranked_by.len();
    text += &more(explained.position - 1 - named, "");
    text
}

/// ` and 3 more`, where there are.
fn more(count: usize, what: &str) -> String {
    match count {
        0 => String::new(),
        count => format!(" and {count} more{what}\n"),
    }
}

fn domains(choice: &Choice) -> String {
    let key = shown(&choice.key);
    let mut text = match &choice.chosen {
        None => format!("\nno {key}: {}\n", choice.rule),
        Some(chosen) => format!("\n{key} {}: {}\n", shown(chosen), choice.rule),
    };
    if let (Some(next), Some(by)) = (&choice.runner_up, choice.decided_by) {
        text += &format!("before {}: {by}\n", shown(next));
    }
    if choice.domains.is_empty() {
        return text;
    }
    let header = [
        "DOMAIN",
        "QUALIFIES",
        "OWN",
        "CREDITED",
        "IDLE",
        "SPECULATIVE",
        "VICTIMS",
        "COVERED BY OWN",
        "BY CREDITED",
        "BY AVAILABLE",
        "FILL",
    ];
    let rows = choice.domains.iter().map(|domain| {
        let ratio = |value: f64| format!("{value:.3}");
        vec![
            shown(&domain.domain),
            if domain.qualifies { "yes" } else { "no" }.to_owned(),
            domain.own.to_string(),
            domain.credited.to_string(),
            domain.idle.to_string(),
            domain.speculative.to_string(),
            domain
                .victims
                .map(|count| count.to_string())
                .unwrap_or_default(),
            ratio(domain.own_coverage),
            ratio(domain.credit_coverage),
            ratio(domain.coverage_at_hand),
            ratio(domain.fill),
        ]
    });
    text += &columns(&header, rows);
    text + &more(choice.domains_left_out, "")
}

fn weighed(victims: &Victims) -> String {
    let rows = victims.weighed.iter().map(|victim| {
        let score = victim.score.map(|score| format!("{score:.6}"));
        vec![
            victim.machine.clone(),
            victim.standing_priority.to_string(),
            score.unwrap_or_default(),
            if victim.head_start { "goes anyway" } else { "" }.to_owned(),
            victim.fate.to_owned(),
        ]
    });
    let header = ["VICTIM", "PRIORITY", "SCORE", "HEAD START", "FATE"];
    "\n".to_owned() + &columns(&header, rows) + &more(victims.left_out, "")
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
    let text = columns(&["FATE", "STATE", "KIND", "COUNT", "MACHINES"], rows);
    let left_out = &explained.candidates_left_out;
    text + &more(
        left_out.groups,
        &format!(" with {} machines", left_out.machines),
    )
}
